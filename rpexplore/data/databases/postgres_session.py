"""Sessions on PostgreSQL: one transaction that reads only."""

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

import pyarrow as pa

from rpexplore.common.concurrency import Progress
from rpexplore.data.counts import Counts
from rpexplore.data.databases.connections import Connection
from rpexplore.data.databases.packing import numbers_of, unpacked, words_of
from rpexplore.data.databases.request import Request
from rpexplore.data.databases.session import (
    ROWS_AT_ONCE,
    Provenance,
    Session,
    SQLSession,
    engine_errors,
    parts_of,
)
from rpexplore.data.databases.streaming import count_streamed
from rpexplore.errors import DataError

# A server has 20 seconds to answer; one that is gone is noticed within a minute or so.
_DEFAULTS = {
    "application_name": "rpexplore",
    "connect_timeout": 20,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}
_IDENTIFIER = "SELECT system_identifier FROM pg_control_system()"

# A table, and all that it reads: tables and views of a view, partitions and heirs of a table. Of
# what a materialised view reads, only its own state counts: it is read as it was when it was made.
_RELATIONS = """
WITH RECURSIVE relations(id, is_read) AS (
    SELECT to_regclass(%s)::oid, true
  UNION
    SELECT below.id, relations.is_read AND pg_class.relkind <> 'm'
    FROM relations JOIN pg_class ON pg_class.oid = relations.id CROSS JOIN LATERAL (
        SELECT refobjid FROM pg_rewrite JOIN pg_depend
        ON pg_depend.classid = 'pg_rewrite'::regclass AND pg_depend.objid = pg_rewrite.oid
        WHERE ev_class = relations.id AND ev_type = '1' AND refclassid = 'pg_class'::regclass
      UNION ALL
        SELECT inhrelid FROM pg_inherits WHERE inhparent = relations.id
    ) AS below(id)
)
SELECT id, nspname || '.' || relname, relkind::text, CASE WHEN bool_or(is_read) THEN concat_ws(' ',
    id, pg_relation_filenode(id), pg_relation_size(id), pg_stat_get_tuples_inserted(id),
    pg_stat_get_tuples_updated(id), pg_stat_get_tuples_deleted(id),
    CASE WHEN relkind IN ('v', 'm') THEN md5(pg_get_viewdef(id)) END) END
FROM relations JOIN pg_class ON pg_class.oid = id
JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE relkind IN ('r', 'p', 'v', 'm', 'f')
GROUP BY id, nspname, relname, relkind
ORDER BY id <> to_regclass(%s), nspname, relname
"""
_FUNCTIONS = """
SELECT DISTINCT pg_proc.oid::regprocedure::text AS name
FROM pg_rewrite JOIN pg_depend
ON pg_depend.classid = 'pg_rewrite'::regclass AND pg_depend.objid = pg_rewrite.oid
JOIN pg_proc ON refclassid = 'pg_proc'::regclass AND refobjid = pg_proc.oid
JOIN pg_language ON prolang = pg_language.oid
WHERE ev_class = ANY(%s) AND (lanname NOT IN ('internal', 'c') OR proname LIKE 'dblink%%')
ORDER BY name
"""


class PostgresSession(SQLSession):
    """A session on a server, which sees one state of the records."""

    def provenance(self, name: str) -> Provenance:
        """As the server's catalogue has it; it tells nothing of what functions read."""
        parts = [part for part in parts_of(name) if part]
        quoted = ".".join('"' + part.replace('"', '""') + '"' for part in parts)
        with engine_errors(self.connection, name):
            execute = self.backend.con.execute
            relations = execute(_RELATIONS, (quoted, quoted)).fetchall()
            ids, tables, kinds, states = zip(*relations, strict=True)
            functions = execute(_FUNCTIONS, (list(ids),)).fetchall()
            (database,) = execute(
                "SELECT oid FROM pg_database WHERE datname = current_database()"
            ).fetchone()
        unseen = [
            f"the foreign table {table}"
            for table, kind in zip(tables, kinds, strict=True)
            if kind == "f"
        ] + [f"the function {function}" for (function,) in functions]
        server = self.address.partition("/")[0]
        return Provenance(
            self.address,
            tables,
            ids=tuple(f"{server}/{database}/{number}" for number in ids),
            unseen=tuple(unseen),
            state=tuple(state for state in states if state is not None),
        )

    def count_streamed(self, name: str, request: Request, on_progress: Progress) -> Counts:
        """Of records that the server codes and sends, many codes a number, by a binary COPY."""
        # Of an optional extra.
        from rpexplore.data.databases.counting import packed

        words = words_of(request)
        with engine_errors(self.connection, name):
            text = self.backend.compile(packed(self.coded_records(name, request), request, words))

        def batches() -> Iterator[pa.RecordBatch]:
            statement = f"COPY ({text}) TO STDOUT (FORMAT BINARY)"
            with self.backend.con.cursor() as cursor, cursor.copy(statement) as copy:
                for numbers in numbers_of(copy, len(words), ROWS_AT_ONCE):
                    yield unpacked(numbers, words)

        # Records that are refused stop the copy before the connection is closed.
        with closing(self.pieces(batches, name, on_progress)) as rows:
            return count_streamed(rows, request, on_progress)


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
    given = _DEFAULTS | given
    with engine_errors(connection):
        server = psycopg.connect(**given, autocommit=True)
    try:
        with engine_errors(connection):
            # Compiling hundreds of groupings takes longer than running them.
            server.execute("SET jit = off")
            server.execute("SET work_mem = '64MB'")
            server.execute("SET client_encoding = 'UTF8'")
            with suppress(psycopg.Error):  # older servers do not look whether somebody still waits
                server.execute("SET client_connection_check_interval = '10s'")
            identifier = _identifier(server, connection)
            encoding = server.info.parameter_status("server_encoding")
            if encoding != "UTF8":
                raise DataError(
                    f"At the connection {connection.name!r} the database must hold texts as UTF8, "
                    f"got {encoding}; count an export of the records, or a copy in UTF8."
                )
            backend = ibis.postgres.from_connection(server)
            # Closing the connection ends it, whatever happens.
            server.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            schema = backend.current_database
        address = f"postgresql:{identifier}/{server.info.dbname}"

        def cancel() -> None:
            server.cancel_safe(timeout=5)

        yield PostgresSession(connection, backend, address, schema, cancel)
    finally:
        server.close()


def _identifier(server: Any, connection: Connection) -> int:
    """The number of a server: it has many addresses, and its tables one account."""
    import psycopg.errors

    try:
        return server.execute(_IDENTIFIER).fetchone()[0]
    except psycopg.errors.InsufficientPrivilege:
        raise DataError(
            f"The connection {connection.name!r} may not ask which server it reaches, without "
            "which a table would have an account for each of its addresses; ask for: GRANT EXECUTE "
            "ON FUNCTION pg_control_system() TO role, with the connection's user as role."
        ) from None
    except psycopg.errors.UndefinedFunction:
        raise DataError(
            f"The connection {connection.name!r} reaches a server that has no pg_control_system(), "
            "without which a table would have an account for each of its addresses; use PostgreSQL "
            "10 or later, or count an export of the records."
        ) from None
