"""Targets of tables in areas: whether a plan meets them, and the budget at which all are met."""

import numpy as np
import pandas as pd

from rpexplore.analysis.budget_units import stated_text
from rpexplore.analysis.sufficient_budgets import ROOM_FOR_OTHERS, SufficientBudget
from rpexplore.analysis.sufficient_budgets import sufficient_budget as budget_for_rho
from rpexplore.common.formatting import describe_share, plural, rounded
from rpexplore.errors import OutOfReachError
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.areas.area_workload import AreaWorkload
from rpexplore.privacy.budget import Budget
from rpexplore.workload.targets import MET_FACTOR


def sufficient_budget(plan: AreaPlan) -> Budget:
    """The smallest budget at which a plan for the largest shortfall meets all its targets.

    Variances are inversely proportional to the budget, and the loss is the largest of them over the
    square of its target. No budget is enough that is smaller by more than the plan's gap. It is in
    the unit of the plan's budget.
    """
    return budget_for_rho(float(plan.budget.rho) * plan.loss_value, plan.budget).budget


def budget_within_reach(
    refused: OutOfReachError, budget: Budget, workload: AreaWorkload
) -> tuple[SufficientBudget, str]:
    """The smallest budget for required targets that a budget is too small for, and a sentence.

    With a little more where tables have none, so that they get something; in the budget's unit.
    """
    factor, more = refused.needed, ""
    if not all(bool(np.all(asked.required)) for asked in workload.workloads):
        factor *= 1 + ROOM_FOR_OTHERS
        more = (
            f" That is {describe_share(ROOM_FOR_OTHERS)} more than they need, so that other tables "
            "get something."
        )
    enough = budget_for_rho(float(budget.rho) * factor, budget)
    return enough, f"All of them are met at {enough.text}: {enough.compared}.{more}"


def met_in_all_areas(tables: pd.DataFrame) -> list[str]:
    """Of rows of an `AreaPlan`'s tables: "yes", "no", or "" where there is no target."""
    is_met = tables["largest_standard_error"] <= tables["target"] * MET_FACTOR
    return np.where(tables["target"].isna(), "", np.where(is_met, "yes", "no")).tolist()


def missed_targets(plan: AreaPlan) -> tuple[int, int]:
    """Of how many targets of a table on a level some area misses it, and how many there are."""
    met = met_in_all_areas(plan.tables)
    return met.count("no"), len(met) - met.count("")


def describe_required(plan: AreaPlan) -> str:
    """How many required targets a plan within them meets in all areas, in a sentence."""
    rows = [row for row in plan.tables.to_dict("records") if row["required"]]
    count = plural(sum(row["areas"] for row in rows), "required target")
    ratio = max(row["largest_standard_error"] / row["target"] for row in rows)
    return (
        f"All of the {count} in all areas are met: the largest standard error is "
        f"{describe_share(ratio, 3)} of its target."
    )


def describe_targets(plan: AreaPlan) -> str:
    """How far a plan for the largest shortfall is from its targets, and what would meet them."""
    ratio = plan.loss_value**0.5
    met = (
        f"All targets are met: the largest standard error is {describe_share(ratio, 3)} of its "
        "target."
        if plan.loss_value <= 1
        else f"Targets are missed: the largest standard error is {rounded(ratio, 3, 'up')} times "
        "its target."
    )
    enough = stated_text(sufficient_budget(plan))
    return (
        f"{met} The smallest budget that meets all of them is {enough}, within "
        f"{describe_share(plan.gap)}."
    )
