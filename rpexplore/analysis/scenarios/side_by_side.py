"""Scenarios side by side: their inputs, their accuracy and privacy."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from rpexplore.analysis.accuracy import headline
from rpexplore.analysis.budget_units import DELTAS, stated_delta, stated_text
from rpexplore.analysis.targets_met import target_counts
from rpexplore.common.formatting import describe_count, plural, rounded
from rpexplore.planning.table_plan import TablePlan
from rpexplore.privacy.conversions import rho_text
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


def common_noun(scenarios: Sequence[Scenario]) -> str:
    """What all of the scenarios count, or "records" where they count different things."""
    nouns = {scenario.record_noun for scenario in scenarios}
    return nouns.pop() if len(nouns) == 1 else "records"


def summary(scenario: Scenario) -> str:
    """A scenario in a line: tables, objective, budget, areas."""
    tables = plural(len(scenario.workload), "table")
    areas = f"; {plural(scenario.areas.areas.n_areas, 'area')}" if scenario.areas else ""
    return f"{tables}; {scenario.loss.title}; {stated_text(scenario.budget)}{areas}"


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
        "Privacy unit": (budget.unit, None),
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
    smallest = plan.table_variances.standard_errors("smallest")
    return float(np.max(plan.largest_standard_errors) / np.min(smallest))
