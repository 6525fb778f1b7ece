"""What the Python workers of a cluster do: code records, count a part of them, add counts of parts.

These functions take and give record batches, as Spark's `mapInArrow` has them. Workers need numpy,
pyarrow and the files that `spark_session` sends along, and nothing else of this package. No error
and no row holds a value of a record.

All cells of all tables stand in one line, table after table, and are handed over in chunks of it:
the chunk's number, its counts as bytes, and, where most are 0, the places of the others.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from math import ceil, prod
from typing import Any

import numpy as np
import pyarrow as pa

from rpexplore.common.processes import no_progress
from rpexplore.data.coding import UNKNOWN, Coder
from rpexplore.data.counting import (
    Codes,
    cells_behind,
    counts_of,
    counts_with_amounts,
    gather,
    products,
    split_codes,
)
from rpexplore.data.engines.packing import Layout, UnlistedError, listed_codes
from rpexplore.data.engines.session import STATE, Request, agree
from rpexplore.data.engines.source import (
    Inspection,
    coders_of,
    in_areas,
    nothing_quoted,
    signed_codes,
    with_plain_types,
)
from rpexplore.data.persons import person_keys
from rpexplore.data.source import Counts
from rpexplore.domain.amounts import amounts_in
from rpexplore.domain.domain import AttributeIndices
from rpexplore.domain.universe import Universe

# pyarrow.compute makes its functions when it is imported, so pyright cannot know them.
# pyright: reportAttributeAccessIssue=false


Batches = Iterable[pa.RecordBatch]

CHUNK, WIDTH, PLACES, COUNTS = "chunk", "width", "places", "counts"
"""Columns of counts: which chunk; bytes of a count; of which cells (uint16), if not of all."""
SCHEMA = pa.schema(
    [(CHUNK, pa.int32()), (WIDTH, pa.int32()), (PLACES, pa.binary()), (COUNTS, pa.binary())]
)
CHUNK_CELLS = 1 << 16
CHECKS = -1
"""The chunk of how many records there are, then what `Request.refuse` takes, and then how many
values of each attribute have not been found."""
MOST_KEPT = 1 << 25
"""Cells whose counts a worker keeps till it has seen all of its records; 4 bytes each."""

PERSON_LOW, PERSON_HIGH, WRITING = "person_low", "person_high", "writing_of_person"
"""Columns: whose a record is, as two numbers, and how that is written, as of `PersonKeys`."""
PERSON, ORDER = "person", "order_of_person"
"""Columns: whose a record is, as it was read; by what a person's are ordered."""
AREA = "area"
"""A column of coded records: as of `AreaCoder.areas`."""
AREAS = -1
"""Among codes: the areas without parts that records lie in, int32[n]."""
_ROWS = 1 << 17  # that are coded together


def records_within(batches: Batches, universe: Universe) -> Iterator[pa.RecordBatch]:
    """The records of a universe."""
    coders = [Coder(attribute) for attribute in universe.domain]
    for batch in batches:
        plain = with_plain_types(batch)
        with nothing_quoted():
            codes = [coder.signed_codes(plain.column(coder.name)) for coder in coders]
        yield batch.filter(pa.array(universe.holds(codes)))


def coded_records(batches: Batches, request: Request) -> Iterator[pa.RecordBatch]:
    """Records coded, c<index>, with whose they are, STATE, and ORDER and AREA if they have one.

    batches: v<index>, PERSON, maybe ORDER, and area columns of records as they are
    """
    coders = coders_of(request, request.attribute_indices)
    for batch in _larger(batches):
        with nothing_quoted():
            person = person_keys(batch.column(PERSON))
        nothing = np.zeros_like(person.low)
        columns: dict[str, Any] = {
            PERSON_LOW: person.low,
            PERSON_HIGH: nothing if person.high is None else person.high,
            WRITING: nothing if person.writing is None else person.writing,
            STATE: person.state,
        }
        if ORDER in batch.schema.names:
            columns[ORDER] = batch.column(ORDER)
        for index, codes in signed_codes(batch, coders).items():
            columns[f"c{index}"] = codes
        if request.area_columns:
            columns[AREA] = areas_of(batch, request)
        yield pa.record_batch(columns)


def counts_of_part(
    batches: Batches,
    request: Request,
    layout: Layout,
    most_kept: int = MOST_KEPT,
    more: Callable[[Codes], Iterator[pa.RecordBatch]] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Counts of a part of the records, in chunks.

    more: what else is told of the codes of some records, `AREAS` among them
    batches: as the layout tells, and area columns as they are; where there is a rule, c<index>,
        STATE and AREA
    """
    inspection, n_records = Inspection(request), 0
    n_unlisted = dict.fromkeys(layout.listed, 0)

    def coded() -> Iterator[tuple[Codes, int, float]]:
        nonlocal n_records
        coders = coders_of(request, layout.unlisted)
        for batch in _larger(batches):
            if request.rule is None:
                found = listed_codes(batch, layout)
                for index, column in found.items():
                    n_unlisted[index] += int(np.count_nonzero(column == UNKNOWN))
                codes = found | signed_codes(batch, coders)
                columns, state = {i: codes[i] for i in request.attribute_indices}, None
            else:
                columns = {i: batch.column(f"c{i}").to_numpy() for i in request.attribute_indices}
                state = batch.column(STATE).to_numpy()
            n_records += batch.num_rows
            if any(n_unlisted.values()):  # nobody wants these counts
                continue
            codes = inspection.codes(columns, state)
            if request.area_coder is not None:
                areas = areas_of(batch, request)
                codes = {**codes, **inspection.codes_of_areas(request.area_coder, areas)}
                if more is not None:
                    codes[AREAS] = np.maximum(areas, 0).astype(np.int32)
            yield codes, batch.num_rows, 0.0

    starts, sizes = _starts(request), request.sizes
    groups = _groups(request, most_kept)
    if len(groups) == 1 and more is None:
        counts = counts_of(
            coded(), groups[0], sizes, ranges=request.ranges, on_progress=no_progress
        )
        yield from _chunks(counts, starts)
    else:
        # Some records at a time, and all tables of these: no worker holds the counts of all tables.
        for codes, n_gathered, _ in gather(coded()):
            for group in groups:
                if _n_cells(group[0], sizes) > most_kept:
                    yield from _chunks_of_large(group[0], codes, request, starts[group[0]])
                else:
                    piece = [(codes, n_gathered, 0.0)]
                    counts = counts_of(
                        piece, group, sizes, ranges=request.ranges, on_progress=no_progress
                    )
                    yield from _chunks(counts, starts)
            if more is not None:
                yield from more(codes)
    unlisted = [n_unlisted.get(index, 0) for index in request.attribute_indices]
    yield row_batch(CHECKS, np.array([n_records, *inspection.checks, *unlisted]))


def added_counts(batches: Batches) -> Iterator[pa.RecordBatch]:
    """The sums of counts by chunk; of some chunks, all that there is of each."""
    sums: dict[int, np.ndarray] = {}
    for batch in batches:
        for row in batch.to_pylist():
            total = sums.setdefault(row[CHUNK], np.zeros(CHUNK_CELLS, dtype=np.int64))
            add_row(row, total)
    for chunk, counts in sums.items():
        yield row_batch(chunk, counts)


def add_row(row: Mapping[str, Any], cells: np.ndarray) -> None:
    """Add the counts of a row to those of its chunk."""
    counts = np.frombuffer(row[COUNTS], dtype=f"u{row[WIDTH]}")
    if row[PLACES] is None:
        cells[: len(counts)] += counts.astype(cells.dtype)
    else:
        cells[np.frombuffer(row[PLACES], dtype=np.uint16)] += counts.astype(cells.dtype)


def counts_of_chunks(rows: Iterable[Mapping[str, Any]], request: Request) -> Counts:
    """The counts that rows of `added_counts` hold; errors are those of `Source.count`.

    Raises `UnlistedError` if some values have to be read as they are.
    """
    starts = _starts(request)
    line = np.zeros(n_chunks(request) * CHUNK_CELLS, dtype=np.uint32)
    checks = np.full(CHUNK_CELLS, 0, dtype=np.int64)
    seen: set[int] = set()
    for row in rows:
        chunk = row[CHUNK]
        if chunk in seen or not CHECKS <= chunk < n_chunks(request):
            raise request.changed_error()
        seen.add(chunk)
        if chunk == CHECKS:
            add_row(row, checks)
            continue
        if row[WIDTH] > line.itemsize:
            line = line.astype(np.int64)
        add_row(row, line[chunk * CHUNK_CELLS : (chunk + 1) * CHUNK_CELLS])
    n_records, *found = checks[: 1 + request.n_checks].tolist()
    n_unlisted = checks[1 + request.n_checks :]
    if np.any(n_unlisted):
        indices = request.attribute_indices
        raise UnlistedError([indices[place] for place in np.flatnonzero(n_unlisted)])
    request.refuse(found, n_records)
    tables = {
        table: line[start : start + _n_cells(table, request.sizes)].reshape(
            [request.sizes[index] for index in table]
        )
        for table, start in starts.items()
    }
    counts = Counts(tables, n_records, request.faults(found).taken(), request.ranges)
    if not agree(counts):
        raise request.changed_error()
    return counts


def n_chunks(request: Request) -> int:
    """How many chunks hold counts."""
    n_cells = sum(_n_cells(table, request.sizes) for table in request.tables)
    return ceil(n_cells / CHUNK_CELLS)


def areas_of(batch: pa.RecordBatch, request: Request) -> np.ndarray:
    """The areas that records lie in, as of `AreaCoder.areas`, coded now unless they have been."""
    if AREA in batch.schema.names:
        return batch.column(AREA).to_numpy()
    coder = request.area_coder
    assert coder is not None
    with nothing_quoted():
        return coder.areas(in_areas(batch, request))


def _larger(batches: Batches) -> Iterator[pa.RecordBatch]:
    """The same records in fewer batches: a column's distinct values are looked up once for each."""
    waiting: list[pa.RecordBatch] = []
    n_rows = 0
    for batch in batches:
        waiting.append(batch)
        n_rows += batch.num_rows
        if n_rows >= _ROWS:
            yield _joined(waiting)
            waiting, n_rows = [], 0
    if n_rows:
        yield _joined(waiting)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _groups(request: Request, most_kept: int) -> list[list[AttributeIndices]]:
    """The tables, in their order, in groups of so many cells; larger ones by themselves."""
    groups: list[list[AttributeIndices]] = [[]]
    n_cells = 0
    for table in request.tables:
        n_cells += (size := _n_cells(table, request.sizes))
        if n_cells > most_kept and groups[-1]:
            groups.append([])
            n_cells = size
        groups[-1].append(table)
    return groups


def _n_cells(table: AttributeIndices, sizes: Sequence[int]) -> int:
    return prod(sizes[index] for index in table)


def _starts(request: Request) -> dict[AttributeIndices, int]:
    """The position in the line where each table begins."""
    n_cells = [_n_cells(table, request.sizes) for table in request.tables]
    return dict(zip(request.tables, accumulate(n_cells, initial=0), strict=False))


def _chunks(counts: Counts, starts: Mapping[AttributeIndices, int]) -> Iterator[pa.RecordBatch]:
    """All counts of tables that stand in the line one after the other."""
    buffer = np.zeros(CHUNK_CELLS, dtype=np.int64)
    chunk = None
    for table, cells in counts.tables.items():
        line, place = cells.reshape(-1), starts[table]
        while len(line):
            if place // CHUNK_CELLS != chunk:
                if chunk is not None:
                    yield row_batch(chunk, buffer)
                    buffer[:] = 0
                chunk = place // CHUNK_CELLS
            offset = place % CHUNK_CELLS
            part = line[: CHUNK_CELLS - offset]
            buffer[offset : offset + len(part)] = part
            line, place = line[len(part) :], place + len(part)
    if chunk is not None:
        yield row_batch(chunk, buffer)


def _chunks_of_large(
    table: AttributeIndices, codes: Codes, request: Request, start: int
) -> Iterator[pa.RecordBatch]:
    """The counts of a table that has far more cells than there are records."""
    shape, held = [request.sizes[index] for index in table], amounts_in(table, request.ranges)
    cells, steps = split_codes(codes, request.sizes, request.ranges)
    flat = np.ravel_multi_index([cells[index] for index in table], shape) + start
    behind = cells_behind(table, held, request.sizes)
    places, counts = counts_with_amounts(
        flat, products(steps, held, request.ranges), request.ranges, behind
    )
    chunks, firsts = np.unique(places // CHUNK_CELLS, return_index=True)
    for chunk, first, end in zip(chunks, firsts, [*firsts[1:], len(places)], strict=True):
        yield row_batch(int(chunk), counts[first:end], places[first:end] % CHUNK_CELLS)


def row_batch(chunk: int, counts: np.ndarray, places: np.ndarray | None = None) -> pa.RecordBatch:
    """Counts of a chunk, those at these places or all, in as few bytes as there are."""
    if places is None and 3 * np.count_nonzero(counts) < len(counts):
        places = np.flatnonzero(counts)
        counts = counts[places]
    width = np.min_scalar_type(int(counts.max(initial=0)))
    of_places = None if places is None else places.astype(np.uint16).tobytes()
    row = {CHUNK: chunk, WIDTH: width.itemsize, PLACES: of_places}
    row[COUNTS] = counts.astype(width).tobytes()
    return pa.RecordBatch.from_pylist([row], SCHEMA)
