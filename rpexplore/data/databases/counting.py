"""Counting in an engine: one statement for all tables, and what comes back: cells and counts.

The statement codes every record once, counts by blocks (`blocks`), sums the tables from the blocks,
and hands back rows of three numbers: which table, which of its cells, and how many records. Checks
are such rows too. One statement sees one state of the records.

Memory here: 4 bytes for each cell of the tables, and a piece of rows at a time.
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import combinations
from math import prod

import ibis
import ibis.expr.types as ir
import numpy as np
import pyarrow as pa

from rpexplore.data.blocks import blocks
from rpexplore.data.coding import unknown_value_error
from rpexplore.data.counts import Counts
from rpexplore.data.databases.coding import MISSING, ORDER, PERSON, UNKNOWN, Value
from rpexplore.data.source import PersonRule
from rpexplore.domain.domain import AttributeIndices, Domain
from rpexplore.errors import DataError

PART, CELL, COUNT = "part", "cell", "n"
RANK = "rank_of_person"
"""A column of the coded records: which of its person's one is, from 0."""

# Parts that are no table.
_CHECK, _OF_ONE_PERSON = -1, -2
_MOST_CELLS = 400_000_000  # of all tables; a release counts fewer at a time
_BLOCK_CELLS = 1 << 14
_NARROW = np.iinfo(np.uint32).max
_MOST_SUBSETS = 6  # attributes of a table of which all subsets are compared


def attribute_indices_of(tables: Iterable[AttributeIndices]) -> list[int]:
    """All attributes that any of the tables has, ascending."""
    return sorted({index for table in tables for index in table})


def refuse_too_many(tables: Sequence[AttributeIndices], sizes: Sequence[int]) -> None:
    """Raise `DataError` if more counts could come back than there is memory for."""
    n_cells = sum(prod(sizes[index] for index in table) for table in tables)
    if n_cells > _MOST_CELLS:
        raise DataError(
            f"The tables to count have {n_cells:,} cells in all, and at most {_MOST_CELLS:,} can "
            "be; count fewer or smaller tables."
        )


def with_ranks(records: ir.Table, attribute_indices: Sequence[int]) -> ir.Table:
    """The same with RANK: which of their person's records each is, by ORDER, 0 for the first.

    Ties are broken by all that is counted, so that records whose rank is left to the engine are
    alike in all that is counted: what counts of a person depends on that person's records alone.
    """
    order = [records[ORDER], *(records[f"c{index}"] for index in attribute_indices)]
    window = ibis.window(group_by=records[PERSON], order_by=order)
    return records.mutate(**{RANK: ibis.row_number().over(window)}).drop(ORDER)


def statement(
    records: ir.Table,
    tables: Sequence[AttributeIndices],
    sizes: Sequence[int],
    rule: PersonRule | None,
) -> ir.Table:
    """One expression whose rows are (part, cell, n): tables by their position, and checks.

    records: c<index> for the attributes of the tables, and PERSON and RANK where there is a rule.
    tables: ascending attribute indices, none in another.
    """
    kept = records
    if rule is not None and rule.excess == "keep first":
        rank: Value = records[RANK]
        kept = records.filter((rank < rule.most) | records[PERSON].isnull())
    parts = [*_checks(kept, records, attribute_indices_of(tables), rule)]
    positions = {table: position for position, table in enumerate(tables)}
    for block in blocks(tables, sizes, _BLOCK_CELLS):
        counted = kept.group_by(*(f"c{index}" for index in block.attribute_indices)).aggregate(
            n=lambda rows: rows.count()
        )
        for table in block.tables:
            parts.append(_table_rows(counted, table, positions[table], sizes))
    return _union(parts)


def _table_rows(
    counted: ir.Table, table: AttributeIndices, position: int, sizes: Sequence[int]
) -> ir.Table:
    summed = counted.group_by(*(f"c{index}" for index in table)).aggregate(
        n=lambda rows: rows.n.sum()
    )
    cell: Value = summed[f"c{table[0]}"].cast("int64")
    for index in table[1:]:
        cell = cell * ibis.literal(sizes[index], "int64") + summed[f"c{index}"].cast("int64")
    return _rows(summed, position, cell, summed.n)


def _checks(
    kept: ir.Table, records: ir.Table, attribute_indices: Sequence[int], rule: PersonRule | None
) -> Iterable[ir.Table]:
    """How many records there are, are unknown and missing in each attribute, and are nobody's.

    The part `_CHECK`, of one pass, in this order. Then how many records a person has, if needed.
    """
    sums: list[Value] = [kept.count()]
    for index in attribute_indices:
        code: Value = kept[f"c{index}"]
        sums += [(code == UNKNOWN).sum(), (code == MISSING).sum()]
    if rule is not None:
        person: Value = kept[PERSON]
        sums.append(person.isnull().sum())
    named: dict[str, Value] = {f"n{cell}": n for cell, n in enumerate(sums)}
    aggregated = kept.aggregate(**named)
    numbers = ibis.array([_as_int64(aggregated[name]) for name in named])
    listed = aggregated.select(n=numbers).unnest("n", offset="cell")
    yield _rows(listed, _CHECK, listed.cell, listed.n)
    if rule is not None and rule.excess == "refuse":
        persons = records.group_by(PERSON).aggregate(n=lambda rows: rows.count())
        most = persons.aggregate(n=persons.n.max())
        yield _rows(most, _OF_ONE_PERSON, ibis.literal(0), most.n)


def _rows(table: ir.Table, part: int, cell: Value, n: Value) -> ir.Table:
    return table.select(
        **{PART: ibis.literal(part, "int32"), CELL: cell.cast("int64"), COUNT: _as_int64(n)}
    )


def _as_int64(n: Value) -> Value:
    """A sum as a number of 64 bits; 0 for that of no records."""
    return ibis.coalesce(n.cast("int64"), ibis.literal(0, "int64"))


def _union(parts: Sequence[ir.Table]) -> ir.Table:
    """All rows of all parts; halved again and again, because engines nest what is chained."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return ibis.union(_union(parts[:middle]), _union(parts[middle:]), distinct=False)


class Tally:
    """Takes the rows of a statement in pieces, in any order, and gives the counts they hold."""

    def __init__(self, tables: Sequence[AttributeIndices], sizes: Sequence[int]) -> None:
        self._tables = list(tables)
        self._counts: list[np.ndarray] = [
            np.zeros([sizes[index] for index in table], dtype=np.uint32) for table in tables
        ]
        self._checks: dict[tuple[int, int], int] = {}
        self._is_corrupt = False  # rows that no statement of ours gives

    def add(self, piece: pa.RecordBatch) -> None:
        part, cell, n = (
            piece.column(name).to_numpy(zero_copy_only=False) for name in (PART, CELL, COUNT)
        )
        order = np.argsort(part, kind="stable")
        part, cell, n = part[order], cell[order], n[order]
        starts = np.flatnonzero(np.diff(part, prepend=part[:1] - 1))
        for start, end in zip(starts, [*starts[1:], len(part)], strict=True):
            if part[start] < 0:
                keys = zip(part[start:end].tolist(), cell[start:end].tolist(), strict=True)
                self._checks |= dict(zip(keys, n[start:end].tolist(), strict=True))
            else:
                self._add_cells(int(part[start]), cell[start:end], n[start:end])

    def _add_cells(self, table: int, cells: np.ndarray, n: np.ndarray) -> None:
        counts = self._counts[table]
        if np.any(cells < 0) or np.any(cells >= counts.size):
            self._is_corrupt = True
            return
        if np.any(n > _NARROW) and counts.dtype == np.uint32:
            counts = self._counts[table] = counts.astype(np.int64)
        counts.reshape(-1)[cells] = n

    def counts(self, domain: Domain, rule: PersonRule | None, name: str) -> Counts:
        """The counts; raises `DataError` for what the checks tell, or counts that do not agree.

        name: of the records, for the error
        """
        checks, attribute_indices = self._checks, attribute_indices_of(self._tables)
        if rule is not None:
            if checks.get((_CHECK, 1 + 2 * len(attribute_indices))):
                raise DataError(
                    f"The column {rule.column!r} is empty in some records, so that nobody knows "
                    "whose they are; fill it in, or leave these records out."
                )
            if checks.get((_OF_ONE_PERSON, 0), 0) > rule.most:
                raise rule.excess_error()
        for position, index in enumerate(attribute_indices):
            for is_missing in (False, True):
                if checks.get((_CHECK, 1 + 2 * position + is_missing)):
                    raise unknown_value_error(domain.names[index], is_missing=is_missing)
        n_records = checks.get((_CHECK, 0))
        if n_records is None or self._is_corrupt or not self._agree(n_records):
            raise DataError(
                f"The records {name} changed while they were counted, or are not the same whenever "
                "they are read; nothing of these counts is used. Wait until they are complete, and "
                "run again."
            )
        return Counts(dict(zip(self._tables, self._counts, strict=True)), n_records)

    def _agree(self, n_records: int) -> bool:
        """Whether tables have the same total, and the same marginals on what they share."""
        seen: dict[AttributeIndices, bytes] = {}
        for table, counts in zip(self._tables, self._counts, strict=True):
            if counts.sum(dtype=np.int64) != n_records:
                return False
            some = range(1, len(table)) if len(table) <= _MOST_SUBSETS else range(1, 2)
            for kept in (kept for size in some for kept in combinations(range(len(table)), size)):
                left = tuple(axis for axis in range(len(table)) if axis not in kept)
                shared = tuple(table[axis] for axis in kept)
                marginal = counts.sum(axis=left, dtype=np.int64).tobytes()
                digest = blake2b(marginal, digest_size=16).digest()
                if seen.setdefault(shared, digest) != digest:
                    return False
        return True
