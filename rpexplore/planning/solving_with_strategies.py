"""Solutions where attributes are measured through strategies: these are looked for as well.

Where a loss has no search for strategies of its own, they are the best for a weighted sum, first
with the loss's own weights and then with the dual weights of the solution.
"""

from dataclasses import replace

import numpy as np

from rpexplore.common.concurrency import Progress, no_progress
from rpexplore.errors import OutOfReachError
from rpexplore.planning.mechanism.closure import Closure
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


def solve_with_optimal_strategies(problem: Problem, *, even: bool) -> tuple[Closure, Solution]:
    """The closure with strategies that suit the loss, and the best noise for it.

    Where these leave targets out of reach, those that come furthest inside the targets are taken;
    and in the end those that suit the dual weights of the solution, if they are better.

    Raises `OutOfReachError` if required targets cannot be met.
    """
    searching, solving = phases(problem.workload, problem.on_progress)
    closure = _with_strategies_for_loss(problem, even=even, on_progress=searching)
    problem = replace(problem, closure=closure, on_progress=solving)
    try:
        solution = solve(problem)
    except OutOfReachError:
        caps = problem.loss.caps(problem.workload)
        if not closure.strategies or caps is None:
            raise
        closure = with_strategies_within(
            problem.workload, closure, caps, even=even, on_progress=searching
        )
        problem = replace(problem, closure=closure)
        solution = solve(problem)
    return _improved(problem, solution, even=even)


def _with_strategies_for_loss(problem: Problem, *, even: bool, on_progress: Progress) -> Closure:
    """The closure, measured by strategies that suit the loss; itself if none are needed."""
    workload, closure, loss = problem.workload, problem.closure, problem.loss
    if workload.is_marginals:
        return closure
    largest, weights = loss.looks_at_worst_cells, problem.weights
    caps = loss.caps(workload)
    if caps is not None and not loss.has_limit:
        # What a cap is worth is not known yet: as much as all other tables together, at first.
        inverse = 1 / caps
        largest = False
        weights = weights / np.sum(weights) + inverse / np.sum(inverse)
    strategies = best_strategies(
        workload, closure, weights, largest=largest, even=even, on_progress=on_progress
    )
    return closure.with_strategies(workload, strategies)


def with_strategies_within(
    workload: Workload, closure: Closure, caps: np.ndarray, *, even: bool, on_progress: Progress
) -> Closure:
    """The closure, measured by strategies that come as far inside caps as can be.

    caps: float64[n_tables] on the variance of the least accurate cell, inf: none. even: whether
    reference distributions are uniform.
    """
    if workload.is_marginals:
        return closure
    # Tables without a cap count a little, so that all attributes are measured.
    finite = np.isfinite(caps)
    weights = np.where(finite, 1 / caps, np.min(1 / caps[finite]) * 1e-3)
    strategies = best_strategies(
        workload, closure, weights, largest=True, even=even, on_progress=on_progress
    )
    return closure.with_strategies(workload, strategies)


def _improved(problem: Problem, solution: Solution, *, even: bool) -> tuple[Closure, Solution]:
    """The better of a solution and the one with the strategies that suit its dual weights.

    Where there is a limit each has one of its own; the better one is no worse in that either.
    """
    dual, workload, closure = solution.dual_weights, problem.workload, problem.closure
    if dual is None or not closure.strategies:
        return closure, solution
    weights = np.maximum(dual, np.max(dual) * _LEAST_WEIGHT)
    changed = replace(
        problem,
        closure=closure.with_strategies(
            workload, best_strategies(workload, closure, weights, even=even)
        ),
    )
    try:
        again = solve(changed)
    except OutOfReachError:
        return closure, solution
    is_better = _value(changed, again) < _value(problem, solution)
    if is_better and (again.limit or 0.0) <= (solution.limit or 0.0):
        return changed.closure, again
    return closure, solution


def _value(problem: Problem, solution: Solution) -> float:
    variances = TableVariances.of(problem.workload, problem.closure, solution.sigma_squared)
    return problem.loss.value(variances.of_loss(problem.loss), problem.workload)
