"""Targets of tables in areas: whether a plan meets them, and the budget at which all are met."""

import numpy as np

from rpexplore.analysis.budget_units import stated_text
from rpexplore.analysis.sufficient_budgets import ROOM_FOR_OTHERS, SufficientBudget
from rpexplore.analysis.sufficient_budgets import sufficient_budget as budget_for_rho
from rpexplore.common.formatting import describe_share, plural, rounded
from rpexplore.errors import OutOfReachError
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.areas.area_workload import AreaWorkload
from rpexplore.privacy.budget import Budget


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


def describe_required(plan: AreaPlan) -> str:
    """How many required targets a plan within them meets in all areas, in a sentence."""
    frame = plan.accuracy()
    frame = frame.loc[frame["required"]]
    count = plural(int(frame["areas"].sum()), "required target")
    ratio = np.max(frame["largest_standard_error"].to_numpy() / frame["target"].to_numpy())
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
