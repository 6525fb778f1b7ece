"""The variances of a table's cells as a sum of products, without going through the cells.

Where residuals have matrices of their own, the variance of the cell (r₁, …, r_k) is
Σ_S σ²_S ∏_i f_i^S(r_i), with f_i^S = T of attribute i in a residual S that has it, N in others
(docs/mathematics-strategies.md §5.8). No σ² or factor is negative: a row with no factor above those
of another row needs no look where the least accurate cell is wanted. Of hundreds of ranges some
dozens are left, and these are combined in blocks, so that memory does not grow with the cells.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rpexplore.common.processes import one_thread

_AT_ONCE = 1 << 17  # variances worked on together: they stay in cache
_FEW = 1 << 17  # cells that are all looked at sooner than rows are compared
_MOST_COMPARED = 20_000_000  # numbers of an attribute: 820 ranges and 8 terms take a million


@dataclass(frozen=True, eq=False)
class ProductSum:
    """Σ_S scale ∏ factor, at one row of each of a table's attributes.

    scales   float64[n_terms], at least 0
    factors  of each attribute, float64[n_terms, n_rows], at least 0
    """

    scales: np.ndarray
    factors: Sequence[np.ndarray]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(factor.shape[1] for factor in self.factors)

    @one_thread()
    def everywhere(self) -> np.ndarray:
        """At all cells, one axis an attribute."""
        if not self.factors:
            return np.sum(self.scales).reshape(())
        values = np.empty((math.prod(self.shape[:-1]), self.shape[-1]))
        for rows, block in self._blocks(self.factors[:-1], self.factors[-1]):
            values[rows] = block
        return values.reshape(self.shape)

    @one_thread()
    def extreme(self, *, largest: bool) -> tuple[float, np.ndarray]:
        """The largest (or smallest) value, and a cell that has it: int64[n_attributes]."""
        if not self.factors:
            return float(np.sum(self.scales)), np.zeros(0, dtype=np.int64)
        rows = [np.arange(n) for n in self.shape]
        if math.prod(self.shape) > _FEW:
            rows = [undominated(factor, largest=largest) for factor in self.factors]
        # The attribute with the most rows goes last: its rows are one product of matrices.
        order = np.argsort([len(of_axis) for of_axis in rows], kind="stable").tolist()
        *others, last = (self.factors[axis][:, rows[axis]] for axis in order)
        best, at, first = -math.inf, 0, np.argmax if largest else np.argmin
        for block, values in self._blocks(others, last):
            flat = int(first(values))
            value = float(values.flat[flat])
            if (value if largest else -value) > best:
                best, at = (value if largest else -value), block.start * last.shape[1] + flat
        cell = np.empty(len(order), dtype=np.int64)
        places = np.unravel_index(at, [len(rows[axis]) for axis in order])
        for axis, place in zip(order, places, strict=True):
            cell[axis] = rows[axis][place]
        return (best if largest else -best), cell

    def mean_along(self, axis: int) -> np.ndarray:
        """The mean over all rows of the other attributes, float64[n_rows]."""
        others = [factor for place, factor in enumerate(self.factors) if place != axis]
        means = [np.mean(factor, axis=1) for factor in others]
        return np.prod([self.scales, *means], axis=0) @ self.factors[axis]

    @one_thread()
    def largest_along(self, kept: Sequence[int], fixed: Mapping[int, int]) -> np.ndarray:
        """The largest value by the rows of the kept attributes, one axis for each, in their order.

        fixed: the row of other attributes; of those that are not in it, any
        """
        scales, free = self.scales, []
        for axis, factor in enumerate(self.factors):
            if axis in fixed:
                scales = scales * factor[:, fixed[axis]]
            elif axis not in kept:
                free.append(factor[:, undominated(factor, largest=True)])
        *before, last = (self.factors[axis] for axis in kept)
        n_free = math.prod(factor.shape[1] for factor in free)
        shape = [self.shape[axis] for axis in kept]
        largest = np.zeros((math.prod(shape[:-1]), shape[-1]))
        fixed_sum = ProductSum(scales, self.factors)
        for block, values in fixed_sum._blocks([*before, *free], last):
            start, stop = block.start // n_free, (block.stop - 1) // n_free + 1
            of_rows = np.maximum(np.arange(start, stop) * n_free - block.start, 0)
            here = largest[start:stop]
            np.maximum(here, np.maximum.reduceat(values, of_rows, axis=0), out=here)
        return largest.reshape(shape)

    def _blocks(
        self, others: Sequence[np.ndarray], last: np.ndarray
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """The values at some combinations of rows of the others, and all of the last one.

        Which combinations, in the order of their product, and float64[n, n_rows of the last].
        """
        shape = [factor.shape[1] for factor in others]
        step = max(_AT_ONCE // last.shape[1], 1)
        for start in range(0, math.prod(shape), step):
            block = slice(start, min(start + step, math.prod(shape)))
            products = np.repeat(self.scales[:, None], block.stop - start, axis=1)
            places = np.unravel_index(np.arange(start, block.stop), shape) if shape else ()
            for factor, rows in zip(others, places, strict=True):
                products *= factor[:, rows]
            yield block, products.T @ last


def undominated(factors: np.ndarray, *, largest: bool) -> np.ndarray:
    """Rows of which none has all factors at least (or at most) as large: int64[m], ascending.

    Of rows that are alike one is left. Others may be left where these are very many.

    factors: float64[n_terms, n_rows]
    """
    different = {factor.tobytes(): factor for factor in factors}
    factors = np.array([*different.values()]) * (1 if largest else -1)
    order = np.argsort(-np.sum(factors, axis=0), kind="stable")
    kept: list[int] = []
    compared = 0
    while len(order) and compared < _MOST_COMPARED:
        # Nothing that is left has a larger sum: no row is above this one.
        kept.append(int(order[0]))
        best, order = factors[:, order[0], None], order[1:]
        compared += len(factors) * len(order)
        order = order[~np.all(factors[:, order] <= best, axis=0)]
    return np.sort(np.array([*kept, *order.tolist()], dtype=np.int64))
