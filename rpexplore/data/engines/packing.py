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

# ---- Coded records as whole numbers of 64 bits; what has texts comes from PostgreSQL as CSV.
#
# A number on the way costs a server more than arithmetic, so that many codes share one.


Word: TypeAlias = Mapping[str, int]
"""Columns of coded records that share a number, by the bit at which each one begins."""

_BITS = 63  # the sign stays free
_LOWEST = MISSING  # of all codes; a column is shifted by it, so that none is negative
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
