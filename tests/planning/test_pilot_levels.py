"""Pilots of tables with attributes at several levels: by dense matrices and a conic program."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial

import cvxpy as cp
import numpy as np
import pytest

import rpexplore as rp
from rpexplore.errors import PlanError
from rpexplore.planning.mechanism.variances import CellVariances
from rpexplore.planning.pilot import (
    pilot_plan,
    pilot_scales,
    rest_scales,
    share_of_pilot,
    with_pilot,
)
from rpexplore.planning.planner import optimum
from rpexplore.planning.rest import on_top_of_pilot
from rpexplore.planning.table_plan import TablePlan
from tests.planning.test_levels import crossing, measured_matrix, nightly, random_family
from tests.support.explicit_optimum import dense_queries

four, nine = (partial(random_family, number) for number in (4, 9))
Make = Callable[[], rp.Workload]
ADDED, REPLACED = rp.Budget(rho="1/2"), rp.Budget(rho="1/2", neighbours="replace")


@cache
def first_plan(make: Make, budget: rp.Budget = ADDED) -> rp.Plan:
    then = rp.RestObjective()
    return rp.plan(rp.Request(tables=make(), budget=budget, pilot="30%", then=then))


def best_for(first: rp.Plan, weights: np.ndarray) -> TablePlan:
    """The best plan without a pilot for other weights, measured by the matrices of the first."""
    tables = first.part("tables")
    workload, strategies = replace(tables.workload, weights=weights), tables.closure.strategies
    loss, budget = rp.SumOfVariances(), tables.budget
    return optimum(workload, loss=loss, budget=budget, strategies=strategies).at(budget)


def weights_of(first: rp.Plan) -> np.ndarray:
    rng = np.random.default_rng(5)
    return np.exp(2 * rng.standard_normal(len(first.part("tables").workload)))


@pytest.mark.parametrize("make", [nine, nightly(crossing, id="crossing"), nightly(four, id="four")])
@pytest.mark.parametrize("is_planned_anew", [False, True])
def test_variances_are_those_of_least_squares_and_no_record_costs_more(make, is_planned_anew):
    """All that is measured as dense rows over the cells of the domain: q (Σ M'M/γ²)⁺ q'."""
    plan = first_plan(make)
    if is_planned_anew:
        plan = on_top_of_pilot(plan, best_for(plan, weights_of(plan)), 64 * "0")
    tables = plan.part("tables")
    closure, pilot, rest = tables.closure, pilot_scales(tables).floats, rest_scales(tables).floats
    assert closure.trees
    information, costs = 0.0, np.zeros((2, int(np.prod(tables.domain.of_records.sizes))))
    for residual in range(len(closure)):
        rows = measured_matrix(tables, residual)
        rows /= float(closure.integer_scale(residual))
        precisions = [1 / rest[residual], *(1 / pilot[residual : residual + 1])]
        information = information + sum(precisions) * rows.T @ rows
        for number, precision in enumerate(precisions):
            costs[number] += precision * np.sum(rows**2, axis=0)
    inverse = np.linalg.pinv(information, rcond=1e-12, hermitian=True)
    queries, of_tables = dense_queries(tables.workload)
    for table in range(len(tables.workload)):
        own = queries[of_tables == table]
        stated = CellVariances(tables.workload, closure)
        stated = stated.variances_of(table, tables.sigma_squared.floats)
        assert np.allclose(np.sum(own @ inverse * own, axis=1), stated.ravel(), rtol=1e-7)
    booked = first_plan(make).part("tables").exact_privacy_cost
    assert np.max(costs.sum(axis=0)) <= float(booked) * (1 + 1e-12)
    assert np.max(costs[1]) <= 0.3 * float(booked)  # the pilot


@pytest.mark.parametrize("make", [crossing, four, nine])
def test_a_pilot_measures_the_first_residuals_of_the_plan_by_its_matrices(make):
    first = first_plan(make)
    tables = first.part("tables")
    pilot = pilot_plan(tables, first.sha256)
    n, own = len(pilot.closure), pilot.closure
    assert own.members.shape[1] == 1
    assert np.array_equal(own.members[:, 0], tables.closure.members[:n, 0])
    assert np.array_equal(own.sizes, tables.closure.sizes)
    assert own.strategies.keys() == tables.closure.strategies.keys()
    for number, strategy in own.strategies.items():
        assert np.array_equal(strategy.integers, tables.closure.strategies[number].integers)
    assert float(pilot.rho / first.rho) == pytest.approx(float(tables.pilot_share), rel=1e-9)
    assert 0.299 < float(tables.pilot_share) <= 0.3
    assert rp.verify(pilot.alone).holds
    assert rp.verify(first).holds
    assert rp.Plan.parse(first.text).sha256 == first.sha256
    share = share_of_pilot(tables)
    assert share is not None
    again = with_pilot(first, share, then=tables.then)
    assert again.part("tables").pilot == tables.pilot


@pytest.mark.parametrize("budget", [ADDED, REPLACED], ids=str)
@pytest.mark.parametrize("make", [crossing, nightly(four, id="four"), nightly(nine, id="nine")])
def test_the_rest_is_the_best_of_all_that_have_measured_the_pilot(make, budget):
    first = first_plan(make, budget)
    best = best_for(first, weights_of(first))
    made = on_top_of_pilot(first, best, 64 * "0")
    tables, closure = made.part("tables"), best.closure
    assert rp.verify(made).holds
    assert first.rho * (1 - 1e-7) < made.rho <= first.rho
    floor = 1000 / 999 / pilot_scales(first.part("tables")).floats
    unit = 1 / best.sigma_squared.floats  # in which precisions are near 1, as solvers want them
    precision = cp.Variable(len(unit), pos=True)
    assert closure.classes is not None
    costs = closure.classes.toarray() * closure.full_cost_factor * unit
    weights = closure.residual_weights(best.loss.table_weights(best.workload)) / unit
    limit = float(tables.budget.record_privacy_cost)
    smallest = cp.Problem(
        cp.Minimize(weights / weights.sum() @ cp.inv_pos(precision)),
        [precision[: len(floor)] >= floor / unit[: len(floor)], costs @ precision <= limit],
    ).solve(solver=cp.CLARABEL)
    # Where the total is kept, the program buys it more precision for nothing.
    accuracy = 1e-6 if budget is ADDED else 1e-4
    assert tables.certificate.loss_value == pytest.approx(smallest * weights.sum(), rel=accuracy)
    assert tables.certificate.loss_value > tables.certificate.lower_bound * (1 + 1e-10)


def test_a_rest_by_other_matrices_than_those_of_the_pilot_is_refused():
    first = first_plan(crossing)
    tables = first.part("tables")
    workload = replace(tables.workload, weights=weights_of(first))
    searched = rp.plan(workload, loss=rp.SumOfVariances(), budget=tables.budget).part("tables")
    with pytest.raises(PlanError, match="must measure attributes at several levels as the first"):
        on_top_of_pilot(first, searched, 64 * "0")
