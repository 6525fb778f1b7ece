"""A ledger in a file: an SQLite database, which the standard library reads and writes."""

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rpexplore.errors import LedgerError
from rpexplore.releases.ledger.account import Event
from rpexplore.releases.ledger.chain import START, EventChain, LedgerTransaction, refuse_unkept

_APPLICATION_ID, _VERSION = 0x72706C64, 1  # "rpld"
# https://www.sqlite.org/fileformat.html: where the header has them, four bytes each
_MAGIC, _VERSION_AT, _APPLICATION_AT = b"SQLite format 3\x00", 60, 68
_HEADER_SIZE = 100
_SECONDS_TO_MAKE = 60  # a ledger; by far

_SCHEMA = f"""
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {_VERSION};
CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    content TEXT NOT NULL,
    digest TEXT NOT NULL
);
CREATE TABLE last (n_events INTEGER NOT NULL, digest TEXT NOT NULL);
INSERT INTO last VALUES (0, '{START}');
"""
_OBJECTS = "SELECT type, name, sql FROM sqlite_schema"


@dataclass(frozen=True)
class LedgerFile:
    """A ledger in a file, which is made at the first entry."""

    path: Path

    @property
    def name(self) -> str:
        """The path."""
        return str(self.path)

    @property
    def folder(self) -> Path:
        """What names of records in files are seen from."""
        return self.path.parent

    def read_events(self) -> list[Event]:
        """All events in their order; none if there is no ledger. Raises `LedgerError`."""
        if not self.path.exists():
            return []
        with _opened(self.path) as connection:
            connection.execute("BEGIN")
            return _chain(connection, self.path).events

    def settled_events(self) -> list[Event]:
        """As `read_events`: what a process had not written here ends with it."""
        return self.read_events()

    @contextmanager
    def transaction(self, *, merging: bool = False) -> Iterator[LedgerTransaction]:
        """What is added in the block is on disk when it ends, and not there if it ends badly.

        The ledger is made if there is none. Raises `LedgerError`. merging: makes no difference
        """
        if not self.path.exists():
            _make(self.path)
        with _opened(self.path) as connection:
            # With less, the removal of the journal may be lost, which would take the entry back.
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("BEGIN IMMEDIATE")
            transaction = _FileTransaction(connection, _chain(connection, self.path))
            yield transaction
            connection.execute("COMMIT")
        if added := transaction.added:  # anew, by its path: the file can be another by now
            with _opened(self.path) as connection:
                rows = connection.execute(
                    "SELECT events.* FROM events, last WHERE id BETWEEN ? AND ? AND n_events >= ? "
                    "ORDER BY id",
                    (added[0][0], added[-1][0], added[-1][0]),
                )
                refuse_unkept(self.name, added, rows.fetchall())

    def check_bookable(self, *, sets_limit: bool = False) -> None:
        """Raise `LedgerError` if there is no folder for it."""
        if not self.folder.is_dir():
            raise LedgerError(
                f"There is no folder {str(self.folder)!r} for the ledger; check the path."
            )


class _FileTransaction(LedgerTransaction):
    def __init__(self, connection: sqlite3.Connection, chain: EventChain) -> None:
        super().__init__(chain)
        self._connection = connection

    def _append(self, number: int, kind: str, text: str, digest: str) -> None:
        row = (number, kind, text, digest)
        self._connection.execute("INSERT INTO events VALUES (?, ?, ?, ?)", row)
        self._connection.execute("UPDATE last SET n_events = ?, digest = ?", (number, digest))


def _make(path: Path) -> None:
    """A ledger without events, whole or not at all, unless somebody else has just made one."""
    draft = path.with_name(f".{path.name}.new-{os.getpid()}-{threading.get_ident()}")
    with _refusing(path):
        for left in path.parent.glob(f".{path.name}.new-*"):  # by processes that were killed
            with suppress(FileNotFoundError):  # another process was done with its own meanwhile
                if left == draft or time.time() - left.stat().st_mtime > _SECONDS_TO_MAKE:
                    left.unlink()
        try:
            os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
            with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
                connection.executescript(_SCHEMA)
            with suppress(FileExistsError):
                os.link(draft, path)
        finally:
            draft.unlink(missing_ok=True)


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that is closed at the end; what was not committed is not there then."""
    with _refusing(path):
        _check_header(path)
        # Never made here: a path that has gone meanwhile is an error, not an empty ledger.
        address = f"{path.absolute().as_uri()}?mode=rw"
        with closing(
            sqlite3.connect(address, timeout=30, isolation_level=None, uri=True)
        ) as opened:
            yield opened


def _check_header(path: Path) -> None:
    """Raise `LedgerError` for what is another program's, before SQLite looks at it."""
    if not path.is_file():  # a pipe would be waited for
        raise OSError("it is no file")
    with path.open("rb") as file:
        header = file.read(_HEADER_SIZE)
    application, version = (
        int.from_bytes(header[start : start + 4], "big") for start in (_APPLICATION_AT, _VERSION_AT)
    )
    if len(header) < _HEADER_SIZE or not header.startswith(_MAGIC):
        problem = "it is empty" if not header else "it is no ledger"
    elif application != _APPLICATION_ID:
        problem = "it is the database of another program"
    elif version != _VERSION:
        problem = f"it has version {version}, and this program reads version {_VERSION}"
    else:
        return
    raise LedgerError(
        f"The ledger {str(path)!r} cannot be used: {problem}. Restore it from a copy, or name "
        "another ledger; what was spent is not known without it."
    )


@cache
def _own_objects() -> frozenset[tuple[str, str, str]]:
    with closing(sqlite3.connect(":memory:")) as made:
        made.executescript(_SCHEMA)
        return frozenset(made.execute(_OBJECTS))


def _chain(connection: sqlite3.Connection, path: Path) -> EventChain:
    """The events; raises `LedgerError` if anything is there that this program does not make.

    A trigger could swallow what is booked, and a view could show what nobody booked.
    """
    if others := set(connection.execute(_OBJECTS)) - _own_objects():
        kind, name = min((kind, name) for kind, name, _ in others)
        raise LedgerError(
            f"The ledger {str(path)!r} cannot be used: it holds a {kind}, {name!r}, that this "
            "program has not made. Restore it from a copy, or have whoever made that remove it."
        )
    rows = connection.execute("SELECT * FROM events ORDER BY id")
    return EventChain(str(path), rows, connection.execute("SELECT * FROM last").fetchall())


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Turn what goes wrong with the file into a `LedgerError` that names it."""
    try:
        yield
    except (OSError, ValueError, sqlite3.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise LedgerError(
            f"The ledger {str(path)!r} cannot be used ({reason}); check that its folder can be "
            "written to, or name another ledger."
        ) from None
