"""Model-based errors of smooth tables: posterior variances, and a rehearsal of them."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaincinv

from rpexplore.common.numbers import normal_quantile
from rpexplore.common.seeded_numbers import SeededNumbers
from rpexplore.domain.domain import AttributeIndices, subsets
from rpexplore.estimation.hidden import free_counts
from rpexplore.estimation.one_way import OneWay, remaining_variance
from rpexplore.estimation.pairs import FactorModel
from rpexplore.estimation.table_map import ArrayStore, ContributionArrays, MeasuredResiduals
from rpexplore.planning.mechanism.strategy import Strategy

# The relative error of a cell is that of all its subtables together: what each adds of its own,
# taken for independent (docs/mathematics.md §13.6).


_SMALLEST_COUNT = 1e-9  # whose relative error is asked for
_SMALLEST_VARIANCE = 1e-9
_FEWEST_EXPECTED = 1e-3  # counts: no cell is known to be empty
_CONFIDENCE = 0.95  # of intervals
_LOG_SHAPES = np.linspace(np.log(1e-2), np.log(1e6), 400)  # outside 1 but for 0.1 %


@dataclass(frozen=True)
class ErrorModel:
    """The inputs for the errors of all tables.

    weights  of `SCALES`, for each table of two attributes and more
    """

    measured: MeasuredResiduals
    low: OneWay
    model: FactorModel | None
    weights: Mapping[AttributeIndices, np.ndarray]

    def standard_errors(
        self, attributes: AttributeIndices, tables: Mapping[AttributeIndices, np.ndarray]
    ) -> np.ndarray:
        """Of each cell, as the model has them.

        tables: the smooth tables of all their subsets
        """
        if not attributes:
            return np.array(np.sqrt(self.measured.variances[()]))
        table = tables[attributes]
        variance = self._stated_variance(attributes, table)
        for subset in subsets(attributes):
            if subset and subset != attributes:
                missing = [axis for axis, i in enumerate(attributes) if i not in subset]
                own, part = self._stated_variance(subset, tables[subset]), tables[subset]
                relative = own / np.maximum(part, _SMALLEST_COUNT) ** 2
                variance = variance + table**2 * np.expand_dims(relative, missing)
        return np.sqrt(variance)

    def _stated_variance(self, attributes: AttributeIndices, table: np.ndarray) -> np.ndarray:
        """`own_variance`; of a pair, of no cell as if its count were below that of independence.

        Noise can make a count of nearly 0 of a cell with records, and then says nothing of it.
        """
        if len(attributes) != 2:
            return self.own_variance(attributes, table)
        rows, columns = table.sum(axis=1, keepdims=True), table.sum(axis=0, keepdims=True)
        independent = rows * columns / max(float(rows.sum()), _SMALLEST_COUNT)
        return self.own_variance(attributes, np.maximum(table, independent))

    def errors_after(
        self,
        attributes: AttributeIndices,
        tables: Mapping[AttributeIndices, np.ndarray],
        variance: float,
    ) -> np.ndarray:
        """`standard_errors` when the residual of the table is measured once more, with this σ²."""
        own = np.maximum(self.own_variance(attributes, tables[attributes]), _SMALLEST_VARIANCE)
        new = variance * self.measured.degrees_of_freedom_per_cell(attributes)
        before = self.standard_errors(attributes, tables) ** 2
        return np.sqrt(np.maximum(before - own + 1 / (1 / own + 1 / new), 0.0))

    def hidden_variance(
        self,
        attributes: AttributeIndices,
        tables: Mapping[AttributeIndices, np.ndarray],
        scales: Mapping[AttributeIndices, float],
    ) -> np.ndarray:
        """Of each cell, what `scales` (τ of each subset) say that its residuals may hide."""
        table = np.maximum(tables[attributes], _SMALLEST_COUNT)
        relative = np.zeros_like(table)
        for subset in subsets(attributes):
            if subset:
                missing = [axis for axis, i in enumerate(attributes) if i not in subset]
                part = np.maximum(tables[subset], _SMALLEST_COUNT)
                hidden = scales[subset] * free_counts(part) / part**2
                relative = relative + np.expand_dims(hidden, missing)
        return table**2 * relative

    def unbiased_errors(self, attributes: AttributeIndices) -> np.ndarray:
        """The standard error of each cell of the unbiased table."""
        variance: float | np.ndarray = 0.0
        for subset in subsets(attributes):
            spread = np.asarray(self.measured.cell_variance(subset))
            spread = spread.reshape(spread.shape or (1,) * len(subset))
            missing = [axis for axis, index in enumerate(attributes) if index not in subset]
            spread = np.expand_dims(spread, missing)
            for axis in missing:
                shares = self.measured.map.shares(attributes[axis])
                spread = spread * shares.reshape(-1, *(1,) * (len(attributes) - 1 - axis)) ** 2
            variance = variance + spread
        return np.sqrt(np.broadcast_to(variance, self.measured.shape(attributes)))

    def own_variance(self, attributes: AttributeIndices, table: np.ndarray) -> np.ndarray:
        """Of each cell, given the tables of one attribute less."""
        if len(attributes) == 1:
            share = table / self.measured.total
            return self.low.variances[attributes[0]] + share**2 * self.measured.variances[()]
        noise = self.measured.cell_variance(attributes)
        expected = np.maximum(table, _FEWEST_EXPECTED)
        remaining = remaining_variance(expected, noise, self.weights[attributes])
        if len(attributes) > 2 or self.model is None:
            return remaining
        of_model = np.maximum(self.model.variance(*attributes), _SMALLEST_VARIANCE)
        return np.maximum(1 / (1 / of_model + 1 / noise), remaining)


def skewed_errors(counts: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Errors of which ± 1.96 reach as far up as a count of this mean and variance: float64, shaped.

    A count is not below 0, so that nearly all that is far from its mean is above it. Of Gamma
    distributed counts 2.5 % are above the interval; the errors are at least the root of the
    variance, and come near to it where that is small beside the count (docs/mathematics.md §13.6).

    counts: float64, none below 0
    """
    roots = np.sqrt(variances)
    log_shapes = 2 * np.log(
        np.maximum(counts, _SMALLEST_COUNT) / np.maximum(roots, _SMALLEST_VARIANCE)
    )
    return roots * np.interp(log_shapes, _LOG_SHAPES, _FACTORS_OF_SHAPES)


def _factors_of_shapes() -> np.ndarray:
    """By shape: how far above the mean the 97.5 % quantile is, over 1.96 standard deviations."""
    shapes = np.exp(_LOG_SHAPES)
    above = gammaincinv(shapes, (1 + _CONFIDENCE) / 2) - shapes
    return np.maximum(above / (normal_quantile(_CONFIDENCE) * np.sqrt(shapes)), 1.0)


_FACTORS_OF_SHAPES = _factors_of_shapes()


# ---- Rehearsal of the model's errors: a possible truth is drawn, measured and fitted anew.
#
# A parametric bootstrap. The truth is the smooth tables with deviations as large as the model says
# that there may be: the smooth tables themselves would be easier to guess than true counts. How far
# the new tables are from it, in the model's own standard errors, tells by which factor these are
# too short or too long (docs/mathematics.md §13.6).


FEWEST_COUNTS = 20
"""Of a cell that counts in the rehearsal: below, intervals around a count of nearly 0 differ."""

MOST_TABLES = 150
"""Of one order, whose cells are looked at."""

_MOST_ATTRIBUTES = 16  # that are rehearsed; more tell the same
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
            counts = measured.where_possible(subset, np.maximum(smooth + deviation, 0.0))
            truth[subset] = measured.map.decomposed(subset, counts)
        noise = normal_noise(numbers, subset, shape, variance, measured.strategies)
        noisy[subset] = truth[subset] + noise
    variances = {subset: measured.variances[subset] for subset in family}
    return truth, MeasuredResiduals(
        noisy, variances, measured.sizes, measured.strategies, measured.zeros
    )


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
            decoding = strategy.within(subset).decoding
            decoded = np.tensordot(decoding, coordinates, axes=(1, axis))
            noise = np.moveaxis(decoded, 0, axis)
    return noise * variance**0.5
