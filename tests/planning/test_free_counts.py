"""Free counts: no record costs more for them, exactly, and the other counts stay as they are."""

import json
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.errors import PlanError, WorkloadError
from rpexplore.planning.counts import QueryPlan
from rpexplore.planning.counts_planner import query_optimum
from rpexplore.planning.counts_strategy import without
from rpexplore.releases.noise.discrete_gaussian import discrete_gaussian
from tests.support.plan_schemas import is_valid
from tests.support.plan_texts import flat, laid_out
from tests.support.query_lists import query_list, query_plan, ranges

BUDGET = rp.Budget(rho="1/2")


def exact_costs(plan):
    """Privacy cost of a record of each cell, in rationals."""
    squares = (plan.strategy.integers.astype(object) ** 2).sum(axis=0)
    return [Fraction(square) / plan.gamma_squared for square in squares.tolist()]


def largest_ratio_by_cvxpy(known, room, queries, targets):
    """The least largest ratio if cells have this room beside what is known of them (a Gram)."""
    added = cp.Variable((len(room), len(room)), PSD=True)
    ratios = [
        cp.matrix_frac(row / target, known + added)
        for row, target in zip(queries, targets, strict=True)
    ]
    problem = cp.Problem(cp.Minimize(cp.max(cp.hstack(ratios))), [cp.diag(added) <= room])
    problem.solve(solver=cp.CLARABEL)
    return float(problem.value)


@st.composite
def lists_with_free_counts(draw):
    """Random counts about some cells, and free ones about cells that they leave alone or share."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, first, second = draw(st.integers(3, 9)), draw(st.integers(1, 4)), draw(st.integers(1, 4))
    half = n // 2
    charged = np.hstack([ranges(half, first, rng), np.zeros((first, n - half))])
    charged[:, half] = rng.integers(0, 2, first) * (n - half > 1)
    free = np.hstack([np.zeros((second, half + 1)), ranges(n - half, second, rng)[:, 1:]])
    free[~free.any(axis=1), -1] = 1
    free += charged[rng.integers(0, first, second)] * rng.integers(0, 2, (second, 1))
    targets = 10 ** rng.uniform(-1, 1, first + second)
    queries = query_list(np.vstack([charged, free]), targets)
    return queries, queries.names[first:]


@given(lists_with_free_counts(), st.sampled_from(["largest", "sum"]))
@settings(deadline=None, max_examples=40)
def test_no_record_costs_more_than_is_booked(case, objective):
    queries, free = case
    alone = query_plan(
        without(queries, range(len(queries) - len(free), len(queries))),
        budget=BUDGET,
        objective=objective,
    )
    plan = query_plan(queries, budget=BUDGET, objective=objective, free=free)
    assert plan.free_counts == free
    costs = exact_costs(plan)
    assert max(costs) == plan.exact_privacy_cost == alone.exact_privacy_cost
    assert all(cost >= before for cost, before in zip(costs, exact_costs(alone), strict=True))
    charged = plan.strategy.is_charged
    assert np.all(plan.variances[charged] <= alone.variances * (1 + 1e-9))
    gram = plan.strategy.integers.T.astype(float) @ plan.strategy.integers
    dense = np.diag(
        queries.coefficients @ np.linalg.pinv(gram, rcond=1e-14) @ queries.coefficients.T
    )
    np.testing.assert_allclose(plan.variances, dense * float(plan.gamma_squared), rtol=1e-5)
    again = QueryPlan.parse(plan.text)
    assert again.text == plan.text
    verification = rp.verify(again)
    assert verification.holds, str(verification)
    assert "free counts" in [check.name for check in verification.checks]


def test_what_is_left_is_used_as_well_as_can_be():
    """Of adults all budget is in use, of children a third: the rest measures what is free."""
    rows = np.zeros((5, 8))
    rows[0, :4] = rows[1, 4:] = 1
    rows[2, 4:6] = rows[3, 5:7] = rows[4, 7] = 1
    queries = query_list(rows, [1.0, np.sqrt(3), 2, 2, 3])
    plan = query_plan(queries, budget=BUDGET, free=queries.names[2:])
    # Only the number of children tells of them.
    first = plan.strategy.charged.integers[:, 4:] / np.sqrt(float(plan.gamma_squared))
    assert np.linalg.matrix_rank(first) == 1
    room = 1 - np.sum(first**2, axis=0)
    assert room == pytest.approx([2 / 3] * 4, abs=0.03)
    best, alone = (
        largest_ratio_by_cvxpy(known, room, rows[2:, 4:], queries.targets[2:])
        for known in (first.T @ first, np.zeros((4, 4)))
    )
    assert np.max(plan.variance_ratios[2:]) == pytest.approx(best, rel=2e-3)
    assert best < 0.8 * alone


def test_budget_of_cells_that_nobody_asks_for_gives_the_best_free_counts():
    """Cells that the list leaves alone have the whole budget: as good as a plan of their own."""
    rng = np.random.default_rng(1)
    second = ranges(6, 8, rng)
    rows = np.vstack([np.eye(4, 10), np.hstack([np.zeros((8, 4)), second])])
    targets = np.concatenate([np.ones(4), rng.uniform(1, 3, 8)])
    queries = query_list(rows, targets)
    plan = query_plan(queries, budget=BUDGET, free=queries.names[4:])
    best = query_optimum(query_list(second, targets[4:]))
    assert np.max(plan.variance_ratios[4:]) == pytest.approx(best.lower_bound, rel=2e-3)


def test_a_count_that_follows_from_the_others_is_measured_by_no_further_number():
    queries = query_list([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]], [1.0, 1, 1, 1])
    plan = query_plan(queries, budget=BUDGET, free=[queries.names[3]])
    assert plan.strategy.free_rows == 0
    assert plan.variances[3] == pytest.approx(plan.variances[0] + plan.variances[1], rel=1e-12)
    assert rp.verify(plan).holds


def test_released_free_counts_spread_as_the_plan_says():
    queries = query_list([[1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 0], [1, 1, 1, 0]], [1.0, 2, 1, 1])
    plan = query_plan(queries, budget=rp.Budget(rho=2), free=queries.names[2:])
    counts, draws, k = np.array([5, 0, 12, 7]), 4_000, len(plan.strategy.integers)
    noise = discrete_gaussian(draws * k, plan.gamma_squared).reshape(draws, k)
    answers = (plan.strategy.integers @ counts + noise) @ plan.strategy.decoding.T
    errors = answers - queries.coefficients @ counts
    assert np.all(np.abs(errors.mean(axis=0)) < 5 * plan.standard_errors / np.sqrt(draws))
    off = np.log(errors.std(axis=0) / plan.standard_errors)
    assert np.all(np.abs(off) < 5 / np.sqrt(2 * draws))


@pytest.fixture(scope="module")
def plan():
    queries = query_list([[1, 0, 0], [0, 1, 1], [0, 1, 0]], [1.0, 2, 1])
    return query_plan(queries, budget=BUDGET, free=[queries.names[2]])


@pytest.mark.parametrize(
    ("change", "failed"),
    [
        # One more for a record of the first cell: not within what is left.
        (lambda content: content["strategy"][-1].__setitem__(0, 3), {"free counts"}),
        (lambda content: content["free"].update(rows=len(content["strategy"])), None),
        (lambda content: content["free"].update(counts=[]), None),
        (lambda content: content["free"].update(counts=[3]), None),
        (lambda content: content["free"].update(counts=[0, 1, 2]), None),
        (lambda content: content["free"].update(counts=[True]), None),
        (lambda content: content["free"].update(counts=[-1]), None),
        (lambda content: content["free"].update(counts=[2, 1]), None),
        (lambda content: content.pop("free"), {"optimality"}),
    ],
)
def test_a_file_that_charges_for_free_counts_is_not_believed(plan, change, failed):
    content = flat(json.loads(plan.text))
    assert is_valid(content)
    change(content)
    if failed is None:
        with pytest.raises(PlanError):
            QueryPlan.parse(laid_out(content), canonical=False)
    else:
        checks = rp.verify(QueryPlan.parse(laid_out(content), canonical=False)).checks
        assert failed <= {check.name for check in checks if not check.holds}


@pytest.mark.parametrize(
    ("rows", "free", "error", "message"),
    [
        ([[1, 0], [0, 1]], ["nobody"], WorkloadError, "no own count 'nobody'"),
        ([[1, 0], [0, 1]], ["query 1", "query 2"], WorkloadError, "leave one out"),
        ([[1, 1], [1, 0]], ["query 2"], PlanError, "'query 2' cannot be free: records in"),
    ],
)
def test_refusals(rows, free, error, message):
    with pytest.raises(error, match=message):
        query_plan(query_list(rows), budget=BUDGET, free=free)
