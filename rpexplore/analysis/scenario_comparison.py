"""Scenarios side by side: their inputs, accuracy, privacy and areas, and the effect of a change."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from rpexplore.analysis.accuracy import headline
from rpexplore.analysis.area_accuracy import level_accuracy
from rpexplore.analysis.area_forecast import levels_for_reading
from rpexplore.analysis.budget_units import DELTAS, stated_delta, stated_text
from rpexplore.analysis.drawn_areas import DrawnAreas
from rpexplore.analysis.published_lines import area_forecast_of_scenario, public_of_areas
from rpexplore.analysis.shared_tables import Contender, common_word
from rpexplore.analysis.shared_tables import outcomes as shared_tables_outcomes
from rpexplore.analysis.targets_met import target_counts
from rpexplore.common.text import describe_count, joined, plural, rounded
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.part_plan import Z_95
from rpexplore.planning.table_plan import TablePlan
from rpexplore.privacy.conversions import rho_text
from rpexplore.scenarios.area_study import AreaStudy
from rpexplore.scenarios.scenario import Scenario
from rpexplore.workload.workload import Workload


def inputs(scenarios: Sequence[Scenario]) -> pd.DataFrame:
    """What was chosen in the scenarios, as text; single values alone are no row.

    One row an input, one column a scenario (by its number), and differs: whether the scenarios are
    not all the same there.
    """
    columns = [_inputs(scenario) for scenario in scenarios]
    rows = {name: [column[name] for column in columns] for name in columns[0]}
    if all(scenario.workload.is_marginals for scenario in scenarios):
        del rows["Aggregation"]
    texts = {name: [text for text, _ in row] for name, row in rows.items()}
    values = [[text if value is None else value for text, value in row] for row in rows.values()]
    return texts_side_by_side(texts, values)


def outcomes(scenarios: Sequence[Scenario], plans: Sequence[TablePlan]) -> pd.DataFrame:
    """Accuracy and privacy of the scenarios' plans, as `inputs`; digits shown are compared."""
    heads, targets = list(map(headline, plans)), list(map(target_counts, plans))
    pairs = list(zip(scenarios, heads, strict=True))
    median, largest = "Median table", "Least accurate table"
    if any(head.cells_differ for head in heads):
        median, largest = "Median table (root mean square)", "Least accurate cell"
    deltas = dict.fromkeys([*(stated_delta(plan.budget) for plan in plans), *DELTAS])
    texts = {
        f"{median}, 95 % margin of error": [
            f"±{rounded(head.median_margin, 3)} {scenario.record_noun}" for scenario, head in pairs
        ],
        f"{largest}, 95 % margin of error": [
            f"±{rounded(head.largest_margin, 3)} {scenario.record_noun}" for scenario, head in pairs
        ],
        "Least accurate": [head.least_accurate_table for head in heads],
        "Largest ÷ smallest σ of a cell": [rounded(_spread(plan), 3, zeros=True) for plan in plans],
        "Targets met": [
            f"{counts.met:,} of {counts.targets:,}" if counts.targets else "none set"
            for counts in targets
        ],
        "Cells of all tables": [describe_count(plan.workload.n_cells) for plan in plans],
        "Privacy, ρ": [rounded(plan.rho, 4, "up") for plan in plans],
    }
    for delta in deltas:
        epsilons = [rounded(plan.epsilon(delta), 3, "up") for plan in plans]
        texts[f"Privacy, ε at δ = {delta}"] = epsilons
    return texts_side_by_side(texts, list(texts.values()))


def summary(scenario: Scenario) -> str:
    """A scenario in a line: what is asked for, objective, budget."""
    asked = []
    if scenario.asks_for_tables:
        asked.append(plural(len(scenario.workload), "table"))
    if scenario.areas is not None:
        asked.append(f"tables in {plural(scenario.areas.areas.n_areas, 'area')}")
    if scenario.query_list is not None:
        asked.append(plural(len(scenario.query_list), "own count"))
    budget = stated_text(scenario.budget).replace(" ", "\N{NO-BREAK SPACE}")  # in one line
    return f"{joined(asked)}; {scenario.objective.title}; {budget}"


def texts_side_by_side(texts: dict[str, list[str]], values: list[list[Any]]) -> pd.DataFrame:
    """One row an input or outcome, as `inputs`; values: of each row, what is compared."""
    frame = pd.DataFrame(list(texts.values()), index=pd.Index(list(texts)))
    return frame.assign(differs=[any(value != row[0] for value in row) for row in values])


def _inputs(scenario: Scenario) -> dict[str, tuple[str, Any]]:
    """Of each input its text, and what is compared where that does not tell all differences."""
    workload, names, budget = scenario.workload, scenario.domain.names, scenario.budget
    most = 4
    attributes = ", ".join(names[:most])
    if len(names) > most:
        attributes = f"{len(names):,}: {attributes}, …"
    weights = workload.weights
    other_weights = np.flatnonzero(weights != 1).tolist()
    weight_text = "1 for all tables"
    if other_weights:
        count = plural(len(other_weights), "table")
        weight_text = f"{count} other than 1 ({_describe_range(weights)})"
    targets, which = scenario.request.targets(workload)
    with_target = np.flatnonzero(which >= 0).tolist()
    return {
        "Attributes": (attributes, scenario.domain),
        "Values": (f"{sum(scenario.domain.sizes.tolist()):,}", None),
        "Tables": (scenario.request.text, None),
        "Number of tables": (f"{len(workload):,}", workload.tables),
        "Aggregation": _bases(workload),
        "Weight": (
            weight_text,
            {workload.tables[table]: float(weights[table]) for table in other_weights},
        ),
        "Targets": (
            _describe_targets(workload),
            {workload.tables[table]: targets[which[table]] for table in with_target},
        ),
        "Objective": (scenario.loss.title, None),
        "Privacy budget": (rho_text(budget.rho), budget.privacy_cost),
        "Privacy unit": (budget.full_unit, None),
        "Counts of": (scenario.record_noun, None),
    }


def _tables_with_bases(workload: Workload) -> list[frozenset]:
    """Each table as its attribute names, with their bases where these are not single values."""
    if workload.is_marginals:
        return [frozenset(table) for table in workload.tables]
    names = workload.domain.names
    attributes = [
        names[attribute] if basis.is_identity else (names[attribute], basis)
        for attribute, basis in workload.attribute_bases
    ]
    rows = workload.attribute_basis_index.tolist()
    return [frozenset(attributes[index] for index in row if index >= 0) for row in rows]


def _bases(workload: Workload) -> tuple[str, list[object]]:
    """Bases other than single values: "age: cumulative; region: hierarchy", and what is compared.

    That has those of each table where an attribute has several.
    """
    attributes = workload.domain.attributes
    chosen = [
        (attributes[attribute], basis)
        for attribute, basis in workload.attribute_bases
        if not basis.is_identity
    ]
    text = "; ".join(f"{attribute.name}: {basis.suffix(attribute)}" for attribute, basis in chosen)
    bases: list[object] = [(attribute.name, basis) for attribute, basis in chosen]
    if any(len(several) > 1 for several in workload.bases):
        bases += _tables_with_bases(workload)
    return text or "single values", bases


def _describe_targets(workload: Workload) -> str:
    targets = workload.targets[~np.isnan(workload.targets)]
    if not len(targets):
        return "none"
    required = int(np.count_nonzero(workload.required))
    having = f", {required:,} required" if required else ""
    return f"{plural(len(targets), 'table')}, σ = {_describe_range(targets)}{having}"


def _describe_range(values: np.ndarray) -> str:
    low, high = float(values.min()), float(values.max())
    return rounded(low, 3) if low == high else f"{rounded(low, 3)} to {rounded(high, 3)}"


def _spread(plan: TablePlan) -> float:
    tables = plan.workload.comparable
    smallest = plan.variances_in_units.standard_errors("smallest")[tables]
    return float(np.max(plan.largest_standard_errors[tables]) / np.min(smallest))


# ---- The areas of scenarios side by side: what is asked for them, and how accurate that will be.


_IN_GOOD_CELLS = "in good cells"


@dataclass(frozen=True, eq=False)
class AreaOutcome:
    """What is compared of a plan for areas, which itself may hold millions of numbers.

    levels    of `level_accuracy`
    forecast  of `levels_for_reading`, its head of shares the same for all; None where nothing is
              public
    """

    loss: float
    rho: Fraction
    levels: pd.DataFrame
    forecast: pd.DataFrame | None = None

    @classmethod
    def of(cls, plan: AreaPlan, scenario: Scenario) -> "AreaOutcome":
        study = scenario.planned_areas
        public = None if study is None else public_of_areas(scenario, study)
        forecast = None
        if public is not None:
            drawn = DrawnAreas.of(plan.workload, public)
            made = area_forecast_of_scenario(plan, drawn, scenario)
            forecast = levels_for_reading(made).rename(
                columns={f"{made.whom} in good cells": _IN_GOOD_CELLS}
            )
        return cls(plan.loss_value, plan.rho, level_accuracy(plan), forecast)


def area_inputs(scenarios: Sequence[Scenario]) -> pd.DataFrame:
    """What was chosen for the areas of scenarios that have some, as `side_by_side.inputs`."""
    studies = [scenario.areas for scenario in scenarios if scenario.areas is not None]
    texts = {
        "Areas": [
            f"{study.areas.n_areas:,} on {plural(len(study.levels), 'level')}, {study.filename}"
            for study in studies
        ],
        "Other attributes": [", ".join(study.domain.names) for study in studies],
        "Tables": [_tables(study) for study in studies],
        "Tables in all areas": [f"{study.n_tables:,}" for study in studies],
        "Objective": [study.loss.title for study in studies],
        "Noise": [
            "the same for all areas of a level" if study.uniform else "each area its own"
            for study in studies
        ],
        "Privacy budget": [rho_text(scenario.budget.rho) for scenario in scenarios],
        "Privacy unit": [scenario.budget.full_unit for scenario in scenarios],
    }
    values = [
        [(study.areas.sha256, text) for study, text in zip(studies, texts["Areas"], strict=True)],
        [study.domain for study in studies],
        [study.settings for study in studies],
        texts["Tables in all areas"],
        [study.loss for study in studies],
        texts["Noise"],
        [scenario.budget.privacy_cost for scenario in scenarios],
        texts["Privacy unit"],
    ]
    return texts_side_by_side(texts, values)


def _tables(study: AreaStudy) -> str:
    """How many tables the levels are asked for, in a few words."""
    counts = {level: len(study.tables.get(level, ())) for level in study.levels}
    if len(set(counts.values())) == 1:
        return f"{plural(next(iter(counts.values())), 'table')} on every level"
    return ", ".join(f"{level} {count:,}" for level, count in counts.items())


def area_outcomes(scenarios: Sequence[Scenario], outcomes: Sequence[AreaOutcome]) -> pd.DataFrame:
    """Objective, privacy and accuracy by level of these scenarios; digits shown are compared."""
    levels = dict.fromkeys(level for one in outcomes for level in one.levels["level"])
    texts = {
        "Objective, the less the better": [rounded(one.loss, 4) for one in outcomes],
        "Privacy, ρ": [rounded(one.rho, 4, "up") for one in outcomes],
    }
    for level in levels:
        texts[f"{level}, 95 % margin of error"] = [
            _margin(one, level, "standard_error", scenario.record_noun)
            for scenario, one in zip(scenarios, outcomes, strict=True)
        ]
    for level in levels:
        texts[f"{level}, least accurate area"] = [
            _margin(one, level, "largest_standard_error", scenario.record_noun)
            for scenario, one in zip(scenarios, outcomes, strict=True)
        ]
    if any(one.forecast is not None for one in outcomes):
        whom = common_word([scenario.counted for scenario in scenarios])
        for level in levels:
            texts[f"{level}, {whom} in good cells"] = [_people(one, level) for one in outcomes]
    return texts_side_by_side(texts, list(texts.values()))


def _people(outcome: AreaOutcome, level: str) -> str:
    if outcome.forecast is None:
        return "not known"
    own = outcome.forecast.loc[outcome.forecast["level"] == level, _IN_GOOD_CELLS]
    return "not asked for" if own.empty else str(own.iloc[0])


def _margin(outcome: AreaOutcome, level: str, name: str, noun: str) -> str:
    of_level = outcome.levels.loc[outcome.levels["level"] == level, name]
    if of_level.empty:
        return "not asked for"
    return f"±{rounded(Z_95 * float(of_level.iloc[0]), 3)} {noun}"


# ---- What a change of a scenario does to the unbiased tables there were, in words.


def describe_before_and_after(before: Contender, after: Contender) -> str:
    """Median margin and least accurate table of the tables that both have.

    "In the 575 tables, the margin of error of an unbiased cell (95 %) goes from ±38 to ±52 people
    in the median table, and from ±62 for age × sex to ±79 for sex in the least accurate one.".
    """
    first, second = shared_tables_outcomes([before, after]).to_dict("records")
    noun, count = before.scenario.record_noun, int(first["shared"])
    median, later = (rounded(row["median_margin"], 3) for row in (first, second))
    text = f"the margin of error of an unbiased cell (95 %) goes from ±{median} to ±{later} {noun}"
    if count == 1:
        text = f"In the table, {text}"
    else:
        worst, later = (
            f"±{rounded(row['largest_margin'], 3)} for {row['least_accurate']}"
            for row in (first, second)
        )
        text = (
            f"In the {plural(count, 'table')}, {text} in the median table, and from {worst} to "
            f"{later} in the least accurate one"
        )
    return f"{text}."
