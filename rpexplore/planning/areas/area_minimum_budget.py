"""The smallest budget at which the targets of all areas can be met."""

from fractions import Fraction

import numpy as np

from rpexplore.common.concurrency import Progress, no_progress
from rpexplore.errors import WorkloadError
from rpexplore.planning.areas.area_plan import AreaPlan, with_budget
from rpexplore.planning.areas.area_planner import plan_areas
from rpexplore.planning.areas.area_workload import AreaWorkload
from rpexplore.planning.losses.base import MaxVariance
from rpexplore.planning.minimum_budget import rho_with_allowance, typed_above
from rpexplore.privacy.budget import Budget


def minimum_area_budget(
    workload: AreaWorkload,
    *,
    max_records_per_person: int | None = None,
    tolerance: float | None = None,
    uniform_levels: bool = False,
    on_progress: Progress = no_progress,
) -> AreaPlan:
    """The plan that meets the targets of all tables in all areas at the smallest budget.

    Args:
        workload: The tables of each area, each with a target: its largest standard error.
        max_records_per_person: Most records of a person, who then is the privacy unit.
        tolerance: Relative gap to the smallest possible budget at which the search may end; 3e-3
            if left out.
        uniform_levels: Whether all areas of a level get the same noise, which takes more budget.
        on_progress: Called with what is being done and the share that is done; what it raises ends
            the search.

    Returns:
        The plan. Its budget, ρ rounded up to five digits, is enough; no budget below that times
        the plan's `lower_bound` is.

    Raises:
        WorkloadError: If a table has no target.
        PlanError: As `plan_areas`.

    Example:
        >>> import rpexplore as rp
        >>> tree = rp.AreaTree.from_columns({"region": ["N", "N", "S"], "town": ["1", "2", "1"]})
        >>> sexes = rp.Workload.of(rp.Domain.from_sizes({"sex": 2}), [("sex",)], targets=[20])
        >>> everywhere = rp.AreaWorkload.of_levels(tree, dict.fromkeys(tree.levels, sexes))
        >>> best = minimum_area_budget(everywhere)
        >>> best.loss_value <= 1
        True
    """
    for asked in workload.workloads:
        if np.any(np.isnan(asked.targets)):
            table = asked.describe(int(np.argmax(np.isnan(asked.targets))))
            raise WorkloadError(
                "The smallest budget is the one for the targets of all tables, and the table "
                f"{table} has none; give it a target, such as 20."
            )
    at_one = plan_areas(
        workload,
        loss=MaxVariance(relative_to="target"),
        budget=Budget(rho=1, max_records_per_person=max_records_per_person),
        tolerance=tolerance,
        uniform_levels=uniform_levels,
        on_progress=on_progress,
    )
    # Variances are inversely proportional to the budget.
    rho = Fraction(rho_with_allowance(at_one.loss_value))
    budget = Budget(rho=typed_above(rho), max_records_per_person=max_records_per_person)
    return with_budget(at_one, budget)
