"""An Excel workbook of released tables: privacy label, a list, then a sheet a table."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from rpexplore.common.files import whole_file
from rpexplore.common.processes import Progress, no_progress
from rpexplore.common.text import capitalised, plural
from rpexplore.domain.result_schema import Column, Role, Schema
from rpexplore.errors import ReleaseError
from rpexplore.releases.adaptive_release import BOUND, BOUND_MEANING
from rpexplore.releases.items import Item, PartReader
from rpexplore.results.publication import (
    CV_MEANING,
    SMOOTH_CV_MEANING,
    SMOOTHING_GAINS_MEANING,
    Publication,
    SmoothingGain,
)
from rpexplore.results.results import AnyResults, load_any_results
from rpexplore.results.workbook_file import BOLD, LINK, WRAPPED, SheetCell, WorkbookFile

if TYPE_CHECKING:
    import pandas as pd


# Tables are written one after another, so that memory does not grow with them. Numbers are
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
_ALL_PATTERNS = sorted({_PATTERN, *_PATTERNS.values()})


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
    items = results.items
    positions = _positions(items, tables)
    sheets = _sheets(items, positions)
    n_written, n_cells = 0, sum(sheet.stop - sheet.start for sheet in sheets)
    names = [CONTENTS, *(sheet.name for sheet in sheets)]
    with whole_file(output) as part, WorkbookFile(part, names, _ALL_PATTERNS) as workbook:
        publishable: list[int] = []  # cells of each sheet
        gains: list[str] = []  # of each sheet's table, "" where it is not known
        columns: dict[Column, None] = {}  # of all tables
        for position in positions:
            released = read(items[position])
            frame = publication.table(released)
            described = Schema.of(frame).columns
            columns |= dict.fromkeys(column for column in described if not column.names_cells)
            looks = [_look_of(column) for column in described]
            accurate = publication.publishable(released)
            gain = SmoothingGain.of_table(released)
            for number, sheet in enumerate(sheets, start=1):
                if sheet.position != position:
                    continue
                rows = slice(sheet.start, sheet.stop)
                of_sheet = {name: _shown(frame[name].iloc[rows]) for name in frame.columns}
                workbook.write_table(number, of_sheet, looks, _WIDTH)
                publishable.append(int(np.sum(accurate[rows])))
                gains.append("" if gain is None else gain.text)
            n_written += items[position].n_rows
            on_progress("Writing the workbook", n_written / n_cells)
        label = label_of_workbook(results, list(columns), publication, sum(publishable), n_cells)
        facts: dict[str, Sequence[int | str]] = {"Publishable": publishable}
        if any(item.bound for item in items):
            facts[BOUND] = [items[sheet.position].bound for sheet in sheets]
        if any(gains):
            facts[SMOOTHING_GAINS] = gains
        workbook.write_cells(0, _contents(label, items, sheets, facts), _WIDTHS)
    return sheets


def workbook_bytes(folder: Path, publication: Publication = _USUAL) -> bytes:
    """The file that `write_workbook` writes of all tables in a folder, for a download."""
    with TemporaryDirectory(prefix="rpexplore-") as temporary:
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


def _look_of(column: Column) -> str:
    """How the numbers of a column are shown; "" of texts."""
    return _PATTERNS.get(column.role, _PATTERN) if column.is_number else ""


def _shown(column: "pd.Series") -> "pd.Series":
    """A column with yes and no for true and false."""
    return column.map(_FLAGS) if column.dtype == bool else column


def _contents(
    label: Iterable[tuple[str, str]],
    items: Sequence[Item],
    sheets: Sequence[Sheet],
    facts: Mapping[str, Sequence[int | str]],
) -> Iterator[Sequence[SheetCell]]:
    """The first sheet: what is promised, how to read the numbers, and a link to each table.

    facts: more columns of the list, by their heads: a number or a text for each sheet
    """
    yield [SheetCell("Noisy tables under differential privacy", BOLD)]
    yield []
    for term, sentence in label:
        yield [SheetCell(term, BOLD), SheetCell(sentence, WRAPPED)]
    yield []
    yield [SheetCell(head, BOLD) for head in (*_LIST_HEADS, *facts)]
    parts = Counter(listed.position for listed in sheets)
    for position, listed in enumerate(sheets):
        item = items[listed.position]
        yield [
            SheetCell(item.name),
            SheetCell(_title(item, listed, parts[listed.position])),
            SheetCell(listed.name, LINK, sheet=listed.name),
            SheetCell(listed.stop - listed.start),
            *(SheetCell(of_sheets[position]) for of_sheets in facts.values()),
        ]


def _title(item: Item, sheet: Sheet, n_parts: int) -> str:
    """ "age × sex", "total", "region, part 1 of 2"."""
    part = f", part {sheet.start // (SHEET_ROWS - 1) + 1} of {n_parts}" if n_parts > 1 else ""
    return item.title + part


# ---- The privacy label of a workbook: what is promised, and how to read its numbers.


SMOOTHING_GAINS = "Smoothing gains"

_UNBIASED = "Noisy counts. Not rounded; may be negative."
_WITH_SUMS = "Noisy counts and sums, and means of both. Not rounded; may be negative."
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
        *([("Amounts", clamping)] if (clamping := _clamping(results.readers)) else []),
        ("Adding up", results.adding_up),
    ]


def _clamping(parts: Iterable[PartReader]) -> str:
    """What was done to amounts beyond their limits; "" without amounts."""
    said = dict.fromkeys(
        sentences
        for part in parts
        for item in part.items
        if (sentences := part.clamping_of(item.attributes))
    )
    return " ".join(said)


def _reading(part: PartReader) -> str:
    if part.has_unbiased:
        return _PROCESSED
    if part.is_smooth:
        return _ESTIMATED
    return _WITH_SUMS if _clamping([part]) else _UNBIASED
