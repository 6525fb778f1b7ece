"""Measurements of query lists in integers, at almost no loss (docs/mathematics.md §7.5).

An integer matrix answers all queries without bias as long as they are combinations of its rows:
what is decoded starts from the integers as they are.
"""

from collections.abc import Iterator
from itertools import chain

import numpy as np

from rpexplore.planning.solvers.queries import decoding, kinds_of_cells, largest_and_mean

# Bits that are tried for the columns, until the privacy cost is so near to that of R.
_BITS = (16, 20, 23, 25)
_ROUNDED_ENOUGH, _MOST = 1e-4, 1e-3
# No entry is larger, so that sums of the squares of a column, of as many rows, fit into 64 bits.
MOST_ENTRY_BITS, MOST_ROWS = 26, 2_047
_MOST_FAINT = 1_024  # kinds of cells of which all are measured, however faintly
_OFF = 1e-6  # what decodes the queries off by so much, relative, is no measurement of them
_FAINT = 4.0  # the length of faint rows over the root of the longest column's


def integer_measurement(
    matrix: np.ndarray,
    coefficients: np.ndarray,
    integers: np.ndarray,
    targets: np.ndarray,
    average: float = 0.0,
) -> np.ndarray | None:
    """An integer matrix, int64[·, n_cells], that is nearly as good a measurement of queries as R.

    Args:
        matrix: R, float64[k, n_cells], largest column norm 1.
        coefficients: The queries, float64[n_queries, n_cells].
        integers: Each of them times some whole number, int64.
        targets, average: As of `fitness_for_use`.

    Returns:
        The matrix; None if the privacy cost at which the loss is 1 would be more than 0.1 % above
        that of R.
    """
    wanted = _cost(matrix, coefficients, targets, average)
    best, smallest = None, wanted * (1 + _MOST)
    distinct, kind_of = kinds_of_cells(integers)
    kinds = None
    if distinct.shape[1] <= _MOST_FAINT:
        # A row for each kind of cells, with 1 for its cells.
        kinds = (kind_of == np.arange(distinct.shape[1])[:, None]).astype(float)
    is_basis = kinds is not None and len(kinds) == len(matrix)
    basis = kinds if kinds is not None and is_basis else basis_of_queries(integers, len(matrix))
    tried = _multiples(matrix, basis)
    if kinds is not None and not is_basis:
        tried = chain(tried, _with_faint_rows(matrix, kinds))
    for rounded in tried:
        if np.abs(rounded).max() > 2.0**MOST_ENTRY_BITS:
            continue
        cost = _cost(rounded, coefficients, targets, average)
        if cost <= smallest:
            best, smallest = rounded.astype(np.int64), cost
        if smallest <= wanted * (1 + _ROUNDED_ENOUGH):
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
    from scipy.linalg import null_space  # slow to import

    first = kinds.argmax(axis=1)  # a cell of each kind
    within = matrix[:, first]
    others = null_space(within).T
    for bits in _BITS:
        faint = others * (_FAINT * 2.0 ** (bits / 2))
        yield np.rint(np.vstack([within * 2.0**bits, faint])) @ kinds


def basis_of_queries(integers: np.ndarray, n_rows: int) -> np.ndarray:
    """So many of the queries, far from depending on one another, in whole numbers: float64."""
    from scipy.linalg import qr  # slow to import

    rows = integers // np.gcd.reduce(integers, axis=1, keepdims=True)
    lengths = np.linalg.norm(rows.astype(float), axis=1, keepdims=True)
    _, order = qr((rows / lengths).T, mode="r", pivoting=True)  # pyright: ignore[reportAssignmentType]
    return rows[np.sort(order[:n_rows])].astype(float)


def _cost(
    matrix: np.ndarray, coefficients: np.ndarray, targets: np.ndarray, average: float
) -> float:
    """The privacy cost at which a measurement meets all targets; infinite if it meets none."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        try:
            decoded = decoding(matrix, coefficients)
        except np.linalg.LinAlgError:
            return np.inf
        off = np.abs(decoded @ matrix - coefficients).max(axis=1)
        ratio = largest_and_mean(np.sum(decoded**2, axis=1) / targets**2, average)
        if not np.all(off <= _OFF * np.abs(coefficients).max(axis=1)):
            return np.inf
        return float(ratio * np.max(np.sum(matrix**2, axis=0)))
