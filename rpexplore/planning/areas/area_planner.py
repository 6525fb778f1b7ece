"""Area planner: (tables in areas, loss, budget) → plan. Never sees a record."""

import numpy as np

from rpexplore.common.concurrency import Progress, no_progress, one_thread
from rpexplore.common.formatting import joined, rounded
from rpexplore.errors import OutOfReachError, PlanError
from rpexplore.planning.areas.area_cells import LossRows
from rpexplore.planning.areas.area_groups import AreaGroups
from rpexplore.planning.areas.area_loss import (
    AREA_LOSSES,
    area_problem,
    profiles_of,
    table_weights,
)
from rpexplore.planning.areas.area_plan import AreaPlan, exact_plan
from rpexplore.planning.areas.area_workload import AreaWorkload
from rpexplore.planning.areas.capped_solver import AreaCapped
from rpexplore.planning.areas.search import best_precisions, problem_with_room
from rpexplore.planning.areas.solvers import AreaState
from rpexplore.planning.losses.base import Loss, SumOfVariances
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.optimal_strategies import with_best_strategies
from rpexplore.privacy.budget import Budget

# Relative gaps at which the searches end.
_SUM_TOLERANCE, _TOLERANCE = 1e-4, 3e-3
_MOST_NUMBERS = 30_000_000  # 8 bytes each, of which there are some arrays
_MOST_NAMED = 3  # tables and levels in an error message


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
        workload: The tables of each area, with weights and targets, in any bases.
        loss: `SumOfVariances`, where the areas that are asked for the same count by their mean, or
            `MaxVariance`, over all areas and tables; `SumWithinTargets` or `MaxWithinTargets`: the
            same of tables without a required target, while all required ones are met.
        budget: The most that the plan may cost.
        tolerance: Relative gap to the best possible at which the search may end; if left out 1e-4
            for `SumOfVariances`, else 3e-3.
        uniform_levels: Whether all areas of a level get the same noise, which costs accuracy.
        on_progress: Called with what is being done and the share that is done; what it raises ends
            the search.

    Returns:
        The plan. Of all plans with independent noise on every area none within the budget is better
        by more than its `gap`.

    Raises:
        PlanError: For another loss, too many cells, or if the search ends outside the tolerance.
        OutOfReachError: If the required targets cannot all be met.
        WorkloadError: If the loss needs targets that are missing.

    Example:
        >>> import rpexplore as rp
        >>> tree = rp.AreaTree.from_columns({"region": ["N", "N", "S"], "town": ["1", "2", "1"]})
        >>> sexes = rp.Workload.all_up_to(rp.Domain.from_sizes({"sex": 2}), 1)
        >>> everywhere = rp.AreaWorkload.of_levels(tree, dict.fromkeys(tree.levels, sexes))
        >>> best = plan_areas(
        ...     everywhere, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.5")
        ... )
        >>> best.gap < 1e-4
        True
    """
    if not isinstance(loss, AREA_LOSSES):
        raise PlanError(
            "Tables in areas can be planned for the average error (SumOfVariances), the largest "
            "one (MaxVariance), or either within required targets (SumWithinTargets, "
            f"MaxWithinTargets), got {type(loss).__name__}."
        )
    if tolerance is None:
        tolerance = _SUM_TOLERANCE if isinstance(loss, SumOfVariances) else _TOLERANCE
    with one_thread():
        groups = AreaGroups.of(workload.tree, workload.kinds)
        closure = _measured_closure(workload, loss, on_progress)
        rows = LossRows.of(workload.tables, closure, loss)
        if not workload.tables.is_marginals and len(rows) * len(groups) > _MOST_NUMBERS:
            raise PlanError(
                f"The loss looks at {len(rows):,} cells of tables in {len(groups):,} different "
                "areas, which are too many; use single values, or the average error "
                "(SumOfVariances)."
            )
        profiles = profiles_of(workload, closure, loss, rows)
        problem = area_problem(workload, groups, loss, rows, profiles, uniform_levels, budget)
        if isinstance(problem, AreaCapped):
            problem, inside, largest = problem_with_room(problem, tolerance, on_progress)
            if largest >= 1:
                raise _out_of_reach(workload, groups, rows, inside, largest)
        state = best_precisions(problem, tolerance, on_progress)
        found = exact_plan(workload, loss, budget, problem, closure, rows, profiles, state)
    all_required = loss.meets_required_targets and not isinstance(problem, AreaCapped)
    if all_required and found.loss_value > 1:
        raise _out_of_reach(workload, groups, rows, state, found.loss_value)
    return found


def _measured_closure(workload: AreaWorkload, loss: Loss, on_progress: Progress) -> Closure:
    """The closure of all tables, with the strategies that are best for all levels together."""
    weights, largest = np.zeros(len(workload.tables)), loss.looks_at_least_accurate_cells
    add = np.maximum if largest else np.add
    for rows, of_kind in zip(workload.rows, table_weights(workload, loss), strict=True):
        weights[rows] = add(weights[rows], of_kind)
    # The loss may leave a table with a required target without weight.
    weights[weights == 0] = np.mean(weights)
    closure = Closure.of(workload.tables)
    return with_best_strategies(
        workload.tables,
        closure,
        weights,
        largest=largest,
        on_progress=on_progress,
    )


def _out_of_reach(
    workload: AreaWorkload,
    groups: AreaGroups,
    rows: LossRows,
    inside: AreaState,
    largest: float,
) -> OutOfReachError:
    """Which targets bind most, and what budget would do.

    inside, largest: what comes as far inside as can be, with its largest variance over its cap
    """
    prices, names = inside.table_prices, []
    assert prices is not None
    in_groups = prices * groups.multiplicity
    while len(names) < _MOST_NAMED and np.any(in_groups > 0):
        by_level = np.add.reduceat(in_groups, groups.starts[:-1], axis=1)
        row, level = np.unravel_index(np.argmax(by_level), by_level.shape)
        table = int(rows.tables[row])
        names.append(f"{workload.tables.describe(table)} on {workload.tree.levels[level]}")
        in_groups[rows.tables == table, groups.starts[level] : groups.starts[level + 1]] = 0
    return OutOfReachError(
        "The required targets cannot all be met at this budget; among those that bind are "
        f"{joined(names)}. Use {rounded(largest, 4, 'up')} times the budget and a little more, "
        "make some of these targets wider, or do not require them.",
        needed=largest,
    )
