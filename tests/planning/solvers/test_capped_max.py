"""The best common factor within caps: against CVXPY, and what every solution promises."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.variances import CellVariances
from rpexplore.planning.solvers.caps import CAP_ROUNDING, find_feasible, minimise_capped_max
from rpexplore.planning.solvers.largest_variance import minimise_max_cell_variance
from rpexplore.planning.solvers.solution import share_done
from tests.planning.solvers.test_max_cell_variance import all_cells, cells_of
from tests.support.capped_optimum import (
    SOLVER,
    bound_of,
    smallest_ratio,
    smallest_value,
    workloads_with_required,
)
from tests.support.oracles import variance_matrix

SLACKS = st.sampled_from([1.001, 1.01, 1.1, 2.0, 10.0, 1000.0])


def problem(workload):
    """(the caps of required targets, 1/target² of the others)."""
    caps = np.where(workload.required, workload.targets**2, np.inf)
    return caps, np.where(workload.required, 0.0, workload.targets**-2)


def solved(workload, slack, **options):
    """(solution, privacy cost): a budget that leaves this slack to the required targets."""
    cells = CellVariances(workload, Closure.of(workload))
    caps, weights = problem(workload)
    cost = find_feasible(cells, caps, 1.0, 1e-12).largest * slack
    inside = find_feasible(cells, caps, cost)
    solution = minimise_capped_max(
        cells, inside, table_weights=weights, caps=caps, privacy_cost=cost, **options
    )
    return solution, cost


def check(solution, workload, cost, gap=1e-6):
    """Caps and budget are kept, and the bound is what the dual weights prove."""
    b, p = variance_matrix(workload)
    caps, weights = problem(workload)
    variances = b @ solution.sigma_squared
    assert np.all(variances <= caps * (1 - CAP_ROUNDING / 2))
    assert np.sum(p / solution.sigma_squared) <= cost * (1 + 1e-12)
    others = ~workload.required
    assert np.sum(solution.dual_weights[others] / weights[others]) == pytest.approx(1, rel=1e-9)
    held = np.sum((solution.dual_weights * np.where(others, 0, caps))[workload.required])
    proven = bound_of(b, p, cost, solution.dual_weights) - held
    assert solution.lower_bound <= proven + 1e-12 * (held + proven)
    value = np.max(weights * variances)
    assert solution.lower_bound <= value <= solution.lower_bound * (1 + gap)
    return value


@given(workloads_with_required(all_required=False), SLACKS)
@settings(max_examples=21)
def test_it_equals_the_convex_optimum(workload, slack):
    solution, cost = solved(workload, slack)
    value = check(solution, workload, cost)
    b, p = variance_matrix(workload)
    caps, weights = problem(workload)
    none = np.zeros(len(workload))
    optimum = smallest_value(
        b, p, cost, unit=solution.sigma_squared, of_sum=none, of_max=weights, caps=caps
    )
    assert solution.lower_bound <= optimum * (1 + SOLVER)
    assert value == pytest.approx(optimum, rel=1e-6 + SOLVER)


@given(workloads_with_required(powers=6.0, all_required=False), SLACKS)
@settings(max_examples=21)
def test_targets_of_very_different_size(workload, slack):
    solution, cost = solved(workload, slack)
    check(solution, workload, cost)


@pytest.mark.by_day(1)
@pytest.mark.parametrize("room", [1e-8, 1e-6, 1e-4])
@given(workload=workloads_with_required(all_required=False))
@settings(max_examples=15)
def test_budgets_that_are_just_enough(room, workload):
    """The room that rounding needs is then a part of all the room there is."""
    solution, cost = solved(workload, 1 + room)
    check(solution, workload, cost, gap=1e-6 + 3 * CAP_ROUNDING / room)


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-8])
def test_the_gap_is_within_the_tolerance(tolerance):
    workload = rp.Workload.all_up_to(rp.Domain.from_sizes({"a": 4, "b": 7, "c": 3, "d": 5}), 3)
    rng = np.random.default_rng(2)
    workload = rp.Workload(
        workload.domain,
        workload.members,
        workload.weights,
        rng.uniform(1, 5, len(workload)),
        required=rng.uniform(size=len(workload)) < 0.4,
    )
    solution, cost = solved(workload, 1.1, tolerance=tolerance)
    check(solution, workload, cost, gap=tolerance)


def test_caps_that_are_not_in_the_way_change_nothing():
    workload = rp.Workload.of(
        rp.Domain.from_sizes({"a": 4, "b": 7}),
        ["a", "b", ("a", "b")],
        targets=[1, 2, 1e9],
        required=[False, False, True],
    )
    cells = CellVariances(workload, Closure.of(workload))
    caps, weights = problem(workload)
    inside = find_feasible(cells, caps, 1.0)
    solution = minimise_capped_max(
        cells, inside, table_weights=weights, caps=caps, privacy_cost=1.0
    )
    alone = minimise_max_cell_variance(cells, np.where(weights > 0, weights, 1e-18), 1.0)
    assert solution.lower_bound == pytest.approx(alone.lower_bound, rel=2e-6)
    assert solution.dual_weights is not None
    assert solution.dual_weights[2] * caps[2] <= 1e-6 * solution.lower_bound


@pytest.mark.parametrize("slack", [1.01, 1.3, 4.0])
@pytest.mark.parametrize("seed", range(4))
def test_where_cells_differ_the_least_accurate_one_counts(seed, slack):
    cells = cells_of([5, 4, 3], [rp.Prefix(), rp.Ranges(), rp.Identity()], seed, 2)
    tables, b = all_cells(cells)
    rng = np.random.default_rng(seed)
    count, p = len(cells.workload), cells.closure.privacy_cost_factor
    required = rng.uniform(size=count) < 0.6
    required[:2] = True, False
    targets = rng.uniform(0.5, 5, count)
    caps, weights = np.where(required, targets, np.inf), np.where(required, 0, 1 / targets)
    cost = smallest_ratio(b, p, caps[tables]) * slack
    inside = find_feasible(cells, caps, cost)
    solution = minimise_capped_max(
        cells, inside, table_weights=weights, caps=caps, privacy_cost=cost
    )
    assert np.all(b @ solution.sigma_squared <= caps[tables])
    assert np.sum(p / solution.sigma_squared) <= cost * (1 + 1e-12)
    value = np.max(weights[tables] * (b @ solution.sigma_squared))
    assert solution.lower_bound <= value <= solution.lower_bound * (1 + 1e-6)
    optimum = smallest_value(
        b,
        p,
        cost,
        unit=solution.sigma_squared,
        of_sum=np.zeros(len(tables)),
        of_max=weights[tables],
        caps=caps[tables],
    )
    assert solution.lower_bound <= optimum * (1 + SOLVER)
    assert value == pytest.approx(optimum, rel=1e-6 + SOLVER)
    # What the cells say of each table, with its dual weight, proves the bound.
    assert solution.cells is not None
    assert solution.dual_weights is not None
    of_tables = np.bincount(solution.cells.tables, solution.cells.prices, count)
    at = solution.cells.tables
    v = cells.map(at, solution.cells.rows).residual_weights(
        solution.cells.prices / of_tables[at] * solution.dual_weights[at]
    )
    held = np.sum(solution.dual_weights[required] * caps[required])
    assert np.sum(np.sqrt(v * p)) ** 2 / cost - held == pytest.approx(
        solution.lower_bound, rel=1e-7
    )


def test_progress_is_reported_and_may_end_the_search():
    class Stop(Exception):
        pass

    workload = rp.Workload.of(
        rp.Domain.from_sizes({"a": 4, "b": 7, "c": 3}),
        ["a", "b", ("a", "b"), ("b", "c")],
        targets=[1, 2, 3, 4],
        required=[False, False, True, True],
    )
    shares = []
    solved(workload, 1.1, on_progress=lambda _, share: shares.append(share))
    assert shares == sorted(shares)
    assert shares[-1] >= share_done(1e-6) > shares[0]

    def stop(doing, share):
        if len(shares) == 2:
            raise Stop
        shares.append(share)

    shares.clear()
    with pytest.raises(Stop):
        solved(workload, 1.1, on_progress=stop)
