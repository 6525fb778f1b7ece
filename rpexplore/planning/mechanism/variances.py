"""Variances of tables and of their cells, without going through the cells."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from rpexplore.common.numbers import distinct_rows, read_only
from rpexplore.errors import PlanError
from rpexplore.planning.losses.losses import Loss
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.product_sums import ProductSum
from rpexplore.planning.mechanism.strategy import Moments, moments
from rpexplore.workload.table_text import query_matrix
from rpexplore.workload.workload import Workload

# ---- Table variances: how accurate the cells of each table are, on the whole and at the extremes.


# Standard errors that differ by no more than this factor are the same, as far as anybody notices.
SAME = 1.005
# What is shown of a table's cells.
CELLS = {
    "mean": "the root mean square of its cells",
    "largest": "its least accurate cell",
    "smallest": "its most accurate cell",
}


class TableVariances:
    """Variance of the cells of each table, float64[n_tables] each, read-only; alike for a marginal.

    mean over the cells of the table; largest, smallest: of its least and most accurate cell
    """

    def __init__(self, mean: np.ndarray, largest: np.ndarray, smallest: np.ndarray) -> None:
        self.mean = read_only(mean)
        self._extremes = read_only(largest), read_only(smallest)
        self._cells: tuple[CellVariances, np.ndarray] | None = None

    @classmethod
    def of(
        cls, workload: Workload, closure: Closure, sigma_squared: np.ndarray
    ) -> "TableVariances":
        """From the noise scales, float64[n_residuals].

        Raises `PlanError` for a table whose least accurate cell cannot be computed.
        """
        mean = closure.variances(sigma_squared)
        variances = cls(mean, mean, mean)
        if not workload.is_marginals:
            # A sum is planned without the extremes, and they may take longer than its plan.
            variances._cells = CellVariances(workload, closure), sigma_squared
            if np.max(workload.cells) > _MOST_COMBINED:  # refused here, if at all
                variances._find_extremes()
        return variances

    @property
    def largest(self) -> np.ndarray:
        self._find_extremes()
        return self._extremes[0]

    @property
    def smallest(self) -> np.ndarray:
        self._find_extremes()
        return self._extremes[1]

    def _find_extremes(self) -> None:
        """Look for the extreme cells, if they have not been looked for."""
        wanted = self._cells  # looked at once: sessions share plans, and another one may be done
        if wanted is not None:
            cells, sigma_squared = wanted
            largest = cells.least_accurate(sigma_squared).variances
            smallest = cells.most_accurate(sigma_squared).variances
            # Rounding must not put a mean outside its extremes where all cells are alike.
            self._extremes = (
                read_only(np.maximum(largest, self.mean)),
                read_only(np.minimum(smallest, self.mean)),
            )
            self._cells = None

    def in_units(self, units: np.ndarray) -> "TableVariances":
        """Those of tables whose standard errors are so many times as large, float64[n_tables]."""
        return TableVariances(*(self.at(cell) * units**2 for cell in CELLS))

    def at(self, cell: str) -> np.ndarray:
        """The variances of one of `CELLS`."""
        return getattr(self, cell)

    def of_loss(self, loss: Loss) -> np.ndarray:
        """Those that a loss looks at."""
        return self.largest if loss.looks_at_least_accurate_cells else self.mean

    def standard_errors(self, cell: str) -> np.ndarray:
        """The roots of the variances of one of `CELLS`."""
        return read_only(np.sqrt(self.at(cell)))

    def extreme_columns(self, tables: np.ndarray) -> dict[str, np.ndarray]:
        """Columns for these tables: σ of their most and least accurate cell, where cells differ."""
        cells = ("smallest", "largest") if cells_differ(self) else ()
        return {f"{cell}_standard_error": np.sqrt(self.at(cell)[tables]) for cell in cells}


def is_negligible_difference(low: float, high: float) -> bool:
    """Whether nobody would notice how much larger the second standard error is."""
    return high <= low * SAME


def cells_differ(variances: TableVariances) -> bool:
    """Whether some table's cells differ noticeably in accuracy."""
    return bool(np.any(variances.largest > variances.smallest * SAME**2))


# ---- Cells: the most and the least accurate cell of each table, without going through the cells.
#
# Only rows on the upper right (lower left) side of the hull of all pairs (T, N) of an attribute can
# be the least (most) accurate: a handful out of hundreds (docs/mathematics.md §4.3).


_AT_ONCE = 1 << 15  # numbers worked on together: they and what is made of them stay in cache
_MOST_DISTINCT = 20_000  # cells that a program is told of at once
_MOST_COMBINED = 5_000_000  # combinations of rows that may hold the extreme cell of one table
MOST_OWN_CELLS = 1_000_000_000
"""Cells of a table with residuals that have matrices of their own: as many as a release can have.

All combinations of rows that may hold the extreme one are looked at, at worst these."""


@dataclass(frozen=True, eq=False)
class ExtremeCells:
    """Of each table, a cell of the largest (or smallest) variance.

    variances  float64[n_tables]
    rows       int64[n_tables, max_order]: the row of each of the table's attributes; 0 behind
    """

    variances: np.ndarray
    rows: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class CellVariances:
    """The cells of a workload's tables, of which only the extreme ones are ever looked at.

    closure: measured by its strategies
    """

    workload: Workload
    closure: Closure

    @cached_property
    def moments(self) -> Sequence[Moments]:
        """T and N of each of `workload.attribute_bases`."""
        return self.closure.moments or [
            moments(self.workload, attribute, basis, {})
            for attribute, basis in self.workload.attribute_bases
        ]

    def least_accurate(self, sigma_squared: np.ndarray) -> ExtremeCells:
        """A least accurate cell of each table, from σ² [n_residuals]."""
        if self.workload.is_marginals:  # all cells of a table are alike
            rows = np.zeros_like(self.workload.members, dtype=np.int64)
            return ExtremeCells(self.closure.variances(sigma_squared), rows)
        if self.closure.trees:
            return self._extremes_of_levels(sigma_squared, largest=True)
        return self._extremes(sigma_squared, self._least_accurate)

    def most_accurate(self, sigma_squared: np.ndarray) -> ExtremeCells:
        """A most accurate cell of each table."""
        if self.closure.trees:
            return self._extremes_of_levels(sigma_squared, largest=False)
        return self._extremes(sigma_squared, self._most_accurate)

    def map(self, tables: np.ndarray, rows: np.ndarray) -> "CellVarianceMap":
        """The map of variances of single cells: of these tables, at these rows."""
        if self.closure.trees:
            return self._map_of_levels(tables, rows)
        indices, parts = [], []
        for chosen, columns, axes in self.closure.by_order(self.workload, tables):
            factors = np.ones((len(chosen), 1))
            for axis in axes.T:
                bases = self.workload.attribute_basis_index[tables[chosen], axis]
                pairs = self._pairs(bases, rows[chosen, axis])
                factors = (factors[:, :, None] * pairs[:, None, :]).reshape(len(chosen), -1)
            for table, column in self._own_entries(columns):
                cell = int(tables[chosen[table]]), axes[table], rows[chosen[table]]
                factors[table, column] = self._own_factor(int(columns[table, column]), *cell)
            outside = self._outside(tables[chosen], rows[chosen])
            indices.append((np.repeat(chosen, columns.shape[1]), columns.ravel()))
            parts.append((factors * outside[:, None]).ravel())
        where = tuple(np.concatenate(part) for part in zip(*indices, strict=True))
        shape = (len(tables), len(self.closure))
        matrix = sparse.csr_array((np.concatenate(parts), where), shape=shape)
        return CellVarianceMap(matrix, self.closure.privacy_cost_factor)

    def _own_entries(self, columns: np.ndarray) -> Iterator[tuple[int, int]]:
        """Where residuals with matrices of their own are among these: (row, column) each."""
        if self.closure.residual_moments:
            rows, places = np.nonzero(self.closure.residual_forms[columns])
            yield from zip(rows.tolist(), places.tolist(), strict=True)

    def _moments_in(self, residual: int, basis: int) -> Moments:
        """T and N of a basis in a residual."""
        return self.closure.residual_moments.get((residual, basis), self.moments[basis])

    def _own_factor(self, residual: int, table: int, axes: np.ndarray, rows: np.ndarray) -> float:
        """How σ² of a residual with own matrices gets into a cell of a table.

        axes: of the table's attributes of several values; rows: of all of them
        """
        factor, inside = 1.0, self.closure.attributes(residual)
        for axis in axes.tolist():
            basis = int(self.workload.attribute_basis_index[table, axis])
            own = self._moments_in(residual, basis)
            is_inside = int(self.workload.members[table, axis]) in inside
            factor *= float((own.spread if is_inside else own.total)[rows[axis]])
        return factor

    def variances_of(self, table: int, sigma_squared: np.ndarray) -> np.ndarray:
        """The variance of every cell of one table, one axis an attribute; read-only."""
        bases = self.workload.attribute_basis_index[table].tolist()
        return self._second_moments(
            table, sigma_squared, [self.moments[basis] for basis in bases if basis >= 0]
        )

    def sum_covariances_of(self, table: int, sigma_squared: np.ndarray) -> np.ndarray:
        """The covariance of the sum and the count of each group of a table with amounts.

        One axis an attribute, in the unit of the amounts; that of amounts has one entry.
        """
        attributes, of_axes, unit = self.workload.domain.attributes, [], 1.0
        bases = self.workload.attribute_basis_index[table].tolist()
        for basis in (basis for basis in bases if basis >= 0):
            index, of_basis = self.workload.attribute_bases[basis]
            moments_of_axis = self.moments[basis]
            if of_basis.of_weights:
                unit *= float(of_basis.row_units(attributes[index])[0]) ** 2
            elif of_basis.of_amounts:
                # As variances, with products of the two rows in the place of squares.
                strategy = self.closure.strategies[index]
                queries = query_matrix(of_basis, attributes[index])
                spread = queries.of(strategy.decoding, 0)
                total = queries.of(strategy.reference, 0)
                products = np.array([spread[0] @ spread[1]]), np.array([total[0] * total[1]])
                moments_of_axis = Moments.of(*products)
                unit *= float(of_basis.row_units(attributes[index])[0])
            of_axes.append(moments_of_axis)
        return self._second_moments(table, sigma_squared, of_axes) * unit

    def _second_moments(
        self, table: int, sigma_squared: np.ndarray, of_axes: Sequence[Moments]
    ) -> np.ndarray:
        if self.closure.trees:
            axes = self._axes(table)
            for axis, (moments_of_axis, index) in enumerate(
                zip(of_axes, self.workload.attribute_indices(table), strict=True)
            ):
                if index in self.workload.domain.amounts:
                    factors = np.stack([moments_of_axis.total, moments_of_axis.spread])
                    axes[axis] = _Axis.of((index,), factors)
            variances = self._of_axes(table, sigma_squared, axes)
            return variances[np.ix_(*(axis.of_rows for axis in axes))]
        if (own := self.product_sum(table, sigma_squared)) is not None:
            return read_only(own.everywhere())
        (_, columns, axes) = next(self.closure.by_order(self.workload, np.array([table])))
        variances = sigma_squared[columns[0]].reshape((2,) * axes.shape[1])
        for axis, of_axis in enumerate(of_axes):
            total, spread = _distinct(of_axis)  # until the end
            if axis in axes[0]:
                variances = np.tensordot(variances, np.stack([total, spread]), axes=(0, 0))
            else:  # a single value has no residual, but its basis may have several rows
                variances = np.multiply.outer(variances, total)
        return np.broadcast_to(variances, [len(of_axis.total) for of_axis in of_axes])

    def product_sum(self, table: int, sigma_squared: np.ndarray) -> ProductSum | None:
        """The variances of a table with residuals that have matrices of their own; None without."""
        if not self.closure.tables_with_own_matrices[table]:
            return None
        residuals = self.closure.subsets(table)
        insides = [self.closure.attributes(residual) for residual in residuals.tolist()]
        bases = self.workload.attribute_basis_index[table].tolist()
        factors = []
        for attribute, basis in zip(self.workload.attribute_indices(table), bases, strict=False):
            of_residuals = [
                self._moments_in(residual, basis).spread
                if attribute in inside
                else self.moments[basis].total
                for residual, inside in zip(residuals.tolist(), insides, strict=True)
            ]
            factors.append(np.stack(of_residuals))
        return ProductSum(sigma_squared[residuals], factors)

    def standard_errors_of(self, table: int, sigma_squared: np.ndarray) -> np.ndarray:
        """The standard error of every cell of one table, in the unit of the cell."""
        return np.sqrt(self.variances_of(table, sigma_squared)) * self.units_of(table)

    def units_of(self, table: int) -> np.ndarray:
        """What the planner's answers of a table are multiplied by; broadcasts to its cells.

        M where a row is a sum of amounts, 1 elsewhere (docs/mathematics-strategies.md §5.6).
        """
        units = np.ones(())
        attributes = self.workload.domain.attributes
        for index in self.workload.attribute_indices(table):
            units = units[..., None]
            if index in self.workload.domain.amounts:
                basis = self.workload.basis_of(table, index)
                units = units * basis.row_units(attributes[index])
        return units

    # ---- where attributes are in tables at several levels

    def distinct_cells(self, tables: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """(tables, rows) of one cell of all that noise gets into alike, as `map` takes them.

        Of tables with an attribute at several levels. None if these are very many.
        """
        of_tables, rows, n_cells = [], [], 0
        for table in tables.tolist():
            axes = self._axes(table)
            shape = [len(axis.first_rows) for axis in axes]
            n_cells += math.prod(shape)
            if n_cells > _MOST_DISTINCT:
                return None
            of_table = np.zeros((math.prod(shape), self.workload.members.shape[1]), dtype=np.int64)
            places = np.unravel_index(np.arange(len(of_table)), shape) if axes else ()
            for number, (axis, at) in enumerate(zip(axes, places, strict=True)):
                of_table[:, number] = axis.first_rows[at]
            rows.append(of_table)
            of_tables.append(np.full(len(of_table), table))
        return np.concatenate(of_tables), np.concatenate(rows)

    def _axes(self, table: int) -> "list[_Axis]":
        """How noise gets in along each axis of a table."""
        bases = self.workload.attribute_basis_index[table]
        return [self._axis_of(int(basis)) for basis in bases if basis >= 0]

    def _axis_of(self, basis: int) -> "_Axis":
        if basis not in self._known_axes:
            attribute, of_table = self.workload.attribute_bases[basis]
            trees = [tree for tree in self.closure.trees if attribute in tree.of_tables]
            if trees:
                numbers = trees[0].numbers
                queries = (
                    None
                    if of_table.is_identity
                    else query_matrix(of_table, self.workload.domain.attributes[attribute])
                )
                factors = trees[0].squares(attribute, self.closure.strategies, queries)
            else:
                numbers = (attribute,)
                of_basis = self.moments[basis]
                factors = np.stack([of_basis.total, of_basis.spread])
            self._known_axes[basis] = _Axis.of(numbers, factors)
        return self._known_axes[basis]

    @cached_property
    def _known_axes(self) -> "dict[int, _Axis]":
        return {}

    def _places(self, table: int, axes: "Sequence[_Axis]") -> tuple[np.ndarray, list[np.ndarray]]:
        """The residuals of a table, and the place of each along every axis: int64[m] each."""
        residuals = self.closure.subsets(table)
        members = self.closure.members[residuals]
        return residuals, [axis.places(members) for axis in axes]

    def _of_levels(self, table: int, sigma_squared: np.ndarray) -> "tuple[np.ndarray, list[_Axis]]":
        """The variances of a table at the distinct rows of each axis, and these axes."""
        axes = self._axes(table)
        return self._of_axes(table, sigma_squared, axes), axes

    def _of_axes(
        self, table: int, sigma_squared: np.ndarray, axes: "Sequence[_Axis]"
    ) -> np.ndarray:
        if math.prod(axis.factors.shape[1] for axis in axes) > _MOST_COMBINED:
            raise PlanError(
                f"The table {self.workload.describe(table)} has so many groups on different levels "
                "that its least accurate cell cannot be computed; use fewer of them."
            )
        residuals, places = self._places(table, axes)
        variances = np.zeros([len(axis.factors) for axis in axes])
        np.put(
            variances,
            np.ravel_multi_index(places, variances.shape) if axes else 0,
            sigma_squared[residuals],
        )
        for axis in axes:
            variances = np.tensordot(variances, axis.factors, axes=(0, 0))
        return variances

    def _extremes_of_levels(self, sigma_squared: np.ndarray, *, largest: bool) -> ExtremeCells:
        found = np.empty(len(self.workload))
        rows = np.zeros_like(self.workload.members, dtype=np.int64)
        for table in range(len(self.workload)):
            variances, axes = self._of_levels(table, sigma_squared)
            flat = int(np.argmax(variances) if largest else np.argmin(variances))
            found[table] = variances.reshape(-1)[flat]
            at = np.unravel_index(flat, variances.shape) if axes else ()
            for axis_number, (axis, place) in enumerate(zip(axes, at, strict=True)):
                rows[table, axis_number] = axis.first_rows[place]
        return ExtremeCells(found, rows)

    def _map_of_levels(self, tables: np.ndarray, rows: np.ndarray) -> "CellVarianceMap":
        columns, data, lengths = [], [], []
        for table, cell in zip(tables.tolist(), rows, strict=True):
            axes = self._axes(table)
            residuals, places = self._places(table, axes)
            factors = np.ones(len(residuals))
            for axis, place, row in zip(axes, places, cell, strict=False):
                factors = factors * axis.factors[place, axis.of_rows[row]]
            columns.append(residuals)
            data.append(factors)
            lengths.append(len(residuals))
        starts = np.cumsum([0, *lengths])
        matrix = sparse.csr_array(
            (np.concatenate(data), np.concatenate(columns), starts),
            shape=(len(tables), len(self.closure)),
        )
        return CellVarianceMap(matrix, self.closure.privacy_cost_factor)

    # ---- inside

    @cached_property
    def _flat(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(N and T of all bases one after another, float64[·, 2]; where each begins; how far
        a row is from the next: 0 where all rows are alike)."""
        distinct = [_distinct(basis) for basis in self.moments]
        starts = np.cumsum([0, *(len(total) for total, _ in distinct[:-1])])
        steps = np.array([0 if _are_alike(basis) else 1 for basis in self.moments])
        return np.concatenate([np.column_stack(pairs) for pairs in distinct]), starts, steps

    def _pairs(self, bases: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """(N, T) of these rows of these bases, float64[m, 2]."""
        pairs, starts, steps = self._flat
        return pairs[starts[bases] + steps[bases] * rows]

    def _outside(self, tables: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """∏ N at these rows over the attributes with a single value, float64[len(tables)]."""
        product = np.ones(len(tables))
        single = np.append(self.closure.sizes == 1, False)[self.workload.members[tables]]
        for axis in np.flatnonzero(np.any(single, axis=0)).tolist():
            has = np.flatnonzero(single[:, axis])
            bases = self.workload.attribute_basis_index[tables[has], axis]
            product[has] *= self._pairs(bases, rows[has, axis])[:, 0]
        return product

    @cached_property
    def _least_accurate(self) -> "_Candidates":
        return _Candidates.of(self.moments, largest=True)

    @cached_property
    def _most_accurate(self) -> "_Candidates":
        return _Candidates.of(self.moments, largest=False)

    def _extremes(self, sigma_squared: np.ndarray, candidates: "_Candidates") -> ExtremeCells:
        workload = self.workload
        variances = np.empty(len(workload))
        # Where an attribute has a single value, T is 0 and the first candidate, with the extreme
        # N, is the one; where all its rows are alike, any.
        rows = np.append(candidates.rows[:, 0], 0)[workload.attribute_basis_index]
        everything = np.arange(len(workload))
        has_own = self.closure.tables_with_own_matrices
        for table in np.flatnonzero(has_own).tolist():
            if workload.cells[table] > MOST_OWN_CELLS:
                raise PlanError(
                    f"The table {workload.describe(table)} has too many cells for residuals with "
                    "matrices of their own; make the plan again."
                )
            cells = self.product_sum(table, sigma_squared)
            assert cells is not None
            variances[table], cell = cells.extreme(largest=candidates.largest)
            rows[table, : len(cell)] = cell
        others = np.flatnonzero(~has_own)
        for at, columns, axes in self.closure.by_order(workload, others):
            chosen = others[at]
            bases = np.take_along_axis(workload.attribute_basis_index[chosen], axes, 1)
            for part in self._batches(chosen, candidates.counts[bases]):
                extreme = candidates.extreme(sigma_squared[columns[part]], bases[part])
                variances[chosen[part]], rows[chosen[part, None], axes[part]] = extreme
        # Of tables whose cells were all looked at it is in the variance already.
        outside = np.where(has_own, 1.0, self._outside(everything, rows))
        return ExtremeCells(variances * outside, rows)

    def _batches(self, tables: np.ndarray, counts: np.ndarray) -> Iterator[np.ndarray]:
        """Tables to work on together, as indices among them: with about as many candidates each.

        counts: int64[len(tables), k]
        """
        combined = np.prod(counts.astype(float), axis=1)
        order = np.lexsort((*counts.T, combined))
        if combined[order[-1]] > _MOST_COMBINED:
            table = self.workload.describe(int(tables[order[-1]]))
            raise PlanError(
                f"The table {table} has so many of its attributes in other bases than single "
                "values that its least accurate cell cannot be computed; use fewer of them."
            )
        starts = np.append(0, np.flatnonzero(np.any(np.diff(counts[order], axis=0), axis=1)) + 1)
        for start, stop in zip(starts, np.append(starts[1:], len(order)), strict=True):
            step = max(_AT_ONCE // int(combined[order[start]]), 1)
            for first in range(start, stop, step):
                yield order[first : min(first + step, stop)]


@dataclass(frozen=True, eq=False)
class _Axis:
    """How the noise of the total and of each block gets into the values along one axis of a table.

    numbers     what stands for the blocks in residuals
    factors     float64[1 + n_blocks, m]: of the total, then of the blocks, at m distinct rows
    of_rows     int64[n_rows]: which of these each row is
    first_rows  int64[m]: the first row of each
    """

    numbers: tuple[int, ...]
    factors: np.ndarray
    of_rows: np.ndarray
    first_rows: np.ndarray

    @classmethod
    def of(cls, numbers: tuple[int, ...], factors: np.ndarray) -> "_Axis":
        first, of_rows = distinct_rows([*factors])
        return cls(numbers, factors[:, first], of_rows, first)

    def places(self, members: np.ndarray) -> np.ndarray:
        """Which row of `factors` each residual has: int64[m]; members: int32[m, max_order]."""
        own = members - self.numbers[0] + 1
        return np.max(np.where((own > 0) & (own <= len(self.numbers)), own, 0), axis=1, initial=0)


@dataclass(frozen=True, eq=False)
class _Candidates:
    """The rows of each basis that can hold an extreme cell; the last repeated to fill up.

    rows    int64[n_bases, width]
    pairs   float64[width, 2, n_bases]: N and T of those rows
    counts  int64[n_bases]
    largest whether the extreme is the largest variance
    """

    rows: np.ndarray
    pairs: np.ndarray
    counts: np.ndarray
    largest: bool

    @classmethod
    def of(cls, of_bases: Sequence[Moments], *, largest: bool) -> "_Candidates":
        candidates = [
            basis.least_accurate_rows if largest else basis.most_accurate_rows for basis in of_bases
        ]
        counts = np.array([len(rows) for rows in candidates], dtype=np.int64)
        width = int(counts.max(initial=1))
        rows = np.zeros((len(counts), width), dtype=np.int64)
        pairs = np.empty((width, 2, len(counts)))
        for index, (basis, known) in enumerate(zip(of_bases, candidates, strict=True)):
            rows[index] = known[np.minimum(np.arange(width), len(known) - 1)]
            pairs[:, 0, index] = basis.total[rows[index]]
            pairs[:, 1, index] = basis.spread[rows[index]]
        return cls(rows, pairs, counts, largest)

    def extreme(
        self, sigma_squared: np.ndarray, bases: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """(variance [m], rows [m, k]) of an extreme cell of m tables with equal `counts`.

        sigma_squared: float64[m, 2^k], of a table's residuals by their bits; bases: int[m, k]
        """
        m, k = bases.shape
        # One table a column, so that all arithmetic runs along the tables. Attribute by attribute,
        # its axis of 2 goes from the front, and one of its candidates is added behind.
        within = np.ascontiguousarray(sigma_squared.T).reshape(*(2,) * k, m)
        if k == 0:
            return within, np.empty((m, 0), dtype=np.int64)
        counts = self.counts[bases[0]].tolist()
        *pairs, last_pairs = (
            self.pairs[:count, :, bases[:, axis]] for axis, count in enumerate(counts)
        )
        for of_axis in pairs:
            total, spread = of_axis[:, 0], of_axis[:, 1]
            within = within[0][..., None, :] * total + within[1][..., None, :] * spread
        of_total, of_spread = within.reshape(2, -1, m)
        further, first = (np.maximum, np.argmax) if self.largest else (np.minimum, np.argmin)
        best = of_total * last_pairs[0, 0] + of_spread * last_pairs[0, 1]
        for total, spread in last_pairs[1:]:
            further(best, of_total * total + of_spread * spread, out=best)
        at, table = first(best, axis=0), np.arange(m)
        last = of_total[at, table] * last_pairs[:, 0] + of_spread[at, table] * last_pairs[:, 1]
        indices = [*np.unravel_index(at, [1, *counts[:-1]])[1:], first(last, axis=0)]
        return last[indices[-1], table], self.rows[bases, np.stack(indices, axis=1)]


@dataclass(frozen=True, eq=False)
class CellVarianceMap:
    """`solvers.solution.VarianceMap` of single cells: the rows of B are cells, not tables."""

    matrix: sparse.csr_array
    privacy_cost_factor: np.ndarray

    def variances(self, sigma_squared: np.ndarray) -> np.ndarray:
        """Variance of each cell, [n_cells]."""
        return self.matrix @ sigma_squared

    def residual_weights(self, cell_weights: np.ndarray) -> np.ndarray:
        """Weight of each σ² in Σ weight · variance, [n_residuals]."""
        return self._transposed @ cell_weights

    @cached_property
    def _transposed(self) -> sparse.csr_array:
        return sparse.csr_array(self.matrix.T)


def _are_alike(basis: Moments) -> bool:
    """Whether all rows have one T and N, so that only these are held."""
    return basis.spread.strides == basis.total.strides == (0,)


def _distinct(basis: Moments) -> tuple[np.ndarray, np.ndarray]:
    """N and T of all rows, or of one where all rows are alike."""
    stop = 1 if _are_alike(basis) else None
    return basis.total[:stop], basis.spread[:stop]
