"""The smallest budget at which all targets can be met, and the targets that bind it.

It is the one at which the smallest possible largest ratio of variance to target is 1
(docs/mathematics.md §6.2), whose shadow prices tell which targets bind it.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeVar

import numpy as np

from rpexplore.common.concurrency import Progress, no_progress, one_thread
from rpexplore.common.formatting import rounded
from rpexplore.errors import WorkloadError
from rpexplore.planning.mechanism.cell_variances import CellVariances
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.optimal_strategies import with_best_strategies
from rpexplore.planning.solvers.feasibility import FeasiblePoint, find_feasible
from rpexplore.planning.solvers.solution import TOLERANCE
from rpexplore.planning.solving import phases, weights_within
from rpexplore.privacy.budget import Budget
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
    """

    workload: Workload
    closure: Closure
    tables: np.ndarray
    point: FeasiblePoint
    max_records_per_person: int | None = None

    @property
    def budget(self) -> Budget:
        """The smallest budget that is enough, in ρ, rounded up to five digits."""
        rho = typed_above(rho_with_allowance(self.rho))
        return Budget(rho=rho, max_records_per_person=self.max_records_per_person)

    @property
    def rho(self) -> float:
        """ρ of the privacy unit at which all these targets are met, as computed."""
        return rho_of_unit(self.record_privacy_cost, self.max_records_per_person)

    @property
    def record_privacy_cost(self) -> float:
        """Privacy cost of one record at which all these targets are met."""
        return self.point.largest

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
        """The same for the privacy unit of a budget."""
        return replace(self, max_records_per_person=budget.max_records_per_person)


def minimum_budget(
    workload: Workload,
    *,
    required_only: bool = False,
    max_records_per_person: int | None = None,
    closure: Closure | None = None,
    uniform_reference: bool = False,
    tolerance: float = TOLERANCE,
    on_progress: Progress = no_progress,
) -> MinimumBudget:
    """The smallest budget at which all targets of a workload can be met.

    Args:
        required_only: Whether only required targets have to be met.
        max_records_per_person: Most records of a person, who then is the privacy unit.
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
    unusable = capped & ~((workload.targets > _LEAST_TARGET) & (workload.targets < _MOST_TARGET))
    if np.any(unusable):
        table = int(np.argmax(unusable))
        raise WorkloadError(
            f"The target of table {workload.describe(table)} must be a standard error of "
            f"{_LEAST_TARGET:g} to {_MOST_TARGET:g} to find the budget for it, got "
            f"{workload.targets[table]:g}; give one that can be met."
        )
    caps = np.where(capped, workload.targets**2, np.inf)
    if closure is None:
        searching, on_progress = phases(workload, on_progress)
        closure = with_best_strategies(
            workload,
            Closure.of(workload),
            weights_within(caps),
            largest=True,
            uniform_reference=uniform_reference,
            on_progress=searching,
        )
    with one_thread():
        cells = CellVariances(workload, closure)
        point = find_feasible(cells, caps, 1.0, tolerance, on_progress=on_progress)
    return MinimumBudget(workload, closure, np.flatnonzero(capped), point, max_records_per_person)


def rho_of_unit(record_privacy_cost: Cost, max_records_per_person: int | None) -> Cost:
    """ρ of the privacy unit where one record costs this: c m² / 2, for a number or an array."""
    return record_privacy_cost * ((max_records_per_person or 1) ** 2 / 2)


def rho_with_allowance(rho: float) -> Fraction:
    """The ρ at which a plan surely does what the optimum does at this one."""
    return Fraction(rho) * (1 + _ROUNDING_ALLOWANCE)


def typed_above(value: float | Fraction) -> str:
    """A number rounded up to five digits, as people type it: "0.34654"."""
    return rounded(value, _BUDGET_DIGITS, "up").replace(",", "")
