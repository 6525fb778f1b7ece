"""Plans for areas against the optimum of all Gaussian mechanisms, CVXPY, and exact arithmetic.

Random trees of even depth are within 0.05 % of that optimum (docs/mathematics.md §15.1); the looser
limit here is for trees and weights that a test looks for as bad ones.
"""

from dataclasses import replace
from fractions import Fraction

import cvxpy
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.errors import PlanError, WorkloadError
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.areas.area_planner import minimum_area_budget, plan_areas
from rpexplore.planning.areas.solvers import AreaMaximum
from tests.support.area_trees import area_trees, incidence
from tests.support.explicit_optimum import dense_queries, lower_bound

OTHERS = rp.Domain.from_sizes({"sex": 2, "age": 3})
TABLES = [(), ("sex",), ("age",), ("sex", "age")]
COST_1 = rp.Budget(privacy_cost=1)


@st.composite
def area_workloads(draw):
    """Some tables on each level of a small tree, other ones in some areas."""
    tree = draw(area_trees(max_rows=6))
    assume(np.count_nonzero(tree.n_parts == 0) <= 8)
    some = st.lists(st.sampled_from(TABLES), unique=True, max_size=3)
    levels = {level: draw(some) for level in tree.levels}
    levels[tree.levels[0]] = levels[tree.levels[0]] or [()]
    weight = st.floats(0.1, 10)

    def workload(tables):
        return rp.Workload.of(OTHERS, tables, weights=[draw(weight) for _ in tables])

    asked = rp.AreaWorkload.of_levels(
        tree, {level: workload(tables) for level, tables in levels.items() if tables}
    )
    if draw(st.booleans()):
        areas = draw(st.sets(st.integers(0, tree.n_areas - 1), min_size=1))
        asked = asked.with_areas(np.array(sorted(areas)), workload([("sex",)]))
    return asked


def all_queries(asked):
    """(queries over areas without parts × other cells, the weight of each in the sum)."""
    rows, weights = [], []
    for within, kind in zip(incidence(asked.tree), asked.kinds.tolist(), strict=True):
        if kind >= 0:
            workload = asked.workloads[kind]
            queries, tables = dense_queries(workload)
            rows.append(np.kron(within, queries))
            share = workload.weights / workload.cells / asked.areas_asked[kind]
            weights.append(share[tables])
    return np.concatenate(rows), np.concatenate(weights)


@st.composite
def alike_on_all_levels(draw):
    """The same tables everywhere, each with a weight of its own on each level."""
    tree = draw(area_trees(max_rows=6))
    tables = draw(st.lists(st.sampled_from(TABLES), unique=True, min_size=1))
    weights = st.lists(st.floats(0.1, 10), min_size=len(tables), max_size=len(tables))
    return rp.AreaWorkload.of_levels(
        tree,
        {level: rp.Workload.of(OTHERS, tables, weights=draw(weights)) for level in tree.levels},
    )


@given(alike_on_all_levels())
@settings(max_examples=12)
def test_sum_is_near_the_best_of_all_gaussian_mechanisms(asked):
    plan = plan_areas(asked, loss=rp.SumOfVariances(), budget=COST_1, tolerance=1e-5)
    queries, weights = all_queries(asked)
    best = lower_bound(queries.T @ (weights[:, None] * queries), tolerance=1e-4)
    assert plan.gap <= 1.1e-5
    assert best * (1 - 1e-6) <= plan.loss_value <= best * 1.05


@given(area_workloads())
@settings(max_examples=25)
def test_loss_and_cost_are_those_of_everything_that_is_measured(asked):
    plan = plan_areas(asked, loss=rp.SumOfVariances(), budget=COST_1)
    assert (
        plan.certificate.lower_bound * (1 - 1e-9)
        <= plan.loss_value
        <= plan.certificate.lower_bound * 1.00011
    )
    assert explicit_loss_and_cost(plan, *all_queries(asked)) == (
        pytest.approx(plan.loss_value, rel=1e-6),
        pytest.approx(float(plan.exact_privacy_cost), rel=1e-8),
    )
    assert 1 - 1e-9 < plan.exact_privacy_cost <= 1


def explicit_loss_and_cost(plan, queries, weights):
    """From the dense matrix of everything that is measured."""
    sizes = OTHERS.sizes
    gram = 0.0
    for residual in range(len(plan.closure)):
        members = plan.closure.attributes(residual)
        factors = [
            np.eye(n) - 1 / n if index in members else np.full((n, n), 1 / n)
            for index, n in enumerate(sizes.tolist())
        ]
        # S-parts of the other cells, as the residual measures them (docs/mathematics.md §3.1).
        scale = np.prod([n for index, n in enumerate(sizes.tolist()) if index not in members])
        part = scale * np.kron(factors[0], factors[1])
        for within, group in zip(incidence(plan.workload.tree), plan.groups.of_area, strict=True):
            variance = plan.exact_variance(residual, int(group))
            if variance is not None:
                gram = gram + float(1 / variance) * np.kron(np.outer(within, within), part)
    covariance = queries @ np.linalg.pinv(gram, rcond=1e-11, hermitian=True) @ queries.T
    return float(weights @ np.diag(covariance)), float(np.max(np.diag(gram)))


def test_balanced_trees_are_planned_optimally():
    tree = rp.AreaTree.from_columns(
        {"region": [c for c in "abcd" for _ in range(3)], "town": [*"123"] * 4}
    )
    asked = rp.AreaWorkload.of_levels(
        tree, dict.fromkeys(tree.levels, rp.Workload.of(OTHERS, [("sex",)]))
    )
    plan = plan_areas(asked, loss=rp.SumOfVariances(), budget=COST_1, tolerance=1e-7)
    queries, weights = all_queries(asked)
    best = lower_bound(queries.T @ (weights[:, None] * queries), tolerance=1e-6)
    assert plan.loss_value == pytest.approx(best, rel=2e-6)
    assert len(plan.groups) == 1 + 4 + 4
    assert len(plan.multiples) == 1  # the total and the sexes need the same shares


@given(area_trees(max_rows=6), st.lists(st.floats(0.5, 3), min_size=4, max_size=4))
@settings(max_examples=10)
def test_largest_error_is_that_of_cvxpy(tree, targets):
    """One table a level: V of an area as a matrix fraction, precisions as variables."""
    targets = dict(zip(tree.levels, targets, strict=False))
    nothing = rp.Domain.from_sizes({"only": 1})
    asked = rp.AreaWorkload.of_levels(
        tree,
        {
            level: rp.Workload.of(nothing, [()], targets=[target])
            for level, target in targets.items()
        },
    )
    loss = rp.MaxVariance(relative_to="target")
    plan = plan_areas(asked, loss=loss, budget=COST_1, tolerance=2e-3)

    within = incidence(tree)
    precisions = cvxpy.Variable(tree.n_areas, nonneg=True)
    gram = within.T @ cvxpy.diag(precisions) @ within
    limits = [targets[tree.levels[level]] ** 2 for level in tree.level_of]
    ratios = [
        cvxpy.matrix_frac(row, gram) / limit for row, limit in zip(within, limits, strict=True)
    ]
    problem = cvxpy.Problem(
        cvxpy.Minimize(cvxpy.max(cvxpy.hstack(ratios))), [within.T @ precisions <= 1]
    )
    best = problem.solve(solver="CLARABEL")
    assert plan.certificate.lower_bound <= best * (1 + 1e-6)
    assert best * (1 - 1e-6) <= plan.loss_value <= best * (1 + 3e-3)
    # Variances are inversely proportional to the cost: this is the smallest that meets them all.
    smallest = minimum_area_budget(asked, tolerance=2e-3)
    assert rp.verify(smallest).holds
    assert smallest.loss_value <= 1
    cost = float(smallest.budget.privacy_cost)
    assert best * (1 - 1e-6) <= cost <= best * (1 + 3e-3) * (1 + 1e-4)
    assert cost * smallest.certificate.lower_bound <= best * (1 + 1e-6)


@given(area_trees(max_rows=6), st.lists(st.floats(0.5, 3), min_size=4, max_size=4))
@settings(max_examples=10)
def test_the_same_tables_everywhere_are_planned_as_a_product(tree, scales):
    """Beside the search that does not know of it; targets of two tables in the same proportion."""
    asked = rp.AreaWorkload.of_levels(
        tree,
        {
            level: rp.Workload.of(OTHERS, [(), ("age",)], targets=[scale, 1.3 * scale])
            for level, scale in zip(tree.levels, scales, strict=False)
        },
    )

    def plan() -> AreaPlan:
        loss = rp.MaxVariance(relative_to="target")
        return plan_areas(asked, loss=loss, budget=COST_1, tolerance=2e-3)

    product = plan()
    with pytest.MonkeyPatch.context() as patch:
        factored = []
        patch.setattr(AreaMaximum, "factors", property(factored.append))
        whole = plan()
    assert factored
    assert max(product.gap, whole.gap) <= 2e-3 * (1 + 1e-6)
    assert product.certificate.lower_bound <= whole.loss_value * (1 + 1e-9)
    assert whole.certificate.lower_bound <= product.loss_value * (1 + 1e-9)


@given(area_workloads())
@settings(max_examples=15)
def test_one_precision_a_level_is_the_best_of_its_kind(asked):
    loss = rp.SumOfVariances()
    plan = plan_areas(asked, loss=loss, budget=COST_1, uniform_levels=True, tolerance=1e-5)
    free = plan_areas(asked, loss=loss, budget=COST_1, tolerance=1e-5)
    assert free.certificate.lower_bound <= plan.loss_value
    for level, row in zip(plan.groups.starts[:-1], plan.groups.starts[1:], strict=True):
        for multiples in plan.multiples[:, level:row]:
            assert len(set(multiples[multiples > 0].tolist())) <= 1
    if len(asked.tree.levels) == 1:
        assert plan.loss_value == pytest.approx(free.loss_value, rel=1e-4)


def test_budget_of_persons_and_exact_cost():
    """The exact cost is the largest sum on the way down, in rationals, whatever floats say."""
    tree = rp.AreaTree.from_columns({"region": [*"aab"], "town": ["1", "2", None]})
    asked = rp.AreaWorkload.of_levels(
        tree,
        {
            "all": rp.Workload.of(OTHERS, [("sex", "age")]),
            "town": rp.Workload.of(OTHERS, [("age",)]),
            "region": rp.Workload.of(OTHERS, [()]),
        },
    )
    budget = rp.Budget(rho="0.3", max_records_per_person=3)
    plan = plan_areas(asked, loss=rp.SumOfVariances(), budget=budget)
    factors = {(): 1, (0,): Fraction(1, 2), (1,): Fraction(2, 3), (0, 1): Fraction(1, 3)}
    costs = []
    for area in np.flatnonzero(tree.n_parts == 0).tolist():
        cost = Fraction(0)
        while area >= 0:
            for residual in range(len(plan.closure)):
                variance = plan.exact_variance(residual, int(plan.groups.of_area[area]))
                if variance is not None:
                    cost += factors[plan.closure.attributes(residual)] / variance
            area = int(tree.parents[area])
        costs.append(cost)
    assert plan.exact_record_cost == max(costs)
    assert budget.privacy_cost * (1 - Fraction(1, 10**9)) < plan.exact_privacy_cost
    assert plan.exact_privacy_cost <= budget.privacy_cost


def test_bad_requests_are_refused():
    tree = rp.AreaTree.from_columns({"region": [*"ab"]})
    ages = rp.Workload.of(OTHERS, [("age",)])
    with pytest.raises(WorkloadError, match="no level 'town'; they have all, region"):
        rp.AreaWorkload.of_levels(tree, {"town": ages})
    with pytest.raises(WorkloadError, match="No table is asked for"):
        rp.AreaWorkload.of_levels(tree, {})
    asked = rp.AreaWorkload.of_levels(tree, {"region": ages})
    with pytest.raises(PlanError, match="got PNorm"):
        plan_areas(asked, loss=rp.PNorm(p=2), budget=COST_1)
    with pytest.raises(WorkloadError, match="no target"):
        plan_areas(asked, loss=rp.MaxVariance(relative_to="target"), budget=COST_1)
    heavy = rp.AreaWorkload.of_levels(tree, {"region": replace(ages, weights=np.array([1e308]))})
    for loss in (rp.SumOfVariances(), rp.MaxVariance()):
        with pytest.raises(PlanError, match=r"1e\+308, which cannot be planned with"):
            plan_areas(heavy, loss=loss, budget=COST_1)
