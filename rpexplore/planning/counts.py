"""Query plan: how a list of linear queries is released. A frozen value, one JSON file."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from rpexplore.common.numbers import read_only, shown_few
from rpexplore.common.text import plural, rounded
from rpexplore.domain.domain import Domain
from rpexplore.errors import PlanError
from rpexplore.planning.counts_objectives import LARGEST, CountsObjective
from rpexplore.planning.counts_plan_file import fields_of_plan, text_of_plan
from rpexplore.planning.counts_strategy import QueryStrategy
from rpexplore.planning.losses.losses import Loss, p_norm
from rpexplore.planning.part_plan import (
    LARGEST_GAMMA_SQUARED,
    Certificate,
    CertifiedPlan,
    item_columns,
)
from rpexplore.privacy.budget import Budget
from rpexplore.privacy.discrete_noise import DiscreteNoise
from rpexplore.workload.query_list import QueryList

if TYPE_CHECKING:
    from rpexplore.planning.verification import Check


def noise_of_counts(
    strategy: QueryStrategy, gamma_squared: float, privacy_cost: Fraction
) -> DiscreteNoise:
    """The noise of what a strategy measures, for (ε, δ). privacy_cost: of the privacy unit"""
    scale = gamma_squared * float(strategy.queries.steps) ** 2
    groups = scale, float(len(strategy.integers)), float(privacy_cost)
    return DiscreteNoise.of(privacy_cost, *(np.array([number]) for number in groups))


@dataclass(frozen=True, eq=False, repr=False)
class QueryPlan(CertifiedPlan):
    """The measurement for a list of queries, its noise, and the accuracy that follows.

    strategy            R: measured is R x with independent discrete Gaussian noise; without noise
                        what is a multiple of the number of records, where that is public
    gamma_squared       exact variance parameter of that noise, in records: where there are amounts
                        what is measured, and its noise, are multiplied by their `steps`
    variances           of each query's answer, float64[n_queries], read-only
    exact_privacy_cost  of the privacy unit: the largest squared column norm of R over γ², times m²
                        for persons with at most m records; ≤ the budget's. Where neighbours
                        replace a record, of the largest difference of two columns
    certificate         of the objective, a value of the ratios of variances to squared targets;
                        its shadow prices are those of the queries
    cell_weights        float64[n_cells], sum 1: with the shadow prices they prove the bound. Where
                        neighbours replace a record, of pairs of cells
    cell_pairs          these pairs, int64[n, 2]; None where records are added or removed
    version             of the library that made the plan
    objective           what the plan minimises

    Make one with `plan` or `QueryPlan.load`. Raises `PlanError` for noise that is too large
    to be drawn.
    """

    kind = "counts"
    noun = "plan of own counts"
    item, released_item = "own count", "noisy own count"
    accuracy_statement = "Every own count is unbiased, with the standard error the plan states."

    strategy: QueryStrategy
    budget: Budget
    gamma_squared: Fraction
    variances: np.ndarray
    exact_privacy_cost: Fraction
    certificate: Certificate
    cell_weights: np.ndarray
    version: str
    objective: CountsObjective = LARGEST
    cell_pairs: np.ndarray | None = None

    def __post_init__(self) -> None:
        check_scale(self.gamma_squared, self.queries.steps)

    @property
    def measured_gamma_squared(self) -> Fraction:
        """The variance parameter of the noise of what is measured, in whole numbers: exact."""
        return self.gamma_squared * self.queries.steps**2

    # ---- what it is about

    @property
    def domain(self) -> Domain:
        return self.queries.domain

    @property
    def products(self) -> Sequence[tuple[int, int]]:
        amounts, weights = set(self.domain.amounts), set(self.domain.weights)
        return [(one, other) for one in sorted(amounts - weights) for other in sorted(weights)]

    @property
    def attribute_indices(self) -> tuple[int, ...]:
        return tuple(range(len(self.domain)))

    @property
    def n_items(self) -> int:
        return len(self.queries)

    # ---- its part of the file

    def to_text(self) -> str:
        return text_of_plan(self)

    @classmethod
    def of_content(cls, content: Any, version: str, folder: Path | None) -> Self:
        return cls(**fields_of_plan(content, version))

    def checks(self, *, strategies: bool) -> "tuple[Check, ...]":
        from rpexplore.planning.verification import query_checks

        return query_checks(self, strategies=strategies)

    # ---- what it guarantees

    @cached_property
    def noise(self) -> DiscreteNoise:
        return noise_of_counts(self.strategy, float(self.gamma_squared), self.exact_privacy_cost)

    # ---- what it is worth

    @property
    def restriction(self) -> str:
        return f"own counts measured as here, to {self.objective.title}"

    def restriction_for(self, loss: Loss | None) -> str:
        return "" if self._is_best_for(loss) else self.restriction

    def _is_best_for(self, loss: Loss | None) -> bool:
        """Whether its certificate is about the objective of the whole plan, too."""
        return loss is not None and loss.power is not None and loss.power == self.objective.power

    def worth(self, loss: Loss) -> tuple[float, float] | None:
        """Each count is one more table of one cell to the objective of the whole.

        Its weight is 1 for the smallest target t, and (t/target)² for others: whoever asks less
        of a count does not thereby give it more of the budget.
        Where the objective of own counts combines them as that of the whole does, the bound is of
        all plans with Gaussian noise; otherwise of those that measure the counts as this one does.
        """
        if loss.power is None:
            return None
        scales = (
            1.0
            if loss.compares_with_targets
            else np.min(self.targets[self.strategy.is_charged]) ** 2
        ) / self.targets**2
        value = p_norm((self.variances * scales)[self.strategy.is_charged], loss.power)
        if self._is_best_for(loss):
            return value, value * self.certificate.lower_bound / self.certificate.loss_value
        # At the whole budget, of which rounding leaves a little unused.
        return value, value * float(self.exact_privacy_cost / self.budget.privacy_cost)

    @property
    def queries(self) -> QueryList:
        return self.strategy.queries

    @property
    def profile(self) -> np.ndarray:
        """Share of the privacy cost that records of each cell use, float64[n_cells]."""
        return self.strategy.replaced_profile if self.budget.replaces else self.strategy.profile

    @property
    def spare(self) -> np.ndarray:
        """Whether records of the cell leave some of the budget for more counts, bool[n_cells].

        None does where they are replaced by records of other cells, which may leave nothing.
        """
        return self.strategy.spare & (not self.budget.replaces)

    @property
    def targets(self) -> np.ndarray:
        """Wanted standard error of each query, float64[n_queries]."""
        return self.queries.targets

    @cached_property
    def standard_errors(self) -> np.ndarray:
        """Of each query's answer, float64[n_queries], read-only."""
        return read_only(np.sqrt(self.variances))

    @property
    def variance_ratios(self) -> np.ndarray:
        """Variance of each query over its squared target, float64[n_queries]; at most 1: met."""
        return self.variances / self.targets**2

    @property
    def ratio(self) -> float:
        """The largest of the variance ratios, free counts aside; at most 1: targets are met."""
        return float(np.max(self.variance_ratios[self.strategy.is_charged]))

    @property
    def free_counts(self) -> tuple[str, ...]:
        """The names of the counts that only take what the others leave of the budget."""
        return tuple(self.queries.names[place] for place in self.strategy.free)

    @property
    def met(self) -> np.ndarray:
        """Whether each query is as accurate as wanted, bool[n_queries]."""
        return self.standard_errors <= self.targets

    def accuracy_columns(self) -> dict[str, Any]:
        """How accurate every count is, one entry a count: see `item_columns`."""
        return item_columns(
            self.kind,
            self.queries.names,
            standard_error=self.standard_errors,
            smallest_standard_error=self.standard_errors,
            largest_standard_error=self.standard_errors,
            target=self.targets,
            shadow_price=self.certificate.shadow_prices,
        )

    def _accuracy_lines(self) -> list[str]:
        """The range of the standard errors of counts of one unit, a line each."""
        queries, has_amounts = self.queries, bool(self.queries.domain.amounts)
        units = [queries.unit(query) if has_amounts else "" for query in range(len(queries))]
        lines = []
        for unit in dict.fromkeys(units):
            errors = self.standard_errors[np.array(units) == unit]
            lines.append(
                f"  {'' if lines else 'Accuracy':9}  standard errors {errors.min():.4g} to "
                f"{errors.max():.4g}, median {np.median(errors):.4g}"
            )
            if len(set(units)) > 1:
                lines[-1] += f" ({unit or 'records'})"
        return lines

    def __str__(self) -> str:
        """The plan in a few lines, for a terminal."""
        queries, errors = self.queries, self.standard_errors
        measured = plural(len(self.strategy.integers), "number")
        furthest = int(np.argmax(self.variance_ratios))
        which = "tightest" if np.all(self.met) else "furthest off"
        n_spare = np.count_nonzero(self.spare)
        noun, of_cells = ("cell", "") if queries.atoms is None else ("group", " of cells")
        lines = [
            f"Plan for {plural(len(queries), 'own count')} over {queries.cells_text} "
            f"({measured} to measure)",
            *self.privacy_lines,
            f"  Targets    {np.count_nonzero(self.met):,} of {len(queries):,} met; {which}: "
            f"{queries.names[furthest]}, {errors[furthest]:.4g} for a target of "
            f"{self.targets[furthest]:.4g}",
            f"  Objective  {self.objective.title}",
            f"  Proven     {self.proven}",
            *self._accuracy_lines(),
            f"  Profile    {plural(int(n_spare), noun)}{of_cells} with unused budget",
        ]
        if free := self.free_counts:
            lines.append(f"  Free       {shown_few(list(free))}: no record costs more for them")
        return "\n".join(lines)


def check_scale(gamma_squared: Fraction, steps: int = 1) -> None:
    """Raise `PlanError` for noise that is too large to be drawn; steps: of `QueryList`."""
    measured = gamma_squared * steps**2
    if measured >= LARGEST_GAMMA_SQUARED:
        finer = "" if steps == 1 else ", or narrower limits or fewer decimals of the amounts"
        raise PlanError(
            "The noise at this budget is too large for 64-bit integers (scale "
            f"{rounded(math.isqrt(int(measured)), 3)}, at most "
            f"{rounded(math.isqrt(int(LARGEST_GAMMA_SQUARED)), 3)}); use a larger budget{finer}."
        )
