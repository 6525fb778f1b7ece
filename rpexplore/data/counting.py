"""Counting: exact marginals of records that come in batches, in one pass and in bounded memory.

Batches are coded and gathered until there are many records; then every block of attributes
(`blocks`) is counted over all of these, and its tables are summed from that, before the next
records are read. Memory, beyond the programme itself:

- the counts of the maximal tables: 4 bytes a cell, 8 from 2^32 records on;
- the gathered records, as category indices: at most 32 MB, or 2^16 records where these are more;
- one batch as it was read: at most 2^22 values of all columns, usually far less than 32 MB;
- for each processor (at most 4), what it works on: some 20 MB, whatever the tables' sizes.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from math import prod

import numpy as np

from rpexplore.common.concurrency import in_order
from rpexplore.data.blocks import Block, blocks, maximal, summed_tables
from rpexplore.data.counts import Counts
from rpexplore.domain.domain import AttributeIndices

# Cells whose counts a processor's cache holds while they are counted.
_BLOCK_CELLS = 1 << 17
# A block has at most a cell for every so many records: else summing costs more than counting.
_RECORDS_PER_CELL = 8
# Records that are worked on at a time, so that they stay in the cache as well.
_PIECE = 1 << 17
_SORTED_PIECE = 1 << 19
# Records that are gathered before they are counted.
_GATHERED_BYTES, _LEAST_GATHERED, _MOST_GATHERED = 1 << 25, 1 << 16, 1 << 21
_NARROW, _WIDE = np.uint32, np.uint64

Codes = Mapping[int, np.ndarray]
"""Category indices of some records: place -> unsigned integers [n_records]."""


def counts_of(
    batches: Iterable[tuple[Codes, int, float]],
    tables: Iterable[Sequence[int]],
    sizes: Sequence[int],
    *,
    on_progress: Callable[[float], None],
) -> Counts:
    """Exact counts from which the marginals on all these sets of places follow.

    batches: codes of the places that the tables are on, the number of records, and the share of
    all records that have come by then. sizes: of all attributes of the domain.
    """
    tally = _Tally(maximal(tables), sizes)
    counted = 0.0
    for gathered, n_records, share in _gathered(batches):
        with closing(tally.added(gathered, n_records)) as parts:
            for part in parts:
                on_progress(counted + (share - counted) * part)
        counted = share
        on_progress(share)
    return Counts(tally.tables, tally.n_records)


def _gathered(batches: Iterable[tuple[Codes, int, float]]) -> Iterator[tuple[Codes, int, float]]:
    """Batches put together to as many records as are counted at a time."""
    waiting: list[Codes] = []
    n_records, n_bytes, share = 0, 0, 0.0
    for codes, n_more, share in batches:
        waiting.append(codes)
        n_records += n_more
        n_bytes += sum(column.nbytes for column in codes.values())
        full = n_bytes >= _GATHERED_BYTES and n_records >= _LEAST_GATHERED
        if full or n_records >= _MOST_GATHERED:
            yield _joined(waiting), n_records, share
            waiting, n_records, n_bytes = [], 0, 0
    if waiting:
        yield _joined(waiting), n_records, share


def _joined(parts: list[Codes]) -> Codes:
    return {place: np.concatenate([part[place] for part in parts]) for place in parts[0]}


class _Tally:
    """The counts so far of tables of which none is in another."""

    def __init__(self, tables: Sequence[AttributeIndices], sizes: Sequence[int]) -> None:
        self._sizes = [int(size) for size in sizes]
        self.tables: dict[AttributeIndices, np.ndarray] = {
            table: np.zeros(self._shape(table), dtype=_NARROW) for table in tables
        }
        self.n_records = 0
        self._blocks: list[Block] = []

    def added(self, codes: Codes, n_records: int) -> Generator[float, None, None]:
        """Count more records, by and by; the share of them that is counted."""
        if self.n_records == 0:
            # The first are most of all, so that how many there are tells which blocks pay.
            room = min(_BLOCK_CELLS, n_records // _RECORDS_PER_CELL)
            self._blocks = blocks(list(self.tables), self._sizes, room)
        if self.n_records <= np.iinfo(_NARROW).max < self.n_records + n_records:
            for table, counts in self.tables.items():
                self.tables[table] = counts.astype(_WIDE)
        self.n_records += n_records
        with closing(
            in_order(lambda block: self._count(block, codes, n_records), self._blocks)
        ) as work:
            for done, _ in enumerate(work, 1):
                yield done / len(self._blocks)

    def _count(self, block: Block, codes: Codes, n_records: int) -> None:
        """Add these records to the tables of a block; no other block has any of these."""
        # An attribute of one value changes no place.
        columns = [(codes[place], self._sizes[place]) for place in block.places]
        columns = [(column, size) for column, size in columns if size > 1]
        shape = self._shape(block.places)
        cells = prod(shape)
        if cells > _BLOCK_CELLS:
            table = self.tables[block.places].reshape(-1)
            for flat in _flat_places(columns, cells, n_records, _SORTED_PIECE):
                found, times = _sorted_counts(flat)
                table[found] += times
            return
        counts = np.zeros(cells, dtype=np.int64)
        for flat in _flat_places(columns, cells, n_records, _PIECE):
            counts += np.bincount(flat, minlength=cells)
        for table, sums in summed_tables(block, counts.reshape(shape)):
            self.tables[table] += sums.astype(_NARROW)

    def _shape(self, places: AttributeIndices) -> tuple[int, ...]:
        return tuple(self._sizes[place] for place in places)


def _flat_places(
    columns: Sequence[tuple[np.ndarray, int]], cells: int, n_records: int, piece: int
) -> Iterator[np.ndarray]:
    """The place of each record's cell, the last attribute fastest, for a piece of them at a time.

    columns: codes and size of each attribute, sizes above 1. The array is used again.
    """
    buffer = np.empty(min(piece, n_records), dtype=np.min_scalar_type(cells - 1))
    for start in range(0, n_records, piece):
        flat = buffer[: min(piece, n_records - start)]
        flat[:] = columns[0][0][start : start + piece] if columns else 0
        for column, size in columns[1:]:
            flat *= flat.dtype.type(size)
            flat += column[start : start + piece]
        yield flat


def _sorted_counts(flat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct places among these, ascending, and how often each is there; sorts them.

    For tables much larger than the cache, into which counts go in the order of their places.
    """
    flat.sort()
    starts = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    starts = np.concatenate([[0], starts])
    times = np.diff(np.append(starts, len(flat)))
    return flat[starts], times.astype(_NARROW)
