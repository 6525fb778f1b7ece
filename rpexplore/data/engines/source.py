"""Records in a database or a cluster: a `Source` that is counted as its engine allows."""

import hashlib
import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from rpexplore.common.files import listed_path
from rpexplore.common.processes import Progress, no_progress
from rpexplore.common.text import joined, time_of_change
from rpexplore.data.amounts import amount_ranges
from rpexplore.data.areas import AreaCoder, AreaCuts, AreaShares, Work
from rpexplore.data.blocks import maximal
from rpexplore.data.coding import MISSING, UNKNOWN, Coder, Takers, code_type
from rpexplore.data.counting import Codes, counts_of
from rpexplore.data.engines.connections import ENGINES, Connection
from rpexplore.data.engines.session import (
    STATE,
    STATES,
    Provenance,
    Request,
    Session,
    parts_of,
    session_of,
)
from rpexplore.data.source import (
    COUNTING,
    Counts,
    Fingerprint,
    PersonRule,
    check_column,
    file_names,
    names_with_parts,
    without_values,
)
from rpexplore.domain.atoms import Atoms
from rpexplore.domain.domain import Domain
from rpexplore.domain.universe import Universe
from rpexplore.errors import DataError, without_causes

# Of a server or a cluster nothing but counts ever comes back, whatever the table holds, unless it
# is told to stream. Then, and of DuckDB, which is in this process, come codes of categories and
# areas; by ADBC, of SQLite and others, the columns that are counted.


_MOST_NAMED = 10  # tables and files in a sentence


@dataclass(frozen=True)
class DatabaseSource:
    """The records of a table or view: table or schema.table, letter by letter.

    Counted in one statement, which only reads. Memory here: 4 bytes for each cell
    of the tables that are counted, at most 4·10^8 cells, and 100,000 rows of counts at a time;
    where records stream, and of DuckDB, what `counting` tells, and what DuckDB takes. A worker of
    Spark takes what `counting` tells, for at most `spark_worker.MOST_KEPT` cells, and Arrow batches
    of its records.
    """

    connection: Connection
    table: str
    stream: bool = False
    """Whether records may leave their server and pass through this process, to be counted here:
    those of PostgreSQL coded, and faster; by ADBC as they are, and in no other way."""
    _last_provenance: list[Provenance] = field(
        default_factory=list, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        parts_of(self.table)
        reason = ENGINES[self.connection.engine].no_stream
        if self.stream and reason:
            raise DataError(
                f"Records at the connection {self.connection.name!r} cannot be told to stream: "
                f"{reason}; leave streaming out."
            )
        if ENGINES[self.connection.engine].must_stream and not self.stream:
            raise DataError(
                f"Records at the connection {self.connection.name!r} are counted only here, so "
                "that they have to leave their server; allow that by streaming (--stream; in "
                "Python stream=True), or count an export of the records."
            )

    @property
    def name(self) -> str:
        return f"{self.table} at {self.connection.name}"

    @property
    def home(self) -> Path | None:
        """The folder of a DuckDB or SQLite file; None for other engines."""
        return None if self._file is None else self._file.parent

    def files_below(self) -> tuple[Path, ...]:
        """The files, and folders of them, that a view reads beside its database."""
        return self._provenance().files

    def names(self, folder: Path | None) -> tuple[str, ...]:
        """Engine, database, schema and table, and the same of all that a view reads; no user.

        For such a file its path as seen from the folder, where it lies inside, and what it is.
        As the last fingerprint found them, so that what is charged is what was counted.
        """
        read = self._provenance()
        if self._file is None:
            tables = [f"{read.address}/{table}" for table in read.tables]
            own = (tables[0], *read.ids[:1])
            return names_with_parts(own, (*tables[1:], *read.ids[1:]))
        own, *parts = [
            file_names(folder, self._file, f"{self.connection.engine}:", f"/{name}")
            for name in read.tables
        ]
        parts += [file_names(folder, path) for path in read.files]
        return names_with_parts(own, [name for of_one in parts for name in of_one])

    def fingerprint(self) -> Fingerprint:
        """A digest of columns, their types, and what the engine tells of all that is read.

        That is in PostgreSQL: how often rows were written, the files of tables and their sizes, and
        how views are made. Of DuckDB and SQLite, size and time of the file and of those
        that a view reads.
        """
        with self._session() as session:
            read = session.provenance(self.table)
            columns = [f"{name} {kind}" for name, kind in session.columns(self.table)]
        self._last_provenance[:] = [read]
        seen = [read.address, *read.tables, *read.ids, *read.unseen, *columns, *read.state]
        size, modified = 0, ""
        if self._file is not None:
            stat = self._file.stat()
            size = stat.st_size
            modified = time_of_change(stat.st_mtime).isoformat(timespec="seconds")
        return Fingerprint(size, modified, hashlib.sha256(json.dumps(seen).encode()).hexdigest())

    def remarks(self) -> tuple[str, ...]:
        """What else its account is that of, what is not seen, and that records leave a server."""
        read, remarks = self._provenance(), []
        if self.stream:
            remarks.append(
                f"The records of {self.table!r} leave their server: {self._form}, they stream "
                "through this process, which counts them and keeps none."
            )
        if below := [*read.tables[1:], *map(without_values, read.files)]:
            remarks.append(
                f"{self.table!r} has one account in the ledger with what it reads: {_some(below)}."
            )
        if read.unseen:
            remarks.append(
                f"{self.table!r} reads {_some(read.unseen)}, which cannot be followed: as far as "
                "that goes it has an account of its own, and changes are not seen."
            )
        return tuple(remarks)

    @property
    def case_weight(self) -> str:
        """Databases know of none."""
        return ""

    @property
    def positions(self) -> Mapping[str, str]:
        return {}

    @property
    def named_encoding(self) -> str:
        return ""  # databases know theirs

    @property
    def reading(self) -> str:
        return ""

    @property
    def streaming_note(self) -> str:
        if not self.stream:
            return ""
        return (
            f"The records left their server to be counted: {self._form}, they streamed through the "
            "program that counted them, which kept none."
        )

    @property
    def _form(self) -> str:
        """How records come that stream."""
        return "as they are" if ENGINES[self.connection.engine].must_stream else "coded"

    def columns(self, wanted: Sequence[str] = ()) -> tuple[str, ...]:
        with self._session() as session:
            return tuple(name for name, _ in session.columns(self.table))

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
        takers = Takers.of(domain, unknown_values, missing_values)
        with self._session() as session:
            request = self._request(
                session, domain, tables, takers, person_rule, areas, atoms, universe
            )
            on_progress(COUNTING, 0.0)
            count = session.count_streamed if self.stream else session.count
            counts = count(self.table, request, on_progress)
        on_progress(COUNTING, 1.0)
        return counts

    @property
    def works_on_areas(self) -> bool:
        """Whether there is `worked_on`."""
        return self.connection.engine == "spark"

    def worked_on(
        self,
        domain: Domain,
        tables: Sequence[Sequence[int]],
        *,
        areas: AreaCuts,
        shares: AreaShares,
        work: Work,
        check: Callable[[Counts], None],
        unknown_values: Mapping[str, str] | None = None,
        missing_values: Mapping[str, str] | None = None,
        person_rule: PersonRule | None = None,
        universe: Universe | None = None,
        on_progress: Progress = no_progress,
    ) -> Generator[Iterator[np.ndarray], None, None]:
        """What is made of the exact counts of each share of areas, in tasks of the cluster.

        Args:
            tables: Counted of all records, and all attributes of the shares' tables among them.
            work: Runs in a worker, which has this package, numpy, scipy and pyarrow. It runs again
                where a worker was lost; what one run of it makes of a share is taken, of no other.
            check: Told the counts of all records, and may refuse them, before the first share.

        Yields:
            Of each share, in their order, all that was made of it, int[·] each; to be taken up
            before the next.

        Other arguments, and errors, are those of `count`.
        """
        from rpexplore.data.engines.spark_session import ClusterSession

        with self._session() as session:
            assert isinstance(session, ClusterSession)
            takers = Takers.of(domain, unknown_values, missing_values)
            for share in shares.shares:
                amount_ranges(domain, share.tables)  # refuses
            request = self._request(
                session, domain, tables, takers, person_rule, areas, universe=universe
            )
            yield from session.worked_on(self.table, request, shares, work, check, on_progress)

    def _request(
        self,
        session: Session,
        domain: Domain,
        tables: Sequence[Sequence[int]],
        takers: Takers,
        rule: PersonRule | None,
        areas: AreaCuts | None,
        atoms: Atoms | None = None,
        universe: Universe | None = None,
    ) -> Request:
        """The request for the engine; raises `DataError` for what cannot be counted."""
        there = [name for name, _ in session.columns(self.table)]
        request = Request(
            self.name,
            domain,
            tuple(maximal(tables)),
            takers,
            rule,
            None if areas is None else AreaCoder(areas, self.name, there, len(domain)),
            atoms,
            universe,
        )
        if rule is not None and rule.excess == "keep first" and not rule.order:
            raise DataError(
                "The records of a database have no order, so the first of a person must be told by "
                "a column; name one whose smallest values come first."
            )
        request.refuse_too_many()
        _ = request.ranges  # which refuses
        needed = [domain.names[index] for index in request.attribute_indices]
        needed += [] if rule is None else rule.columns
        for name in [*needed, *(() if universe is None else universe.columns)]:
            check_column(self.name, name, there)
        return request

    @cached_property
    def _file(self) -> Path | None:
        if not ENGINES[self.connection.engine].is_file:
            return None
        return listed_path(self.connection.location)

    def _provenance(self) -> Provenance:
        if not self._last_provenance:
            with self._session() as session:
                self._last_provenance.append(session.provenance(self.table))
        return self._last_provenance[0]

    @contextmanager
    def _session(self) -> Iterator[Session]:
        connection = self.connection
        if self._file is not None:  # a link may lead elsewhere by now
            connection = replace(connection, url=f"{connection.engine}://{self._file}")
        with session_of(connection) as session:
            yield session


def _some(names: Sequence[str]) -> str:
    """The first few of these names, and how many more there are."""
    more = [f"{len(names) - _MOST_NAMED:,} more"] if len(names) > _MOST_NAMED else []
    return joined([*names[:_MOST_NAMED], *more])


# ---- Counting of records that an engine hands over, coded or as they are: by the counter of
# files.
#
# For engines whose records may pass through this process. Memory is that of `counting`.


class Inspection:
    """Sees what is wrong with coded records, batch by batch.

    checks: as `Request.refuse` takes them, of the batches so far
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        self.checks = np.zeros(request.n_checks, dtype=np.int64)

    def codes(
        self,
        columns: Mapping[int, np.ndarray],
        state: np.ndarray | None,
        n_records: np.ndarray | None = None,
    ) -> Codes:
        """Category indices as they are counted; 0 for what is refused, which `checks` tells of.

        Args:
            columns: Codes [n] of every attribute of the request, `UNKNOWN` and `MISSING` among
                them.
            state: What every record's person is for the rule, [n]; None where there is no rule.
            n_records: How many records each row stands for, [n]; None: one.
        """

        def count(rows: np.ndarray) -> int:
            return int(np.count_nonzero(rows) if n_records is None else n_records[rows].sum())

        codes: dict[int, np.ndarray] = {}
        for position, (index, column) in enumerate(columns.items()):
            if len(column) and column.min() < 0:
                self.checks[2 * position] += count(column == UNKNOWN)
                self.checks[2 * position + 1] += count(column == MISSING)
                wide = column.astype(code_type(self._request.code_sizes[index]), copy=False)
                column = np.maximum(self._request.takers.taken(index, wide), 0)
            codes[index] = column.astype(np.min_scalar_type(self._request.code_sizes[index] - 1))
        if state is not None:
            for place, refused in enumerate(STATES, start=2 * len(columns)):
                self.checks[place] += count(state == refused)
        if (atoms := self._request.atoms) is not None:
            codes[len(self._request.domain)] = atoms.of_records(codes)
        return codes

    def codes_of_areas(self, coder: AreaCoder, areas: np.ndarray) -> Codes:
        """The codes of the areas that records are counted by, 0 for what `checks` tells of.

        areas: as of `AreaCoder.areas`
        """
        if len(areas) and areas.min() < 0:
            refused = np.bincount(-1 - areas[areas < 0], minlength=len(coder.refusals))
            self.checks[-len(refused) :] += refused
            areas = np.maximum(areas, 0)
        return coder.codes_of_areas(areas)


def count_streamed(
    batches: Iterable[pa.RecordBatch], request: Request, on_progress: Progress
) -> Counts:
    """Exact counts of coded records.

    batches: c<index> for every attribute of the request, its `area_columns`, and STATE where there
        is a rule

    Raises `DataError` when all have been seen, for everything that is wrong with attributes.
    """
    inspection = Inspection(request)

    def inspected() -> Iterator[tuple[Codes, int, float]]:
        for batch in batches:
            columns = {
                index: batch.column(f"c{index}").to_numpy() for index in request.attribute_indices
            }
            state = None if request.rule is None else batch.column(STATE).to_numpy()
            codes = inspection.codes(columns, state)
            yield {**codes, **area_codes(batch, request)}, batch.num_rows, 0.0

    counts = counts_of(
        inspected(),
        request.tables,
        request.sizes,
        ranges=request.ranges,
        may_be_sparse=all(
            index < len(request.domain) for table in request.tables for index in table
        ),
        on_progress=on_progress,
    )
    checks = inspection.checks.tolist()
    request.refuse(checks, counts.n_records)
    return replace(counts, taken=request.faults(checks).taken())


def area_codes(batch: pa.RecordBatch, request: Request) -> Codes:
    """The codes of the areas that records are counted by; none where they are counted by none.

    Raises `DataError` for a record that lies in no area.
    """
    return {} if request.area_coder is None else request.area_coder.codes(in_areas(batch, request))


def in_areas(batch: pa.RecordBatch, request: Request) -> pa.RecordBatch:
    """Records as `AreaCoder` takes them, of `area_columns`, of which there may be none."""
    # A batch that is made of no columns has no records; one of which none is chosen keeps them.
    columns = request.area_columns
    return batch.select(list(columns)).rename_columns(list(columns.values()))


def coded(batches: Iterable[pa.RecordBatch], request: Request) -> Iterator[pa.RecordBatch]:
    """Batches with c<index> in place of the columns v<index> of records as they are."""
    coders = coders_of(request, request.attribute_indices)
    for batch in batches:
        given = dict(zip(batch.schema.names, batch.columns, strict=True))
        raw = {i: coder for i, coder in coders.items() if f"v{i}" in given}
        kept: dict[str, Any] = {
            name: column for name, column in given.items() if not name.startswith("v")
        }
        codes = {f"c{i}": codes for i, codes in signed_codes(batch, raw).items()}
        yield pa.record_batch(kept | codes)


def with_plain_types(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same records in columns of `plain_type`."""
    columns = [
        (column.storage if isinstance(column, pa.ExtensionArray) else column).cast(
            plain_type(column.type)
        )
        for column in batch.columns
    ]
    return pa.record_batch(columns, names=batch.schema.names)


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The storage type of a type; of texts the one type that is computed with."""
    if isinstance(kind, pa.BaseExtensionType):  # numeric of PostgreSQL is a text, say
        kind = kind.storage_type
    is_text = pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    return pa.string() if is_text else kind


def coders_of(request: Request, attribute_indices: Sequence[int]) -> dict[int, Coder]:
    return {index: Coder(request.domain.attributes[index]) for index in attribute_indices}


def signed_codes(batch: pa.RecordBatch, coders: Mapping[int, Coder]) -> dict[int, np.ndarray]:
    """The codes of columns v<index>, `UNKNOWN` and `MISSING` among them."""
    with nothing_quoted():
        return {
            index: coder.signed_codes(batch.column(f"v{index}")) for index, coder in coders.items()
        }


@without_causes
@contextmanager
def nothing_quoted() -> Iterator[None]:
    """Raise `DataError` for what Arrow cannot read, which it may quote: errors end in logs."""
    try:
        yield
    except pa.ArrowException:
        raise DataError("A column of the records holds what cannot be read.") from None
