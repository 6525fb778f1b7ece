"""The workload as a grid of importances and targets, and back from what was typed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from rpexplore.analysis.table_titles import titles
from rpexplore.errors import WorkloadError
from rpexplore.plan import Plan
from rpexplore.scenario import Scenario
from rpexplore.settings import GroupSetting, TableSetting
from rpexplore.table_lists import Table
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
    places = workload.containing(containing)
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


def tables_of_rows(workload: Workload, grid: pd.DataFrame) -> list[Table]:
    """The attribute names of the table in each row of a grid."""
    names = workload.domain.names
    rows = workload.members[grid.index].tolist()
    return [tuple(names[place] for place in row if place >= 0) for row in rows]


def settings_from_grid(
    scenario: Scenario, tables: Sequence[Table], changes: Mapping[int, Mapping[str, Any]]
) -> list[TableSetting]:
    """What is asked of the tables whose rows were changed: {row: {column: value}}.

    tables: the table of each row. What is emptied is what the table's groups give it, or else an
    importance of 1 and no target.
    """
    present = {setting.attributes: setting for setting in scenario.request.settings}
    settings = []
    for row, change in changes.items():
        setting = present.get(tables[row], TableSetting(tables[row]))
        weight = change.get("weight", setting.weight)
        target = change.get("target", setting.target)
        settings.append(replace(setting, weight=weight, target=target))
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


def with_target_where_missing(scenario: Scenario, target: float) -> Scenario:
    """This target for every table that has none: as the first group, below all the others.

    Raises `WorkloadError` for a target that is none.
    """
    groups = scenario.request.groups
    first = GroupSetting((), target=target)
    if groups and groups[0].containing == () and groups[0].target is None:
        first, groups = replace(groups[0], target=target), groups[1:]
    return scenario.with_request(groups=(first, *groups))


def without_group(scenario: Scenario, place: int) -> Scenario:
    """The scenario without one of its settings of groups."""
    groups = scenario.request.groups
    return scenario.with_request(groups=groups[:place] + groups[place + 1 :])
