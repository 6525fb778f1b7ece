"""A session with an engine: opened to read only, its statements stopped when nobody waits for them.

What an engine says may hold hosts, users or values. It stands in the `private` part of errors, and
there without the connection's password.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from rpexplore.common.concurrency import Progress
from rpexplore.common.extras import require
from rpexplore.data.counts import Counts
from rpexplore.data.databases.connections import ENGINES, UNREACHABLE, Connection
from rpexplore.data.databases.request import Request
from rpexplore.data.databases.side_by_side import Piece, side_by_side
from rpexplore.errors import DataError, RpexploreError

ROWS_AT_ONCE = 100_000  # that are fetched


@dataclass(frozen=True)
class Provenance:
    """What the records of a table or a view come from, as far as the engine tells.

    address  of the database, as that of the session
    tables   schema.table: the one that is named, then those that it reads
    ids      what a server knows these by when they are renamed
    files    that are read beside
    unseen   what else is read, in words
    state    what changes with the records
    """

    address: str
    tables: tuple[str, ...]
    ids: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    unseen: tuple[str, ...] = ()
    state: tuple[str, ...] = ()


@dataclass(frozen=True)
class Session(ABC):
    """An open session.

    backend   the engine's own, or Ibis's
    address   where the records are, without user, password and options:
              postgresql://localhost:5432/survey
    schema    where tables are looked for that name no schema
    cancel    stops the statement that runs
    begin     called in the thread that a statement runs in, before it
    """

    connection: Connection
    backend: Any
    address: str
    schema: str
    cancel: Callable[[], None]
    begin: Callable[[], None] = lambda: None

    @abstractmethod
    def columns(self, name: str) -> list[tuple[str, str]]:
        """Name and type of every column of a table; raises `DataError` if it is not there."""

    @abstractmethod
    def count(self, name: str, request: Request, on_progress: Progress) -> Counts:
        """Exact counts of a table's records; errors are those of `Source.count`."""

    def count_streamed(self, name: str, request: Request, on_progress: Progress) -> Counts:
        """As `count`, of coded records that pass through this process, by an engine that may so."""
        return self.count(name, request, on_progress)

    def provenance(self, name: str) -> Provenance:
        """The origin of an existing table."""
        schema, table = parts_of(name)
        return Provenance(self.address, (f"{schema or self.schema}.{table}".lower(),))

    def pieces(
        self, rows: Callable[[], Iterable[Piece]], name: str, on_progress: Progress
    ) -> Generator[Piece, None, None]:
        """The engine's result of a statement about a table, piece by piece.

        It runs beside, so that `on_progress` can stop it by raising whatever it wants; Ctrl-C does.
        """

        def fetched() -> Generator[Piece, None, None]:
            self.begin()
            yield from rows()

        with (
            engine_errors(self.connection, name),
            closing(side_by_side([fetched], self.cancel, on_progress)) as pieces,
        ):
            yield from pieces


class SQLSession(Session):
    """A session on an engine whose statements Ibis writes."""

    def table(self, name: str) -> Any:
        """A table of the engine, schema.table or table; raises `DataError` if it is not there."""
        schema, table = parts_of(name)
        with engine_errors(self.connection, name):
            return self.backend.table(table, database=schema or None)

    def columns(self, name: str) -> list[tuple[str, str]]:
        return [(column, str(kind)) for column, kind in self.table(name).schema().items()]

    def count(self, name: str, request: Request, on_progress: Progress) -> Counts:
        """Of one statement, which counts there: nothing but counts comes back."""
        # Of an optional extra.
        from rpexplore.data.databases.counting import Tally, statement

        tally = Tally(request)
        with engine_errors(self.connection, name):
            expression = statement(self.coded_records(name, request), request)
        rows = self.pieces(
            lambda: self.backend.to_pyarrow_batches(expression, chunk_size=ROWS_AT_ONCE),
            name,
            on_progress,
        )
        with closing(rows):
            for piece in rows:
                tally.add(piece)
        return tally.counts()

    def coded_records(self, name: str, request: Request) -> Any:
        """An expression of the records as `counting.coded_records` tells."""
        # Of an optional extra.
        from rpexplore.data.databases.counting import coded_records

        table = self.table(name)
        with engine_errors(self.connection, name):
            return coded_records(table, request, self.connection.engine)


def parts_of(name: str) -> tuple[str, str]:
    """Schema ("" for none) and table of a name as people write it; raises `DataError`."""
    parts = name.split(".")
    if len(parts) > 2 or not all(part.strip() for part in parts):
        raise DataError(
            f"The table must be named as table or schema.table, got {name!r}; make a view of a "
            "simpler name if its own holds a full stop."
        )
    return (parts[0], parts[1]) if len(parts) == 2 else ("", parts[0])


def file_state(path: Path) -> tuple[str, ...]:
    """The size and times of a file, which change with it; nothing for one that is not there."""
    try:
        stat = path.stat()
    except FileNotFoundError:
        return ()
    return str(path), str(stat.st_size), str(stat.st_mtime_ns), str(stat.st_ctime_ns)


def quoted(name: str) -> str:
    """A name as SQL has it, letter by letter."""
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def session_of(connection: Connection) -> Iterator[Session]:
    """A session that reads only; closed whatever happens.

    Raises `MissingExtraError` if a package is missing, `DataError` if the engine cannot be reached.
    """
    engine = ENGINES[connection.engine]
    for package in engine.needs:
        require(package, engine.extra, f"the connection {connection.name!r}")
    module = import_module(f"rpexplore.data.databases.{engine.extra}_session")
    with module.open_session(connection) as session:
        yield session


_KINDS = {
    "missing": ("TableNotFound", "UndefinedTable"),
    "refused": ("InsufficientPrivilege",),
    "stopped": ("QueryCanceled", "InterruptException"),
    "lost": ("OperationalError", "InterfaceError", "ConnectionException", "IOException", "OSError"),
}
"""What went wrong in an engine, by the names of its errors."""

_WORDS = {
    "login": (
        "authentication failed",
        "no password supplied",
        'FATAL:  role "',
        "not permitted to log in",
        "pg_hba.conf",
    ),
    "database": ('FATAL:  database "',),
    "address": ("failed to resolve host", "invalid port", "could not translate host name"),
    "away": ("Connection refused", "No such file or directory\n\tIs the server", "timeout expired"),
    "full": ("too many connections", "too many clients", "remaining connection slots"),
    "locked": ("Could not set lock on file",),
    "forbidden": ("Permission denied",),
    "bare": ("ModuleNotFoundError: No module named",),
    "damaged": (
        "not a valid DuckDB",
        "Corrupt database",
        "Could not read enough bytes",
        "file is not a database",
    ),
    "untyped": ("Type mismatch in column",),
    "missing": ("no such table", 'ERROR:  relation "'),
}
"""The same, by what they say in English: libpq and DuckDB have one error for all of these."""


@contextmanager
def engine_errors(connection: Connection, table: str = "") -> Iterator[None]:
    """Tell what goes wrong in an engine as a `DataError`, in words that a remedy follows from."""
    try:
        yield
    except RpexploreError:
        raise
    # Engines and their drivers raise what they like; what the caller raises passes through.
    except Exception as error:
        if not error_kind(error):
            raise
        # The engine's first error in the chain, or better one with a known remedy: closing after
        # an error may fail as well, and tells less.
        chain: list[BaseException] = [error]
        while (context := chain[-1].__context__) is not None:
            chain.append(context)
        of_engine = [link for link in reversed(chain) if error_kind(link)]
        root = next((link for link in of_engine if error_kind(link) != "failed"), of_engine[0])
        what = f"the table {table!r}" if table else "the database"
        said = {
            **UNREACHABLE,
            "locked": "another program has the file open to write to it; close it there, and run "
            "again",
            "forbidden": "the file may not be read; ask for the right to read it",
            "damaged": "the file is damaged, or of another kind; correct the path where the "
            "connection is kept, or restore the file",
            "bare": "the Python of the cluster's workers lacks a package; install numpy, pyarrow "
            "and scipy there, or say by PYSPARK_PYTHON which Python has them",
            "missing": f"there is no table {table!r} (or, of a view, none that it reads), or the "
            "connection may not see it; check the name, letter by letter, and its schema",
            "refused": f"the connection may not read {what}; ask for the right to select from it",
            "lost": "the connection was lost or could not be made; see that the engine runs and "
            "can be reached, and run again",
            "untyped": "a column is empty in all records that come first, so that nobody can tell "
            "its type; count a view that has them in another order",
            "stopped": "the engine stopped the counting; run again, with more time if it has a "
            "limit",
            "failed": f"the engine could not work on {what}; see what it says, and correct the "
            "table or the connection",
        }[error_kind(root)]
        raise DataError(
            f"At the connection {connection.name!r} {said}.",
            private=f"The engine says: {connection.without_secrets(str(root)).strip()}",
        ) from None


def error_kind(error: BaseException) -> str:
    """The kind of an engine's error, in a word; "" for any other error."""
    bases = type(error).__mro__
    if "TABLE_OR_VIEW_NOT" in str(error):
        return "missing"
    names = {base.__name__ for base in bases}
    known = next((kind for kind, errors in _KINDS.items() if not names.isdisjoint(errors)), "")
    packages = {base.__module__.partition(".")[0] for base in bases}
    is_of_engine = any(packages & {*engine.needs, *engine.others} for engine in ENGINES.values())
    kind = known or ("failed" if is_of_engine else "")
    if kind not in ("lost", "failed"):
        return kind
    said = (kind for kind, words in _WORDS.items() if any(word in str(error) for word in words))
    return next(said, kind)
