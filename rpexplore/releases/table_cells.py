"""The cells of a table as rows, written as CSV and Parquet, read only if they are as written."""

import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from rpexplore.common.numbers import normal_quantile
from rpexplore.common.text import FORMULA_SIGNS, without_formula
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.categories import Categories
from rpexplore.domain.result_schema import (
    DISTINCT,
    IMPOSSIBLE_NOTE,
    KNOWN_NOTE,
    NOTE,
    RELEASED,
    Column,
    Schema,
    apart_from,
    rows_of,
)
from rpexplore.errors import ReleaseError
from rpexplore.releases.manifest import CONFIDENCE, file_entry
from rpexplore.workload.bases import Basis
from rpexplore.workload.bases.sums import default_basis
from rpexplore.workload.table_text import query_matrix

if TYPE_CHECKING:
    import pandas as pd


# ---- The cells of a table as rows: what each counts, and the figures of a `result_schema`.


# pyarrow.compute makes its functions when it is imported, so pyright cannot know them.
# pyright: reportAttributeAccessIssue=false


Labels = list[tuple[Column, pa.Array]]
"""The columns that say what the cells along one axis count, and their contents."""

TEXT = pa.dictionary(pa.int32(), pa.string())  # the type of all columns of texts
_ROWS_AT_ONCE = 1 << 20
_FORMULA = rf"\A([{re.escape(FORMULA_SIGNS)}])"


def table_of_cells(
    labels: Sequence[Labels],
    values: np.ndarray,
    variances: np.ndarray,
    impossible: np.ndarray | None = None,
    *,
    is_known: bool = False,
) -> pa.Table:
    """One row a cell, row-major: attribute values and labels, and the columns `RELEASED`.

    labels: for each axis of `values`, its `label_columns`; impossible: as for `pieces_of_cells`
    is_known: whether the values are publicly known, which a column `NOTE` then says
    """
    if is_known and impossible is None:
        impossible = np.zeros(values.shape, dtype=bool)
    other = KNOWN_NOTE if is_known else ""
    pieces = pieces_of_cells(labels, values, variances, impossible=impossible, other_note=other)
    return pa.concat_tables(pieces)


def pieces_of_cells(
    labels: Sequence[Labels],
    values: np.ndarray,
    variances: np.ndarray,
    figures: Sequence[Column] = RELEASED,
    note: str = "",
    impossible: np.ndarray | None = None,
    other_note: str = "",
) -> Iterator[pa.Table]:
    """`table_of_cells` in pieces of a million rows, one after another; at least one.

    figures: the columns beside the labels; note: what was done to all values, if one is for that
    impossible: bool, as the values: the cells that no record can be in; None for none. Where there
        are some, the column `NOTE` says so, and of all others `other_note`.
    """
    figures = figures if impossible is None else (*figures, NOTE)
    schema = schema_of_cells([column for named in labels for column, _ in named], figures)
    every_value = values.reshape(-1)
    for start in range(0, max(values.size, 1), _ROWS_AT_ONCE):
        stop = min(start + _ROWS_AT_ONCE, values.size)
        codes = _codes(start, stop, values.shape)
        columns: list[pa.Array] = []
        for code, named in zip(codes, labels, strict=True):
            columns += texts_at(code, named)
        piece, are_alike = every_value[start:stop], not any(variances.strides)
        error = np.sqrt(variances.flat[:1] if are_alike else variances[tuple(codes)])
        columns += arrays_of_figures(figures, piece, error, note)
        if impossible is not None:
            columns[-1] = notes_of(impossible.reshape(-1)[start:stop], other_note)
        yield pa.table(columns, schema=schema)


def rows_of_columns(
    labels: Sequence[Labels], columns: Sequence[np.ndarray], figures: Sequence[Column]
) -> pa.Table:
    """One row a cell, of figures that are known already; NaN is an empty cell."""
    arrays = [pa.array(column.reshape(-1), from_pandas=True) for column in columns]
    return rows_of_arrays(labels, columns[0].shape, arrays, figures)


def rows_of_arrays(
    labels: Sequence[Labels],
    shape: Sequence[int],
    arrays: Sequence[pa.Array],
    figures: Sequence[Column],
) -> pa.Table:
    """One row a cell of a table of this shape, of the columns `figures` as arrays."""
    schema = schema_of_cells([column for named in labels for column, _ in named], figures)
    codes = _codes(0, math.prod(shape), shape)
    of_labels = [
        texts for code, named in zip(codes, labels, strict=True) for texts in texts_at(code, named)
    ]
    return pa.table([*of_labels, *arrays], schema=schema)


def texts_at(indices: np.ndarray, named: Labels) -> list[pa.DictionaryArray]:
    """Columns of codes and labels of rows, each text once in its dictionary, as pandas wants it.

    A group may be called like the code of a value; their labels, if there are any, are told apart.
    """
    columns = [pa.DictionaryArray.from_arrays(indices, texts) for _, texts in named]
    if len(named) > 1:
        codes = named[0][1].dictionary_encode()
        if len(codes.dictionary) < len(codes):
            places = codes.indices.take(pa.array(indices))
            columns[0] = pa.DictionaryArray.from_arrays(places, codes.dictionary)
    return columns


def schema_of_cells(labels: Sequence[Column], figures: Sequence[Column]) -> pa.Schema:
    """The columns of a table: texts by a dictionary, then numbers, and what was done to them."""
    return pa.schema(
        [
            column.field(pa.float64() if column.is_number else TEXT)
            for column in (*apart_from(labels, figures), *figures)
        ]
    )


def arrays_of_figures(
    figures: Sequence[Column], values: np.ndarray, errors: np.ndarray, note: str = ""
) -> list[pa.Array]:
    """The figures of cells by their roles: values, their errors, and intervals around them.

    errors: a number for each value, or one for all; note: what was done to all values
    """
    margins = normal_quantile(CONFIDENCE) * errors
    numbers = {
        "value": values,
        "error": errors,
        "model_error": errors,
        "margin": margins,
        "lower": values - margins,
        "upper": values + margins,
    }
    return [
        constant_text(note, values.shape[0])
        if column.role == "note"
        else pa.array(np.broadcast_to(numbers[column.role], values.shape))
        for column in figures
    ]


def notes_of(impossible: np.ndarray, other: str = "") -> pa.Array:
    """The column `NOTE` of some rows: bool[n], whether no record can be in each.

    other: the note of all other rows
    """
    texts = pa.array([other, IMPOSSIBLE_NOTE])
    return pa.DictionaryArray.from_arrays(impossible.astype(np.int32), texts)


def constant_text(text: str, n_rows: int) -> pa.Array:
    """A column with the same text in all rows."""
    return pa.DictionaryArray.from_arrays(np.zeros(n_rows, dtype=np.int32), pa.array([text]))


def _codes(start: int, stop: int, shape: Sequence[int]) -> list[np.ndarray]:
    """The indices of consecutive cells along each axis of a table: int32[stop − start] each."""
    codes, left = [], np.arange(start, stop, dtype=np.int32)
    for size in reversed(shape):
        above = left // np.int32(size)
        codes.append(left - above * np.int32(size))
        left = above
    return codes[::-1]


def label_columns(attribute: Attribute, basis: Basis | None = None) -> Labels:
    """The columns that say what a cell counts, and their contents, one row a query."""
    name, title = attribute.name, attribute.label or attribute.name
    code = Column(name, "code", f"{title}: what a row counts.", attribute=name)
    values = attribute.values
    basis = basis or default_basis(attribute)
    if basis.is_identity:
        labels, facts = attribute.labels(), {}
    else:
        query = query_matrix(basis, attribute)
        labels = query.labels()
        facts = {"whole": "" if query.whole is None else labels[query.whole]}
        if parents := basis.parents(attribute):
            groups: dict[str, list[str]] = {}
            for label, parent in zip(labels, parents, strict=True):
                if parent not in (None, query.whole):
                    groups.setdefault(labels[parent], []).append(label)
            facts["within"] = json.dumps(groups, ensure_ascii=False)
    if basis.ends_with_values and isinstance(values, Categories) and values.labels != values.values:
        # The single values come last; groups above them have no code but their name.
        codes = [*labels[: len(labels) - values.size], *values.values]
        meaning = f"{title}: what its codes are called."
        label = Column(f"{name} label", "label", meaning, attribute=name, **facts)
        return [(code, pa.array(codes)), (label, pa.array(labels))]
    return [(replace(code, **facts), pa.array(labels))]


def for_csv(rows: pa.Table, *, escape_formulas: bool) -> pa.Table:
    """Rows as a CSV file has them; an apostrophe before texts that would be formulas if wanted."""
    if not escape_formulas:
        return rows
    columns = []
    for column in rows.columns:
        if pa.types.is_dictionary(column.type):
            column = column.cast(pa.string())
        if pa.types.is_string(column.type):
            column = escaped_texts(column)
        columns.append(column)
    return pa.table(columns, names=list(map(without_formula, rows.column_names)))


def escaped_texts(texts: pa.Array) -> pa.Array:
    """Texts with an apostrophe before those that would be formulas."""
    return pc.replace_substring_regex(texts, _FORMULA, r"'\1")


# ---- Cells of tables as CSV: texts in quotation marks, numbers with a fixed number of decimals.
#
# Rows are laid out as bytes of equal length, a column as wide as its widest text, with digits four
# at a time from a table of all there are; what is too wide is filled with a byte that no text has
# in UTF-8, and taken out at the end.


_PARTS_OF_ERROR = 6  # a unit of the last decimal is at most 10^-6 of the smallest standard error
_MOST_DIGITS = 15  # that floats have for sure
_LARGEST = 2.0**62  # of what digits are taken from as 64-bit integers

_ROWS, _BYTES = 1 << 14, 1 << 21  # laid out together
_MOST_TEXTS = 1 << 16  # of a column, laid out once and not as they come
_FILLER = b"\xff"
_GROUP = 4  # digits

ByteField = bytes | np.ndarray
"""Bytes that are the same in all rows, or an item a row."""


def smallest_error(variances: np.ndarray) -> float:
    """The smallest standard error above 0; 0 if there is none."""
    noisy = variances[variances > 0]
    return float(np.sqrt(noisy.min())) if noisy.size else 0.0


def csv_decimals(smallest_error: float, largest: float) -> int:
    """How many decimals a table has as CSV, 0 or more.

    A unit of the last one is at most a millionth of the smallest standard error, unless the largest
    number (in absolute value) would then have more digits than floats have. None where all numbers
    are exact counts, with a standard error of 0.
    """
    if smallest_error == 0:
        return 0
    wanted = math.ceil(_PARTS_OF_ERROR - math.log10(smallest_error))
    return max(0, min(wanted, _MOST_DIGITS - len(str(int(largest)))))


class CsvWriter:
    """Writes the rows of one table into a CSV file, after its header.

    escape_formulas: whether no text begins as formulas of spreadsheets do
    """

    def __init__(
        self, file: BinaryIO, names: Sequence[str], decimals: int, *, escape_formulas: bool
    ) -> None:
        self._file, self._decimals, self._escape_formulas = file, decimals, escape_formulas
        header = [without_formula(name) if escape_formulas else name for name in names]
        file.write(",".join(map(_quoted, header)).encode() + b"\n")

    def write(self, rows: pa.Table) -> None:
        """Write rows: numbers, rounded, without decimals if a column has none; texts; "" if empty.

        Columns are float64, or texts by a dictionary.
        """
        for batch in rows.to_batches():
            columns = [self._column(column) for column in batch.columns]
            width = sum(column.width for column in columns)
            step = max(1, min(_ROWS, _BYTES // width))
            for start in range(0, batch.num_rows, step):
                stop = min(start + step, batch.num_rows)
                fields: list[ByteField] = []
                for column in columns:
                    fields += [*column.fields(start, stop), b","]
                self._file.write(joined_bytes([*fields[:-1], b"\n"], stop - start))

    def _column(self, column: pa.Array) -> "_Numbers | _Texts":
        if pa.types.is_floating(column.type):
            return _Numbers(column, self._decimals)
        texts = column.dictionary
        return _Texts(escaped_texts(texts) if self._escape_formulas else texts, column.indices)


class _Texts:
    """A column of texts, quoted."""

    def __init__(self, texts: pa.Array, codes: pa.Array) -> None:
        self._texts = pa.array([_quoted(text) for text in texts.to_pylist()], pa.string())
        self._codes = codes.to_numpy()
        self.width = max(map(len, self._texts.to_pylist()), default=0) * 4
        few = len(texts) <= _MOST_TEXTS and len(texts) * self.width <= _BYTES
        self._items = byte_items(self._texts) if few else None

    def fields(self, start: int, stop: int) -> list[ByteField]:
        codes = self._codes[start:stop]
        if self._items is not None:
            return [self._items.take(codes)]
        used, codes = np.unique(codes, return_inverse=True)
        return [byte_items(self._texts.take(pa.array(used))).take(codes)]


class _Numbers:
    """A column of numbers."""

    width = 32

    def __init__(self, column: pa.Array, decimals: int) -> None:
        numbers = column.to_numpy(zero_copy_only=False)
        self._numbers, self._decimals = numbers, decimals
        # Most columns are told from whole numbers by their beginning.
        if all(np.all(part == np.rint(part)) for part in (numbers[:_GROUP], numbers)):
            self._decimals = 0
        self._power = 10**self._decimals
        low, high = numbers.min(initial=np.inf), numbers.max(initial=-np.inf)  # NaN if one is
        self._is_constant, self._has_negative = low == high, low < 0
        self._are_digits = max(-low, high) * self._power < _LARGEST
        self._is_partly_empty = False
        if np.isnan(low):
            known = numbers[~np.isnan(numbers)]
            self._is_partly_empty = bool(np.all(np.abs(known) * self._power < _LARGEST))
            if np.all(known == np.rint(known)):
                self._decimals = 0

    def fields(self, start: int, stop: int) -> list[ByteField]:
        numbers = self._numbers[start:stop]
        if not self._are_digits and self._is_partly_empty:
            shown = ("" if n != n else f"{n:.{self._decimals}f}" for n in numbers.tolist())
            return [byte_items(pa.array(shown, pa.string()))]
        if not self._are_digits:
            texts = pa.array(numbers, from_pandas=True).cast(pa.string())
            return [byte_items(texts.fill_null(""))]
        if self._is_constant:
            number = int(np.rint(numbers[0] * float(self._power))) / self._power
            return [f"{number:.{self._decimals}f}".encode()]
        scaled = np.rint(numbers * float(self._power))
        sizes = np.abs(scaled).astype(np.int64)
        fields: list[ByteField] = []
        if self._has_negative:
            fields.append(np.where(scaled < 0, b"-", _FILLER))
        whole = sizes // self._power
        fields += _whole_digits(whole)
        if self._decimals:
            fields += [b".", *_decimal_digits(sizes - whole * self._power, self._decimals)]
        return fields


def _whole_digits(numbers: np.ndarray) -> list[ByteField]:
    """The digits of whole numbers, without zeros before."""
    n_groups = math.ceil(len(str(int(numbers.max()))) / _GROUP)
    fields: list[ByteField] = []
    for _ in range(n_groups):
        higher = numbers // 10**_GROUP
        # The second half of a table is for digits behind others.
        digits = numbers - higher * 10**_GROUP + (higher > 0) * 10**_GROUP
        fields.append(_leading_groups(is_last=not fields).take(digits))
        numbers = higher
    return fields[::-1]


def _decimal_digits(numbers: np.ndarray, count: int) -> list[ByteField]:
    """So many digits of whole numbers, with zeros before."""
    fields: list[ByteField] = []
    for left in range(count, 0, -_GROUP):
        n_digits = min(left, _GROUP)
        higher = numbers // 10**n_digits
        fields.append(_groups(n_digits).take(numbers - higher * 10**n_digits))
        numbers = higher
    return fields[::-1]


@cache
def _groups(n_digits: int) -> np.ndarray:
    """The texts of all numbers of so many digits, with zeros before."""
    return np.array([f"{i:0{n_digits}}" for i in range(10**n_digits)], f"S{n_digits}").view(
        f"V{n_digits}"
    )


@cache
def _leading_groups(*, is_last: bool) -> np.ndarray:
    """The same of four digits, first without zeros before, then with them.

    Without: nothing at all is left of 0, unless it is the last group.
    """
    texts = [str(i) if i or is_last else "" for i in range(10**_GROUP)]
    return np.concatenate([byte_items(pa.array(texts)), _groups(_GROUP)])


def byte_items(texts: pa.Array) -> np.ndarray:
    """Texts as bytes of the length of the longest, at least 1, filled up at the end: void[n]."""
    encoded = texts.cast(pa.binary())
    _, ends, content = encoded.buffers()
    offsets = np.frombuffer(ends, np.int32)[encoded.offset :][: len(texts) + 1]
    lengths = np.diff(offsets)
    width = max(int(lengths.max(initial=0)), 1)
    items = np.full((len(texts), width), _FILLER[0], dtype=np.uint8)
    if content is not None and len(texts):
        letters = np.frombuffer(content, np.uint8)[offsets[0] : offsets[-1]]
        items[np.arange(width) < lengths[:, None]] = letters
    return items.view(f"V{width}").ravel()


def joined_bytes(fields: Sequence[ByteField], n_rows: int) -> bytes:
    """The fields of rows one after another."""
    row = b"".join(
        field if isinstance(field, bytes) else _FILLER * field.itemsize for field in fields
    )
    rows = np.empty((n_rows, len(row)), dtype=np.uint8)
    rows[:] = np.frombuffer(row, np.uint8)
    start = 0
    for field in fields:
        if isinstance(field, bytes):
            start += len(field)
            continue
        stop = start + field.itemsize
        rows[:, start:stop].view(field.dtype)[:, 0] = field
        start = stop
    return rows.tobytes().translate(None, delete=_FILLER)


def _quoted(text: str) -> str:
    """A text as CSV has it: in quotation marks, those within doubled."""
    return '"{}"'.format(text.replace('"', '""'))


# ---- The files of a table: Parquet, and CSV beside it.


BYTES_PER_CELL, BYTES_PER_CELL_IN_PARQUET = 125, 60  # or fewer: as CSV and Parquet, Parquet alone
BYTES_PER_TABLE = 4000  # besides: heads and footers, its place in the manifest
TABLES = "tables"
"""The folder of the tables of a release."""
MEANS_FOLDER = "means"
"""That of the means of tables with amounts."""


def write_table(
    folder: Path,
    position: int,
    attributes: Sequence[str],
    pieces: Iterator[pa.Table],
    *,
    decimals: int,
    escape_formulas: bool,
    with_csv: bool = True,
    within: str = TABLES,
) -> list[dict[str, Any]]:
    """Write a table, given in pieces (at least one), as Parquet and CSV; their manifest entries.

    Args:
        decimals: Of numbers in the CSV file, see `csv_decimals`; Parquet files have them in full.
        escape_formulas: Whether no text in the CSV file begins as formulas of spreadsheets do.
        with_csv: Whether there is a CSV file.
        within: The folder of the files.
    """
    path, first = table_path(position, attributes, within), next(pieces)
    with ExitStack() as files:
        parquet_writer = files.enter_context(table_writer(folder / f"{path}.parquet", first.schema))
        csv_writer = None
        if with_csv:
            file = files.enter_context((folder / f"{path}.csv").open("wb"))
            names = first.column_names
            csv_writer = CsvWriter(file, names, decimals, escape_formulas=escape_formulas)
        for piece in chain([first], pieces):
            parquet_writer.write_table(piece)
            if csv_writer is not None:
                csv_writer.write(piece)
    paths = table_paths(position, attributes, within, with_csv=with_csv)
    return [file_entry(folder, path, attributes=list(attributes)) for path in paths]


def files_of_tables(
    tables: Sequence[Sequence[str]], folder: str = TABLES, positions: Iterable[int] | None = None
) -> dict[str, list[str]]:
    """The files that `write_table` writes of tables, of all or these; the attributes of each."""
    return {
        path: list(tables[position])
        for position in (range(len(tables)) if positions is None else positions)
        for path in table_paths(position, tables[position], folder, with_csv=True)
    }


def table_paths(
    position: int, names: Sequence[str], folder: str = TABLES, *, with_csv: bool
) -> list[str]:
    path = table_path(position, names, folder)
    return [f"{path}.parquet", f"{path}.csv"] if with_csv else [f"{path}.parquet"]


def table_path(position: int, names: Sequence[str], folder: str = TABLES) -> str:
    """Where a table lies in the folder, without ending: its number, then its attributes."""
    plain = (re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-") for name in names or ("total",))
    return f"{folder}/{position:04d}_{'_'.join(plain)[:80]}"


# ---- Columns in the Parquet files of a release, read only if they are what was written.


Columns = Mapping[str, pa.DataType]

LARGEST_ESTIMATE = 1e200  # no sum of what is measured comes near it, however weighted
_LARGEST_MEASURED = 2**62  # docs/mathematics.md §7.4
_LARGEST_FLOAT = float(np.finfo(float).max)


def read_columns(
    path: Path,
    columns: Columns,
    n_rows: int | None = None,
    *,
    or_empty: Columns = MappingProxyType({}),
    largest: float = _LARGEST_FLOAT,
    **options: Any,
) -> pa.Table:
    """The table in a file, with all its columns.

    Raises `ReleaseError` for a file that cannot be read, and for one of these columns that is
    missing, doubled, of another type, or has cells that are empty or not of a usable size.

    Args:
        n_rows: How many rows there must be; any number if left out.
        or_empty: More columns, which may be empty from the first cell to the last.
        largest: The largest size of a number with decimals.
        options: For `pyarrow.parquet.read_table`.
    """
    try:
        check_schema(path, pyarrow.parquet.read_schema(path), {**columns, **or_empty})
        table = pyarrow.parquet.read_table(path, **options)
    except (OSError, pa.ArrowException):
        raise not_what_was_written(path, "it cannot be read any more") from None
    filled = {name: or_empty[name] for name in or_empty if table[name].null_count < len(table)}
    refuse_gaps(path, table, {**columns, **filled}, largest)
    if n_rows not in (None, len(table)):
        raise not_what_was_written(path, f"it must have {n_rows:,} rows, and has {len(table):,}")
    return table


def check_schema(path: Path, schema: pa.Schema, columns: Columns) -> None:
    """Raise `ReleaseError` unless a file has each of these columns once, and of its type."""
    for name, kind in columns.items():
        if (times := schema.names.count(name)) != 1:
            there = f"{times} of them are" if times else "it is not"
            raise not_what_was_written(path, f"it must have one column {name!r}, and {there} there")
        if schema.field(name).type != kind:
            stated = schema.field(name).type
            raise not_what_was_written(path, f"its column {name!r} must be {kind}, and is {stated}")


def refuse_gaps(
    path: Path,
    table: pa.Table | pa.RecordBatch,
    columns: Columns,
    largest: float = _LARGEST_FLOAT,
) -> None:
    """Raise `ReleaseError` for a cell in these columns that is empty, or no number it may hold."""
    for name, kind in columns.items():
        column, most = table[name], {pa.int64(): _LARGEST_MEASURED, pa.float64(): largest}.get(kind)
        is_usable = column.null_count == 0
        if is_usable and most is not None:
            numbers = np.asarray(column)  # whose least is NaN if one is
            is_usable = -most <= numbers.min(initial=0) <= numbers.max(initial=0) <= most
        if not is_usable:
            reason = f"its column {name!r} has cells without a usable number"
            raise not_what_was_written(path, reason)


def not_what_was_written(path: Path, reason: str) -> ReleaseError:
    """What to raise for a file of a release that holds something else."""
    return ReleaseError(
        f"The file {path.name!r} of {str(path.parent)!r} does not hold what its plan says: "
        f"{reason}; use the original folder."
    )


# ---- Parquet files of results: written here, and read here, with what each column is.


def table_writer(path: Path, schema: pa.Schema) -> pyarrow.parquet.ParquetWriter:
    """A writer of rows with these columns, each of which has a role."""
    columns = Schema.of(schema).columns
    repeated: Any = [column.name for column in columns if column.role not in DISTINCT]
    # Least and largest labels, which nobody looks for, would take a third of the time.
    return pyarrow.parquet.ParquetWriter(
        path, schema, use_dictionary=repeated, write_statistics=False
    )


def write_rows(path: Path, pieces: Iterable[pa.Table]) -> int:
    """Write rows in pieces, at least one, and return how many they are."""
    writer, n_rows = None, 0
    try:
        for piece in pieces:
            if writer is None:
                writer = table_writer(path, piece.schema)
            writer.write_table(piece)
            n_rows += len(piece)
    finally:
        if writer is not None:
            writer.close()
    return n_rows


def parquet_of(frame: "pd.DataFrame") -> bytes:
    """A table of results as the bytes of a Parquet file, with what its columns are."""
    file = io.BytesIO()
    pyarrow.parquet.write_table(rows_of(frame), file)
    return file.getvalue()


def read_rows(
    path: Path,
    figures: Sequence[Column],
    n_rows: int | None = None,
    *,
    may_be_empty: bool = False,
) -> pa.Table:
    """The rows in a file of results, whose columns say what they are.

    Raises `ReleaseError` for a file that cannot be read, a column without a role, one of `figures`
    that is missing or has another role or type, and a number that is missing or not usable. Errors
    by a model may be left out, all of them.

    Args:
        figures: The columns that there must be, beside those of labels.
        n_rows: How many rows there must be; any number if left out.
        may_be_empty: Whether numbers may be missing in a row.
    """
    numbers = [column for column in figures if column.is_number]
    full, or_empty = {}, {}
    for column in numbers:
        kinds = or_empty if column.role in ("model_error", "target") else full
        kinds[column.name] = pa.float64()
    if may_be_empty:
        rows = read_columns(path, {}, n_rows)
        check_schema(path, rows.schema, full)
    else:
        rows = read_columns(path, full, n_rows, or_empty=or_empty, largest=LARGEST_ESTIMATE)
    check_roles(path, rows.schema, figures)
    return rows


def check_roles(path: Path, schema: pa.Schema, figures: Sequence[Column]) -> None:
    """Raise `ReleaseError` unless all columns of a file have roles, and these the ones stated."""
    try:
        roles = {column.name: column.role for column in Schema.of(schema).columns}
    except ReleaseError:
        raise not_what_was_written(path, "not all of its columns say what they are") from None
    for column in figures:
        if roles.get(column.name) != column.role:
            reason = f"its column {column.name!r} must have the role {column.role!r}"
            raise not_what_was_written(path, reason)
