"""Operators: matrices W of query bases that compute without holding W (RP+ §7).

Only bases given as a matrix are held as one: all 500,500 ranges of 1,000 values cost little more
than the values themselves.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rpexplore.common.numerics import read_only

if TYPE_CHECKING:
    from scipy import sparse


class Operator(ABC):
    """A matrix W [n_rows, n_values]: one row a query, one column a value of the attribute."""

    n_values: int
    n_rows: int

    @cached_property
    def gram(self) -> np.ndarray:
        """WᵀW, float64[n_values, n_values], read-only; not for identities of very many values."""
        return read_only(self.weighted_gram(np.ones(self.n_rows)))

    @abstractmethod
    def weighted_gram(self, weights: np.ndarray) -> np.ndarray:
        """Wᵀ diag(weights) W, float64[n_values, n_values]."""

    @abstractmethod
    def row_quadratics(self, matrix: np.ndarray) -> np.ndarray:
        """diag(W M Wᵀ), float64[n_rows], of a symmetric matrix M [n_values, n_values]."""

    @abstractmethod
    def of(self, x: np.ndarray, axis: int) -> np.ndarray:
        """W applied along an axis of float64[…, n_values, …]: float64[…, n_rows, …]."""


class SingleValues(Operator):
    """The identity matrix."""

    def __init__(self, n_values: int) -> None:
        self.n_values = self.n_rows = n_values

    def weighted_gram(self, weights: np.ndarray) -> np.ndarray:
        return np.diag(weights)

    def row_quadratics(self, matrix: np.ndarray) -> np.ndarray:
        return np.diag(matrix).copy()

    def of(self, x: np.ndarray, axis: int) -> np.ndarray:
        return x


class Intervals(Operator):
    """Sums of consecutive values: row r sums the values first[r] … last[r]; all rows differ."""

    def __init__(self, first: np.ndarray, last: np.ndarray, n_values: int) -> None:
        self.first, self.last = first, last  # int64[n_rows] each
        self.n_values, self.n_rows = n_values, len(first)

    def weighted_gram(self, weights: np.ndarray) -> np.ndarray:
        n = self.n_values
        # Entry (i, j), i ≤ j, is the weight of all rows from at most i to at least j.
        of_pair = np.zeros((n, n))
        of_pair[self.first, self.last] = weights
        upper = np.triu(of_pair.cumsum(axis=0)[:, ::-1].cumsum(axis=1)[:, ::-1])
        return upper + np.triu(upper, 1).T

    def row_quadratics(self, matrix: np.ndarray) -> np.ndarray:
        sums = np.zeros((self.n_values + 1, self.n_values + 1))
        sums[1:, 1:] = matrix.cumsum(axis=0).cumsum(axis=1)
        start, stop = self.first, self.last + 1
        squares = np.diag(sums)
        return squares[stop] + squares[start] - 2 * sums[start, stop]

    def of(self, x: np.ndarray, axis: int) -> np.ndarray:
        zero = np.zeros_like(x.take([0], axis))
        sums = np.concatenate([zero, x.cumsum(axis)], axis)
        return sums.take(self.last + 1, axis) - sums.take(self.first, axis)


class Matrix(Operator):
    """A matrix that is held, dense or sparse, [n_rows, n_values]."""

    def __init__(self, matrix: "np.ndarray | sparse.csr_array") -> None:
        self._matrix = matrix
        shape: Any = matrix.shape
        self.n_rows, self.n_values = shape

    @classmethod
    def of_sets(cls, sets: Sequence[Sequence[int]], n_values: int) -> "Matrix":
        """One row for each set of values: 1 where a value is in the set, sparse."""
        from scipy import sparse  # heavy, and the command line's help needs no matrix

        starts = np.cumsum([0, *map(len, sets)])
        columns = np.fromiter((value for values in sets for value in values), np.int64)
        ones = np.ones(len(columns))
        return cls(sparse.csr_array((ones, columns, starts), shape=(len(sets), n_values)))

    def weighted_gram(self, weights: np.ndarray) -> np.ndarray:
        gram = self._matrix.T @ (self._matrix * weights[:, None])
        return gram if isinstance(gram, np.ndarray) else gram.toarray()

    def row_quadratics(self, matrix: np.ndarray) -> np.ndarray:
        return np.asarray((self._matrix * (self._matrix @ matrix)).sum(axis=1))

    def of(self, x: np.ndarray, axis: int) -> np.ndarray:
        first = np.moveaxis(x, axis, 0)
        answers = self._matrix @ first.reshape(self.n_values, -1)
        return np.moveaxis(answers.reshape(self.n_rows, *first.shape[1:]), 0, axis)
