"""Records as rows of zeros and ones: products with them are sums over values that records have."""

from typing import Any

import numpy as np
import scipy.sparse

_DENSE = 30  # values an attribute up to which products with all zeros are faster than without


class Indicators:
    """The matrix with a one for the value of each attribute of each record: [n, all values].

    codes    int16[n, d]
    offsets  int64[d + 1]: where each attribute's values begin among all
    """

    def __init__(self, codes: np.ndarray, offsets: np.ndarray) -> None:
        n, d = codes.shape
        self._offsets, self._rows, n_values = offsets, np.arange(n), int(offsets[-1])
        self._columns = codes + offsets[:-1]
        self._is_dense = n_values <= _DENSE * d
        self._matrix: Any
        if self._is_dense:
            self._matrix = np.zeros((n, n_values), dtype=np.float32)
            self._matrix[self._rows[:, np.newaxis], self._columns] = 1
        else:
            self._columns = self._columns.astype(np.int32)
            starts = np.arange(0, n * d + 1, d, dtype=np.int32)
            ones = np.ones(n * d, dtype=np.float32)
            parts = (ones, self._columns.reshape(-1), starts)
            self._matrix = scipy.sparse.csr_array(parts, shape=(n, n_values), copy=False)

    def times(self, matrix: np.ndarray) -> np.ndarray:
        """Sums of the rows of a matrix that belong to a record's values: float32[n, columns]."""
        return self._matrix @ np.ascontiguousarray(matrix)

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sums over the records that have each value: float32[all values, columns]."""
        return self._matrix.T @ values

    def pair_counts(self) -> np.ndarray:
        """How many records have each two values: float32[all values, all values]."""
        counts = self._matrix.T @ self._matrix
        return counts if self._is_dense else counts.toarray()

    def change(self, attribute: int, values: np.ndarray) -> None:
        """Give the records other values of an attribute: int64[n]."""
        columns = values + self._offsets[attribute]
        if self._is_dense:
            self._matrix[self._rows, self._columns[:, attribute]] = 0
            self._matrix[self._rows, columns] = 1
        self._columns[:, attribute] = columns
