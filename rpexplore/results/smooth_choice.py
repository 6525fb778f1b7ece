"""Weights for model-based estimates that lose least, depend three attributes jointly or not.

Weights by pairs (docs/mathematics.md §6.10) trust that pairs of attributes tell nearly all; weights
by cell trust nothing. Mixtures of both are simulated in two made-up populations, and the one is
taken whose largest loss is the least (minimax). Where that is weights by pairs alone, a tenth by
cell is mixed in. An adaptive plan is simulated beside them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from rpexplore.common.processes import Progress, no_progress, part_of_progress
from rpexplore.common.text import describe_share
from rpexplore.data.counting import Codes, counts_of
from rpexplore.data.source import Counts
from rpexplore.domain.domain import AttributeIndices
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.errors import RpexploreError
from rpexplore.estimation.smooth_tables import SmoothTables, smooth_residuals
from rpexplore.estimation.table_map import MeasuredResiduals
from rpexplore.planning.adaptive import AdaptivePlan, adaptive_plan
from rpexplore.planning.losses.losses import SumOfVariances
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mixed_weights import (
    ABOUT_AS_GOOD,
    FEWEST_OF_THREE,
    NOT_SIMULATED,
    gain_at_worst,
    loses_less_at_worst,
    mixed_smooth_weights,
)
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.table_plan import TablePlan
from rpexplore.privacy.budget import Budget
from rpexplore.results.rehearsal import (
    MOST_RECORDS,
    POPULATIONS,
    adaptive_fit,
    noisy_contributions,
    population_records,
)
from rpexplore.workload.smooth_weights import SmoothWeights
from rpexplore.workload.workload import Workload

SHARES = (1.0, 0.5, 0.25, 0.1, 0.03)
"""Of weights by pairs in a mixture, by the losses that each alone has; the rest by cell."""

NEARLY_BY_PAIRS = 0.9
"""The share in place of 1, by which so little of larger tables is measured that nothing shows what
pairs hide."""

_MOST_ATTRIBUTES = 8  # that are simulated, for time
_MOST_CELLS = 1_000_000  # of their tables
_CLEARLY_BETTER = 1.03  # a gain of weights by pairs alone by which nearly these are taken
_LEAST_ERROR = 1e-9  # that is divided by
_MOST_SIMULATIONS = 2  # of an adaptive plan, for time
# Three standard deviations of log(largest loss) of one of them (docs/mathematics.md §6.10).
_CHANCE = 0.06


@dataclass(frozen=True, eq=False)
class SmoothChoice:
    """Weights for model-based estimates, and the simulated errors of all candidates.

    weights   the chosen ones
    share     of weights by pairs in them
    frame     one row a mixture: share, and of each of `POPULATIONS` the mean error of the largest
              tables, added up over cells without signs, over the number of records, evened out
              between mixtures; last the chosen one, if it is none of `SHARES`; None where nothing
              was simulated
    adaptive  by population the same error of an adaptive plan of the same budget, mean of one or
              two simulations; None where none was simulated
    """

    weights: SmoothWeights
    share: float
    frame: pd.DataFrame | None
    adaptive: Mapping[str, float] | None = None

    @property
    def prefers_adaptive(self) -> bool:
        """Whether an adaptive plan was simulated, and loses clearly less at worst."""
        if self.adaptive is None or self.frame is None:
            return False
        adaptive = [self.adaptive[population] for population in POPULATIONS]
        return loses_less_at_worst(adaptive, *_chosen_and_least(self.frame, self.share))

    def to_facts(self) -> dict[str, Any]:
        """The share, and the rows of the frame, as plain values."""
        rows = [] if self.frame is None else self.frame.to_dict("records")
        return {
            "share_by_pairs": self.share,
            "errors": rows,
            "adaptive": None if self.adaptive is None else dict(self.adaptive),
            "prefers_adaptive": self.prefers_adaptive,
        }

    def describe(self) -> str:
        """The choice, and its errors beside the others', in sentences."""
        mixture = f"{describe_share(self.share)} by pairs and the rest by cell"
        if self.frame is None:
            if self.share == 1:
                return ""
            return (
                f"Weights for model-based estimates: {mixture}, which was near the best in trials; "
                "these tables were not simulated."
            )
        row = self.frame["share"].tolist().index(self.share)
        parts = [
            f"{describe_share(float(self.frame[population].to_numpy()[row]))} where {population} "
            f"(best weights {describe_share(float(self.frame[population].to_numpy().min()))})"
            for population in POPULATIONS
        ]
        if self.share == NEARLY_BY_PAIRS:
            mixture += ", as by pairs alone, which loses least, nothing would show what pairs hide"
        return (
            f"Weights for model-based estimates: {mixture}. Simulated on made-up records, a table "
            f"with the most attributes is off by {' and '.join(parts)}.{self._describe_adaptive()}"
        )

    def _describe_adaptive(self) -> str:
        """The adaptive plan beside the chosen weights, in sentences; "" where it was not tried."""
        if self.adaptive is None:
            return ""
        found = " and ".join(
            describe_share(self.adaptive[population]) for population in POPULATIONS
        )
        verdict = "which is better" if self.prefers_adaptive else "which is not clearly better"
        return f" An adaptive plan is off by {found}, {verdict} (by the larger loss of the two)."


def choose_smooth_weights(
    workload: Workload,
    budget: Budget,
    expected: ExpectedCounts,
    *,
    on_progress: Progress = no_progress,
) -> SmoothChoice:
    """The mixture of weights by pairs and weights by cell that loses least at worst.

    Each candidate is planned; of at most eight of the attributes its tables are measured with the
    same noise but for its size, and smoothed, on made-up records in which attributes depend little
    on each other, and on others in which they depend much and some are sums of two. Its loss in a
    population is its error over the best candidate's. If the largest loss of weights by pairs alone
    is clearly the least, these are taken with a tenth by cell, simulated as well. The same
    arguments always give the same weights; the adaptive plan, whose selections are random, is
    simulated beside them, and once more where chance could decide which is better. No record is
    read and nothing is spent.

    Args:
        workload: The tables; those of one and two attributes within them are added.
        budget: That of their plan.
        expected: Public counts, of which made-up records have the total and the margin.

    Raises:
        WorkloadError: If a table has amounts, or the expected counts do not fit the codebook.
    """
    by_pairs = SmoothWeights(float(budget.record_privacy_cost) / 2, expected.total)
    workload = by_pairs.weighted(workload)
    if int(workload.orders.max()) < FEWEST_OF_THREE:
        return SmoothChoice(by_pairs, 1.0, None)
    simulated = _simulated_part(workload)
    if simulated is None or not 1 <= expected.total <= MOST_RECORDS:
        mixed = mixed_smooth_weights(by_pairs, workload, budget, (NOT_SIMULATED,))
        return SmoothChoice(mixed[NOT_SIMULATED], NOT_SIMULATED, None)
    candidates = mixed_smooth_weights(by_pairs, workload, budget, (*SHARES, NEARLY_BY_PAIRS))

    def planned(share: float) -> TablePlan:
        weighted = replace(workload, weights=candidates[share].weights(workload))
        return plan_tables(weighted, loss=SumOfVariances(), budget=budget)

    plans = [planned(share) for share in SHARES]
    adaptive = _adaptive(simulated, plans[0], budget, expected)
    n_of_adaptive = 0 if adaptive is None else _MOST_SIMULATIONS
    n_steps = len(POPULATIONS) * (len(SHARES) + n_of_adaptive)
    made: dict[str, Counts] = {}
    rows: dict[str, list[float]] = {"share": list(SHARES)}
    for number, population in enumerate(POPULATIONS):
        codes, n_records = population_records(population, simulated, expected)
        made[population] = counts = _counts(simulated, codes, n_records)
        rows[population] = []
        for position, plan in enumerate(plans):
            on_progress("Simulating weights", (number * len(SHARES) + position) / n_steps)
            rows[population].append(_error(simulated, _smooth(simulated, plan, counts), counts))
    frame = pd.DataFrame(rows)
    # An error may be 0, where next to nothing is noise.
    errors = np.maximum(frame[list(POPULATIONS)].to_numpy(), _LEAST_ERROR)
    errors[1:] = _evened_out(errors[1:])
    frame[list(POPULATIONS)] = errors
    at_worst = (errors / errors.min(axis=0)).max(axis=1)
    least = at_worst[1:].min()
    # Of mixtures about as good that with most by pairs: smaller differences are chance.
    share = SHARES[1 + int(np.argmax(at_worst[1:] <= ABOUT_AS_GOOD * least))]
    if _CLEARLY_BETTER * at_worst[0] < least:
        share, plan = NEARLY_BY_PAIRS, planned(NEARLY_BY_PAIRS)
        of_share = [_error(simulated, _smooth(simulated, plan, of), of) for of in made.values()]
        frame.loc[len(frame)] = [share, *np.maximum(of_share, _LEAST_ERROR)]
    of_adaptive = None
    if adaptive is not None:
        of_rest = part_of_progress(on_progress, len(POPULATIONS) * len(SHARES) / n_steps, 1.0)
        of_adaptive = _adaptive_errors(
            simulated, adaptive, made, *_chosen_and_least(frame, share), of_rest
        )
    on_progress("Finished", 1.0)
    return SmoothChoice(candidates[share], share, frame, of_adaptive)


def _chosen_and_least(frame: pd.DataFrame, share: float) -> tuple[list[float], list[float]]:
    """In each population, the error of a mixture and the least of all."""
    errors = frame.set_index("share")[list(POPULATIONS)]
    return errors.loc[share].tolist(), errors.min().tolist()


def _adaptive_errors(
    part: Workload,
    plan: AdaptivePlan,
    made: Mapping[str, Counts],
    chosen: Sequence[float],
    least: Sequence[float],
    on_progress: Progress,
) -> dict[str, float]:
    """In each population the mean error of one simulation, or two where chance could decide.

    The larger of two losses that vary by chance is too large on average, so that a single
    simulation speaks against the adaptive plan where it says little.

    made: the tables of the records of each population
    """
    errors: list[list[float]] = []
    means: list[float] = []
    for number in range(_MOST_SIMULATIONS):
        on_progress("Simulating an adaptive plan", number / _MOST_SIMULATIONS)
        errors.append([_error(part, adaptive_fit(plan, of), of) for of in made.values()])
        means = np.mean(errors, axis=0).tolist()
        if abs(gain_at_worst(means, chosen, least)) > _CHANCE:
            break
    return dict(zip(made, means, strict=True))


def _evened_out(errors: np.ndarray) -> np.ndarray:
    """Errors of the mixtures, each row after the least squares parabola of log error in log odds θ.

    Each is simulated with one draw of noise, and the same draw scaled by another σ moves other
    deviations of three attributes above the noise: single errors are off by 1 to 3 %. Expected
    errors change slowly with θ, whose odds are the reciprocal of what a cell adds to a weight.

    errors: float64[n_mixtures, n_populations], positive, of `SHARES` but the first
    """
    shares = np.array(SHARES[1:])
    powers = np.vander(np.log(shares / (1 - shares)), 3)
    return np.exp(powers @ np.linalg.lstsq(powers, np.log(errors))[0])


def _adaptive(
    part: Workload, plan: TablePlan, budget: Budget, expected: ExpectedCounts
) -> AdaptivePlan | None:
    """An adaptive plan of the same tables and budget; None where there can be none.

    Of a part of a plan's tables it has the share of the budget that the plan spends on them.
    """
    records = max(round(expected.total), 1)
    budget = budget.with_cost(budget.least_cost)  # as `adaptive_plan` keeps it
    costs = plan.closure.full_cost_factor / plan.sigma_squared.floats
    own = costs[_residuals(part, plan)].sum() / costs.sum()
    if own < 1:
        budget = budget.of_unit(rho=budget.rho * Fraction(float(own)).limit_denominator(10**6))
    try:
        return adaptive_plan(part, budget=budget, expected_records=records)
    except RpexploreError:  # such as of budgets of classes, or too few records
        return None


def _simulated_part(workload: Workload) -> Workload | None:
    """The tables of at most eight attributes, all in single values; None if there are none."""
    if workload.uses_levels or any(
        not workload.basis_of(table, index).is_identity
        for table in range(len(workload))
        for index in workload.attribute_indices(table)
    ):
        return None
    largest = workload.orders >= FEWEST_OF_THREE
    used = np.unique(workload.members[largest])
    used = used[used >= 0]
    by_size = used[np.argsort(workload.domain.sizes[used], kind="stable")]
    # From the smallest to the largest, evenly.
    count = min(_MOST_ATTRIBUTES, len(by_size))
    kept = set(by_size[np.linspace(0, len(by_size) - 1, count).astype(int)].tolist())
    tables = [
        table
        for position, table in enumerate(workload.tables)
        if kept.issuperset(workload.attribute_indices(position))
    ]
    if not tables or max(map(len, tables)) < FEWEST_OF_THREE:
        return None
    part = Workload.of(workload.domain, tables)
    return part if float(np.sum(part.counted_cells)) <= _MOST_CELLS else None


def _counts(workload: Workload, codes: Codes, n_records: int) -> Counts:
    """Of all tables, of made-up records."""
    tables = [tuple(workload.attribute_indices(place)) for place in range(len(workload))]
    sizes = workload.domain.sizes.tolist()
    return counts_of([(codes, n_records, 1.0)], tables, sizes, on_progress=no_progress)


def _residuals(part: Workload, plan: TablePlan) -> list[int]:
    """Of a plan of more tables, the residuals that the tables of a part have."""
    own = Closure.of(part)
    found = (plan.closure.find(own.attributes(residual)) for residual in range(len(own)))
    return [residual for residual in found if residual is not None]


def _smooth(part: Workload, plan: TablePlan, counts: Counts) -> SmoothTables:
    """The smooth tables of a part of a plan's tables."""
    residuals = _residuals(part, plan)
    contributions = dict(noisy_contributions(plan, counts, no_progress, residuals))
    variances = {
        plan.closure.attributes(residual): float(plan.sigma_squared.floats[residual])
        for residual in residuals
    }
    return smooth_residuals(MeasuredResiduals(contributions, variances, part.domain.sizes, {}))


def _error(workload: Workload, smooth: SmoothTables, counts: Counts) -> float:
    """The mean L1 error of the largest tables, a share of the records."""
    tables: list[AttributeIndices] = [
        tuple(workload.attribute_indices(position))
        for position in np.flatnonzero(workload.orders == workload.orders.max()).tolist()
    ]
    errors = [np.abs(smooth.table(table) - counts.counts(table)).sum() for table in tables]
    return float(np.mean(errors)) / max(counts.n_records, 1)
