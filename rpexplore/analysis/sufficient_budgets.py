"""What an accuracy would cost: the smallest budget at which tables are as accurate as wanted.

Variances fall as 1/budget (docs/mathematics.md §6.2), so each answer is one division. Answers are
rounded up to numbers a person can type, and the plan made with such a number keeps the promise.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from rpexplore.analysis.budget_units import (
    stated_delta,
    stated_text,
    stated_unit,
    typed_text,
    with_privacy_unit,
    with_value,
)
from rpexplore.common.text import rounded
from rpexplore.errors import BudgetError, WorkloadError
from rpexplore.planning.counts_planner import QueryOptimum
from rpexplore.planning.losses.losses import MaxVariance
from rpexplore.planning.minimum_budget import rho_of_unit, rho_with_allowance, typed_above
from rpexplore.planning.planner import Optimum
from rpexplore.privacy import conversions as privacy
from rpexplore.privacy.budget import Budget
from rpexplore.privacy.conversions import rho_text
from rpexplore.privacy.discrete_noise import DiscreteNoise, proven_epsilon
from rpexplore.workload.table_text import title_of

TARGET_LOSS = MaxVariance(relative_to="target")
# What is added to the smallest budget where some tables have no such target, so that they get some.
ROOM_FOR_OTHERS = 0.1
_MOST_RHO = 1e90  # what lies beyond is no budget, whatever the privacy unit
_LEAST_EPSILON = 1e-90  # of a budget that is stated in ε


@dataclass(frozen=True)
class SufficientBudget:
    """A budget that is enough, for the privacy unit of the current one.

    needed  ρ at which the accuracy is just reached, as computed
    rho     the same rounded up to a few digits, as people type it: enough, provably
    budget  enough as well, stated in the unit that the current budget is stated in; an (ε, δ) at
            the cost at which the noise proves it
    times   needed ρ over the current one
    noise   that reaches it, at any scale; None where it is not known, so that ε follows from ρ
    """

    needed: float
    rho: str
    budget: Budget
    times: float
    noise: DiscreteNoise | None = None

    @property
    def text(self) -> str:
        """ "ρ = 0.34654 (ε = 4.31 at δ = 1e-6)"."""
        epsilon = self.budget.epsilon_text(Fraction(self.rho), noise=self.noise)
        return f"ρ = {self.rho} ({epsilon})"

    def is_stated_as(self, budget: Budget) -> bool:
        """Whether a budget states the same, at whatever cost its own noise proves it."""
        return with_privacy_unit(self.budget, budget.max_records_per_person) == with_privacy_unit(
            budget, budget.max_records_per_person
        )

    @property
    def short_text(self) -> str:
        """The budget in the unit it is stated in, with three digits, rounded up: "ε = 2.13"."""
        symbol, _, value = stated_text(self.budget).partition(" = ")
        return f"{symbol} = {rounded(Fraction(value.replace(',', '')), 3, 'up')}"

    @property
    def compared(self) -> str:
        """ "3.5 times the current ρ", "the current budget", "25 % of the current ρ"."""
        if self.times >= 0.995:
            if rounded(self.times, 3) == "1":
                return "the current budget"
            return f"{rounded(self.times, 3, 'up')} times the current ρ"
        return f"{rounded(100 * self.times, 3, 'up')} % of the current ρ"


def needed_rho(optimum: Optimum, budget: Budget) -> np.ndarray:
    """ρ at which each table meets its target, float64[n_tables]; NaN where it has none.

    A table meets it when its least accurate cell does.
    """
    optimum, targets = optimum.for_neighbours(budget), optimum.workload.planned_targets
    with np.errstate(over="ignore"):
        costs = optimum.table_variances.largest / targets / targets
        return rho_of_unit(costs, budget.max_records_per_person)


def smallest_budget(optimum: Optimum, budget: Budget, *, by_rho: bool = False) -> SufficientBudget:
    """The smallest budget at which the plan with this objective meets all targets there are.

    Of `TARGET_LOSS` it is the smallest that any plan can do with, up to the solver's tolerance.
    budget: the current one, for the privacy unit and the comparison; by_rho: whether ε follows from
    ρ alone, as where a rest is planned behind a pilot.

    Raises `WorkloadError` if no table has a target, `BudgetError` if none is large enough.
    """
    needs = needed_rho(optimum, budget)
    if np.all(np.isnan(needs)):
        raise WorkloadError("No table has a target; set one for the tables that need it.")
    table = int(np.nanargmax(needs))
    target, title = optimum.workload.targets[table], title_of(optimum.workload, table)
    what = f"The target {target:g} of {title}"
    noise = None if by_rho else optimum.noise(budget)
    return sufficient_budget(float(needs[table]), budget, what, noise)


def budget_for_error(
    variance: float, wanted: float, budget: Budget, noise: DiscreteNoise | None = None
) -> SufficientBudget:
    """The smallest budget at which a standard error is as wanted.

    variance: at privacy cost 1 of one record, as `Optimum.mean_variances` has it; noise: the
    optimum's

    Raises `BudgetError` for a wanted standard error that is not positive, or out of reach.
    """
    if not wanted > 0:
        raise BudgetError(f"The wanted standard error must be above 0, got {wanted:g}.")
    needed = rho_of_unit(variance / wanted / wanted, budget.max_records_per_person)
    return sufficient_budget(needed, budget, noise=noise)


def smallest_query_budget(optimum: QueryOptimum, reference_budget: Budget) -> SufficientBudget:
    """The smallest budget at which all queries meet their targets, rounded up.

    No mechanism with Gaussian noise does with less, up to the solver's tolerance.
    reference_budget: the current budget, for the privacy unit, the unit it is stated in, and the
    comparison.

    Raises `BudgetError` if none is large, or small, enough.
    """
    optimum = optimum.for_neighbours(reference_budget)
    most = int(np.argmax(optimum.needed_costs))
    queries = optimum.queries
    what = f"The target {queries.targets[most]:g} of the own count {queries.names[most]!r}"
    needed = rho_of_unit(optimum.cost, reference_budget.max_records_per_person)
    noise = optimum.noise(reference_budget)
    return sufficient_budget(needed, reference_budget, what, noise)


def sufficient_budget(
    needed: float, budget: Budget, what: str = "That", noise: DiscreteNoise | None = None
) -> SufficientBudget:
    """The budget for a needed ρ, rounded up in the unit that the current one is stated in.

    In ρ where ε would be 0: that little ρ is covered by δ alone.

    what: needs it, for the `BudgetError` of a ρ that is too large or too small
    noise: of the plans that it is for, at any scale, by which an ε is the smallest that is proven
    """
    if not 1 / _MOST_RHO < needed < _MOST_RHO:
        remedy = "smaller" if needed < 1 else "larger"
        raise BudgetError(
            f"{what} would take {rho_text(needed, 3, 'nearest')}, which cannot be planned with; "
            f"choose a {remedy} standard error."
        )
    least = rho_with_allowance(needed)
    unit, delta = stated_unit(budget), stated_delta(budget)
    if unit == "epsilon" and proven_epsilon(least, delta, noise) < _LEAST_EPSILON:
        unit = "rho"
    value = least
    if unit == "mu":
        value = privacy.mu_from_privacy_cost(2 * least)
    elif unit == "epsilon":
        value = proven_epsilon(least, delta, noise)
    enough = with_value(budget, unit, _rounded_up(value), delta)
    if unit == "epsilon" and enough.rho < least and noise is not None:
        enough = enough.with_cost(2 * least)  # at which the noise proves it
    elif enough.rho < least:  # (ε, δ) is turned into ρ downwards
        value = Fraction(value) * (1 + Fraction(1, 10**5))
        enough = with_value(budget, unit, _rounded_up(value), delta)
    times = needed / float(budget.rho)
    return SufficientBudget(needed, _rounded_up(least), enough, times, noise)


def restated(budget: Budget, noise: DiscreteNoise) -> Budget:
    """The same privacy cost, with the ε that this noise proves in place of that of another.

    Budgets that are not stated as (ε, δ), or that ρ alone proves, are left as they are.
    """
    delta = budget.stated_delta
    if delta is None or budget.privacy_cost <= budget.least_cost:
        return budget
    value = _rounded_up(noise.epsilon_at(budget.rho, delta))
    return with_value(budget, "epsilon", value, typed_text(delta)).with_cost(budget.privacy_cost)


def _rounded_up(value: float | Fraction) -> str:
    """Rounded up to a few digits, as people type it."""
    return typed_text(Fraction(typed_above(value)))
