"""Measurements of query lists in integers, at almost no loss (docs/mathematics.md §7.5).

An integer matrix answers all queries without bias as long as they are combinations of its rows:
what is decoded starts from the integers as they are.
"""

from collections.abc import Iterator
from itertools import chain

import numpy as np
from scipy.linalg import null_space, qr

from rpexplore.planning.solvers.fitness_for_use import decoding, kinds_of_cells

# Bits that are tried for the columns, until the privacy cost is so near to that of R.
_BITS = (16, 20, 23, 25)
_ENOUGH, _MOST = 1e-4, 1e-3
# No entry is larger, so that sums of the squares of a column, 1024 at most, fit into 64 bits.
MOST_ENTRY_BITS = 26
_OFF = 1e-6  # what decodes the queries off by so much, relative, is no measurement of them
_FAINT = 4.0  # the length of faint rows over the root of the longest column's


def integer_measurement(
    matrix: np.ndarray, coefficients: np.ndarray, integers: np.ndarray, targets: np.ndarray
) -> np.ndarray | None:
    """An integer matrix, int64[·, n_cells], that is nearly as good a measurement of queries as R.

    matrix: R, float64[k, n_cells], largest column norm 1. coefficients: the queries,
    float64[n_queries, n_cells]; integers: each of them times some whole number, int64. None if the
    privacy cost at which the targets are met would be more than 0.1 % above that of R.
    """
    wanted = _cost(matrix, coefficients, targets)
    best, smallest = None, wanted * (1 + _MOST)
    distinct, kind_of = kinds_of_cells(integers)
    # A row for each kind of cells, with 1 for its cells.
    kinds = (kind_of == np.arange(distinct.shape[1])[:, None]).astype(float)
    tried = _multiples(matrix, kinds if len(kinds) == len(matrix) else _basis(integers, matrix))
    if len(kinds) > len(matrix):
        tried = chain(tried, _with_faint_rows(matrix, kinds))
    for rounded in tried:
        if np.abs(rounded).max() > 2.0**MOST_ENTRY_BITS:
            continue
        cost = _cost(rounded, coefficients, targets)
        if cost <= smallest:
            best, smallest = rounded.astype(np.int64), cost
        if smallest <= wanted * (1 + _ENOUGH):
            break
    return best


def _multiples(matrix: np.ndarray, basis: np.ndarray) -> Iterator[np.ndarray]:
    """R with more and more bits, its rows whole multiples of those of a basis of integers."""
    multiples = np.linalg.lstsq(basis.T, matrix.T, rcond=None)[0].T
    for bits in _BITS:
        yield np.rint(multiples * 2.0**bits) @ basis


def _with_faint_rows(matrix: np.ndarray, kinds: np.ndarray) -> Iterator[np.ndarray]:
    """R with more and more bits, and faintly all directions that it leaves out, for kinds of cells.

    What rounding leaves out of R is taken out with the noise of the faint rows; both are least at
    about the root of R's length.
    """
    first = kinds.argmax(axis=1)  # a cell of each kind
    within = matrix[:, first]
    others = null_space(within).T
    for bits in _BITS:
        faint = others * (_FAINT * 2.0 ** (bits / 2))
        yield np.rint(np.vstack([within * 2.0**bits, faint])) @ kinds


def _basis(integers: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """As many of the queries as R has rows, far from depending on one another, in whole numbers."""
    rows = integers // np.gcd.reduce(integers, axis=1, keepdims=True)
    lengths = np.linalg.norm(rows.astype(float), axis=1, keepdims=True)
    _, order = qr((rows / lengths).T, mode="r", pivoting=True)  # pyright: ignore[reportAssignmentType]
    return rows[np.sort(order[: len(matrix)])].astype(float)


def _cost(matrix: np.ndarray, coefficients: np.ndarray, targets: np.ndarray) -> float:
    """The privacy cost at which a measurement meets all targets; infinite if it meets none."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        try:
            decoded = decoding(matrix, coefficients)
        except np.linalg.LinAlgError:
            return np.inf
        off = np.abs(decoded @ matrix - coefficients).max(axis=1)
        ratio = np.max(np.sum(decoded**2, axis=1) / targets**2)
        if not np.all(off <= _OFF * np.abs(coefficients).max(axis=1)):
            return np.inf
        return float(ratio * np.max(np.sum(matrix**2, axis=0)))
