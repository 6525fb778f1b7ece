"""Weighted sums within caps: against CVXPY, and what every solution promises."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.variances import CellVariances
from rpexplore.planning.minimum_budget import minimum_budget
from rpexplore.planning.solvers.acceleration import central_cap_prices
from rpexplore.planning.solvers.caps import CAP_ROUNDING, find_feasible, minimise_capped, with_room
from rpexplore.planning.solvers.solution import best_response, share_done
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


def solved(workload, slack, weights=None, **options):
    """(solution, caps, weights, privacy cost): a budget that leaves this slack to the required
    targets."""
    solution, _, caps, weights, cost = solved_from(workload, slack, weights, **options)
    return solution, caps, weights, cost


def solved_from(workload, slack, weights=None, **options):
    """With the plan inside the caps that it was found from."""
    cells = CellVariances(workload, Closure.of(workload))
    caps = np.where(workload.required, workload.targets**2, np.inf)
    weights = workload.weights if weights is None else weights
    cost = find_feasible(cells, caps, 1.0, 1e-12).largest * slack
    inside = find_feasible(cells, caps, cost)
    solution = minimise_capped(
        cells, inside, table_weights=weights, caps=caps, privacy_cost=cost, **options
    )
    return solution, inside, caps, weights, cost


def check(solution, workload, caps, weights, cost, gap=1e-6):
    """Caps and budget are kept, and the bound is what the dual weights prove."""
    b, p = variance_matrix(workload)
    variances = b @ solution.sigma_squared
    assert np.all(variances <= caps * (1 - CAP_ROUNDING / 2))
    assert np.sum(p / solution.sigma_squared) <= cost * (1 + 1e-12)
    assert np.all(solution.dual_weights >= weights)
    assert np.all(solution.dual_weights[np.isinf(caps)] == weights[np.isinf(caps)])
    prices = solution.dual_weights - weights
    held = np.sum(prices[prices > 0] * caps[prices > 0])
    proven = bound_of(b, p, cost, solution.dual_weights) - held
    # Weights far above the prices hide some of their digits, which verification allows for.
    assert solution.lower_bound <= proven + 1e-9 * held + 1e-12 * proven
    value = weights @ variances
    assert solution.lower_bound <= value <= solution.lower_bound * (1 + gap)
    return value


@given(workloads_with_required(), SLACKS)
@settings(max_examples=21)
def test_it_equals_the_convex_optimum(workload, slack):
    solution, caps, weights, cost = solved(workload, slack)
    value = check(solution, workload, caps, weights, cost)
    b, p = variance_matrix(workload)
    optimum = smallest_value(
        b,
        p,
        cost,
        unit=solution.sigma_squared,
        of_sum=weights,
        of_max=np.zeros(len(weights)),
        caps=caps,
    )
    assert solution.lower_bound <= optimum * (1 + SOLVER)
    assert value == pytest.approx(optimum, rel=1e-6 + SOLVER)


@given(workloads_with_required(powers=6.0), SLACKS, st.booleans())
@settings(max_examples=21)
def test_caps_of_very_different_size_are_kept(workload, slack, counted):
    """Whether tables with a cap count in the sum or not."""
    weights = workload.weights if counted else np.where(workload.required, 0.0, workload.weights)
    if not np.any(weights):
        return
    solution, caps, weights, cost = solved(workload, slack, weights)
    check(solution, workload, caps, weights, cost)


@pytest.mark.by_day(1)
@pytest.mark.parametrize("room", [1e-8, 1e-6, 1e-4])
@given(workload=workloads_with_required())
@settings(max_examples=15)
def test_budgets_that_are_just_enough(room, workload):
    """The room that rounding needs is then a part of all the room there is."""
    solution, caps, weights, cost = solved(workload, 1 + room)
    check(solution, workload, caps, weights, cost, gap=1e-6 + 3 * CAP_ROUNDING / room)


@given(workloads_with_required(), st.sampled_from([1.01, 1.5]), st.integers(0, 2**32))
@settings(max_examples=14)
def test_no_plan_within_the_caps_is_better(workload, slack, seed):
    solution, inside, caps, weights, cost = solved_from(workload, slack)
    b, p = variance_matrix(workload)
    other = inside.solution.sigma_squared * np.random.default_rng(seed).lognormal(0, 2, len(p))
    other *= np.sum(p / other) / cost
    for share in ((1 - inside.largest) * 0.999, 1e-3 * (1 - inside.largest)):
        mixed = 1 / ((1 - share) / inside.solution.sigma_squared + share / other)
        assert np.sum(p / mixed) == pytest.approx(cost, rel=1e-9)
        assert np.all(b @ mixed <= caps)
        assert weights @ (b @ mixed) >= solution.lower_bound


@given(workloads_with_required(powers=3.0))
@settings(max_examples=14)
def test_how_far_inside_caps_a_plan_can_be(workload):
    cells = CellVariances(workload, Closure.of(workload))
    caps = np.where(workload.required, workload.targets**2, np.inf)
    point = find_feasible(cells, caps, 1.0)
    b, p = variance_matrix(workload)
    smallest = smallest_ratio(b, p, caps)
    assert point.solution.lower_bound <= smallest * (1 + SOLVER)
    assert point.largest == pytest.approx(smallest, rel=1e-6)
    assert point.largest == pytest.approx(
        np.max(b @ point.solution.sigma_squared / caps), rel=1e-12
    )
    assert np.sum(p / point.solution.sigma_squared) == pytest.approx(1, rel=1e-9)
    assert np.all(point.solution.shadow_prices[~workload.required] == 0)
    assert np.sum(point.solution.shadow_prices) == pytest.approx(1)


def test_it_takes_the_trouble_to_tell_whether_there_is_room():
    workload = rp.Workload.all_up_to(rp.Domain.from_sizes({"a": 4, "b": 7, "c": 3}), 2)
    cells = CellVariances(workload, Closure.of(workload))
    caps = np.random.default_rng(1).uniform(0.5, 5, len(workload))
    smallest = find_feasible(cells, caps, 1.0, 1e-12).largest
    for room in (1e-8, -1e-8):
        point = find_feasible(cells, caps * smallest * (1 + room), 1.0, 1e-4)
        assert point.is_feasible == (room > 0)
        assert (point.solution.lower_bound < 1) == (room > 0)


@given(workloads_with_required(all_required=False), st.floats(1.001, 10))
@settings(max_examples=10)
def test_a_plan_with_room_measures_everything_in_earnest(workload, slack):
    closure = Closure.of(workload)
    caps = np.where(workload.required, workload.targets**2, np.inf)
    cost = find_feasible(CellVariances(workload, closure), caps, 1.0).largest * slack
    inside = find_feasible(CellVariances(workload, closure), caps, cost)
    room = with_room(closure, inside, workload.weights, cost)
    variances, costs = closure.variances(room), closure.privacy_cost_factor
    assert np.max(variances / caps) < 1
    assert np.sum(costs / room) == pytest.approx(cost, rel=1e-9)
    # What the others would have alone, but for the share of the budget that is not theirs.
    alone, _ = best_response(costs, closure.residual_weights(workload.weights), cost)
    assert np.all(variances <= closure.variances(alone) * 2.001 / (1 - inside.largest))


@pytest.mark.parametrize("slack", [1.001, 1.2, 5.0])
@pytest.mark.parametrize("sizes", [{"a": 1}, {"a": 1, "b": 1}, {"a": 5, "b": 1}])
def test_the_total_alone_and_attributes_of_a_single_value(sizes, slack):
    domain = rp.Domain.from_sizes(sizes)
    workload = rp.Workload.all_up_to(domain, len(sizes))
    targets = np.linspace(1, 2, len(workload))
    required = np.arange(len(workload)) == 0
    workload = rp.Workload(domain, workload.members, workload.weights, targets, required=required)
    solution, caps, weights, cost = solved(workload, slack)
    check(solution, workload, caps, weights, cost)


@pytest.mark.parametrize("slack", [1.01, 1.3, 4.0])
@pytest.mark.parametrize("seed", range(4))
def test_where_cells_differ_caps_hold_for_the_least_accurate_one(seed, slack):
    bases = [rp.Prefix(), rp.Ranges(), rp.Identity()]
    cells = cells_of([5, 4, 3], bases, seed, 2)
    tables, b = all_cells(cells)
    rng = np.random.default_rng(seed)
    count, p = len(cells.workload), cells.closure.privacy_cost_factor
    caps = np.where(rng.uniform(size=count) < 0.6, rng.uniform(0.5, 5, count), np.inf)
    caps[-1] = 1.0
    weights = rng.uniform(0.1, 1, count)
    cost = smallest_ratio(b, p, caps[tables]) * slack
    inside = find_feasible(cells, caps, cost)
    solution = minimise_capped(cells, inside, table_weights=weights, caps=caps, privacy_cost=cost)
    assert np.all(b @ solution.sigma_squared <= caps[tables])
    assert np.sum(p / solution.sigma_squared) <= cost * (1 + 1e-12)
    value = weights @ cells.closure.variances(solution.sigma_squared)
    assert solution.lower_bound <= value <= solution.lower_bound * (1 + 1e-6)
    of_table = np.bincount(tables)
    optimum = smallest_value(
        b,
        p,
        cost,
        unit=solution.sigma_squared,
        of_sum=(weights / of_table)[tables],  # a table's mean variance is that of its cells
        of_max=np.zeros(len(tables)),
        caps=caps[tables],
    )
    assert solution.lower_bound <= optimum * (1 + SOLVER)
    assert value == pytest.approx(optimum, rel=1e-6 + SOLVER)
    # Its cells say how the prices of each table are made up.
    assert solution.cells is not None
    of_tables = np.bincount(solution.cells.tables, solution.cells.prices, count)
    np.testing.assert_allclose(of_tables, solution.shadow_prices, atol=1e-12)
    assert np.all(of_tables[np.isinf(caps)] == 0)


@pytest.mark.parametrize("room", [0.5, 1e-3, 1e-6])
@pytest.mark.parametrize("seed", range(3))
def test_prices_by_newtons_method_keep_all_caps(seed, room):
    """The response to central prices is inside the caps, and its gap is the barrier's."""
    rng = np.random.default_rng(seed)
    workload = rp.Workload.all_up_to(rp.Domain.from_sizes({"a": 4, "b": 7, "c": 3}), 2)
    closure = Closure.of(workload)
    cells, p = CellVariances(workload, closure), closure.privacy_cost_factor
    caps = rng.uniform(0.5, 5, len(workload))
    caps *= find_feasible(cells, caps, 1.0, 1e-12).largest * (1 + room)
    relative = cells.map(np.arange(len(caps)), np.zeros_like(workload.members)).matrix
    relative = relative.multiply(1 / caps[:, None]).tocsr()
    held = closure.residual_weights(workload.weights)
    start = np.full(len(caps), 1.0)
    value = float(held @ find_feasible(cells, caps, 1.0, 1e-12).solution.sigma_squared)
    z = central_cap_prices(
        relative, p, held, start, privacy_cost=1.0, value=value, gap=1.0, tolerance=1e-6
    )
    weights = held + relative.T @ z
    sigma_squared = np.sqrt(p / weights) * np.sum(np.sqrt(p * weights))
    assert np.all(relative @ sigma_squared < 1)
    bound = np.sum(np.sqrt(p * weights)) ** 2 - np.sum(z)
    assert bound <= held @ sigma_squared <= bound + 1e-6 * value


def test_progress_is_reported_and_may_end_the_search():
    class Stop(Exception):
        pass

    def stop(doing, share):
        raise Stop

    workload = rp.Workload.all_up_to(rp.Domain.from_sizes({"a": 4, "b": 7, "c": 3}), 2)
    workload = rp.Workload(
        workload.domain,
        workload.members,
        workload.weights,
        np.linspace(1, 2, len(workload)),
        required=np.arange(len(workload)) > 2,
    )
    shares = []
    solved(workload, 1.1, on_progress=lambda _, share: shares.append(share))
    assert len(shares) > 1
    assert shares[-1] >= share_done(1e-6) > shares[0]
    with pytest.raises(Stop):
        solved(workload, 1.1, on_progress=stop)


@pytest.mark.parametrize("slack", [1.01, 3.0])
@pytest.mark.parametrize("basis", [rp.Prefix(), rp.Ranges(), rp.Hierarchy((2,))], ids=repr)
def test_a_required_target_whose_least_accurate_cell_says_nothing_of_most_residuals(basis, slack):
    """The total is one of the questions, and nothing else asks for the attribute."""
    domain = rp.Domain.from_sizes({"a": 3, "b": 3})
    workload = rp.Workload.of(domain, ["a", "b"], required=[True, False], targets=[1, 1])
    minimum = minimum_budget(workload.with_bases({"a": basis}), required_only=True)
    cells = CellVariances(minimum.workload, minimum.closure)
    cost = minimum.record_privacy_cost * slack
    caps, weights = np.array([1.0, np.inf]), np.array([0.0, 1.0])
    inside = find_feasible(cells, caps, cost)
    solution = minimise_capped(cells, inside, table_weights=weights, caps=caps, privacy_cost=cost)
    assert np.max(cells.variances_of(0, solution.sigma_squared)) <= 1
    value = weights @ cells.closure.variances(solution.sigma_squared)
    assert solution.lower_bound <= value <= solution.lower_bound * (1 + 1e-6)
