"""How many targets are met against the budget, and what it takes to meet them all."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rpexplore.analysis.accuracy import MET, describe_targets_met, titles
from rpexplore.analysis.budget_units import stated_delta
from rpexplore.analysis.sufficient_budgets import (
    SufficientBudget,
    needed_rho,
    rho_below_no_plan_can,
    smallest_budget,
)
from rpexplore.common.formatting import rounded
from rpexplore.planning.losses.base import MaxVariance
from rpexplore.planning.optimum import Optimum
from rpexplore.privacy import conversions as privacy
from rpexplore.privacy.budget import Budget

MOST_STEPS = 200  # of a curve; those that are left out lie between ones that are exact
PRESENT, AIMED = "present aim", "aimed at the targets"
AIM = MaxVariance(relative_to="target")
_FIRST_MISSED = "The first to be missed below that is"


@dataclass(frozen=True)
class Outlook:
    """The targets of a workload at the present budget, and what meeting all of them takes.

    last, second  the tables that need the largest budgets, "" where there are not so many
    last_error    standard error of the last one now (of its least accurate cell); last_target: the
                  wanted one
    enough        the smallest budget at which the plan with the present aim meets all
    aimed         the same of a plan aimed at the targets; None if that is the present aim, or not
                  every table has a target
    is_least      whether no plan can do with less than the smaller of the two
    out_of_reach  whether no plan at all can meet them all at the present budget
    """

    targets: int
    met: int
    last: str
    last_error: float
    last_target: float
    second: str
    enough: SufficientBudget
    aimed: SufficientBudget | None
    is_least: bool
    out_of_reach: bool


def has_targets(optimum: Optimum) -> tuple[bool, bool]:
    """Whether any table has a target, and whether all have."""
    missing = np.isnan(optimum.workload.targets)
    return not np.all(missing), not np.any(missing)


def met_by_budget(aims: Mapping[str, Optimum], budget: Budget) -> pd.DataFrame:
    """Targets met at rising budgets, by the plan for each aim.

    Columns: aim, rho (of the privacy unit), epsilon (at the stated δ, rounded up), met, share. A
    row is where further targets come to be met; the first is at 0 met.
    """
    delta, parts = stated_delta(budget), []
    for aim, optimum in aims.items():
        needs = needed_rho(optimum, budget)
        needs = np.sort(needs[~np.isnan(needs)])
        steps = min(len(needs), MOST_STEPS)
        met = -(-np.arange(steps + 1) * len(needs) // steps)
        rho = needs[np.maximum(met, 1) - 1]
        epsilon = [privacy.epsilon_from_rho(each, delta) for each in rho.tolist()]
        share = met / len(needs)
        parts.append(
            pd.DataFrame({"aim": aim, "rho": rho, "epsilon": epsilon, "met": met, "share": share})
        )
    return pd.concat(parts, ignore_index=True)


def last_to_be_met(optimum: Optimum, budget: Budget) -> pd.DataFrame:
    """The tables with a target, the one that needs the largest budget first.

    Columns: table, target, standard_error (now, of the least accurate cell), met ("yes" or "no"),
    needed_rho, times (needed over present).
    """
    needs = needed_rho(optimum, budget)
    places = np.flatnonzero(~np.isnan(needs))
    places = places[np.argsort(-needs[places], kind="stable")]
    errors = optimum.standard_errors(budget, "worst")[places]
    targets = optimum.workload.targets[places]
    return pd.DataFrame(
        {
            "table": titles(optimum.workload, places),
            "target": targets,
            "standard_error": errors,
            "met": np.where(errors <= targets * MET, "yes", "no"),
            "needed_rho": needs[places],
            "times": needs[places] / float(budget.rho),
        }
    )


def outlook(optimum: Optimum, aimed: Optimum | None, budget: Budget) -> Outlook:
    """What the targets take. aimed: the optimum of `AIM`, unless `optimum` is that.

    Raises `WorkloadError` if there are no targets, `BudgetError` if no budget is large enough.
    """
    enough = smallest_budget(optimum, budget)
    needs = needed_rho(optimum, budget)
    places = np.argsort(-np.nan_to_num(needs, nan=-1.0), kind="stable")[:2]
    names = [*titles(optimum.workload, places[~np.isnan(needs[places])]), ""]
    errors, targets = optimum.standard_errors(budget, "worst"), optimum.workload.targets
    best = optimum if optimum.loss == AIM else aimed
    if not optimum.workload.is_marginals:
        best = None  # its bound is that of what it measures, and other measuring may do with less
    bound = 0.0 if best is None else rho_below_no_plan_can(best, budget)
    return Outlook(
        targets=int(np.count_nonzero(~np.isnan(targets))),
        met=int(np.count_nonzero(errors <= targets * MET)),
        last=names[0],
        last_error=float(errors[places[0]]),
        last_target=float(targets[places[0]]),
        second=names[1],
        enough=enough,
        aimed=None if aimed is None else smallest_budget(aimed, budget),
        is_least=best is not None,
        out_of_reach=bound > float(budget.rho) * MET**2,
    )


def describe_outlook(found: Outlook, record_noun: str) -> str:
    """Which targets are met, which is the last, and what it takes to meet them all."""
    last = (
        f"{found.last} (wanted {rounded(found.last_target, 3)} {record_noun}, now "
        f"{rounded(found.last_error, 3)})"
    )
    which, is_one = describe_targets_met(found.met, found.targets), found.targets == 1
    if found.met == found.targets:
        first = "It is that of" if is_one else _FIRST_MISSED
        least = f"{found.enough.text}, {found.enough.compared}, is the least that does."
        return f"{which[:-1]}; {least} {first} {last}."
    second = f", after {found.second}" if found.second else ""
    them, final = ("it", "It is that of") if is_one else ("all", "The last to be met is")
    return (
        f"{which[:-1]} at the present budget. The plan with the present aim meets {them} from "
        f"{found.enough.text} on, {found.enough.compared}. {final} {last}{second}."
    )


def describe_aimed(found: Outlook) -> str:
    """What a plan aimed at the targets would take, and whether any plan can do with less."""
    words, is_one = [], found.targets == 1
    if found.aimed is not None:
        saved = 1 - found.aimed.needed / found.enough.needed
        less = "no less" if saved < 0.005 else f"{rounded(100 * saved, 2)} % less"
        plan = "at the target meets it" if is_one else "at the targets meets all"
        words.append(f"A plan aimed {plan} from {found.aimed.text} on, {less}.")
    if found.is_least:
        words.append("No plan of this kind can do it with a noticeably smaller budget.")
    if found.out_of_reach:
        which = "the target is" if is_one else "some targets are"
        words.append(f"So at the present one, whatever the aim, {which} out of reach.")
    return " ".join(words)
