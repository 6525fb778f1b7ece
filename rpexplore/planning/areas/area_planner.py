"""Area planner: (tables in areas, loss, budget) → plan. Never sees a record."""

from rpexplore.common.concurrency import Progress, no_progress, one_thread
from rpexplore.errors import PlanError
from rpexplore.planning.areas.area_groups import AreaGroups
from rpexplore.planning.areas.area_loss import area_problem, profiles_of
from rpexplore.planning.areas.area_plan import AreaPlan, exact_plan
from rpexplore.planning.areas.area_workload import AreaWorkload
from rpexplore.planning.areas.solvers import best_precisions
from rpexplore.planning.losses.base import Loss, MaxVariance, SumOfVariances
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.privacy.budget import Budget

# Relative gaps at which the searches end.
_SUM_TOLERANCE, _MAXIMUM_TOLERANCE = 1e-4, 3e-3


def plan_areas(
    workload: AreaWorkload,
    *,
    loss: Loss,
    budget: Budget,
    tolerance: float | None = None,
    uniform_levels: bool = False,
    on_progress: Progress = no_progress,
) -> AreaPlan:
    """The plan for tables in areas with the smallest loss within the budget, with its proof.

    Args:
        workload: The tables of each area, with weights and targets; of single values.
        loss: `SumOfVariances`, where the areas that are asked for the same count by their mean, or
            `MaxVariance`, over all areas and tables.
        budget: The most that the plan may cost.
        tolerance: Relative gap to the best possible at which the search may end; if left out 1e-4
            for a sum and 3e-3 for a largest variance.
        uniform_levels: Whether all areas of a level get the same noise, which costs accuracy.
        on_progress: Called with what is being done and the share that is done; what it raises ends
            the search.

    Returns:
        The plan. Of all plans with independent noise on every area none within the budget is better
        by more than its `gap`.

    Raises:
        PlanError: For another loss, other bases than single values, or if the search ends outside
            the tolerance.
        WorkloadError: If the loss needs targets that are missing.

    Example:
        >>> import rpexplore as rp
        >>> tree = rp.AreaTree.from_columns({"region": ["N", "N", "S"], "town": ["1", "2", "1"]})
        >>> sexes = rp.Workload.all_up_to(rp.Domain.from_sizes({"sex": 2}), 1)
        >>> everywhere = rp.AreaWorkload.of_levels(tree, dict.fromkeys(tree.levels, sexes))
        >>> best = rp.plan_areas(
        ...     everywhere, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.5")
        ... )
        >>> best.gap < 1e-4
        True
    """
    if not isinstance(loss, SumOfVariances | MaxVariance):
        raise PlanError(
            "Tables in areas can be planned for the average error (SumOfVariances) or the largest "
            f"one (MaxVariance), got {type(loss).__name__}."
        )
    if not workload.tables.is_marginals:
        raise PlanError(
            "Tables in areas must be of the single values of their attributes; leave out ranges, "
            "prefix sums and groups."
        )
    if tolerance is None:
        tolerance = _SUM_TOLERANCE if isinstance(loss, SumOfVariances) else _MAXIMUM_TOLERANCE
    with one_thread():
        groups = AreaGroups.of(workload.tree, workload.kinds)
        closure = Closure.of(workload.tables)
        profiles = profiles_of(workload, closure, loss)
        problem = area_problem(workload, groups, closure, loss, profiles, uniform_levels)
        state = best_precisions(problem, tolerance, on_progress)
        return exact_plan(workload, loss, budget, problem, closure, profiles, state)
