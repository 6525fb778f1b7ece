"""Largest weighted variance of tables and of cells, and p-norms, by certified steps."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import comb, prod

import numpy as np
from scipy import sparse

from rpexplore.common.numbers import distinct_rows, scattered_bits
from rpexplore.common.processes import Progress, no_progress
from rpexplore.planning.losses.losses import conjugate, p_norm
from rpexplore.planning.mechanism.variances import CellVarianceMap, CellVariances, ExtremeCells
from rpexplore.planning.solvers.acceleration import MOST_CELLS, Point, Search, central_prices
from rpexplore.planning.solvers.solution import (
    TOLERANCE,
    CellPrices,
    Solution,
    VarianceMap,
    best_response,
    report_gap,
    rounding_allowance,
)
from rpexplore.workload.workload import Workload

# ---- Largest weighted variance, or their p-norm, by certified steps (docs/mathematics.md §6.3,
# §6.7).
#
# With 1/p + 1/q = 1, the best response to the weights u·w, for any u ≥ 0 with Σ u^q = 1, is a
# feasible plan, and its weighted value a lower bound on the smallest possible norm. With x the
# weighted variances under it, the plain step u^(q − 1/2) ∝ √u · x raises the bound every time. For
# the largest variance p is infinite, and the u are on the simplex; with a weighted sum of variances
# added to it, the best response is to v₀ + Bᵀ(u·w).


def minimise_maximum(
    variance_map: VarianceMap,
    table_weights: np.ndarray,
    privacy_cost: float,
    tolerance: float = TOLERANCE,
    *,
    fixed_weights: np.ndarray | None = None,
    start: np.ndarray | None = None,
    max_rounds: int = 5000,
    on_progress: Progress = no_progress,
) -> Solution:
    """The σ² that minimise max_A table_weights[A] · Var_A at this privacy cost.

    With fixed_weights, float64[n_residuals] ≥ 0, what is minimised is that maximum plus
    Σ fixed_weights · σ²; the shadow prices are then the shares of the maximum alone. The rows of
    the map may also be single cells. start: shadow prices to begin with. After max_rounds
    evaluations the best plan so far comes with its true bound, whatever its gap.
    """
    search = _Search(variance_map, table_weights, privacy_cost, np.inf, fixed_weights)
    start = np.ones(len(table_weights)) if start is None else start
    search.run(start, tolerance, max_rounds, on_progress)
    return Solution(
        sigma_squared=search.best_sigma_squared,
        lower_bound=search.best_bound * (1 - rounding_allowance(len(table_weights))),
        shadow_prices=search.best_weights,
    )


def minimise_p_norm(
    variance_map: VarianceMap,
    table_weights: np.ndarray,
    p: float,
    privacy_cost: float,
    tolerance: float = TOLERANCE,
    *,
    max_rounds: int = 5000,
    on_progress: Progress = no_progress,
) -> Solution:
    """The σ² that minimise the p-norm of table_weights · Var at this privacy cost, for p ≥ 1.

    The dual weights d, float64[n_tables] ≥ 0, are scaled so that Σ d · Var = 1 for this solution;
    d · Var are the shadow prices. max_rounds: as of `minimise_maximum`.
    """
    # The closed form: nothing to search for.
    if p == 1:
        in_sum = variance_map.residual_weights(table_weights)
        costs, dual_weights = variance_map.privacy_cost_factor, table_weights
        sigma_squared, bound = best_response(costs, in_sum, privacy_cost)
        report_gap(on_progress, 0.0)
    else:
        search = _Search(variance_map, table_weights, privacy_cost, p)
        search.run(np.ones(len(table_weights)), tolerance, max_rounds, on_progress)
        dual_weights = search.best_weights * table_weights
        sigma_squared, bound = search.best_sigma_squared, search.best_bound
    prices = dual_weights * variance_map.variances(sigma_squared)
    total = float(np.sum(prices))
    return Solution(
        sigma_squared=sigma_squared,
        lower_bound=bound * (1 - rounding_allowance(len(dual_weights))),
        shadow_prices=prices / total,
        dual_weights=dual_weights / total,
    )


@dataclass(eq=False)
class _Search(Search):
    """Weights u on the tables with Σ u^q = 1."""

    p: float
    fixed: np.ndarray | None = None

    def visit(self, logs: np.ndarray) -> Point:
        # 1/p + 1/q = 1; q = 1 for the largest variance.
        q = conjugate(self.p)
        # Below e^-600 a weight is nothing to the bound; keeping it there keeps every v positive.
        logs = np.maximum(logs - np.max(logs), -600.0)
        # Σ u^q = 1 makes Σ u·x ≤ ‖x‖_p for all x (Hölder), so that the best response proves a
        # bound.
        u = np.exp(logs)
        length = np.sum(u**q) ** (1 / q)
        u /= length
        in_sum = self.variance_map.residual_weights(u * self.weights)
        if self.fixed is not None:
            in_sum = in_sum + self.fixed
        costs = self.variance_map.privacy_cost_factor
        sigma_squared, bound = best_response(costs, in_sum, self.privacy_cost)
        weighted = self.weights * self.variance_map.variances(sigma_squared)
        fixed = 0.0 if self.fixed is None else float(np.sum(self.fixed * sigma_squared))
        # Σ u·x; without a fixed part that is the bound itself.
        mean = bound if self.fixed is None else float(np.sum(u * weighted))
        self.keep(fixed + p_norm(weighted, self.p), sigma_squared, bound, u)
        logs -= np.log(length)
        step = np.log(weighted / mean)
        # The plain step u^(q − 1/2) ∝ √u · x, written as what it adds to log u.
        if q > 1:
            step -= (q - 1) * logs
        step *= 2 / (2 * q - 1)
        return Point(u, logs, step, bound)


# ---- The largest variance of any cell where attributes are alike: by a small problem.
#
# Attributes are alike if swapping two of them leaves workload, weights and measurements as they
# are. The loss is convex, so that the best σ² does not change when they are swapped: one number for
# all residuals with as many attributes of each kind (docs/mathematics.md §6.4). The prices of the
# cells of one table of each kind follow from that small problem. Spread over all tables of its
# kind, their rows in any order, they are nearly those of the whole one.


_MOST_RESIDUALS = 0.1  # of the small problem, relative: with more it saves too little
_MOST_CELLS = 300_000  # that the prices are spread over
_MOST_ORDERS = 4  # of the rows of one cell
_TOLERANCES = (1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6)  # until the bound is near enough


@dataclass(frozen=True, eq=False)
class _Kinds:
    """Kinds of attributes, tables and residuals.

    attributes        int64[n_attributes]
    tables, residuals int64[n_tables], int64[n_residuals]
    first_tables      int64[n_table_kinds]: the first table of each kind
    """

    attributes: np.ndarray
    tables: np.ndarray
    residuals: np.ndarray
    first_tables: np.ndarray


@dataclass(frozen=True, eq=False)
class SymmetricCells:
    """`CellVariances` of one table of each kind, whose σ² are those of the kinds of residuals."""

    cells: CellVariances
    kinds: np.ndarray  # int64[n_residuals]

    @property
    def workload(self) -> Workload:
        return self.cells.workload

    @property
    def closure(self) -> "SymmetricCells":
        return self

    @cached_property
    def privacy_cost_factor(self) -> np.ndarray:
        """p: privacy cost of all residuals of each kind at σ² = 1."""
        return np.bincount(self.kinds, self.cells.closure.privacy_cost_factor)

    def __len__(self) -> int:
        return len(self.privacy_cost_factor)

    def residual_weights(self, table_weights: np.ndarray) -> np.ndarray:
        return np.bincount(self.kinds, self.cells.closure.residual_weights(table_weights))

    def least_accurate(self, sigma_squared: np.ndarray) -> ExtremeCells:
        return self.cells.least_accurate(sigma_squared[self.kinds])

    def map(self, tables: np.ndarray, rows: np.ndarray) -> CellVarianceMap:
        of_all = self.cells.map(tables, rows).matrix
        n = len(self.kinds)
        into = sparse.csr_array((np.ones(n), (np.arange(n), self.kinds)), shape=(n, len(self)))
        return CellVarianceMap(sparse.csr_array(of_all @ into), self.privacy_cost_factor)


def symmetric_solution(
    cells: CellVariances,
    table_weights: np.ndarray,
    privacy_cost: float,
    tolerance: float,
    solve: Callable[..., Solution],
    on_progress: Progress = no_progress,
) -> Solution | None:
    """The solution where attributes are alike; None where they are not, or it is not found.

    solve: the search over cells, for the small problem.
    """
    kinds = _kinds(cells, table_weights)
    if kinds is None:
        return None
    # The small problem: the first table of each kind stands for all that are alike.
    workload, closure, chosen = cells.workload, cells.closure, kinds.first_tables
    of_kinds = replace(
        workload,
        members=workload.members[chosen],
        weights=workload.weights[chosen],
        targets=workload.targets[chosen],
        required=workload.required[chosen],
        basis_index=workload.basis_index[chosen],
    )
    # Attributes that no table of these has are without bases there.
    of_bases = dict(zip(workload.attribute_bases, closure.moments, strict=True))
    fewer = replace(
        closure,
        incidence=closure.incidence[chosen],
        cells=closure.cells[chosen],
        inverse_totals=closure.inverse_totals[chosen],
        moments=[of_bases[basis] for basis in of_kinds.attribute_bases],
    )
    small, weights = (
        SymmetricCells(CellVariances(of_kinds, fewer), kinds.residuals),
        table_weights[chosen],
    )
    solution = solve(small, weights, privacy_cost, tolerance / 2)
    if solution.cells is None:
        return None
    largest = small.least_accurate(solution.sigma_squared)
    value = float(np.max(weights * largest.variances))
    # The small problem's prices would prove its bound for the whole one if they stood on each cell
    # in every order of its rows: on some of these they do so after a few steps.
    spread = _spread(solution.cells, cells.workload, kinds)
    of_cells, weights = cells.map(spread.tables, spread.rows), table_weights[spread.tables]
    prices = spread.prices
    for within in _TOLERANCES:
        bounded = minimise_maximum(of_cells, weights, privacy_cost, within, start=prices)
        gap, prices = value / bounded.lower_bound - 1, bounded.shadow_prices
        report_gap(on_progress, gap)
        if gap <= tolerance:
            kept = CellPrices(spread.tables, spread.rows, prices)
            return replace(
                bounded,
                sigma_squared=solution.sigma_squared[kinds.residuals],
                shadow_prices=np.bincount(kept.tables, prices, len(table_weights)),
                cells=kept,
            )
    return None


def _kinds(cells: CellVariances, table_weights: np.ndarray) -> _Kinds | None:
    """Kinds such that swapping attributes of one changes nothing; None if these are too many."""
    workload, closure = cells.workload, cells.closure
    if closure.trees or any(len(bases) > 1 for bases in workload.bases):
        return None
    used = set(workload.members.ravel().tolist())
    described = [
        (index in used, attribute.size, bases, attribute.groups, id(closure.strategies.get(index)))
        for index, (attribute, bases) in enumerate(
            zip(workload.domain.attributes, workload.bases, strict=True)
        )
    ]
    numbers = {kind: number for number, kind in enumerate(dict.fromkeys(described))}
    attributes = np.array([numbers[kind] for kind in described])
    n_alike = np.bincount(attributes)

    def counts(members: np.ndarray) -> np.ndarray:
        of_members = np.append(attributes, -1)[members]
        return np.stack([np.sum(of_members == kind, axis=1) for kind in range(len(n_alike))], 1)

    first_residuals, residuals = distinct_rows(tuple(counts(closure.members).T))
    if len(first_residuals) > _MOST_RESIDUALS * len(residuals):
        return None
    of_tables = counts(workload.members)
    first, tables = distinct_rows((*of_tables.T, table_weights))
    complete = [
        prod(map(comb, n_alike.tolist(), row)) == count
        for row, count in zip(of_tables[first].tolist(), np.bincount(tables), strict=True)
    ]
    return _Kinds(attributes, tables, residuals, first) if all(complete) else None


def _spread(prices: CellPrices, workload: Workload, kinds: _Kinds) -> CellPrices:
    """Prices of cells of one table of each kind, spread over all tables of its kind.

    There the rows are in any order within each kind of attributes, in several if there is room.
    """
    of_members = np.append(kinds.attributes, len(kinds.attributes))[workload.members]
    n_cells = int(np.sum(np.bincount(kinds.tables)[prices.tables]))
    times = min(max(_MOST_CELLS // n_cells, 1), _MOST_ORDERS)
    parts = []
    for kind, rows, price in zip(prices.tables, prices.rows, prices.prices, strict=True):
        tables = np.flatnonzero(kinds.tables == kind)
        of_tables = of_members[tables]
        by_kind = rows[np.argsort(of_members[kinds.first_tables[kind]], kind="stable")]
        for time in range(times):
            chances = scattered_bits(np.arange(of_tables.size) + time * of_members.size)
            order = np.lexsort((chances.reshape(of_tables.shape), of_tables), axis=1)
            moved = np.empty_like(of_tables)
            np.put_along_axis(moved, order, np.broadcast_to(by_kind, moved.shape), axis=1)
            parts.append((tables, moved, np.full(len(tables), price / len(tables) / times)))
    tables, rows, shares = (np.concatenate(column) for column in zip(*parts, strict=True))
    first, of_cells = distinct_rows((tables, *rows.T))
    return CellPrices.sorted(tables[first], rows[first], np.bincount(of_cells, shares))


# ---- Largest weighted variance of any cell, where cells of a table differ (docs/mathematics.md
# §6.4).
#
# The search for the p-norm begins with each table's least accurate cell, and takes in what became
# worse than the bound until nothing has. To these is added a trace of the mean over all cells, so
# that no noise scale is without a weight: too little to matter to any digit of the bound.


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
        solution = minimise_over_cells(
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
        solution = minimise_over_cells(
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


def minimise_over_cells(
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
