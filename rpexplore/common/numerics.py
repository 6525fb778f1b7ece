"""Numerics: read-only arrays, the normal quantile, conic programs by Clarabel, through CVXPY."""

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rpexplore.errors import WorkloadError

if TYPE_CHECKING:
    import cvxpy

_TOLERANCE = 1e-10  # that the conic solver is asked for, relative
_AT_ONCE = 1 << 20  # numbers of a slab


def read_only(array: np.ndarray) -> np.ndarray:
    """The array itself, which can no longer be written to."""
    array.setflags(write=False)
    return array


def scattered_bits(values: np.ndarray) -> np.ndarray:
    """64-bit whole numbers scattered over all of these, one to one, uint64 (SplitMix64)."""
    mixed = values.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def distinct_rows(columns: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """First position of each distinct row of columns, in order, and each row's index among them.

    Floats are the same if their bits are, so 0 and −0 are two; but all NaN are one.
    """
    bits = [
        np.where(np.isnan(column), np.nan, column).view(np.int64)
        if column.dtype == float
        else column.astype(np.int64)
        for column in columns
    ]
    keys = np.zeros(len(bits[0]), dtype=np.uint64)
    for column in bits:
        keys = scattered_bits(keys + column.view(np.uint64))
    first, of_rows = _distinct(keys)
    if any(np.any(column[first][of_rows] != column) for column in bits):
        # Two rows with one key, as somebody could make them.
        rows = np.column_stack(bits).view(f"V{8 * len(bits)}").ravel().tolist()
        numbers = {row: number for number, row in enumerate(dict.fromkeys(rows))}
        return _distinct(np.array([numbers[row] for row in rows]))
    return first, of_rows


def _distinct(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`distinct_rows` of one column."""
    if not len(keys):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    order = np.argsort(keys)  # a stable one would take five times as long
    is_new = np.append(True, np.diff(keys[order]) != 0)
    first = np.minimum.reduceat(order, np.flatnonzero(is_new))
    by_first = np.argsort(first)
    numbers = np.empty(len(first), dtype=np.int64)
    numbers[by_first] = np.arange(len(first))
    of_rows = np.empty(len(keys), dtype=np.int64)
    of_rows[order] = numbers[np.cumsum(is_new) - 1]
    return first[by_first], of_rows


def normal_quantile(confidence: float) -> float:
    """z with P(|N(0,1)| ≤ z) = confidence; `WorkloadError` unless 0 < confidence < 1."""
    if not 0 < confidence < 1:
        raise WorkloadError(
            f"The confidence must lie between 0 and 1, got {confidence}; 0.95 is usual."
        )
    # Here, as `rpexplore --help` would load it for nothing.
    from scipy.special import ndtri

    return float(-ndtri((1 - confidence) / 2))


def smallest_value(problem: "cvxpy.Problem", *, within: float) -> float | None:
    """The optimal value of a problem, found to a relative accuracy of `within` at least.

    None if the solver did not get there. The values of the variables and of the constraints' dual
    variables are then in the problem. Its numbers should be near 1.
    """
    import cvxpy
    from cvxpy.error import DCPError

    names = ("tol_gap_abs", "tol_gap_rel", "tol_feas")
    reduced: dict[str, Any] = {f"reduced_{name}": within for name in names}
    with warnings.catch_warnings():
        # "The solution may be inaccurate": by no more than `within`, or it is not taken.
        warnings.simplefilter("ignore", UserWarning)
        # Asked for too much it may lose its way; asked for enough, it stops before.
        for tolerance in (min(_TOLERANCE, within), within):
            options = dict.fromkeys(names, tolerance) | reduced
            try:
                value = problem.solve(solver=cvxpy.CLARABEL, **options)
            except (DCPError, cvxpy.SolverError, ValueError):
                continue
            if problem.status in (cvxpy.OPTIMAL, cvxpy.OPTIMAL_INACCURATE):
                return float(value)  # pyright: ignore[reportArgumentType]
    return None


def matrix_along(matrix: np.ndarray, values: np.ndarray, axis: int) -> np.ndarray:
    """matrix · values along an axis, which then has an entry for each row of the matrix."""
    axis %= values.ndim

    def apply(part: np.ndarray) -> np.ndarray:
        return np.moveaxis(np.tensordot(matrix, part, (1, axis)), 0, axis)

    return in_slabs(apply, values, axis)


def in_slabs(
    apply: Callable[[np.ndarray], np.ndarray], values: np.ndarray, axis: int
) -> np.ndarray:
    """Apply a function to an array along an axis, slab by slab of another axis.

    So it takes no more memory than the result and little beside. The function may change the length
    of the axis.
    """
    axis %= values.ndim
    other = 0 if axis else values.ndim - 1
    step = max(1, _AT_ONCE * values.shape[other] // max(values.size, 1))
    if axis == other or step >= values.shape[other]:
        return apply(values)
    result = np.empty(0)
    for start in range(0, values.shape[other], step):
        slab = (*(slice(None),) * other, slice(start, start + step))
        part = apply(values[slab])
        if not start:
            shape = list(values.shape)
            shape[axis] = part.shape[axis]
            result = np.empty(shape, part.dtype)
        result[slab] = part
    return result
