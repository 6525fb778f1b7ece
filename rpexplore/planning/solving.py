"""Solutions: the noise that is best for a loss, by the solver that the loss takes.

Sums, largest variances and p-norms have solvers of their own; losses within limits take the capped
one, and custom losses a conic one (docs/mathematics.md §6).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from rpexplore.common.concurrency import Progress, no_progress, one_thread
from rpexplore.common.formatting import joined, rounded
from rpexplore.errors import OutOfReachError
from rpexplore.planning.certificate import smallest_weighted_sum
from rpexplore.planning.losses.base import Loss, MaxVariance, SumOfVariances
from rpexplore.planning.losses.constrained import (
    MaxWithinTargets,
    SumWithBoundedMax,
    SumWithinTargets,
)
from rpexplore.planning.losses.custom import CustomLoss, UnavailableLoss
from rpexplore.planning.losses.p_norm import PNorm
from rpexplore.planning.mechanism.cell_variances import CellVariances
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.table_variances import TableVariances
from rpexplore.planning.solvers.capped_max import minimise_capped_max
from rpexplore.planning.solvers.capped_sum import minimise_capped
from rpexplore.planning.solvers.conic_program import minimise_conic
from rpexplore.planning.solvers.feasibility import FeasiblePoint, find_feasible
from rpexplore.planning.solvers.max_cell_variance import minimise_max_cell_variance
from rpexplore.planning.solvers.p_norm import minimise_p_norm
from rpexplore.planning.solvers.solution import Solution, minimise_sum, rounding_allowance
from rpexplore.workload.workload import Workload

# The limit of a bounded average is right up to this, relative, however coarse the plan may be.
LIMIT_TOLERANCE = 1e-4
_MOST_NAMED = 3
_NO_PRICE = 1e-9  # relative to the largest: rounding


@dataclass(frozen=True, eq=False)
class Problem:
    """A planning problem for one closure.

    closure       of the workload, with the strategies that measure it
    privacy_cost  of one record
    tolerance     how far, relative, the loss may be above its bound
    on_progress   called whenever the solver has come closer
    """

    workload: Workload
    closure: Closure
    loss: Loss
    privacy_cost: float
    tolerance: float
    on_progress: Progress = no_progress

    @cached_property
    def weights(self) -> np.ndarray:
        """That of each table's variance in the loss, float64[n_tables]."""
        return self.loss.table_weights(self.workload)

    @property
    def search(self) -> dict[str, Any]:
        """What every search is told."""
        return {
            "privacy_cost": self.privacy_cost,
            "tolerance": self.tolerance,
            "on_progress": self.on_progress,
        }

    @cached_property
    def cells(self) -> CellVariances:
        return CellVariances(self.workload, self.closure)


def solve(problem: Problem) -> Solution:
    """The best noise, by the solver of the loss.

    Raises `OutOfReachError` if required targets cannot be met.
    """
    with one_thread():
        return SOLVERS[type(problem.loss)](problem)


# ---- the solvers


def _sum(problem: Problem) -> Solution:
    return minimise_sum(problem.closure, problem.weights, problem.privacy_cost)


def _largest(problem: Problem) -> Solution:
    return minimise_max_cell_variance(problem.cells, problem.weights, **problem.search)


def _p_norm(problem: Problem) -> Solution:
    assert isinstance(problem.loss, PNorm)
    return minimise_p_norm(problem.closure, problem.weights, problem.loss.p, **problem.search)


def _custom(problem: Problem) -> Solution:
    assert isinstance(problem.loss, CustomLoss)
    return minimise_conic(problem.closure, problem.workload, problem.loss, **problem.search)


def _within_targets(problem: Problem) -> Solution:
    """Raises `OutOfReachError` if the required targets cannot be met."""
    caps = problem.loss.caps(problem.workload)
    assert caps is not None
    inside = find_feasible(problem.cells, caps, **problem.search)
    if not inside.is_feasible:
        raise _out_of_reach(problem.workload, inside)
    if not problem.loss.looks_at_worst_cells:
        return _within_caps(minimise_capped, problem, caps, inside)
    if not np.all(problem.workload.required):
        return _within_caps(minimise_capped_max, problem, caps, inside)
    solution = _largest(problem)  # all tables count, and are met anyway
    dual_weights = solution.shadow_prices * problem.weights
    return _certified(problem, replace(solution, dual_weights=dual_weights))


def _sum_with_bounded_max(problem: Problem) -> Solution:
    loss, weights, cells = problem.loss, problem.workload.weights, problem.cells
    assert isinstance(loss, SumWithBoundedMax)
    fine = replace(problem, tolerance=min(problem.tolerance, LIMIT_TOLERANCE))
    smallest = minimise_max_cell_variance(cells, weights, **fine.search)
    worst = cells.worst(smallest.sigma_squared).variances
    limit = loss.limit(float(np.max(weights * worst)))
    caps = loss.caps(problem.workload, limit)
    inside = FeasiblePoint(
        replace(smallest, lower_bound=smallest.lower_bound / limit), float(np.max(worst / caps))
    )
    return _within_caps(minimise_capped, problem, caps, inside, limit)


def _within_caps(
    minimise: Callable[..., Solution],
    problem: Problem,
    caps: np.ndarray,
    inside: FeasiblePoint,
    limit: float | None = None,
) -> Solution:
    """The solution of `minimise_capped` or `minimise_capped_max`, certified."""
    solution = minimise(
        problem.cells, inside, table_weights=problem.weights, caps=caps, **problem.search
    )
    return _certified(problem, replace(solution, limit=limit))


def _certified(problem: Problem, solution: Solution) -> Solution:
    """With the bound that its dual weights prove as they are, rounded to floats.

    Its shadow prices are each table's share of all dual weights times variances.
    """
    workload, closure, loss = problem.workload, problem.closure, problem.loss
    dual = solution.dual_weights
    assert dual is not None
    variances = TableVariances.of(workload, closure, solution.sigma_squared)
    on_means = loss.weights_on_means(workload, dual)
    parts = on_means * variances.mean + (dual - on_means) * variances.worst
    smallest = smallest_weighted_sum(
        workload, closure, loss, dual, solution.cells, problem.privacy_cost
    )
    factor, offset = loss.minorant_of_plan(
        dual, workload, limit=solution.limit, variances=variances.mean
    )
    rounding = rounding_allowance(len(workload)) * (factor * smallest + offset)
    return replace(
        solution,
        lower_bound=min(solution.lower_bound, float(factor * smallest - offset - rounding)),
        shadow_prices=parts / np.sum(parts),
    )


def _out_of_reach(workload: Workload, inside: FeasiblePoint) -> OutOfReachError:
    """Which targets conflict, and what budget would do."""
    prices = inside.solution.shadow_prices
    order = np.argsort(-prices, kind="stable")
    binding = order[prices[order] > _NO_PRICE * prices[order[0]]].tolist()
    names = [workload.describe(table) for table in binding[:_MOST_NAMED]]
    if len(binding) > _MOST_NAMED:
        names.append(f"{len(binding) - _MOST_NAMED:,} more")
    return OutOfReachError(
        "The required targets cannot all be met at this budget; the binding ones are those of "
        f"{joined(names)}. Use {rounded(inside.largest, 4, 'up')} times the budget and a little "
        "more (the Plan page, or --minimum-budget required, finds it), make some of these targets "
        "wider, or do not require them.",
        needed=inside.largest,
    )


# All losses, in the order in which they are offered: a new one needs a line here.
SOLVERS: dict[type[Loss], Callable[[Problem], Solution]] = {
    SumOfVariances: _sum,
    MaxVariance: _largest,
    SumWithinTargets: _within_targets,
    MaxWithinTargets: _within_targets,
    SumWithBoundedMax: _sum_with_bounded_max,
    PNorm: _p_norm,
    CustomLoss: _custom,
    UnavailableLoss: _custom,  # never solved: its weights are refused
}


def loss_kinds() -> dict[str, type[Loss]]:
    """The losses that files know, by kind; of a `CustomLoss` they hold an `UnavailableLoss`."""
    return {loss.kind: loss for loss in SOLVERS}
