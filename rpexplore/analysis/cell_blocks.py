"""The least accurate cell of each block of a table's cells, without going through the cells.

The variance of a cell is multilinear in the pairs (N, T) of its rows, with nonnegative coefficients
(docs/mathematics.md §4.3). So of the rows of a block only those can hold its least accurate cell
whose pair is on the upper right hull of all pairs (`cells.hull`): a handful of hundreds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from rpexplore.analysis.forecast import Forecast
from rpexplore.planning.mechanism.strategy import Moments, hull


@dataclass(frozen=True, eq=False)
class Blocks:
    """The rows of a query matrix in blocks.

    rows   int64[n_rows]: all rows, block by block
    start  int64[n_blocks]: where each block begins among them; ascending
    """

    rows: np.ndarray
    start: np.ndarray

    @classmethod
    def even(cls, n_rows: int, most: int) -> "Blocks":
        """At most so many blocks of neighbouring rows, as even as can be."""
        count = min(n_rows, most)
        return cls(np.arange(n_rows), np.arange(count) * n_rows // count)

    @classmethod
    def of_keys(cls, keys: np.ndarray) -> "Blocks":
        """Rows with the same key make a block, by ascending key; keys: int64[n_rows]."""
        rows = np.argsort(keys, kind="stable")
        return cls(rows, np.flatnonzero(np.diff(keys[rows], prepend=-1)))

    def bounds(self) -> list[tuple[int, int]]:
        """(first row, last row) of each block."""
        ends = np.append(self.start[1:], len(self.rows)) - 1
        return list(zip(self.rows[self.start].tolist(), self.rows[ends].tolist(), strict=True))

    def hulls(self, of: Moments) -> np.ndarray:
        """The rows that can hold a block's least accurate cell, int64[n_blocks, width]: the last
        is repeated to fill up."""
        hulls = []
        for part in np.split(self.rows, self.start[1:]):
            part = part[:1] if _are_alike(of) else part
            hulls.append(part[hull(of.total[part], of.spread[part], largest=True)])
        width = max(map(len, hulls))
        return np.array([np.pad(rows, (0, width - len(rows)), "edge") for rows in hulls])


@dataclass(frozen=True, eq=False)
class TableNoise:
    """The noise that the variance of each cell of a table follows from.

    sigma_squared  float64[2, 2, …]: of the residual with (1) or without (0) each attribute
    moments        of each attribute, for the table's basis
    """

    sigma_squared: np.ndarray
    moments: list[Moments]

    @classmethod
    def of(cls, forecast: Forecast, table: int) -> "TableNoise":
        cells, workload = forecast.cells, forecast.workload
        order = int(workload.orders[table])
        _, columns, axes = next(cells.closure.by_order(workload, np.array([table])))
        # Attributes with a single value have no residual.
        within = np.zeros((2,) * order)
        where = tuple(slice(None) if axis in axes[0] else 0 for axis in range(order))
        within[where] = forecast.sigma_squared[columns[0]].reshape((2,) * axes.shape[1])
        bases = workload.attribute_basis_index[table, :order]
        return cls(within, [cells.moments[basis] for basis in bases])

    def along(self, axis: int) -> np.ndarray:
        """Variance by row of one attribute, of an average row of all others, float64[n_rows]."""
        means = [np.array([[of.total_sum], [of.spread_sum]]) / len(of.total) for of in self.moments]
        weights = self._contracted(
            {index: pair for index, pair in enumerate(means) if index != axis}
        )
        return weights[0, 0] * self.moments[axis].total + weights[1, 0] * self.moments[axis].spread

    def largest_along(self, axis: int, blocks: Blocks, fixed: Mapping[int, int]) -> np.ndarray:
        """The largest variance in each block of rows of one attribute, float64[n_blocks].

        fixed: the row of other attributes; of those that are not in it, any
        """
        weights = self._contracted(self._candidates(fixed, {axis}))
        of, largest = self.moments[axis], np.zeros(len(blocks.rows))
        for point in hull(weights[0], weights[1], largest=True).tolist():
            variances = weights[0, point] * of.total + weights[1, point] * of.spread
            np.maximum(largest, variances, out=largest)
        return np.maximum.reduceat(largest[blocks.rows], blocks.start)

    def largest_across(
        self, axes: Sequence[int], blocks: Sequence[Blocks], fixed: Mapping[int, int]
    ) -> np.ndarray:
        """The largest variance in each block of rows of two attributes, float64[n_down, n_across].

        fixed: as of `largest_along`
        """
        weights = self._contracted(self._candidates(fixed, set(axes)))
        if axes[0] > axes[1]:
            weights = weights.swapaxes(0, 1)
        down = blocks[0].hulls(self.moments[axes[0]])
        across = blocks[1].hulls(self.moments[axes[1]])
        pairs = _pairs(self.moments[axes[1]], across.ravel())
        largest = np.zeros((len(down), across.size))
        for block, rows in enumerate(down.tolist()):
            for pair in _pairs(self.moments[axes[0]], np.array(sorted(set(rows)))):
                left = np.tensordot(pair, weights, axes=1)
                left = left[:, hull(left[0], left[1], largest=True)]
                largest[block] = np.maximum(largest[block], np.max(pairs @ left, axis=1))
        return largest.reshape(len(down), *across.shape).max(axis=2)

    def _candidates(self, fixed: Mapping[int, int], spread_out: set[int]) -> dict[int, np.ndarray]:
        """{attribute: pairs [2, m] of the rows it may have} of those that are not spread out."""
        candidates = {}
        for axis, of in enumerate(self.moments):
            if axis not in spread_out:
                row = fixed.get(axis)
                rows = hull(of.total, of.spread, largest=True) if row is None else np.array([row])
                candidates[axis] = _pairs(of, rows).T
        return candidates

    def _contracted(self, pairs: Mapping[int, np.ndarray]) -> np.ndarray:
        """What is left of σ² when these attributes have these pairs: [2, …, all combinations]."""
        kept = [axis for axis in range(self.sigma_squared.ndim) if axis not in pairs]
        within = np.transpose(self.sigma_squared, [*pairs, *kept])
        combined = reduce(
            lambda left, pair: np.tensordot(left, pair, axes=(0, 0)), pairs.values(), within
        )
        return combined.reshape(*(2,) * len(kept), -1)


def _pairs(of: Moments, rows: np.ndarray) -> np.ndarray:
    """(N, T) of rows, float64[len(rows), 2]."""
    return np.column_stack([of.total[rows], of.spread[rows]])


def _are_alike(of: Moments) -> bool:
    return of.total.strides == of.spread.strides == (0,)
