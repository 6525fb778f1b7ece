"""What an adaptive run knows of the tables: the fit of everything measured so far.

Of residuals that were measured several times the mean by inverse variance is taken. Those that were
not measured at all count as measured with a noise that hides everything, so that the fit of smooth
tables (docs/mathematics.md §13) is one for fixed and for adaptive releases.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import prod

import numpy as np

from rpexplore.common.concurrency import Progress, no_progress
from rpexplore.domain.domain import AttributeIndices
from rpexplore.estimation.array_store import ArrayStore
from rpexplore.estimation.measured_residuals import MeasuredResiduals
from rpexplore.estimation.smooth_tables import SmoothTables, smooth_residuals
from rpexplore.planning.adaptive.adaptive_plan import AdaptivePlan
from rpexplore.planning.mechanism.reconstruction import contribution
from rpexplore.releases.adaptive.outcomes import RoundOutcome, shape_of

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
        sizes = self.plan.domain.sizes
        residuals = MeasuredResiduals(contributions, variances, sizes, {})
        return smooth_residuals(residuals, on_progress=on_progress)


def residual_variance(plan: AdaptivePlan, number: int, subset: AttributeIndices) -> Fraction:
    """σ² with which a round measures a residual: p_A/(2σ²) = ρ, p_A = ∏ (1 − 1/n_i)."""
    sizes = shape_of(plan, subset)
    share = prod((Fraction(size - 1, size) for size in sizes), start=Fraction(1))
    return share / (2 * plan.rounds[number].measurement_rho)


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
