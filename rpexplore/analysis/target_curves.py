"""How many targets are met against the budget, and what it takes to meet them all."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rpexplore.analysis.budget_units import stated_delta
from rpexplore.analysis.distributions import steps
from rpexplore.analysis.sufficient_budgets import (
    TARGET_LOSS,
    SufficientBudget,
    needed_rho,
    smallest_budget,
)
from rpexplore.analysis.targets_met import describe_targets_met
from rpexplore.common.formatting import rounded
from rpexplore.planning.minimum_budget import rho_of_unit
from rpexplore.planning.optimum import Optimum
from rpexplore.privacy import conversions as privacy
from rpexplore.privacy.budget import Budget
from rpexplore.workload.table_text import titles
from rpexplore.workload.targets import MET_FACTOR

CURRENT, SHORTFALL = "current objective", "largest shortfall"


@dataclass(frozen=True)
class Outlook:
    """The targets of a workload at the current budget, and what meeting all of them takes.

    last          the one or two tables that need the largest budgets, of `last_to_be_met`
    enough        the smallest budget at which the plan with the current objective meets all
    by_shortfall  the same of a plan with `TARGET_LOSS`; None if that is the current objective, or
                  not every table has a target
    is_least      whether no plan can do with less than the smaller of the two
    out_of_reach  whether no plan at all can meet them all at the current budget
    """

    targets: int
    met: int
    last: list[dict]
    enough: SufficientBudget
    by_shortfall: SufficientBudget | None
    is_least: bool
    out_of_reach: bool


def has_targets(optimum: Optimum) -> tuple[bool, bool]:
    """Whether any table has a target, and whether all have."""
    missing = np.isnan(optimum.workload.targets)
    return not np.all(missing), not np.any(missing)


def met_by_budget(optima: Mapping[str, Optimum], budget: Budget) -> pd.DataFrame:
    """Targets met at rising budgets, by the plan for each objective.

    Columns: objective, rho (of the privacy unit), epsilon (at the stated δ, rounded up), met,
    share. A row is where further targets come to be met; the first is at 0 met.
    """
    delta, parts = stated_delta(budget), []
    for objective, optimum in optima.items():
        needs = needed_rho(optimum, budget)
        met, rhos = steps(needs[~np.isnan(needs)])
        columns = {
            "objective": objective,
            "rho": rhos,
            "epsilon": [privacy.epsilon_from_rho(rho, delta) for rho in rhos.tolist()],
            "met": met,
            "share": met / met[-1],
        }
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)


def last_to_be_met(
    optimum: Optimum, budget: Budget, most: int | None = None, power: int = 1
) -> pd.DataFrame:
    """The tables with a target, the one that needs the largest budget first.

    Columns: table, target, present (of the least accurate cell), met ("yes" or "no"), needed_rho,
    times (needed over current). power: 2 for variances instead of standard errors
    """
    needs = needed_rho(optimum, budget)
    tables = np.flatnonzero(~np.isnan(needs))
    tables = tables[np.argsort(-needs[tables], kind="stable")][:most]
    errors = optimum.standard_errors(budget, "largest")[tables]
    targets = optimum.workload.targets[tables]
    return pd.DataFrame(
        {
            "table": titles(optimum.workload, tables),
            "target": targets**power,
            "present": errors**power,
            "met": np.where(errors <= targets * MET_FACTOR, "yes", "no"),
            "needed_rho": needs[tables],
            "times": needs[tables] / float(budget.rho),
        }
    )


def outlook(optimum: Optimum, by_shortfall: Optimum | None, budget: Budget) -> Outlook:
    """What the targets take. by_shortfall: the optimum of `TARGET_LOSS`, unless `optimum` is it.

    Raises `WorkloadError` if there are no targets, `BudgetError` if no budget is large enough.
    """
    enough = smallest_budget(optimum, budget)
    errors, targets = optimum.standard_errors(budget, "largest"), optimum.workload.targets
    best = optimum if optimum.loss == TARGET_LOSS else by_shortfall
    if not optimum.workload.is_marginals:
        best = None  # its bound is that of what it measures, and other measuring may do with less
    bound = 0.0 if best is None else best.solution.lower_bound  # of the cost of one record
    least_rho = rho_of_unit(bound, budget.max_records_per_person)
    return Outlook(
        targets=int(np.count_nonzero(~np.isnan(targets))),
        met=int(np.count_nonzero(errors <= targets * MET_FACTOR)),
        last=last_to_be_met(optimum, budget, 2).to_dict("records"),
        enough=enough,
        by_shortfall=None if by_shortfall is None else smallest_budget(by_shortfall, budget),
        is_least=best is not None,
        out_of_reach=least_rho > float(budget.rho) * MET_FACTOR**2,
    )


def describe_outlook(outlook: Outlook, record_noun: str) -> str:
    """Which targets are met, which is the last, and what it takes to meet them all."""
    met = describe_targets_met(outlook.met, outlook.targets).removesuffix(".")
    is_one, (last, *second) = outlook.targets == 1, outlook.last
    last_text = (
        f"{last['table']} (target {rounded(last['target'], 3)} {record_noun}, now "
        f"{rounded(last['present'], 3)})"
    )
    if outlook.met == outlook.targets:
        which = "It is the target of" if is_one else "Below that the first target missed is that of"
        return (
            f"{met}; the smallest budget that does is {outlook.enough.text}, "
            f"{outlook.enough.compared}. {which} {last_text}."
        )
    which = "It is the target of" if is_one else "The last target met is that of"
    after = f", after {second[0]['table']}" if second else ""
    return (
        f"{met} at the current budget. The current objective meets {'it' if is_one else 'all'} "
        f"from {outlook.enough.text} on, {outlook.enough.compared}. {which} {last_text}{after}."
    )


def describe_by_shortfall(outlook: Outlook) -> str:
    """What minimising the largest shortfall would take, and whether any plan can do with less."""
    sentences, is_one = [], outlook.targets == 1
    if outlook.by_shortfall is not None:
        saved = 1 - outlook.by_shortfall.needed / outlook.enough.needed
        less = "no less" if saved < 0.005 else f"{rounded(100 * saved, 2)} % less"
        sentences.append(
            f"The plan with the smallest shortfall meets {'it' if is_one else 'all'} from "
            f"{outlook.by_shortfall.text} on, {less}."
        )
    if outlook.is_least:
        sentences.append("No plan of this kind can do it with a noticeably smaller budget.")
    if outlook.out_of_reach:
        which = "the target is" if is_one else "some targets are"
        sentences.append(f"At the current budget {which} out of reach, whatever the objective.")
    return " ".join(sentences)
