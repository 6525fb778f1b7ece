"""A ledger in PostgreSQL, which several machines can share.

By SQLAlchemy Core and Psycopg 3, of the extra `postgres`: neither is needed for ledgers in files,
and the core of this package stays small without them. `ledger_tables` has what is said to a server.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from rpexplore.common.installation import require
from rpexplore.data.engines.connections import UNREACHABLE, Connection, connection_named
from rpexplore.errors import DataError, LedgerError, MissingExtraError
from rpexplore.releases.ledger.chain import (
    End,
    EventChain,
    LedgerTransaction,
    note_end,
    refuse_unkept,
    seen_ends,
)
from rpexplore.releases.ledger.events import Event

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
_MAY_NOT_BOOK = (
    "the role of the connection may not do that; have the ledger's owner grant it: "
    "rpexplore ledger --create --grant ROLE"
)
_UNSOUND = (
    "the server refuses an entry of this form, or in this name; use the version of this program "
    "that the ledger was made with"
)
_MAY_NOT_LIMIT = (
    "the role of the connection may not set limits or demands; leave them out, name a connection "
    "that may, or have the ledger's owner grant it: rpexplore ledger --create --grant-limits ROLE"
)
_MAY_NOT_MERGE = (
    "only its owner takes over the entries of another ledger; name a connection of the owner"
)
# https://www.postgresql.org/docs/current/errcodes-appendix.html; two signs are a class. Those that
# begin with RX are of the functions of `ledger_tables`.
_BY_SQLSTATE: Mapping[str, str] = MappingProxyType(
    {
        "42P01": "its database holds no ledger; have its owner make it: rpexplore ledger --create",
        "42703": _FOREIGN,
        "42883": _FOREIGN,
        "42809": _FOREIGN,
        "42501": _MAY_NOT_BOOK,
        "RXLIM": "the server refuses the run: it goes beyond a budget limit of these records; look "
        "at the account (rpexplore ledger), and plan with a smaller budget",
        "RXAPP": "the server refuses the run: it has fewer approvals than are demanded for these "
        "records; look at the account (rpexplore ledger), and have the plan approved",
        "RXBAD": _UNSOUND,
        "RXEND": "it was merged into another ledger, which goes on in its place; use that one",
        "22": _UNSOUND,
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

        seen = seen_ends(self.name)
        with self._opened() as server:
            ledger_tables.begin_reading(server)
            self._check_version(server)
            return self._chain(server, seen).events

    def settled_events(self) -> list[Event]:
        """As `read_events`, when no transaction that adds some is open any more.

        A server may still be at a commit whose caller has gone: it holds the lock till its end.
        """
        with self.transaction() as ledger:
            return ledger.events

    @contextmanager
    def transaction(self, *, merging: bool = False) -> Iterator[LedgerTransaction]:
        """What is added in the block is on the server's disk when it ends. Raises `LedgerError`.

        merging: entries of another ledger, which only the owner of this one may add.
        """
        from rpexplore.releases.ledger import ledger_tables

        seen = seen_ends(self.name)
        with self._opened() as server:
            ledger_tables.begin_writing(server, SECONDS_FOR_LOCK)
            self._check_version(server, to_write=True)
            ledger_tables.hold_off_others(server)
            transaction = _DatabaseTransaction(self, server, self._chain(server, seen), merging)
            yield transaction
            if added := transaction.added:
                ledger_tables.append(server, added, merging=merging)
                refuse_unkept(self.name, added, ledger_tables.kept(server, added))
            server.commit()
            if added:  # a trigger can wait for the commit
                ledger_tables.begin_reading(server)
                refuse_unkept(self.name, added, ledger_tables.kept(server, added))
                note_end(self.name, transaction.end)

    def check_bookable(self, *, sets_limit: bool = False) -> None:
        """Raise `LedgerError` if the connection may not book, or not set a limit with it."""
        from rpexplore.releases.ledger import ledger_tables

        with self._opened() as server:
            ledger_tables.begin_reading(server)
            self._check_version(server, to_write=True)
            _, may_book, may_limit, _ = ledger_tables.rights(server)
            if not may_book:
                raise self._error(_MAY_NOT_BOOK)
            if sets_limit and not may_limit:
                raise self._error(_MAY_NOT_LIMIT)

    def create(
        self, bookers: tuple[str, ...] = (), limiters: tuple[str, ...] = ()
    ) -> Literal["new", "renewed", "there"]:
        """Make the ledger where there is none, or renew one of an earlier version; which it was.

        Raises `LedgerError` also if there is nothing to do.

        Args:
            bookers: Roles that may book runs from now on.
            limiters: Roles that may set limits, and demand approvals.
        """
        from rpexplore.releases.ledger import ledger_tables

        with self._opened() as server:
            try:
                state = "new" if ledger_tables.create(server) else "there"
            except PermissionError:
                raise self._error(
                    "its schema rpexplore_ledger belongs to another role, which could exchange "
                    "what is in it; have that removed (DROP SCHEMA), or make the ledger as its "
                    "owner"
                ) from None
            if state == "there":
                self._check_version(server)
                state = "renewed" if ledger_tables.renew(server) else state
            if state == "there" and not (bookers or limiters):
                raise LedgerError(
                    f"The ledger {self.name!r} is there already; leave --create out, or name a "
                    "role that may book runs (--grant ROLE) or set limits (--grant-limits ROLE)."
                )
            for roles, limits in ((bookers, False), (limiters, True)):
                for role in roles:
                    if not ledger_tables.grant(server, role, limits=limits):
                        raise LedgerError(
                            f"The server of the ledger {self.name!r} has no role {role!r}; make it "
                            "first (CREATE ROLE), or correct its name."
                        )
            server.commit()
        return state

    def _check_version(self, server: "sqlalchemy.Connection", *, to_write: bool = False) -> None:
        from rpexplore.releases.ledger import ledger_tables

        if problem := ledger_tables.problem_with_version(server, to_write=to_write):
            raise self._error(problem)

    def _chain(self, server: "sqlalchemy.Connection", seen: Mapping[str, End]) -> EventChain:
        """The events; raises `LedgerError` if anything is there that this program does not make.

        A trigger could swallow what is booked, or wait with that for the commit.
        """
        from rpexplore.releases.ledger import ledger_tables

        if foreign := ledger_tables.foreign_object(server):
            raise self._error(
                f"it holds a {foreign}, that this program has not made, or has made otherwise; "
                "restore it from a copy, or have whoever made that remove it"
            )
        if right := ledger_tables.foreign_right(server):
            raise self._error(
                f"a right is given there that nobody but its owner may have, {right!r}; have its "
                "owner or the server's administrator take it away (REVOKE)"
            )
        return EventChain(self.name, *ledger_tables.rows(server), seen)

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
    """What is added is written at the end. Entries are in the name of the role that logged in."""

    def __init__(
        self,
        ledger: LedgerDatabase,
        server: "sqlalchemy.Connection",
        chain: EventChain,
        merging: bool,
    ) -> None:
        from rpexplore.releases.ledger import ledger_tables

        super().__init__(chain)
        self._ledger, self._server, self._merging = ledger, server, merging
        self._role, _, self._may_limit, may_merge = ledger_tables.rights(server)
        if merging and not may_merge:
            raise ledger._error(_MAY_NOT_MERGE)

    def add(self, kind: str, content: Mapping[str, Any]) -> int:
        from rpexplore.releases.ledger import ledger_tables

        if self._merging and kind not in ("bound", "merged"):  # in the name of who entered it there
            return super().add(kind, content)
        if not self._merging and kind not in ledger_tables.BOOKED and not self._may_limit:
            raise self._ledger._error(_MAY_NOT_LIMIT)
        return super().add(kind, {**content, "user": self._role} if "user" in content else content)

    def _append(self, number: int, kind: str, text: str, digest: str) -> None:
        pass


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
