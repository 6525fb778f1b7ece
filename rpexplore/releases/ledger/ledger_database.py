"""A ledger in PostgreSQL, which several machines can share.

By SQLAlchemy Core and Psycopg 3, of the extra `postgres`: neither is needed for ledgers in files,
and the core of this package stays small without them. `ledger_tables` has what is said to a server.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rpexplore.common.installation import require
from rpexplore.data.engines.connections import UNREACHABLE, Connection, connection_named
from rpexplore.errors import DataError, LedgerError, MissingExtraError
from rpexplore.releases.ledger.account import Event, EventChain, LedgerTransaction

if TYPE_CHECKING:
    import sqlalchemy

ENGINE = "postgresql"
SECONDS_FOR_LOCK = 30  # as long as SQLite waits for another writer

_LOST = "the connection was lost or could not be made; see that the server runs, and run again"
_LOCKED = (
    f"somebody else has been writing to it for {SECONDS_FOR_LOCK} seconds; see who that is, and "
    "run again"
)
_SLOW = (
    "the server stopped a statement after its limit of time; run again, or have the limit raised"
)
_FOREIGN = (
    "the schema rpexplore_ledger is that of another program, or was changed; restore it from a "
    "copy, or name another ledger"
)
# https://www.postgresql.org/docs/current/errcodes-appendix.html; two signs are a class.
_BY_SQLSTATE: Mapping[str, str] = MappingProxyType(
    {
        "42P01": "its database holds no ledger; have its owner make it: rpexplore ledger --create",
        "42703": _FOREIGN,
        "42883": _FOREIGN,
        "42809": _FOREIGN,
        "42501": "the role of the connection may not do that; have the ledger's owner grant it: "
        "rpexplore ledger --create --grant ROLE",
        "25006": "the server, or the role of the connection, only reads; name a connection that "
        "writes",
        "55P03": _LOCKED,
        "57014": _SLOW,
        "25P03": _SLOW,
        "25P04": _SLOW,
        "23": "an entry was added by something else than this program; restore it from a copy",
        "53100": "the disk of the server is full; make room there",
        "53": UNREACHABLE["full"],
        "57": _LOST,
        "08": _LOST,
    }
)


@dataclass(frozen=True)
class LedgerDatabase:
    """A ledger in the database that a connection leads to.

    connection_name: of the connection, which is looked up whenever the ledger is used
    """

    connection_name: str

    @property
    def name(self) -> str:
        """postgresql:NAME."""
        return f"{ENGINE}:{self.connection_name}"

    @property
    def path(self) -> Path | None:
        """None."""
        return None

    @property
    def folder(self) -> Path | None:
        """None: several machines share it."""
        return None

    def read_events(self) -> list[Event]:
        """All events in their order. Raises `LedgerError`."""
        from rpexplore.releases.ledger import ledger_tables

        with self._opened() as server:
            ledger_tables.begin_reading(server)
            self._check_version(server)
            return self._chain(server).events

    def settled_events(self) -> list[Event]:
        """As `read_events`, when no transaction that adds some is open any more.

        A server may still be at a commit whose caller has gone: it holds the lock till its end.
        """
        with self.transaction() as ledger:
            return ledger.events

    @contextmanager
    def transaction(self) -> Iterator[LedgerTransaction]:
        """What is added in the block is on the server's disk when it ends. Raises `LedgerError`."""
        from rpexplore.releases.ledger import ledger_tables

        with self._opened() as server:
            ledger_tables.begin_writing(server, SECONDS_FOR_LOCK)
            self._check_version(server)
            ledger_tables.hold_off_others(server)
            yield _DatabaseTransaction(self, server, self._chain(server))
            server.commit()

    def check_bookable(self) -> None:
        """Raise `LedgerError` if the connection may not add entries."""
        from rpexplore.releases.ledger import ledger_tables

        with self._opened() as server:
            ledger_tables.begin_reading(server)
            self._check_version(server)
            if not ledger_tables.may_add(server):
                raise self._error(_BY_SQLSTATE["42501"])

    def create(self, roles: tuple[str, ...] = ()) -> bool:
        """Make the ledger where there is none, and let these roles add entries; whether it is new.

        Raises `LedgerError` also if it is there, and no role is named.
        """
        from rpexplore.releases.ledger import ledger_tables

        with self._opened() as server:
            is_new = ledger_tables.create(server)
            if not is_new:
                self._check_version(server)
                if not roles:
                    raise LedgerError(
                        f"The ledger {self.name!r} is there already; leave --create out, or name "
                        "a role that may add entries (--grant ROLE)."
                    )
            for role in roles:
                if not ledger_tables.grant(server, role):
                    raise LedgerError(
                        f"The server of the ledger {self.name!r} has no role {role!r}; make it "
                        "first (CREATE ROLE), or correct its name."
                    )
            server.commit()
        return is_new

    def _check_version(self, server: "sqlalchemy.Connection") -> None:
        from rpexplore.releases.ledger import ledger_tables

        if problem := ledger_tables.problem_with_version(server):
            raise self._error(problem)

    def _chain(self, server: "sqlalchemy.Connection") -> EventChain:
        from rpexplore.releases.ledger import ledger_tables

        return EventChain(self.name, *ledger_tables.rows(server))

    @contextmanager
    def _opened(self) -> Iterator["sqlalchemy.Connection"]:
        """A connection whose transaction is taken back unless it was committed."""
        with self._refusing():
            from rpexplore.releases.ledger import ledger_tables

            with ledger_tables.connected(self._connection()) as server:
                if problem := ledger_tables.problem_with_server(server):
                    raise self._error(problem)
                yield server

    def _connection(self) -> Connection:
        require("sqlalchemy", "postgres", f"the ledger {self.name!r}")
        require("psycopg", "postgres", f"the ledger {self.name!r}")
        connection = connection_named(self.connection_name)
        if connection.engine != ENGINE:
            raise self._error(
                f"the connection {self.connection_name!r} is one of {connection.engine}; name one "
                "of PostgreSQL"
            )
        return connection

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Tell what goes wrong with the server as a `LedgerError`: no word of the server's own."""
        try:
            yield
        except (DataError, MissingExtraError) as error:
            raise LedgerError(str(error)) from None
        except Exception as error:
            if (problem := _problem_of(error)) is None:
                raise
            raise self._error(problem) from None

    def _error(self, problem: str) -> LedgerError:
        return LedgerError(f"The ledger {self.name!r} cannot be used: {problem}.")


class _DatabaseTransaction(LedgerTransaction):
    def __init__(
        self, ledger: LedgerDatabase, server: "sqlalchemy.Connection", chain: EventChain
    ) -> None:
        super().__init__(chain)
        self._ledger, self._server = ledger, server

    def _append(self, number: int, kind: str, text: str, digest: str) -> None:
        from rpexplore.releases.ledger import ledger_tables

        if not ledger_tables.append(self._server, number, kind, text, digest):
            raise self._ledger._error(_FOREIGN)


def _problem_of(error: Exception) -> str | None:
    """What went wrong at a server, and what to do; None for what is no error of a server."""
    import psycopg
    import sqlalchemy.exc

    from rpexplore.data.engines.session import error_kind

    if isinstance(error, sqlalchemy.exc.DBAPIError) and error.orig is not None:
        cause: Any = error.orig
    else:
        cause = error
    if not isinstance(cause, (psycopg.Error, sqlalchemy.exc.SQLAlchemyError, OSError)):
        return None
    code = getattr(cause, "sqlstate", None) or ""
    known = _BY_SQLSTATE.get(code) or _BY_SQLSTATE.get(code[:2])
    if known is None and isinstance(cause, psycopg.OperationalError):
        known = UNREACHABLE.get(error_kind(cause), _LOST)
    return known or f"the server refused a statement (code {code or 'unknown'}); {_LOST}"
