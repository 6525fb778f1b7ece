"""The smallest budget that meets the targets, and the plan at it."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np

from rpexplore.analysis.binding_targets import budget_explanation, describe, describe_advice
from rpexplore.analysis.sufficient_budgets import smallest_budget, smallest_query_budget
from rpexplore.cli.plan_inputs import PartsAsked
from rpexplore.common.concurrency import Progress
from rpexplore.errors import WorkloadError
from rpexplore.planning import planner
from rpexplore.planning.areas.area_minimum_budget import minimum_area_budget
from rpexplore.planning.counts.query_planner import query_optimum
from rpexplore.planning.loss_serialization import loss_from_text
from rpexplore.planning.losses.base import Loss, MaxVariance
from rpexplore.planning.losses.constrained import SumWithinTargets
from rpexplore.planning.minimum_budget import minimum_budget
from rpexplore.planning.optimum import Optimum
from rpexplore.planning.part_plan import PartPlan
from rpexplore.planning.plan import Plan
from rpexplore.privacy.budget import Budget
from rpexplore.workload.workload import Workload

TARGETS, REQUIRED = "targets", "required"


def loss_that_meets(
    which: str, workload: Workload, text: str | None, weighting: str | None, relative_to: str | None
) -> Loss:
    """The loss of a plan that meets targets at the smallest budget for them.

    which: TARGETS, for all there are, or REQUIRED. text: the loss, where one is given. Raises
    `WorkloadError` for one that does not see to it.
    """
    if text is None:
        everywhere = not np.any(np.isnan(workload.targets))
        text = "max" if which == TARGETS and everywhere else "required"
    if text.strip() == "max" and relative_to is None:
        relative_to = "target"
    loss = loss_from_text(text, weighting=weighting, relative_to=relative_to)
    in_proportion = which == TARGETS and loss == MaxVariance(relative_to="target")
    if not (in_proportion or loss.meets_required_targets):
        fitting = "required, required-then-targets"
        if which == TARGETS:
            fitting += " or max --relative-to target"
        raise WorkloadError(
            f"--minimum-budget {which} goes with a --loss that sees to it that they are met "
            f"({fitting}), got {text}; leave --loss out."
        )
    return loss


def optimum_at_smallest_budget(
    which: str,
    workload: Workload,
    loss: Loss,
    reference_budget: Budget,
    *,
    uniform_reference: bool,
    on_progress: Progress,
) -> tuple[Optimum, Budget, str]:
    """The optimum at the smallest budget for targets, that budget, and why it is that large.

    Where the loss is the average once required targets are met, all targets that the budget is for
    become required. reference_budget: for the privacy unit, and the unit the budget is stated in.

    Raises `WorkloadError` if there are no such targets, `BudgetError` if no budget is large enough.
    """
    required_only = which == REQUIRED
    if isinstance(loss, SumWithinTargets) and not required_only:
        workload = replace(workload, required=~np.isnan(workload.targets))
    options = {"uniform_reference": uniform_reference, "on_progress": on_progress}
    minimum = minimum_budget(workload, required_only=required_only, **options)
    explanation = budget_explanation(minimum, reference_budget, required_only=required_only)
    budget = explanation.advised.budget
    # By other strategies the same budget might not be enough.
    strategies = None if workload.is_marginals else minimum.closure.strategies
    optimum = planner.optimum(workload, loss=loss, budget=budget, strategies=strategies, **options)
    if isinstance(loss, MaxVariance):
        # Both are found to a tolerance, so another budget may be the one for just this plan.
        of_plan = smallest_budget(optimum, reference_budget).budget
        budget = max(budget, of_plan, key=lambda candidate: candidate.rho)
    reason = f"{describe(explanation, compared=False)} {describe_advice(explanation)}".strip()
    return optimum, budget, reason


def _has_optional_targets(asked: PartsAsked) -> bool:
    """Whether a table in areas has a target that is not required, or none."""
    return asked.areas is not None and not all(
        np.all(workload.required) for workload in asked.areas.workloads
    )


def plan_at_smallest_budget(
    which: str,
    asked: PartsAsked,
    reference_budget: Budget,
    objective: tuple[str | None, str | None, str | None],
    shares: Mapping[str, Fraction] | None,
    *,
    uniform_reference: bool,
    uniform_levels: bool,
    tolerance: float | None,
    on_progress: Progress,
) -> tuple[Plan, str | None]:
    """The plan at the smallest budget for all targets of all parts, and why it is that large.

    Each part gets the smallest budget that meets its own targets; the plan's is their sum.

    which: TARGETS, or REQUIRED where only tables without areas have other targets
    objective: --loss, --weighting and --relative-to

    Raises `WorkloadError` for parts without targets, or options that do not go with it.
    """
    if shares is not None:
        raise WorkloadError("--minimum-budget finds the shares of the parts; leave --share out.")
    if which == REQUIRED and (asked.counts is not None or _has_optional_targets(asked)):
        raise WorkloadError(
            "--minimum-budget required goes with tables alone, or tables in areas whose targets "
            "are all required: of others it would meet all targets; say --minimum-budget targets, "
            "or plan them by themselves."
        )
    parts: list[PartPlan] = []
    reason, most = None, reference_budget.max_records_per_person
    if asked.tables is not None:
        loss = loss_that_meets(which, asked.tables, *objective)
        optimum, budget, reason = optimum_at_smallest_budget(
            which, asked.tables, loss, reference_budget,
            uniform_reference=uniform_reference, on_progress=on_progress,
        )  # fmt: skip
        parts.append(optimum.at(budget))
    elif any(objective):
        name = ("loss", "weighting", "relative-to")[[bool(text) for text in objective].index(True)]
        raise WorkloadError(
            "--minimum-budget finds the smallest ρ for the largest error relative to targets; "
            f"leave --{name} out."
        )
    if asked.areas is not None:
        parts.append(
            minimum_area_budget(
                asked.areas,
                max_records_per_person=most,
                tolerance=tolerance,
                uniform_levels=uniform_levels,
                on_progress=on_progress,
            )
        )
    if asked.counts is not None:
        of_counts = query_optimum(asked.counts.queries, on_progress=on_progress)
        parts.append(of_counts.at(smallest_query_budget(of_counts, reference_budget).budget))
    total = sum((part.budget.privacy_cost for part in parts), Fraction())
    budget = parts[0].budget
    if len(parts) > 1:
        budget = Budget(privacy_cost=total, max_records_per_person=most)
    return Plan(tuple(parts), budget, parts[0].version), reason
