"""Whether all variances can be kept within caps, and a plan that comes as far inside as can be."""

from dataclasses import dataclass

import numpy as np

from rpexplore.common.concurrency import Progress, no_progress
from rpexplore.planning.mechanism.cell_variances import CellVariances
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.solvers.max_cell_variance import minimise_max_cell_variance
from rpexplore.planning.solvers.solution import TOLERANCE, Solution, best_response

# Plans keep caps that are lower by this much, so that they keep the caps themselves when their
# noise scales have been rounded up to 12 digits.
CAP_ROUNDING = 1.1e-11
_TRACE = 1e-24  # weight that leaves tables without caps out of sight; the bound holds its root
_ROOM = 0.5  # share of what the caps leave that other tables get in a plan to mix with
_FINEST = 1e-11  # gap of a plan inside caps that leave next to no room


@dataclass(frozen=True, eq=False)
class FeasiblePoint:
    """A plan that comes as far inside all caps as can be.

    solution  residuals in no capped table cost next to nothing; its shadow prices: elasticity of
              `largest` in 1/cap
    largest   its largest Var/cap: caps can be met if it is at most 1, and not if the solution's
              lower bound is above 1; both fall as 1/budget
    """

    solution: Solution
    largest: float

    @property
    def is_feasible(self) -> bool:
        """Whether the caps are kept, and would be if they were lower by what rounding takes."""
        return self.largest < 1 - CAP_ROUNDING


def find_feasible(
    cells: CellVariances,
    caps: np.ndarray,
    privacy_cost: float,
    tolerance: float = TOLERANCE,
    *,
    on_progress: Progress = no_progress,
) -> FeasiblePoint:
    """The plan with the smallest max Var/cap over the tables with a cap, at this privacy cost.

    caps: float64[n_tables], inf for tables without one. It is found to the tolerance, or better
    where it takes that to tell whether there is room.
    """
    capped = np.flatnonzero(np.isfinite(caps))
    # Tables without a cap only need some scale for their trace: that of a typical cap.
    inverse = np.where(np.isfinite(caps), 1 / caps, np.exp(-np.mean(np.log(caps[capped]))))
    trace = cells.closure.residual_weights(inverse) * (_TRACE / len(caps))
    solution, gap = None, tolerance
    while True:
        solution = minimise_max_cell_variance(
            cells,
            inverse,
            privacy_cost,
            gap,
            tables=capped,
            fixed_weights=trace,
            start=solution,
            on_progress=on_progress,
        )
        least_accurate = cells.least_accurate(solution.sigma_squared).variances
        largest = float(np.max((least_accurate / caps)[capped]))
        # Settled: provably infeasible, clearly feasible, or so near to 1 that rounding decides.
        if solution.lower_bound >= 1 or largest <= 1 - 10 * gap or gap <= _FINEST:
            break
        gap = max(gap / 30, _FINEST)
    return FeasiblePoint(solution, largest)


def with_room(
    closure: Closure, inside: FeasiblePoint, table_weights: np.ndarray, privacy_cost: float
) -> np.ndarray:
    """A plan inside the caps that measures all residuals in earnest, float64[n_residuals].

    table_weights: float64[n_tables], such that every residual lies in a table with a weight
    """
    share = _ROOM * (1 - CAP_ROUNDING - inside.largest)
    weights = closure.residual_weights(table_weights)
    others, _ = best_response(closure.privacy_cost_factor, weights, privacy_cost)
    # Mixed by precisions: their costs p/σ² add up, so the mix costs what both cost; Var is convex
    # in them.
    return 1 / ((1 - share) / inside.solution.sigma_squared + share / others)
