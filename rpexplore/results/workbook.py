"""An Excel workbook of released tables: privacy label, a list, then a sheet a table."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from rpexplore.common.files import whole_file
from rpexplore.common.processes import Progress, no_progress
from rpexplore.common.text import capitalised, plural
from rpexplore.domain.result_schema import Column, Role, Schema
from rpexplore.errors import ReleaseError
from rpexplore.releases.adaptive_release import BOUND, BOUND_MEANING
from rpexplore.releases.items import Item
from rpexplore.results.publication import (
    CV_MEANING,
    SMOOTH_CV_MEANING,
    SMOOTHING_GAINS_MEANING,
    Publication,
    SmoothingGain,
)
from rpexplore.results.results import AnyResults, load_any_results

if TYPE_CHECKING:
    from xlsxwriter.format import Format
    from xlsxwriter.worksheet import Worksheet


# ---- An Excel workbook of released tables: the privacy label and a list first, then a sheet a
# table.
#
# Rows are written one after another, so that memory does not grow with the tables. Numbers are
# numbers, everything else is text: nothing in a codebook can become a formula.


SHEET_ROWS = 1_048_576  # of Excel, the column heads among them
MAX_CELLS = 2_000_000  # of all tables: some minutes of work
MAX_TABLES = 800  # each sheet is a file as long as the workbook is written

CONTENTS = "Privacy label"

_NAME_LENGTH = 31  # of a sheet, in units of UTF-16
_NOT_IN_NAMES = re.compile(r"[\[\]:*?/\\']|[^ -\U0010ffff]")
_WIDTHS = (28, 90, 34, 12, 12, 16)  # of the first sheet's columns, in characters
_WIDTH = 16
_LIST_HEADS = ("File", "Attributes", "Sheet", "Cells")
_FLAGS = {True: "yes", False: "no"}
_USUAL = Publication()
_PATTERN = "#,##0.0"  # how numbers are shown; all their digits are there
_PATTERNS: Mapping[Role, str] = {
    "error": "#,##0.00",
    "model_error": "#,##0.00",
    "margin": "#,##0.00",
    "target": "#,##0.00",
    "cv": "0.0%",
}


@dataclass(frozen=True)
class Sheet:
    """One sheet: a table, or a part of one that has too many rows.

    position     of the table in `items`
    start, stop  the rows of the table that are on it
    """

    name: str
    position: int
    start: int
    stop: int


def write_workbook(
    results: AnyResults,
    output: str | Path,
    *,
    tables: Iterable[Sequence[str]] | None = None,
    publication: Publication = _USUAL,
    read: Callable[[Item], pd.DataFrame] = lambda item: item.frame,
    on_progress: Progress = no_progress,
) -> list[Sheet]:
    """Write an Excel workbook of tables to the file `output`, replacing what was there.

    The first sheet has the privacy label and a list of the tables with links to them. A table with
    more rows than a sheet can have is on several, which the list says.

    Args:
        tables: The attributes of those to write, on all levels of areas; all if left out.
        publication: Which cells are marked as publishable, and what becomes of the others.
        read: The rows of a table, which may have further columns behind those of its file.

    Returns:
        The sheets of tables.

    Raises:
        ReleaseError: If these are more cells or tables than a workbook is good for, if a label is
            too long for a cell, or if there is no such table.
        OSError: If the file cannot be written.
    """
    from xlsxwriter import Workbook  # which no other verb waits for
    from xlsxwriter.exceptions import FileCreateError

    items = results.items
    positions = _positions(items, tables)
    sheets = _sheets(items, positions)
    n_written, n_cells = 0, sum(sheet.stop - sheet.start for sheet in sheets)
    with whole_file(output) as part:
        # Rows wait in files beside it: whatever stops the writing, they are cleared with it.
        workbook = Workbook(str(part), {"constant_memory": True, "tmpdir": str(part.parent)})
        contents = workbook.add_worksheet(CONTENTS)
        look_of = _looks(workbook.add_format)
        publishable: list[int] = []  # cells of each sheet
        gains: list[str] = []  # of each sheet's table, "" where it is not known
        columns: dict[Column, None] = {}  # of all tables
        for position in positions:
            released = read(items[position])
            frame = publication.table(released)
            columns |= dict.fromkeys(Schema.of(frame).figures)
            accurate = publication.publishable(released)
            gain = SmoothingGain.of_table(released)
            for sheet in (sheet for sheet in sheets if sheet.position == position):
                rows = frame.iloc[sheet.start : sheet.stop]
                _write_cells(workbook.add_worksheet(sheet.name), rows, look_of)
                publishable.append(int(np.sum(accurate[sheet.start : sheet.stop])))
                gains.append("" if gain is None else gain.text)
            n_written += items[position].n_rows
            on_progress("Writing the workbook", n_written / n_cells)
        label = label_of_workbook(results, list(columns), publication, sum(publishable), n_cells)
        facts: dict[str, Sequence[int | str]] = {"Publishable": publishable}
        if any(item.bound for item in items):
            facts[BOUND] = [items[sheet.position].bound for sheet in sheets]
        if any(gains):
            facts[SMOOTHING_GAINS] = gains
        _write_contents(contents, workbook.add_format, label, items, sheets, facts)
        try:
            workbook.close()
        except FileCreateError as error:
            raise OSError(*error.args) from error
    return sheets


def workbook_bytes(folder: Path, publication: Publication = _USUAL) -> bytes:
    """The file that `write_workbook` writes of all tables in a folder, for a download."""
    with TemporaryDirectory() as temporary:
        path = Path(temporary) / "tables.xlsx"
        write_workbook(load_any_results(folder), path, publication=publication)
        return path.read_bytes()


def check_size(n_tables: int, n_cells: int) -> None:
    """Raise `ReleaseError` for more than a workbook is good for."""
    for count, most, noun in ((n_cells, MAX_CELLS, "cell"), (n_tables, MAX_TABLES, "table")):
        if count > most:
            raise ReleaseError(
                f"A workbook holds at most {plural(most, noun)}, and these are {count:,}; choose "
                "fewer tables, or open the CSV or Parquet files of the release."
            )


def _positions(items: Sequence[Item], tables: Iterable[Sequence[str]] | None) -> list[int]:
    """The places of some tables in the list of all."""
    if tables is None:
        return list(range(len(items)))
    positions_of: dict[frozenset[str], list[int]] = {}
    for position, item in enumerate(items):
        positions_of.setdefault(frozenset(item.attributes), []).append(position)
    positions: set[int] = set()
    for table in tables:
        if frozenset(table) not in positions_of:
            raise ReleaseError(
                f"There is no table of ({' × '.join(table) or 'total'}) here; choose one of those "
                "that were released."
            )
        positions |= set(positions_of[frozenset(table)])
    return sorted(positions)


def _sheets(items: Sequence[Item], positions: Sequence[int]) -> list[Sheet]:
    check_size(len(positions), sum(items[position].n_rows for position in positions))
    sheets = []
    for position in positions:
        n_rows = items[position].n_rows
        starts = range(0, n_rows, SHEET_ROWS - 1)
        for number, start in enumerate(starts, start=1):
            part = f".{number}" if len(starts) > 1 else ""
            name = sheet_name(f"{position:04d}{part} {items[position].title}")
            sheets.append(Sheet(name, position, start, min(start + SHEET_ROWS - 1, n_rows)))
    return sheets


def sheet_name(text: str) -> str:
    """A name that Excel takes, beginning with the number of the table's file; each is another."""
    safe = _NOT_IN_NAMES.sub("_", text)
    # An astral character takes two units, and is not cut in half.
    cut = safe.encode("utf-16-le")[: 2 * _NAME_LENGTH].decode("utf-16-le", "ignore")
    return cut.strip()


def _looks(add_format: Callable[[dict[str, Any]], "Format"]) -> Callable[[Role], "Format"]:
    """The format of numbers in a column, by its role; each is made once for a workbook."""
    patterns = {_PATTERN, *_PATTERNS.values()}
    made = {pattern: add_format({"num_format": pattern}) for pattern in sorted(patterns)}
    return lambda role: made[_PATTERNS.get(role, _PATTERN)]


def _write_contents(
    sheet: "Worksheet",
    add_format: Callable[[dict[str, Any]], "Format"],
    label: Iterable[tuple[str, str]],
    items: Sequence[Item],
    sheets: Sequence[Sheet],
    facts: Mapping[str, Sequence[int | str]],
) -> None:
    """The first sheet: what is promised, how to read the numbers, and a link to each table.

    facts: more columns of the list, by their heads: a number or a text for each sheet
    """
    bold = add_format({"bold": True, "valign": "top"})
    wrapped = add_format({"text_wrap": True})
    link_look = add_format({"font_color": "#1d4f8f", "underline": 1})
    for column, width in enumerate(_WIDTHS):
        sheet.set_column(column, column, width)
    write_text(sheet, 0, 0, "Noisy tables under differential privacy", bold)
    row = 1
    for term, sentence in label:
        row += 1
        write_text(sheet, row, 0, term, bold)
        write_text(sheet, row, 1, sentence, wrapped)
    row += 2
    for column, head in enumerate([*_LIST_HEADS, *facts]):
        write_text(sheet, row, column, head, bold)
    parts = Counter(listed.position for listed in sheets)
    for position, listed in enumerate(sheets):
        row += 1
        item = items[listed.position]
        write_text(sheet, row, 0, item.name)
        write_text(sheet, row, 1, _title(item, listed, parts[listed.position]))
        link = f"internal:'{listed.name}'!A1"
        _done(sheet.write_url(row, 2, link, link_look, listed.name), listed.name)
        _number(sheet, row, 3, listed.stop - listed.start)
        for column, of_sheets in enumerate(facts.values(), start=len(_LIST_HEADS)):
            fact = of_sheets[position]
            if isinstance(fact, int):
                _number(sheet, row, column, fact)
            else:
                write_text(sheet, row, column, fact)


def _title(item: Item, sheet: Sheet, n_parts: int) -> str:
    """ "age × sex", "total", "region, part 1 of 2"."""
    part = f", part {sheet.start // (SHEET_ROWS - 1) + 1} of {n_parts}" if n_parts > 1 else ""
    return item.title + part


def _write_cells(
    sheet: "Worksheet", frame: pd.DataFrame, look_of: Callable[[Role], "Format"]
) -> None:
    """Column heads, and one row a cell."""
    sheet.freeze_panes(1, 0)
    sheet.set_column(0, len(frame.columns) - 1, _WIDTH)
    columns = Schema.of(frame).columns
    looks = [look_of(column.role) if column.is_number else None for column in columns]
    for position, column in enumerate(columns):
        write_text(sheet, 0, position, column.name)
    for row, values in enumerate(frame.itertuples(index=False, name=None), start=1):
        for column, (value, look) in enumerate(zip(values, looks, strict=True)):
            if look is None:
                write_text(sheet, row, column, _FLAGS.get(value, str(value)))
            elif not math.isnan(value):
                _number(sheet, row, column, value, look)


def _number(
    sheet: "Worksheet", row: int, column: int, value: float, look: "Format | None" = None
) -> None:
    _done(sheet.write_number(row, column, value, look), value)


def write_text(
    sheet: "Worksheet", row: int, column: int, text: str, look: "Format | None" = None
) -> None:
    _done(sheet.write_string(row, column, text, look), text)


def _done(problem: int, content: object) -> None:
    """Raise `ReleaseError` for what the library has left out, a text that is too long."""
    if problem:
        raise ReleaseError(
            f"A cell of a workbook cannot hold {str(content)[:60]!r}…; shorten the label in the "
            "codebook, or use the CSV files."
        )


# ---- The privacy label of a workbook: what is promised, and how to read its numbers.


SMOOTHING_GAINS = "Smoothing gains"

_UNBIASED = "Noisy counts. Not rounded; may be negative."
_PROCESSED = (
    "The counts after post-processing; beside them the unbiased noisy counts, with their own "
    "standard error and interval."
)
_ESTIMATED = "Estimates by a model, from measurements that were selected while they were made."
# What columns of these roles are called in the label, in this order.
_TERMS: dict[Role, str] = {
    "model_error": "Model error",
    "error": "Standard error",
    "upper": "95 % interval",
    "margin": "95 % margin",
    "target": "Target",
    "share": "Share",
    "share_error": "Error of the share",
}


def label_of_workbook(
    results: AnyResults,
    columns: Sequence[Column],
    publication: Publication,
    n_publishable: int,
    n_cells: int,
) -> list[tuple[str, str]]:
    """Terms and what there is to say of them.

    columns: all that are on some sheet, but those of labels
    """
    schema = Schema(tuple(columns))
    meanings: dict[Role, str] = {}
    for column in columns:  # parts of a release may mean something else by a role
        if column.meaning not in meanings.setdefault(column.role, ""):
            meanings[column.role] = f"{meanings[column.role]} {column.meaning}".strip()
    terms = [(_TERMS[role], meanings[role]) for role in _TERMS if role in meanings]
    if schema.is_smooth and schema.has_unbiased:
        terms.insert(1, (SMOOTHING_GAINS, SMOOTHING_GAINS_MEANING))
    if any(item.bound for item in results.items):
        terms.append((BOUND, BOUND_MEANING))
    values = dict.fromkeys(f"{_reading(one)} {capitalised(one.label)}." for one in results.readers)
    smooth = dict.fromkeys(one.is_smooth for one in results.readers)
    cvs = [SMOOTH_CV_MEANING if one else CV_MEANING for one in smooth]
    rules = [f"{publication.rule(smooth=one)}." for one in smooth]
    return [
        ("Guarantee", results.guarantee),
        ("Values", " ".join(values)),
        ("CV", " ".join(cvs)),
        ("Publishable", " ".join([*rules, publication.describe(n_publishable, n_cells)])),
        *terms,
        ("Adding up", results.adding_up),
    ]


def _reading(part: AnyResults) -> str:
    if part.has_unbiased:
        return _PROCESSED
    return _ESTIMATED if part.is_smooth else _UNBIASED
