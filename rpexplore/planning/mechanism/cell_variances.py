"""Cells: the most and the least accurate cell of each table, without going through the cells.

Only rows on the upper right (lower left) side of the hull of all pairs (T, N) of an attribute can
be the least (most) accurate, whatever the noise: a handful out of hundreds (docs/mathematics.md
§4.3).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from rpexplore.errors import PlanError
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.strategy import Moments, moments
from rpexplore.workload.workload import Workload

_AT_ONCE = 1 << 15  # numbers worked on together: they and what is made of them stay in cache
_MOST_COMBINED = 5_000_000  # combinations of rows that may hold the extreme cell of one table


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
        """T and N of each of the workload's questions."""
        if self.closure.moments:
            return self.closure.moments
        return [
            moments(self.workload, place, basis, {})
            for place, basis in self.workload.attribute_bases
        ]

    def worst(self, sigma_squared: np.ndarray) -> ExtremeCells:
        """A least accurate cell of each table, from σ² [n_residuals]."""
        return self._extremes(sigma_squared, largest=True)

    def best(self, sigma_squared: np.ndarray) -> ExtremeCells:
        """A most accurate cell of each table."""
        return self._extremes(sigma_squared, largest=False)

    def map(self, tables: np.ndarray, rows: np.ndarray) -> "CellVarianceMap":
        """What a solver needs to know of single cells: of these tables, at these rows."""
        indices, parts = [], []
        for chosen, columns, axes in self.closure.by_order(self.workload, tables):
            factors = np.ones((len(chosen), 1))
            for axis in range(axes.shape[1]):
                at = tables[chosen], axes[:, axis]
                pairs = self._pairs(
                    self.workload.attribute_basis_index[at], rows[chosen, axes[:, axis]]
                )
                factors = (factors[:, :, None] * pairs[:, None, :]).reshape(len(chosen), -1)
            outside = self._outside(tables[chosen], rows[chosen])
            indices.append((np.repeat(chosen, columns.shape[1]), columns.ravel()))
            parts.append((factors * outside[:, None]).ravel())
        where = tuple(np.concatenate(each) for each in zip(*indices, strict=True))
        shape = (len(tables), len(self.closure))
        matrix = sparse.csr_array((np.concatenate(parts), where), shape=shape)
        return CellVarianceMap(matrix, self.closure.privacy_cost_factor)

    def variances_of(self, table: int, sigma_squared: np.ndarray) -> np.ndarray:
        """The variance of every cell of one table, one axis an attribute; read-only."""
        (_, columns, axes) = next(self.closure.by_order(self.workload, np.array([table])))
        found = [
            self.moments[asked]
            for asked in self.workload.attribute_basis_index[table].tolist()
            if asked >= 0
        ]
        variances = sigma_squared[columns[0]].reshape((2,) * axes.shape[1])
        for axis, of in enumerate(found):
            # Rows that are all alike are held as one, until the end.
            total, spread = (each[:1] if _are_alike(of) else each for each in (of.total, of.spread))
            if axis in axes[0]:
                variances = np.tensordot(variances, np.stack([total, spread]), axes=(0, 0))
            else:  # a single value has no residual, but may be asked about in several rows
                variances = np.multiply.outer(variances, total)
        return np.broadcast_to(variances, [len(of.total) for of in found])

    # ---- inside

    @cached_property
    def _flat(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(N and T of all questions one after another, float64[·, 2]; where each begins; how far
        a row is from the next: 0 where all rows are alike)."""
        held = [
            (each.total[:1], each.spread[:1]) if _are_alike(each) else (each.total, each.spread)
            for each in self.moments
        ]
        lengths = [len(total) for total, _ in held]
        steps = np.array([0 if _are_alike(each) else 1 for each in self.moments])
        pairs = np.column_stack([np.concatenate(each) for each in zip(*held, strict=True)])
        return pairs, np.cumsum([0, *lengths[:-1]]), steps

    def _pairs(self, asked: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """(N, T) of these rows of these questions, float64[m, 2]."""
        pairs, starts, steps = self._flat
        return pairs[starts[asked] + steps[asked] * rows]

    def _outside(self, tables: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """∏ N at these rows over the attributes with a single value, float64[len(tables)]."""
        product = np.ones(len(tables))
        single = np.append(self.closure.sizes == 1, False)[self.workload.members[tables]]
        for axis in np.flatnonzero(np.any(single, axis=0)).tolist():
            has = np.flatnonzero(single[:, axis])
            asked = self.workload.attribute_basis_index[tables[has], axis]
            product[has] *= self._pairs(asked, rows[has, axis])[:, 0]
        return product

    @cached_property
    def _largest(self) -> "_Candidates":
        return _Candidates.of(self.moments, largest=True)

    @cached_property
    def _smallest(self) -> "_Candidates":
        return _Candidates.of(self.moments, largest=False)

    def _extremes(self, sigma_squared: np.ndarray, *, largest: bool) -> ExtremeCells:
        workload, candidates = self.workload, self._largest if largest else self._smallest
        variances = np.empty(len(workload))
        # Where an attribute has a single value, T is 0 and the first candidate, with the extreme
        # N, is the one; where all its rows are alike, any.
        rows = np.append(candidates.rows[:, 0], 0)[workload.attribute_basis_index]
        everything = np.arange(len(workload))
        for chosen, columns, axes in self.closure.by_order(workload, everything):
            asked = np.take_along_axis(workload.attribute_basis_index[chosen], axes, 1)
            for part in self._batches(chosen, candidates.counts[asked]):
                found = candidates.extreme(sigma_squared[columns[part]], asked[part], largest)
                variances[chosen[part]], of_axes = found
                rows[chosen[part, None], axes[part]] = of_axes
        return ExtremeCells(variances * self._outside(everything, rows), rows)

    def _batches(self, tables: np.ndarray, counts: np.ndarray) -> Iterator[np.ndarray]:
        """Tables to work on together, as places among them: those with about as many candidates.

        counts: int64[len(tables), k]
        """
        combined = np.prod(counts.astype(float), axis=1)
        order = np.lexsort((*counts.T, combined))
        if combined[order[-1]] > _MOST_COMBINED:
            table = self.workload.describe(int(tables[order[-1]]))
            raise PlanError(
                f"The table {table} asks so many of its attributes other than by single values "
                "that its least accurate cell cannot be found; ask fewer of them so."
            )
        starts = np.append(0, np.flatnonzero(np.any(np.diff(counts[order], axis=0), axis=1)) + 1)
        for start, stop in zip(starts, np.append(starts[1:], len(order)), strict=True):
            step = max(_AT_ONCE // int(combined[order[start]]), 1)
            for first in range(start, stop, step):
                yield order[first : min(first + step, stop)]


@dataclass(frozen=True, eq=False)
class _Candidates:
    """The rows of each question that can hold an extreme cell; the last repeated to fill up.

    rows   int64[n_queries, width]
    pairs  float64[width, 2, n_queries]: N and T of those rows
    counts int64[n_queries]
    """

    rows: np.ndarray
    pairs: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, found: Sequence[Moments], *, largest: bool) -> "_Candidates":
        kept = [each.extreme_rows(largest=largest) for each in found]
        counts = np.array([len(each) for each in kept], dtype=np.int64)
        width = int(counts.max(initial=1))
        rows = np.array([np.pad(each, (0, width - len(each)), "edge") for each in kept])
        rows = rows.reshape(len(kept), width)
        pairs = np.empty((width, 2, len(kept)))
        for question, (each, at) in enumerate(zip(found, rows, strict=True)):
            pairs[:, 0, question], pairs[:, 1, question] = each.total[at], each.spread[at]
        return cls(rows, pairs, counts)

    def extreme(
        self, sigma_squared: np.ndarray, asked: np.ndarray, largest: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """(variance [m], rows [m, k]) of an extreme cell of m tables with equal `counts`.

        sigma_squared: float64[m, 2^k], of a table's residuals by their bits; asked: int[m, k]
        """
        m, k = asked.shape
        # One table a column, so that all arithmetic runs along the tables. Attribute by attribute,
        # its axis of 2 goes from the front, and one of its candidates is added behind.
        within = np.ascontiguousarray(sigma_squared.T).reshape(*(2,) * k, m)
        counts = self.counts[asked[0]].tolist()
        pairs = [self.pairs[:count, :, asked[:, axis]] for axis, count in enumerate(counts)]
        if k == 0:
            return within, np.empty((m, 0), dtype=np.int64)
        for each in pairs[:-1]:
            total, spread = each[:, 0], each[:, 1]
            within = within[0][..., None, :] * total + within[1][..., None, :] * spread
        of_total, of_spread = within.reshape(2, -1, m)
        further, first = (np.maximum, np.argmax) if largest else (np.minimum, np.argmin)
        best = of_total * pairs[-1][0, 0] + of_spread * pairs[-1][0, 1]
        for total, spread in pairs[-1][1:]:
            further(best, of_total * total + of_spread * spread, out=best)
        at, table = first(best, axis=0), np.arange(m)
        last = of_total[at, table] * pairs[-1][:, 0] + of_spread[at, table] * pairs[-1][:, 1]
        places = [*np.unravel_index(at, [1, *counts[:-1]])[1:], first(last, axis=0)]
        return last[places[-1], table], self.rows[asked, np.stack(places, axis=1)]


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


def _are_alike(found: Moments) -> bool:
    """Whether all rows have one T and N, so that only these are held."""
    return found.spread.strides == found.total.strides == (0,)
