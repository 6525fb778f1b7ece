"""Cells of tables as CSV: texts in quotation marks, numbers with a fixed number of decimals.

Rows are laid out as bytes of equal length, a column as wide as its widest text, with digits four at
a time from a table of all there are; what is too wide is filled with a byte that no text has in
UTF-8, and taken out at the end.
"""

import math
from collections.abc import Sequence
from functools import cache
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from rpexplore.common.csv_text import without_formula
from rpexplore.releases.table_cells import escaped_texts

_PARTS_OF_ERROR = 6  # a unit of the last decimal is at most 10^-6 of the smallest standard error
_MOST_DIGITS = 15  # that floats have for sure
_LARGEST = 2.0**62  # of what digits are taken from as 64-bit integers

_ROWS, _BYTES = 1 << 14, 1 << 21  # laid out together
_MOST_TEXTS = 1 << 16  # of a column, laid out once and not as they come
_FILLER = b"\xff"
_GROUP = 4  # digits

_Field = bytes | np.ndarray  # the same for all rows, or an item a row


def csv_decimals(smallest_error: float, largest: float) -> int:
    """How many decimals a table has as CSV, 0 or more.

    A unit of the last one is at most a millionth of the smallest standard error, unless the largest
    number (in absolute value) would then have more digits than floats have.
    """
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
                fields: list[_Field] = []
                for column in columns:
                    fields += [*column.fields(start, stop), b","]
                self._file.write(_joined([*fields[:-1], b"\n"], stop - start))

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
        self._items = _items(self._texts) if few else None

    def fields(self, start: int, stop: int) -> list[_Field]:
        codes = self._codes[start:stop]
        if self._items is not None:
            return [self._items.take(codes)]
        used, codes = np.unique(codes, return_inverse=True)
        return [_items(self._texts.take(pa.array(used))).take(codes)]


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

    def fields(self, start: int, stop: int) -> list[_Field]:
        numbers = self._numbers[start:stop]
        if not self._are_digits:
            texts = pa.array(numbers, from_pandas=True).cast(pa.string())
            return [_items(texts.fill_null(""))]
        if self._is_constant:
            number = int(np.rint(numbers[0] * float(self._power))) / self._power
            return [f"{number:.{self._decimals}f}".encode()]
        scaled = np.rint(numbers * float(self._power))
        sizes = np.abs(scaled).astype(np.int64)
        fields: list[_Field] = []
        if self._has_negative:
            fields.append(np.where(scaled < 0, b"-", _FILLER))
        whole = sizes // self._power
        fields += _whole_digits(whole)
        if self._decimals:
            fields += [b".", *_decimal_digits(sizes - whole * self._power, self._decimals)]
        return fields


def _whole_digits(numbers: np.ndarray) -> list[_Field]:
    """The digits of whole numbers, without zeros before."""
    n_groups = math.ceil(len(str(int(numbers.max()))) / _GROUP)
    fields: list[_Field] = []
    for _ in range(n_groups):
        higher = numbers // 10**_GROUP
        # The second half of a table is for digits behind others.
        digits = numbers - higher * 10**_GROUP + (higher > 0) * 10**_GROUP
        fields.append(_leading_groups(is_last=not fields).take(digits))
        numbers = higher
    return fields[::-1]


def _decimal_digits(numbers: np.ndarray, count: int) -> list[_Field]:
    """So many digits of whole numbers, with zeros before."""
    fields: list[_Field] = []
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
    return np.concatenate([_items(pa.array(texts)), _groups(_GROUP)])


def _items(texts: pa.Array) -> np.ndarray:
    """Texts as bytes of the length of the longest, at least 1, filled up at the end: void[n]."""
    encoded = texts.cast(pa.binary())
    lengths = np.diff(
        np.frombuffer(encoded.buffers()[1], np.int32)[encoded.offset :][: len(texts) + 1]
    )
    width = max(int(lengths.max(initial=0)), 1)
    items = np.full((len(texts), width), _FILLER[0], dtype=np.uint8)
    items[np.arange(width) < lengths[:, None]] = np.frombuffer(
        b"".join(encoded.to_pylist()), np.uint8
    )
    return items.view(f"V{width}").ravel()


def _joined(fields: Sequence[_Field], n_rows: int) -> bytes:
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
