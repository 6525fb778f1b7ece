"""Counting in an engine: one statement for all tables, and what comes back: cells and counts.

The statement codes every record once, counts by blocks (`blocks`), sums the tables from the blocks,
and hands back rows of three numbers: which table, which of its cells, and how many records. Checks
are such rows too. One statement sees one state of the records; several can share the blocks where
the engine lets them see the same one.

Memory here: 4 bytes for each cell of the tables, and a piece of rows at a time.
"""

from collections.abc import Sequence
from functools import reduce
from math import prod
from operator import mul

import ibis
import ibis.expr.types as ir
import numpy as np
import pyarrow as pa

from rpexplore.data.amounts import counts_of_amounts
from rpexplore.data.blocks import Block, blocks_by_amount
from rpexplore.data.coding import MISSING, UNKNOWN, code_type
from rpexplore.data.engines.coding import (
    Value,
    area_text,
    code_columns,
    hex_digits,
    plain_text,
    whole_quotient,
)
from rpexplore.data.engines.packing import Word
from rpexplore.data.engines.person_columns import (
    IS_UNFIT,
    ORDER,
    PERSON,
    WRITING,
    person_columns,
)
from rpexplore.data.engines.session import STATE, STATES, Request, agree
from rpexplore.data.source import (
    BEYOND,
    OF_NOBODY,
    UNCLEAR,
    Counts,
    PersonRule,
    SparseTable,
    no_counts,
)
from rpexplore.domain.amounts import Ranges, amounts_in
from rpexplore.domain.atoms import MOST_KEYS, Atoms
from rpexplore.domain.domain import AttributeIndices, subsets
from rpexplore.domain.universe import BOOLEANS, DAYS, NUMBERS, Comparison, Universe
from rpexplore.errors import DataError

PART, CELL, COUNT = "part", "cell", "n"
RANK = "rank_of_person"
"""A column of the coded records: which of its person's one is, from 0."""
IS_UNCLEAR = "is_unclear"
"""A column of the coded records: whether the id leaves it open who is meant."""

_CHECK = -1  # the part that is no table
_BLOCK_CELLS = 1 << 14
_MOST_RUNS = 200  # of values that lie in one group, in a statement
_NARROW = np.iinfo(np.uint32).max
_LARGEST = 2**63 - 1


def coded_records(table: ir.Table, request: Request, engine: str) -> ir.Table:
    """One row a record: c<index> for the attributes of the tables; where there is a rule, PERSON.

    And IS_UNCLEAR, and RANK: which of their person's records each is, 0 for the first: by ORDER
    where the first are kept. Ties are broken by all that is counted, so that records whose rank is
    left to the engine are alike in all that is counted: what counts of a person depends on that
    person's records alone. Raises `DataError` for a column that cannot be an attribute.
    """
    rule, indices = request.rule, request.attribute_indices
    more: dict[str, Value] = {}
    if request.universe is not None:
        table = _within(table, request.universe, engine)
    if rule is not None:
        table, more = person_columns(table, rule, engine)
    more |= {
        area: area_text(table[column], engine) for area, column in request.area_columns.items()
    }
    records = code_columns(table, request.domain, indices, engine, more)
    if rule is None:
        return records
    order = None
    if rule.excess == "keep first":
        codes = [_tie_breaker(records, index, engine) for index in indices]
        # By their bytes: there are collations that take two codes for one.
        digits = [hex_digits(records[area], engine) for area in request.area_columns]
        order = [records[ORDER], *codes, *digits]
    window = ibis.window(group_by=records[PERSON], order_by=order)
    is_unclear: Value = ibis.literal(False)
    if WRITING in records.columns:
        writing: Value = records[WRITING]
        of_person = ibis.window(group_by=records[PERSON])
        is_unclear = records[IS_UNFIT] | (
            writing.min().over(of_person) != writing.max().over(of_person)
        )
    return records.mutate(**{RANK: ibis.row_number().over(window), IS_UNCLEAR: is_unclear})


def _within(table: ir.Table, universe: Universe, engine: str) -> ir.Table:
    """The records of a universe, with all their columns."""
    # Under names of our own: those of the table may be those of codes.
    given: dict[str, Value] = {f"given {i}": table[name] for i, name in enumerate(table.columns)}
    indices = range(len(universe.domain))
    types = {name: table[name].type() for name in universe.columns}
    universe.check_kinds({name: _kind_of(type_) for name, type_ in types.items()})
    coded = code_columns(table, universe.domain, indices, engine, given)

    def compared(one: Comparison) -> Value:
        code: Value = coded[f"c{one.column}"]
        return code.isin([ibis.literal(number, "int32") for number in sorted(one.codes)])

    kept = coded.filter(universe.where(compared))
    return kept.select(**{name: kept[f"given {i}"] for i, name in enumerate(table.columns)})


def _kind_of(type_: ibis.DataType) -> str:
    """What a column of this type holds, as universes have it; "" for texts and others."""
    if type_.is_boolean():
        return BOOLEANS
    if type_.is_numeric():
        return NUMBERS
    return DAYS if type_.is_date() or type_.is_timestamp() else ""


def _tie_breaker(records: ir.Table, index: int, engine: str) -> Value:
    """A column that is equal only for records that count alike."""
    if f"v{index}" not in records.columns:
        return records[f"c{index}"]
    column: Value = records[f"v{index}"]
    # By their bytes, as areas are.
    return column if column.type().is_numeric() else hex_digits(plain_text(column), engine)


def kept_records(records: ir.Table, rule: PersonRule | None) -> ir.Table:
    """Those that are counted, and those that are refused by their state, however late they rank."""
    if rule is None or rule.excess != "keep first":
        return records
    rank: Value = records[RANK]
    # Ids by which nobody can be known may stand beside a person whose records come first.
    is_unclear: Value = records[IS_UNCLEAR]
    return records.filter((rank < rule.most) | records[PERSON].isnull() | is_unclear)


def streamed(records: ir.Table, request: Request) -> ir.Table:
    """One row a counted record: its codes, in as few bytes as there are, areas, and its STATE.

    Of amounts in DuckDB v<index>, as they are.

    STATE: where there is a rule.
    """
    kept, rule = kept_records(records, request.rule), request.rule
    columns: dict[str, Value] = {}
    for index in request.attribute_indices:
        if f"v{index}" in kept.columns:
            columns[f"v{index}"] = kept[f"v{index}"]
            continue
        code: Value = kept[f"c{index}"]
        columns[f"c{index}"] = code.cast(str(code_type(request.code_sizes[index])))
    columns |= {area: kept[area] for area in request.area_columns}
    if rule is not None:
        columns[STATE] = _state(kept, rule)
    return kept.select(**columns) if columns else kept


def _state(records: ir.Table, rule: PersonRule) -> Value:
    """The state of a record's person, int8."""
    rank: Value = records[RANK]
    return ibis.cases(
        (records[PERSON].isnull(), OF_NOBODY),
        (records[IS_UNCLEAR], UNCLEAR),
        (rank >= rule.most, BEYOND),
        else_=0,
    ).cast("int8")


def packed(records: ir.Table, request: Request, words: Sequence[Word]) -> ir.Table:
    """One row a counted record: `streamed` in whole numbers w0, w1, … of 64 bits."""
    kept, rule = kept_records(records, request.rule), request.rule
    columns: dict[str, Value] = {}
    for position, word in enumerate(words):
        sums: Value = ibis.literal(0, "int64")
        for name, shift in word.items():
            code: Value = kept[name] if rule is None or name != STATE else _state(kept, rule)
            sums = sums + code.cast("int64") * ibis.literal(1 << shift, "int64")
        columns[f"w{position}"] = sums
    return kept.select(**columns)


def blocks_of(request: Request) -> list[Block]:
    """The groups that `statement` counts by; each takes about as long."""
    return blocks_by_amount(request.tables, request.sizes, _BLOCK_CELLS, request.ranges)


def statement(
    records: ir.Table,
    request: Request,
    share: Sequence[Block] | None = None,
    *,
    has_checks: bool = True,
) -> ir.Table:
    """One expression whose rows are (part, cell, n): tables by their position, and checks.

    Of a table with amounts more parts, behind all tables, have the sums of products of steps.

    Args:
        records: Of `coded_records`.
        share: Those of `blocks_of` whose tables are counted; None: all.
        has_checks: Whether the checks are among the rows, which one statement has to have.
    """
    tables, sizes = request.tables, [*request.sizes]
    keys = None if request.atoms is None else AtomKeys(request.atoms)
    if keys is not None:
        sizes[len(request.domain)] = keys.n_keys
        amounts = prod(request.sizes[index] for index in request.ranges)
        if amounts * keys.n_keys >= 2 * MOST_KEYS:
            raise DataError(
                "Own counts with amounts tell too many combinations of values apart to be counted "
                "in a database; name fewer attributes in one list."
            )
    kept = kept_records(records, request.rule)
    parts = [_checks(kept, request)] if has_checks else []
    kept = _with_steps(_taken(kept, request), request)
    if keys is not None:
        kept = kept.mutate(**{f"c{len(request.domain)}": keys.of_rows(kept)})
    positions = {table: position for position, table in enumerate(tables)}
    for block in blocks_of(request) if share is None else share:
        of_block: dict[str, Value] = {"n": kept.count()}
        for which, some in enumerate(subsets(amounts_in(block.attribute_indices, request.ranges))):
            if which:
                of_block[f"steps{which}"] = _product_of_steps(kept, some, request.ranges).sum()
        columns = (f"c{index}" for index in block.attribute_indices)
        counted = kept.group_by(*columns).aggregate(**of_block)
        for table in block.tables:
            sums: dict[str, Value] = {}
            for name in of_block:
                column: Value = counted[name]
                sums[name] = column.sum()
            summed = counted.group_by(*(f"c{index}" for index in table)).aggregate(**sums)
            cell: Value = summed[f"c{table[0]}"].cast("int64")
            for index in table[1:]:
                cell = cell * ibis.literal(sizes[index], "int64") + summed[f"c{index}"].cast(
                    "int64"
                )
            parts.append(_rows(summed, positions[table], cell, summed.n))
            for which in range(1, len(of_block)):
                # What is too large for 64 bits is refused for the number of records.
                steps = ibis.least(summed[f"steps{which}"], ibis.literal(_LARGEST, "int64"))
                parts.append(_rows(summed, which * len(tables) + positions[table], cell, steps))
    return _union(parts)


def _taken(kept: ir.Table, request: Request) -> ir.Table:
    """Records whose unknown and missing values have the codes of the categories that take them."""
    columns: dict[str, Value] = {}
    for code, takers in ((UNKNOWN, request.takers.unknown), (MISSING, request.takers.missing)):
        for index in takers.keys() & set(request.attribute_indices):
            name = f"c{index}"
            column: Value = columns.get(name, kept[name])
            taker = ibis.literal(takers[index], "int32")
            columns[name] = ibis.ifelse(column == ibis.literal(code, "int32"), taker, column)
    return kept.mutate(**columns) if columns else kept


def _with_steps(kept: ir.Table, request: Request) -> ir.Table:
    """With the steps of amounts, s<index>, and their codes as those of cells."""
    columns: dict[str, Value] = {}
    for index in request.ranges:
        code: Value = kept[f"c{index}"]
        size, nothing = (ibis.literal(number, "int64") for number in (request.sizes[index], 0))
        columns[f"s{index}"] = ibis.ifelse(code >= size, code - size, nothing)
        columns[f"c{index}"] = ibis.ifelse(code >= size, nothing, code)
    return kept.mutate(**columns) if columns else kept


def _product_of_steps(records: ir.Table, some: AttributeIndices, ranges: Ranges) -> Value:
    """As `data.amounts.product_of_steps` has it."""
    steps: list[Value] = [records[f"s{index}"] for index in some]
    unit = ranges.product_unit(some)
    if unit == 1:
        return reduce(mul, steps)
    # Engines divide in floats, which hold the numbers below that are divided: of at most 2^40, and
    # unit² ≤ 10^12. x = x' unit + x₀, so that xy / unit = x' y + x₀ y' + x₀ y₀ / unit.
    (whole, rest), (whole_2, rest_2) = ((whole_quotient(one, unit), one % unit) for one in steps)
    half = ibis.literal(unit // 2, "int64")
    return whole * steps[1] + rest * whole_2 + whole_quotient(rest * rest_2 + half, unit)


class AtomKeys:
    """Records' groups of values as one number, by which an engine counts what atoms are made of.

    Where values of an attribute lie in so many runs of one group that a statement would be long,
    its codes stand for the groups, as far as 64 bits go.
    """

    def __init__(self, atoms: Atoms) -> None:
        self._atoms = atoms
        self._ends = [
            np.flatnonzero(np.diff(groups, append=-1)) + 1 for groups in atoms.groups
        ]  # of the runs, excluded
        self._by_code = [False] * len(self._ends)
        for index, ends in enumerate(self._ends):
            self._by_code[index] = len(ends) > _MOST_RUNS
            if prod(self._sizes) >= MOST_KEYS:
                self._by_code[index] = False

    @property
    def n_keys(self) -> int:
        """How many numbers there can be."""
        return prod(self._sizes)

    @property
    def _sizes(self) -> list[int]:
        """How many numbers there are for each attribute."""
        return [
            len(groups) if by_code else n_groups
            for groups, n_groups, by_code in zip(
                self._atoms.groups, self._atoms.n_groups, self._by_code, strict=True
            )
        ]

    def of_rows(self, records: ir.Table) -> Value:
        """The number of each coded record; anything for one with a code that is no value."""
        key: Value = ibis.literal(0, "int64")
        for index, (ends, size) in enumerate(zip(self._ends, self._sizes, strict=True)):
            digit: Value = records[f"c{index}"].cast("int64")
            if not self._by_code[index]:
                groups = self._atoms.groups[index][ends - 1].tolist()
                runs = list(zip(ends.tolist(), groups, strict=True))
                cases = [(digit < end, ibis.literal(group, "int64")) for end, group in runs[:-1]]
                last = ibis.literal(groups[-1], "int64")
                digit = ibis.cases(*cases, else_=last) if cases else last
            key = key * ibis.literal(size, "int64") + digit
        return key

    def atoms(self, keys: np.ndarray) -> np.ndarray | None:
        """The atom of each number; None if one is no record's."""
        sizes = self._sizes
        if np.any(keys < 0) or np.any(keys >= prod(sizes)):
            return None
        groups: list[np.ndarray] = []
        for index in reversed(range(len(sizes))):
            keys, digits = np.divmod(keys, sizes[index])
            groups.append(self._atoms.groups[index][digits] if self._by_code[index] else digits)
        return self._atoms.of_groups(groups[::-1])


def _checks(kept: ir.Table, request: Request) -> ir.Table:
    """How many records there are, and then what `Request.refuse` takes; of one pass."""
    sums: list[Value] = [kept.count()]
    for index in request.attribute_indices:
        code: Value = kept[f"c{index}"]
        sums += [(code == UNKNOWN).sum(), (code == MISSING).sum()]
    for refused in STATES:
        if request.rule is None:
            sums.append(ibis.literal(0))
        else:
            sums.append((_state(kept, request.rule) == refused).sum())
    named: dict[str, Value] = {f"n{cell}": n for cell, n in enumerate(sums)}
    aggregated = kept.aggregate(**named)
    numbers = ibis.array([_as_int64(aggregated[name]) for name in named])
    listed = aggregated.select(n=numbers).unnest("n", offset="cell")
    return _rows(listed, _CHECK, listed.cell, listed.n)


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

    def __init__(self, request: Request) -> None:
        self._request = request
        self._counts: list[np.ndarray | SparseTable] = [
            no_counts(
                [request.sizes[index] for index in table],
                # Of no areas and no atoms, which stand behind the attributes.
                may_be_sparse=all(index < len(request.domain) for index in table)
                and not amounts_in(table, request.ranges),
            )
            for table in request.tables
        ]
        self._sums: dict[int, dict[AttributeIndices, np.ndarray]] = {
            position: {
                some: np.zeros(self._counts[position].shape, dtype=np.int64)
                for some in subsets(held)
                if some
            }
            for position, table in enumerate(request.tables)
            if (held := amounts_in(table, request.ranges))
        }
        self._checks = np.full(1 + request.n_checks, -1, dtype=np.int64)
        self._keys = None if request.atoms is None else AtomKeys(request.atoms)
        self._is_corrupt = False  # rows that no statement of ours gives

    def add(self, piece: pa.RecordBatch) -> None:
        part, cell, n = (
            piece.column(name).to_numpy(zero_copy_only=False) for name in (PART, CELL, COUNT)
        )
        order = np.argsort(part, kind="stable")
        part, cell, n = part[order], cell[order], n[order]
        starts = np.flatnonzero(np.diff(part, prepend=part[:1] - 1))
        for start, end in zip(starts, [*starts[1:], len(part)], strict=True):
            if part[start] == _CHECK:
                self._checks[cell[start:end]] = n[start:end]
            else:
                self._add_cells(int(part[start]), cell[start:end], n[start:end])

    def _add_cells(self, table: int, cells: np.ndarray, n: np.ndarray) -> None:
        which, table = divmod(table, len(self._counts))
        is_of_steps, counts = which > 0, self._counts[table]
        if is_of_steps:
            counts = list(self._sums[table].values())[which - 1]
        own = self._request.tables[table]
        if self._keys is not None and own and own[-1] == len(self._request.domain):
            assert isinstance(counts, np.ndarray)
            of_amounts, keys = np.divmod(cells, self._keys.n_keys)
            atoms = self._keys.atoms(keys)
            n_rows = counts.size // counts.shape[-1]
            if atoms is None or np.any(of_amounts < 0) or np.any(of_amounts >= n_rows):
                self._is_corrupt = True
                return
            if counts.dtype != np.int64:
                counts = self._counts[table] = counts.astype(np.int64)
            np.add.at(counts.reshape(n_rows, -1), (of_amounts, atoms), n)
            return
        if np.any(cells < 0) or np.any(cells >= counts.size):
            self._is_corrupt = True
            return
        if not is_of_steps and np.any(n > _NARROW) and counts.dtype == np.uint32:
            counts = self._counts[table] = counts.astype(np.int64)
        if isinstance(counts, SparseTable):
            order = np.argsort(cells)
            counts.add(cells[order], n[order])
        else:
            counts.reshape(-1)[cells] = n

    def counts(self) -> Counts:
        """The counts; raises `DataError` for what the checks tell, or counts that do not agree."""
        n_records, *checks = self._checks.tolist()
        if n_records < 0:
            raise self._request.changed_error()
        self._request.refuse(checks, n_records)
        ranges = self._request.ranges
        tables = dict(zip(self._request.tables, self._counts, strict=True))
        for position, sums in self._sums.items():
            table = self._request.tables[position]
            own = {(): tables[table].astype(np.int64), **sums}
            tables[table] = counts = np.zeros_like(own[()])
            for high, times in counts_of_amounts(own, ranges).items():
                # Whoever has an amount is counted where it is `low`, 0, one before `high`.
                shifts = [int(index in high) for index in table]
                inner = tuple(slice(shift, None) for shift in shifts)
                outer = tuple(
                    slice(None, size - shift)
                    for size, shift in zip(own[()].shape, shifts, strict=True)
                )
                counts[inner] += times[outer]
        counts = Counts(tables, n_records, self._request.faults(checks).taken(), ranges)
        if self._is_corrupt or not agree(counts):
            raise self._request.changed_error()
        return counts
