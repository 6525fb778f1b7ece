"""One-way tables: posterior means under a Gamma prior whose shape the tables tell.

A count x of mean m is taken for Gamma distributed with shape a; seen is y = x + noise of variance
s. Evidence and moments are integrals in one dimension (docs/mathematics.md §13.1).
"""

from dataclasses import dataclass
from math import lgamma, log

import numpy as np

from rpexplore.estimation.measured_residuals import MeasuredResiduals

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


def one_way(measured: MeasuredResiduals) -> OneWay:
    """The tables of all attributes that have a residual of their own."""
    total = measured.total
    attributes = [attribute for (attribute,) in measured.of_order(1)]
    seen, noise, even = {}, {}, {}
    for attribute in attributes:
        spread = total * measured.map.shares(attribute)
        seen[attribute] = measured.contributions[(attribute,)] + spread
        noise[attribute] = _noise(measured, attribute)
        even[attribute] = np.full(len(seen[attribute]), total / len(seen[attribute]))
    evidence = {
        attribute: _evidence(seen[attribute], noise[attribute], even[attribute])
        for attribute in attributes
    }
    of_all = sum(evidence.values(), np.zeros(len(SHAPES)))
    tables, variances, kept = {}, {}, {}
    for attribute in attributes:
        own, means = evidence[attribute], even[attribute]
        # Few values tell little of a shape: other attributes count as one more of the same kind.
        others = (of_all - own) / max(len(attributes) - 1, 1)
        shape = SHAPES[int(np.argmax(own + others))]
        if _FEWEST_VALUES <= len(means) <= _MOST_VALUES:
            trend, widest = _trend(seen[attribute], noise[attribute], total)
            with_trend = _evidence(seen[attribute], noise[attribute], trend, widest)
            if with_trend.max() > own.max() + _MORE_EVIDENCE:
                means = trend
                shape = np.minimum(SHAPES[int(np.argmax(with_trend))], widest)
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


def _noise(measured: MeasuredResiduals, attribute: int) -> np.ndarray:
    """Variances of the cells; without a strategy σ², as the total binds them together again."""
    if attribute in measured.strategies:
        return np.asarray(measured.cell_variance((attribute,)))
    return np.full(int(measured.sizes[attribute]), measured.variances[(attribute,)])


def _evidence(
    seen: np.ndarray, noise: np.ndarray, means: np.ndarray, own: float | np.ndarray = np.inf
) -> np.ndarray:
    """Log evidence of each of `SHAPES`, where a cell's own shape is not smaller."""
    shapes = [np.minimum(shape, own) for shape in SHAPES]
    return np.array([posterior(seen, noise, means, shape).log_evidence for shape in shapes])


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
