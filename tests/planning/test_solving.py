"""Plans with hard targets: exact to the last digit of their noise scales, and proven."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.errors import OutOfReachError
from rpexplore.planning.mechanism.accounting import ExactVariances
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.variances import CellVariances
from rpexplore.planning.minimum_budget import minimum_budget
from rpexplore.planning.planner import optimum, plan_tables
from rpexplore.planning.solvers.solution import TOLERANCE, share_done
from rpexplore.planning.table_plan import TablePlan
from tests.support.capped_optimum import (
    SOLVER,
    least_record_cost,
    smallest_value,
    workloads_with_required,
)
from tests.support.generalised import all_variances, any_strategies, workloads_with_bases
from tests.support.oracles import variance_matrix

AVERAGE, FACTOR = rp.SumWithinTargets("cells"), rp.MaxWithinTargets()
SLACKS = st.sampled_from([1e-4, 0.01, 0.1, 1.0, 10.0])
WEIGHTINGS = st.sampled_from(["equal", "cells", "sqrt"])


def losses() -> st.SearchStrategy:
    return (
        st.builds(rp.SumWithinTargets, WEIGHTINGS)
        | st.just(FACTOR)
        | st.builds(rp.SumWithBoundedMax, WEIGHTINGS, SLACKS)
    )


def caps_of(plan: TablePlan) -> np.ndarray:
    if isinstance(plan.loss, rp.SumWithBoundedMax):
        assert plan.certificate.limit is not None
        return plan.certificate.limit / plan.workload.weights
    return np.where(plan.workload.required, plan.workload.targets**2, np.inf)


def budget_of(cost: float, persons: int | None = None) -> rp.Budget:
    factor = (persons or 1) ** 2
    return rp.Budget(privacy_cost=repr(float(cost * factor)), max_records_per_person=persons)


@given(
    workloads_with_required(powers=2.0),
    losses(),
    st.sampled_from([1.01, 1.1, 3.0, 100.0]),
    st.sampled_from([None, 3]),
)
@settings(max_examples=28)
def test_what_every_plan_promises(workload, loss, slack, persons):
    cost = minimum_budget(workload, required_only=True).record_privacy_cost * slack
    plan = plan_tables(workload, loss=loss, budget=budget_of(cost, persons))
    assert plan.exact_privacy_cost <= plan.budget.privacy_cost
    caps = caps_of(plan)
    exact = ExactVariances.of(plan.closure, plan.sigma_squared)
    for table in np.flatnonzero(np.isfinite(caps)).tolist():
        assert exact.fraction(table) <= Fraction(caps[table])
    if not isinstance(loss, rp.SumWithBoundedMax):
        assert np.all((plan.standard_errors <= workload.targets)[workload.required])
    certificate = plan.certificate
    assert certificate.lower_bound <= plan.loss_value
    assert certificate.gap <= 1e-6
    assert plan.loss_value == pytest.approx(loss.value(plan.mean_variances, workload), rel=1e-14)
    assert np.sum(certificate.shadow_prices) == pytest.approx(1, rel=1e-12)
    assert np.all(certificate.shadow_prices >= 0)
    b, p = variance_matrix(workload)
    counted = loss.table_weights(workload)
    none = np.zeros(len(workload))
    best = smallest_value(
        b,
        p,
        float(plan.budget.record_privacy_cost),
        unit=plan.sigma_squared.floats,
        of_sum=none if loss == FACTOR else counted,
        of_max=counted if loss == FACTOR else none,
        caps=caps,
    )
    assert certificate.lower_bound <= best * (1 + SOLVER)
    assert plan.loss_value == pytest.approx(best, rel=1e-6 + SOLVER)
    for held in (plan, TablePlan.parse(plan.text)):
        assert rp.verify(held).holds, str(rp.verify(held))


@given(workloads_with_required(powers=6.0), losses(), st.sampled_from([1 + 1e-6, 1.001, 30.0]))
@settings(max_examples=14)
def test_verified_however_different_the_targets_are(workload, loss, slack):
    cost = minimum_budget(workload, required_only=True, tolerance=1e-9).record_privacy_cost * slack
    plan = plan_tables(workload, loss=loss, budget=budget_of(cost))
    assert plan.certificate.gap <= (1e-6 if slack > 1.0001 else 1e-4)
    caps = caps_of(plan)
    assert np.all((plan.mean_variances <= caps)[np.isfinite(caps)])
    verification = rp.verify(TablePlan.parse(plan.text))
    assert verification.holds, str(verification)


# ---- out of reach


@given(workloads_with_required(powers=2.0), st.sampled_from([0.999, 0.5, 1e-3]))
@settings(max_examples=10)
def test_what_budget_would_do(workload, share):
    needed = least_record_cost(workload)
    for loss in (AVERAGE, FACTOR):
        with pytest.raises(OutOfReachError) as refused:
            plan_tables(workload, loss=loss, budget=budget_of(needed * share))
        assert refused.value.needed == pytest.approx(1 / share, rel=1e-6)
        enough = needed * share * refused.value.needed * (1 + 1e-6)
        plan = plan_tables(workload, loss=loss, budget=budget_of(enough))
        assert np.all((plan.standard_errors <= workload.targets)[workload.required])


def test_the_smallest_budget_is_told_from_the_largest_that_is_not_enough():
    workload = rp.Workload.of(
        rp.Domain.from_sizes({"a": 4, "b": 9}),
        ["a", "b", ("a", "b")],
        targets=[2, 3, 5],
        required=[True, True, False],
    )
    needed = minimum_budget(workload, required_only=True, tolerance=1e-10).record_privacy_cost
    for loss in (AVERAGE, FACTOR):
        for share in (1 - 1e-8, 1 - 1e-7):
            with pytest.raises(OutOfReachError) as refused:
                plan_tables(workload, loss=loss, budget=budget_of(needed * share))
            assert refused.value.needed == pytest.approx(1 / share, rel=1e-9)
        plan_tables(workload, loss=loss, budget=budget_of(needed * (1 + 1e-8)))


def test_the_binding_tables_are_named():
    domain = rp.Domain.from_sizes({"a": 4, "b": 9, "c": 3, "d": 2, "e": 5})
    alone = rp.Workload.of(domain, ["a", "b"], targets=[0.1, 100], required=[True, False])
    with pytest.raises(OutOfReachError) as refused:
        plan_tables(alone, loss=AVERAGE, budget=rp.Budget(rho=0.5))
    message = str(refused.value)
    assert "the binding ones are those of (a). Use" in message
    assert "times the budget and a little more" in message
    figure = float(message.split("Use ")[1].split(" times")[0].replace(",", ""))
    assert refused.value.needed <= figure <= refused.value.needed * 1.001
    # Of five that conflict three are named, the one with the most influence first; one that is
    # met by far is not.
    several = rp.Workload.of(
        domain,
        ["a", "b", "c", "d", "e", ()],
        targets=[0.4, 0.3, 0.6, 0.7, 0.5, 1e6],
        required=[True] * 6,
    )
    with pytest.raises(OutOfReachError) as refused:
        plan_tables(several, loss=AVERAGE, budget=rp.Budget(rho=0.5))
    assert "are those of (b), " in str(refused.value)
    assert "and 2 more. Use" in str(refused.value)
    assert "total" not in str(refused.value)


# ---- a bounded average


@given(workloads_with_required(powers=2.0), WEIGHTINGS, SLACKS)
@settings(max_examples=10)
def test_the_largest_error_is_bounded(workload, weighting, slack):
    budget = rp.Budget(rho="0.3")
    plan = plan_tables(workload, loss=rp.SumWithBoundedMax(weighting, slack), budget=budget)
    smallest = plan_tables(workload, loss=rp.MaxVariance(), budget=budget)
    limit = plan.certificate.limit
    assert limit is not None
    assert np.max(workload.weights * plan.mean_variances) <= limit
    assert limit == pytest.approx(smallest.loss_value * (1 + slack) ** 2, rel=2e-6)
    assert limit >= smallest.certificate.lower_bound * (1 + slack) ** 2


@given(workloads_with_required(powers=1.0), WEIGHTINGS)
@settings(max_examples=10)
def test_at_its_ends_it_is_a_largest_variance_and_a_sum(workload, weighting):
    budget = rp.Budget(rho="0.3")
    average = plan_tables(workload, loss=rp.SumOfVariances(weighting), budget=budget)
    far = plan_tables(workload, loss=rp.SumWithBoundedMax(weighting, 1e6), budget=budget)
    assert far.loss_value == pytest.approx(average.loss_value, rel=1e-6)
    np.testing.assert_allclose(far.mean_variances, average.mean_variances, rtol=1e-3)
    smallest = plan_tables(workload, loss=rp.MaxVariance(), budget=budget)
    near = plan_tables(workload, loss=rp.SumWithBoundedMax(weighting, 1e-6), budget=budget)
    largest = np.max(workload.weights * near.mean_variances)
    assert largest == pytest.approx(smallest.loss_value, rel=4e-6)
    # Of the plans with the smallest largest variance it is the best on average.
    counted = near.loss.table_weights(workload)
    assert near.loss_value <= np.sum(counted * smallest.mean_variances) * (1 + 1e-6)


def test_the_bound_costs_less_the_wider_it_is():
    workload = rp.Workload.all_up_to(rp.Domain.from_sizes({"a": 9, "b": 3, "c": 20}), 2)
    values = [
        plan_tables(
            workload, loss=rp.SumWithBoundedMax("equal", item), budget=rp.Budget(rho=1)
        ).loss_value
        for item in (1e-6, 0.01, 0.1, 1.0)
    ]
    assert all(wider <= value * (1 + 1e-6) for value, wider in pairwise(values))
    assert values[1] < values[0] * 0.998
    assert values[-1] < values[1] * 0.995


def test_one_bounded_average_serves_all_budgets():
    workload = rp.Workload.all_up_to(rp.Domain.from_sizes({"a": 9, "b": 3, "c": 20}), 2)
    loss = rp.SumWithBoundedMax("cells", 0.05)
    solution = optimum(workload, loss=loss)
    for rho in ("0.001", "7"):
        plan = solution.at(rp.Budget(rho=rho))
        assert plan.text == plan_tables(workload, loss=loss, budget=rp.Budget(rho=rho)).text
        assert np.max(workload.weights * plan.mean_variances) <= plan.certificate.limit
        assert rp.verify(plan).holds


# ---- attributes in other bases than single values


def with_required(workload: rp.Workload, seed: int) -> rp.Workload:
    rng = np.random.default_rng(seed)
    count = len(workload)
    required = rng.uniform(size=count) < 0.5
    required[rng.integers(count)] = True
    return replace(workload, targets=10 ** rng.uniform(-1, 1, count), required=required)


@given(
    workloads_with_bases(max_attributes=3, max_cells=40),
    losses(),
    st.sampled_from([1.01, 1.5, 20.0]),
    st.integers(0, 1000),
)
@settings(max_examples=8)
def test_with_fixed_strategies_it_equals_the_optimum_over_all_cells(workload, loss, slack, seed):
    workload = with_required(workload, seed)
    strategies = any_strategies(workload, seed)
    closure = Closure.of(workload).with_strategies(workload, strategies)
    cost = minimum_budget(workload, required_only=True, closure=closure).record_privacy_cost * slack
    plan = optimum(workload, loss=loss, budget=budget_of(cost), strategies=strategies).at(
        budget_of(cost)
    )
    # Dense: the variance of each cell is linear in the noise scales.
    start = plan.sigma_squared.floats
    of_cells = [item.ravel() for item in all_variances(workload, closure, start)]
    caps = caps_of(plan)
    for table, variances in enumerate(of_cells):
        assert np.max(variances) <= caps[table] * (1 + 1e-7)
        shown = np.max(plan.cell_standard_errors(workload.tables[table]))
        assert shown == pytest.approx(np.sqrt(np.max(variances)), rel=1e-6)
        assert shown**2 <= caps[table] * (1 + 1e-12)
    assert plan.certificate.gap <= 1e-6
    cells, tables = (
        CellVariances(workload, closure),
        np.repeat(np.arange(len(workload)), [len(item) for item in of_cells]),
    )
    units = np.eye(len(closure))
    b = np.concatenate(
        [
            np.column_stack([cells.variances_of(table, unit).ravel() for unit in units])
            for table in range(len(workload))
        ]
    )
    np.testing.assert_allclose(b @ start, np.concatenate(of_cells), rtol=1e-6)
    counted, none = loss.table_weights(workload)[tables], np.zeros(len(tables))
    best = smallest_value(
        b,
        closure.privacy_cost_factor,
        cost,
        unit=start,
        of_sum=none if loss == FACTOR else counted / np.bincount(tables)[tables],
        of_max=counted if loss == FACTOR else none,
        caps=caps[tables],
    )
    assert plan.certificate.lower_bound <= best * (1 + SOLVER)
    assert plan.loss_value == pytest.approx(best, rel=1e-6 + SOLVER)
    verification = rp.verify(TablePlan.parse(plan.text))
    assert verification.holds, str(verification)


def make_asked(seed: int = 0) -> rp.Workload:
    domain = rp.Domain.from_sizes({"a": 8, "b": 6, "c": 5, "d": 2})
    workload = rp.Workload.all_up_to(domain, 2).with_bases({"a": rp.Prefix(), "b": rp.Ranges()})
    return with_required(workload, seed)


@pytest.mark.by_day(1)
@pytest.mark.parametrize("loss", [AVERAGE, FACTOR], ids=["average", "factor"])
def test_what_can_be_reached_is_planned_whatever_strategies_suit_the_loss(loss):
    """Strategies that are good on average may leave targets out of reach that others meet."""
    workload = make_asked()
    needed = minimum_budget(workload, required_only=True).record_privacy_cost
    plan = plan_tables(workload, loss=loss, budget=budget_of(needed * 1.0001))
    assert np.all((plan.largest_standard_errors <= workload.targets)[workload.required])
    assert rp.verify(plan).holds
    with pytest.raises(OutOfReachError) as refused:
        plan_tables(workload, loss=loss, budget=budget_of(needed * 0.8))
    assert refused.value.needed == pytest.approx(1.25, rel=2e-6)


@pytest.mark.by_day(1)
@pytest.mark.parametrize(
    "loss",
    [AVERAGE, FACTOR, rp.SumWithBoundedMax("equal", 0.05)],
    ids=["average", "factor", "bounded"],
)
def test_strategies_are_looked_for_again_with_the_prices_that_came_out(loss, monkeypatch):
    workload = make_asked(3)
    budget = budget_of(minimum_budget(workload, required_only=True).record_privacy_cost * 1.2)
    plan = plan_tables(workload, loss=loss, budget=budget)
    monkeypatch.setattr(
        "rpexplore.planning.solving._improved",
        lambda problem, solution, **_: (problem.closure, solution),
    )
    first = plan_tables(workload, loss=loss, budget=budget)
    assert plan.loss_value < first.loss_value * 0.998
    limits = [item.certificate.limit or 0.0 for item in (plan, first)]
    assert limits[0] <= limits[1]


@pytest.mark.parametrize("loss", [AVERAGE, FACTOR, rp.SumWithBoundedMax()], ids=repr)
def test_progress_goes_on_to_the_tolerance(loss):
    workload = with_required(
        rp.Workload.all_up_to(rp.Domain.from_sizes({f"a{i}": i + 2 for i in range(5)}), 3), 0
    )
    budget = budget_of(minimum_budget(workload, required_only=True).record_privacy_cost * 1.1)
    shares = []
    optimum(workload, loss=loss, budget=budget, on_progress=lambda _, share: shares.append(share))
    assert shares[-1] >= share_done(1e-6)
    coarse = plan_tables(workload, loss=loss, budget=budget, tolerance=1e-3)
    assert TOLERANCE < coarse.certificate.gap <= 1e-3
    assert rp.verify(coarse).holds
