"""The largest variance of any cell, against CVXPY over all cells, and its bound."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.strategy import Strategy, measured_attributes
from rpexplore.planning.mechanism.variances import CellVariances
from rpexplore.planning.solvers.largest_variance import minimise_max_cell_variance

BASES = [rp.Prefix(), rp.Ranges(), rp.Windows(2), rp.Hierarchy((2,))]


def cells_of(sizes, bases, seed, order):
    """Cells of all tables up to an order, with random integer strategies."""
    names = [f"a{i}" for i in range(len(sizes))]
    domain = rp.Domain.from_sizes(dict(zip(names, sizes, strict=True)))
    workload = rp.Workload.all_up_to(domain, order)
    workload = workload.with_bases(dict(zip(names, bases, strict=True)))
    rng = np.random.default_rng(seed)
    strategies = {
        attribute: Strategy(
            rng.integers(-3, 4, (sizes[attribute] - 1, sizes[attribute]))
            + 20 * np.eye(sizes[attribute], dtype=int)[1:],
            4,
        )
        for attribute in measured_attributes(workload)
    }
    return CellVariances(workload, Closure.of(workload).with_strategies(workload, strategies))


def all_cells(cells):
    """(the table of each cell, B for every cell), from one residual at a time."""
    count = len(cells.closure)
    tables, rows = [], []
    for table in range(len(cells.workload)):
        columns = [cells.variances_of(table, unit).ravel() for unit in np.eye(count)]
        rows.append(np.column_stack(columns))
        tables.append(np.full(len(columns[0]), table))
    return np.concatenate(tables), np.concatenate(rows)


def convex_optimum(b, p, weights):
    sigma_squared = cp.Variable(len(p), pos=True)
    unit = np.sum(p)  # σ² = this costs 1
    cost = cp.sum(cp.multiply(p, cp.inv_pos(sigma_squared))) / unit
    problem = cp.Problem(cp.Minimize(cp.max(cp.multiply(weights, b @ sigma_squared))), [cost <= 1])
    problem.solve(solver=cp.CLARABEL, tol_gap_rel=1e-10, tol_feas=1e-10)
    return float(problem.value) * unit


@settings(max_examples=15)
@given(
    sizes=st.lists(st.integers(2, 5), min_size=2, max_size=3),
    picks=st.lists(st.sampled_from(BASES), min_size=3, max_size=3),
    seed=st.integers(0, 10_000),
)
def test_it_equals_the_convex_optimum_over_all_cells(sizes, picks, seed):
    bases = [
        rp.Prefix() if b.kind == "hierarchy" and n < 3 else b
        for b, n in zip(picks, sizes, strict=False)
    ]
    cells = cells_of(sizes, bases, seed, 2)
    tables, b = all_cells(cells)
    weights = np.random.default_rng(seed).uniform(0.5, 2, len(cells.workload))
    solution = minimise_max_cell_variance(cells, weights, 1.0)
    value = np.max(weights[tables] * (b @ solution.sigma_squared))
    assert np.sum(cells.closure.privacy_cost_factor / solution.sigma_squared) == pytest.approx(1)
    assert solution.lower_bound <= value <= solution.lower_bound * (1 + 1e-6)
    optimum = convex_optimum(b, cells.closure.privacy_cost_factor, weights[tables])
    assert value == pytest.approx(optimum, rel=2e-6)


def test_the_bound_holds_for_any_noise_scales():
    cells = cells_of([4, 5, 3], [rp.Prefix(), rp.Ranges(), rp.Identity()], 1, 3)
    _, b = all_cells(cells)
    weights = np.ones(len(cells.workload))
    solution = minimise_max_cell_variance(cells, weights, 1.0)
    p, rng = cells.closure.privacy_cost_factor, np.random.default_rng(0)
    for _ in range(200):
        other = solution.sigma_squared * np.exp(rng.normal(0, 0.1, len(p)))
        other *= np.sum(p / other)
        assert np.max(b @ other) >= solution.lower_bound


def test_prices_are_of_cells_and_make_up_those_of_tables():
    cells = cells_of([6, 5], [rp.Prefix(), rp.Identity()], 3, 2)
    solution = minimise_max_cell_variance(cells, np.ones(len(cells.workload)), 1.0)
    prices = solution.cells
    of_tables = np.bincount(prices.tables, prices.prices, len(cells.workload))
    np.testing.assert_allclose(of_tables, solution.shadow_prices)
    assert np.sum(of_tables) == pytest.approx(1)
    # Their best response is what gives the bound.
    v = cells.map(prices.tables, prices.rows).residual_weights(prices.prices)
    bound = np.sum(np.sqrt(v * cells.closure.privacy_cost_factor)) ** 2
    assert bound == pytest.approx(solution.lower_bound, rel=1e-9)


def test_a_table_whose_least_accurate_cell_says_nothing_of_most_residuals():
    """The total is a row of prefix sums: at first nothing asks for more than it."""
    cells = cells_of([5], [rp.Prefix()], 4, 1)
    solution = minimise_max_cell_variance(cells, np.array([1e-6, 1.0]), 1.0)
    assert np.all(np.isfinite(solution.sigma_squared))
    assert solution.lower_bound > 0


def test_fixed_weights_are_part_of_what_is_minimised():
    cells = cells_of([4, 3], [rp.Prefix(), rp.Ranges()], 5, 2)
    _, b = all_cells(cells)
    fixed = cells.closure.residual_weights(np.full(len(cells.workload), 0.3))
    weights = np.ones(len(cells.workload))
    solution = minimise_max_cell_variance(cells, weights, 1.0, fixed_weights=fixed)
    value = np.max(b @ solution.sigma_squared) + fixed @ solution.sigma_squared
    assert solution.lower_bound <= value <= solution.lower_bound * (1 + 1e-6)
    alone = minimise_max_cell_variance(cells, weights, 1.0)
    assert value < np.max(b @ alone.sigma_squared) + fixed @ alone.sigma_squared


def test_where_all_cells_are_alike_no_cells_are_named():
    cells = cells_of([4, 3], [rp.Identity(), rp.Identity()], 0, 2)
    assert minimise_max_cell_variance(cells, np.ones(len(cells.workload)), 1.0).cells is None


def test_progress_is_reported_and_may_end_the_search():
    class Stop(Exception):
        pass

    def stop(doing, share):
        raise Stop

    cells = cells_of([4, 3], [rp.Prefix(), rp.Identity()], 0, 2)
    with pytest.raises(Stop):
        minimise_max_cell_variance(cells, np.ones(len(cells.workload)), 1.0, on_progress=stop)
