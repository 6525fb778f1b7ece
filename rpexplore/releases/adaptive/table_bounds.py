"""What holds of each table of an adaptive release, whether the model does or not."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from rpexplore.common.concurrency import no_progress
from rpexplore.domain.domain import AttributeIndices
from rpexplore.estimation.smooth_tables import SmoothTables
from rpexplore.planning.adaptive.adaptive_plan import AdaptivePlan
from rpexplore.planning.mechanism.reconstruction import marginal
from rpexplore.releases.adaptive.error_bounds import (
    FAILURE,
    bounds_from_selection,
    informative,
    noise_bound,
    share_of_history,
)
from rpexplore.releases.adaptive.estimates import MeasuredSoFar, residual_variance
from rpexplore.releases.adaptive.outcomes import RoundOutcome
from rpexplore.releases.adaptive.rounds import fitted_candidates
from rpexplore.releases.noise.exponential_mechanism import epsilon_of_rho

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
