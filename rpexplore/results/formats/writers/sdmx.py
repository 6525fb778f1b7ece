"""SDMX 3.0 for statistical agencies: sdmx/structure.xml, and observations of each table.

All tables together are one cube: its dimensions are the attributes, and an attribute that a table
does not have stands at its total, `_T`, as does a row of all its values. Groups are the parents of
what lies in them, and the levels of an attribute are codes of its dimension; so are areas of all
levels, of one dimension AREA, each with the area that it lies in as its parent. The count is the
measure OBS_VALUE; standard error and interval are attributes of the observation, STD_ERR,
LOWER_BOUND and UPPER_BOUND, and so are its unit, decimals and status. Times are those of an
attribute, or one period. The observations are SDMX-CSV 2.0, a file a table, each complete by
itself.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar
from unicodedata import combining, normalize

import numpy as np
import pyarrow as pa

from rpexplore.common.text import begins_formula
from rpexplore.domain.result_schema import Role, Schema
from rpexplore.releases.table_cells import CsvWriter
from rpexplore.results.formats.export import Export, ExportedTable, Format
from rpexplore.results.formats.export_columns import Column, safe_name
from rpexplore.results.formats.export_figures import decimals_of, statuses_of
from rpexplore.results.formats.languages import ENGLISH
from rpexplore.results.formats.row_values import frequency_of_times, is_whole, units_of, values_of
from rpexplore.results.formats.sdmx_structure import (
    CONF_STATUS,
    DECIMALS,
    FREE,
    FREQ,
    OBS_STATUS,
    OBS_VALUE,
    TIME_PERIOD,
    TOTAL,
    UNIT_MEASURE,
    UNIT_MULT,
    UNITS,
    Code,
    Cube,
    Dimension,
    structure_message,
)
from rpexplore.results.level_groups import parents_at_levels

FOLDER, STRUCTURE = "sdmx", "structure.xml"
AGENCY = "RPEXPLORE"  # of structures that nobody maintains

# Concepts that SDMX has for all domains; other numbers are called as their columns.
_CONCEPTS: Mapping[Role, str] = {
    "value": OBS_VALUE,
    "error": "STD_ERR",
    "lower": "LOWER_BOUND",
    "upper": "UPPER_BOUND",
}
# Components that are no attributes of the tables.
_OWN = (FREQ, TIME_PERIOD, UNIT_MEASURE, UNIT_MULT, DECIMALS, OBS_STATUS, CONF_STATUS)

_AREAS, _AREA = "\0", "AREA"  # like no attribute, and their dimension
_Values = TypeVar("_Values", bound=tuple[str, ...])
# The longer ones first.
_SIGNS = {
    "<=": "LE", "=<": "LE", "≤": "LE", "⩽": "LE", ">=": "GE", "=>": "GE", "≥": "GE", "⩾": "GE",
    "<>": "NE", "!=": "NE", "≠": "NE", "<": "LT", ">": "GT",
}  # fmt: skip
_SIGN = re.compile("|".join(map(re.escape, _SIGNS)))
_AND_MORE = re.compile(r"\s*(\d[\d.,]*)\s*\+\s*")  # 65+ is ≥ 65


def write_sdmx(export: Export, folder: Path) -> None:
    """Write structure and observations; raises `ReleaseError` for a table without a key, and for
    an attribute of time whose values are no periods.
    """
    measures = {
        _concept(column): _called(export, column, table)
        for table in export.tables
        for column in table.columns
        if _is_of_observations(column)
    }
    frequency = frequency_of_times(export, is_needed=True)
    dimensions = _dimensions(export, measures)
    units: dict[str, str] = {}
    decimals: set[int] = set()
    may_miss = False
    for table in export.tables:
        rows = export.rows(table)
        decimals.add(decimals_of(rows))
        units |= {
            _unit_code(unit): export.unit_of(unit) for unit in units_of(export, table, rows)[1]
        }
        values = np.asarray(rows[Schema.of(rows).name("value")], dtype=float)
        may_miss |= bool(np.isnan(values).any())
    cube = Cube(
        agency=export.imprint.agency or AGENCY,
        id=export.name,
        title=export.title,
        description=export.description,
        prepared=export.created,
        dimensions=[own for name, own in dimensions.items() if name != export.imprint.time],
        measures=measures,
        frequency=frequency,
        units=units,
        decimals=sorted(decimals),
        may_miss=may_miss,
        language=export.language,
    )
    (folder / FOLDER).mkdir()
    (folder / FOLDER / STRUCTURE).write_bytes(structure_message(cube))
    for table in export.tables:
        table.refuse_alike("SDMX")
        rows = export.rows(table)
        observations = _observations(export, rows, table, cube, dimensions)
        with (folder / FOLDER / f"{table.name}.csv").open("wb") as file:
            writer = CsvWriter(
                file, observations.column_names, decimals_of(rows), escape_formulas=False
            )
            writer.write(observations)


def _unit_code(unit: str) -> str:
    return safe_name(unit).upper()


def _is_of_observations(column: Column) -> bool:
    """Whether a column tells of observations, and not what they are about."""
    return column.is_number or column.role in ("note", "shown")


def _called(export: Export, column: Column, table: ExportedTable) -> Column:
    """A column by its name and meaning in the language of the export."""
    if export.language.is_english:
        return column
    meaning = export.meaning_of(column, table)
    return replace(column, name=export.head_of(column), meaning=meaning)


def _concept(column: Column) -> str:
    """The identifier of a column of numbers, or of notes."""
    return _CONCEPTS.get(column.role, column.name.upper())


def _dimensions(export: Export, measures: Collection[str]) -> Mapping[str, Dimension]:
    """The dimension of each attribute, with the codes of all tables: those of its levels, too."""
    names: dict[str, str] = {}
    components = {name.lower() for name in (*measures, *_OWN)}
    if export.results.area_levels:
        names[_AREAS] = _AREA
    for attribute in map(partial(_whose, export), export.attributes):
        if attribute not in names:
            taken = {*components, *(name.lower() for name in names.values())}
            names[attribute] = safe_name(attribute, taken, "attribute").upper()
    values: dict[str, dict[Code, None]] = {name: {} for name in names}
    parents: dict[str, dict[Code, Code]] = {name: {} for name in names}
    for table in export.tables:
        rows = export.rows(table)
        for attribute in table.attributes:
            whose = _whose(export, attribute)
            if whose == _AREAS:
                continue
            own, _, column = values_of(rows, table, attribute)
            own = [(*value, attribute) for value in own if not is_whole(value, column)]
            values[whose] |= dict.fromkeys(own)
            by_text = {value[1] or value[0]: value for value in own}
            for text, group in column.parents.items():
                parents[whose].setdefault(by_text[text], by_text[group])
    dimensions = {}
    for attribute, name in names.items():
        if attribute == _AREAS:
            dimensions[attribute] = _dimension_of_areas(export)
            continue
        levels = {
            level: groups
            for level, groups in export.levels.items()
            if _whose(export, level) == attribute
        }
        by_code = {(value[2], value[0]): value for value in values[attribute]}
        single = [value for whose, value in by_code if whose == attribute]
        own = parents[attribute]
        for value, group in parents_at_levels(attribute, levels, single).items():
            if value in by_code and group in by_code:
                own.setdefault(by_code[value], by_code[group])
        codes = identifiers(
            values[attribute], groups={*own.values()}, escape_formulas=export.escape_formulas
        )
        within = {codes[value]: codes[group] for value, group in own.items()}
        title = export.head(export.attribute_titles.get(attribute, attribute))
        dimensions[attribute] = Dimension(name, title, codes, within, export.label)
    return dimensions


def _dimension_of_areas(export: Export) -> Dimension:
    """The areas of all tables, and what they lie in: by their codes where these differ on all
    levels, else by the codes on the way down to them.
    """
    areas: dict[tuple[str, ...], str] = {}  # codes on the way down -> name
    for table in export.tables:
        for path, name in _areas_of(export, export.rows(table), table)[0]:
            for depth in range(1, len(path)):
                areas.setdefault(path[:depth], "")
            if path:
                areas[path] = name
    areas = dict(sorted(areas.items(), key=lambda area: len(area[0])))
    is_unique = len({path[-1] for path in areas}) == len(areas)
    parents = {path: path[:-1] for path in areas if len(path) > 1}
    texts = {path: (path[-1] if is_unique else "_".join(path), *path) for path in areas}
    found = identifiers(
        [*texts.values()],
        groups={texts[group] for group in parents.values()},
        escape_formulas=export.escape_formulas,
    )
    codes = {path: found[text] for path, text in texts.items()}
    return Dimension(
        _AREA,
        export.language.text("area"),
        {(path[-1], name, _key(path)): codes[path] for path, name in areas.items()},
        {codes[path]: codes[group] for path, group in parents.items()},
        lambda _, text: text,
    )


def _areas_of(
    export: Export, rows: pa.Table, table: ExportedTable
) -> tuple[list[tuple[tuple[str, ...], str]], np.ndarray]:
    """The areas of a table, by the codes on the way down and a name, and the index of each row's.

    An area whose branch ends early has no codes of further levels.
    """
    columns = [one for one in table.columns if one.attribute in export.results.area_levels]
    indices = np.zeros(rows.num_rows, np.int64)
    found: list[tuple[str, ...]] = [()]
    for column in columns:
        cells = rows[column.name].combine_chunks()
        texts = cells.dictionary.to_pylist()
        both = indices * len(texts) + cells.indices.to_numpy()
        kept, indices = np.unique(both, return_inverse=True)
        pairs = (divmod(one, len(texts)) for one in kept.tolist())
        found = [(*found[before], texts[own]) for before, own in pairs]
    n_codes = sum(column.role == "code" for column in columns)
    paths = [(tuple(filter(None, one[:n_codes])), "".join(one[n_codes:])) for one in found]
    return paths, indices


def _key(path: tuple[str, ...]) -> str:
    """An area in place of an attribute among codes."""
    return "\0".join(path)


def _whose(export: Export, attribute: str) -> str:
    """The attribute whose dimension has the values of one: a level has none of its own, unless
    its groups are the times.
    """
    if attribute in export.results.area_levels:
        return _AREAS
    level = export.levels.get(attribute)
    return attribute if level is None or attribute == export.imprint.time else level.of


def identifiers(
    values: Collection[_Values],
    *,
    groups: Collection[_Values] = (),
    escape_formulas: bool = False,
) -> dict[_Values, str]:
    """The identifier of each value in its code list: its code, where that can be one.

    values: their codes first
    groups: those that are parents of others, whose identifiers must begin with a letter
    escape_formulas: whether those that spreadsheets take for formulas have an underscore in front
    """
    identifiers: dict[_Values, str] = {}
    taken = {TOTAL}
    others = []
    for value in values:
        code = value[0]
        pattern = r"[A-Za-z][A-Za-z0-9_-]*" if value in groups else r"[A-Za-z0-9_@$-]+"
        if escape_formulas and begins_formula(code):
            others.append(value)
        elif re.fullmatch(pattern, code) and code not in taken:
            identifiers[value] = code
            taken.add(code)
        else:
            others.append(value)
    for value in others:
        text = value[0]
        if number := _AND_MORE.fullmatch(text):
            text = f"≥{number[1]}"
        text = _SIGN.sub(lambda sign: f" {_SIGNS[sign[0]]} ", text)
        text = "".join(sign for sign in normalize("NFKD", text) if not combining(sign))
        kept = "A-Za-z0-9-" if value in groups else "A-Za-z0-9@$-"
        plain = re.sub(f"[^{kept}]+", "_", text).strip("_") or "code"
        if value in groups and not plain[0].isalpha():
            plain = f"G_{plain}"
        if escape_formulas and begins_formula(plain):
            plain = f"_{plain}"
        identifier, number = plain, 1
        while identifier in taken:
            number += 1
            identifier = f"{plain}_{number}"
        identifiers[value] = identifier
        taken.add(identifier)
    return {value: identifiers[value] for value in values}


def _observations(
    export: Export,
    rows: pa.Table,
    table: ExportedTable,
    cube: Cube,
    dimensions: Mapping[str, Dimension],
) -> pa.Table:
    """The rows of a table as SDMX-CSV has them."""
    columns: dict[str, pa.Array] = {
        "STRUCTURE": _constant("dataflow", rows),
        "STRUCTURE_ID": _constant(cube.dataflow, rows),
        "ACTION": _constant("I", rows),  # information: whoever loads it decides what it does
    }
    time = export.imprint.time
    times: dict[str, pa.Array] = {}  # behind what is counted, as people read it
    if cube.frequency:
        times[FREQ] = _constant(cube.frequency, rows)
        times[TIME_PERIOD] = _constant(export.imprint.period, rows)
    asked = {_whose(export, attribute): attribute for attribute in table.attributes}
    of_path = {}
    if _AREAS in dimensions:
        of_path = {path: code for (_, _, path), code in dimensions[_AREAS].codes.items()}
    for whose, dimension in dimensions.items():
        attribute = asked.get(whose)
        if whose == time:
            if attribute is not None:
                values, indices, own = values_of(rows, table, time)
                texts = [export.imprint.period if is_whole(one, own) else one[0] for one in values]
                times[TIME_PERIOD] = pa.DictionaryArray.from_arrays(
                    indices.astype(np.int32), pa.array(texts)
                )
            continue
        if attribute is None:
            columns[dimension.id] = _constant(TOTAL, rows)
            continue
        if whose == _AREAS:
            areas, indices = _areas_of(export, rows, table)
            of_areas = [of_path[_key(path)] for path, _ in areas]
            columns[dimension.id] = pa.DictionaryArray.from_arrays(
                indices.astype(np.int32), pa.array(of_areas)
            )
            continue
        values, indices, own = values_of(rows, table, attribute)
        codes = [
            TOTAL if is_whole(one, own) else dimension.codes[*one, attribute] for one in values
        ]
        columns[dimension.id] = pa.DictionaryArray.from_arrays(
            indices.astype(np.int32), pa.array(codes)
        )
    columns |= times
    for column in table.columns:
        if _is_of_observations(column):
            figures = rows[column.name].combine_chunks()
            if not column.is_number:
                said = [export.said(text, column) for text in figures.dictionary.to_pylist()]
                figures = pa.DictionaryArray.from_arrays(figures.indices, pa.array(said))
            columns[_concept(column)] = figures
    units, names = units_of(export, table, rows)
    columns[UNIT_MEASURE] = pa.DictionaryArray.from_arrays(
        units, pa.array([_unit_code(name) for name in names])
    )
    columns[UNIT_MULT] = _constant(UNITS, rows)
    columns[DECIMALS] = _constant(str(decimals_of(rows)), rows)
    columns[OBS_STATUS] = statuses_of(rows)
    columns[CONF_STATUS] = _constant(FREE, rows)
    return pa.table(columns)


def _constant(text: str, rows: pa.Table) -> pa.Array:
    indices = np.zeros(rows.num_rows, dtype=np.int32)
    return pa.DictionaryArray.from_arrays(indices, pa.array([text]))


FORMAT = Format(
    "SDMX 3.0",
    ENGLISH.text("files_sdmx"),
    write_sdmx,
    has_files_of_its_own=True,
    said_in="files_sdmx",
)
