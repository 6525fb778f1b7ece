"""The smallest budget at which all targets can be met, and the targets that bind it.

It is the one at which the smallest possible largest ratio of variance to target is 1
(docs/mathematics.md §6.2), whose shadow prices tell which targets bind it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TypeVar

import numpy as np

from rpexplore.common.processes import Progress, no_progress, one_thread
from rpexplore.common.text import rounded
from rpexplore.errors import WorkloadError
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.variances import CellVariances
from rpexplore.planning.optimal_strategies import with_best_strategies
from rpexplore.planning.planner import suits, with_neighbours
from rpexplore.planning.solvers.caps import FeasiblePoint, find_feasible
from rpexplore.planning.solvers.kinds_of_records import find_feasible_with_kinds
from rpexplore.planning.solvers.neighbours import (
    LEAST_COST,
    minimise_in_panel,
    minimise_replacing,
)
from rpexplore.planning.solvers.solution import TOLERANCE, Solution, dual_bound, rounding_allowance
from rpexplore.planning.solving import phases, weights_beside, weights_within
from rpexplore.planning.table_plan import noise_of_residuals
from rpexplore.privacy.budget import ADD_REMOVE, REPLACE, Budget
from rpexplore.privacy.discrete_noise import DiscreteNoise
from rpexplore.workload.workload import Workload

Cost = TypeVar("Cost", float, np.ndarray)

# What a plan can be worse than the optimum scaled to its budget, relative: its noise scales are
# rounded up to 12 digits, its variances are sums of fewer than 2^23 positive floats.
_ROUNDING_ALLOWANCE = Fraction(1, 10**8)

# Privacy costs that follow from their squares are numbers that budgets can have.
_LEAST_TARGET, _MOST_TARGET = 1e-40, 1e40

_BUDGET_DIGITS = 5  # of a budget that people type
_LEAST_SHARE = 1e-3  # of the budget: below it a target hardly binds


@dataclass(frozen=True, eq=False, repr=False)
class MinimumBudget:
    """The smallest budget for the targets of some tables, whatever the others get.

    tables                  int64[m]: indices of these tables, ascending
    point                   the plan at privacy cost 1 of one record that comes furthest inside them
    max_records_per_person  the privacy unit, as in `Budget`; None: one record
    exact                   the exact totals, as in `Budget`
    unit_noun               the word for the privacy unit, as in `Budget`
    """

    workload: Workload
    closure: Closure
    tables: np.ndarray
    point: FeasiblePoint
    max_records_per_person: int | None = None
    exact: tuple[tuple[str, ...], ...] = ()
    unit_noun: str | None = None

    @property
    def budget(self) -> Budget:
        """The smallest budget that is enough, in ρ, rounded up to five digits."""
        rho = typed_above(rho_with_allowance(self.rho))
        closure, names = self.closure, self.workload.domain.names
        return Budget(
            rho=rho,
            max_records_per_person=self.max_records_per_person,
            neighbours=REPLACE if closure.replaces else ADD_REMOVE,
            period=None if closure.panel is None else names[closure.panel.period],
            exact=self.exact,
            unit_noun=self.unit_noun,
        )

    @property
    def rho(self) -> float:
        """ρ of the privacy unit at which all these targets are met, as computed."""
        return rho_of_unit(self.record_privacy_cost, self.max_records_per_person)

    @property
    def record_privacy_cost(self) -> float:
        """Privacy cost of one record at which all these targets are met."""
        return self.point.largest

    @cached_property
    def noise(self) -> DiscreteNoise:
        """The noise of the plan that comes furthest inside the targets, at whatever scale."""
        factor = (self.max_records_per_person or 1) ** 2
        sigma_squared = self.point.solution.sigma_squared
        residuals = np.arange(len(self.closure))
        return noise_of_residuals(self.closure, residuals, sigma_squared, Fraction(factor), factor)

    @property
    def lower_bound(self) -> float:
        """No plan with these strategies meets them at a smaller privacy cost of one record."""
        return self.point.solution.lower_bound

    @property
    def covers_all_tables(self) -> bool:
        """Whether all tables are among them; others get nothing at the smallest budget."""
        return len(self.tables) == len(self.workload)

    @property
    def shares(self) -> np.ndarray:
        """By how many per cent the smallest budget falls when a table's target variance grows by
        one per cent: float64[n_tables], sum 1; 0: the target does not bind."""
        return self.point.solution.shadow_prices

    @property
    def binding_tables(self) -> np.ndarray:
        """The tables whose targets bind it (share above a thousandth), largest share first."""
        order = np.argsort(-self.shares, kind="stable")
        return order[self.shares[order] > _LEAST_SHARE]

    def saving_if_relaxed(self, by: float) -> np.ndarray:
        """The share of the smallest budget saved if one target were wider (0.1: by 10 %).

        float64[n_tables]; exact for a table that binds alone, to first order otherwise.
        """
        return 1 - (1 + by) ** (-2 * self.shares)

    def for_unit_of(self, budget: Budget) -> "MinimumBudget":
        """The same for the privacy unit and the neighbours of a budget."""
        if suits(self.closure, self.workload, budget):
            return replace(
                self,
                max_records_per_person=budget.max_records_per_person,
                exact=budget.exact,
                unit_noun=budget.unit_noun,
            )
        of_tables = np.isin(np.arange(len(self.workload)), self.tables)
        return _minimum_budget(self.workload, of_tables, self.closure, budget, TOLERANCE)


def minimum_budget(
    workload: Workload,
    *,
    required_only: bool = False,
    max_records_per_person: int | None = None,
    neighbours: str | None = None,
    period: str | None = None,
    exact: Sequence[str | Sequence[str]] = (),
    unit_noun: str | None = None,
    closure: Closure | None = None,
    uniform_reference: bool = False,
    tolerance: float = TOLERANCE,
    on_progress: Progress = no_progress,
) -> MinimumBudget:
    """The smallest budget at which all targets of a workload can be met.

    Args:
        required_only: Whether only required targets have to be met.
        max_records_per_person: Most records of a person, who then is the privacy unit.
        neighbours, period, exact: As of `Budget`; by default the first two are those of the
            closure, or "add-remove".
        unit_noun: The word for that unit, as in `Budget`.
        closure: Of the workload, with strategies where it needs them; by default with those that
            suit these targets.
        uniform_reference: Whether reference distributions are uniform, as in `optimum`.
        tolerance: Relative gap at which the search may stop.
        on_progress: Called with what is being done and the share that is done.

    Returns:
        The budget, and the tables whose targets bind it.

    Raises:
        WorkloadError: If no table has a target, or a required one.

    Example:
        >>> import rpexplore as rp
        >>> domain = rp.Domain.from_sizes({"age": 10, "sex": 2})
        >>> workload = rp.Workload.all_up_to(domain, 1).with_targets({"age": 20, "sex": 10})
        >>> float(rp.minimum_budget(workload).budget.rho)
        0.0060176
    """
    capped = workload.required if required_only else ~np.isnan(workload.targets)
    if not np.any(capped):
        if required_only:
            raise WorkloadError("No target is marked required; mark those that have to be met.")
        raise WorkloadError("No table has a target; set targets for the tables that need them.")
    targets = workload.planned_targets
    unusable = capped & ~((targets > _LEAST_TARGET) & (targets < _MOST_TARGET))
    if np.any(unusable):
        table = int(np.argmax(unusable))
        raise WorkloadError(
            f"The target of table {workload.describe(table)} must be a standard error of "
            f"{_LEAST_TARGET:g} to {_MOST_TARGET:g} to find the budget for it, got "
            f"{workload.targets[table]:g}; give one that can be met."
        )
    closures = [] if closure is None else [closure]
    if not closures:
        searching, on_progress = phases(workload, on_progress)
        caps, plain = np.where(capped, targets**2, np.inf), Closure.of(workload)
        searches = {True: weights_within(caps)}
        if plain.trees:  # of which more is tried for a sum, so that plans may meet targets by it
            searches[False] = weights_beside(caps, workload.weights)
        closures = [
            with_best_strategies(
                workload,
                plain,
                weights,
                largest=largest,
                uniform_reference=uniform_reference,
                on_progress=searching,
            )
            for largest, weights in searches.items()
        ]
    first = closures[0]
    if neighbours is None:
        neighbours = REPLACE if first.replaces else ADD_REMOVE
    if period is None and first.panel is not None:
        period, max_records_per_person = (
            workload.domain.names[first.panel.period], first.panel.most
        )  # fmt: skip
    unit = Budget(
        rho=1,
        max_records_per_person=max_records_per_person,
        neighbours=neighbours,
        period=period,
        exact=exact,
        unit_noun=unit_noun,
    )
    found = (
        _minimum_budget(workload, capped, one, unit, tolerance, on_progress) for one in closures
    )
    return min(found, key=lambda minimum: minimum.record_privacy_cost)


def _minimum_budget(
    workload: Workload,
    capped: np.ndarray,
    closure: Closure,
    unit: Budget,
    tolerance: float,
    on_progress: Progress = no_progress,
) -> MinimumBudget:
    """The smallest budget for the targets of some tables, bool[n_tables], for a unit of privacy."""
    caps = np.where(capped, workload.planned_targets**2, np.inf)
    closure = with_neighbours(closure, workload, unit)
    by_residual = closure.by_residual
    if by_residual:
        closure = closure.replacing_by_residual(replaces=True, least_cost=LEAST_COST)
    with one_thread():
        cells = CellVariances(workload, closure)
        if closure.has_own_costs and not by_residual:
            closure, point = _feasible_at_prices(workload, closure, caps, tolerance, on_progress)
        elif closure.classes is None:
            point = find_feasible(cells, caps, 1.0, tolerance, on_progress=on_progress)
        else:
            closure, point = find_feasible_with_kinds(cells, caps, 1.0, on_progress=on_progress)
    if by_residual:
        closure = closure.replacing_by_residual(replaces=True)
    return MinimumBudget(
        workload,
        closure,
        np.flatnonzero(capped),
        point,
        unit.max_records_per_person,
        unit.exact,
        unit.unit_noun,
    )


def _feasible_at_prices(
    workload: Workload,
    closure: Closure,
    caps: np.ndarray,
    tolerance: float,
    on_progress: Progress,
) -> tuple[Closure, FeasiblePoint]:
    """`find_feasible` at privacy cost 1 for neighbours with costs of their own, and the closure."""

    def solve(priced: Closure, cost: float) -> Solution:
        cells = CellVariances(workload, priced)
        return find_feasible(cells, caps, cost, tolerance, on_progress=on_progress).solution

    minimise = minimise_replacing if closure.panel is None else minimise_in_panel
    closure, solution = minimise(closure, 1.0, solve, tolerance, scales=True)
    of_residuals = closure.residual_weights(solution.shadow_prices / caps)
    bound = dual_bound(closure.privacy_cost_factor, of_residuals, 1.0)
    bound *= 1 - rounding_allowance(len(workload))
    least_accurate = CellVariances(workload, closure).least_accurate(solution.sigma_squared)
    largest = float(np.max(least_accurate.variances / caps))
    return closure, FeasiblePoint(replace(solution, lower_bound=bound), largest)


def rho_of_unit(record_privacy_cost: Cost, max_records_per_person: int | None) -> Cost:
    """ρ of the privacy unit where one record costs this: c m² / 2, for a number or an array."""
    return record_privacy_cost * ((max_records_per_person or 1) ** 2 / 2)


def rho_with_allowance(rho: float) -> Fraction:
    """The ρ at which a plan surely does what the optimum does at this one."""
    return Fraction(rho) * (1 + _ROUNDING_ALLOWANCE)


def typed_above(value: float | Fraction) -> str:
    """A number rounded up to five digits, as people type it: "0.34654"."""
    return rounded(value, _BUDGET_DIGITS, "up").replace(",", "")
