"""Counting: exact marginals of records that come in batches, in one pass and in bounded memory."""

from abc import abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from math import prod

import numpy as np
import pyarrow as pa

from rpexplore.common.processes import Progress, in_order, no_progress, part_of_progress
from rpexplore.data.amounts import (
    amount_ranges,
    counts_of_amounts,
    product_of_steps,
    refuse_too_many,
    split_code,
)
from rpexplore.data.areas import AreaCoder, AreaCuts
from rpexplore.data.blocks import Block, blocks_by_amount, maximal, summed_tables
from rpexplore.data.coding import Coder, Declared, Faults, Takers, coders, kind_of
from rpexplore.data.persons import differing_codes, kept_records
from rpexplore.data.source import (
    COUNTING,
    Counts,
    PersonRule,
    Source,
    SparseTable,
    no_counts,
)
from rpexplore.domain.amounts import Ranges, amounts_in
from rpexplore.domain.area_tree import AreaTree
from rpexplore.domain.atoms import Atoms
from rpexplore.domain.domain import AttributeIndices, Domain, subsets
from rpexplore.domain.universe import Universe
from rpexplore.errors import DataError

# ---- Records that can be read in batches as often as is needed: files and frames.


Codes = Mapping[int, np.ndarray]
"""Category indices of some records: attribute index -> unsigned integers [n_records].

Amounts have codes of their own (`amounts`).
"""

# Of the time of a run with a rule for persons: what looking for them takes.
_PERSONS_SHARE = 0.3
_ATTRIBUTES_AT_ONCE = 20  # whose codes are kept of every record, in one to four bytes each


class BatchSource(Source):
    """A source whose records are read in batches.

    The memory that counting needs is stated below, and in `persons` for a `PersonRule`.
    """

    @abstractmethod
    def batches(self, names: Sequence[str]) -> Generator[tuple[pa.RecordBatch, float], None, None]:
        """Batches of the named columns, from the first record on, each with the share read by then.

        Whoever does not take them all closes this: a reader that is left open works on in threads
        of its own. Raises `DataError` for a column that is not there once.
        """

    def declared_missing(self) -> Mapping[str, Declared]:
        """Column -> what the records themselves declare missing."""
        return {}

    def has_decimal_commas(self, names: Sequence[str]) -> bool:
        """Whether texts of these columns have numbers with a decimal comma."""
        return False

    def remarks(self) -> tuple[str, ...]:
        return ()

    @property
    def streaming_note(self) -> str:
        return ""

    @abstractmethod
    def readable(self) -> AbstractContextManager[None]:
        """A block in which what cannot be read is raised as a `DataError`."""

    def count(
        self,
        domain: Domain,
        tables: Sequence[Sequence[int]],
        *,
        unknown_values: Mapping[str, str] | None = None,
        missing_values: Mapping[str, str] | None = None,
        person_rule: PersonRule | None = None,
        areas: AreaCuts | None = None,
        atoms: Atoms | None = None,
        universe: Universe | None = None,
        on_progress: Progress = no_progress,
    ) -> Counts:
        ranges = amount_ranges(domain, tables)
        before = self.fingerprint()
        attributes = {index for table in tables for index in table if index < len(domain)}
        attributes |= set(range(len(domain)) if atoms is not None else ())
        faults = Faults(domain, Takers.of(domain, unknown_values, missing_values))
        declared = self.declared_missing()
        coding = coders(
            domain,
            attributes,
            declared,
            has_decimal_commas=self.has_decimal_commas(
                [domain.names[index] for index in sorted(attributes)]
            ),
        )
        names, sizes = [coder.name for coder in coding.values()], domain.sizes.tolist()
        start, kept, area_coder = 0.0, None, None
        sizes += [] if atoms is None else [len(atoms)]

        def code(batch: pa.RecordBatch) -> Codes:
            codes: dict[int, np.ndarray] = {
                index: faults.codes(index, batch.column(coder.name), coder)
                for index, coder in coding.items()
            }
            if atoms is not None:
                codes[len(domain)] = atoms.of_records(codes)
            return codes if area_coder is None else codes | area_coder.codes(batch)

        with self.readable():
            if areas is not None:
                needed = [*names, *(() if universe is None else universe.columns)]
                area_coder = self._area_coder(areas, needed, len(domain))
                names += area_coder.names
                sizes += area_coder.sizes
            if person_rule is not None:
                start = _PERSONS_SHARE
                with closing(self._within(universe, person_rule.columns)) as batches:
                    kept = kept_records(
                        batches,
                        person_rule,
                        part_of_progress(on_progress, 0.0, start),
                        declared.get(person_rule.column),
                    )
            with closing(self._coded(universe, names, code, kept)) as coded:
                counts = counts_of(
                    coded,
                    tables,
                    sizes,
                    ranges=ranges,
                    may_be_sparse=areas is None and atoms is None,
                    on_progress=part_of_progress(on_progress, start, 1.0),
                )
        if self.fingerprint() != before:
            raise self._changed()
        faults.refuse()
        refuse_too_many(domain, tables, ranges, counts.n_records)
        on_progress(COUNTING, 1.0)
        return replace(counts, taken=faults.taken())

    def differing(
        self,
        domain: Domain,
        attributes: Sequence[int],
        *,
        person_rule: PersonRule,
        universe: Universe | None,
        n_persons: int,
        tree: AreaTree | None = None,
    ) -> set[int]:
        """The attributes in which records of one person differ; all values in no category are one.

        universe: which records are looked at; tree: areas, which count as one more attribute.
        Raises `DataError` if the records are not of so many persons any more.
        """
        declared, differing = self.declared_missing(), set[int]()
        for first in range(0, len(attributes), _ATTRIBUTES_AT_ONCE):
            own = attributes[first : first + _ATTRIBUTES_AT_ONCE]
            names = [domain.names[index] for index in own]
            has_decimal_commas = self.has_decimal_commas(names)
            coding = coders(domain, own, declared, has_decimal_commas=has_decimal_commas)

            def codes_of(
                batch: pa.RecordBatch, coding: Mapping[int, Coder] = coding
            ) -> list[np.ndarray]:
                columns = ((coder, batch.column(coder.name)) for coder in coding.values())
                return [np.maximum(coder.signed_codes(column), -1) for coder, column in columns]

            places = self._differing(names, codes_of, person_rule, universe, n_persons)
            differing |= {list(coding)[place] for place in places}
        if tree is not None:
            areas = self._area_coder(AreaCuts(tree, ()), [person_rule.column], len(domain))

            def area_of(batch: pa.RecordBatch) -> list[np.ndarray]:
                return [np.maximum(areas.areas(batch), -1)]

            if self._differing(areas.names, area_of, person_rule, universe, n_persons):
                differing.add(len(domain))
        return differing

    def _area_coder(self, areas: AreaCuts, needed: Sequence[str], first: int) -> AreaCoder:
        """needed: the other columns, read together with the lowest level, which is always there."""
        lowest = areas.tree.levels[1:][-1:]
        return AreaCoder(areas, self.name, self.columns([*needed, *lowest]), first)

    def _differing(
        self,
        names: Sequence[str],
        codes_of: Callable[[pa.RecordBatch], Sequence[np.ndarray]],
        rule: PersonRule,
        universe: Universe | None,
        n_persons: int,
    ) -> set[int]:
        """Which codes of these columns differ between records of one person."""
        needed = list(dict.fromkeys([rule.column, *names]))
        declared = self.declared_missing().get(rule.column)
        with self.readable(), closing(self._within(universe, needed)) as batches:
            places, n_found = differing_codes(batches, rule, codes_of, no_progress, declared)
        if n_found != n_persons:
            raise self._changed()
        return places

    def _within(
        self, universe: Universe | None, names: Sequence[str]
    ) -> Generator[tuple[pa.RecordBatch, float], None, None]:
        """`batches`, of the records in a universe alone."""
        if universe is None:
            yield from self.batches(names)
            return
        needed = list(dict.fromkeys([*names, *universe.columns]))
        coding = coders(
            universe.domain,
            range(len(universe.domain)),
            self.declared_missing(),
            has_decimal_commas=self.has_decimal_commas(needed),
        )
        with closing(self.batches(needed)) as batches:
            for batch, share in batches:
                columns = {name: batch.column(name) for name in universe.columns}
                universe.check_kinds({name: kind_of(column) for name, column in columns.items()})
                codes = [coder.signed_codes(columns[coder.name]) for coder in coding.values()]
                within = batch.filter(pa.array(universe.holds(codes)))
                # Without any column, how many records there are would be lost.
                yield within.select(list(names)) if names else within, share

    def _coded(
        self,
        universe: Universe | None,
        names: Sequence[str],
        code: Callable[[pa.RecordBatch], Codes],
        kept: np.ndarray | None,
    ) -> Generator[tuple[Codes, int, float], None, None]:
        """The codes of each batch, of the kept records alone; others may hold anything."""
        start = 0
        with closing(self._within(universe, names)) as batches:
            for batch, share in batches:
                if kept is not None:
                    are_kept = kept[start : start + batch.num_rows]
                    start += batch.num_rows
                    if len(are_kept) < batch.num_rows:
                        raise self._changed()
                    batch = batch.filter(pa.array(are_kept))
                yield code(batch), batch.num_rows, share

    def _changed(self) -> DataError:
        return DataError(
            f"The records {self.name!r} changed while they were counted; nothing of these counts "
            "is used. Wait until they are complete, and run again."
        )


# ---- Counting: exact marginals of records that come in batches, in one pass and in bounded
# memory.
#
# Batches are coded and gathered until there are many records; then every block of attributes
# (`blocks`) is counted over all of these, and its tables are summed from that, before the next
# records are read. Memory, beyond the programme itself:
#
# - the counts of the maximal tables: 4 bytes a cell, 8 from 2^32 records on, and 8 with an amount;
#   of a table of more than `MOST_DENSE` cells without an amount 12 bytes a cell with a record;
# - the gathered records, as category indices: at most 32 MB, or 2^16 records where these are more;
#   of each attribute of amounts 16 bytes a record more;
# - one batch as it was read: at most 2^22 values of all columns, usually far less than 32 MB;
# - for each processor (at most 4), what it works on: some 20 MB, whatever the tables' sizes.


# Cells whose counts a processor's cache holds while they are counted.
_BLOCK_CELLS = 1 << 17
# A block has at most so many cells a record: else summing costs more than counting. Of fewer
# records it has at most a cell for every so many, as finding blocks takes longer than counting.
_CELLS_PER_RECORD, _FEW_RECORDS = 2, 1 << 14
_RECORDS_PER_CELL = 8
# Records that are worked on at a time, so that they stay in the cache as well: with 2^15
# counting took 13 % longer, with 2^17 5 to 9 %.
_PIECE = 1 << 16
_SORTED_PIECE = 1 << 19
# Records that are gathered before they are counted.
_GATHERED_BYTES, _LEAST_GATHERED, _MOST_GATHERED = 1 << 25, 1 << 16, 1 << 21
_NARROW, _WIDE = np.uint32, np.uint64


def counts_of(
    batches: Iterable[tuple[Codes, int, float]],
    tables: Iterable[Sequence[int]],
    sizes: Sequence[int],
    *,
    on_progress: Progress,
    ranges: Ranges | None = None,
    may_be_sparse: bool = False,
) -> Counts:
    """Exact counts from which the marginals on all these sets of attributes follow.

    batches: codes of the attributes of the tables, the number of records, and the share of all
    records that have come by then. sizes: of all attributes of the domain. ranges: of `Counts`.
    may_be_sparse: whether very large tables may be `SparseTable`s.
    """
    ranges = ranges or Ranges()
    tally = _Tally(maximal(tables), sizes, ranges, may_be_sparse=may_be_sparse)
    start = 0.0
    for gathered, n_records, share in gather(batches):
        tally.add(gathered, n_records, part_of_progress(on_progress, start, share))
        start = share
        on_progress(COUNTING, share)
    return Counts(tally.tables, tally.n_records, ranges=ranges)


def gather(batches: Iterable[tuple[Codes, int, float]]) -> Iterator[tuple[Codes, int, float]]:
    """Batches put together to as many records as are counted at a time."""
    waiting: list[Codes] = []
    n_records, n_bytes, share = 0, 0, 0.0
    for codes, n_more, share in batches:
        waiting.append(codes)
        n_records += n_more
        n_bytes += sum(column.nbytes for column in codes.values())
        full = n_bytes >= _GATHERED_BYTES and n_records >= _LEAST_GATHERED
        if full or n_records >= _MOST_GATHERED:
            yield _concatenate(waiting), n_records, share
            waiting, n_records, n_bytes = [], 0, 0
    if waiting:
        yield _concatenate(waiting), n_records, share


def _concatenate(parts: list[Codes]) -> Codes:
    return {index: np.concatenate([part[index] for part in parts]) for index in parts[0]}


class _Tally:
    """The counts so far of tables of which none is in another."""

    def __init__(
        self,
        tables: Sequence[AttributeIndices],
        sizes: Sequence[int],
        ranges: Ranges,
        *,
        may_be_sparse: bool,
    ) -> None:
        self._sizes, self._ranges = sizes, ranges
        self.tables: dict[AttributeIndices, np.ndarray | SparseTable] = {}
        for table in tables:
            has_amounts = bool(amounts_in(table, ranges))
            self.tables[table] = no_counts(
                self._shape(table),
                may_be_sparse=may_be_sparse and not has_amounts,
                dtype=np.int64 if has_amounts else _NARROW,
            )
        self.n_records = 0
        self._blocks: list[Block] = []

    def add(self, codes: Codes, n_records: int, on_progress: Progress) -> None:
        """Count more records."""
        if self.n_records == 0:
            # The first are most of all, so that how many there are tells which blocks pay.
            if n_records < _FEW_RECORDS:
                room = n_records // _RECORDS_PER_CELL
            else:
                room = _CELLS_PER_RECORD * n_records
            room = min(_BLOCK_CELLS, room)
            self._blocks = blocks_by_amount(list(self.tables), self._sizes, room, self._ranges)
        if self.n_records <= np.iinfo(_NARROW).max < self.n_records + n_records:
            for table, counts in self.tables.items():
                if isinstance(counts, np.ndarray) and counts.dtype == _NARROW:
                    self.tables[table] = counts.astype(_WIDE)
        self.n_records += n_records
        codes, steps = split_codes(codes, self._sizes, self._ranges)
        # So many blocks that a thread works on them for longer than it takes to begin.
        n_together = max(1, _MOST_GATHERED // max(n_records, _LEAST_GATHERED))

        def count(start: int) -> None:
            for block in self._blocks[start : start + n_together]:
                self._count(block, codes, steps, n_records)

        starts = range(0, len(self._blocks), n_together)
        with closing(in_order(count, starts)) as work:
            for n_done, _ in enumerate(work, 1):
                on_progress(COUNTING, n_done / len(starts))

    def _count(
        self, block: Block, codes: Codes, steps: Mapping[int, np.ndarray], n_records: int
    ) -> None:
        """Add these records to the tables of a block; no other block has any of these."""
        # An attribute of one value changes no cell.
        columns = [
            (codes[index], self._sizes[index])
            for index in block.attribute_indices
            if self._sizes[index] > 1
        ]
        shape = self._shape(block.attribute_indices)
        n_cells = prod(shape)
        held = amounts_in(block.attribute_indices, self._ranges)
        of_held = products(steps, held, self._ranges)
        behind = cells_behind(block.attribute_indices, held, self._sizes)
        if n_cells > _BLOCK_CELLS:
            # Much larger than the cache: counts go in by the order of their cells.
            table = self.tables[block.attribute_indices]
            start = 0
            for flat in _cell_indices(columns, n_records, _SORTED_PIECE):
                of_piece = {some: one[start : start + len(flat)] for some, one in of_held.items()}
                cells, times = counts_with_amounts(flat, of_piece, self._ranges, behind)
                start += len(flat)
                if isinstance(table, SparseTable):
                    table.add(cells, times)
                else:
                    table.reshape(-1)[cells] += times.astype(table.dtype)
            return
        counts: np.ndarray | None = None
        sums = {some: np.zeros(n_cells, dtype=np.int64) for some in of_held}
        start = 0
        for flat in _cell_indices(columns, n_records, _PIECE):
            times = np.bincount(flat, minlength=n_cells)
            counts = times if counts is None else np.add(counts, times, out=counts)
            for some, one in of_held.items():
                of_piece = one[start : start + len(flat)]
                sums[some] += _sums_by_cell(flat, of_piece, n_cells, self._ranges.times(some))
            start += len(flat)
        if counts is None:
            return
        if held:  # whoever has an amount was counted where it is `low`
            own, counts = counts, np.zeros_like(counts)
            for high, times in counts_of_amounts({(): own, **sums}, self._ranges).items():
                low = np.flatnonzero(times)
                counts[low + sum(behind[index] for index in high)] += times[low]
        else:
            counts = counts.astype(np.min_scalar_type(n_records))
        for table, of_table in summed_tables(block, counts.reshape(shape)):
            own = self.tables[table]
            assert isinstance(own, np.ndarray)  # blocks of several tables are small
            np.add(own, of_table, out=own, casting="unsafe")

    def _shape(self, attribute_indices: AttributeIndices) -> tuple[int, ...]:
        return tuple(self._sizes[index] for index in attribute_indices)


def _cell_indices(
    columns: Sequence[tuple[np.ndarray, int]], n_records: int, piece: int
) -> Iterator[np.ndarray]:
    """The index of each record's cell, the last attribute fastest, for a piece of them at a time.

    columns: codes and size of each attribute, sizes above 1. Not to be written to.
    """
    first, n_so_far = columns[0] if columns else (np.zeros(n_records, dtype=np.uint8), 1)
    kinds = [np.min_scalar_type(n_so_far - 1)]
    for _, size in columns[1:]:
        n_so_far *= size
        kinds.append(np.min_scalar_type(n_so_far - 1))
    for start in range(0, n_records, piece):
        # In the narrowest type as long as it holds them: bytes are added four times as fast as
        # what all of them need.
        flat = first[start : start + piece].astype(kinds[0], copy=False)
        for kind, (column, size) in zip(kinds[1:], columns[1:], strict=True):
            flat = np.multiply(flat, kind.type(size), dtype=kind)
            flat += column[start : start + piece]
        yield flat


def split_codes(
    codes: Codes, sizes: Sequence[int], ranges: Mapping[int, int]
) -> tuple[Codes, Mapping[int, np.ndarray]]:
    """Codes as cells are counted by, and of attributes of amounts the steps of each record."""
    cells, steps = dict(codes), {}
    for index in ranges.keys() & codes.keys():
        cells[index], steps[index] = split_code(codes[index], sizes[index])
    return cells, steps


def products(
    steps: Mapping[int, np.ndarray], held: AttributeIndices, ranges: Ranges
) -> dict[AttributeIndices, np.ndarray]:
    """The product of the steps of each set of amounts that are held, but for none of them."""
    return {
        some: product_of_steps([steps[index] for index in some], ranges.product_unit(some))
        for some in subsets(held)
        if some
    }


def cells_behind(
    attribute_indices: AttributeIndices, held: Sequence[int], sizes: Sequence[int]
) -> dict[int, int]:
    """How far behind a cell where an amount is `low` that is where it is `high`."""
    return {
        index: prod(sizes[each] for each in attribute_indices[attribute_indices.index(index) + 1 :])
        for index in held
    }


def counts_with_amounts(
    flat: np.ndarray,
    products: Mapping[AttributeIndices, np.ndarray],
    ranges: Ranges,
    behind: Mapping[int, int],
) -> tuple[np.ndarray, np.ndarray]:
    """Cells, ascending, in which records count, and how often: int64[k] each.

    flat: the cell of each record, of those with an amount that where it is `low`
    products: of the steps of each set of amounts; none where tables have none
    behind: of `cells_behind`
    """
    if not products:
        return np.unique(flat, return_counts=True)
    cells, which, times = np.unique(flat, return_inverse=True, return_counts=True)
    sums = {(): times, **{some: np.zeros(len(cells), dtype=np.int64) for some in products}}
    for some, one in products.items():
        np.add.at(sums[some], which, one)
    all_cells, counts = [], []
    for high, of_high in counts_of_amounts(sums, ranges).items():
        there = of_high > 0 if high else slice(None)
        all_cells.append(cells[there].astype(np.int64) + sum(behind[index] for index in high))
        counts.append(of_high[there])
    places, times = np.concatenate(all_cells), np.concatenate(counts)
    order = np.argsort(places)
    return places[order], times[order]


def _sums_by_cell(
    flat: np.ndarray, steps: np.ndarray, n_cells: int, range_in_steps: int
) -> np.ndarray:
    """The sum of steps in each cell, int64[n_cells]; of few enough records to be exact in floats.

    Floats of 64 bits hold whole numbers up to 2^53. Steps that could sum to more are halved.
    """
    if range_in_steps * len(flat) <= 2**53:
        return np.bincount(flat, steps, n_cells).astype(np.int64)
    low_bits = np.bincount(flat, steps & (1 << 20) - 1, n_cells).astype(np.int64)
    high_bits = np.bincount(flat, steps >> 20, n_cells).astype(np.int64)
    return low_bits + (high_bits << 20)
