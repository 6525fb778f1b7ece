"""The tables of each level of areas as a grid, and back from what was typed into it."""

from collections.abc import Mapping
from typing import Any, Literal

import pandas as pd

from rpexplore.common.formatting import joined, plural
from rpexplore.common.typed_numbers import number_of, number_text
from rpexplore.errors import RpexploreError, WorkloadError
from rpexplore.scenarios.area_study import AreaStudy, AreaTarget, area_targets
from rpexplore.workload.table_text import title
from rpexplore.workload.targets import Target, parse_target
from rpexplore.workload.workload import Workload

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
        target = parse_target(text)
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
