"""Sessions on PostgreSQL: one transaction that reads only."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from rpexplore.data.databases.connections import Connection
from rpexplore.data.databases.session import Session, engine_errors, parts_of
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
_LOCAL = ("", "localhost", "127.0.0.1", "::1")


class PostgresSession(Session):
    """A session on a server, which sees one state of the records."""

    tells_capitals = True

    def extent(self, name: str) -> str:
        """The file that a table is in, and its size."""
        parts = [part for part in parts_of(name) if part]
        quoted = ".".join('"' + part.replace('"', '""') + '"' for part in parts)
        with engine_errors(self.connection, name):
            extent = self.backend.con.execute(
                "SELECT pg_relation_filenode(oid), pg_relation_size(oid) "
                "FROM (SELECT to_regclass(%s) AS oid) AS named",
                (quoted,),
            )
            return str(extent.fetchone())


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
            known = None
            with suppress(psycopg.Error):  # whoever may not ask knows the server by its address
                known = server.execute(_IDENTIFIER).fetchone()
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
        info = server.info
        host = info.host.lower().rstrip(".")
        host = "localhost" if host in _LOCAL or host.startswith(("/", "@")) else host
        address = f"postgresql://{host}:{info.port}/{info.dbname}"
        if known is not None:  # a server has many addresses, and one number
            address = f"postgresql:{known[0]}/{info.dbname}"

        def cancel() -> None:
            server.cancel_safe(timeout=5)

        yield PostgresSession(connection, backend, address, schema, cancel)
    finally:
        server.close()
