"""Why this budget: the binding targets, and the shadow prices of all tables."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rpexplore.analysis.measures import Accuracy, group_name, order_groups
from rpexplore.analysis.sufficient_budgets import (
    ROOM_FOR_OTHERS,
    TARGET_LOSS,
    SufficientBudget,
    sufficient_budget,
)
from rpexplore.analysis.targets_met import describe_now, wanted_targets
from rpexplore.analysis.what_if import describe_spread, is_noticeable
from rpexplore.common.text import describe_share, plural, rounded
from rpexplore.planning.losses.constrained import SumWithinTargets
from rpexplore.planning.losses.losses import Loss, MaxVariance, SumOfVariances
from rpexplore.planning.minimum_budget import MinimumBudget
from rpexplore.planning.planner import Optimum
from rpexplore.planning.table_plan import TablePlan
from rpexplore.privacy.budget import Budget
from rpexplore.privacy.conversions import rho_text
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.workload_request import WorkloadRequest
from rpexplore.workload.table_text import list_titles, titles
from rpexplore.workload.workload import Workload

# ---- Why this budget: the smallest one that meets the targets, and the binding targets.
#
# And what targets that are met first cost the other tables at one budget.


_WIDER = 0.1  # the relaxation that savings are given for: a margin or standard error 10 % wider
_NAMED = 3
_TAKEN = 1.0  # per cent of a standard error; less is not worth a word
_ENOUGH = 1 + 1e-9


def objective_for_targets(scenario: Scenario) -> Loss | None:
    """The current objective if it sees to the targets, or else the one that does.

    None where some tables have a target, others have none, and no target is required.
    """
    loss, workload = scenario.loss, scenario.workload
    if loss.meets_required_targets or loss == TARGET_LOSS:
        return loss
    if np.any(workload.required):
        return SumWithinTargets(getattr(loss, "weighting", "equal"))
    return None if np.any(np.isnan(workload.targets)) else TARGET_LOSS


@dataclass(frozen=True)
class BudgetExplanation:
    """The smallest budget for the targets, and what makes it that large.

    required_only  whether it is for the required targets only
    enough         the smallest budget itself
    advised        the same where no table is without such a target, else with room for those
    is_within      whether the current budget is enough
    """

    minimum: MinimumBudget
    required_only: bool
    enough: SufficientBudget
    advised: SufficientBudget
    is_within: bool

    @property
    def kind(self) -> str:
        """The name of the targets."""
        return "required target" if self.required_only else "target"


def budget_explanation(
    minimum: MinimumBudget, budget: Budget, *, required_only: bool, by_rho: bool = False
) -> BudgetExplanation:
    """The budget that meets some targets, against the current one.

    by_rho: whether ε follows from ρ alone, as where a rest is planned behind a pilot.

    Raises `BudgetError` if no budget that can be planned with is large enough.
    """
    needed = minimum.for_unit_of(budget).rho
    what = "Meeting all required targets" if required_only else "Meeting all targets"
    noise = None if by_rho else minimum.for_unit_of(budget).noise
    enough = advised = sufficient_budget(needed, budget, what, noise)
    if not minimum.covers_all_tables:
        advised = sufficient_budget(needed * (1 + ROOM_FOR_OTHERS), budget, what, noise)
    is_within = needed <= float(budget.rho) * _ENOUGH
    return BudgetExplanation(minimum, required_only, enough, advised, is_within)


def binding_targets_frame(
    minimum: MinimumBudget,
    budget: Budget,
    request: WorkloadRequest | None = None,
    most: int = 10,
) -> pd.DataFrame:
    """The binding targets of the smallest budget, the largest share first.

    Columns: table, wanted (as typed), required ("required" or "in proportion"), share (of the
    budget; all shares sum to 1), saved (share of the budget that a target 10 % wider would save),
    rho (the smallest budget then, for the privacy unit).
    """
    tables = minimum.binding_tables[:most]
    wanted = wanted_targets(minimum.workload, tables, request)
    saved = minimum.saving_if_relaxed(_WIDER)[tables]
    return pd.DataFrame(
        {
            "table": titles(minimum.workload, tables),
            "wanted": [target.description for target in wanted],
            "required": np.where(minimum.workload.required[tables], "required", "in proportion"),
            "share": minimum.shares[tables],
            "saved": saved,
            "rho": minimum.for_unit_of(budget).rho * (1 - saved),
        }
    )


def describe_binding(explanation: BudgetExplanation, *, compared: bool = True) -> str:
    """The budget that the targets take and those that bind, in a few sentences.

    compared: with the current budget
    """
    minimum, targets = explanation.minimum, len(explanation.minimum.tables)
    binding_tables = minimum.binding_tables
    title = titles(minimum.workload, minimum.tables[:1])[0]
    subject, first = f"The {explanation.kind} of {title} takes", "it"
    if targets > 1:
        subject, first = f"The {plural(targets, explanation.kind)} take", "the first"
    budget = explanation.enough.text
    if compared:
        budget += f", {explanation.enough.compared}"
    sentences = [f"{subject} {budget}."]
    if minimum.record_privacy_cost / minimum.lower_bound - 1 < 1e-4:
        sentences.append("No plan of these tables can do with noticeably less.")
    if targets > 1:
        count, more = len(binding_tables), len(binding_tables) - _NAMED
        rest = f" and {plural(more, 'other')}" if more > 0 else ""
        sentences.append(
            f"{count:,} of {targets:,} targets {'is' if count == 1 else 'are'} binding: "
            f"{'; '.join(titles(minimum.workload, binding_tables[:_NAMED]))}{rest}."
        )
    saved = float(minimum.saving_if_relaxed(_WIDER)[binding_tables[0]])
    then = rho_text(explanation.enough.needed * (1 - saved), 3, "nearest")
    sentences.append(
        f"If {first} were {100 * _WIDER:g} % wider, about {then} would be enough, "
        f"{describe_share(saved)} less."
    )
    return " ".join(sentences)


def describe_advice(explanation: BudgetExplanation) -> str:
    """The budget to take: the smallest one, or a little more where tables are without a target."""
    if explanation.advised is explanation.enough:
        return ""
    return (
        f"At that budget nothing is left for tables without a {explanation.kind}. With "
        f"{rounded(100 * ROOM_FOR_OTHERS, 2)} % more, {explanation.advised.text}, they get "
        "something."
    )


def objective_without_required(loss: Loss, workload: Workload) -> Loss | None:
    """The objective that is left of one that meets required targets first, if none is required.

    None of other objectives, and where the target of every table is required.
    """
    if not loss.meets_required_targets or np.all(workload.required):
        return None
    return SumOfVariances(loss.weighting) if isinstance(loss, SumWithinTargets) else TARGET_LOSS


@dataclass(frozen=True, eq=False)
class CostToOthers:
    """The cost of a plan's required targets for the other tables, beside none being required.

    per_cent  float64[n]: by how much the standard errors of these tables are larger
    """

    per_cent: np.ndarray

    @property
    def text(self) -> str:
        """A sentence."""
        count = len(self.per_cent)
        others = "the other table" if count == 1 else f"the other {count:,} tables"
        if not is_noticeable(self.per_cent):
            return f"The margins of error of {others} are as if no target were required."
        spread = describe_spread(self.per_cent)
        return (
            f"Compared with no target being required, the margins of error of {others} are "
            f"{spread}."
        )


def cost_to_others(plan: TablePlan, without: Optimum) -> CostToOthers:
    """The cost of a plan's required targets for the other tables, of which there are some.

    Args:
        plan: With an objective that meets required targets first.
        without: Of the same tables, for the `objective_without_required`.
    """
    others = ~plan.workload.required
    errors = without.standard_errors(plan.budget)[others]
    per_cent = 100 * (plan.standard_errors[others] / errors - 1)
    return CostToOthers(per_cent)


def describe_taken(
    plan: TablePlan, without: Optimum, request: WorkloadRequest | None = None
) -> str:
    """The cost of required targets for the very tables that have them; "" where it is nothing.

    An objective that meets required targets first takes whatever is beyond them for the others.
    plan, without: as in `cost_to_others`. request: what the plan was made from
    """
    free = without.standard_errors(plan.budget, "largest")
    per_cent = 100 * (plan.largest_standard_errors / free - 1)
    rows = np.flatnonzero(plan.workload.required & (per_cent > _TAKEN))
    if not len(rows):
        return ""
    most = rows[np.argmax(per_cent[rows])]
    (target,) = wanted_targets(plan.workload, np.array([most]), request)
    now = describe_now(target, float(plan.largest_standard_errors[most]))
    then = describe_now(target, float(free[most]))
    name = titles(plan.workload, np.array([most]))[0]
    which = (
        f"{name} would be at {then} if no target were required, and is at {now}"
        if len(rows) == 1
        else f"{len(rows):,} tables with a required target would be more accurate if none were "
        f"required, such as {name}: {then} instead of {now}"
    )
    return (
        f"{which}. This objective takes what is beyond a required target for the other tables; a "
        "tighter target or another objective leaves it there."
    )


# ---- Binding tables: the shadow prices of a plan, by table, attribute and order.
#
# A shadow price is the share of the loss that a table stands for. Were the table to weigh 1 % less,
# the loss of the best plan would fall by that share of 1 %.


_MOST_OF_IT = 0.8
FEW = 10  # tables; that many can be dealt with one by one


def binding_tables(accuracy: Accuracy) -> np.ndarray:
    """Indices of the fewest tables that have most of the loss, the first the most, int64[n]."""
    tables = np.argsort(-accuracy.shadow_prices, kind="stable")
    shares = np.cumsum(accuracy.shadow_prices[tables])
    count = int(np.searchsorted(shares, _MOST_OF_IT * shares[-1] * (1 - 1e-12))) + 1
    return tables[:count]


def by_table(accuracy: Accuracy, most: int | None = 10) -> pd.DataFrame:
    """The tables with the largest shares: table, order, cells, share, the measure, standard_error.

    Where cells differ, also smallest_standard_error and largest_standard_error.
    """
    workload = accuracy.workload
    tables = np.argsort(-accuracy.shadow_prices, kind="stable")[:most]
    return pd.DataFrame(
        {
            "table": titles(workload, tables),
            "order": workload.orders[tables],
            "cells": workload.cells[tables],
            "share": accuracy.shadow_prices[tables],
            **accuracy.columns(tables),
        }
        | accuracy.variances.extreme_columns(tables)
    )


def by_attribute(accuracy: Accuracy) -> pd.DataFrame:
    """One row an attribute, the largest share first: attribute, tables, share, share_of_tables.

    share: of the tables that contain the attribute, together. A table of several attributes
    counts with each of them.
    """
    rows, columns = np.nonzero(accuracy.workload.members >= 0)
    attributes = accuracy.workload.members[rows, columns]
    names = accuracy.workload.domain.names
    frame = _summed({"attribute": names}, attributes, rows, accuracy)
    return frame.sort_values("share", ascending=False, kind="stable", ignore_index=True)


def by_order(accuracy: Accuracy) -> pd.DataFrame:
    """One row a group of orders: attributes, tables, share, share_of_tables."""
    groups = order_groups(accuracy.workload)
    used, group_of_table = np.unique(groups, return_inverse=True)
    names = [group_name(group, accuracy.workload) for group in used.tolist()]
    return _summed({"attributes": names}, group_of_table, np.arange(len(groups)), accuracy)


def _summed(
    names: dict[str, Sequence[str]], row_of: np.ndarray, tables: np.ndarray, accuracy: Accuracy
) -> pd.DataFrame:
    """Tables and their shares summed by row; row_of: of each of these tables, which may repeat."""
    (labels,) = names.values()
    count = np.bincount(row_of, minlength=len(labels))
    share = np.bincount(row_of, accuracy.shadow_prices[tables], minlength=len(labels))
    columns = {"tables": count, "share": share, "share_of_tables": count / len(accuracy.workload)}
    return pd.DataFrame(names | columns)


FRAMES = {"table": by_table, "attribute": by_attribute, "order": by_order}  # by what a row is
_SUBJECTS = {
    "table": "The table {} has",
    "attribute": "The tables with {} have",
    "order": "The tables of {} have",
}


def describe_loss(loss: Loss, workload: Workload) -> str:
    """The whole that the shares are parts of, for a sentence."""
    if isinstance(loss, SumOfVariances):
        return "the weighted sum of variances"
    if loss == MaxVariance() and np.all(workload.weights == 1):
        return "the largest variance"
    return loss.description


def describe_first(frame: pd.DataFrame, kind: str, loss_text: str) -> str:
    """The row with the largest share of one of the `FRAMES`, in a sentence; kind: which one."""
    row = max(frame.to_dict("records"), key=lambda row: row["share"])
    name = row[frame.columns[0]]
    subject = "The total has" if name == "total" else _SUBJECTS[kind].format(name)
    text = f"{subject} {describe_share(row['share'])} of {loss_text}"
    if kind == "table":
        return f"{text}."
    return f"{text}, with {describe_share(row['share_of_tables'])} of the tables."


def describe_shadow_prices(accuracy: Accuracy, loss: Loss) -> str:
    """Which tables are binding for a loss, and what would help."""
    loss_text = describe_loss(loss, accuracy.workload)
    if len(accuracy.workload) == 1:
        return f"The only table has all of {loss_text}."
    binding = binding_tables(accuracy)
    shares, count = np.cumsum(accuracy.shadow_prices[binding]), len(binding)
    first_share, names = float(shares[0]), titles(accuracy.workload, binding[:FEW])
    start = (
        f"{count:,} of {plural(len(accuracy.workload), 'table')} {'is' if count == 1 else 'are'} "
        f"binding, with {describe_share(float(shares[-1]))} of {loss_text}"
    )
    if count > FEW:
        return (
            f"{start}. The first, {names[0]}, has {describe_share(first_share)}. "
            "What helps is a larger budget, or less accuracy for many tables at once."
        )
    # To first order: a target is compared with σ, whose square is the variance.
    change = "target 5 % larger" if loss == TARGET_LOSS else "weight 10 % less"
    return (
        f"{start}: {list_titles([(name,) for name in names], FEW)}. Less accuracy for "
        f"{'it' if count == 1 else 'the first'} helps most: with its {change}, "
        f"{loss_text} falls by about {rounded(10 * first_share, 2)} %."
    )
