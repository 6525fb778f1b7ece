"""Solutions: the noise that is best for a loss, by the solver that the loss takes.

Sums, largest variances and p-norms have solvers of their own; losses within limits take the capped
one, and custom losses a conic one (docs/mathematics.md §6). Where attributes are measured through
strategies, these are looked for as well: where a loss has no search of its own, they are the best
for a weighted sum, first with the loss's own weights and then with the solution's dual weights.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from rpexplore.common.processes import Progress, no_progress, one_thread
from rpexplore.common.text import joined, rounded
from rpexplore.errors import OutOfReachError, PlanError
from rpexplore.planning.losses.constrained import (
    MaxWithinTargets,
    SumWithBoundedMax,
    SumWithinTargets,
)
from rpexplore.planning.losses.custom import CustomLoss, UnavailableLoss
from rpexplore.planning.losses.losses import Loss, MaxVariance, PNorm, SumOfVariances
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.variances import CellVariances, TableVariances
from rpexplore.planning.optimal_strategies import with_best_strategies
from rpexplore.planning.part_plan import smallest_weighted_sum
from rpexplore.planning.residual_strategies import with_residual_strategies
from rpexplore.planning.solvers.caps import (
    FeasiblePoint,
    find_feasible,
    minimise_capped,
    minimise_capped_max,
)
from rpexplore.planning.solvers.conic_program import minimise_conic
from rpexplore.planning.solvers.kinds_of_records import (
    Limits,
    find_feasible_with_kinds,
    minimise_with_kinds,
)
from rpexplore.planning.solvers.largest_variance import minimise_max_cell_variance, minimise_p_norm
from rpexplore.planning.solvers.neighbours import (
    LEAST_COST,
    minimise_in_panel,
    minimise_replacing,
)
from rpexplore.planning.solvers.record_prices import with_best_prices
from rpexplore.planning.solvers.solution import (
    Solution,
    dual_bound,
    minimise_sum,
    rounding_allowance,
)
from rpexplore.workload.workload import Workload

# The limit of a bounded average is right up to this, relative, however coarse the plan may be.
LIMIT_TOLERANCE = 1e-4
_MOST_NAMED = 3
_NO_PRICE = 1e-9  # relative to the largest: rounding
_SEARCH = 0.8  # share of the time that the search for strategies takes, where there is one
_NEEDLESS_SHARE = 1e-9  # of the privacy cost, for all residuals that no table depends on
_LEAST_WEIGHT = 1e-9  # relative to the largest, of a table in the search for strategies


@dataclass(frozen=True, eq=False)
class Problem:
    """A planning problem for one closure.

    closure       of the workload, with the strategies that measure it
    privacy_cost  of one record
    tolerance     how far, relative, the loss may be above its bound
    on_progress   called whenever the solver has come closer
    uniform_reference
                  whether strategies are looked for with uniform reference distributions
    """

    workload: Workload
    closure: Closure
    loss: Loss
    privacy_cost: float
    tolerance: float
    on_progress: Progress = no_progress
    uniform_reference: bool = False

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

    def with_strategies(
        self, weights: np.ndarray, on_progress: Progress = no_progress, *, largest: bool = False
    ) -> Closure:
        """The closure with the best strategies for these weights of tables."""
        closure = self.closure
        if closure.by_residual:
            closure = closure.replacing_by_residual(replaces=True, least_cost=LEAST_COST)
        closure = with_best_strategies(
            self.workload,
            closure,
            weights,
            largest=largest,
            uniform_reference=self.uniform_reference,
            on_progress=on_progress,
        )
        if closure.by_residual:
            return closure.replacing_by_residual(replaces=True)
        return closure


def solve(problem: Problem) -> tuple[Closure, Solution]:
    """The best noise, by the solver of the loss, and the closure, with the prices that prove it.

    Raises `OutOfReachError` if required targets cannot be met.
    """
    solver = LOSSES[type(problem.loss)]
    with one_thread():
        if problem.closure.by_residual and not problem.closure.least_cost:
            return _with_public_total(problem)
        if problem.closure.has_own_costs and not problem.closure.by_residual:
            return _solved_at_prices(problem)
        if problem.closure.classes is None:
            return problem.closure, _with_needless(problem, solver(problem))
        if isinstance(problem.loss, CustomLoss):
            raise PlanError(
                "Tables with an attribute at several levels are not planned for a loss of one's "
                "own; take another objective, or one level of each attribute."
            )
        if isinstance(problem.loss, SumOfVariances | PNorm):
            closure, solution = with_best_prices(
                problem.closure,
                problem.privacy_cost,
                lambda closure: solver(replace(problem, closure=closure)),
                problem.tolerance,
            )
        else:
            closure, solution = _with_kinds_of_records(problem)
        return closure, _with_needless(replace(problem, closure=closure), solution)


def _solved_at_prices(problem: Problem) -> tuple[Closure, Solution]:
    """The best noise for neighbours with costs of their own, with the bound of their prices."""
    solver = LOSSES[type(problem.loss)]
    if isinstance(problem.loss, SumWithBoundedMax):
        limit = problem.loss.limit(smallest_largest_variance(problem))
        solver = partial(_within_limit, limit=limit)
    minimise = minimise_replacing if problem.closure.panel is None else minimise_in_panel
    closure, solution = minimise(
        problem.closure,
        problem.privacy_cost,
        lambda closure, cost: solver(replace(problem, closure=closure, privacy_cost=cost)),
        problem.tolerance,
        scales=problem.loss.is_homogeneous and not problem.loss.has_limit,
    )
    priced = replace(problem, closure=closure)
    return closure, replace(solution, lower_bound=_proven_bound(priced, solution))


def _with_public_total(problem: Problem) -> tuple[Closure, Solution]:
    """The best noise where the total is public: it costs next to nothing in the search.

    A loss is smaller without that by less than its root, which the bound that is proven has not.
    """
    searched = problem.closure.replacing_by_residual(replaces=True, least_cost=LEAST_COST)
    closure, solution = solve(replace(problem, closure=searched))
    closure = closure.replacing_by_residual(replaces=True)
    priced = replace(problem, closure=closure)
    return closure, replace(solution, lower_bound=_proven_bound(priced, solution))


def smallest_largest_variance(problem: Problem) -> float:
    """The smallest possible largest weighted variance for neighbours with costs of their own.

    Well within the tolerance of limits, so that it is found again.
    """
    within = min(problem.tolerance, LIMIT_TOLERANCE / 100)
    closure, solution = solve(replace(problem, loss=MaxVariance(), tolerance=within))
    cells = CellVariances(problem.workload, closure)
    largest = cells.least_accurate(solution.sigma_squared).variances
    return float(np.max(problem.workload.weights * largest))


def _within_limit(problem: Problem, limit: float) -> Solution:
    """The solution of `SumWithBoundedMax` with this limit."""
    caps = problem.loss.caps(problem.workload, limit)
    assert caps is not None
    inside = find_feasible(problem.cells, caps, **problem.search)
    return _within_caps(problem, caps, inside, limit)


def _proven_bound(problem: Problem, solution: Solution) -> float:
    """What no plan's loss is below, by the prices of a solution and the costs of the closure."""
    workload, closure, loss = problem.workload, problem.closure, problem.loss
    lowered, cost = 1 - rounding_allowance(len(workload)), problem.privacy_cost
    dual = solution.dual_weights
    if dual is None or loss.is_proven_by_shadow_prices:
        prices, of_cells = solution.shadow_prices, solution.cells
        if of_cells is not None and not isinstance(loss, SumOfVariances):
            shares = of_cells.prices / max(float(np.sum(of_cells.prices)), 1.0)
            variances = CellVariances(workload, closure).map(of_cells.tables, of_cells.rows)
            of_residuals = variances.residual_weights(problem.weights[of_cells.tables] * shares)
        else:
            prices = prices / max(float(np.sum(prices)), 1.0)
            in_sum = problem.weights * (1.0 if isinstance(loss, SumOfVariances) else prices)
            of_residuals = closure.residual_weights(in_sum)
        return dual_bound(closure.privacy_cost_factor, of_residuals, cost) * lowered
    smallest = smallest_weighted_sum(workload, closure, loss, dual, solution.cells, cost)
    mean = closure.variances(solution.sigma_squared)
    factor, offset = loss.minorant_of_plan(dual, workload, solution.limit, mean)
    return float(factor * smallest * lowered - offset * (2 - lowered))


def _with_needless(problem: Problem, solution: Solution) -> Solution:
    """The solution with no more noise than this on residuals that no table depends on.

    They have next to no part in the loss: a solver may leave them any noise, and what little of it
    tables are taken to have would be stated. The plan's rounding makes up for their privacy cost.
    """
    needless = problem.closure.needless(problem.workload)
    if not np.any(needless):
        return solution
    share = _NEEDLESS_SHARE * problem.privacy_cost / np.count_nonzero(needless)
    most = np.where(needless, problem.closure.full_cost_factor / share, np.inf)
    return replace(solution, sigma_squared=np.minimum(solution.sigma_squared, most))


# ---- with strategies


def phases(workload: Workload, on_progress: Progress) -> tuple[Progress, Progress]:
    """Where to report the search for strategies, if there is one, and that for the best noise."""
    if workload.is_marginals:
        return no_progress, on_progress
    return (
        lambda doing, share: on_progress(doing, _SEARCH * share),
        lambda doing, share: on_progress(doing, _SEARCH + (1 - _SEARCH) * share),
    )


def solve_with_optimal_strategies(problem: Problem) -> tuple[Closure, Solution]:
    """The closure with strategies that suit the loss, and the best noise for it.

    Where these leave targets out of reach, those that come furthest inside the targets are taken;
    and in the end those that suit the dual weights of the solution, if they are better.

    Raises `OutOfReachError` if required targets cannot be met.
    """
    searching, solving = phases(problem.workload, problem.on_progress)
    closure = _with_strategies_for_loss(problem, searching)
    problem = replace(problem, closure=closure, on_progress=solving)
    try:
        closure, solution = solve(problem)
    except OutOfReachError:
        caps = problem.loss.caps(problem.workload)
        if not closure.strategies or caps is None:
            raise
        closure = problem.with_strategies(weights_within(caps), searching, largest=True)
        closure, solution = solve(replace(problem, closure=closure))
    return _improved(replace(problem, closure=closure), solution)


def _with_strategies_for_loss(problem: Problem, on_progress: Progress) -> Closure:
    """The closure, measured by strategies that suit the loss; itself if none are needed."""
    loss, weights = problem.loss, problem.weights
    largest = loss.looks_at_least_accurate_cells
    caps = loss.caps(problem.workload)
    if caps is not None and not loss.has_limit:
        largest, weights = False, weights_beside(caps, weights)
    closure = problem.with_strategies(weights, on_progress, largest=largest)
    if isinstance(loss, SumOfVariances) and not problem.uniform_reference:
        return with_residual_strategies(problem.workload, closure, weights)
    return closure


def weights_within(caps: np.ndarray) -> np.ndarray:
    """Weights for which the best strategies come as far inside caps as can be, float64[n_tables].

    caps: float64[n_tables] on the variance of the least accurate cell, inf: none
    """
    # Tables without a cap count a little, so that all attributes are measured.
    finite = np.isfinite(caps)
    return np.where(finite, 1 / caps, np.min(1 / caps[finite]) * 1e-3)


def weights_beside(caps: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weights for strategies that suit caps beside a weighted sum, float64[n_tables].

    caps: as in `weights_within`. What one is worth is not known yet: together as much as the sum.
    """
    return weights / np.sum(weights) + (1 / caps) / np.sum(1 / caps)


def _improved(problem: Problem, solution: Solution) -> tuple[Closure, Solution]:
    """The better of a solution and the one with the strategies that suit its dual weights.

    Where there is a limit each has one of its own; the better one is no worse in that either.
    """
    dual, closure = solution.dual_weights, problem.closure
    if dual is None or not closure.strategies:
        return closure, solution
    weights = np.maximum(dual, np.max(dual) * _LEAST_WEIGHT)
    closure = problem.with_strategies(weights)
    try:
        closure, again = solve(replace(problem, closure=closure))
    except OutOfReachError:
        return problem.closure, solution
    changed = replace(problem, closure=closure)
    is_better = _value(changed, again) < _value(problem, solution)
    if is_better and (again.limit or 0.0) <= (solution.limit or 0.0):
        return closure, again
    return problem.closure, solution


def _value(problem: Problem, solution: Solution) -> float:
    variances = TableVariances.of(problem.workload, problem.closure, solution.sigma_squared)
    return problem.loss.value(variances.of_loss(problem.loss), problem.workload)


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
    return _within_caps(problem, caps, inside)


def _sum_with_bounded_max(problem: Problem) -> Solution:
    loss, weights, cells = problem.loss, problem.workload.weights, problem.cells
    assert isinstance(loss, SumWithBoundedMax)
    fine = replace(problem, tolerance=min(problem.tolerance, LIMIT_TOLERANCE))
    smallest = minimise_max_cell_variance(cells, weights, **fine.search)
    largest = cells.least_accurate(smallest.sigma_squared).variances
    limit = loss.limit(float(np.max(weights * largest)))
    caps = loss.caps(problem.workload, limit)
    smallest = replace(smallest, lower_bound=smallest.lower_bound / limit)
    inside = FeasiblePoint(smallest, float(np.max(largest / caps)))
    return _within_caps(problem, caps, inside, limit)


def _within_caps(
    problem: Problem, caps: np.ndarray, inside: FeasiblePoint, limit: float | None = None
) -> Solution:
    """The best noise that keeps caps, with the bound that its dual weights prove once rounded.

    Its shadow prices are each table's share of all dual weights times variances.
    """
    loss = problem.loss
    if loss.looks_at_least_accurate_cells and np.all(problem.workload.required):
        solution = _largest(problem)  # all tables count, and are met anyway
        solution = replace(solution, dual_weights=solution.shadow_prices * problem.weights)
    else:
        minimise = minimise_capped_max if loss.looks_at_least_accurate_cells else minimise_capped
        solution = minimise(
            problem.cells, inside, table_weights=problem.weights, caps=caps, **problem.search
        )
    return _certified(problem, solution, limit)


def _certified(problem: Problem, solution: Solution, limit: float | None) -> Solution:
    """A solution within caps with the bound that its dual weights prove, and its shadow prices."""
    workload, closure, loss = problem.workload, problem.closure, problem.loss
    dual = solution.dual_weights
    assert dual is not None
    variances = TableVariances.of(workload, closure, solution.sigma_squared)
    on_means = loss.weights_on_means(workload, dual)
    parts = on_means * variances.mean + (dual - on_means) * variances.largest
    smallest = smallest_weighted_sum(
        workload, closure, loss, dual, solution.cells, problem.privacy_cost
    )
    factor, offset = loss.minorant_of_plan(dual, workload, limit, variances.mean)
    rounding = rounding_allowance(len(workload)) * (factor * smallest + offset)
    return replace(
        solution,
        lower_bound=min(solution.lower_bound, float(factor * smallest - offset - rounding)),
        shadow_prices=parts / np.sum(parts),
        dual_weights=dual,
        limit=limit,
    )


def _with_kinds_of_records(problem: Problem) -> tuple[Closure, Solution]:
    """The best noise for a largest variance or within caps, where records cost different things.

    Raises `OutOfReachError` if required targets cannot be met.
    """
    workload, loss, weights, cells = problem.workload, problem.loss, problem.weights, problem.cells
    cost = problem.privacy_cost

    def minimise(limits: Limits) -> tuple[Closure, Solution]:
        return minimise_with_kinds(cells, limits, cost, on_progress=problem.on_progress)

    limit = None
    if loss.has_limit:
        assert isinstance(loss, SumWithBoundedMax)
        _, smallest = minimise(Limits(largest=workload.weights))
        largest = cells.least_accurate(smallest.sigma_squared).variances
        limit = loss.limit(float(np.max(workload.weights * largest)))
    caps = loss.caps(workload, limit)
    if caps is None:
        closure, solution = minimise(Limits(largest=weights))
        return closure, replace(solution, dual_weights=None)
    if limit is None:
        _, inside = find_feasible_with_kinds(cells, caps, cost, on_progress=problem.on_progress)
        if not inside.is_feasible:
            raise _out_of_reach(workload, inside)
    if not loss.looks_at_least_accurate_cells:
        closure, solution = minimise(Limits(held=weights, caps=1 / caps))
    elif np.all(workload.required):  # all tables count, and are met anyway
        closure, solution = minimise(Limits(largest=weights))
    else:
        closure, solution = minimise(Limits(largest=weights, caps=1 / caps))
    return closure, _certified(replace(problem, closure=closure), solution, limit)


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
LOSSES: dict[type[Loss], Callable[[Problem], Solution]] = {
    SumOfVariances: _sum,
    MaxVariance: _largest,
    SumWithinTargets: _within_targets,
    MaxWithinTargets: _within_targets,
    SumWithBoundedMax: _sum_with_bounded_max,
    PNorm: _p_norm,
    CustomLoss: _custom,
    UnavailableLoss: _custom,  # never solved: its weights are refused
}
