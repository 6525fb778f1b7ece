"""The file of a ledger: events that are only ever added, each chained to the one before.

An SQLite database. A row holds the kind of an event, its content as JSON, and a digest of both and
of the digest before; one more row holds how many there are, and the last digest. A row that was
edited, removed or added otherwise is noticed at the next look: nothing is read from such a file.
(Who means to forge can compute digests. The chain is against damage and mending by hand.)
"""

import hashlib
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from rpexplore.common.json_fields import dumps, loads, refusing
from rpexplore.errors import LedgerError
from rpexplore.releases.ledger.events import Event, checked

_APPLICATION_ID, _VERSION = 0x72706C64, 1  # "rpld"
# https://www.sqlite.org/fileformat.html: where the header has them, four bytes each
_MAGIC, _VERSION_AT, _APPLICATION_AT = b"SQLite format 3\x00", 60, 68
_HEADER_SIZE = 100
_SECONDS_TO_MAKE = 60  # a ledger; by far

_START = hashlib.sha256(b"rpexplore ledger").hexdigest()
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
INSERT INTO last VALUES (0, '{_START}');
"""


class LedgerTransaction:
    """The events of a ledger while nobody else can add one; what is added is there afterwards."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self.events, self._digest = _checked_events(connection, path)

    def add(self, kind: str, content: Mapping[str, Any]) -> int:
        """Add an event, and return its number."""
        event = Event(len(self.events) + 1, kind, content)
        text = dumps(content)
        self._digest = _digest(self._digest, kind, text)
        self._connection.execute(
            "INSERT INTO events VALUES (?, ?, ?, ?)", (event.id, kind, text, self._digest)
        )
        self._connection.execute(
            "UPDATE last SET n_events = ?, digest = ?", (event.id, self._digest)
        )
        self.events.append(event)
        return event.id


def read_events(path: Path) -> list[Event]:
    """All events in their order; none if there is no ledger. Raises `LedgerError`."""
    if not path.exists():
        return []
    with _opened(path) as connection:
        connection.execute("BEGIN")
        return _checked_events(connection, path)[0]


@contextmanager
def transaction(path: Path) -> Iterator[LedgerTransaction]:
    """What is added in the block is on disk when it ends, and not there if it ends badly.

    The ledger is made if there is none. Raises `LedgerError`.
    """
    if not path.exists():
        _make(path)
    with _opened(path) as connection:
        # With less, the removal of the journal may be lost, which would take the entry back.
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("BEGIN IMMEDIATE")
        yield LedgerTransaction(connection, path)
        connection.execute("COMMIT")


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


def _checked_events(connection: sqlite3.Connection, path: Path) -> tuple[list[Event], str]:
    """All events, and the last digest; raises `LedgerError` if the chain is broken."""
    events, digest, stated = [], _START, _START
    for number, kind, text, stated in connection.execute("SELECT * FROM events ORDER BY id"):
        digest = _digest(digest, str(kind), str(text))
        if number != len(events) + 1 or digest != stated:
            break
        with refusing(LedgerError, f"Entry {number} of the ledger {str(path)!r} cannot be read"):
            events.append(checked(Event(number, kind, loads(text))))
    if connection.execute("SELECT * FROM last").fetchall() != [(len(events), stated)]:
        raise LedgerError(
            f"The ledger {str(path)!r} cannot be used: entry {len(events) + 1} is missing or "
            "damaged, or was changed by something else than this program. Restore it from a copy; "
            "what was spent is not known without it."
        )
    return events, digest


def _digest(before: str, kind: str, text: str) -> str:
    return hashlib.sha256(f"{before}\n{kind}\n{text}".encode()).hexdigest()


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
