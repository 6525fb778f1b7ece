"""What a report tells about targets: which are met, and what it would take to meet all."""

import numpy as np

from rpexplore.analysis import binding_targets, targets_met
from rpexplore.analysis.accuracy import MET
from rpexplore.analysis.sufficient_budgets import sufficient
from rpexplore.common.formatting import describe_share
from rpexplore.errors import BudgetError
from rpexplore.export.report.section import Numbers, Section
from rpexplore.planning.losses.base import MaxVariance
from rpexplore.planning.mechanism.table_variances import cells_differ
from rpexplore.planning.minimum_budget import minimum_budget
from rpexplore.planning.plan import Plan
from rpexplore.scenarios.workload_request import WorkloadRequest

MOST_SHOWN, MOST_HOLDERS = 20, 10
_OF_WORST_CELLS = "A target is met when the least accurate cell of its table meets it."
_REQUIRED_TARGETS = "Required targets are met first; the others in proportion, as well as can be."


def targets(plan: Plan, request: WorkloadRequest | None = None) -> Section:
    """Which targets are met, and the budget that would meet all of them.

    request: what the plan was asked for, where that is known; it has the targets as they were
    typed, which are standard errors without it
    """
    ratios = plan.worst_standard_errors / plan.workload.targets
    if np.all(np.isnan(ratios)):
        return Section("Targets", ("No table was given a target for its accuracy.",))
    counts, differ = targets_met.target_counts(plan), cells_differ(plan.table_variances)
    explanation, binding_tables = _smallest_budget(plan, request)
    sentences = [
        counts.text,
        *([_REQUIRED_TARGETS] if counts.required else []),
        *([_OF_WORST_CELLS] if differ else []),
        # The plan with another objective is scaled to other budgets; with one of these it is
        # another.
        *(
            _sufficient_budget(plan, float(np.nanmax(ratios)) ** 2, counts.targets)
            if plan.loss.is_homogeneous
            else []
        ),
        explanation,
    ]
    frame = targets_met.of_targets(plan, request, most=MOST_SHOWN)
    columns = {
        "table": "table",
        "wanted": "target",
        "required": "required",
        "now": "least accurate cell" if differ else "in the plan",
        "outcome": "met or short by",
        "ratio": "times the target",
    }
    if not counts.required:
        del columns["required"]
    note = "A number by itself is a standard error σ."
    if len(frame) < counts.targets:
        note += f" And {counts.targets - len(frame):,} more; tables.csv has all."
    title = "Targets, the furthest off first"
    return Section("Targets", sentences, (Numbers(frame, columns, title, note), *binding_tables))


def _smallest_budget(plan: Plan, request: WorkloadRequest | None) -> tuple[str, list[Numbers]]:
    """The smallest budget for the targets, and the binding targets.

    For those that must be met, where the plan meets these first, else for all.
    """
    required_only = plan.loss.meets_required_targets
    minimum = minimum_budget(plan.workload, required_only=required_only, closure=plan.closure)
    try:
        budget_explanation = binding_targets.budget_explanation(
            minimum, plan.budget, required_only=required_only
        )
    except BudgetError as error:
        return str(error), []
    frame = binding_targets.binding_targets_frame(minimum, plan.budget, request, MOST_HOLDERS)
    columns = {
        "table": "table",
        "wanted": "target",
        "required": "required",
        "share": "share of the budget",
        "saved": "saved if 10 % wider",
        "rho": "ρ then",
    }
    frame["share"] = [describe_share(share) for share in frame["share"]]
    frame["saved"] = [describe_share(share) for share in frame["saved"]]
    note = "What would be saved follows from the shares, so it is approximate."
    if len(frame) < budget_explanation.binding_tables:
        note += f" And {budget_explanation.binding_tables - len(frame):,} more."
    title = "Binding targets of the smallest budget"
    return binding_targets.describe(budget_explanation), [Numbers(frame, columns, title, note)]


def _sufficient_budget(plan: Plan, factor: float, targets: int) -> list[str]:
    """The budget that would just meet all targets; factor: how many times the plan's own it is."""
    them = "it" if targets == 1 else "all of them"
    if 1 / MET**2 <= factor <= MET**2:
        return []
    try:
        enough = sufficient(float(plan.rho) * factor, plan.budget)
    except BudgetError:
        return [f"No budget that can be planned with would meet {them}."]
    if factor < 1:
        return [f"With the same objective, {enough.text} would be enough for {them}."]
    sentences = [
        f"To meet {them} with the same objective takes {enough.text}: {enough.compared}, because "
        "standard errors fall with the square root of ρ."
    ]
    if not (isinstance(plan.loss, MaxVariance) and plan.loss.relative_to == "target"):
        which = "target itself" if targets == 1 else "targets themselves"
        sentences.append(f"A plan whose objective is the {which} may need less.")
    return sentences
