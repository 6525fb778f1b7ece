"""Bounds on the L1 error of each table of an adaptive release, with a stated probability."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from rpexplore.common.processes import no_progress
from rpexplore.domain.domain import AttributeIndices
from rpexplore.errors import ReleaseError
from rpexplore.estimation.smooth_tables import SmoothTables
from rpexplore.planning.adaptive import AdaptivePlan
from rpexplore.planning.mechanism.reconstruction import marginal
from rpexplore.releases.adaptive_rounds import (
    MeasuredSoFar,
    RoundOutcome,
    fitted_candidates,
    residual_variance,
)
from rpexplore.releases.noise.exponential_mechanism import epsilon_of_rho

# ---- How far estimated tables can be from the exact ones, in L1 distance, with a stated
# probability.
#
# Estimates of an adaptive release are biased; what is known of their error is known afterwards,
# from what was measured (`docs/mathematics.md` §17.3; for whole tables and continuous noise: AIM
# §5).
#
# - A table all of whose residuals were measured: its unbiased table has an error of at most
#   `noise_bound`, so the estimate one of at most that plus its distance from the unbiased table.
# - A candidate that was not: in a round another one was selected, so it was not much worse then
#   (`bounds_from_selection`).
# - Any other: nothing.
#
# Functions of released numbers alone: post-processing.


FAILURE = 0.05
"""Probability with which the bound of a table may be exceeded, one table at a time."""

Subset = tuple[int, ...]
"""Attribute indices, ascending."""

_SMOOTHING = (0.5, 1.0)  # s², see `_log_density_ratio`: little noise wants less, many cells more


def noise_bound(
    table: Subset,
    sizes: Sequence[int],
    variances: Mapping[Subset, Sequence[float]],
    failure: float,
) -> float:
    """What the sum of absolute errors of an unbiased table exceeds with probability <= `failure`.

    The table is the sum of the contributions of all its residuals; of those measured several times,
    the mean by inverse variance. The smaller of two bounds (`docs/mathematics.md` §17.3): one from
    all combinations of signs, for small tables, and one from normal noise, for large ones.

    Args:
        table: attributes with two values or more each.
        sizes: numbers of values of all attributes of the domain.
        variances: σ² of every measurement of each residual, ∅ included. Known beforehand, or else
            `failure` must allow for all that might have been measured (`share_of_history`).
        failure: above 0, below 1.

    Raises:
        ReleaseError: a residual of the table was not measured.
    """
    n_cells = math.prod(sizes[i] for i in table)
    residuals = list(_residuals(table, sizes, variances))
    # Cells share one variance; the eigenvalues of the covariance have one value a residual.
    largest = max(variance * spread for _, variance, spread, _ in residuals)
    by_signs = math.sqrt(2 * n_cells * largest * (n_cells * math.log(2) - math.log(failure)))
    return min(by_signs, *(_normal_bound(residuals, n_cells, failure, s) for s in _SMOOTHING))


_Residual = tuple[list[float], float, float, float]
"""γ² of its measurements, its σ² by all of them, ∏ 1/n_i over the table's other attributes, and
∏ (1 - 1/n_i) over its own."""


def _residuals(
    table: Subset, sizes: Sequence[int], variances: Mapping[Subset, Sequence[float]]
) -> Iterator[_Residual]:
    for order in range(len(table) + 1):
        for subset in combinations(table, order):
            of_each = variances.get(subset, ())
            if not of_each:
                raise ReleaseError(
                    f"A noise bound needs all residuals of a table, got none of {subset} for "
                    f"{table}; pass the variances of its measurements, or leave the table out."
                )
            own = math.prod(sizes[i] for i in subset)
            others = math.prod(sizes[i] for i in table if i not in subset)
            yield (
                [variance * own**2 for variance in of_each],
                1 / math.fsum(1 / variance for variance in of_each),
                1 / others,
                math.prod(1 - 1 / sizes[i] for i in subset),
            )


def _normal_bound(
    residuals: Sequence[_Residual], n_cells: int, failure: float, smoothing: float
) -> float:
    """The bound for normal noise that is a little larger than the discrete noise (§17.3)."""
    log_ratio, cell_variance, largest = 0.0, 0.0, 0.0
    for gammas_squared, variance, spread, own_share in residuals:
        inflation = 1.0
        for gamma_squared in gammas_squared:
            s_squared = min(smoothing, gamma_squared / 2)
            inflation = max(inflation, gamma_squared / (gamma_squared - s_squared))
            log_ratio += n_cells * spread * _log_density_ratio(s_squared)
        eigenvalue = inflation * variance * spread
        cell_variance += eigenvalue * spread * own_share
        largest = max(largest, eigenvalue)
    expected = math.sqrt(2 / math.pi) * n_cells * math.sqrt(cell_variance)
    return expected + math.sqrt(2 * n_cells * largest * (log_ratio - math.log(failure)))


def _log_density_ratio(s_squared: float) -> float:
    """An upper bound of ln Σ_k exp(-2π²s²k²), k over all integers.

    By so much at most the density of discrete plus normal noise exceeds that of normal noise, where
    1/s² = 1/γ² + 1/τ² for variance parameters γ² and τ². k² >= 3k - 2 bounds the sum by a geometric
    series, and an integral bounds it where s² is small.
    """
    a = 2 * math.pi**2 * s_squared
    series = 2 * math.exp(-a) / -math.expm1(-3 * a)
    return math.log1p(min(series, 1 / math.sqrt(2 * math.pi * s_squared)))


def share_of_history(n_measured: int, n_possible: int) -> float:
    """The share of a failure probability for one history out of all that might have come about.

    Which of `n_possible` measurements are made may depend on noise drawn before, so that the noise
    of those that were is no longer what it would be if they had been chosen beforehand. A bound
    that fails with this share of `failure` for each possible set of them fails with `failure` at
    most for the set that came about, whatever decided on it: the shares of all sets add up to less
    than 1, half of it for none, a quarter for all sets of one, and so on.

    Args:
        n_measured: how many of them were made.
        n_possible: how many might have been, each with its variance fixed beforehand.
    """
    return 0.5 ** (n_measured + 1) / math.comb(n_possible, n_measured)


def bounds_from_selection(
    selected: int,
    distance: float,
    weights: np.ndarray,
    allowances: np.ndarray,
    epsilon: float,
    failure: float,
) -> np.ndarray:
    """Bounds on the L1 distances of all candidates from their estimates *at a selection*.

    Given that `distance` bounds that of the selected one, all of them hold together with
    probability 1 - `failure`: with at least that, no score is above the selected one's by more than
    (2Δ/ε) (ln n + ln(1/failure)).

    Args:
        selected: place of the first one drawn; those drawn after it had fewer to compare with.
        distance: a bound on ‖exact - estimate‖₁ of that one, with the whole numbers it was scored
            by. It must hold for whichever was selected: `failure` of its `noise_bound` over n.
        weights: of the scores, int64[n]; their maximum is the sensitivity Δ.
        allowances: of the scores, int64[n].
        epsilon: of this draw.

    Returns:
        float64[n], 0 or more.
    """
    slack = 2 * weights.max() / epsilon * (math.log(len(weights)) - math.log(failure))
    largest_score = weights[selected] * (distance - allowances[selected]) + slack
    return np.maximum(allowances + largest_score / weights, 0)


def informative(bounds: np.ndarray, records: float, records_bound: float) -> np.ndarray:
    """The bounds, NaN where they say nothing: from twice the most that the records can be.

    Args:
        bounds: float64[n].
        records: the number of records as it was measured.
        records_bound: what its error exceeds with the bounds' probability, `noise_bound` of ().
    """
    return np.where(bounds < 2 * (records + records_bound), bounds, np.nan)


# ---- What holds of each table of an adaptive release, whether the model does or not.


FAILURE_OF_EITHER = FAILURE / 2
"""Of the two bounds that a triple may get: which of them depends on the noise."""

Variances = Mapping[AttributeIndices, Sequence[float]]
"""σ² of each measurement of each residual."""


@dataclass(frozen=True)
class TableBound:
    """is_measured: whether all residuals of the table were measured, at least once.

    records  what the sum of absolute errors of all its cells is at most, with 95 % probability, one
             table at a time; NaN for no guarantee
    """

    is_measured: bool
    records: float


def bounds_of_tables(
    plan: AdaptivePlan,
    first: Sequence[np.ndarray],
    outcomes: Sequence[RoundOutcome],
    tables: Sequence[AttributeIndices],
    fit: SmoothTables,
) -> list[TableBound]:
    """The bounds of tables of several values along each attribute (docs/mathematics.md §17.3).

    first, outcomes: all that was measured; fit: of it, from which the tables were made
    """
    measured, variances = MeasuredSoFar.of(plan, first, outcomes), _variances(plan, outcomes)
    supported = {
        table: all(
            subset in measured.variances
            for order in range(len(table) + 1)
            for subset in combinations(table, order)
        )
        for table in tables
    }
    bounds = {
        table: float(np.abs(_unbiased(measured, table) - fit.table(table)).sum())
        + _noise_bound(plan, table, variances, FAILURE if len(table) < 3 else FAILURE_OF_EITHER)
        for table in tables
        if supported[table]
    }
    if not all(supported.values()):
        bounds = _bounds_of_candidates(plan, first, outcomes, variances, fit) | bounds
    found = np.array([bounds.get(table, math.nan) for table in tables])
    of_total = _noise_bound(plan, (), variances, FAILURE)
    stated = informative(found, float(measured.contributions[()]), of_total)
    return [
        TableBound(supported[table], float(bound))
        for table, bound in zip(tables, stated, strict=True)
    ]


def _bounds_of_candidates(
    plan: AdaptivePlan,
    first: Sequence[np.ndarray],
    outcomes: Sequence[RoundOutcome],
    variances: Variances,
    fit: SmoothTables,
) -> dict[AttributeIndices, float]:
    """What a selection says of all candidates: of the last round of which nothing was lost.

    Which round that is does not depend on what it says.
    """
    complete = [outcome for outcome in outcomes if outcome.measured]
    if not complete:
        return {}
    last = complete[-1]
    before = [outcome for outcome in outcomes if outcome.number < last.number]
    estimates, allowances = fitted_candidates(plan, first, before, last.number, no_progress)
    estimates = [np.rint(estimate) for estimate in estimates]
    selected = last.selected[0]
    table = plan.candidates[selected]
    unbiased = _unbiased(MeasuredSoFar.of(plan, first, outcomes), table)
    # Half for the noise of whichever was selected, half for the selection.
    distance = float(np.abs(unbiased - estimates[selected]).sum()) + _noise_bound(
        plan, table, variances, FAILURE_OF_EITHER / 2 / len(plan.candidates)
    )
    bounds = bounds_from_selection(
        selected,
        distance,
        np.array(plan.candidate_weights, dtype=np.int64),
        allowances,
        float(epsilon_of_rho(plan.rounds[last.number].selection_rho)),
        FAILURE_OF_EITHER / 2,
    )
    return {
        candidate: float(bound + np.abs(estimate - fit.table(candidate)).sum())
        for candidate, bound, estimate in zip(plan.candidates, bounds, estimates, strict=True)
    }


def _noise_bound(
    plan: AdaptivePlan, table: AttributeIndices, variances: Variances, failure: float
) -> float:
    """Of the unbiased table, whatever might have been measured of it.

    Each round might have measured each of the candidates within the table.
    """
    subsets = [
        subset for order in range(2, len(table) + 1) for subset in combinations(table, order)
    ]
    n_measured = sum(len(variances[subset]) for subset in subsets)
    n_first = sum(len(subset) == 2 for subset in subsets)
    n_possible = len(plan.rounds) * len(set(subsets) & set(plan.candidates))
    share = share_of_history(n_measured - n_first, n_possible)
    sizes = plan.domain.sizes.tolist()
    return noise_bound(table, sizes, variances, failure * share)


def _variances(plan: AdaptivePlan, outcomes: Sequence[RoundOutcome]) -> Variances:
    closure = plan.first.closure
    variances = {
        closure.attributes(residual): [float(variance)]
        for residual, variance in enumerate(plan.first.sigma_squared.floats)
    }
    for outcome in outcomes:
        for index in outcome.selected[: len(outcome.measured)]:
            subset = plan.candidates[index]
            variance = float(residual_variance(plan, outcome.number, subset))
            variances.setdefault(subset, []).append(variance)
    return variances


def _unbiased(measured: MeasuredSoFar, table: AttributeIndices) -> np.ndarray:
    within = {
        subset: measured.contributions[subset]
        for order in range(len(table) + 1)
        for subset in combinations(table, order)
    }
    return marginal(table, measured.plan.domain.sizes, within, {})
