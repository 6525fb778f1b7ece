"""Targets against what a plan gives, and how many are met at which budget."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from rpexplore.analysis import accuracy
from rpexplore.analysis.budget_units import stated_delta
from rpexplore.analysis.distributions import steps
from rpexplore.analysis.sufficient_budgets import (
    TARGET_LOSS,
    SufficientBudget,
    needed_rho,
    smallest_budget,
)
from rpexplore.common.text import rounded
from rpexplore.planning.minimum_budget import rho_of_unit
from rpexplore.planning.part_plan import EXTREMES, for_reading
from rpexplore.planning.planner import Optimum
from rpexplore.planning.table_plan import TablePlan
from rpexplore.privacy.budget import Budget
from rpexplore.privacy.discrete_noise import proven_epsilon
from rpexplore.scenarios.workload_request import WorkloadRequest
from rpexplore.workload.table_text import titles
from rpexplore.workload.targets import CV, MARGIN, MET_FACTOR, STANDARD_ERROR, Target
from rpexplore.workload.workload import Workload

# ---- Targets against what a plan gives: met or short by how much, in the unit that was typed.


_LISTED = ["item", "cells", "standard_error", *EXTREMES, "margin_95", "weight"]


def wanted_targets(
    workload: Workload, rows: np.ndarray, request: WorkloadRequest | None = None
) -> list[Target]:
    """The targets of these tables, which all have one.

    As the request has them, or as standard errors where it is not what the workload comes from.
    """
    errors, required = workload.targets[rows].tolist(), workload.required[rows].tolist()
    targets = [
        Target(error, required=is_required)
        for error, is_required in zip(errors, required, strict=True)
    ]
    if request is None:
        return targets
    typed, which = request.targets(workload)
    for row, index in enumerate(which[rows].tolist()):
        as_typed = typed[index] if index >= 0 else targets[row]
        if (as_typed.standard_error, as_typed.required) == (errors[row], required[row]):
            targets[row] = as_typed
    return targets


def describe_targets_met(met: int, targets: int, noun: str = "target") -> str:
    """ "The one target is met.", "Both targets are met.", "1 of 3 targets is met."."""
    if targets == 1:
        return f"The one {noun} is {'' if met else 'not '}met."
    if met == targets:
        return f"{'Both' if targets == 2 else f'All {targets:,}'} {noun}s are met."
    return f"{met:,} of {targets:,} {noun}s {'is' if met == 1 else 'are'} met."


def describe_now(target: Target, error: float) -> str:
    """A standard error in a target's unit: "±38", "3.9 %", "σ = 18".

    Rounded, but never across the target: what meets it does not read as if it did not.
    """
    now = target.in_unit(error)
    if not is_met(target, error):
        return _with_unit(target, rounded(now, 3, "up"))
    text = rounded(now, 3)
    beyond = Fraction(text.replace(",", "")) > Fraction(target.value)
    return _with_unit(target, target.number if beyond else text)


def describe_outcome(target: Target, error: float) -> str:
    """ "met: ±38", "short by 12", "short by 1.2 points".

    error: the standard error of the table's least accurate cell
    """
    if is_met(target, error):
        return f"met: {describe_now(target, error)}"
    short = rounded(target.in_unit(error - target.standard_error), 2)
    if target.unit == CV:
        return f"short by {short} {'point' if short == '1' else 'points'}"
    return f"short by {short}"


def is_met(target: Target, error: float) -> bool:
    """Whether a standard error meets a target, up to the rounding of noise scales."""
    return error <= target.standard_error * MET_FACTOR


def out_of_reach(workload: Workload, rows: np.ndarray, budget: Budget) -> np.ndarray:
    """Whether tables would miss their targets even with the whole budget for one alone.

    bool[n_rows]. Known for tables of single values; False for others, and without a target.
    """
    beyond = workload.targets[rows] * MET_FACTOR < accuracy.standard_error_alone(budget)
    beyond[beyond] = [
        all(workload.basis_of(row, index).is_identity for index in workload.attribute_indices(row))
        for row in rows[beyond].tolist()
    ]
    return beyond


def of_targets(
    plan: TablePlan, request: WorkloadRequest | None = None, most: int | None = None
) -> pd.DataFrame:
    """The tables with a target, the furthest off first; at most `most`.

    Columns, indexed by the table's index in the workload: table, wanted (as typed), required
    ("required" or "in proportion"), now (of the least accurate cell, in the unit of the target),
    outcome ("met: ±38", "short by 12"), ratio (of the present standard error to the wanted one).

    request: what the plan was made from; without it targets are standard errors
    """
    ratios = plan.largest_standard_errors / plan.workload.targets
    rows = np.flatnonzero(~np.isnan(ratios))
    rows = rows[np.argsort(-ratios[rows], kind="stable")][:most]
    frame = targets_frame(plan.workload, rows, plan, request).assign(ratio=ratios[rows])
    frame.insert(0, "table", titles(plan.workload, rows))
    return frame


def of_tables(
    plan: TablePlan,
    containing: Sequence[str] = (),
    request: WorkloadRequest | None = None,
) -> pd.DataFrame:
    """The tables of `accuracy.of_tables`, with targets as they were typed.

    item, order, cells, errors and weight of the accuracy frame; wanted, required and outcome as
    `of_targets` has them, "" where there is no target.
    """
    frame = for_reading(accuracy.of_tables(plan, containing)).filter(_LISTED)
    rows = frame.index.to_numpy()
    frame.insert(1, "order", plan.workload.orders[rows])
    texts = targets_frame(plan.workload, rows, plan, request).drop(columns=["now"])
    return frame.join(texts).reset_index(drop=True)


def targets_frame(
    workload: Workload,
    rows: np.ndarray,
    plan: TablePlan | None,
    request: WorkloadRequest | None = None,
) -> pd.DataFrame:
    """Columns wanted, required, now and outcome of `of_targets` for these tables, indexed by them.

    "" where there is no target; now and outcome also without a plan.
    """
    texts = np.full((len(rows), 4), "", dtype=object)
    having = np.flatnonzero(~np.isnan(workload.targets[rows]))
    targets = wanted_targets(workload, rows[having], request)
    errors = [None] * len(having)
    if plan is not None:
        errors = plan.largest_standard_errors[rows[having]].tolist()
    texts_of = lru_cache(maxsize=None)(_target_texts)  # many have the same as others
    for row, target, error in zip(having.tolist(), targets, errors, strict=True):
        texts[row] = texts_of(target, error)
    columns = ["wanted", "required", "now", "outcome"]
    return pd.DataFrame(texts, columns=columns, index=pd.Index(rows, name="table_index"))


def _target_texts(target: Target, error: float | None) -> tuple[str, str, str, str]:
    required = "required" if target.required else "in proportion"
    # A bare number could be taken for a margin of error.
    wanted = target.description if target.unit == STANDARD_ERROR else target.text
    if error is None:
        return wanted, required, "", ""
    return wanted, required, describe_now(target, error), describe_outcome(target, error)


@dataclass(frozen=True)
class TargetCounts:
    """How many targets a plan meets, and how many of those that are required."""

    targets: int
    met: int
    required: int
    required_met: int

    @property
    def text(self) -> str:
        """ "18 of 20 targets are met; required: 3 of 4.", "The one required target is met."."""
        if self.required == self.targets:
            text = describe_targets_met(self.met, self.targets, "required target")
        else:
            text = describe_targets_met(self.met, self.targets)
            if not self.required:
                return text
            required = f"{self.required_met:,} of {self.required:,}"
            text = f"{text.removesuffix('.')}; required: {required}."
        if self.required_met == self.required:
            return text
        return f"{text} This objective does not put required targets first."


def target_counts(part: Any) -> TargetCounts:
    """How many targets a part of a plan meets."""
    if not part.has_targets:  # as in most plans, whose pages ask with every step of the budget
        return TargetCounts(0, 0, 0, 0)
    columns = part.accuracy_columns()
    given = ~np.isnan(columns["target"])
    met, required = (
        np.equal(np.asarray(columns[name], dtype=object), True) for name in ("met", "required")
    )
    masks = (given, met, required, met & required)
    return TargetCounts(*(int(np.count_nonzero(mask)) for mask in masks))


def _with_unit(target: Target, number: str) -> str:
    if target.unit == MARGIN:
        return f"±{number}"
    return f"{number} %" if target.unit == CV else f"σ = {number}"


# ---- How many targets are met against the budget, and what it takes to meet them all.


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


def met_by_budget(
    optima: Mapping[str, Optimum], budget: Budget, *, by_rho: bool = False
) -> pd.DataFrame:
    """Targets met at rising budgets, by the plan for each objective.

    Columns: objective, rho (of the privacy unit), epsilon (at the stated δ, rounded up), met,
    share. A row is where further targets come to be met; the first is at 0 met.
    by_rho: as of `smallest_budget`
    """
    delta, parts = stated_delta(budget), []
    for objective, optimum in optima.items():
        needs = needed_rho(optimum, budget)
        met, rhos = steps(needs[~np.isnan(needs)])
        noise = None if by_rho else optimum.noise(budget)
        columns = {
            "objective": objective,
            "rho": rhos,
            "epsilon": [proven_epsilon(rho, delta, noise) for rho in rhos.tolist()],
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


def outlook(
    optimum: Optimum, by_shortfall: Optimum | None, budget: Budget, *, by_rho: bool = False
) -> Outlook:
    """What the targets take. by_shortfall: the optimum of `TARGET_LOSS`, unless `optimum` is it.

    by_rho: as of `smallest_budget`

    Raises `WorkloadError` if there are no targets, `BudgetError` if no budget is large enough.
    """
    enough = smallest_budget(optimum, budget, by_rho=by_rho)
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
        by_shortfall=(
            None if by_shortfall is None else smallest_budget(by_shortfall, budget, by_rho=by_rho)
        ),
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
