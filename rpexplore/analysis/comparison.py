"""Scenarios side by side: what was asked for, what comes of it, and how single tables differ."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from rpexplore.analysis.budgets import DELTAS, in_unit, stated_delta
from rpexplore.analysis.standard_errors import headline
from rpexplore.losses import MaxVariance, SumOfVariances
from rpexplore.plan import Plan
from rpexplore.scenario import Scenario
from rpexplore.table_lists import title
from rpexplore.words import count_in_words, plural, rounded

SAME = 0.005  # a change of a standard error, relative, that nobody would notice
AIMS = {
    "equal": "small errors on average, every table alike",
    "cells": "small errors on average, every cell alike",
    "sqrt": "small errors on average, by the square root of the cells",
    "importance": "a small largest error",
    "target": "targets met as well as can be",
}


def inputs(scenarios: Sequence[Scenario]) -> pd.DataFrame:
    """What the scenarios ask for: one row an input, one column a scenario, all in words.

    Columns: input, one for each scenario's name, and differs (whether they are not all the same).
    """
    rows = {
        "Attributes": lambda each: plural(len(each.domain), "attribute"),
        "Values in all": lambda each: f"{sum(each.domain.sizes.tolist()):,}",
        "Tables asked for": lambda each: each.request.words,
        "Tables": lambda each: f"{len(each.workload):,}",
        "Importance": _importance_in_words,
        "Targets": _targets_in_words,
        "Aim": _aim_in_words,
        "Budget": lambda each: f"ρ = {in_unit(each.budget, 'rho')}",
        "Protects": lambda each: each.budget.unit,
    }
    return _side_by_side(
        "input",
        {name: [tell(each) for each in scenarios] for name, tell in rows.items()},
        scenarios,
    )


def outcomes(scenarios: Sequence[Scenario], plans: Sequence[Plan]) -> pd.DataFrame:
    """What comes of the scenarios: one row a figure, one column a scenario, all in words.

    Columns: outcome, one for each scenario's name, and differs (to the digits shown).
    """
    heads = [headline(plan) for plan in plans]
    pairs = list(zip(scenarios, plans, heads, strict=True))
    rows = {
        "A cell of a typical table, 95 % of the time": [
            f"±{rounded(head.median_margin, 3)} {each.counted}" for each, _, head in pairs
        ],
        "A cell of the worst table, 95 % of the time": [
            f"±{rounded(head.worst_margin, 3)} {each.counted}" for each, _, head in pairs
        ],
        "Worst table": [head.worst_table for head in heads],
        "Worst divided by best": [f"{rounded(_spread(plan), 3)} times" for plan in plans],
        "Targets met": [
            f"{head.targets_met:,} of {head.targets:,}" if head.targets else "none set"
            for head in heads
        ],
        "Cells in all tables": [
            count_in_words(sum(plan.workload.exact_cells.tolist())) for plan in plans
        ],
        "Privacy, ρ": [rounded(plan.rho, 4, "up") for plan in plans],
        **{
            f"Privacy, ε at δ = {delta}": [rounded(plan.epsilon(delta), 3, "up") for plan in plans]
            for delta in dict.fromkeys([*(stated_delta(plan.budget) for plan in plans), *DELTAS])
        },
    }
    return _side_by_side("outcome", rows, scenarios)


def table_differences(left: Plan, right: Plan) -> pd.DataFrame:
    """Tables that both plans have (by attribute names), the one that changes most first.

    Columns: table, order, left, right (standard errors), change (right over left, minus 1).
    """
    at_right = {frozenset(table): place for place, table in enumerate(right.workload.tables)}
    pairs = [
        (place, at_right[frozenset(table)])
        for place, table in enumerate(left.workload.tables)
        if frozenset(table) in at_right
    ]
    lefts, rights = np.array(pairs, dtype=np.int64).reshape(len(pairs), 2).T
    before, after = left.standard_errors[lefts], right.standard_errors[rights]
    ratio = after / before
    order = np.argsort(-np.abs(np.log(ratio)), kind="stable")
    names = left.workload.tables
    return pd.DataFrame(
        {
            "table": [title(names[place]) for place in lefts[order].tolist()],
            "order": left.workload.orders[lefts[order]],
            "left": before[order],
            "right": after[order],
            "change": ratio[order] - 1,
        }
    )


def differences_in_words(frame: pd.DataFrame, left: str, right: str) -> str:
    """What `table_differences` shows, in one or two sentences."""
    if frame.empty:
        return f"“{left}” and “{right}” have no table in common."
    changes = frame["change"].to_numpy()
    common = f"{plural(len(frame), 'table')} in common"
    if float(np.max(np.abs(changes))) < SAME:
        return f"“{left}” and “{right}” have {common}, and all are equally accurate in both."
    worse, better = int(np.sum(changes > SAME)), int(np.sum(changes < -SAME))
    first = frame.iloc[0]
    return (
        f"“{left}” and “{right}” have {common}. In “{right}” {worse:,} of them "
        f"{'has' if worse == 1 else 'have'} a larger standard error and {better:,} a smaller one; "
        f"the median changes by {_percent(float(np.median(changes)))}. It changes most for "
        f"{first['table']}: from {rounded(first['left'], 3)} to {rounded(first['right'], 3)}."
    )


def _side_by_side(
    heading: str, rows: dict[str, list[str]], scenarios: Sequence[Scenario]
) -> pd.DataFrame:
    """Rows of words as a frame, with a last column that tells where the scenarios differ."""
    columns = [each.name for each in scenarios]
    return pd.DataFrame(
        {
            heading: list(rows),
            **{
                name: [words[place] for words in rows.values()]
                for place, name in enumerate(columns)
            },
            "differs": [len(set(words)) > 1 for words in rows.values()],
        }
    )


def _importance_in_words(scenario: Scenario) -> str:
    weights = scenario.workload.weights
    others = int(np.count_nonzero(weights != 1))
    if not others:
        return "all alike"
    low, high = float(weights.min()), float(weights.max())
    return f"{plural(others, 'table')} other than 1 ({rounded(low, 3)} to {rounded(high, 3)})"


def _targets_in_words(scenario: Scenario) -> str:
    targets = scenario.workload.targets
    wanted = targets[~np.isnan(targets)]
    if not len(wanted):
        return "none"
    low, high = float(wanted.min()), float(wanted.max())
    span = rounded(low, 3) if low == high else f"{rounded(low, 3)} to {rounded(high, 3)}"
    return f"{plural(len(wanted), 'table')}, σ = {span}"


def _aim_in_words(scenario: Scenario) -> str:
    loss = scenario.loss
    assert isinstance(loss, SumOfVariances | MaxVariance)
    return AIMS[loss.weighting if isinstance(loss, SumOfVariances) else loss.relative_to]


def _spread(plan: Plan) -> float:
    """Largest standard error over the smallest."""
    return float(np.max(plan.standard_errors) / np.min(plan.standard_errors))


def _percent(change: float) -> str:
    """ "+12 %", "−3.4 %", "0 %"."""
    size = rounded(abs(100 * change), 2)
    return f"{'−' if change < 0 else '+' if size != '0' else ''}{size} %"


def in_a_line(scenario: Scenario) -> str:
    """What a scenario asks for, in a line: tables, aim, budget."""
    tables = plural(len(scenario.workload), "table")
    return f"{tables}; {_aim_in_words(scenario)}; ρ = {in_unit(scenario.budget, 'rho')}"
