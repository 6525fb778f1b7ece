"""Rehearsal of the model's errors: a possible truth is drawn, measured and fitted anew.

A parametric bootstrap. The truth is the smooth tables with deviations as large as the model says
that there may be: the smooth tables themselves would be easier to guess than true counts. How far
the new tables are from it, in the model's own standard errors, tells by which factor these are too
short or too long (docs/mathematics.md §13.6).
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from rpexplore.common.numerics import normal_quantile
from rpexplore.domain.domain import AttributeIndices
from rpexplore.estimation.array_store import ArrayStore
from rpexplore.estimation.measured_residuals import MeasuredResiduals
from rpexplore.estimation.seeded_numbers import SeededNumbers
from rpexplore.estimation.table_map import ContributionArrays
from rpexplore.planning.mechanism.strategy import Strategy

FEWEST_COUNTS = 20
"""Of a cell that counts in the rehearsal: below, intervals around a count of nearly 0 differ."""

MOST_TABLES = 150
"""Of one order, whose cells are looked at."""

_MOST_ATTRIBUTES = 16  # that are rehearsed; more tell the same
_CONFIDENCE = 0.95
_LARGEST_MOVE = 1.12  # of a factor, by its second reading
_PSEUDO_CELLS = 200  # as which a model that is right counts: few cells say little of a quantile


def rehearsed_release(
    measured: MeasuredResiduals,
    table: Callable[[AttributeIndices], np.ndarray],
    own_variance: Callable[[AttributeIndices, np.ndarray], np.ndarray],
) -> tuple[ContributionArrays, MeasuredResiduals]:
    """Contributions that could be the true ones, and what would be measured of them.

    Of at most `_MOST_ATTRIBUTES` attributes, with the same noise as was measured. All numbers are
    normal and follow from what was measured: the same release gives the same errors. This is no
    privacy noise, as nothing but noisy figures goes into it.

    Args:
        table: The smooth table of some attributes.
        own_variance: Of a smooth table, the variance of its cells given its own subsets.
    """
    used = sorted({index for subset in measured.map.tables for index in subset})
    kept = set(used[:: -(-len(used) // _MOST_ATTRIBUTES)] if used else [])
    family = [subset for subset in measured.map.family if kept.issuperset(subset)]
    digest = hashlib.sha256()
    for subset in family:
        digest.update(np.ascontiguousarray(measured.contributions[subset]).tobytes())
    numbers = SeededNumbers(digest.digest())
    truth, noisy = ArrayStore({(): np.array(measured.total)}), ArrayStore()
    for subset in family:
        shape, variance = measured.shape(subset), measured.variances[subset]
        if subset:
            smooth = table(subset)
            deviation = np.sqrt(own_variance(subset, smooth)) * numbers.normals(
                smooth.size
            ).reshape(shape)
            truth[subset] = measured.map.decomposed(subset, np.maximum(smooth + deviation, 0.0))
        noise = normal_noise(numbers, subset, shape, variance, measured.strategies)
        noisy[subset] = truth[subset] + noise
    variances = {subset: measured.variances[subset] for subset in family}
    return truth, MeasuredResiduals(noisy, variances, measured.sizes, measured.strategies)


def error_factor(ratios: Sequence[np.ndarray]) -> float:
    """By which a model's standard errors are multiplied; ratios: |error| over it, of many cells."""
    if_right = [normal_quantile((i + 0.5) / _PSEUDO_CELLS) for i in range(_PSEUDO_CELLS)]
    together = np.concatenate([if_right, *ratios])
    # By midpoints, as the pseudo cells are: without others the factor is 1.
    quantile = float(np.quantile(together, _CONFIDENCE, method="hazen"))
    return quantile / normal_quantile(_CONFIDENCE)


def pooled_factor(by_ours: float, by_rehearsal: float) -> float:
    """One factor for errors from two readings of one rehearsal.

    What the rehearsed tables are off is compared with the errors of the release's fit, and with
    those that the rehearsal's own fit states. These may be as wrong as the former, which is then
    put right; but they jump where that fit has learned other weights, so that the second reading
    moves the first by little at most: their geometric mean, as far as that is near.
    """
    return by_ours * min(max((by_rehearsal / by_ours) ** 0.5, 1 / _LARGEST_MOVE), _LARGEST_MOVE)


def normal_noise(
    numbers: SeededNumbers,
    subset: AttributeIndices,
    shape: Sequence[int],
    variance: float,
    strategies: Mapping[int, Strategy],
) -> np.ndarray:
    """Normal noise as in the contribution of a residual, float64, one axis an attribute.

    shape: how many values each attribute of `subset` has; variance: σ² of the residual
    """
    noise = numbers.normals(int(np.prod(shape))).reshape(shape)
    for axis, index in enumerate(subset):
        strategy = strategies.get(index)
        if strategy is None:
            noise = noise - noise.mean(axis=axis, keepdims=True)
        else:
            coordinates = np.take(noise, range(strategy.size - 1), axis)
            decoded = np.tensordot(strategy.decoding, coordinates, axes=(1, axis))
            noise = np.moveaxis(decoded, 0, axis)
    return noise * variance**0.5
