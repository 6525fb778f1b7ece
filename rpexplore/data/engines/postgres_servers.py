"""Connections to one PostgreSQL server: set up alike, and some that see what another one sees.

The server works on a statement in one process, so that what is divided among connections is done
sooner. Those beside the first one read its snapshot of the records; where there can be none (a
pooler on the way, no place left, a server that refuses), the first one works alone.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

# A server has 20 seconds to answer; one that is gone is noticed within a minute or so.
CONNECT_DEFAULTS = {
    "application_name": "rpexplore",
    "connect_timeout": 20,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}
_MOST_SERVERS = 4
_EXPORT = "SELECT pg_export_snapshot(), pg_backend_pid()"
_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

# The server's own word on how many processes may work on one statement beside the first, and half
# of the places that it has left.
_MOST_BESIDE = """
SELECT least(current_setting('max_parallel_workers_per_gather')::int,
    (current_setting('max_connections')::int
     - current_setting('superuser_reserved_connections')::int
     - (SELECT sum(numbackends) FROM pg_stat_database)::int) / 2)
"""
# A standby has the number of its primary, and may have a snapshot of the same name.
_SEEN = """
SELECT pg_postmaster_start_time(), txid_current_snapshot()::text, current_database(), current_user,
    current_setting('search_path')
"""


def connect(given: Mapping[str, Any]) -> Any:
    """A connection outside of a transaction, which the caller closes.

    given: what an address gives, as libpq names it
    """
    import psycopg

    server = psycopg.connect(**(CONNECT_DEFAULTS | dict(given)), autocommit=True)
    try:
        # Compiling hundreds of groupings takes longer than running them.
        server.execute("SET jit = off")
        server.execute("SET work_mem = '64MB'")
        server.execute("SET client_encoding = 'UTF8'")
        with suppress(psycopg.Error):  # older servers do not look whether somebody still waits
            server.execute("SET client_connection_check_interval = '10s'")
    except BaseException:
        server.close()
        raise
    return server


@dataclass(frozen=True)
class Snapshot:
    """The transaction of a connection, which reads only and sees one state of the records.

    name  by which others can read the same state; "" where they cannot
    """

    server: Any
    given: Mapping[str, Any] = field(repr=False)
    name: str

    @contextmanager
    def servers_beside(self, n_wanted: int) -> Iterator[list[Any]]:
        """Connections in transactions that see the same, closed at the end; at most so many."""
        import psycopg

        with ExitStack() as opened:
            servers: list[Any] = []
            # Whatever the server refuses, the connection that is there goes on without it.
            with suppress(psycopg.Error), self.server.transaction():
                for _ in range(min(n_wanted, self._n_most())):
                    # The address of the one server that answered, where the URI names several.
                    info = self.server.info
                    one = {"host": info.host, "port": info.port}
                    if info.hostaddr:
                        one["hostaddr"] = info.hostaddr
                    server = opened.enter_context(closing(connect({**self.given, **one})))
                    # What Ibis sets as well, before there is a transaction.
                    server.execute("SET TIMEZONE = UTC")
                    server.execute(_BEGIN)
                    server.execute(f"SET TRANSACTION SNAPSHOT '{self.name}'")
                    if _seen(server) != _seen(self.server):
                        break
                    servers.append(server)
            yield servers

    def _n_most(self) -> int:
        if not self.name:
            return 0
        (n_beside,) = self.server.execute(_MOST_BESIDE).fetchone()
        is_here = not self.server.info.hostaddr or self.server.info.hostaddr in ("127.0.0.1", "::1")
        n_processors = (os.cpu_count() or 1) if is_here else _MOST_SERVERS
        return max(0, min(n_beside, n_processors - 1, _MOST_SERVERS - 1))


def begin(server: Any, given: Mapping[str, Any]) -> Snapshot:
    """Begin the transaction of a connection; closing the connection ends it."""
    import psycopg

    server.execute(_BEGIN)
    try:
        name, process = server.execute(_EXPORT).fetchone()
    except psycopg.Error:
        if server.closed:
            raise
        # The error ended a transaction in which nothing had been seen.
        server.execute("ROLLBACK")
        server.execute(_BEGIN)
        return Snapshot(server, given, "")
    # A pooler gives a process of its own making, and may have nobody wait for further ones.
    return Snapshot(server, given, name if process == server.info.backend_pid else "")


def _seen(server: Any) -> Any:
    return server.execute(_SEEN).fetchone()
