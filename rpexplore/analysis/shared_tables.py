"""Scenarios over the tables that all of them have: which is of more use, and where."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from rpexplore.analysis.accuracy import describe_order
from rpexplore.analysis.budget_units import stated_delta, stated_text, stated_unit
from rpexplore.analysis.forecast import Forecast
from rpexplore.analysis.good_tables import people_by_table
from rpexplore.analysis.measures import STANDARD_ERROR, Accuracy, Measure
from rpexplore.analysis.ranges import Range
from rpexplore.analysis.targets_met import targets_frame
from rpexplore.common.text import describe_share, joined, plural, rounded
from rpexplore.planning.mechanism.variances import SAME, cells_differ
from rpexplore.planning.part_plan import Z_95
from rpexplore.planning.table_plan import TablePlan
from rpexplore.privacy.budget import Budget
from rpexplore.privacy.conversions import rho_text
from rpexplore.scenarios.scenario import RECORDS, Scenario
from rpexplore.scenarios.workload_changes import row_indices
from rpexplore.workload.table_text import title_of, titles
from rpexplore.workload.targets import MET_FACTOR

_LEAST_CHANGE = 0.0005  # less counts as none
_BEHIND = 2**31 - 1  # more than there are attributes


@dataclass(frozen=True, eq=False)
class Contender:
    """A scenario with its plan; forecast: of its tables, None where nothing is expected of them."""

    scenario: Scenario
    plan: TablePlan
    forecast: Forecast | None = None

    @cached_property
    def accuracy(self) -> Accuracy:
        return Accuracy.of_plan(self.scenario.name, self.plan)

    def people_in(self, tables: np.ndarray) -> Range | None:
        """Share of people in good cells, mean over these tables; None where it is not known."""
        return self.forecast and self.forecast.people_in(tables)

    def people_text(self, tables: np.ndarray) -> list[str]:
        """The same of each of these tables, with its range; "" where it is not known."""
        if self.forecast is None:
            return [""] * len(tables)
        return people_by_table(self.forecast, tables)["people"].tolist()


def common_word(nouns: Iterable[str]) -> str:
    """What all of some scenarios count, or "records" where they count different things."""
    different = set(nouns)
    return different.pop() if len(different) == 1 else RECORDS


def whom(contenders: Sequence[Contender]) -> str:
    """The word for those whom the tables of all count."""
    return common_word(contender.scenario.counted for contender in contenders)


def shared_rows(contenders: Sequence[Contender]) -> list[np.ndarray]:
    """Indices of the tables that all have, int64[n] for each contender, in one order."""
    first, *others = _tables(contenders)
    indices = np.array([np.arange(len(first)), *(row_indices(first, other) for other in others)])
    return list(indices[:, np.all(indices >= 0, axis=0)])


def _tables(contenders: Sequence[Contender]) -> list[np.ndarray]:
    """The tables of each as rows of ascending numbers, padded at the end with −1.

    The same number is the same attribute, by its name, in the same basis.
    """
    numbers: dict[object, int] = {}
    tables = []
    for contender in contenders:
        workload = contender.plan.workload
        names = workload.domain.names
        keys = [
            (names[attribute], None if basis.is_identity else basis)
            for attribute, basis in workload.attribute_bases
        ]
        # The last stands for the −1 of the padding, and sorts behind all others.
        number = [*(numbers.setdefault(key, len(numbers)) for key in keys), _BEHIND]
        rows = np.sort(np.array(number)[workload.attribute_basis_index], axis=1)
        tables.append(np.where(rows == _BEHIND, -1, rows))
    return tables


def outcomes(contenders: Sequence[Contender]) -> pd.DataFrame:
    """What each gives for the tables that all have; without rows where there are none.

    Columns: scenario, budget, people_low, people_median, people_high (share in good cells, NaN
    where not known),
    median_margin and largest_margin (95 %, of the median table and of the least accurate cell),
    least_accurate (the table that has it), targets, missed, shared (how many tables all have), own
    (how many no other has).
    """
    shared, own, rows = shared_rows(contenders), own_tables(contenders), []
    budgets = [contender.scenario.budget for contender in contenders]
    alike = len({(stated_unit(budget), stated_delta(budget)) for budget in budgets}) == 1
    describe = stated_text if alike else _in_rho
    for contender, tables, of_its_own in zip(contenders, shared, own, strict=True):
        if not len(tables):
            break
        plan, workload = contender.plan, contender.plan.workload
        largest, targets = plan.largest_standard_errors[tables], workload.targets[tables]
        rows.append(
            {
                "scenario": contender.scenario.name,
                "budget": describe(contender.scenario.budget),
                **_people(contender, tables),
                "median_margin": Z_95 * float(np.median(plan.standard_errors[tables])),
                "largest_margin": Z_95 * float(largest.max()),
                "least_accurate": title_of(workload, tables[np.argmax(largest)]),
                "targets": int(np.count_nonzero(~np.isnan(targets))),
                "missed": int(np.count_nonzero(largest > targets * MET_FACTOR)),
                "shared": len(tables),
                "own": len(of_its_own),
            }
        )
    return pd.DataFrame(rows)


def own_tables(contenders: Sequence[Contender]) -> list[np.ndarray]:
    """Indices of the tables that no other has, int64[n] for each contender."""
    tables, own = _tables(contenders), []
    for index, rows in enumerate(tables):
        others = (other for number, other in enumerate(tables) if number != index)
        is_own = np.ones(len(rows), dtype=bool)
        for other in others:
            is_own &= row_indices(rows, other) < 0
        own.append(np.flatnonzero(is_own))
    return own


def list_own_tables(contenders: Sequence[Contender]) -> pd.DataFrame:
    """The tables that only one has: scenario, table, order, cells, margin_95, people (in good
    cells with its range, as text, where it is known)."""
    parts = []
    for contender, tables in zip(contenders, own_tables(contenders), strict=True):
        workload = contender.plan.workload
        columns = {
            "scenario": contender.scenario.name,
            "table": titles(workload, tables),
            "order": workload.orders[tables],
            "cells": workload.cells[tables],
            "margin_95": Z_95 * contender.plan.standard_errors[tables],
        }
        if contender.forecast is not None:
            columns["people"] = contender.people_text(tables)
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)


def describe_outcomes(contenders: Sequence[Contender]) -> list[str]:
    """Which scenario does best, in a sentence each for cells, accuracy and targets."""
    frame = outcomes(contenders)
    if frame.empty:
        return ["These scenarios have no table in common."]
    sentences = [_describe_shares(frame, contenders), _describe_accuracy(contenders)]
    if sum(frame["targets"].tolist()):
        parts = []
        for row in frame.to_dict("records"):
            if not row["targets"]:
                what = "has none"
            elif row["missed"]:
                what = f"misses {row['missed']:,} of {row['targets']:,}"
            else:
                what = f"meets all {row['targets']:,}" if row["targets"] > 1 else "meets the one"
            parts.append(f"“{row['scenario']}” {what}")
        sentences.append(f"Targets: {'; '.join(parts)}.")
    return [sentence for sentence in sentences if sentence]


def table_differences(
    left: Contender, right: Contender, measure: Measure = STANDARD_ERROR
) -> pd.DataFrame:
    """Tables that both have, by attribute names and bases, the one that changes most first.

    Columns: table, order, left, right (in the measure), change (right over left, minus 1). Where
    the cells of a table differ these are root mean squares, and left_largest and right_largest are
    of the least accurate cells. left_people and right_people are those in good cells, where known;
    left_target and right_target say what became of targets ("short by 12"), where there are any.
    Tables without a value in the measure are left out.
    """
    lefts, rights = shared_rows([left, right])
    before, after = (each.accuracy.in_measure(measure) for each in (left, right))
    ratio = after.values[rights] / before.values[lefts]
    order = np.argsort(-np.abs(np.log(ratio)), kind="stable")
    order = order[~np.isnan(ratio[order])]
    lefts, rights = lefts[order], rights[order]
    columns = {
        "table": titles(left.plan.workload, lefts),
        "order": left.plan.workload.orders[lefts],
        "left": before.values[lefts],
        "right": after.values[rights],
    }
    plans = (left.plan, right.plan)
    if any(cells_differ(plan.table_variances) for plan in plans):
        for side, plan, tables in zip(("left", "right"), plans, (lefts, rights), strict=True):
            errors = plan.largest_standard_errors[tables]
            columns[f"{side}_largest"] = errors**measure.power
    columns["change"] = ratio[order] - 1
    for side, contender, tables in (("left", left, lefts), ("right", right, rights)):
        if contender.forecast is not None:
            columns[f"{side}_people"] = contender.people_text(tables)
        plan, request = contender.plan, contender.scenario.request
        if not np.all(np.isnan(plan.workload.targets[tables])):
            reached = targets_frame(plan.workload, tables, plan, request)["outcome"]
            columns[f"{side}_target"] = reached.to_numpy()
    return pd.DataFrame(columns)


def describe_differences(
    frame: pd.DataFrame, left: str, right: str, measure: Measure = STANDARD_ERROR
) -> str:
    """What `table_differences` shows, in one or two sentences."""
    if frame.empty:
        return f"“{left}” and “{right}” have no table in common."
    ratios = frame["change"].to_numpy() + 1
    common = f"{plural(len(frame), 'table')} in common"
    worse, better = int(np.sum(ratios > SAME)), int(np.sum(ratios < 1 / SAME))
    if worse == better == 0:
        return f"“{left}” and “{right}” have {common}, and all are equally accurate in both."
    first = frame.iloc[0]
    noun = measure.noun
    if "left_largest" in frame and measure == STANDARD_ERROR:
        noun = "root mean square error"
    return (
        f"“{left}” and “{right}” have {common}. In “{right}” {plural(worse, 'table')} "
        f"{'has' if worse == 1 else 'have'} a larger {noun} and {better:,} a smaller one "
        f"(median {_percent(float(np.median(ratios)) - 1)}). The largest change is that of "
        f"{first['table']}: from {measure.text(first['left'])} to {measure.text(first['right'])}."
    )


def _in_rho(budget: Budget) -> str:
    """A budget in the unit in which all can be compared."""
    return rho_text(budget.rho, 4, "nearest")


def _people(contender: Contender, tables: np.ndarray) -> dict[str, float]:
    people = contender.people_in(tables) or Range(np.nan, np.nan, np.nan)
    return {f"people_{end}": value for end, value in people._asdict().items()}


def _describe_shares(frame: pd.DataFrame, contenders: Sequence[Contender]) -> str:
    """Under which scenario most people are in good cells; "" where that is not known of two."""
    by = "people_median"
    known = frame.dropna(subset=by).sort_values(by, ascending=False, kind="stable")
    if len(known) < 2:
        return ""
    ends = zip(*(known[f"people_{end}"].tolist() for end in Range._fields), strict=True)
    texts = [Range(*row).text(describe_share) for row in ends]
    names = [f"“{name}”" for name in known["scenario"]]
    if len(set(texts)) == 1:
        text = f"In all of them {texts[0]} of {whom(contenders)} are in good cells."
    else:
        best = [name for name, text in zip(names, texts, strict=True) if text == texts[0]]
        others = [
            f"{text} in {name}" for name, text in zip(names, texts, strict=True) if text != texts[0]
        ]
        text = (
            f"Most {whom(contenders)} are in good cells under {joined(best)}: {texts[0]}, against "
            f"{joined(others)}."
        )
    limits = {contender.scenario.cv_limit for contender in contenders}
    return f"{text} Each has its own limit of the CV." if len(limits) > 1 else text


def _describe_accuracy(contenders: Sequence[Contender]) -> str:
    """Which scenario has the smallest median error at which numbers of attributes."""
    rows = shared_rows(contenders)
    orders = contenders[0].plan.workload.orders[rows[0]]
    where: dict[tuple[str, ...], list[str]] = {}
    for order in np.unique(orders).tolist():
        medians = [
            float(np.median(contender.plan.standard_errors[tables[orders == order]]))
            for contender, tables in zip(contenders, rows, strict=True)
        ]
        best = tuple(
            contender.scenario.name
            for contender, median in zip(contenders, medians, strict=True)
            if median <= min(medians) * SAME
        )
        where.setdefault(best, []).append(describe_order(order))
    everybody = tuple(contender.scenario.name for contender in contenders)
    if list(where) == [everybody]:
        return "The median accuracy is the same in all of them."
    if len(where) == 1:
        (best,) = where
        are = "is" if len(best) == 1 else "are"
        every = " at every number of attributes" if len(set(orders.tolist())) > 1 else ""
        return f"{_quoted(best)} {are} the most accurate{every} (median)."
    parts = [
        f"{'all alike' if best == everybody else _quoted(best)} for {joined(tables)}"
        for best, tables in where.items()
    ]
    return f"The most accurate (median): {'; '.join(parts)}."


def _quoted(names: Sequence[str]) -> str:
    return joined([f"“{name}”" for name in names])


def _percent(change: float) -> str:
    """ "+12 %", "−3.4 %", "0 %"."""
    text = rounded(100 * change, 2) if abs(change) > _LEAST_CHANGE else "0"
    return f"{'' if change <= 0 else '+'}{text} %".replace("-", "−")
