"""Why this budget: the smallest one that meets the targets, and the binding targets."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from rpexplore.analysis.sufficient_budgets import SufficientBudget, sufficient
from rpexplore.analysis.targets_met import wanted_targets
from rpexplore.common.formatting import describe_share, plural, rounded
from rpexplore.planning.losses.base import Loss, MaxVariance
from rpexplore.planning.losses.constrained import SumWithinTargets
from rpexplore.planning.minimum_budget import MinimumBudget
from rpexplore.privacy.budget import Budget
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.workload_request import WorkloadRequest
from rpexplore.workload.table_text import list_titles
from rpexplore.workload.table_titles import titles

WIDER = 0.1  # the relaxation that savings are told for: a margin or standard error 10 % wider
# What is added to the smallest budget where some tables have no such target, so that they get some.
ROOM = 0.1
_NAMED = 3
_ALL = MaxVariance(relative_to="target")
_ENOUGH = 1 + 1e-9


def objective_for_targets(scenario: Scenario) -> Loss | None:
    """The current objective if it sees to the targets, or else the one that does.

    None where some tables have a target, others have none, and no target is required.
    """
    loss, workload = scenario.loss, scenario.workload
    if loss.meets_required_targets or loss == _ALL:
        return loss
    if np.any(workload.required):
        return SumWithinTargets(getattr(loss, "weighting", "equal"))
    return None if np.any(np.isnan(workload.targets)) else _ALL


@dataclass(frozen=True)
class BudgetExplanation:
    """The smallest budget for the targets, and what makes it that large.

    which       "required" or "all": the targets that it is for
    enough      the smallest budget itself
    advised     the same where no table is without such a target, else with `ROOM` for those
    is_within   whether the current budget is enough
    targets     how many targets it is for; binding_tables: how many of them bind
    tables      titles of the binding_tables, the one that does most first; at most as many as are
    named
    saved       what 10 % more room for the first one would save, share of the budget
    proven_gap  how far below the smallest budget another plan may possibly go, relative
    """

    which: str
    enough: SufficientBudget
    advised: SufficientBudget
    is_within: bool
    targets: int
    binding_tables: int
    tables: tuple[str, ...]
    saved: float
    proven_gap: float


def budget_explanation(
    minimum: MinimumBudget, budget: Budget, *, required_only: bool
) -> BudgetExplanation:
    """What it takes to meet some targets, against the current budget.

    Raises `BudgetError` if no budget that can be planned with is large enough.
    """
    needed = minimum.for_unit_of(budget).rho
    what = "Meeting all targets" if not required_only else "Meeting the targets that must be met"
    enough = sufficient(needed, budget, what)
    room = 0.0 if minimum.covers_all_tables else ROOM
    binding_tables = minimum.binding_tables
    return BudgetExplanation(
        which="required" if required_only else "all",
        enough=enough,
        advised=enough if room == 0 else sufficient(needed * (1 + room), budget, what),
        is_within=needed <= float(budget.rho) * _ENOUGH,
        targets=len(minimum.tables),
        binding_tables=len(binding_tables),
        tables=tuple(titles(minimum.workload, binding_tables[:_NAMED])),
        saved=float(minimum.saving_if_relaxed(WIDER)[binding_tables[0]]),
        proven_gap=max(minimum.record_privacy_cost / minimum.lower_bound - 1, 0.0),
    )


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
    rows = minimum.binding_tables[:most]
    wanted = wanted_targets(minimum.workload, rows, request)
    saved = minimum.saving_if_relaxed(WIDER)[rows]
    needed = minimum.for_unit_of(budget).rho
    return pd.DataFrame(
        {
            "table": titles(minimum.workload, rows),
            "wanted": ["" if target is None else target.description for target in wanted],
            "required": np.where(minimum.workload.required[rows], "required", "in proportion"),
            "share": minimum.shares[rows],
            "saved": saved,
            "rho": needed * (1 - saved),
        }
    )


def describe(found: BudgetExplanation, *, compared: bool = True) -> str:
    """What the targets take and which of them bind, in a few sentences.

    compared: with the current budget
    """
    one = found.targets == 1
    which = {
        ("required", False): f"The {found.targets:,} targets that must be met take",
        ("required", True): "The target that must be met takes",
        ("all", False): f"The {found.targets:,} targets take",
        ("all", True): "The target takes",
    }[found.which, one]
    words = [f"{which} {found.enough.text}{', ' * compared}{found.enough.compared * compared}."]
    if found.proven_gap < 1e-4:
        words.append("No plan of this kind can do with noticeably less.")
    saved = f"{describe_share(found.saved)} of the budget"
    if one:
        words.append(f"Were it {100 * WIDER:g} % wider, that would save about {saved}.")
        return " ".join(words)
    listed = list_titles([(title,) for title in found.tables], _NAMED)
    if found.binding_tables == 1:
        words.append(
            f"One target is binding: {listed}; the other targets are met along the way. Were "
            f"its target {100 * WIDER:g} % wider, that would save about {saved}."
        )
    else:
        more = found.binding_tables - len(found.tables)
        rest = f" and {plural(more, 'other')}" if more > 0 else ""
        along = "; the other targets are met along the way"
        which = f"{found.binding_tables:,} of them"
        if found.binding_tables == found.targets:
            which, along = "Both targets" if found.binding_tables == 2 else "All targets", ""
        words.append(
            f"{which} are binding: {listed}{rest}{along}. Were the target of the first "
            f"{100 * WIDER:g} % wider, that would save about {saved}."
        )
    return " ".join(words)


def describe_advice(found: BudgetExplanation) -> str:
    """What budget to take: the smallest one, or a little more where tables are without a target."""
    if found.advised is found.enough:
        return ""
    share = rounded(100 * ROOM, 2)
    which = "a required target" if found.which == "required" else "a target"
    return (
        f"At that budget nothing is left for tables without {which}. With "
        f"{share} % more, {found.advised.text}, they get something."
    )
