"""Planner: (workload, loss, budget) → plan. Never sees a record."""

from collections.abc import Collection, Mapping

import numpy as np

from rpexplore.common.concurrency import Progress, no_progress
from rpexplore.errors import PlanError
from rpexplore.planning.losses.base import Loss
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.strategy import Strategy, measured_attributes
from rpexplore.planning.optimum import Optimum, record_cost
from rpexplore.planning.solvers.solution import TOLERANCE
from rpexplore.planning.solving import LOSSES, Problem, solve, solve_with_optimal_strategies
from rpexplore.planning.table_plan import TablePlan
from rpexplore.privacy.budget import Budget
from rpexplore.workload.workload import Workload

_LEAST_TOLERANCE = 1e-10


def plan_tables(
    workload: Workload,
    *,
    loss: Loss,
    budget: Budget,
    tolerance: float = TOLERANCE,
    uniform_reference: bool = False,
    on_progress: Progress = no_progress,
) -> TablePlan:
    """The plan with the smallest loss within the budget, with its certificate.

    Args:
        workload: The tables, with weights and targets.
        loss: What is minimised.
        budget: The most that the plan may cost.
        tolerance: Relative gap to the optimum at which a search may stop; a larger one is faster
            for MaxVariance on very many tables, and SumOfVariances is exact whatever it is.
        uniform_reference: Whether attributes in other bases than single values are measured as by
            ResidualPlanner+, with uniform reference distributions instead of optimised ones
            (docs/mathematics.md §5.2).
        on_progress: As of `optimum`.

    Returns:
        The plan, which no other within the budget is better than by more than its certificate says.

    Raises:
        PlanError: If the workload is too large to plan, or its weights or targets too far from 1.
        OutOfReachError: If required targets cannot all be met.
        WorkloadError: If the loss needs targets that are missing.

    Example:
        >>> import rpexplore as rp
        >>> tables = rp.Workload.all_up_to(rp.Domain.from_sizes({"age": 100, "sex": 2}), 2)
        >>> best = rp.plan(tables, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.5"))
        >>> rp.verify(best).holds
        True
    """
    refuse_type(budget, {Budget}, "budget", "Budget(rho=0.5)")
    solved = optimum(
        workload,
        loss=loss,
        budget=budget,
        tolerance=tolerance,
        uniform_reference=uniform_reference,
        on_progress=on_progress,
    )
    return solved.at(budget)


def optimum(
    workload: Workload,
    *,
    loss: Loss,
    budget: Budget | None = None,
    tolerance: float = TOLERANCE,
    uniform_reference: bool = False,
    closure: Closure | None = None,
    strategies: Mapping[int, Strategy] | None = None,
    on_progress: Progress = no_progress,
) -> Optimum:
    """The best noise for a workload and a loss; `.at(budget)` makes the plan of a budget.

    Args:
        workload, loss, tolerance, uniform_reference: As of `plan`.
        budget: For losses that are not homogeneous, whose best noise differs by budget.
        closure: Of this workload or of one with the same tables, where there is one already.
        strategies: Attribute index -> strategy, instead of looking for the best ones.
        on_progress: Called with what is being done and the share that is done; what it raises
            ends the search.

    Returns:
        The optimum at privacy cost 1 of one record, or for the budget of a loss that needs one.

    Raises:
        PlanError, OutOfReachError, WorkloadError: As by `plan`.

    Example:
        >>> import rpexplore as rp
        >>> tables = rp.Workload.all_up_to(rp.Domain.from_sizes({"age": 100, "sex": 2}), 2)
        >>> best = rp.optimum(tables, loss=rp.MaxVariance())
        >>> rp.verify(best.at(rp.Budget(rho="0.5"))).holds
        True
    """
    refuse_type(workload, {Workload}, "workload", "Workload.all_up_to(domain, 2)")
    refuse_type(loss, LOSSES, "loss", "SumOfVariances() or MaxVariance()")
    if len(workload.domain) == 0:
        raise PlanError("The codebook has no attributes yet; give it at least one.")
    if not _LEAST_TOLERANCE <= tolerance < 1:
        raise PlanError(f"The tolerance must be {_LEAST_TOLERANCE} to 1, got {tolerance}.")
    if not np.all(workload.cells < 1e150):
        table = int(np.argmax(workload.cells))
        raise PlanError(
            f"The table {workload.describe(table)} has {workload.cells[table]:.3g} cells, too many "
            "to plan; leave it out."
        )
    _refuse_weights(loss.table_weights(workload), workload)
    if loss.meets_required_targets:
        with np.errstate(over="ignore"):
            inverse = np.maximum(workload.targets**-2.0, np.finfo(float).smallest_subnormal)
        _refuse_weights(np.where(workload.required, inverse, 0.0), workload)
    if not loss.is_homogeneous and budget is None:
        raise PlanError(
            f"With the objective {loss.title} the best plan of one budget is not that of another; "
            "say which budget it is for."
        )
    cost = 1.0 if loss.is_homogeneous or budget is None else record_cost(budget)
    if closure is None:
        closure = Closure.of(workload)
    if strategies is not None:
        closure = closure.with_strategies(workload, strategies)
    problem = Problem(workload, closure, loss, cost, tolerance, on_progress, uniform_reference)
    if strategies is not None:
        solution = solve(problem)
    else:
        closure, solution = solve_with_optimal_strategies(problem)
    return Optimum(workload, loss, closure, solution, None if loss.is_homogeneous else budget)


def _refuse_weights(table_weights: np.ndarray, workload: Workload) -> None:
    """Raise `PlanError` unless all weights (0: not counted) can be computed with."""
    unusable = ~((table_weights > 1e-100) & (table_weights < 1e200)) & (table_weights != 0)
    if np.any(unusable):
        table = int(np.argmax(unusable))
        raise PlanError(
            f"The weight of table {workload.describe(table)} in the loss is "
            f"{table_weights[table]:.3g}, which cannot be planned with; bring weights and targets "
            "closer to 1."
        )


def refuse_type(value: object, kinds: Collection[type], noun: str, example: str) -> None:
    """Raise `PlanError` unless what a plan is made of is of one of these types."""
    if type(value) not in kinds:
        raise PlanError(
            f"The {noun} of a plan must be one of the library's, such as {example}, got "
            f"{type(value).__name__}."
        )


def optimum_with_strategies_of(
    reference: Optimum,
    workload: Workload,
    loss: Loss,
    *,
    on_progress: Progress = no_progress,
) -> Optimum:
    """The optimum of other tables, or for another loss, with `reference`'s strategies and budget.

    Strategies that it lacks are searched for. Raises what `optimum` raises.
    """
    same_tables = reference.workload.has_tables_of(workload)
    closure = reference.closure if same_tables else Closure.of(workload)
    strategies = dict(reference.closure.strategies)
    if not set(measured_attributes(workload)) <= strategies.keys():
        searched = optimum(
            workload, loss=loss, budget=reference.budget, closure=closure, on_progress=on_progress
        )
        strategies = {**searched.closure.strategies, **strategies}
    return optimum(
        workload,
        loss=loss,
        budget=reference.budget,
        closure=closure,
        strategies=None if workload.is_marginals else strategies,
        on_progress=on_progress,
    )
