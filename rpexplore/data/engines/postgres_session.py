"""Sessions on PostgreSQL: one transaction that reads only, and areas that it groups."""

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain, islice
from typing import Any

import numpy as np
import pyarrow as pa

from rpexplore.common.processes import Progress, part_of_progress
from rpexplore.data.amounts import counts_of_amounts
from rpexplore.data.blocks import maximal
from rpexplore.data.counting import cells_behind, products, split_codes
from rpexplore.data.engines.connections import Connection
from rpexplore.data.engines.packing import csv_batches, unpacked, words_of
from rpexplore.data.engines.postgres_servers import (
    NONDETERMINISTIC_TEXTS,
    TEXTS,
    Catalogue,
    Snapshot,
    address_of,
    begin,
    catalogue_of,
    connect,
    located,
    refuse_equal_ids,
)
from rpexplore.data.engines.session import (
    ROWS_AT_ONCE,
    STATE,
    Provenance,
    Request,
    Session,
    SQLSession,
    agree,
    engine_errors,
    side_by_side,
)
from rpexplore.data.engines.source import Inspection, area_codes, count_streamed
from rpexplore.data.source import Counts
from rpexplore.domain.amounts import amounts_in
from rpexplore.domain.domain import AttributeIndices
from rpexplore.errors import DataError

_NORMALIZES = 13_00_00  # the first version of a server that has normalize()
_ROWS_OF_CHUNK = 10_000  # that libpq hands over at a time
_BLOCKS_AT_LEAST = 8  # for each of the statements, which all have to code the records


@dataclass(frozen=True)
class PostgresSession(SQLSession):
    """A session on a server, which sees one state of the records.

    snapshot  of the session's transaction
    """

    snapshot: Snapshot = field(kw_only=True)

    def count(self, name: str, request: Request, on_progress: Progress) -> Counts:
        """Of one statement, or of some side by side that see the same records."""
        # Of an optional extra.
        from rpexplore.data.engines.counting import Tally, blocks_of, statement

        if request.area_coder is not None:
            return self._count_in_areas(name, request, on_progress)
        counted = blocks_of(request)
        n_beside = len(counted) // _BLOCKS_AT_LEAST - 1
        if n_beside < 1 or not self._is_read_alike(name):
            return super().count(name, request, on_progress)
        tally = Tally(request)
        with (
            engine_errors(self.connection, name),
            self.snapshot.servers_beside(n_beside) as beside,
        ):
            servers = [self.backend.con, *beside]
            records = self.coded_records(name, request)
            shares = [counted[first :: len(servers)] for first in range(len(servers))]
            statements = [
                self.backend.compile(statement(records, request, share, has_checks=not number))
                for number, share in enumerate(shares)
            ]

            def cancel() -> None:
                for server in servers:
                    with suppress(Exception):
                        server.cancel_safe(timeout=5)

            fetching = [
                partial(_batches, server, text)
                for server, text in zip(servers, statements, strict=True)
            ]
            with closing(side_by_side(fetching, cancel, on_progress)) as pieces:
                for piece in pieces:
                    tally.add(piece)
        return tally.counts()

    def table(self, name: str) -> Any:
        # Of an optional extra.
        import ibis

        with engine_errors(self.connection, name):
            schema, table = self._located(name)
            try:
                found = self.backend.table(table, database=schema or None)
            except AttributeError:  # by Ibis, of a type that it takes for a name
                raise DataError(
                    f"The table {name!r} has a column of a kind that cannot be read (regclass, "
                    "regtype or the like); count a view without it."
                ) from None
            texts, nondeterministic = (
                json.loads(_asked(self.backend.con, listed, schema, table))
                for listed in (TEXTS, NONDETERMINISTIC_TEXTS)
            )
        # Ibis knows such types by names without a schema, which the server's own path rules out.
        types = {
            column: "string" if column in texts else kind for column, kind in found.schema().items()
        }
        found = found.op().copy(schema=ibis.schema(types)).to_expr()
        if not nondeterministic:
            return found
        from rpexplore.data.engines.coding import in_default_collation  # of an optional extra

        return found.mutate(
            **{column: in_default_collation(found[column]) for column in nondeterministic}
        )

    def coded_records(self, name: str, request: Request) -> Any:
        rule, version = request.rule, self.backend.con.info.server_version
        if (
            rule is not None
            and version < _NORMALIZES
            and not self.table(name)[rule.column].type().is_integer()
        ):
            raise DataError(
                f"At the connection {self.connection.name!r} the ids of persons in {rule.column!r} "
                "must be whole numbers, as servers before PostgreSQL 13 cannot tell that two forms "
                "of a text are one; count an export of the records."
            )
        if rule is not None:
            with engine_errors(self.connection, name):
                refuse_equal_ids(partial(_asked, self.backend.con), *self._located(name), rule)
        return super().coded_records(name, request)

    def _count_in_areas(self, name: str, request: Request, on_progress: Progress) -> Counts:
        """Of groups that the server makes, by one set of attributes after another."""
        tally, text = GroupTally(request), self._streamed(name, request)
        for number, attributes in enumerate(tally.sets):
            columns = [*(f"c{index}" for index in attributes), *([STATE] if request.rule else [])]
            # There are collations that take two codes for one.
            listed = [
                *(f'{area} COLLATE "C" AS {area}' for area in list(request.area_columns)),
                *columns,
            ]
            grouped = ", ".join(str(position) for position in range(1, len(listed) + 1))
            by = f" GROUP BY {grouped}" if listed else ""
            given = ", ".join([*listed, f"count(*) AS {N_RECORDS}"])
            statement = f"SELECT {given} FROM ({text}) AS records{by}"
            share = part_of_progress(
                on_progress, number / len(tally.sets), (number + 1) / len(tally.sets)
            )
            with closing(self._copied(name, statement, request, share)) as rows:
                for batch in rows:
                    tally.add(attributes, batch)
        return tally.counts()

    def _streamed(self, name: str, request: Request) -> str:
        """The statement of `counting.streamed`."""
        # Of an optional extra.
        from rpexplore.data.engines.counting import streamed

        with engine_errors(self.connection, name):
            return self.backend.compile(streamed(self.coded_records(name, request), request))

    def _copied(
        self, name: str, statement: str, request: Request, on_progress: Progress
    ) -> Generator[pa.RecordBatch, None, None]:
        """The rows of a statement, in which texts are codes of areas."""

        def batches() -> Generator[pa.RecordBatch, None, None]:
            copied = f"COPY ({statement}) TO STDOUT (FORMAT CSV, HEADER)"
            with self.backend.con.cursor() as cursor, cursor.copy(copied) as copy:
                yield from csv_batches(copy, list(request.area_columns))

        return self.pieces(batches, name, on_progress)

    def _is_read_alike(self, name: str) -> bool:
        """Whether all transactions on a snapshot are sure to read the same records.

        Of a view they may not, which can ask for the time or take any of its rows, nor of a foreign
        table, which is read in a transaction elsewhere.
        """
        relations = self._catalogue(name).relations
        return all(kind in "rpm" for _, _, kind, state in relations if state is not None)

    def _catalogue(self, name: str) -> Catalogue:
        with engine_errors(self.connection, name):
            return catalogue_of(partial(_asked, self.backend.con), *self._located(name))

    def _located(self, name: str) -> tuple[str, str]:
        return located(partial(_asked, self.backend.con), name, self.snapshot.schemas)

    def provenance(self, name: str) -> Provenance:
        """As the server's catalogue has it; it tells nothing of what functions read."""
        return self._catalogue(name).provenance(self.address)

    def count_streamed(self, name: str, request: Request, on_progress: Progress) -> Counts:
        """Of records that the server codes and sends, many codes a number.

        Those that are counted in areas come as CSV, with the codes of areas as they are.
        """
        # Of an optional extra.
        from rpexplore.data.engines.counting import packed

        if request.area_coder is not None:
            text = self._streamed(name, request)
            with closing(self._copied(name, text, request, on_progress)) as rows:
                return count_streamed(rows, request, on_progress)
        words = words_of(request)
        with engine_errors(self.connection, name):
            text = self.backend.compile(packed(self.coded_records(name, request), request, words))

        def batches() -> Generator[pa.RecordBatch, None, None]:
            from psycopg import capabilities

            # Of a COPY each row would come as a message of its own, which takes three times as
            # long. Before version 17 libpq knows no chunks.
            size = _ROWS_OF_CHUNK if capabilities.has_stream_chunked() else 1
            with (
                self.backend.con.cursor() as cursor,
                closing(cursor.stream(text, binary=True, size=size)) as rows,
            ):
                while some := list(islice(rows, ROWS_AT_ONCE)):
                    numbers = np.fromiter(chain.from_iterable(some), np.int64)
                    yield unpacked(numbers.reshape(-1, len(words)), words)

        # An error stops the statement before the connection is closed.
        with closing(self.pieces(batches, name, on_progress)) as rows:
            return count_streamed(rows, request, on_progress)


def _batches(server: Any, text: str) -> Generator[pa.RecordBatch, None, None]:
    # Of an optional extra.
    from rpexplore.data.engines.counting import CELL, COUNT, PART

    # A sum is a number of any length there, which takes longer to read.
    whole = f"SELECT {PART}, {CELL}, {COUNT}::bigint FROM ({text}) AS counts"
    with server.transaction(), server.cursor(name="counts") as cursor:
        cursor.execute(whole)
        while rows := cursor.fetchmany(ROWS_AT_ONCE):
            columns = [pa.array(column, pa.int64()) for column in zip(*rows, strict=True)]
            yield pa.record_batch(columns, names=[PART, CELL, COUNT])


@contextmanager
def open_session(connection: Connection) -> Iterator[Session]:
    """One transaction that reads only and sees one state of the records."""
    import ibis
    import psycopg
    import psycopg.conninfo

    try:
        given: dict[str, Any] = dict(psycopg.conninfo.conninfo_to_dict(connection.url))
    except psycopg.Error:
        # Its text quotes the address.
        raise DataError(
            f"The connection {connection.name!r} is not an address that PostgreSQL takes; write "
            "postgresql://user:password@host:5432/database, with special signs as %40 and so on."
        ) from None
    with engine_errors(connection):
        server = connect(given)
    try:
        with engine_errors(connection):
            # Before anything else is asked, so that the server's own functions answer.
            snapshot = begin(server, given)
            address = address_of(partial(_asked, server), connection)
            encoding = server.info.parameter_status("server_encoding")
            if encoding != "UTF8":
                raise DataError(
                    f"At the connection {connection.name!r} the database must hold texts as UTF8, "
                    f"got {encoding}; count an export of the records, or a copy in UTF8."
                )
            backend = ibis.postgres.from_connection(server)
            schema = next(iter(snapshot.schemas), "")

        def cancel() -> None:
            server.cancel_safe(timeout=5)

        yield PostgresSession(connection, backend, address, schema, cancel, snapshot=snapshot)
    finally:
        server.close()


def _asked(server: Any, statement: str, *parameters: str) -> str:
    """The one value of a statement with parameters $1 and so on."""
    from psycopg import RawCursor

    with RawCursor(server) as cursor:
        ((value,),) = cursor.execute(statement.encode(), parameters).fetchall()
    return value


# ---- Counting in areas of records that an engine groups: codes of areas, of attributes, and how
# many.
#
# The engine knows no tree: it counts by the codes of areas as they are, together with the
# attributes of a table, and its groups are put into their areas here. Memory here: 4 bytes a cell
# of the tables, and a piece of rows at a time.


N_RECORDS = "n_records"
"""The column of rows that says how many records are alike."""

_NARROW = np.iinfo(np.uint32).max


class GroupTally:
    """Takes rows of groups in pieces, and gives the counts that follow.

    sets: sets of attributes by which the engine groups, none in another, at least one
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        of_domain = [_of_domain(table, request) for table in request.tables]
        self.sets: Sequence[AttributeIndices] = maximal(of_domain) or [()]
        self._tables: dict[AttributeIndices, np.ndarray] = {
            table: np.zeros(
                [request.sizes[index] for index in table],
                dtype=np.int64 if amounts_in(table, request.ranges) else np.uint32,
            )
            for table in request.tables
        }
        self._n_records = dict.fromkeys(self.sets, 0)
        self._inspections = {each: Inspection(request) for each in self.sets}

    @cached_property
    def _of_sets(self) -> Mapping[AttributeIndices, Sequence[AttributeIndices]]:
        """The tables that are counted by each set, every one by one."""
        of_sets: dict[AttributeIndices, list[AttributeIndices]] = {each: [] for each in self.sets}
        for table in self._tables:
            wanted = set(_of_domain(table, self._request))
            of_sets[next(each for each in self.sets if wanted.issubset(each))].append(table)
        return of_sets

    def add(self, attributes: AttributeIndices, rows: pa.RecordBatch) -> None:
        """Count more groups of one of the sets; raises `DataError` for what is wrong with them.

        rows: c<index> of the set's attributes, columns of areas, STATE where there is a rule, and
            N_RECORDS
        """
        request, inspection = self._request, self._inspections[attributes]
        given = {
            # What is not grouped by is nothing to refuse.
            index: rows.column(f"c{index}").to_numpy()
            if index in attributes
            else np.zeros(rows.num_rows, dtype=np.int8)
            for index in request.attribute_indices
        }
        state = None if request.rule is None else rows.column(STATE).to_numpy()
        n_records = rows.column(N_RECORDS).to_numpy()
        codes = inspection.codes(given, state, n_records)
        codes = {**codes, **area_codes(rows, request)}
        self._n_records[attributes] += int(n_records.sum())
        codes, steps = split_codes(codes, request.sizes, request.ranges)
        for table in self._of_sets[attributes]:
            held = amounts_in(table, request.ranges)
            if self._n_records[attributes] > _NARROW and not held:
                self._tables[table] = self._tables[table].astype(np.uint64, copy=False)
            counts = self._tables[table]
            cells = np.ravel_multi_index([codes[index] for index in table], counts.shape)
            # Of a group of records that are alike, as many times as there are records.
            sums = {
                some: each * n_records
                for some, each in products(steps, held, request.ranges).items()
            }
            behind = cells_behind(table, held, request.sizes)
            for high, times in counts_of_amounts({(): n_records, **sums}, request.ranges).items():
                where = times > 0 if high else slice(None)
                places = cells[where] + sum(behind[index] for index in high)
                np.add.at(counts.reshape(-1), places, times[where].astype(counts.dtype))

    def counts(self) -> Counts:
        """The counts; raises `DataError` if they are not all of the same records."""
        # Every set has all records, so that each attribute is as faulty in any set that has it.
        checks = np.max([one.checks for one in self._inspections.values()], axis=0).tolist()
        self._request.refuse(checks, self._n_records[self.sets[0]])
        taken = self._request.faults(checks).taken()
        ranges = self._request.ranges
        counts = Counts(self._tables, self._n_records[self.sets[0]], taken, ranges)
        # Tables of one set are sums of the same rows.
        has_lost = any(
            cells.sum(dtype=np.int64) != counts.n_records * ranges.times(amounts_in(table, ranges))
            for table, cells in self._tables.items()
        )
        if has_lost or (len(self.sets) > 1 and not agree(counts)):
            raise self._request.changed_error()
        return counts


def _of_domain(table: AttributeIndices, request: Request) -> AttributeIndices:
    return tuple(index for index in table if index < len(request.domain))
