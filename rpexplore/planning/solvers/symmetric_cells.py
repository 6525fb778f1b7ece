"""The largest variance of any cell where attributes are alike: by a small problem.

Attributes are alike if swapping two of them leaves workload, weights and measurements as they are.
The loss is convex, so that the best σ² does not change when they are swapped: one number for all
residuals with as many attributes of each kind (docs/mathematics.md §6.4). The prices of the cells
of one table of each kind follow from that small problem. Spread over all tables of its kind, their
rows in any order, they are nearly those of the whole one.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import comb, prod

import numpy as np
from scipy import sparse

from rpexplore.common.concurrency import Progress, no_progress
from rpexplore.common.numerics import distinct_rows, scattered_bits
from rpexplore.planning.mechanism.cell_variances import (
    CellVarianceMap,
    CellVariances,
    ExtremeCells,
)
from rpexplore.planning.solvers.p_norm import minimise_maximum
from rpexplore.planning.solvers.solution import CellPrices, Solution, report_gap
from rpexplore.workload.workload import Workload

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
    if any(len(bases) > 1 for bases in workload.bases):
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
