"""Largest weighted variance of any cell, where cells of a table differ (docs/mathematics.md §6.4).

The search of `p_norm` begins with each table's least accurate cell, and takes in what has
become worse than the bound until nothing has. To these is added a trace of the mean over all cells,
so that no noise scale is without a weight: too little to matter to any digit of the bound.
"""

from dataclasses import replace
from functools import partial

import numpy as np
from scipy import sparse

from rpexplore.common.concurrency import Progress, no_progress
from rpexplore.planning.mechanism.cell_variances import CellVarianceMap, CellVariances
from rpexplore.planning.solvers.interior_point import MOST_CELLS, central_prices
from rpexplore.planning.solvers.p_norm import minimise_maximum
from rpexplore.planning.solvers.solution import (
    TOLERANCE,
    CellPrices,
    Solution,
    best_response,
    report_gap,
)
from rpexplore.planning.solvers.symmetric_cells import SymmetricCells, symmetric_solution

_MOST_PASSES = 200
_TRACE = 1e-24  # the bound holds its root
_NO_INFLUENCE = 1e-9  # prices below it need not be kept for the next pass
_AFRESH = 1e-3  # share of the prices of a similar problem that is spread evenly to begin with
_ROUNDS, _ROUNDS_OF_MANY = 150, 5000  # of multiplicative steps


def minimise_max_cell_variance(
    cells: CellVariances,
    table_weights: np.ndarray,
    privacy_cost: float,
    tolerance: float = TOLERANCE,
    *,
    tables: np.ndarray | None = None,
    fixed_weights: np.ndarray | None = None,
    start: Solution | None = None,
    on_progress: Progress = no_progress,
) -> Solution:
    """The σ² that minimise max_A table_weights[A] · (variance of A's least accurate cell).

    tables: indices of those in the maximum, ascending; None: all. With fewer, fixed_weights (as
    for `minimise_maximum`) must leave no residual without a weight. start: a solution for other
    weights of the same tables, to begin with its prices. Where all cells of each table are alike
    the solution names no cells.
    """
    closure = cells.closure
    indices = np.arange(len(table_weights)) if tables is None else tables
    if cells.workload.is_marginals:
        prices = np.ones(len(indices))
        if start is not None:  # some that had no influence may need it now: they grow from a little
            prices = start.shadow_prices[indices] + _AFRESH / len(indices)
        # From scratch, or too many for Newton's method: multiplicative steps alone.
        if tables is None and (start is None or len(indices) > MOST_CELLS):
            return minimise_maximum(
                closure,
                table_weights,
                privacy_cost,
                tolerance,
                fixed_weights=fixed_weights,
                start=prices,
                on_progress=on_progress,
            )
        solution = _of_cells(
            cells.map(indices, np.zeros_like(cells.workload.members[indices])),
            table_weights[indices],
            privacy_cost,
            tolerance,
            np.zeros(len(closure)) if fixed_weights is None else fixed_weights,
            prices,
            on_progress,
        )
        of_tables = np.bincount(indices, solution.shadow_prices, len(table_weights))
        return replace(solution, shadow_prices=of_tables)
    if tables is None and fixed_weights is None and start is None:
        solution = symmetric_solution(
            cells, table_weights, privacy_cost, tolerance, _over_cells, on_progress
        )
        if solution is not None:
            return solution
    return _over_cells(
        cells,
        table_weights,
        privacy_cost,
        tolerance,
        tables=tables,
        fixed_weights=fixed_weights,
        start=start,
        on_progress=on_progress,
    )


def _over_cells(
    cells: CellVariances | SymmetricCells,
    table_weights: np.ndarray,
    privacy_cost: float,
    tolerance: float,
    *,
    tables: np.ndarray | None = None,
    fixed_weights: np.ndarray | None = None,
    start: Solution | None = None,
    on_progress: Progress = no_progress,
) -> Solution:
    """`minimise_max_cell_variance` where cells of a table differ."""
    closure = cells.closure
    indices = np.arange(len(table_weights)) if tables is None else tables
    weights = closure.residual_weights(table_weights)
    sigma_squared, _ = best_response(closure.privacy_cost_factor, weights, privacy_cost)
    # To begin with: each table's least accurate cell under the noise of the best weighted sum.
    tables, rows = indices, cells.least_accurate(sigma_squared).rows[indices]
    prices = np.ones(len(indices))
    if start is not None and start.cells is not None:
        tables, rows = start.cells.tables, start.cells.rows
        prices = start.cells.prices + _AFRESH / len(tables)
    trace = weights * (_TRACE / len(table_weights))
    fixed_weights = trace if fixed_weights is None else fixed_weights + trace
    best, best_tables, best_rows = None, tables, rows
    best_value, gap = np.inf, 1.0
    for _ in range(_MOST_PASSES):
        solution = _of_cells(
            cells.map(tables, rows),
            table_weights[tables],
            privacy_cost,
            max(tolerance / 2, min(gap, 0.1) / 30),  # the cells are not yet the right ones
            fixed_weights,
            prices,
        )
        # The bound for some cells holds for all; only the value needs the least accurate of all.
        least_accurate = cells.least_accurate(solution.sigma_squared)
        weighted = table_weights[indices] * least_accurate.variances[indices]
        fixed = float(fixed_weights @ solution.sigma_squared)
        value = float(np.max(weighted)) + fixed
        if best is None or value < best_value:
            best_value, sigma_squared = value, solution.sigma_squared
        if best is None or solution.lower_bound >= best.lower_bound:
            best, best_tables, best_rows = solution, tables, rows
        before, gap = gap, best_value / best.lower_bound - 1
        report_gap(on_progress, gap)
        new = indices[weighted + fixed > best.lower_bound * (1 + tolerance / 4)]
        new = new[~are_in(tables, rows, new, least_accurate.rows[new])]
        if gap <= tolerance or (len(new) == 0 and gap >= before):
            break
        # What has no influence is left behind, so that the cells stay few.
        keep = solution.shadow_prices > _NO_INFLUENCE
        prices = np.append(solution.shadow_prices[keep], np.full(len(new), 1e-3 / max(len(new), 1)))
        tables = np.append(tables[keep], new)
        rows = np.concatenate([rows[keep], least_accurate.rows[new]])
    assert best is not None
    kept = best.shadow_prices > _TRACE  # without cells of no influence
    of_cells = CellPrices.sorted(best_tables[kept], best_rows[kept], best.shadow_prices[kept])
    of_tables = np.bincount(of_cells.tables, of_cells.prices, len(table_weights))
    return replace(best, sigma_squared=sigma_squared, shadow_prices=of_tables, cells=of_cells)


def _of_cells(
    of_cells: CellVarianceMap,
    weights: np.ndarray,
    privacy_cost: float,
    tolerance: float,
    fixed_weights: np.ndarray,
    start: np.ndarray,
    on_progress: Progress = no_progress,
) -> Solution:
    """The solution for these cells alone: by multiplicative steps, then by Newton's if need be."""
    solve = partial(
        minimise_maximum,
        of_cells,
        weights,
        privacy_cost,
        tolerance,
        fixed_weights=fixed_weights,
        on_progress=on_progress,
    )
    # Newton's method solves a dense system of as many unknowns as there are cells.
    few = len(weights) <= MOST_CELLS
    solution = solve(start=start, max_rounds=_ROUNDS if few else _ROUNDS_OF_MANY)
    value = np.max(weights * of_cells.variances(solution.sigma_squared))
    value += fixed_weights @ solution.sigma_squared
    if not few or value <= solution.lower_bound * (1 + tolerance):
        return solution
    prices = central_prices(
        sparse.csr_array(of_cells.matrix.multiply(weights[:, None])),
        of_cells.privacy_cost_factor,
        fixed_weights,
        solution.shadow_prices,
        gap=value / solution.lower_bound - 1,
        tolerance=tolerance,
    )
    # One visit: the best response to Newton's prices, and the bound that they prove.
    return solve(start=prices, max_rounds=1)


def are_in(
    tables: np.ndarray, rows: np.ndarray, new: np.ndarray, new_rows: np.ndarray
) -> np.ndarray:
    """Whether each new cell is among the old ones, bool[len(new)]."""
    shared = np.isin(tables, new)  # only these need looking at
    known = set(map(tuple, np.column_stack([tables[shared], rows[shared]]).tolist()))
    cells = np.column_stack([new, new_rows]).tolist()
    return np.array([tuple(cell) in known for cell in cells], dtype=bool)
