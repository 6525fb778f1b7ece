"""Scenarios side by side: what was asked for, what comes of it, and how single tables differ."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from rpexplore.analysis.accuracy import headline
from rpexplore.analysis.budget_units import DELTAS, in_unit, stated_delta
from rpexplore.common.formatting import capitalised, describe_count, plural, rounded
from rpexplore.planning.mechanism.table_variances import SAME, cells_differ
from rpexplore.planning.plan import Plan
from rpexplore.scenarios.scenario import Scenario
from rpexplore.workload.table_titles import titles
from rpexplore.workload.targets import Target
from rpexplore.workload.workload import Workload

_RATIO = "Worst divided by best"


@dataclass(frozen=True, eq=False)
class SideBySide:
    """Scenarios in words, one column each, in their order.

    texts    one row an input or an outcome, one column a scenario (by its place)
    differs  for each row, whether the scenarios are not all the same there
    """

    texts: pd.DataFrame
    differs: list[bool]

    @classmethod
    def of(cls, rows: Mapping[str, Sequence[str]], keys: Mapping[str, Sequence[Any]]) -> Self:
        """From the words of each row, and what to compare where the words do not say it all."""
        compared = [keys.get(name, words) for name, words in rows.items()]
        return cls(
            pd.DataFrame(list(rows.values()), index=pd.Index(list(rows))),
            [any(each != values[0] for each in values) for values in compared],
        )


def inputs(scenarios: Sequence[Scenario]) -> SideBySide:
    """What the scenarios ask for."""
    words = {
        "Attributes": lambda each: _describe_attributes(each.domain.names),
        "Values in all": lambda each: f"{sum(each.domain.sizes.tolist()):,}",
        "Tables asked for": lambda each: each.request.text,
        "Tables": lambda each: f"{len(each.workload):,}",
        "Attributes are asked": _describe_asked,
        "Weight": _describe_weights,
        "Targets": _describe_targets,
        "Objective": lambda each: each.loss.title,
        "Budget": lambda each: f"ρ = {in_unit(each.budget, 'rho')}",
        "Protects": lambda each: each.budget.unit,
        "Tables count": lambda each: each.record_noun,
    }
    keys = {
        "Attributes": lambda each: each.domain,
        "Tables": lambda each: each.workload.tables,
        "Attributes are asked": lambda each: _ways_of(each.workload),
        "Weight": _weights_of,
        "Targets": _targets_of,
        "Budget": lambda each: each.budget.privacy_cost,
    }
    if all(each.workload.is_marginals for each in scenarios):
        del words["Attributes are asked"]
        del keys["Attributes are asked"]
    return SideBySide.of(
        {name: [tell(each) for each in scenarios] for name, tell in words.items()},
        {name: [key(each) for each in scenarios] for name, key in keys.items()},
    )


def outcomes(scenarios: Sequence[Scenario], plans: Sequence[Plan]) -> SideBySide:
    """What comes of the scenarios; they differ where the digits shown do."""
    heads = [headline(plan) for plan in plans]
    pairs = list(zip(scenarios, heads, strict=True))
    # Of one row in the words that hold for all; short, as a narrow column cuts them off.
    differ = any(head.cells_differ for head in heads)
    typical, worst, ratio = (
        ("Typical cell of a typical table", "Least accurate cell of all", "Worst cell ÷ best cell")
        if differ
        else (*map(capitalised, (heads[0].median_text, heads[0].worst_text)), _RATIO)
    )
    deltas = dict.fromkeys([*(stated_delta(plan.budget) for plan in plans), *DELTAS])
    rows = {
        f"{typical}, 95 % of the time": [
            f"±{rounded(head.median_margin, 3)} {each.record_noun}" for each, head in pairs
        ],
        f"{worst}, 95 % of the time": [
            f"±{rounded(head.worst_margin, 3)} {each.record_noun}" for each, head in pairs
        ],
        "Worst table": [head.worst_table for head in heads],
        ratio: [rounded(_spread(plan), 3, zeros=True) for plan in plans],
        "Targets met": [
            f"{head.targets_met:,} of {head.targets:,}" if head.targets else "none set"
            for head in heads
        ],
        "Cells in all tables": [
            describe_count(sum(plan.workload.exact_cells.tolist())) for plan in plans
        ],
        "Privacy, ρ": [rounded(plan.rho, 4, "up") for plan in plans],
        **{
            f"Privacy, ε at δ = {delta}": [rounded(plan.epsilon(delta), 3, "up") for plan in plans]
            for delta in deltas
        },
    }
    return SideBySide.of(rows, {})


def common_noun(scenarios: Sequence[Scenario]) -> str:
    """What all of the scenarios count, or "records" where they count different things."""
    nouns = {scenario.record_noun for scenario in scenarios}
    return nouns.pop() if len(nouns) == 1 else "records"


def table_differences(left: Plan, right: Plan) -> pd.DataFrame:
    """Tables that both plans have, by attribute names and how they are asked, the one that changes
    most first.

    Columns: table, order, left, right (standard errors), change (right over left, minus 1). Where
    the cells of a table differ these are those of typical cells, and left_worst and right_worst
    are those of the least accurate ones.
    """
    at_right = {table: place for place, table in enumerate(_tables_as_asked(right.workload))}
    pairs = [
        (place, at_right[table])
        for place, table in enumerate(_tables_as_asked(left.workload))
        if table in at_right
    ]
    lefts, rights = np.array(pairs, dtype=np.int64).reshape(len(pairs), 2).T
    before, after = left.standard_errors[lefts], right.standard_errors[rights]
    ratio = after / before
    order = np.argsort(-np.abs(np.log(ratio)), kind="stable")
    worst = {}
    if any(cells_differ(plan.table_variances) for plan in (left, right)):
        worst = {
            "left_worst": left.worst_standard_errors[lefts[order]],
            "right_worst": right.worst_standard_errors[rights[order]],
        }
    return pd.DataFrame(
        {
            "table": titles(left.workload, lefts[order]),
            "order": left.workload.orders[lefts[order]],
            "left": before[order],
            "right": after[order],
            **worst,
            "change": ratio[order] - 1,
        }
    )


def describe_differences(frame: pd.DataFrame, left: str, right: str) -> str:
    """What `table_differences` shows, in one or two sentences."""
    if frame.empty:
        return f"“{left}” and “{right}” have no table in common."
    ratios = frame["change"].to_numpy() + 1
    common = f"{plural(len(frame), 'table')} in common"
    worse, better = int(np.sum(ratios > SAME)), int(np.sum(ratios < 1 / SAME))
    if worse == better == 0:
        return f"“{left}” and “{right}” have {common}, and all are equally accurate in both."
    first = frame.iloc[0]
    have = "has" if worse == 1 else "have"
    whose = " of a typical cell" if "left_worst" in frame else ""
    return (
        f"“{left}” and “{right}” have {common}. In “{right}” {_count(worse)} of them {have} a "
        f"larger standard error{whose} and {_count(better)} a smaller one "
        f"(median {_percent(float(np.median(ratios)) - 1)}). The largest change is that of "
        f"{first['table']}: from {rounded(first['left'], 3)} to {rounded(first['right'], 3)}."
    )


def _describe_attributes(names: Sequence[str], most: int = 4) -> str:
    """ "age, sex", "11: age, sex, region, income, …"."""
    listed = ", ".join(names[:most])
    return listed if len(names) <= most else f"{len(names):,}: {listed}, …"


def _tables_as_asked(workload: Workload) -> list[frozenset]:
    """Each table as its attribute names, with how they are asked where not by single values."""
    if workload.is_marginals:
        return [frozenset(table) for table in workload.tables]
    names, asked = workload.domain.names, []
    for place, basis in workload.attribute_bases:
        asked.append(names[place] if basis.is_identity else (names[place], basis))
    rows = workload.attribute_basis_index.tolist()
    return [frozenset(asked[question] for question in row if question >= 0) for row in rows]


def _ways_of(workload: Workload) -> list[object]:
    """What is asked of attributes other than their single values, and where if not everywhere."""
    names = workload.domain.names
    several = any(len(listed) > 1 for listed in workload.bases)
    ways = [
        (names[place], basis) for place, basis in workload.attribute_bases if not basis.is_identity
    ]
    return [*ways, *(_tables_as_asked(workload) if several else [])]


def _describe_asked(scenario: Scenario) -> str:
    """ "age: cumulative; region: hierarchy; others: single values"."""
    workload, attributes = scenario.workload, scenario.domain.attributes
    listed = [
        f"{attributes[place].name}: {basis.suffix(attributes[place])}"
        for place, basis in workload.attribute_bases
        if not basis.is_identity
    ]
    return "; ".join(listed) or "by single values"


def _weights_of(scenario: Scenario) -> dict[Any, float]:
    """The tables of another weight than 1, and theirs."""
    tables, weights = scenario.workload.tables, scenario.workload.weights
    return {tables[place]: float(weights[place]) for place in np.flatnonzero(weights != 1).tolist()}


def _targets_of(scenario: Scenario) -> dict[Any, Target]:
    """The tables with a target, and theirs as typed."""
    wanted, which = scenario.request.targets(scenario.workload)
    tables = scenario.workload.tables
    return {tables[row]: wanted[which[row]] for row in np.flatnonzero(which >= 0).tolist()}


def _describe_weights(scenario: Scenario) -> str:
    weights = scenario.workload.weights
    others = int(np.count_nonzero(weights != 1))
    if not others:
        return "all alike"
    low, high = float(weights.min()), float(weights.max())
    return f"{plural(others, 'table')} other than 1 ({rounded(low, 3)} to {rounded(high, 3)})"


def _describe_targets(scenario: Scenario) -> str:
    targets = scenario.workload.targets
    wanted = targets[~np.isnan(targets)]
    if not len(wanted):
        return "none"
    low, high = float(wanted.min()), float(wanted.max())
    span = rounded(low, 3) if low == high else f"{rounded(low, 3)} to {rounded(high, 3)}"
    required = int(np.count_nonzero(scenario.workload.required))
    having = f", {required:,} of them required" if required else ""
    return f"{plural(len(wanted), 'table')}, σ = {span}{having}"


def _count(count: int) -> str:
    return f"{count:,}" if count else "none"


def _spread(plan: Plan) -> float:
    """Largest standard error of a cell over the smallest."""
    best = plan.table_variances.standard_errors("best")
    return float(np.max(plan.worst_standard_errors) / np.min(best))


def _percent(change: float) -> str:
    """ "+12 %", "−3.4 %", "0 %"."""
    size = rounded(abs(100 * change), 2)
    return f"{'−' if change < 0 else '+' if size != '0' else ''}{size} %"


def in_a_line(scenario: Scenario) -> str:
    """What a scenario asks for, in a line: tables, aim, budget."""
    tables = plural(len(scenario.workload), "table")
    return f"{tables}; {scenario.loss.title}; ρ = {in_unit(scenario.budget, 'rho')}"
