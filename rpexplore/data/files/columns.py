"""The columns of a data file: their names, and, where a curator asks for it, the values they hold.

Names and declared types come from the head of the file. Values come from the records: they are
private, and that a value is listed is protected by nothing. How often one occurs is never counted.
"""

# pyarrow.compute makes its functions when it is imported, so pyright cannot know them.
# pyright: reportAttributeAccessIssue=false

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from rpexplore.common.concurrency import Progress, no_progress
from rpexplore.data.coding import as_text, of_known_type
from rpexplore.data.files.csv_batches import csv_header
from rpexplore.data.files.listing import record_files
from rpexplore.data.files.source import FileSource
from rpexplore.data.files.statistics_batches import statistics_variables
from rpexplore.errors import DataError

MOST_VALUES = 100  # of one column; more are an identifier, a measurement or free text
MOST_NUMBERS = 20  # of a column of whole numbers; more are a measurement, and the largest is one's
MOST_LETTERS = 100  # of one value; longer ones are free text

YES_OR_NO, WHOLE, NUMBERS, TEXT, CATEGORIES, DATES = (
    "yes or no", "whole numbers", "numbers", "text", "categories", "dates",
)  # fmt: skip
_NUMBER = re.compile(r"[\W\d_]*\d[\W\d_]*")  # also a date or a telephone number: no letter in it


@dataclass(frozen=True)
class Column:
    """A column by its name.

    declared  the type that the file declares, in words; "" where it declares none
    values    the values that this type can have, where that is settled
    """

    name: str
    declared: str = ""
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class Header:
    """The columns that can be attributes, and how many cannot: nameless, repeated or nested."""

    columns: tuple[Column, ...]
    left_out: int = 0


def read_header(path: str | Path) -> Header:
    """The columns of a file of records, or of a folder of them. Looks at no record.

    Of a folder: those of its first file, and the keys of the folders around it (key=value).

    Raises `DataError` for a file that cannot be read, or whose first line may be a record.
    """
    source = FileSource(path)
    with source.readable():
        first = record_files(source.path)[0]
        of_kind = {"csv": _csv_columns, "parquet": _parquet_columns}.get(
            first.kind, _statistics_columns
        )
        return header_of(
            source.name, [*of_kind(first.path), *(Column(n, TEXT) for n in first.keys)]
        )


def header_of_bytes(content: bytes, filename: str) -> Header:
    """`read_header` of a file that is not on the disk."""
    try:
        if content.startswith(b"PAR1"):
            columns = _parquet_columns(pa.BufferReader(content))
        else:
            columns = _csv_columns(Path(filename), content)
    except (OSError, pa.ArrowException):
        raise DataError(
            f"The head of {filename!r} cannot be read; check that the file is complete, and that "
            "it ends in .gz if it is compressed."
        ) from None
    return header_of(filename, columns)


def header_of(name: str, columns: Sequence[Column]) -> Header:
    """The columns of a file that can be attributes; `DataError`, which names it, if none can."""
    counts = Counter(column.name for column in columns)
    usable = [
        column
        for column in columns
        if column.name.strip() and column.name.isprintable() and counts[column.name] == 1
    ]
    if not usable:
        raise DataError(f"The file {name!r} names no columns; put their names in a first line.")
    return Header(tuple(usable), len(columns) - len(usable))


@dataclass(frozen=True, eq=False, repr=False)
class ColumnValues:
    """The values of each column of the records in order, or why they are not listed.

    Private; the repr shows nothing.
    """

    values: Mapping[str, tuple[str, ...]] = field(repr=False)
    refused: Mapping[str, str] = field(repr=False)


def read_column_values(
    path: str | Path,
    names: Sequence[str],
    *,
    most: int = MOST_VALUES,
    on_progress: Progress = no_progress,
) -> ColumnValues:
    """The values that occur in these columns, sorted, as the categories of a domain have them.

    What is missing is no value. Sorted, so that the order tells nothing of the records.

    Raises `DataError` for a file that cannot be read.
    """
    source = FileSource(path)
    values: dict[str, set[str]] = {name: set() for name in names}
    refused: dict[str, str] = {}
    with source.readable():
        for batch, share in source.batches(names):
            for name in values.keys() - refused.keys():
                distinct = of_known_type(batch.column(name).unique()).unique().drop_null()
                if pa.types.is_floating(distinct.type):
                    distinct = distinct.filter(pc.is_finite(distinct))
                values[name] |= {text for text in as_text(distinct).to_pylist() if text.strip()}
                if len(values[name]) > most:
                    refused[name] = f"more than {most} different values"
                elif any(len(value) > MOST_LETTERS for value in values[name]):
                    refused[name] = f"texts of more than {MOST_LETTERS} characters"
                if name in refused:
                    values[name].clear()
            on_progress("Reading the values", share)
    for name in values.keys() - refused.keys():
        if not values[name]:
            refused[name] = "no values"
        elif _are_whole(values[name]) and len(values[name]) > MOST_NUMBERS:
            refused[name] = f"more than {MOST_NUMBERS} different whole numbers"
    return ColumnValues(
        {name: _in_order(values[name]) for name in names if name not in refused},
        {name: refused[name] for name in names if name in refused},
    )


def _csv_columns(path: Path, content: bytes | None = None) -> list[Column]:
    header, _ = csv_header(path, content)
    if len(header) == 1 and any(mark in header[0] for mark in ";\t|"):
        raise DataError(
            f"The first line of {str(path)!r} has one column only; save the file with commas "
            "between the columns."
        )
    named = [name for name in header if name.strip()]
    if 2 * sum(_NUMBER.fullmatch(name) is not None for name in named) >= max(len(named), 1):
        raise DataError(
            f"The first line of {str(path)!r} does not look like the names of columns; it may be a "
            "record, and nothing of it is shown. Put a line with the names first."
        )
    return [Column(name) for name in header]


def _statistics_columns(path: Path) -> list[Column]:
    return [Column(variable.name, variable.kind) for variable in statistics_variables(path)]


def _parquet_columns(file: Path | pa.BufferReader) -> list[Column]:
    columns = []
    for column in pyarrow.parquet.read_schema(file):
        name = "" if pa.types.is_nested(column.type) else column.name
        values = ("true", "false") if pa.types.is_boolean(column.type) else ()
        columns.append(Column(name, _declared_type(column.type), values))
    return columns


def _declared_type(kind: pa.DataType) -> str:
    is_of = pa.types
    if is_of.is_boolean(kind):
        return YES_OR_NO
    if is_of.is_dictionary(kind):
        return CATEGORIES
    if is_of.is_integer(kind):
        return WHOLE
    if is_of.is_floating(kind) or is_of.is_decimal(kind):
        return NUMBERS
    if is_of.is_temporal(kind):
        return DATES
    return TEXT if is_of.is_string(kind) or is_of.is_large_string(kind) else ""


def _in_order(values: set[str]) -> tuple[str, ...]:
    """By number where all are whole numbers, else by letter."""
    if _are_whole(values):
        return tuple(sorted(values, key=lambda text: (int(text), text)))
    return tuple(sorted(values))


def _are_whole(values: set[str]) -> bool:
    return all(re.fullmatch(r"[+-]?\d{1,18}", value) for value in values)
