"""Planner: (workload, loss, budget) → plan. Never sees a record."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from rpexplore.common.concurrency import Progress, no_progress
from rpexplore.errors import PlanError
from rpexplore.planning.losses.base import Loss
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.strategy import Strategy, measured_places
from rpexplore.planning.optimum import Optimum, record_cost
from rpexplore.planning.plan import Plan
from rpexplore.planning.solvers.solution import TOLERANCE
from rpexplore.planning.solving import SOLVERS, Problem, solve
from rpexplore.planning.solving_with_strategies import solve_with_optimal_strategies
from rpexplore.privacy.budget import Budget
from rpexplore.workload.workload import Workload

TOLERANCE_LEAST = 1e-10

_EXAMPLES = {
    "workload": "Workload.all_up_to(domain, 2)",
    "loss": "SumOfVariances() or MaxVariance()",
    "budget": "Budget(rho=0.5)",
}


def plan(
    workload: Workload,
    *,
    loss: Loss,
    budget: Budget,
    tolerance: float = TOLERANCE,
    uniform_reference: bool = False,
) -> Plan:
    """The plan with the smallest loss within the budget, with its certificate.

    tolerance: how far (relative) a plan may be from the optimum; a larger one is faster for
    MaxVariance on very many tables, and means nothing for SumOfVariances, which is exact.
    uniform_reference: measure attributes that are asked in ranges, groups and the like as
    ResidualPlanner+ does, instead of optimising the reference distribution (docs/mathematics.md
    §5.2) as well

    Raises `PlanError` if the workload is too large to plan, `OutOfReachError` if targets that must
    be met cannot be, `WorkloadError` if the loss needs targets that are missing.

    Example:
        >>> import rpexplore as rp
        >>> tables = rp.Workload.all_up_to(rp.Domain.from_sizes({"age": 100, "sex": 2}), 2)
        >>> best = rp.plan(tables, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.5"))
        >>> rp.verify(best).holds
        True
    """
    _refuse_other(budget, {Budget}, "budget")
    found = optimum(
        workload, loss=loss, budget=budget, tolerance=tolerance, uniform_reference=uniform_reference
    )
    return found.at(budget)


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

    budget: for losses that are not homogeneous, whose best noise differs from budget to budget
    closure: of this workload or of one with the same tables, where there is one already
    strategies: to measure attributes by (place -> strategy), instead of looking for the best
    on_progress: called with what is being done and the share that is done; what it raises ends
    the search

    Raises what `plan` does.

    Example:
        >>> import rpexplore as rp
        >>> tables = rp.Workload.all_up_to(rp.Domain.from_sizes({"age": 100, "sex": 2}), 2)
        >>> best = rp.optimum(tables, loss=rp.MaxVariance())
        >>> rp.verify(best.at(rp.Budget(rho="0.5"))).holds
        True
    """
    _refuse_other(workload, {Workload}, "workload")
    _refuse_other(loss, SOLVERS, "loss")
    if len(workload.domain) == 0:
        raise PlanError("The schema has no attributes yet; give it at least one.")
    if not TOLERANCE_LEAST <= tolerance < 1:
        raise PlanError(f"The tolerance must be {TOLERANCE_LEAST} to 1, got {tolerance}.")
    if not np.all(workload.cells < 1e150):
        place = int(np.argmax(workload.cells))
        raise PlanError(
            f"The table {workload.describe(place)} has {workload.cells[place]:.3g} cells, too many "
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
        solution = solve(Problem(workload, closure, loss, cost, tolerance, on_progress))
    else:
        problem = Problem(workload, closure, loss, cost, tolerance, on_progress)
        closure, solution = solve_with_optimal_strategies(problem, even=uniform_reference)
    return Optimum(workload, loss, closure, solution, None if loss.is_homogeneous else budget)


def _refuse_weights(table_weights: np.ndarray, workload: Workload) -> None:
    """Raise `PlanError` unless all weights (0: not counted) can be computed with."""
    counted = table_weights != 0
    usable = ~counted | ((table_weights > 1e-100) & (table_weights < 1e200))
    if not np.all(usable):
        sizes = np.abs(np.log(table_weights, where=counted, out=np.zeros(len(counted))))
        place = int(np.argmax(sizes))
        raise PlanError(
            f"The weight of table {workload.describe(place)} in the loss is "
            f"{table_weights[place]:.3g}, which cannot be planned with; bring weights "
            "and targets closer to 1."
        )


def _refuse_other(value: Any, kinds: Any, noun: str) -> None:
    if type(value) not in kinds:
        raise PlanError(
            f"The {noun} of a plan must be one of the library's, such as {_EXAMPLES[noun]}, "
            f"got {type(value).__name__}."
        )


def optimum_with_strategies_of(
    reference: Optimum,
    workload: Workload,
    loss: Loss,
    *,
    on_progress: Progress = no_progress,
) -> Optimum:
    """The optimum of other tables, or for another loss, with the strategies of an optimum.

    Nothing has to be searched for then. Where all attributes have single values, it is the optimum
    itself; strategies that `reference` lacks are searched for.

    Args:
        reference: The optimum whose strategies and budget are used.
        on_progress: As of `optimum`, which raises what this does.
    """
    same = reference.workload.has_tables_of(workload)
    closure = reference.closure if same else Closure.of(workload)
    strategies = dict(reference.closure.strategies)
    if not set(measured_places(workload)) <= strategies.keys():
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
