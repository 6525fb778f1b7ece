"""Source: where records lie, and the one thing that is done with them there: exact counting."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, reduce
from math import prod
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Literal, Protocol
from unicodedata import normalize

import numpy as np

from rpexplore.common.files import FILE_PREFIX, file_identities, machine_names
from rpexplore.common.processes import Progress, no_progress
from rpexplore.common.text import capitalised, plural, text_of_path, with_article
from rpexplore.domain.amounts import Ranges, amounts_in
from rpexplore.domain.atoms import Atoms
from rpexplore.domain.domain import Domain
from rpexplore.domain.universe import Universe
from rpexplore.errors import DataError

if TYPE_CHECKING:
    from rpexplore.data.areas import AreaCuts


# ---- Counts: exact marginals of the records, which is all that a release needs of them.

MOST_DENSE = 50_000_000
"""Cells of a table up to which all its counts are kept, and not only those above 0."""


class SparseTable:
    """The exact counts of a table of very many cells: only those above 0. Private.

    Takes 12 bytes for each cell with a record (16 from 2³² cells on), whatever the cells.

    Args:
        shape: How many values the table has along each axis.
    """

    dtype = np.dtype(np.int64)

    def __init__(self, shape: Sequence[int]) -> None:
        self.shape = tuple(shape)
        self._type = np.min_scalar_type(max(self.size - 1, 1 << 16))
        self._runs: list[tuple[np.ndarray, np.ndarray]] = []  # ascending cells, and their counts

    @property
    def size(self) -> int:
        """How many cells the table has."""
        return prod(self.shape)

    @property
    def n_numbers(self) -> int:
        """How many numbers of 4 bytes are in memory, about."""
        return 3 * sum(len(cells) for cells, _ in self._runs)

    def add(self, cells: np.ndarray, times: np.ndarray) -> None:
        """Count more records: cells row-major, ascending, each once, int64[k]; times int64[k]."""
        self._runs.append((cells.astype(self._type), times.astype(np.int64)))
        # Each run is at least twice as long as the next: n cells are merged log(n) times at most.
        while len(self._runs) > 1 and len(self._runs[-2][0]) < 2 * len(self._runs[-1][0]):
            self._merge_last()

    def sum(
        self, axis: Sequence[int] | None = None, dtype: Any = None, *, rows: range | None = None
    ) -> np.ndarray:
        """The sum along some axes, of all by default, int64, as `ndarray.sum` makes it.

        Args:
            axis: The axes that are summed away.
            dtype: Ignored; arrays are asked for it.
            rows: If given, only these values of the first axis with several.
        """
        while len(self._runs) > 1:
            self._merge_last()
        left = range(len(self.shape)) if axis is None else axis
        kept = [place for place in range(len(self.shape)) if place not in left]
        begin, shape = 0, list(self.shape)
        cells, times = self._runs[0] if self._runs else (np.empty(0, self._type),) * 2
        if rows is not None:
            first = next((place for place, size in enumerate(shape) if size > 1), 0)
            behind = prod(shape[first + 1 :])
            begin, shape[first] = rows.start * behind, len(rows)
            some = slice(*np.searchsorted(cells, [begin, rows.stop * behind]).tolist())
            cells, times = cells[some], times[some]
        sums = np.zeros([shape[place] for place in kept], dtype=np.int64)
        for start in range(0, len(cells), _CELLS_AT_ONCE):
            some = slice(start, start + _CELLS_AT_ONCE)
            cell = cells[some].astype(np.int64) - begin
            flat = np.zeros_like(cell)
            for place in kept:
                index = cell // prod(shape[place + 1 :])
                index %= shape[place]
                flat = flat * shape[place] + index
            np.add.at(sums.reshape(-1), flat, times[some])
        return sums

    def astype(self, dtype: Any) -> np.ndarray:
        """All counts, one axis an attribute."""
        return self.sum(()).astype(dtype, copy=False)

    def _merge_last(self) -> None:
        (cells, times), (more, of_more) = self._runs[-2:]
        cells, times = np.concatenate([cells, more]), np.concatenate([times, of_more])
        order = np.argsort(cells, kind="stable")
        cells, times = cells[order], times[order]
        begins = np.flatnonzero(np.append(True, cells[1:] != cells[:-1]))
        self._runs[-2:] = [(cells[begins], np.add.reduceat(times, begins))]


_CELLS_AT_ONCE = 1 << 20  # of a sparse table


def no_counts(
    shape: Sequence[int], *, may_be_sparse: bool, dtype: Any = np.uint32
) -> np.ndarray | SparseTable:
    """The counts of a table before any record."""
    if may_be_sparse and prod(shape) > MOST_DENSE:
        return SparseTable(shape)
    return np.zeros(shape, dtype)


@dataclass(frozen=True, eq=False, repr=False)
class Counts:
    """Exact marginals on some sets of attributes. Private; never written anywhere.

    tables     ascending attribute indices -> integers of any width, one axis an attribute; where
               the key is (), an array of no axes. Those on a subset of a key follow by summing.
               Of tables of more than `MOST_DENSE` cells perhaps a `SparseTable`.
    n_records  how many records were counted
    taken      what of attributes was missing or not in the codebook and taken by a category:
               attribute, which of the two, how many, and the label of the category
    ranges     attribute index -> the range in steps of attributes of amounts; the counts of a table
               that holds one are multiplied by it, over the unit of products where it holds
               weights as well (`amounts`), and no others are

    Neither repr nor errors show anything of it.
    """

    tables: Mapping[tuple[int, ...], np.ndarray | SparseTable] = field(repr=False)
    n_records: int = field(repr=False)
    taken: tuple[tuple[str, str, int, str], ...] = field(default=(), repr=False)
    ranges: Ranges = field(default_factory=Ranges, repr=False)

    def counts(self, attribute_indices: Sequence[int]) -> np.ndarray:
        """The exact marginal on these ascending attribute indices: int64, one axis an attribute.

        An array of the caller's own, summed from the smallest table that holds them. Raises
        `KeyError` if none does.
        """
        wanted = tuple(attribute_indices)
        if not wanted:
            return np.array(self.n_records, dtype=np.int64)
        if wanted in self.tables:
            return self.tables[wanted].astype(np.int64)
        table = self._smallest_with(wanted)
        left = tuple(axis for axis, index in enumerate(table) if index not in wanted)
        counts = self.tables[table].sum(axis=left, dtype=np.int64)
        held, kept = amounts_in(table, self.ranges), amounts_in(wanted, self.ranges)
        if held != kept:
            counts //= self.ranges.times(held) // self.ranges.times(kept)  # without a rest
        return counts

    def slice(self, attribute_indices: Sequence[int], rows: range) -> np.ndarray:
        """`counts` of some values of the first of these attributes, int64; no table has amounts."""
        wanted = tuple(attribute_indices)
        table = self._smallest_with(wanted)
        place = table.index(wanted[0])
        counts = self.tables[table]
        if prod(counts.shape[:place]) > 1:
            return self.counts(wanted)[rows.start : rows.stop]
        left = [axis for axis, index in enumerate(table) if index not in wanted]
        if isinstance(counts, SparseTable):
            return counts.sum(left, rows=rows)
        some = (*(slice(None),) * place, slice(rows.start, rows.stop))
        return counts[some].sum(axis=tuple(left), dtype=np.int64)

    def _smallest_with(self, wanted: tuple[int, ...]) -> tuple[int, ...]:
        """The smallest table that holds these attributes; raises `KeyError` if none does."""
        holding = reduce(int.__and__, (self._tables_with.get(index, 0) for index in wanted))
        if not holding:
            raise KeyError(wanted)
        return self._by_size[(holding & -holding).bit_length() - 1]

    @property
    def n_cells(self) -> int:
        """How many numbers are in memory."""
        return sum(
            table.n_numbers if isinstance(table, SparseTable) else table.size
            for table in self.tables.values()
        )

    @cached_property
    def _by_size(self) -> list[tuple[int, ...]]:
        """The tables, the smallest first."""
        return sorted(self.tables, key=lambda table: self.tables[table].size)

    @cached_property
    def _tables_with(self) -> Mapping[int, int]:
        return holding_sets(self._by_size)


def holding_sets(sets: Sequence[Sequence[int]]) -> dict[int, int]:
    """For each attribute, which of some sets it is in: bit i of a number tells of the i-th."""
    bits: dict[int, bytearray] = {}
    for position, attribute_indices in enumerate(sets):
        for index in attribute_indices:
            of_attribute = bits.setdefault(index, bytearray(len(sets) // 8 + 1))
            of_attribute[position // 8] |= 1 << position % 8
    return {index: int.from_bytes(of_sets, "little") for index, of_sets in bits.items()}


# ---- Source: where records lie, and the one thing that is done with them there: exact counting.


COUNTING = "Counting the records"
"""What an `on_progress` is told."""

AT_MACHINE = " at "
"""Between a path and its machine, in names that several machines share."""

HOLDS = " holds:"
"""Ends the name between those of records and those of their parts."""

LIES_IN = " in "
"""Between what a file is and what a folder around it is; or a table and one it is part of."""

_TABLE = "postgresql:-?[0-9]+/[0-9]+/[0-9]+"  # numbers of server, database, table; names have a dot
TABLE_IN_TABLE = f"^{_TABLE}{LIES_IN}{_TABLE}$"
"""A pattern of both Python and PostgreSQL."""

NO_PATH = re.compile(r"(?:file|postgresql|duckdb|sqlite|spark|grpc|grpc\+tls|snowflake):")
"""What names begin with that are no paths: what a file is, and tables, by the engine."""


@dataclass(frozen=True)
class Fingerprint:
    """A state by which records are known to be the same without reading them.

    size      bytes of the records, 0 where an engine does not tell
    modified  when they last changed, an ISO moment in UTC; "" where an engine does not tell
    detail    anything else that changes with the records' place and form: a digest of the files
              with their sizes and times, and of how they are read, or of the columns and their
              types
    lasting   the same without what a copy back, or another owner, changes of files whose contents
              stay: by it a run that was stopped knows its records; "" where `detail` has no such
    """

    size: int
    modified: str
    detail: str
    lasting: str = ""

    @property
    def lasting_facts(self) -> Mapping[str, Any]:
        """What a run that was stopped notes of its records, to know them again."""
        detail = self.lasting or self.detail
        return {"size": self.size, "modified": self.modified, "detail": detail}


OF_NOBODY, BEYOND, UNCLEAR = 1, 2, 3
"""What a record's person is for a `PersonRule`, 0 where nothing is wrong: nobody knows whose it is;
it is one more than the rule allows a person; its id leaves it open who is meant."""


@dataclass(frozen=True)
class PersonRule:
    """How many records one person may have, and what happens to more.

    column  the column that says whose a record is; a record without an entry there is refused,
            and so are ids that leave it open who is meant (`persons`)
    most    m: how many records one person may have
    excess  "refuse": records of a person beyond m are refused, and nothing is spent.
            "keep first": the first m records of every person are counted, the others are not; in
            a file or folder the first as they lie there, unless `order` names a column
    order   the column whose smallest values come first (ties in an order of the engine's own);
            a database, whose records have no order, needs it for "keep first"
    noun    the word for who is meant, as in `Budget`: "household"
    period  of a panel the attribute of which a person has one record for each value, as in
            `Budget`; in errors alone, like
    of_one_period  whether the rule is about the records of one period

    What is kept of one person depends on that person's records alone, so that a person changes
    counts by at most m records, which is what the plan protects.

    Example:
        >>> PersonRule("person", most=2, excess="keep first", order="date").most
        2
    """

    column: str
    most: int
    excess: Literal["refuse", "keep first"] = "refuse"
    order: str | None = None
    noun: str = "person"
    period: str | None = None
    of_one_period: bool = False

    def __post_init__(self) -> None:
        for name, column in (("column", self.column), ("order", self.order)):
            if column is not None:
                object.__setattr__(self, name, normalize("NFC", column))
        if self.most < 1:
            raise DataError(
                f"{capitalised(with_article(self.noun))} must be allowed at least one record, got "
                f"{self.most}; state how many records one {self.noun} can have."
            )

    @property
    def columns(self) -> list[str]:
        """The columns that the rule looks at."""
        return [self.column] if self.order in (None, self.column) else [self.column, self.order]

    def error(self, state: int) -> DataError:
        """The error for records of this state: `OF_NOBODY`, `UNCLEAR`, or `BEYOND` for "refuse"."""
        one = with_article(self.noun)
        allowed = f"the {self.most} that the plan protects"
        remedies = f"plan for more records of {one}, or let only the first of each be counted"
        if self.period is not None:  # of a panel none is left out
            remedies = f"plan for {one} with more periods (--max-periods)"
        if self.of_one_period:
            allowed = f"one record in each {self.period!r}, which is what the plan allows"
            remedies = f"plan for {one} with several records (--records-per-person), and no panel"
        return DataError(
            {
                OF_NOBODY: f"The column {self.column!r} does not say of every record whose it is "
                "(some ids are missing, empty, or words for missing such as NA); fill it, or leave "
                "these records out of the data.",
                UNCLEAR: f"The ids in the column {self.column!r} leave open who is who: one "
                f"{self.noun} may be written in two ways, such as 7 and 07, a7 and A7 or 1.5 and "
                "1.50, or an id is a time of day, a rounded number (1.2e+17), two numbers (1.000 "
                "is one or a thousand) or in letters of full width; write every id as a text or a "
                f"whole number, and each {self.noun}'s in one way.",
                BEYOND: f"{capitalised(one)} (column {self.column!r}) has more records than "
                f"{allowed}; correct the records, {'or ' if self.period else ''}{remedies}.",
            }[state]
        )

    @property
    def text(self) -> str:
        """The rule as a sentence."""
        most = plural(self.most, "record")
        if self.excess == "refuse":
            return f"No {self.noun}, by the column {self.column!r}, has more than {most}."
        if self.most == 1 and self.order == self.column:  # any of them: see `Budget.distinct`
            return f"Of every {self.noun}, by the column {self.column!r}, one record was counted."
        order = "in the order of the records" if self.order is None else f"by {self.order!r}"
        return (
            f"Of every {self.noun}, by the column {self.column!r}, the first {most} {order} were "
            "counted, and no others."
        )


def without_values(path: Path) -> str:
    """A path whose key=value parts have no values, which are those of records: region=…/a.csv.

    >>> without_values(Path("region=R1/a.csv"))
    'region=…/a.csv'
    """
    parts = [f"{part.partition('=')[0]}=…" if "=" in part else part for part in path.parts]
    return text_of_path(Path(*parts))


def weight_note(source: "Source", domain: Domain) -> str:
    """A sentence about a weight that is not used in counting; "" where there is none."""
    weight = source.case_weight
    if not weight or any(domain.names[index] == weight for index in domain.weights):
        return ""
    return (
        f"The records have the case weight {weight!r}, by which statistics packages weight their "
        "tables; here each record counts once, whatever its weight. (Weighted counts are planned "
        f"with --weight-column {weight} --max-weight M.)"
    )


def check_column(
    records: str,
    name: str,
    columns: Sequence[str],
    *,
    remedy: str = "rename the column, or the attribute in the codebook",
) -> None:
    """Raise `DataError` unless this is the name of exactly one of the columns of the records."""
    count = columns.count(name)
    if count != 1:
        what = "no column" if count == 0 else f"{count} columns"
        raise DataError(
            f"The records {records!r} have {what} {name!r}, which the plan needs; {remedy}.",
            private=f"The columns are: {', '.join(columns)}." if any(columns) else "",
        )


class Source(Protocol):
    """Records in a file, a folder, or an engine. They never leave it; exact counts do."""

    @property
    def name(self) -> str:
        """The description for people, manifests and errors: no password, nothing of records."""
        ...

    @property
    def home(self) -> Path | None:
        """The folder that the records lie in, where their ledger is unless one is named; None for
        records in no folder."""
        ...

    def names(self, folder: Path | None) -> tuple[str, ...]:
        """What a ledger in this folder knows the records by, whoever asks and by whatever way.

        None depends on what the records hold. The first one is shown. Records that share one have
        one account: names of files in a folder, and of what a view reads, are among them, as
        `names_with_parts` puts them. folder: absolute, resolved; None for a ledger that several
        machines share
        """
        ...

    def fingerprint(self) -> Fingerprint:
        """The present state of the records; raises `DataError` if they are not there."""
        ...

    def remarks(self) -> tuple[str, ...]:
        """What a dry run says of their account, in sentences; none of records on their own."""
        ...

    @property
    def streaming_note(self) -> str:
        """A sentence about what leaves a server to be counted; "" for nothing."""
        ...

    @property
    def case_weight(self) -> str:
        """The column by which the records are weighted, as their file (SPSS) or the codebook with
        their positions (DDI) says; "" for none."""
        return ""

    @property
    def positions(self) -> Mapping[str, str]:
        """Of records of fixed width the `file` that states where their columns are, and its
        `sha256`; else empty."""
        return {}

    @property
    def named_encoding(self) -> str:
        """The encoding that somebody has named for the records; "" for none, or for UTF-8."""
        return ""

    @property
    def reading(self) -> str:
        """How values are read, where somebody may say that: encoding and positions; else ""."""
        return ""

    def columns(self, wanted: Sequence[str] = ()) -> tuple[str, ...]:
        """The names of the records' columns, in their order; looks at no record.

        wanted: columns that are to be read together, by which a text file's separator is chosen
        """
        ...

    def count(
        self,
        domain: Domain,
        tables: Sequence[Sequence[int]],
        *,
        unknown_values: Mapping[str, str] | None = None,
        missing_values: Mapping[str, str] | None = None,
        person_rule: PersonRule | None = None,
        areas: "AreaCuts | None" = None,
        atoms: Atoms | None = None,
        universe: Universe | None = None,
        on_progress: Progress = no_progress,
    ) -> Counts:
        """Exact counts from which the marginals on all these sets of attributes follow.

        Args:
            domain: The attributes, which the records have as columns.
            tables: Sets of attribute indices.
            unknown_values: Attribute name -> the value that takes what is not in the domain;
                without it that is refused. "*" stands for all other attributes with that value.
            missing_values: The same for what is missing.
            person_rule: How many records of one person are counted; None: all are.
            areas: Ways to count by areas, which stand in `tables` as attributes behind the
                domain's.
            atoms: Groups of cells to count by, where there are no areas; they are of the whole
                domain, and stand in `tables` as one attribute behind it.
            universe: Which records are counted; others may hold anything. None: all.
            on_progress: Told `COUNTING`.

        The counts of a table that holds an attribute of amounts are multiplied by its range in
        steps (`amounts`): they sum, over that attribute, to so many times those without it. Of a
        table with weights as well, by both ranges over the unit of their products.

        All counts are of one state of the records: raises `DataError` if they change meanwhile, as
        for records that cannot be read, a missing column, a value outside the domain, or a person
        with more records than the rule allows. What was read stands in the error's `private` part
        only.
        """
        ...


def file_names(
    folder: Path | None, path: Path, prefix: str = "", suffix: str = ""
) -> tuple[str, ...]:
    """Names of records in a file, for a ledger in this folder: by its path, and by what it is.

    The path is seen from the folder, where it lies inside. Both with what tells the records apart
    from others in the file before and behind them. Without a folder both say of which machine;
    raises `LedgerError` where that is not known. Where nothing tells records apart, also by what
    each folder around the file is, whatever that is called by now.
    """
    if folder is None:
        machines = machine_names(path)
        names = [f"{text_of_path(path)}{AT_MACHINE}{machine}" for machine in machines]
    else:
        machines = ("",)
        names = [path_name(folder, path)]
    with suppress(OSError):  # it may be gone
        identities = _identities(path, machines)
        names += identities
        for around in () if prefix else path.parents[:-1]:
            with suppress(OSError):  # one that is not ours to look into
                both = zip(identities, _identities(around, machines), strict=False)
                names += [f"{identity}{LIES_IN}{of_folder}" for identity, of_folder in both]
    return tuple(f"{prefix}{name}{suffix}" for name in names)


def _identities(path: Path, machines: Sequence[str]) -> list[str]:
    return [name for machine in machines for name in file_identities(path, machine)]


def path_name(folder: Path, path: Path) -> str:
    """The name of records by their path, seen from a folder where it lies inside."""
    name = text_of_path(path.relative_to(folder) if path.is_relative_to(folder) else path)
    return f"./{name}" if NO_PATH.match(name) else name


def names_with_parts(own: Sequence[str], parts: Sequence[str]) -> tuple[str, ...]:
    """Names of records, and of what they consist of; `own_names` tells the two apart."""
    return (*own, f"{own[0]}{HOLDS}", *parts) if parts else tuple(own)


def own_names(names: Sequence[str]) -> tuple[str, ...]:
    """Of names in a ledger those of the records themselves, without those of their parts.

    All of them in entries of earlier versions, which did not tell.
    """
    holds = f"{names[0]}{HOLDS}"
    return tuple(names[: names.index(holds)] if holds in names else names)


def place_in_name(folder: Path | None, name: str) -> tuple[str, frozenset[str]]:
    """What one of `file_names` says, its path or what it is, and the folders around likewise.

    As texts to be compared, which say of which machine they are where the names do. Of tables of
    PostgreSQL what is around one is a table that it is a partition of, or inherits from. Other
    names say themselves.
    """
    if name.startswith(FILE_PREFIX) or re.fullmatch(TABLE_IN_TABLE, name):
        identity, _, around = name.partition(LIES_IN)
        return identity, frozenset(filter(None, [around]))
    if NO_PATH.match(name):
        return name, frozenset()
    machine, path = "", PurePath(folder or "", name)
    if folder is None:
        text, _, machine = name.rpartition(AT_MACHINE)
        path = PurePath(text)
    if not path.is_absolute():
        return name, frozenset()
    around = path.parents[:-1]
    return f"{machine}:{path}", frozenset(f"{machine}:{parent}" for parent in around)
