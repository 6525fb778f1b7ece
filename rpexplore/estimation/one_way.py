"""One-way tables, and the shrinkage of measured residuals, learned from all of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import lgamma, log

import numpy as np

from rpexplore.estimation.table_map import MeasuredResiduals

# ---- One-way tables: posterior means under a Gamma prior whose shape the tables tell.
#
# A count x of mean m is taken for Gamma distributed with shape a; seen is y = x + noise of variance
# s. Evidence and moments are integrals in one dimension (docs/mathematics.md §13.1).


SHAPES = (0.1, 0.15, 0.25, 0.4, 0.6, 1.0, 1.6, 3.0, 8.0)
"""Of the Gamma distributions that are tried: from a few large counts to nearly equal ones."""

_POINTS = 240  # of the quadrature: posterior means are right to 1e-3 of their standard deviation
_DEVIATIONS = 7  # how far from the seen value counts are looked for, in standard deviations
_CELLS_AT_ONCE = 4096
_SMALLEST_SHARE = 2e-6  # of the records in a cell: no count is taken for impossible
_BISECTIONS = 36

# Of the trend along the values of an attribute, in the order of the codebook.
_FEWEST_VALUES, _MOST_VALUES = 8, 1000  # the second because it takes n³ steps
_LENGTHS = (1 / 8, 1 / 3, 1.0)  # of correlation, as shares of the values
_TREND_VARIANCES = (0.1, 0.4, 1.6)  # in units of the squared mean count
_OWN_VARIANCES = (0.02, 0.1, 0.4)
_LOWEST_TREND = 0.03  # of the mean count
_MORE_EVIDENCE = 1.0  # in nats, that a trend must have to be taken


@dataclass(frozen=True)
class OneWay:
    """Smooth one-way tables that add up to the total.

    tables     by attribute: float64[n], above 0
    variances  of the cells, given the total
    kept       share of what was measured that was kept, on average over records
    """

    tables: dict[int, np.ndarray]
    variances: dict[int, np.ndarray]
    kept: dict[int, float]


@dataclass(frozen=True)
class Posterior:
    """Of independent counts seen with noise: log evidence of all, mean and variance of each."""

    log_evidence: float
    mean: np.ndarray
    variance: np.ndarray


def posterior(
    seen: np.ndarray, variances: np.ndarray, means: np.ndarray, shapes: float | np.ndarray
) -> Posterior:
    """Of counts that are Gamma distributed with these means and shapes; arrays float64[n]."""
    of_each = np.broadcast_to(shapes, seen.shape)
    parts = [
        _posterior(seen[chunk], variances[chunk], means[chunk], of_each[chunk])
        for start in range(0, len(seen), _CELLS_AT_ONCE)
        for chunk in [slice(start, start + _CELLS_AT_ONCE)]
    ]
    return Posterior(
        sum(part.log_evidence for part in parts),
        np.concatenate([part.mean for part in parts]),
        np.concatenate([part.variance for part in parts]),
    )


def _posterior(
    seen: np.ndarray, variances: np.ndarray, means: np.ndarray, shapes: np.ndarray
) -> Posterior:
    deviation, shape = np.sqrt(variances), shapes[:, None]
    low = np.maximum(seen - _DEVIATIONS * deviation, 0.0)[:, None]
    high = np.maximum(seen + _DEVIATIONS * deviation, 3 * deviation)[:, None]
    even = (np.arange(_POINTS) + 0.5) / _POINTS
    # Below shape 1 the density is singular at 0: as x = t^(1/shape) it is not.
    power = np.maximum(3.0, 1 / shape)
    counts = np.where(low == 0, high * even**power, low + (high - low) * even)
    widths = np.where(low == 0, high * power * even ** (power - 1), high - low) / _POINTS
    ratio = counts / means[:, None]
    logs = (
        -0.5 * ((seen[:, None] - counts) ** 2 / variances[:, None])
        + (shape - 1) * np.log(ratio)
        - shape * ratio
        + np.log(widths / means[:, None])
    )
    largest = logs.max(axis=1, keepdims=True)
    weights = np.exp(logs - largest)
    sums = weights.sum(axis=1)
    mean = (weights * counts).sum(axis=1) / sums
    variance = (weights * (counts - mean[:, None]) ** 2).sum(axis=1) / sums
    gammas = np.array([a * log(a) - lgamma(a) for a in shapes.tolist()])
    constants = gammas - 0.5 * np.log(2 * np.pi * variances)
    return Posterior(float((np.log(sums) + largest[:, 0] + constants).sum()), mean, variance)


def one_way(measured: MeasuredResiduals, shapes: Sequence[float] = SHAPES) -> OneWay:
    """The tables of all attributes that have a residual of their own.

    shapes: of the Gamma distributions that are tried
    """
    total = measured.total
    attributes = [attribute for (attribute,) in measured.of_order(1)]
    seen, noise, even = {}, {}, {}
    for attribute in attributes:
        seen[attribute], noise[attribute], even[attribute] = _seen(measured, attribute)
    evidence = {
        attribute: _evidence(seen[attribute], noise[attribute], even[attribute], shapes)
        for attribute in attributes
    }
    of_all = sum(evidence.values(), np.zeros(len(shapes)))
    tables, variances, kept = {}, {}, {}
    for attribute in attributes:
        own, means = evidence[attribute], even[attribute]
        # Few values tell little of a shape: other attributes count as one more of the same kind.
        others = (of_all - own) / max(len(attributes) - 1, 1)
        shape = shapes[int(np.argmax(own + others))]
        if _FEWEST_VALUES <= len(means) <= _MOST_VALUES:
            trend, widest = _trend(seen[attribute], noise[attribute], total)
            with_trend = _evidence(seen[attribute], noise[attribute], trend, shapes, widest)
            if with_trend.max() > own.max() + _MORE_EVIDENCE:
                means = trend
                shape = np.minimum(shapes[int(np.argmax(with_trend))], widest)
        result = _adding_up(seen[attribute], noise[attribute], means, shape, total)
        table = np.maximum(result.mean, _SMALLEST_SHARE * total)
        tables[attribute] = table * (total / table.sum())
        variances[attribute] = result.variance
        if attribute not in measured.strategies:  # whose noise is not bound together by `_noise`
            # Variance of independent normal counts once their sum is known.
            variances[attribute] = result.variance * (1 - result.variance / result.variance.sum())
        # The derivative of a posterior mean by what was seen is its variance over the noise's.
        share = np.minimum(result.variance / noise[attribute], 1.0)
        kept[attribute] = float(share @ tables[attribute] / total)
    return OneWay(tables, variances, kept)


def evidence_of_shapes(
    measured: MeasuredResiduals, attribute: int, shapes: Sequence[float]
) -> np.ndarray:
    """Log evidence of each shape for the counts of an attribute around even ones: float64[m]."""
    return _evidence(*_seen(measured, attribute), shapes)


def _seen(measured: MeasuredResiduals, attribute: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The counts of an attribute's values as measured, their noise, and even counts."""
    seen = measured.contributions[(attribute,)] + measured.total * measured.map.shares(attribute)
    return seen, _noise(measured, attribute), np.full(len(seen), measured.total / len(seen))


def _noise(measured: MeasuredResiduals, attribute: int) -> np.ndarray:
    """Variances of the cells; without a strategy σ², as the total binds them together again."""
    if attribute in measured.strategies:
        return np.asarray(measured.cell_variance((attribute,)))
    return np.full(int(measured.sizes[attribute]), measured.variances[(attribute,)])


def _evidence(
    seen: np.ndarray,
    noise: np.ndarray,
    means: np.ndarray,
    shapes: Sequence[float],
    own: float | np.ndarray = np.inf,
) -> np.ndarray:
    """Log evidence of each of these shapes, where a cell's own shape is not smaller."""
    at_most = [np.minimum(shape, own) for shape in shapes]
    return np.array([posterior(seen, noise, means, shape).log_evidence for shape in at_most])


def _adding_up(
    seen: np.ndarray, noise: np.ndarray, means: np.ndarray, shape: float | np.ndarray, total: float
) -> Posterior:
    """The posterior of what was seen, shifted evenly so that the means add up to the total."""
    width = 8 * float(np.sqrt(noise.max())) + total
    low, high = -width, width
    result = posterior(seen, noise, means, shape)
    for _ in range(_BISECTIONS):
        shift = (low + high) / 2
        result = posterior(seen + shift, noise, means, shape)
        if result.mean.sum() < total:
            low = shift
        else:
            high = shift
    return result


def _trend(seen: np.ndarray, noise: np.ndarray, total: float) -> tuple[np.ndarray, np.ndarray]:
    """Each count as a Gaussian process predicts it from all others, so that comparing is fair.

    And the shape of a Gamma distribution that is as wide as the prediction is uncertain. The
    process's covariance m² (f exp(−|c − c′|/ℓ) + t I) is the one of most evidence; the noise is
    taken to be alike in all cells.
    """
    n = len(seen)
    mean = total / n
    off, variance = seen - mean, float(noise.mean())
    best, prediction, uncertainty = -np.inf, seen, noise
    for length in _LENGTHS:
        distances = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
        eigenvalues, vectors = np.linalg.eigh(np.exp(-distances / (length * n)))
        along = vectors.T @ off
        for trend in _TREND_VARIANCES:
            for own in _OWN_VARIANCES:
                spectrum = mean**2 * (trend * eigenvalues + own) + variance
                evidence = -0.5 * float(np.sum(along**2 / spectrum + np.log(spectrum)))
                if evidence > best:
                    inverse = (vectors**2) @ (1 / spectrum)
                    best = evidence
                    prediction = seen - (vectors @ (along / spectrum)) / inverse
                    uncertainty = 1 / inverse - variance
    means = np.maximum(prediction, _LOWEST_TREND * mean)
    return means, np.maximum(means**2 / uncertainty, SHAPES[0])


# ---- Shrinkage of measured residuals: how much of each is more than noise, learned from all.
#
# A cell's deviation from its baseline e is taken for normal with variance τ e, the noise has
# variance v. τ lies on a grid whose weights come from all tables of one order (docs/mathematics.md
# §13.3).


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


def learned_weights(
    evidence: Sequence[np.ndarray] | np.ndarray, first: np.ndarray = FIRST_WEIGHTS
) -> np.ndarray:
    """The weight of each scale among tables with this log evidence, and the first weights.

    By expectation and maximisation; the first weights count as some tables.
    """
    if not len(evidence):
        return first
    logs, weights = np.array(evidence), first
    for _ in range(_ROUNDS):
        posterior = posterior_weights(logs, weights)
        weights = (posterior.sum(axis=0) + _PSEUDO_TABLES * first) / (len(logs) + _PSEUDO_TABLES)
    return weights


def posterior_weights(evidence: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The weight of each scale for a table, or for one table a row, with this log evidence."""
    posterior = np.exp(evidence - evidence.max(axis=-1, keepdims=True)) * weights
    return posterior / posterior.sum(axis=-1, keepdims=True)


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
