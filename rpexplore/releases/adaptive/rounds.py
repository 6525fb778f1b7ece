"""The rounds of an adaptive run: what the fit gets most wrong is selected, and measured.

    begin      noted on disk; from here on nothing of the round is drawn twice
    select     by the exponential mechanism, from exact counts and the fit of what was measured
    measure    the residuals of the selected tables, with discrete Gaussian noise
    fit        everything that is on disk: post-processing

The fit and what follows from it depend on what was released. Candidates, their weights and the
whole schedule are the plan's. docs/mathematics.md §17.
"""

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from math import prod

import numpy as np

from rpexplore.common.concurrency import Progress, part_of_progress
from rpexplore.data.counts import Counts
from rpexplore.domain.domain import AttributeIndices
from rpexplore.errors import ReleaseError
from rpexplore.planning.adaptive.adaptive_plan import AdaptivePlan
from rpexplore.releases.adaptive.estimates import (
    MeasuredSoFar,
    downward_closed,
    residual_variance,
)
from rpexplore.releases.adaptive.outcomes import (
    BEGUN,
    RoundOutcome,
    measured_numbers,
    read_outcomes,
    shape_of,
)
from rpexplore.releases.adaptive.privacy_filter import PrivacyFilter
from rpexplore.releases.adaptive.scores import LARGEST_TOTAL, l1_distances, scores, sensitivity
from rpexplore.releases.measurement import residual_answers
from rpexplore.releases.noise.discrete_gaussian import LARGEST_GAMMA, discrete_gaussian
from rpexplore.releases.noise.exponential_mechanism import epsilon_of_rho, select

Write = Callable[[Iterable[np.ndarray]], None]
"""Takes numbers that were drawn; they are on disk, and noted, when it returns."""

_DEVIATIONS = 32  # which normal noise reaches with odds of e^-512
_FITTING, _SELECTING = "Fitting what was measured", "Selecting tables"


def measure_rounds(
    plan: AdaptivePlan,
    counts: Counts,
    first: Sequence[np.ndarray],
    drawn: np.ndarray,
    write: Write,
    on_progress: Progress,
) -> None:
    """Draw and write the rounds that are not begun yet.

    Args:
        counts: From which those of all candidates follow.
        first: What the first plan measured of each of its residuals.
        drawn: What is on disk of the rounds, int64[·].
        write: Called three times a round, see `outcomes`.

    Raises `ReleaseError` if a round would go beyond the budget, which no plan that was verified
    does.
    """
    outcomes = read_outcomes(plan, drawn)
    spent = PrivacyFilter(plan.record_rho)
    spent.spend(plan.first.record_rho)
    for number, step in enumerate(plan.rounds):
        spent.spend(step.rho)
        if number < len(outcomes):
            continue
        on_round = _progress_of_round(on_progress, number, len(plan.rounds))
        on_round(_FITTING, 0.0)
        estimates, allowances = fitted_candidates(plan, first, outcomes, number, on_round)
        write([np.array([BEGUN], dtype=np.int64)])
        on_round(_SELECTING, 0.9)
        exact = (counts.counts(subset) for subset in plan.candidates)
        weights = np.array(plan.candidate_weights, dtype=np.int64)
        selected = select(
            scores(l1_distances(exact, estimates), weights, allowances),
            epsilon_of_rho(step.selection_rho),
            sensitivity(weights),
            step.n_tables,
        )
        write([np.array(selected, dtype=np.int64)])
        measured = tuple(
            measure(plan, number, plan.candidates[index], counts) for index in selected
        )
        write(measured_numbers(measured))
        outcomes.append(RoundOutcome(number, tuple(selected), measured))


def _progress_of_round(on_progress: Progress, number: int, n_rounds: int) -> Progress:
    """The part of one round, which is named before what is being done."""
    on_part = part_of_progress(on_progress, number / n_rounds, (number + 1) / n_rounds)
    return lambda doing, share: on_part(f"Round {number + 1} of {n_rounds}: {doing}", share)


def fitted_candidates(
    plan: AdaptivePlan,
    first: Sequence[np.ndarray],
    outcomes: Iterable[RoundOutcome],
    number: int,
    on_progress: Progress,
) -> tuple[list[np.ndarray], np.ndarray]:
    """What a round compares the records with, from what was released before it.

    Returns:
        The estimate of each candidate, which `l1_distances` rounds; and its allowance, int64[·]:
        how far from the truth the model expects it to be when this round has measured its residual.
    """
    fit = MeasuredSoFar.of(plan, first, outcomes).fit(
        downward_closed(plan.candidates), part_of_progress(on_progress, 0.0, 0.8)
    )
    estimates, allowances = [], []
    for subset in plan.candidates:
        estimates.append(fit.table(subset))
        variance = float(residual_variance(plan, number, subset))
        allowances.append(round(fit.expected_distance(subset, variance)))
    return estimates, np.array(allowances, dtype=np.int64)


def measure(
    plan: AdaptivePlan, number: int, subset: AttributeIndices, counts: Counts
) -> np.ndarray:
    """Ξ x + noise of one residual, as a round measures it: int64, one axis an attribute.

    A record moves Ξ x, Ξ = ⊗ (n_i I − 11ᵀ), by √∏ n_i (n_i − 1); discrete Gaussian noise of
    variance parameter γ² costs ρ = ∏ n_i (n_i − 1) / (2γ²).
    """
    exact = residual_answers(counts.counts(subset), subset, plan.first.closure)
    noise = discrete_gaussian(exact.size, gamma_squared(plan, number, subset))
    return exact + noise.reshape(exact.shape)


def gamma_squared(plan: AdaptivePlan, number: int, subset: AttributeIndices) -> Fraction:
    """The noise's γ² for the residual of a candidate in a round: exact."""
    return _moved(plan, subset) / (2 * plan.rounds[number].measurement_rho)


def _moved(plan: AdaptivePlan, subset: AttributeIndices) -> int:
    """By the square root of which a record moves Ξ x."""
    return prod(size * (size - 1) for size in shape_of(plan, subset))


def check_measurable(plan: AdaptivePlan) -> None:
    """Raise `ReleaseError` if the noise of a round, or on the total, is too large to be used.

    So no round fails once it is begun.
    """
    largest = max(plan.candidates, key=lambda subset: _moved(plan, subset))
    for number in range(len(plan.rounds)):
        if gamma_squared(plan, number, largest) >= LARGEST_GAMMA**2:
            raise ReleaseError(
                f"The noise that the budget needs on {plan.domain.describe(largest)} in round "
                f"{number + 1} is too large for 64-bit integers; use a larger budget or smaller "
                "tables."
            )
    of_total = plan.first.sigma_squared.fraction(0)  # every first plan has the total, and first
    if of_total * _DEVIATIONS**2 >= (LARGEST_TOTAL // 2) ** 2:
        raise ReleaseError(
            "The noise that the budget needs on the number of records is too large for estimates "
            "to be compared exactly; use a larger budget."
        )


def check_countable(plan: AdaptivePlan, counts: Counts) -> None:
    """Raise `ReleaseError` if Ξ x of a candidate, or a score, could leave 64-bit integers."""
    if counts.n_records >= LARGEST_TOTAL // 2:
        raise ReleaseError(
            "There are too many records for estimates to be compared exactly; release fewer at a "
            "time."
        )
    largest = max(plan.candidates, key=lambda subset: prod(shape_of(plan, subset)))
    if prod(shape_of(plan, largest)) * max(counts.n_records, 1) >= 2**61:
        raise ReleaseError(
            f"There are too many records to count {plan.domain.describe(largest)} in 64-bit "
            "integers; group its attributes into fewer values."
        )
