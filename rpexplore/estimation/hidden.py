"""What the model cannot see of a table, bounded by how far the table is from its own measurement.

A residual is measured with known noise, whatever the model says. So the distance between what was
measured and what the smooth tables have of it tells how wrong they are, within what chance can hide
(docs/mathematics.md §13.10).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri, ndtr

from rpexplore.common.numbers import normal_quantile
from rpexplore.domain.domain import AttributeIndices
from rpexplore.estimation.one_way import learned_weights, posterior_weights
from rpexplore.estimation.table_map import ArrayStore, ContributionArrays, MeasuredResiduals

_SCALES = np.concatenate([[0.0], 10.0 ** np.arange(-3, 4.51, 0.125)])
# Before any table was seen: most of them hide nothing, and the others anything, with heavy tails.
_TAIL = 10.0 ** (-0.5 * np.abs(np.log10(_SCALES[1:])))
_HIDES_NOTHING = 0.8
_FIRST = np.concatenate([[_HIDES_NOTHING], (1 - _HIDES_NOTHING) * _TAIL / _TAIL.sum()])
_HELD = 0.96  # the probability that ± 1.96 stated errors hold: above 0.95, as weights are learned
_CONFIDENCE = 0.95  # of intervals
_ROWS = 4096  # whose intervals are found at once, for memory
_CHANCE = 0.05  # that any residual is called contradicted if the tables are right
_FARTHER = 2.0  # mean square distance, in noise, from which on what was measured is the nearer
_LEAST_SHARE = 1e-6
_SMALLEST_COUNT = 1e-9  # that is divided by


@dataclass(frozen=True)
class Misfit:
    """How far a residual of the smooth tables is from what was measured.

    distance  mean square over the degrees of freedom, in variances of the noise
    kept      share of the measurement's noise that the tables repeat, mean over cells
    signal    the distance that a hidden deviation of variance τ g adds (`free_counts`), over τ
    """

    distance: float
    kept: float
    signal: float
    degrees_of_freedom: float


def free_counts(table: np.ndarray) -> np.ndarray:
    """g = t ∏ (1 − t/(sum along an axis)) of each cell: what of it can vary while sums stay.

    Of counts with variances τ t that are given to have the same sums, τ g is the variance: exactly
    for one axis, about so for more. A cell that holds nearly all of a sum can move no farther than
    the others of the sum.

    table: float[n_1, …, n_k], no cell below 0
    """
    free = table
    for axis in range(table.ndim):
        sums = np.maximum(table.sum(axis=axis, keepdims=True), _SMALLEST_COUNT)
        free = free * np.maximum(1 - table / sums, 0.0)
    return free


def misfits(
    measured: MeasuredResiduals,
    contributions: ContributionArrays,
    table: Callable[[AttributeIndices], np.ndarray],
    own_variance: Callable[[AttributeIndices, np.ndarray], np.ndarray],
) -> dict[AttributeIndices, Misfit]:
    """Of every residual but the total."""
    found = {}
    for subset in measured.map.family:
        if not subset:
            continue
        off, smooth = measured.contributions[subset] - contributions[subset], table(subset)
        df = float(np.prod(measured.sizes[list(subset)] - 1.0))
        kept = np.mean(own_variance(subset, smooth) / measured.cell_variance(subset))
        found[subset] = Misfit(
            measured.map.squared_length(subset, off) / (measured.variances[subset] * df),
            float(min(kept, 1.0)),
            # Over all cells, not the fewer that are free: few cells may hold most of a deviation,
            # and D is then less likely to show it.
            float(np.mean(free_counts(np.maximum(smooth, 0.0)))) / measured.even_variance(subset),
            df,
        )
    return found


def contradicted(misfits: Mapping[AttributeIndices, Misfit]) -> list[AttributeIndices]:
    """The residuals from which smooth tables are farther than noise is from the truth."""
    chance = _CHANCE / max(len(misfits), 1)
    return [
        subset
        for subset, misfit in misfits.items()
        if misfit.distance > _FARTHER
        and misfit.distance * misfit.degrees_of_freedom > chdtri(misfit.degrees_of_freedom, chance)
    ]


def towards_measured(
    measured: MeasuredResiduals,
    contributions: ContributionArrays,
    misfits: Mapping[AttributeIndices, Misfit],
) -> ContributionArrays:
    """Contributions in which what was measured of some residuals replaces nearly all estimates.

    The measurement, shrunk towards the estimate as James and Stein do it: by the share that its
    noise has in their distance. Tables may have cells below 0 then.
    """
    moved = ArrayStore(contributions)
    for subset, misfit in misfits.items():
        estimate = moved[subset]
        share = 1 - 1 / misfit.distance
        moved[subset] = estimate + share * (measured.contributions[subset] - estimate)
    return moved


def hidden_scales(misfits: Mapping[AttributeIndices, Misfit]) -> dict[AttributeIndices, float]:
    """τ of each residual: its cells deviate from the truth by variances τ g that nothing shows.

    The τ with which 95 % intervals hold almost as often, over all that the table's own residual and
    those of its order leave possible.
    """
    scales = {}
    for order in sorted({len(subset) for subset in misfits}):
        subsets = [subset for subset in misfits if len(subset) == order]
        logs = np.array([_log_likelihood(misfits[subset]) for subset in subsets])
        weights = learned_weights(logs, _FIRST)
        for start in range(0, len(subsets), _ROWS):
            rows = subsets[start : start + _ROWS]
            posterior = posterior_weights(logs[start : start + _ROWS], weights)
            stated = _stated_scales([misfits[subset] for subset in rows], posterior)
            scales |= dict(zip(rows, stated.tolist(), strict=True))
    return scales


def _stated_scales(misfits: Sequence[Misfit], posterior: np.ndarray) -> np.ndarray:
    """The least of `_SCALES` whose intervals hold with probability `_HELD`, float64[n_misfits].

    An error is normal with the variance that the model has and τ times that of what is free, both
    in variances of the noise and means over cells; τ is as likely as `posterior` says.
    """
    own = np.array([[max(misfit.kept, _LEAST_SHARE)] for misfit in misfits])
    signal = np.array([[misfit.signal] for misfit in misfits])
    variances = own + _SCALES * signal
    z = normal_quantile(_CONFIDENCE)
    first, last = np.zeros(len(misfits), dtype=int), np.full(len(misfits), len(_SCALES) - 1)
    while np.any(first < last):  # bisection: the more is stated, the more often an interval holds
        middle = (first + last) // 2
        stated = np.take_along_axis(variances, middle[:, None], axis=1)
        within = 2 * ndtr(z * np.sqrt(stated / variances)) - 1
        holds = np.sum(posterior * within, axis=1) >= _HELD
        first, last = np.where(holds, first, middle + 1), np.where(holds, middle, last)
        first = np.minimum(first, last)
    return _SCALES[first]


def _log_likelihood(misfit: Misfit) -> np.ndarray:
    """Of each of `_SCALES`: the distance is χ² over its degrees of freedom, times its mean."""
    means = np.maximum(1 - misfit.kept, _LEAST_SHARE) + _SCALES * misfit.signal
    return -0.5 * misfit.degrees_of_freedom * (np.log(means) + misfit.distance / means)
