"""Shrinkage of measured residuals: how much of each is more than noise, learned from all.

A cell's deviation from its baseline e is taken for normal with variance τ e, the noise has variance
v. τ lies on a grid whose weights come from all tables of one order (docs/mathematics.md §13.3).
"""

from collections.abc import Sequence
from functools import reduce

import numpy as np

SCALES = np.concatenate([[0.0], 10.0 ** np.arange(-3, 4.51, 0.5)])
"""τ, in counts: 0 if the baseline is right; 10^4.5 where it is far off."""

# Before any table was seen: a tenth of them needs nothing, τ is near 0.3, and anything may be.
_FIRST = np.concatenate([[0.1], np.exp(-0.5 * (np.log10(SCALES[1:]) + 0.5) ** 2) + 3e-4])
FIRST_WEIGHTS = _FIRST / _FIRST.sum()
_SMALLEST_MEANT = 10.0**-0.25  # of one of `SCALES`: the smallest τ that it is the nearest to
_PSEUDO_TABLES = 4.0  # that the first weights count as
_ROUNDS = 60  # of expectation and maximisation
_VISIBLE = 1e-2  # the largest τ e over v in a cell that still tells something
_SMALLEST_WEIGHT = 1e-3
_LOWEST = 1e-3  # of the baseline, to which a cell may fall
_NEWTON_STEPS = 8


def log_evidence(
    baseline: np.ndarray,
    residual: np.ndarray,
    variance: float | np.ndarray,
    degrees_of_freedom_per_cell: float,
) -> np.ndarray:
    """Of each of `SCALES`, for a residual measured beyond its baseline; −inf where impossible."""
    variances = np.broadcast_to(np.asarray(variance, dtype=np.float32), baseline.shape)
    visible = baseline * SCALES[-1] > _VISIBLE * variances
    expected = baseline[visible].astype(np.float32)
    squares = residual[visible].astype(np.float32) ** 2
    noise = variances[visible]
    result = np.full(len(SCALES), -np.inf)
    # Few large cells hide noise of any size: a τ that no counts could have may fit it best.
    for i in np.flatnonzero(largest_scale(baseline) >= _SMALLEST_MEANT * SCALES):
        scale = np.float32(SCALES[i])
        spread = scale * expected + noise
        # Summed in double precision: a table may have millions of cells.
        logs = np.log(spread / noise).sum(dtype=float)
        result[i] = -0.5 * (logs + (squares / spread).sum(dtype=float))
    return result * degrees_of_freedom_per_cell


def largest_scale(baseline: np.ndarray) -> float:
    """The largest τ of counts that are distributed around a baseline and are at least 0.

    Counts x with mean e and variances τe have E Σ x² = Σ e² + τN. No count is above any of the
    sums that it is in, which are the baseline's; so Σ x² is largest where the cells whose smallest
    sum is largest are filled with it, one after another, until there are N.

    baseline: float[n_1, …, n_k] of two attributes or more, above 0
    """
    axes = range(baseline.ndim)
    most = reduce(np.minimum, (baseline.sum(axis=axis, keepdims=True) for axis in axes)).ravel()
    most.sort()
    descending, total = most[::-1], float(baseline.sum(dtype=float))
    sums = np.cumsum(descending, dtype=float)
    full = int(np.searchsorted(sums, total))
    rest = total - (float(sums[full - 1]) if full else 0.0)
    largest = float(np.square(descending[:full], dtype=float).sum()) + rest**2
    return max(largest - float(np.square(baseline).sum(dtype=float)), 0.0) / total


def learned_weights(evidence: Sequence[np.ndarray]) -> np.ndarray:
    """The weight of each of `SCALES` among tables with this log evidence, and `FIRST_WEIGHTS`."""
    if not len(evidence):
        return FIRST_WEIGHTS
    logs = np.array(evidence)
    likelihood = np.exp(logs - logs.max(axis=1, keepdims=True))
    weights = FIRST_WEIGHTS
    for _ in range(_ROUNDS):
        posterior = likelihood * weights
        posterior /= posterior.sum(axis=1, keepdims=True)
        weights = (posterior.sum(axis=0) + _PSEUDO_TABLES * FIRST_WEIGHTS) / (
            len(logs) + _PSEUDO_TABLES
        )
    return weights


def posterior_weights(evidence: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The weight of each of `SCALES` for one table."""
    posterior = np.exp(evidence - evidence.max()) * weights
    return posterior / posterior.sum()


def kept_share(
    baseline: np.ndarray, variance: float | np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Σ p(τ) τe/(τe + v) of every cell, in the baseline's type."""
    share = np.zeros_like(baseline)
    noise = np.asarray(variance, dtype=baseline.dtype)
    for scale, weight in zip(SCALES.tolist(), weights.tolist(), strict=True):
        if weight > _SMALLEST_WEIGHT and scale > 0:
            spread = baseline * baseline.dtype.type(scale)
            share += baseline.dtype.type(weight) * (spread / (spread + noise))
    return share


def shrunk(
    baseline: np.ndarray, kept: np.ndarray, residual: np.ndarray, variance: float | np.ndarray
) -> np.ndarray:
    """The baseline with what is kept of the residual: its total, no cell below a share of it.

    The nearest such table to the posterior mean m = e + k r, measured by the posterior variances
    k v: max(m − λ k v, floor), with λ from the total by Newton's method.
    """
    mean = baseline + kept * residual
    spread = kept * np.asarray(variance, dtype=baseline.dtype)
    lowest = baseline * baseline.dtype.type(_LOWEST)
    total, multiplier = float(baseline.sum()), 0.0
    for _ in range(_NEWTON_STEPS):
        moved = mean - baseline.dtype.type(multiplier) * spread
        above = moved > lowest
        excess = float(np.where(above, moved, lowest).sum()) - total
        slope = float(spread[above].sum())
        if slope <= 0 or abs(excess) < 1e-4 * total:
            break
        multiplier += excess / slope
    return np.maximum(mean - baseline.dtype.type(multiplier) * spread, lowest)


def remaining_variance(
    baseline: np.ndarray, variance: float | np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Σ p(τ) τe v/(τe + v) of every cell: what is left to be known."""
    return kept_share(baseline, variance, weights) * np.asarray(variance)
