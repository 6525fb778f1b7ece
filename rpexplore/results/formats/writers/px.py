"""PX files (PC-Axis), which the portals of many statistical offices read: px/NNNN_age_sex.px.

The format, version 2013: https://www.pxtools.net/px-file-format/px-2013. A file is one cube: its
variables are the attributes of the table, and last the figures of a cell (count, standard error,
ends of the interval). A cube has all combinations of its values; attributes whose values do not
all occur together, such as the levels of areas, are one variable. A figure that is empty is "..",
and a count that is printed in words "...", with the words as its symbol.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from textwrap import wrap

import numpy as np
import pyarrow as pa

from rpexplore.common.text import numbered_apart
from rpexplore.domain.result_schema import Schema
from rpexplore.results.formats.cube import Value, cube_of, is_time, units_of_columns
from rpexplore.results.formats.export import Export, ExportedTable, Format
from rpexplore.results.formats.export_figures import decimals_of
from rpexplore.results.formats.languages import ENGLISH
from rpexplore.results.formats.row_values import frequency_of_times, period_of

FOLDER = "px"
MISSING = '".."'  # "is not known", in a cell
SMALL = '"..."'  # in a cell of a count that is printed in words

_FIGURE = "figure"  # the code of the last variable
_SIGNS_PER_LINE = 200  # programs read lines of up to 256
_MOST_DECIMALS, _MOST_SHOWN = 15, 6
# How the values of a variable of periods look here, and what PX files write for them.
_PERIODS = {
    "A1": (r"(\d{4})", r"\1"),
    "Q1": (r"(\d{4})-Q([1-4])", r"\1\2"),
    "M1": (r"(\d{4})-(\d\d)", r"\1\2"),
    "W1": (r"(\d{4})-W(\d\d)", r"\1\2"),
}


def write_px(export: Export, folder: Path) -> None:
    """Write a file a table; raises `ReleaseError` for one with rows that are called alike, and for
    an attribute of time whose values are no periods.
    """
    frequency_of_times(export)
    (folder / FOLDER).mkdir()
    for table in export.tables:
        table.refuse_alike("PX files")
        rows = export.rows(table)
        text = "\n".join([*_keywords(export, table, rows), ""])
        (folder / FOLDER / f"{table.name}.px").write_text(text, encoding="utf-8", newline="\n")


def _keywords(export: Export, table: ExportedTable, rows: pa.Table) -> Iterable[str]:
    """The lines of a file, in the order that the format recommends."""
    variables, order = cube_of(rows, table)
    heads = {name: export.head(title) for name, title in export.attribute_titles.items()}
    titles = _different([_plain("/".join(heads[name] for name in names)) for names, _ in variables])
    figures = [column for column in table.columns if column.is_number]
    figure_names = [export.head_of(column) for column in figures]
    figure = _different([*titles, export.language.text("figure")])[-1]
    units = units_of_columns(export, table, rows)
    decimals = min(decimals_of(rows), _MOST_DECIMALS)
    errors = np.asarray(rows[Schema.of(rows).error_and_count[0]], dtype=float)
    smallest = np.min(errors, where=errors > 0, initial=np.inf)
    shown = int(np.clip(1 - np.floor(np.log10(smallest)), 0, min(decimals, _MOST_SHOWN)))
    imprint = export.imprint
    title_of_table = export.title_of(table)

    yield 'CHARSET="ANSI";'
    yield 'AXIS-VERSION="2013";'
    yield 'CODEPAGE="utf-8";'
    yield f'LANGUAGE="{export.language.code}";'
    yield f'CREATION-DATE="{datetime.fromisoformat(export.created):%Y%m%d %H:%M}";'
    yield f"DECIMALS={decimals};"
    yield f"SHOWDECIMALS={shown};"
    yield _keyword("MATRIX", [table.name[:20]])
    yield _keyword("SUBJECT-CODE", [export.name[:20]])
    yield _keyword("SUBJECT-AREA", [export.title])
    yield _keyword("DESCRIPTION", [f"{export.title}: {title_of_table}"])
    yield _keyword("TITLE", [f"{export.title}: {title_of_table}"])
    yield _keyword("CONTENTS", [export.figures])
    yield _keyword("UNITS", [units[figures[0].name]])
    if titles:
        yield _keyword("STUB", titles)
    yield _keyword("HEADING", [figure])
    yield f'CONTVARIABLE="{figure}";'
    for title, (attributes, values) in zip(titles, variables, strict=True):
        name = attributes[0] if len(attributes) == 1 else ""
        labels = _different([export.label(name, label or code) for code, label in values])
        yield _keyword(f'VALUES("{title}")', labels)
    yield _keyword(f'VALUES("{figure}")', figure_names)
    for title, (attributes, values) in zip(titles, variables, strict=True):
        if scaled := _period(export, attributes, [code for code, _ in values]):
            scale, periods = scaled
            listed = _keyword(f'TIMEVAL("{title}")', periods)
            yield listed.replace("=", f"=TLIST({scale}),", 1)
    for title, (_, values) in zip(titles, variables, strict=True):
        yield _keyword(f'CODES("{title}")', _different([code for code, _ in values]))
    yield _keyword(f'CODES("{figure}")', [column.name for column in figures])
    for title, (attributes, _) in zip(titles, variables, strict=True):
        names = [export.attribute_names[attribute] for attribute in attributes]
        yield _keyword(f'VARIABLECODE("{title}")', ["_".join(names)])
    yield _keyword(f'VARIABLECODE("{figure}")', [_FIGURE])
    for column, name in zip(figures, figure_names, strict=True):
        yield _keyword(f'UNITS("{name}")', [units[column.name]])
        if period := period_of(export, table):
            yield _keyword(f'REFPERIOD("{name}")', [period])
        yield _keyword(f'VALUENOTE("{figure}","{name}")', [export.meaning_of(column, table)])
    if (schema := Schema.of(rows)).has("shown"):
        yield _keyword("DATASYMBOL3", [export.language.text("fewer_than", n=export.fewer_than)])
    yield _keyword("SOURCE", [imprint.publisher or export.title])
    of_all, of_cells = _notes(export, rows, table, variables, order)
    yield _keyword("NOTEX", [f"{_plain(export.kind)}#{_plain(export.guarantee)}"])
    said = [export.adding_up, table.note, imprint.license, *of_all]
    if said := [_plain(sentence) for sentence in said if sentence]:
        yield _keyword("NOTE", ["#".join(said)])
    yield from of_cells
    yield "DATA="
    numbers = [np.asarray(rows[column.name], dtype=float)[order] for column in figures]
    texts = [_texts(column, decimals) for column in numbers]
    if schema.has("shown"):
        words = rows[schema.name("shown")].to_numpy()[order]
        place = [column.role for column in figures].index("value")
        texts[place] = [
            SMALL if said else text for said, text in zip(words, texts[place], strict=True)
        ]
    yield "\n".join(" ".join(line) + " " for line in zip(*texts, strict=True))
    yield ";"


def _different(texts: Sequence[str]) -> list[str]:
    """The texts without signs that PX files cannot hold; later ones that are alike are numbered."""
    return numbered_apart(map(_plain, texts))


def _period(
    export: Export, attributes: Sequence[str], codes: Sequence[str]
) -> tuple[str, list[str]] | None:
    """The time scale of a variable, and its values as PX files write them; None if it has none."""
    if len(attributes) > 1 or not is_time(export, attributes[0]):
        return None
    for scale, (here, there) in _PERIODS.items():
        if all(re.fullmatch(here, code) for code in codes):
            return scale, [re.sub(here, there, code) for code in codes]
    return None


def _notes(
    export: Export,
    rows: pa.Table,
    table: ExportedTable,
    variables: Sequence[tuple[tuple[str, ...], list[Value]]],
    order: np.ndarray,
) -> tuple[list[str], list[str]]:
    """What columns of words say of all cells, and the keywords of what they say of some."""
    of_all, of_cells = [], []
    sizes = [len(values) for _, values in variables]
    for column in table.columns:
        if column.is_number or column.names_cells or column.role in ("status", "shown"):
            continue
        texts = rows[column.name].combine_chunks()
        said, indices = texts.dictionary.to_pylist(), texts.indices.to_numpy()[order]
        said = [export.said(text, column) for text in said]
        head = export.head_of(column)
        if np.all(indices == indices[0]):
            of_all += [f"{head}: {said[indices[0]]}"] if said[indices[0]] else []
            continue
        names = [_different([code for code, _ in values]) for _, values in variables]
        for place in np.flatnonzero([bool(said[index]) for index in indices]):
            cell = np.unravel_index(place, sizes)
            codes = [of_variable[at] for at, of_variable in zip(cell, names, strict=True)]
            key = ",".join(f'"{code}"' for code in [*codes, "*"])
            of_cells.append(_keyword(f"CELLNOTE({key})", [f"{head}: {said[indices[place]]}"]))
    return of_all, of_cells


def _texts(numbers: np.ndarray, decimals: int) -> list[str]:
    if np.all(numbers == np.rint(numbers)):  # NaN is not equal to itself
        decimals = 0
    texts = (f"{number:.{decimals}f}" for number in numbers.tolist())
    return [MISSING if text == "nan" else text for text in texts]


def _keyword(keyword: str, texts: Iterable[str]) -> str:
    """A keyword with its texts, in lines that all programs read: long texts go on in the next."""
    lines, room = [f"{keyword}="], 0
    for text in map(_plain, texts):
        parts = wrap(text, _SIGNS_PER_LINE, drop_whitespace=False) or [""]
        if len(parts) > 1 or len(text) > room:
            lines, room = [*lines, ""], _SIGNS_PER_LINE
        lines[-1] += "\n".join(f'"{part}"' for part in parts) + ","
        room -= len(text) + 3
    first, *others = lines
    return "\n".join([first + others[0], *others[1:]]).removesuffix(",") + ";"


def _plain(text: str) -> str:
    """A text without quotation marks and line ends, which no PX text can have."""
    return re.sub(r"\s+", " ", text.replace('"', "'")).strip()


FORMAT = Format(
    "PX (PC-Axis)",
    ENGLISH.text("files_px"),
    write_px,
    has_files_of_its_own=True,
    said_in="files_px",
)
