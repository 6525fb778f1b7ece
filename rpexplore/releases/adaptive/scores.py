"""Scores of the tables that can be selected: how badly the present estimates fit the records.

Private, and exact: whole numbers in int64 throughout, so that a record more or less changes the
score of a table by its weight at most (`docs/mathematics.md` §17.1). Weights, allowances and
estimates must be known without the records, from the workload and from what has been released.
"""

from collections.abc import Iterable

import numpy as np

from rpexplore.errors import ReleaseError

# weight * (distance + allowance) < 2^20 (2 * 2^41 + 2^41) < 2^63: no score overflows.
LARGEST_WEIGHT = 2**20
LARGEST_TOTAL = 2**41
"""Records, sums of the absolute values of an estimated table, and allowances are below this."""


def scores(distances: np.ndarray, weights: np.ndarray, allowances: np.ndarray) -> np.ndarray:
    """weight * (distance - allowance) of each candidate.

    Args:
        distances: `l1_distances`, int64[n].
        weights: int64[n], from 1 to `LARGEST_WEIGHT`; free of the records.
        allowances: int64[n], from 0 on: the error that measuring would leave; free of the records.

    Returns:
        int64[n], with the `sensitivity` of these weights.

    Raises:
        ReleaseError: weights or allowances that are no such numbers.
    """
    _check_whole(weights, "The weights", 1, LARGEST_WEIGHT)
    _check_whole(allowances, "The allowances", 0, LARGEST_TOTAL - 1)
    return weights * (distances - allowances)


def sensitivity(weights: np.ndarray) -> int:
    """The most by which a record more or less changes any of these candidates' scores."""
    return int(weights.max())


def l1_distances(counts: Iterable[np.ndarray], estimates: Iterable[np.ndarray]) -> np.ndarray:
    """Σ |exact count - estimate| of each table, estimates being rounded to whole numbers before.

    Args:
        counts: the exact tables, int64.
        estimates: an array of the same shape for each of them, of released values only.

    Returns:
        int64, one number a table. A record more or less changes each by exactly 1.

    Raises:
        ReleaseError: a table too large for exact sums, or an estimate that is no number.
    """
    pairs = zip(counts, estimates, strict=True)
    return np.array([_l1_distance(exact, estimate) for exact, estimate in pairs], dtype=np.int64)


def _l1_distance(counts: np.ndarray, estimate: np.ndarray) -> int:
    if counts.dtype != np.int64 or counts.shape != estimate.shape:
        raise ReleaseError(
            "An exact table must be an array of int64 in the shape of its estimate, got "
            f"{counts.dtype} in shape {counts.shape} for an estimate in shape {estimate.shape}; "
            "count it, and estimate the same table."
        )
    whole = np.rint(estimate)
    size = np.abs(whole).sum(dtype=np.float64)  # exact, as a sum of whole numbers below 2^53
    if not size < LARGEST_TOTAL:
        raise ReleaseError(
            f"The absolute values of an estimated table must add up to less than {LARGEST_TOTAL:,},"
            f" got {size:.3g}; use a larger budget, or tables with fewer cells."
        )
    distance = int(np.abs(counts - whole.astype(np.int64)).sum())
    # The value stays unsaid: it was read from the records.
    if counts.min(initial=0) < 0 or distance >= 2 * LARGEST_TOTAL:
        raise ReleaseError(
            f"Exact counts must be 0 or more and add up to less than {LARGEST_TOTAL:,}; release "
            "fewer records at a time."
        )
    return distance


def _check_whole(numbers: np.ndarray, name: str, least: int, most: int) -> None:
    if numbers.dtype != np.int64:
        raise ReleaseError(
            f"{name} of the candidates must be int64, got {numbers.dtype}; round them to whole "
            "numbers, so that the sensitivity is exact."
        )
    outside = numbers[(numbers < least) | (numbers > most)]
    if len(outside):
        raise ReleaseError(
            f"{name} of the candidates must be from {least} to {most:,}, got {outside[0]:,}; "
            "scale them."
        )
