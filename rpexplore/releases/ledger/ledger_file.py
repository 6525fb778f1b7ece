"""A ledger in a file: an SQLite database, which the standard library reads and writes."""

import errno
import glob
import os
import platform
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rpexplore.common.files import laid_beside
from rpexplore.data.engines.connections import ENGINES
from rpexplore.errors import LedgerError
from rpexplore.releases.ledger.chain import (
    START,
    End,
    EventChain,
    LedgerTransaction,
    note_end,
    refuse_unkept,
    seen_ends,
)
from rpexplore.releases.ledger.events import Event

_APPLICATION_ID, _VERSION = 0x72706C64, 1  # "rpld"
# https://www.sqlite.org/fileformat.html: where the header has them, four bytes each
_MAGIC, _VERSION_AT, _APPLICATION_AT = b"SQLite format 3\x00", 60, 68
_HEADER_SIZE = 100
_FORMAT_AT, _WAL = 19, 2  # one byte: 1, or 2 where SQLite is to look into a write-ahead log as well
_BESIDE = ENGINES["sqlite"].beside
_SECONDS_TO_MAKE = 60  # a ledger; by far
# A lock of SQLite's is lost when another thread of this process closes the same file.
# https://www.sqlite.org/howtocorrupt.html, section 2.2
_one_thread = threading.RLock()

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
        with _opened(self.path) as (connection, before):
            connection.execute("BEGIN")
            return _chain(connection, self.path, before).events

    def settled_events(self) -> list[Event]:
        """As `read_events`: what a process had not written here ends with it."""
        return self.read_events()

    @contextmanager
    def transaction(self, *, merging: bool = False) -> Iterator[LedgerTransaction]:
        """What is added in the block is on disk when it ends, and not there if it ends badly.

        The ledger is made if there is none. Raises `LedgerError`. merging: makes no difference
        """
        with _refusing(self.path):
            if not self.path.exists():
                _make(self.path)
            if self.path.stat().st_nlink > 1:  # somebody was killed before the draft was gone
                _clear_drafts(self.path)
        with _opened(self.path) as (connection, before):
            # With less, the removal of the journal may be lost, which would take the entry back.
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("BEGIN IMMEDIATE")
            transaction = _FileTransaction(connection, _chain(connection, self.path, before))
            yield transaction
            connection.execute("COMMIT")
        if added := transaction.added:  # anew, by its path: the file can be another by now
            with _opened(self.path) as (connection, _):
                rows = connection.execute(
                    "SELECT events.* FROM events, last WHERE id BETWEEN ? AND ? AND n_events >= ? "
                    "ORDER BY id",
                    (added[0][0], added[-1][0], added[-1][0]),
                )
                refuse_unkept(self.name, added, rows.fetchall())
            note_end(self.name, transaction.end)

    def check_bookable(self, *, sets_limit: bool = False) -> None:
        """Raise `LedgerError` if it has no folder, or cannot be written to."""
        if not self.folder.is_dir():
            raise LedgerError(
                f"There is no folder {str(self.folder)!r} for the ledger; check the path."
            )
        # SQLite writes a journal beside it.
        needed = [self.folder, *([self.path] if self.path.exists() else [])]
        if not all(os.access(path, os.W_OK) for path in needed):
            raise LedgerError(
                f"Nothing can be booked in the ledger {self.name!r}: it, or its folder, cannot be "
                "written to; ask its owner for that right."
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
    draft = path.with_name(
        f".{path.name}.new-{platform.node()}-{os.getpid()}-{threading.get_ident()}"
    )
    _clear_drafts(path)
    try:
        draft.unlink(missing_ok=True)  # of a process that had the same number
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o664))
        with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
            # Without a journal, which would be left behind, or be somebody else's.
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("PRAGMA journal_mode = OFF")
            connection.executescript(f"BEGIN EXCLUSIVE; {_SCHEMA} COMMIT;")
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def _clear_drafts(path: Path) -> None:
    """Remove drafts of processes that were killed while they made this ledger.

    Those of this machine when the process is gone, others when they are old.
    """
    for left in path.parent.glob(f".{glob.escape(path.name)}.new-*"):
        machine, *process = left.name.partition(".new-")[2].rsplit("-", 2)
        with suppress(OSError):  # another process was done with its own, or it is somebody else's
            is_over = time.time() - left.stat().st_mtime > _SECONDS_TO_MAKE
            # Anybody can have put a file of any such name there.
            is_ours = machine == platform.node() and len(process) == 2 and os.name == "posix"
            if not is_over and is_ours and process[0].isdecimal():
                try:
                    os.kill(int(process[0]), 0)
                except (ProcessLookupError, OverflowError):
                    is_over = True
            if is_over:
                left.unlink()


@dataclass(frozen=True)
class _Before:
    """What is known of a ledger before it is opened.

    seen  `seen_ends` of it
    end   number and digest of the last event, if that can be told without what lies beside the file
    """

    seen: Mapping[str, End]
    end: tuple[int, str] | None


@contextmanager
def _opened(path: Path) -> Iterator[tuple[sqlite3.Connection, _Before]]:
    """A connection that is closed at the end; what was not committed is not there then."""
    seen = seen_ends(str(path))
    with _one_thread, _refusing(path):
        is_wal = _check_header(path)
        if laid := laid_beside(path, _BESIDE):
            raise LedgerError(
                f"The ledger {str(path)!r} cannot be used: {laid.name!r} beside it was put there "
                "by somebody who may not write to the ledger, and SQLite would play it back, which "
                "can take entries away. Remove it, or have whoever looks after the folder do so."
            )
        end = None
        if not is_wal and not any(Path(f"{path}{suffix}").exists() for suffix in _BESIDE):
            end = _end_of_file_alone(path)
        # Never made here: a path that has gone meanwhile is an error, not an empty ledger.
        address = f"{path.absolute().as_uri()}?mode=rw"
        with closing(
            sqlite3.connect(address, timeout=30, isolation_level=None, uri=True)
        ) as opened:
            if is_wal:
                _fold_back(opened, path)
            yield opened, _Before(seen, end)


def _end_of_file_alone(path: Path) -> tuple[int, str] | None:
    """Number and digest of the last event, without what lies beside; None if that is not told.

    As nobody is waited for, a writer may be about to change it.
    """
    address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    with suppress(sqlite3.Error), closing(sqlite3.connect(address, uri=True)) as opened:
        return opened.execute("SELECT n_events, digest FROM last").fetchone()
    return None


def _fold_back(opened: sqlite3.Connection, path: Path) -> None:
    """Have all that is in the write-ahead log in the file itself, and no log from now on.

    Raises `LedgerError` if that cannot be: a file that is moved or copied would lack it.
    """
    try:
        opened.execute("PRAGMA busy_timeout = 1000")
        (mode,) = opened.execute("PRAGMA journal_mode = DELETE").fetchone()
        opened.execute("PRAGMA busy_timeout = 30000")
    except sqlite3.OperationalError:
        mode = "wal"
    if mode != "delete":
        raise _wal_error(path)


def _wal_error(path: Path) -> LedgerError:
    return LedgerError(
        f"The ledger {str(path)!r} cannot be used: another program has put it into WAL mode, in "
        "which entries lie in a second file, and it cannot be put back while that program has it "
        "open, or by a user who may not write to it. Close that program, and look at the ledger "
        "once as a user who may write to it (rpexplore ledger DATA --ledger LEDGER)."
    )


def _check_header(path: Path) -> bool:
    """Raise `LedgerError` for what is another program's, before SQLite looks at it.

    Returns whether it is in WAL mode, in which another program can have put it.
    """
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
        return header[_FORMAT_AT] == _WAL
    raise LedgerError(
        f"The ledger {str(path)!r} cannot be used: {problem}. Restore it from a copy, or name "
        "another ledger; what was spent is not known without it."
    )


@cache
def _own_objects() -> frozenset[tuple[str, str, str]]:
    with closing(sqlite3.connect(":memory:")) as made:
        made.executescript(_SCHEMA)
        return frozenset(made.execute(_OBJECTS))


def _chain(connection: sqlite3.Connection, path: Path, before: _Before) -> EventChain:
    """The events; raises `LedgerError` if anything is there that this program does not make.

    A trigger could swallow what is booked, and a view could show what nobody booked.
    """
    if others := set(connection.execute(_OBJECTS)) - _own_objects():
        kind, name = min((kind, name) for kind, name, _ in others)
        raise LedgerError(
            f"The ledger {str(path)!r} cannot be used: it holds a {kind}, {name!r}, that this "
            "program has not made. Restore it from a copy, or have whoever made that remove it."
        )
    if connection.execute("PRAGMA journal_mode").fetchone() == ("wal",):  # since it was opened
        raise _wal_error(path)
    rows = connection.execute("SELECT * FROM events ORDER BY id")
    last = connection.execute("SELECT * FROM last").fetchall()
    chain = EventChain(str(path), rows, last, before.seen)
    if before.end is not None and not chain.has(*before.end):
        raise LedgerError(
            f"Entries were taken out of the ledger {str(path)!r} while it was opened, as by a file "
            "that somebody laid beside it. Restore it from a copy, and keep it in a folder that "
            "nobody else can write to."
        )
    return chain


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Turn what goes wrong with the file into a `LedgerError` that names it."""
    try:
        yield
    except (OSError, ValueError, sqlite3.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        if getattr(error, "errno", None) == errno.ELOOP:  # links that lead to each other
            reason = "it is no file"
        remedy = "check that its folder can be written to, or name another ledger"
        if getattr(error, "errno", None) == errno.EACCES and os.path.exists(path):
            remedy = "it may have their account: ask its owner for the right to use it"
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
            remedy = "another program holds it: try again when that is done with it"
        raise LedgerError(
            f"The ledger {str(path)!r} cannot be used ({reason}); {remedy}."
        ) from None
