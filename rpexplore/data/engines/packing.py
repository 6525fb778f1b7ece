"""Coded records as whole numbers of 64 bits, as PostgreSQL and Spark hand them over."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import csv

from rpexplore.data.coding import MISSING
from rpexplore.data.engines.session import STATE, Request
from rpexplore.data.engines.source import nothing_quoted
from rpexplore.errors import DataError

# ---- Coded records as whole numbers of 64 bits, and how PostgreSQL's COPY hands records over.
#
# A number on the way costs a server more than arithmetic, so that many codes share one. PostgreSQL
# documents the binary format under COPY: a head, for each row the number of its fields and each
# field behind its length, and an end. What has texts comes as CSV.


Word: TypeAlias = Mapping[str, int]
"""Columns of coded records that share a number, by the bit at which each one begins."""

_BITS = 63  # the sign stays free
_LOWEST = MISSING  # of all codes; a column is shifted by it, so that none is negative
_SIGNATURE = b"PGCOPY\n\xff\r\n\0"
_HEAD = len(_SIGNATURE) + 8  # with flags, and the length of extensions, of which there are none
_END = b"\xff\xff"
_BYTES = 8  # of a number
_CSV_BYTES = 1 << 22  # read at a time


def words_of(request: Request, attribute_indices: Sequence[int] | None = None) -> Sequence[Word]:
    """Which columns of `counting.streamed` share a number, from its lowest bit on; at least one.

    attribute_indices: of the columns, if not all; then without STATE
    """
    is_of_all = attribute_indices is None
    n_bits = {
        f"c{index}": (request.code_sizes[index] - 1 - _LOWEST).bit_length()
        for index in (request.attribute_indices if is_of_all else attribute_indices)
    }
    if is_of_all and request.rule is not None:
        n_bits[STATE] = 3  # as many as codes of two values take
    words: list[dict[str, int]] = [{}]
    end = 0
    for name, width in n_bits.items():
        if end + width > _BITS:
            words.append({})
            end = 0
        words[-1][name] = end
        end += width
    return words


def unpacked(numbers: np.ndarray, words: Sequence[Word]) -> pa.RecordBatch:
    """The columns of `counting.streamed`, of numbers [n, n_words]."""
    columns: dict[str, np.ndarray] = {}
    for word, sums in zip(words, numbers.T, strict=True):
        # Sums of codes that may be negative: shifted, each has its bits for itself.
        bits = sums + sum(-_LOWEST << shift for shift in word.values())
        for name, end in zip(word, [*list(word.values())[1:], _BITS], strict=True):
            width = end - word[name]
            # Narrow first: what follows is then as much faster.
            code = (bits >> word[name]).astype(np.min_scalar_type(-(1 << width)))
            columns[name] = (code & ((1 << width) - 1)) + _LOWEST
    # A batch without a column would have no length.
    return pa.record_batch(columns or {"any": numbers[:, 0]})


def numbers_of(
    stream: Iterable[bytes | memoryview], n_words: int, rows_at_once: int
) -> Iterator[np.ndarray]:
    """The rows [n, n_words] of a binary COPY of numbers that are never null.

    Raises `DataError` for what is none.
    """
    row = np.dtype(
        [("n_fields", ">i2"), ("fields", [("n_bytes", ">i4"), ("number", ">i8")], (n_words,))]
    )
    messages = iter(stream)
    pending = bytearray(next(messages, b""))
    if not pending.startswith(_SIGNATURE) or len(pending) < _HEAD:
        raise _form_error()
    del pending[:_HEAD]
    # One by one: a list of a hundred thousand memoryviews takes five times as long as their bytes.
    for message in messages:
        pending += message
        if len(pending) >= rows_at_once * row.itemsize:
            yield _first_rows(pending, row)
    yield _first_rows(pending, row)
    if pending != _END:
        raise _form_error()


def _first_rows(pending: bytearray, row: np.dtype) -> np.ndarray:
    """The numbers [n, n_words] of all rows that are complete, which are taken away."""
    rows = np.frombuffer(bytes(pending), row, count=len(pending) // row.itemsize)
    del pending[: rows.nbytes]
    fields = rows["fields"]
    if np.any(rows["n_fields"] != fields.shape[1]) or np.any(fields["n_bytes"] != _BYTES):
        raise _form_error()
    return fields["number"].astype(np.int64)


def csv_batches(
    rows: Iterable[bytes | memoryview], texts: Collection[str]
) -> Iterator[pa.RecordBatch]:
    """Batches of what COPY hands over as CSV with a header.

    rows: each complete, as libpq gives them (PQgetCopyData). texts: the columns that hold texts,
        which may be null; the others hold whole numbers. Raises `DataError` for what does not.
    """
    stream = iter(rows)
    names = bytes(next(stream)).decode().rstrip("\n").split(",")
    form = {
        "read_options": csv.ReadOptions(column_names=names),
        "parse_options": csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        "convert_options": csv.ConvertOptions(
            column_types={name: pa.string() if name in texts else pa.int64() for name in names},
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    }

    def read(pending: bytearray) -> list[pa.RecordBatch]:
        with nothing_quoted():
            return csv.read_csv(pa.BufferReader(bytes(pending)), **form).to_batches()

    pending = bytearray()
    for row in stream:
        pending += row
        if len(pending) >= _CSV_BYTES:
            yield from read(pending)
            pending.clear()
    if pending:
        yield from read(pending)


def _form_error() -> DataError:
    return DataError(
        "The server hands records over in a form that is not PostgreSQL's; leave streaming out, "
        "and have them counted there."
    )


# ---- Codes that Spark has looked up, as they come to its Python workers: many in one whole
# number.


@dataclass(frozen=True)
class Layout:
    """How records without a rule for persons come to `counts_of_part`.

    words     of columns w0, w1, … of what Spark has looked up, `UNKNOWN` where it found nothing
    unlisted  attributes whose values come as they are, v<index>
    """

    words: tuple[Word, ...]
    unlisted: tuple[int, ...]

    @property
    def listed(self) -> list[int]:
        """The attributes of the words."""
        return [int(name[1:]) for word in self.words for name in word]


class UnlistedError(Exception):
    """Raised if values are not found where Spark has looked them up: nothing can be said of these.

    attribute_indices: of the columns that hold such values
    """

    def __init__(self, attribute_indices: Collection[int]) -> None:
        super().__init__("values are not written as in the codebook")
        self.attribute_indices = attribute_indices


def listed_codes(batch: pa.RecordBatch, layout: Layout) -> dict[int, np.ndarray]:
    """Codes of what Spark has looked up; `UNKNOWN` where it has not found a value."""
    numbers = [batch.column(f"w{place}").to_numpy() for place in range(len(layout.words))]
    if not numbers:
        return {}
    columns = unpacked(np.stack(numbers, axis=1), layout.words)
    return {index: columns.column(f"c{index}").to_numpy() for index in layout.listed}
