"""Reach: the smallest budget that meets hard targets, and what holds it up.

Variances fall as 1/budget, so the smallest budget is the one at which the smallest possible largest
ratio of variance to target is 1 (docs/mathematics.md §6.2). Its shadow prices tell which targets
hold it up, and what each would save if it were wider.
"""

from dataclasses import dataclass

import numpy as np

from rpexplore.common.concurrency import one_thread
from rpexplore.errors import WorkloadError
from rpexplore.planning.losses.base import MaxVariance
from rpexplore.planning.mechanism.cell_variances import CellVariances
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.solvers.capped_sum import FeasiblePoint, within
from rpexplore.planning.solvers.solution import TOLERANCE
from rpexplore.planning.solving import Note, with_optimal_strategies
from rpexplore.workload.workload import Workload

_HOLDS = 1e-3  # a target with a smaller share hardly holds the budget up


@dataclass(frozen=True, eq=False, repr=False)
class Reach:
    """What it takes to meet the targets of some tables, whatever the others get.

    tables  int64[m]: places of the tables whose targets are to be met, ascending
    within  the plan at privacy cost 1 of one record that comes furthest inside them
    """

    workload: Workload
    closure: Closure
    tables: np.ndarray
    within: FeasiblePoint

    @property
    def needed_cost(self) -> float:
        """Privacy cost of one record at which all these targets are met."""
        return self.within.largest

    @property
    def least_cost(self) -> float:
        """No plan that measures the attributes so meets them at a smaller privacy cost."""
        return self.within.least

    @property
    def covers_all_tables(self) -> bool:
        """Whether all tables are among them; others get nothing at the smallest budget."""
        return len(self.tables) == len(self.workload)

    @property
    def shares(self) -> np.ndarray:
        """By how many per cent the smallest budget falls when a table's target variance grows by
        one per cent: float64[n_tables], sum 1; 0: the target does not hold it up."""
        return self.within.prices

    @property
    def binding_tables(self) -> np.ndarray:
        """The tables that hold the smallest budget up, the one that does most first, int64[k].

        Without those that hold less than a thousandth of it.
        """
        order = np.argsort(-self.shares, kind="stable")
        return order[self.shares[order] > _HOLDS]

    def saving(self, wider: float) -> np.ndarray:
        """What it would save if one target were wider (0.1: its standard error by 10 %).

        Share of the smallest budget, float64[n_tables]; exact for a table that holds it up alone,
        to first order otherwise.
        """
        return 1 - (1 + wider) ** (-2 * self.shares)


def reach(
    workload: Workload,
    *,
    required_only: bool = False,
    closure: Closure | None = None,
    uniform_reference: bool = False,
    tolerance: float = TOLERANCE,
    note: Note = lambda gap: None,
    note_strategies: Note = lambda share: None,
) -> Reach:
    """What it takes to meet all targets of a workload, or those that must be met.

    closure: of the workload, measured by strategies where it needs them; None: by those that suit
    these targets. The other arguments are those of `planner.optimum`.

    Raises `WorkloadError` if there are none.
    """
    asked = workload.required if required_only else ~np.isnan(workload.targets)
    if not np.any(asked):
        if required_only:
            raise WorkloadError("No target is marked required; mark those that have to be met.")
        raise WorkloadError("No table has a target; set targets for the tables that need them.")
    caps = np.where(asked, workload.targets**2, np.inf)
    if closure is None:
        closure = _measured(workload, caps, uniform_reference, note_strategies)
    with one_thread():
        found = within(CellVariances(workload, closure), caps, 1.0, tolerance, note=note)
    return Reach(workload, closure, np.flatnonzero(asked), found)


def _measured(workload: Workload, caps: np.ndarray, even: bool, note: Note) -> Closure:
    closure = Closure.of(workload)
    if workload.is_marginals:
        return closure
    # Tables without a cap count a little, so that all attributes are measured.
    inverse = np.where(np.isfinite(caps), 1 / caps, np.min(1 / caps[np.isfinite(caps)]) * 1e-3)
    return with_optimal_strategies(
        workload, closure, MaxVariance(), even=even, note=note, table_weights=inverse
    )
