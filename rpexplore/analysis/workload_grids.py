"""The workload as a grid of importances and targets, and back from what was typed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from rpexplore.analysis.standard_errors import places_containing, titles
from rpexplore.errors import WorkloadError
from rpexplore.plan import Plan
from rpexplore.scenario import Scenario, Table, TableSetting
from rpexplore.workload import Workload


@dataclass(frozen=True)
class WorkloadTotals:
    """The size of a workload: tables, cells over all tables, and its largest table."""

    tables: int
    cells: int
    largest_table: str
    largest_cells: int


def totals(workload: Workload) -> WorkloadTotals:
    """The size of a workload, exact however large."""
    cells = workload.exact_cells
    largest = int(np.argmax(workload.cells))
    return WorkloadTotals(
        tables=len(workload),
        cells=int(cells.sum()),
        largest_table=titles(workload, np.array([largest]))[0],
        largest_cells=int(cells[largest]),
    )


def first_list(scenario: Scenario, most: int) -> tuple[tuple[str, ...], ...]:
    """The list to start from: what is asked for so far, or, were that too long, each attribute."""
    if len(scenario.workload) <= most:
        return tuple(scenario.workload.tables)
    return tuple((name,) for name in scenario.domain.names)


def workload_grid(
    workload: Workload,
    plan: Plan | None,
    containing: Sequence[str] = (),
    most: int | None = None,
) -> tuple[pd.DataFrame, int]:
    """The first `most` tables that have all of these attributes, and how many there are in all.

    Columns, indexed by the table's place in the workload: table, cells, weight, target,
    standard_error (missing without a plan).
    """
    places = places_containing(workload, containing)
    shown = places[:most]
    frame = pd.DataFrame(
        {
            "table": titles(workload, shown),
            "cells": workload.cells[shown],
            "weight": workload.weights[shown],
            "target": workload.targets[shown],
            "standard_error": np.nan if plan is None else plan.standard_errors[shown],
        },
        index=pd.Index(shown, name="place"),
    )
    return frame, len(places)


def settings_from_grid(
    scenario: Scenario, tables: Sequence[Table], changes: Mapping[int, Mapping[str, Any]]
) -> list[TableSetting]:
    """What is asked of the tables whose rows were changed: {row: {column: value}}.

    tables: the table of each row. An emptied weight is 1, an emptied target none.
    """
    present = {setting.attributes: setting for setting in scenario.request.settings}
    settings = []
    for row, change in changes.items():
        setting = present.get(tables[row], TableSetting(tables[row]))
        weight = change.get("weight", setting.weight)
        target = change.get("target", setting.target)
        settings.append(replace(setting, weight=1.0 if weight is None else weight, target=target))
    return settings


@dataclass(frozen=True)
class EditedScenario:
    """A scenario with what was typed into its grid, and why some of it was refused."""

    scenario: Scenario
    refused: tuple[str, ...] = ()


def scenario_from_grid(
    scenario: Scenario, tables: Sequence[Table], changes: Mapping[int, Mapping[str, Any]]
) -> EditedScenario:
    """The scenario after changes {row: {column: value}}; what cannot be used is refused by cell."""
    try:
        return EditedScenario(scenario.with_settings(settings_from_grid(scenario, tables, changes)))
    except WorkloadError:
        pass
    refused = []
    for row, change in changes.items():
        for column, value in change.items():
            cell = {row: {column: value}}
            try:
                scenario = scenario.with_settings(settings_from_grid(scenario, tables, cell))
            except WorkloadError as error:
                refused.append(str(error))
    return EditedScenario(scenario, tuple(refused))


def settings_for_missing_targets(scenario: Scenario, target: float) -> list[TableSetting]:
    """This target for every table that has none."""
    places = np.flatnonzero(np.isnan(scenario.workload.targets)).tolist()
    tables = [scenario.workload.tables[place] for place in places]
    return settings_from_grid(
        scenario, tables, {row: {"target": target} for row in range(len(tables))}
    )


def settings_for_many(
    scenario: Scenario, containing: Sequence[str], weight: float | None, target: float | None
) -> list[TableSetting]:
    """One importance, one target, or both for every table that has all of these attributes."""
    given = {"weight": weight, "target": target}
    change = {field: value for field, value in given.items() if value is not None}
    places = places_containing(scenario.workload, containing).tolist()
    tables = [scenario.workload.tables[place] for place in places]
    return settings_from_grid(scenario, tables, dict.fromkeys(range(len(tables)), change))
