"""Rehearsal of the model's errors: the smooth tables taken for the truth, measured and fitted anew.

A parametric bootstrap. How far the new tables are from the old ones, in the model's own standard
errors, tells by which factor these are too short or too long (docs/mathematics.md §13.6).
"""

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np

from rpexplore.common.numerics import normal_quantile
from rpexplore.domain.domain import AttributeIndices
from rpexplore.planning.mechanism.strategy import Strategy
from rpexplore.postprocessing.seeded_numbers import SeededNumbers
from rpexplore.postprocessing.smooth.measured_residuals import MeasuredResiduals
from rpexplore.postprocessing.table_map import ContributionArrays

FEWEST_COUNTS = 20
"""Of a cell that counts in the rehearsal: below, intervals around a count of nearly 0 differ."""

MOST_TABLES = 150
"""Of one order, whose cells are looked at."""

# Smooth tables are an easier truth than the true counts: measured on the two data sets of
# docs/mathematics.md §13.6, the factor that was needed was 1.0 to 1.7 times the rehearsed one.
_HARDER_TRUTH = 1.25

_MOST_ATTRIBUTES = 16  # that are rehearsed; more tell the same
_CONFIDENCE = 0.95


def rehearsed_release(
    measured: MeasuredResiduals, contributions: ContributionArrays
) -> MeasuredResiduals:
    """What could have been measured if these contributions were the truth, with the same noise.

    Of at most `_MOST_ATTRIBUTES` attributes. The noise is normal, and follows from what was
    measured: the same release gives the same errors. This is no privacy noise, as nothing but
    noisy figures goes into it.
    """
    used = sorted({index for subset in measured.map.tables for index in subset})
    kept = set(used[:: -(-len(used) // _MOST_ATTRIBUTES)] if used else [])
    family = [subset for subset in measured.map.family if kept.issuperset(subset)]
    digest = hashlib.sha256()
    for subset in family:
        digest.update(np.ascontiguousarray(measured.contributions[subset]).tobytes())
    numbers = SeededNumbers(digest.digest())

    def noise_of(subset: AttributeIndices) -> np.ndarray:
        shape, variance = measured.shape(subset), measured.variances[subset]
        return normal_noise(numbers, subset, shape, variance, measured.strategies)

    return MeasuredResiduals(
        {subset: contributions[subset] + noise_of(subset) for subset in family},
        {subset: measured.variances[subset] for subset in family},
        measured.sizes,
        measured.strategies,
    )


def error_factor(ratios: Sequence[np.ndarray]) -> float:
    """By which a model's standard errors are multiplied; ratios: |error| over it, of many cells."""
    together = np.concatenate([np.zeros(0), *ratios])
    if not len(together):
        return _HARDER_TRUTH
    rehearsed = float(np.quantile(together, _CONFIDENCE)) / normal_quantile(_CONFIDENCE)
    # What looks too long is believed by half only, on the scale of logarithms.
    return _HARDER_TRUTH * max(rehearsed, rehearsed**0.5)


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
