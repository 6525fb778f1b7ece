"""Workloads, and the tables of each level of areas, as grids, and back from what was typed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from rpexplore.analysis.glossary import meaning
from rpexplore.analysis.targets_met import out_of_reach, targets_frame
from rpexplore.common.text import joined, number_of, number_text, plural
from rpexplore.errors import RpexploreError, WorkloadError
from rpexplore.planning.table_plan import TablePlan
from rpexplore.scenarios.area_study import AreaStudy, AreaTarget, area_targets
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.table_settings import GroupSetting, TableSetting, given
from rpexplore.workload.table_text import Table, title, titles
from rpexplore.workload.targets import Target, plain, target_of
from rpexplore.workload.workload import Workload

# ---- The workload as a grid of weights and targets, and back from what was typed.


def first_list(scenario: Scenario, most: int) -> tuple[tuple[str, ...], ...]:
    """The list to start from: the present tables, or, were that too long, each attribute."""
    if len(scenario.workload) <= most:
        return tuple(scenario.workload.tables)
    return tuple((name,) for name in scenario.domain.names)


def like_targets(scenario: Scenario) -> Target | None:
    """A target of 1 in the unit that all targets of tables have; None where they differ."""
    targets, _ = scenario.request.targets(scenario.workload)
    units = {(target.unit, target.confidence, target.count) for target in targets}
    return Target(1, *units.pop()) if len(units) == 1 else None


def error_heading(workload: Workload, like: Target | None) -> tuple[str, str]:
    """The heading of the errors of a grid, in the unit of a target, and what they are."""
    heading, explained = "Standard error", meaning("Standard error")
    if like is not None and like.confidence is not None:
        heading = f"Margin, ± at {plain(like.confidence)} %"
        explained = "How near to the true count a cell is, with this confidence."
    elif like is not None and like.count is not None:
        heading = f"Error, % of {plain(like.count, ',')}"
    return heading if workload.is_marginals else f"{heading} (root mean square)", explained


def tables_set(workload: Workload) -> int:
    """How many tables have a weight other than 1, or a target."""
    return int(np.count_nonzero((workload.weights != 1) | ~np.isnan(workload.targets)))


def workload_grid(
    scenario: Scenario,
    plan: TablePlan | None,
    containing: Sequence[str] = (),
    most: int | None = None,
    like: Target | None = None,
) -> tuple[pd.DataFrame, int]:
    """The first `most` tables that have all of these attributes, and how many there are in all.

    Columns, indexed by the table's index in the workload: table, cells, weight, target (as typed,
    missing where there is none), required (bool), outcome ("met: ±38", "short by 12", "short by 12,
    out of reach", or "") and error (of a cell, missing without a plan). Out of reach: with the
    whole budget for itself, the table would still miss its target.

    like: a target in whose unit errors are; without it they are standard errors
    """
    workload = scenario.workload
    tables = workload.containing(containing)
    shown = tables[:most]
    targets = targets_frame(workload, shown, plan, scenario.request)
    beyond = np.where(out_of_reach(workload, shown, scenario.budget), "out of reach", "")
    outcomes = [
        ", ".join(filter(None, texts)) for texts in zip(targets["outcome"], beyond, strict=True)
    ]
    frame = pd.DataFrame(
        {
            "table": titles(workload, shown),
            "cells": workload.cells[shown],
            "weight": workload.weights[shown],
            "target": pd.array([text or None for text in targets["wanted"]], dtype="string"),
            "required": workload.required[shown],
            "outcome": outcomes,
            "error": np.nan if plan is None else plan.standard_errors[shown],
        },
        index=pd.Index(shown, name="table_index"),
    )
    if like is not None:
        frame["error"] *= like.in_unit(1.0)
    return frame, len(tables)


def tables_of_rows(workload: Workload, grid: pd.DataFrame) -> list[Table]:
    """The attribute names of the table in each row of a grid."""
    names = workload.domain.names
    rows = workload.members[grid.index].tolist()
    return [tuple(names[index] for index in row if index >= 0) for row in rows]


def settings_from_grid(
    scenario: Scenario, tables: Sequence[Table], changes: Mapping[int, Mapping[str, Any]]
) -> list[TableSetting]:
    """The settings of the tables whose rows were changed: {row: {column: value}}.

    tables: the table of each row. What is emptied is what the table's groups give it, or else a
    weight of 1 and no target. A target that is typed anew stays required if it was.

    Raises `RpexploreError` naming the table of a weight or target that is none, or of a required
    one that is missing.
    """
    present = {setting.attributes: setting for setting in scenario.request.settings}
    settings = []
    for row, change in changes.items():
        table = tables[row]
        setting = present.get(table, TableSetting(table))
        weight = change.get("weight", setting.weight)
        if isinstance(weight, str):
            weight = number_of(weight, f"The weight of {title(table)}")
        setting = replace(setting, weight=weight)
        _, of_groups = given(scenario.request.groups, table)
        before = setting.target or of_groups
        if "target" in change:
            setting = replace(setting, target=change["target"] or None)
            if setting.target is not None and before is not None and before.required:
                setting = replace(setting, target=replace(setting.target, required=True))
        if "required" in change:
            target = setting.target or of_groups
            if target is not None:
                target = replace(target, required=change["required"])
            elif change["required"]:
                raise WorkloadError(
                    f"Table {title(table)} must meet its target but has none; type one, or take "
                    "the mark in Required away."
                )
            setting = replace(setting, target=target)
        settings.append(setting)
    return settings


def scenario_from_grid(
    scenario: Scenario, tables: Sequence[Table], changes: Mapping[int, Mapping[str, Any]]
) -> tuple[Scenario, list[str]]:
    """The scenario after changes {row: {column: value}}, and why some of these are refused.

    What cannot be used is refused cell by cell.
    """
    try:
        return scenario.with_settings(settings_from_grid(scenario, tables, changes)), []
    except RpexploreError:
        pass
    refused = []
    for row, change in changes.items():
        # The target first: it may be what a mark in Required is about.
        for column in sorted(change, key=lambda column: column == "required"):
            cell = {row: {column: change[column]}}
            try:
                scenario = scenario.with_settings(settings_from_grid(scenario, tables, cell))
            except RpexploreError as error:
                refused.append(str(error))
    return scenario, refused


def with_target_where_missing(scenario: Scenario, target: Target | float) -> Scenario:
    """This target for every table that has none: as the first group, below all the others.

    Raises `WorkloadError` for a target that is none.
    """
    groups, wanted = scenario.request.groups, target_of(target)
    first = GroupSetting((), target=wanted)
    if groups and groups[0].containing == () and groups[0].target is None:
        first, groups = replace(groups[0], target=wanted), groups[1:]
    return scenario.with_request(groups=(first, *groups))


def without_group(scenario: Scenario, index: int) -> Scenario:
    """The scenario without one of its settings of groups."""
    groups = scenario.request.groups
    return scenario.with_request(groups=groups[:index] + groups[index + 1 :])


# ---- The tables of each level of areas as a grid, and back from what was typed into it.


Setting = Literal["weight", "target"]
_LEVEL = "level {}"  # the column of a level, by its number from the top


def level_columns(study: AreaStudy) -> dict[str, str]:
    """Headings of the columns of levels."""
    return {_LEVEL.format(number): level for number, level in enumerate(study.levels)}


def level_grid(study: AreaStudy, setting: Setting) -> pd.DataFrame:
    """One row a table to choose from: table, cells, and a column for each level.

    These hold weights or targets as texts ("20 required"), "" where a table is not asked for, or
    has no target.
    """
    rows = study.rows
    cells = Workload.of(study.domain, rows).exact_cells.tolist()
    grid = {"table": [title(table) for table in rows], "cells": cells}
    for column, level in level_columns(study).items():
        asked = study.tables.get(level)
        values = {}
        if asked is not None:
            numbers = asked.weights.tolist() if setting == "weight" else area_targets(asked)
            values = dict(zip(asked.tables, map(_text, numbers), strict=True))
        grid[column] = [values.get(table, "") for table in rows]
    return pd.DataFrame(grid)


def _text(setting: AreaTarget) -> str:
    if isinstance(setting, Target):
        return f"{number_text(setting.standard_error)} required"
    return "" if setting is None else number_text(setting)


def typed_target(text: str, name: str) -> AreaTarget:
    """The target of a text such as "20" or "20 required"; raises `WorkloadError` with its name."""
    if not text.strip():
        return None
    try:
        target = Target.parse(text)
    except WorkloadError as error:
        raise WorkloadError(f"{name} cannot be read: {error}") from None
    error = target.standard_error
    return Target(error, required=True) if target.required else error


def study_from_grid(
    study: AreaStudy, setting: Setting, cells: Mapping[int, Mapping[str, Any]]
) -> tuple[AreaStudy, list[str]]:
    """The study with what was typed, {row: {column: text}}, and why some of it is refused."""
    levels, rows, refused = level_columns(study), study.rows, []
    for row, typed in cells.items():
        for column, text in typed.items():
            table, level = rows[row], levels[column]
            name = f"The {setting} of {title(table)} on the level {level}"
            try:
                if setting == "weight":
                    weight = number_of(text or "", name, least=0.0)
                    study = study.with_weights({(level, table): weight or None})
                else:
                    study = study.with_targets({(level, table): typed_target(text or "", name)})
            except RpexploreError as error:
                refused.append(str(error))
    return study, refused


def describe_grid(study: AreaStudy) -> str:
    """How many tables the levels are asked for, in a sentence."""
    texts = [
        f"{plural(len(study.tables.get(level, ())), 'table')} on {level}" for level in study.levels
    ]
    return f"{joined(texts)}: {plural(study.n_tables, 'table')} in all areas together."
