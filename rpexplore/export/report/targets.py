"""What a report tells about targets: which are met, and what it would take to meet all."""

import numpy as np

from rpexplore.analysis import binding_targets, targets_met
from rpexplore.analysis.sufficient_budgets import sufficient_budget
from rpexplore.errors import BudgetError, WorkloadError
from rpexplore.export.report.section import Numbers, Section
from rpexplore.figures.chart import Column
from rpexplore.planning.losses.base import MaxVariance
from rpexplore.planning.mechanism.table_variances import cells_differ
from rpexplore.planning.minimum_budget import minimum_budget
from rpexplore.planning.table_plan import TablePlan
from rpexplore.scenarios.workload_request import WorkloadRequest
from rpexplore.workload.targets import MET_FACTOR

MOST_SHOWN, MOST_HOLDERS = 20, 10


def targets(plan: TablePlan, request: WorkloadRequest | None = None) -> Section:
    """Which targets are met, and the budget that would meet all of them.

    request: of the scenario, which has the targets as they were typed; without it they are
    standard errors
    """
    ratios = plan.largest_standard_errors / plan.workload.targets
    if np.all(np.isnan(ratios)):
        return Section("Targets", ("No table was given a target for its accuracy.",))
    counts, differ = targets_met.target_counts(plan), cells_differ(plan.table_variances)
    sentences = [counts.text]
    if counts.required:
        sentences.append(
            "Required targets are met first; the others in proportion, as well as can be."
        )
    if differ:
        sentences.append("A target is met when the least accurate cell of its table meets it.")
    if plan.loss.is_homogeneous:  # only then the plan for another budget is this one, scaled
        ratio = min(float(np.nanmax(ratios)), 1e100)  # its square is a float, and no budget
        sentences += _sufficient_budget(plan, ratio**2, counts.targets)
    explanation, binding_tables = _smallest_budget(plan, request)
    sentences.append(explanation)
    frame = targets_met.of_targets(plan, request, most=MOST_SHOWN)
    columns = {
        "table": Column("table", "text"),
        "wanted": Column("target", "text"),
        "required": Column("required", "text"),
        "now": Column("least accurate cell" if differ else "in the plan", "text"),
        "outcome": Column("met or short by", "text"),
        "ratio": Column("times the target"),
    }
    if not counts.required:
        del columns["required"]
    note = "A number by itself is a standard error σ."
    if len(frame) < counts.targets:
        note += f" And {counts.targets - len(frame):,} more; tables.csv has all."
    title = "Targets, the furthest off first"
    return Section("Targets", sentences, (Numbers(frame, columns, title, note), *binding_tables))


def _smallest_budget(plan: TablePlan, request: WorkloadRequest | None) -> tuple[str, list[Numbers]]:
    """The smallest budget for the targets, and the binding targets.

    Of required targets, where the plan meets these first, else of all.
    """
    required_only = plan.loss.meets_required_targets
    try:
        minimum = minimum_budget(plan.workload, required_only=required_only, closure=plan.closure)
        budget_explanation = binding_targets.budget_explanation(
            minimum, plan.budget, required_only=required_only
        )
    except (BudgetError, WorkloadError) as error:  # no budget is so large, or so small
        return str(error), []
    frame = binding_targets.binding_targets_frame(minimum, plan.budget, request, MOST_HOLDERS)
    columns = {
        "table": Column("table", "text"),
        "wanted": Column("target", "text"),
        "required": Column("required", "text"),
        "share": Column("share of the smallest budget", "share", digits=2),
        "saved": Column("saving if 10 % wider", "share", digits=2),
        "rho": Column("ρ then"),
    }
    note = "What would be saved follows from the shares, so it is approximate."
    more = len(minimum.binding_tables) - len(frame)
    if more:
        note += f" And {more:,} more."
    title = "Binding targets of the smallest budget"
    return binding_targets.describe(budget_explanation), [Numbers(frame, columns, title, note)]


def _sufficient_budget(plan: TablePlan, factor: float, targets: int) -> list[str]:
    """The budget that would just meet all targets; factor: how many times the plan's own it is."""
    them = "the target" if targets == 1 else "all targets"
    if 1 / MET_FACTOR**2 <= factor <= MET_FACTOR**2:
        return []
    try:
        enough = sufficient_budget(float(plan.rho) * factor, plan.budget)
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
