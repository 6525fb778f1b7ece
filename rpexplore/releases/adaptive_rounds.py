"""The rounds of an adaptive run: what the fit gets most wrong is selected, and measured."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import prod

import numpy as np

from rpexplore.common.numbers import exact_text, positive_rational, shown
from rpexplore.common.processes import Progress, no_progress, part_of_progress
from rpexplore.data.source import Counts
from rpexplore.domain.domain import AttributeIndices
from rpexplore.errors import ReleaseError
from rpexplore.estimation.smooth_tables import SmoothTables, smooth_residuals
from rpexplore.estimation.table_map import ArrayStore, MeasuredResiduals
from rpexplore.planning.adaptive import AdaptivePlan
from rpexplore.planning.mechanism.reconstruction import contribution
from rpexplore.releases.measurement import residual_answers
from rpexplore.releases.noise.discrete_gaussian import LARGEST_GAMMA, discrete_gaussian
from rpexplore.releases.noise.exponential_mechanism import epsilon_of_rho, select

# ---- What the rounds of an adaptive run have drawn, as it stands in the list of its measurements.
#
# Behind what the first plan measured, each round has, one whole number after another,
#
#     BEGUN               on disk before anything of the round is drawn
#     i_1, i_2, …         the candidates that were selected, in the order in which they were drawn
#     MEASURED, m_1, …    their residuals with noise, one after another, row-major
#
# and each of these three is on disk before it is used. What was drawn and is not there was lost
# when the run was stopped. It stays charged and is not drawn again: else what a round comes to
# could decide whether it is drawn anew.


BEGUN, MEASURED = -1, -2


@dataclass(frozen=True, eq=False)
class RoundOutcome:
    """What one round has drawn.

    number    of the round, from 0
    selected  places among the plan's candidates, in the order drawn; () if they were lost
    measured  of each, int64, one axis an attribute; () if they were lost
    """

    number: int
    selected: tuple[int, ...] = ()
    measured: tuple[np.ndarray, ...] = ()


def most_numbers(plan: AdaptivePlan) -> int:
    """How many numbers all rounds can have at most."""
    largest = max(prod(shape_of(plan, subset)) for subset in plan.candidates)
    return sum(2 + (1 + largest) * each.n_tables for each in plan.rounds)


def shape_of(plan: AdaptivePlan, subset: AttributeIndices) -> tuple[int, ...]:
    """Of the measurement of a residual."""
    return tuple(plan.domain.sizes[list(subset)].tolist())


def read_outcomes(plan: AdaptivePlan, numbers: np.ndarray) -> list[RoundOutcome]:
    """The rounds that were begun, in order. Raises `ReleaseError` for what no run writes.

    numbers: int64[·], all behind what the first plan measured
    """
    outcomes, place = [], 0
    for number, step in enumerate(plan.rounds):
        if place == len(numbers):
            break
        if numbers[place] != BEGUN:
            raise _not_written()
        place += 1
        selected = numbers[place : place + step.n_tables].tolist()
        if not selected or selected[0] == BEGUN:
            outcomes.append(RoundOutcome(number))
            continue
        if len(set(selected)) < step.n_tables or not all(
            0 <= index < len(plan.candidates) for index in selected
        ):
            raise _not_written()
        place += step.n_tables
        if place == len(numbers) or numbers[place] == BEGUN:
            outcomes.append(RoundOutcome(number, tuple(selected)))
            continue
        if numbers[place] != MEASURED:
            raise _not_written()
        place += 1
        measured = []
        for index in selected:
            shape = shape_of(plan, plan.candidates[index])
            cells = numbers[place : place + prod(shape)]
            if len(cells) < prod(shape):
                raise _not_written()
            measured.append(cells.reshape(shape))
            place += prod(shape)
        outcomes.append(RoundOutcome(number, tuple(selected), tuple(measured)))
    if place < len(numbers):
        raise _not_written()
    return outcomes


def measured_numbers(measured: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    """The numbers that stand for what a round measured."""
    yield np.array([MEASURED], dtype=np.int64)
    for cells in measured:
        yield cells.reshape(-1)


def _not_written() -> ReleaseError:
    return ReleaseError(
        "The measurements of the run are not as they were written; what it was charged stays "
        "charged. Restore the folder, or run the plan again into another one."
    )


# ---- The rounds of an adaptive run: what the fit gets most wrong is selected, and measured.
#
# begin      noted on disk; from here on nothing of the round is drawn twice
#     select     by the exponential mechanism, from exact counts and the fit of what was measured
#     measure    the residuals of the selected tables, with discrete Gaussian noise
#     fit        everything that is on disk: post-processing
#
# The fit and what follows from it depend on what was released. Candidates, their weights and the
# whole schedule are the plan's. docs/mathematics.md §17.


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
    factor = plan.budget.records_factor
    spent = PrivacyFilter(plan.rho / factor)
    spent.spend(plan.first.rho / factor)
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
    variance parameter γ² costs ρ = ∏ n_i (n_i − 1) / (2γ²). In a panel a person's m records are in
    different periods: n²/m stands there for n (n − 1) of the period, and ρ is over m².
    """
    exact = residual_answers(counts.counts(subset), subset, plan.first.closure)
    noise = discrete_gaussian(exact.size, gamma_squared(plan, number, subset))
    return exact + noise.reshape(exact.shape)


def gamma_squared(plan: AdaptivePlan, number: int, subset: AttributeIndices) -> Fraction:
    """The noise's γ² for the residual of a candidate in a round: exact."""
    return _moved(plan, subset) / (2 * plan.rounds[number].measurement_rho)


def _moved(plan: AdaptivePlan, subset: AttributeIndices) -> Fraction:
    """By the square root of which a record moves Ξ x, or a person in a panel, over m."""
    return plan.moved_share(subset) * prod(size * size for size in shape_of(plan, subset))


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


# ---- Scores of the tables that can be selected: how badly the present estimates fit the records.
#
# Private, and exact: whole numbers in int64 throughout, so that a record more or less changes the
# score of a table by its weight at most (`docs/mathematics.md` §17.1). Weights, allowances and
# estimates must be known without the records, from the workload and from what has been released.


# weight * (distance + allowance) < 2^20 (2 * 2^41 + 2^41) < 2^63: no score overflows.
LARGEST_WEIGHT = 2**20
LARGEST_TOTAL = 2**41
"""Records, sums of the absolute values of an estimated table, and allowances are below this."""


def scores(distances: np.ndarray, weights: np.ndarray, allowances: np.ndarray) -> np.ndarray:
    """weight * (distance - allowance) of each candidate.

    Args:
        distances: `l1_distances`, int64[n].
        weights: int64[n], from 1 to `LARGEST_WEIGHT`; free of the records.
        allowances: int64[n], from 0 on: the error that measuring would leave; free of the records.

    Returns:
        int64[n], with the `sensitivity` of these weights.

    Raises:
        ReleaseError: weights or allowances that are no such numbers.
    """
    _check_whole(weights, "The weights", 1, LARGEST_WEIGHT)
    _check_whole(allowances, "The allowances", 0, LARGEST_TOTAL - 1)
    return weights * (distances - allowances)


def sensitivity(weights: np.ndarray) -> int:
    """The most by which a record more or less changes any of these candidates' scores."""
    return int(weights.max())


def l1_distances(counts: Iterable[np.ndarray], estimates: Iterable[np.ndarray]) -> np.ndarray:
    """Σ |exact count - estimate| of each table, estimates being rounded to whole numbers before.

    Args:
        counts: the exact tables, int64.
        estimates: an array of the same shape for each of them, of released values only.

    Returns:
        int64, one number a table. A record more or less changes each by exactly 1.

    Raises:
        ReleaseError: a table too large for exact sums, or an estimate that is no number.
    """
    pairs = zip(counts, estimates, strict=True)
    return np.array([_l1_distance(exact, estimate) for exact, estimate in pairs], dtype=np.int64)


def _l1_distance(counts: np.ndarray, estimate: np.ndarray) -> int:
    if counts.dtype != np.int64 or counts.shape != estimate.shape:
        raise ReleaseError(
            "An exact table must be an array of int64 in the shape of its estimate, got "
            f"{counts.dtype} in shape {counts.shape} for an estimate in shape {estimate.shape}; "
            "count it, and estimate the same table."
        )
    whole = np.rint(estimate)
    size = np.abs(whole).sum(dtype=np.float64)  # exact, as a sum of whole numbers below 2^53
    if not size < LARGEST_TOTAL:
        raise ReleaseError(
            f"The absolute values of an estimated table must add up to less than {LARGEST_TOTAL:,},"
            f" got {size:.3g}; use a larger budget, or tables with fewer cells."
        )
    distance = int(np.abs(counts - whole.astype(np.int64)).sum())
    # The value stays unsaid: it was read from the records.
    if counts.min(initial=0) < 0 or distance >= 2 * LARGEST_TOTAL:
        raise ReleaseError(
            f"Exact counts must be 0 or more and add up to less than {LARGEST_TOTAL:,}; release "
            "fewer records at a time."
        )
    return distance


def _check_whole(numbers: np.ndarray, name: str, least: int, most: int) -> None:
    if numbers.dtype != np.int64:
        raise ReleaseError(
            f"{name} of the candidates must be int64, got {numbers.dtype}; round them to whole "
            "numbers, so that the sensitivity is exact."
        )
    outside = numbers[(numbers < least) | (numbers > most)]
    if len(outside):
        raise ReleaseError(
            f"{name} of the candidates must be from {least} to {most:,}, got {outside[0]:,}; "
            "scale them."
        )


# ---- The privacy filter: costs chosen along the way add up to no more than was fixed beforehand.
#
# Sums of exact rationals. With the total fixed, a run whose rounds and costs depend on what it has
# released so far is zCDP at that total (`docs/mathematics.md` §17.2).


class PrivacyFilter:
    """What a run may still spend of its ρ; `spend` comes before the draw it pays for."""

    def __init__(self, total: Fraction) -> None:
        """Raises `ReleaseError` unless `total`, ρ of the whole run, is a positive Fraction."""
        self.total = positive_rational(total, "The privacy cost rho of a run", "downwards")
        self.spent = Fraction(0)

    @property
    def remaining(self) -> Fraction:
        return self.total - self.spent

    def spend(self, rho: Fraction) -> None:
        """Count ρ as spent, or refuse and count nothing.

        Raises:
            ReleaseError: ρ is not a positive Fraction, or more than remains. Nothing may be drawn.
        """
        rho = positive_rational(rho, "The privacy cost rho of a draw", "upwards")
        if rho > self.remaining:
            raise ReleaseError(
                f"A draw at rho = {shown(exact_text(rho))} would exceed the run's rho = "
                f"{shown(exact_text(self.total))}, of which {shown(exact_text(self.remaining))} "
                "remains; nothing was drawn. Lower the draw's cost, or end the run."
            )
        self.spent += rho


# ---- What an adaptive run knows of the tables: the fit of everything measured so far.
#
# Of residuals that were measured several times the mean by inverse variance is taken. Those that
# were not measured at all count as measured with a noise that hides everything, so that the fit of
# smooth tables (docs/mathematics.md §13) is one for fixed and for adaptive releases.


_HIDDEN = 1e3
"""Standard deviation, in numbers of records, of the noise that residuals not measured count as."""


@dataclass(frozen=True, eq=False)
class MeasuredSoFar:
    """Contributions of the residuals that were measured, and the variance σ² of each."""

    plan: AdaptivePlan
    contributions: Mapping[AttributeIndices, np.ndarray]
    variances: Mapping[AttributeIndices, Fraction]

    @classmethod
    def of(
        cls, plan: AdaptivePlan, first: Sequence[np.ndarray], outcomes: Iterable[RoundOutcome]
    ) -> "MeasuredSoFar":
        """first: what the first plan measured of each of its residuals."""
        closure, contributions, variances = plan.first.closure, ArrayStore(), {}
        for residual, measured in enumerate(first):
            subset = closure.attributes(residual)
            contributions[subset] = contribution(measured, subset, {})
            variances[subset] = plan.first.sigma_squared.fraction(residual)
        for outcome in outcomes:
            for index, measured in zip(outcome.selected, outcome.measured, strict=False):
                subset = plan.candidates[index]
                new = contribution(measured, subset, {})
                variance = residual_variance(plan, outcome.number, subset)
                if subset in variances:
                    share = variance / (variance + variances[subset])
                    new = float(share) * contributions[subset] + float(1 - share) * new
                    variance *= 1 - share
                contributions[subset], variances[subset] = new, variance
        return cls(plan, contributions, variances)

    @property
    def total(self) -> float:
        """The number of records as it was measured, or 1 if that is less."""
        return max(float(self.contributions[()]), 1.0)

    def fit(
        self, family: Iterable[AttributeIndices], on_progress: Progress = no_progress
    ) -> SmoothTables:
        """Smooth tables of a downward closed family of sets of attributes."""
        hidden = (_HIDDEN * self.total) ** 2
        contributions, variances = ArrayStore(), {}
        for subset in family:
            is_measured = subset in self.variances
            contributions[subset] = (
                self.contributions[subset] if is_measured else np.zeros(shape_of(self.plan, subset))
            )
            variances[subset] = float(self.variances[subset]) if is_measured else hidden
        domain = self.plan.domain
        residuals = MeasuredResiduals(
            contributions, variances, domain.sizes, {}, domain.structural_zeros
        )
        return smooth_residuals(residuals, on_progress=on_progress)


def residual_variance(plan: AdaptivePlan, number: int, subset: AttributeIndices) -> Fraction:
    """σ² with which a round measures a residual: p_A/(2σ²) = ρ, p_A = ∏ (1 − 1/n_i)."""
    return plan.moved_share(subset) / (2 * plan.rounds[number].measurement_rho)


def tables_of(plan: AdaptivePlan) -> list[AttributeIndices]:
    """The tables of a plan's workload, each by its attributes with several values."""
    sizes, workload = plan.domain.sizes, plan.workload
    tables = (workload.attribute_indices(place) for place in range(len(workload)))
    return [tuple(index for index in table if sizes[index] > 1) for table in tables]


def downward_closed(tables: Iterable[AttributeIndices]) -> list[AttributeIndices]:
    """All subsets of some sets of attributes, by order, then lexicographic."""
    family = {
        subset
        for table in tables
        for order in range(len(table) + 1)
        for subset in combinations(table, order)
    }
    return sorted(family, key=lambda subset: (len(subset), subset))
