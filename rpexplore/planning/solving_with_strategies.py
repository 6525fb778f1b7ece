"""Solutions where attributes are measured through strategies: these are looked for as well.

Where a loss has no search for strategies of its own, they are the best for a weighted sum, first
with the loss's own weights and then with the dual weights of what came of it.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from rpexplore.common.concurrency import Progress, no_progress
from rpexplore.errors import OutOfReachError
from rpexplore.planning.losses.base import Loss
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.strategy import Strategy
from rpexplore.planning.mechanism.table_variances import TableVariances
from rpexplore.planning.optimal_strategies import best_strategies
from rpexplore.planning.solvers.solution import Solution
from rpexplore.planning.solving import Problem, solve
from rpexplore.workload.workload import Workload

_SEARCH = 0.8  # share of the time that the search for strategies takes, where there is one
_LEAST_WEIGHT = 1e-9  # relative to the largest, of a table in the search for strategies


def phases(workload: Workload, on_progress: Progress) -> tuple[Progress, Progress]:
    """Where to report the search for strategies, if there is one, and that for the best noise."""
    if workload.is_marginals:
        return no_progress, on_progress
    return (
        lambda doing, share: on_progress(doing, _SEARCH * share),
        lambda doing, share: on_progress(doing, _SEARCH + (1 - _SEARCH) * share),
    )


def with_optimal_strategies(
    workload: Workload,
    closure: Closure,
    loss: Loss,
    *,
    even: bool,
    on_progress: Progress,
    table_weights: np.ndarray | None = None,
) -> Closure:
    """The closure, measured by strategies that suit the loss; itself if none are needed.

    table_weights: float64[n_tables], instead of the loss's own
    """
    if workload.is_marginals:
        return closure
    largest = loss.looks_at_worst_cells
    weights = loss.table_weights(workload) if table_weights is None else table_weights
    if (caps := loss.caps(workload)) is not None and not loss.has_limit:
        # What a cap is worth is not known yet: as much as all other tables together, at first.
        inverse = 1 / caps
        largest = False
        weights = weights / np.sum(weights) + inverse / np.sum(inverse)
    return _by_strategies(
        workload, closure, weights, largest=largest, even=even, on_progress=on_progress
    )


def solve_with_optimal_strategies(problem: Problem, *, even: bool) -> tuple[Closure, Solution]:
    """The closure with strategies that suit the loss, and the best noise for it.

    Where these leave targets out of reach, those that come furthest inside the targets are taken;
    and in the end those that the dual weights of the solution ask for, if they are better. Losses
    with a search for strategies of their own stay with what that found.

    problem: its closure has no strategies yet

    Raises `OutOfReachError` if required targets cannot be met.
    """
    workload, closure, loss = problem.workload, problem.closure, problem.loss
    searching, solving = phases(workload, problem.on_progress)
    problem = replace(problem, on_progress=solving)
    measured = with_optimal_strategies(workload, closure, loss, even=even, on_progress=searching)
    try:
        solution = solve(replace(problem, closure=measured))
    except OutOfReachError as error:
        caps = loss.caps(workload)
        if not measured.strategies or caps is None:
            raise error
        measured = find_feasible_with_optimal_strategies(
            workload, closure, caps, even=even, on_progress=searching
        )
        solution = solve(replace(problem, closure=measured))
    return _improved(replace(problem, closure=measured), solution, even=even)


def find_feasible_with_optimal_strategies(
    workload: Workload, closure: Closure, caps: np.ndarray, *, even: bool, on_progress: Progress
) -> Closure:
    """The closure, measured by strategies that come as far inside caps as can be.

    caps: float64[n_tables], inf for tables without one
    """
    if workload.is_marginals:
        return closure
    # Tables without a cap count a little, so that all attributes are measured.
    inverse = np.where(np.isfinite(caps), 1 / caps, 1e-3 / np.max(caps[np.isfinite(caps)]))
    return _by_strategies(
        workload, closure, inverse, largest=True, even=even, on_progress=on_progress
    )


def _improved(problem: Problem, solution: Solution, *, even: bool) -> tuple[Closure, Solution]:
    """The better of a solution and the one with the strategies that its dual weights ask for.

    Where there is a limit each has one of its own; the better one is no worse in that either.
    """
    dual = solution.dual_weights
    if dual is None or not problem.closure.strategies:
        return problem.closure, solution
    weights = np.maximum(dual, np.max(dual) * _LEAST_WEIGHT)
    closure = _by_strategies(
        problem.workload,
        problem.closure,
        weights,
        largest=False,
        even=even,
        on_progress=no_progress,
    )
    other = replace(problem, closure=closure)
    try:
        again = solve(other)
    except OutOfReachError:
        return problem.closure, solution
    is_better = _value(other, again) < _value(problem, solution)
    if is_better and (again.limit or 0.0) <= (solution.limit or 0.0):
        return closure, again
    return problem.closure, solution


def _value(problem: Problem, solution: Solution) -> float:
    variances = TableVariances.of(problem.workload, problem.closure, solution.sigma_squared)
    return problem.loss.value(variances.of_loss(problem.loss), problem.workload)


def _by_strategies(
    workload: Workload,
    closure: Closure,
    weights: np.ndarray,
    *,
    largest: bool,
    even: bool,
    on_progress: Progress,
) -> Closure:
    found: Mapping[int, Strategy] = best_strategies(
        workload, closure, weights, largest=largest, even=even, on_progress=on_progress
    )
    return replace(closure, strategies={}, moments=()).with_strategies(workload, found)
