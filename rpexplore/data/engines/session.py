"""A session with an engine: opened to read only, what is counted in it, and how it is stopped."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from importlib import import_module
from itertools import combinations
from math import prod
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from rpexplore.common.files import laid_beside
from rpexplore.common.installation import require
from rpexplore.common.processes import Progress
from rpexplore.data.amounts import amount_ranges, code_size, refuse_too_many
from rpexplore.data.areas import AreaCoder
from rpexplore.data.coding import Faults, Takers
from rpexplore.data.engines.connections import ENGINES, UNREACHABLE, Connection
from rpexplore.data.source import BEYOND, COUNTING, OF_NOBODY, UNCLEAR, Counts, PersonRule
from rpexplore.domain.amounts import Ranges, amounts_in
from rpexplore.domain.atoms import Atoms
from rpexplore.domain.domain import AttributeIndices, Domain
from rpexplore.domain.universe import Universe
from rpexplore.errors import DataError, RpexploreError, without_causes

# ---- What is counted of a table in an engine, and what is found to be wrong while it is counted.


STATE = "state_of_person"
"""A column of coded records: what their person is for the rule, as `data.source` has it."""
STATES = (OF_NOBODY, UNCLEAR, BEYOND)
"""The states that are refused, in the order in which they are told."""

_MOST_CELLS = 400_000_000  # of all tables; a release counts fewer at a time
_MOST_SUBSETS = 6  # attributes of a table of which all subsets are compared


@dataclass(frozen=True)
class Request:
    """What is counted.

    records        the name of the records, for errors
    tables         ascending attribute indices, none in another
    takers         the categories that take what is unknown or missing; else it is refused
    rule           how many records of a person are counted; None: all
    area_coder     codes the areas that tables are counted by, which stand in these as attributes
                   behind the domain's; None for none
    atoms          groups of cells of the whole domain, which stand in tables as one attribute
                   behind it; None for none, and where there are areas
    universe       which records are counted; None: all
    """

    records: str
    domain: Domain
    tables: tuple[AttributeIndices, ...]
    takers: Takers
    rule: PersonRule | None
    area_coder: AreaCoder | None = None
    atoms: Atoms | None = None
    universe: Universe | None = None

    @cached_property
    def sizes(self) -> list[int]:
        """Of all attributes of the domain, and of the areas behind them."""
        of_areas = [] if self.area_coder is None else self.area_coder.sizes
        of_atoms = [] if self.atoms is None else [len(self.atoms)]
        return self.domain.sizes.tolist() + of_areas + of_atoms

    @cached_property
    def ranges(self) -> Ranges:
        """Of the attributes of amounts that any of the tables has, as `Counts` has them."""
        return amount_ranges(self.domain, self.tables)

    @cached_property
    def code_sizes(self) -> list[int]:
        """How many codes there are of all attributes of the domain: of amounts more than sizes."""
        return list(map(code_size, self.domain))

    @cached_property
    def area_columns(self) -> dict[str, str]:
        """The columns of coded records that hold the codes of areas, as texts: name -> column."""
        names = [] if self.area_coder is None else self.area_coder.names
        return {f"area{number}": name for number, name in enumerate(names)}

    @cached_property
    def attribute_indices(self) -> list[int]:
        """All attributes of the domain that any of the tables has, or atoms, ascending."""
        if self.atoms is not None:
            return list(range(len(self.domain)))
        indices = {index for table in self.tables for index in table}
        return sorted(index for index in indices if index < len(self.domain))

    def refuse_too_many(self) -> None:
        """Raise `DataError` if more counts could come back than there is memory for."""
        n_cells = sum(prod(self.sizes[index] for index in table) for table in self.tables)
        if n_cells > _MOST_CELLS:
            raise DataError(
                f"The tables to count have {n_cells:,} cells in all, and at most {_MOST_CELLS:,} "
                "can be; count fewer or smaller tables."
            )

    @property
    def n_checks(self) -> int:
        """How many numbers `refuse` takes."""
        of_areas = 0 if self.area_coder is None else len(self.area_coder.refusals)
        return 2 * len(self.attribute_indices) + len(STATES) + of_areas

    def refuse(self, checks: Sequence[int], n_records: int) -> None:
        """Raise `DataError` for what is wrong with records, of which there are so many.

        checks: how many are unknown, and missing, in each attribute; then how many have each of
            the STATES; then, of areas, how many have each of the `AreaCoder.refusals`
        """
        first = 2 * len(self.attribute_indices)
        of_states = checks[first : first + len(STATES)]
        of_areas = checks[first + len(STATES) :]
        for state, n_of_state in zip(STATES, of_states, strict=True):
            if self.rule is not None and n_of_state:
                raise self.rule.error(state)
        self.faults(checks).refuse()
        refuse_too_many(self.domain, self.tables, self.ranges, n_records)
        if self.area_coder is not None:
            for refusal, n_refused in zip(self.area_coder.refusals, of_areas, strict=True):
                if n_refused:
                    raise self.area_coder.refusal_error(refusal)

    def faults(self, checks: Sequence[int]) -> Faults:
        """How many values of each attribute are unknown or missing, as `refuse` has them."""
        faults = Faults(self.domain, self.takers)
        for position, index in enumerate(self.attribute_indices):
            faults.add(index, checks[2 * position], checks[2 * position + 1])
        return faults

    def changed_error(self) -> DataError:
        """The error for counts that are not all of the same records."""
        return DataError(
            f"The records {self.records} changed while they were counted, or are not the same "
            "whenever they are read; nothing of these counts is used. Wait until they are "
            "complete, and run again."
        )


def agree(counts: Counts) -> bool:
    """Whether tables have the same total, and the same marginals on what they share."""
    seen: dict[AttributeIndices, bytes] = {}

    def in_steps(attribute_indices: AttributeIndices) -> int:
        """How many times each record counts in a table."""
        return counts.ranges.times(amounts_in(attribute_indices, counts.ranges))

    for table, cells in counts.tables.items():
        if cells.sum(dtype=np.int64) != counts.n_records * in_steps(table):
            return False
        some = range(1, len(table)) if len(table) <= _MOST_SUBSETS else range(1, 2)
        for kept in (kept for size in some for kept in combinations(range(len(table)), size)):
            left = tuple(axis for axis in range(len(table)) if axis not in kept)
            shared = tuple(table[axis] for axis in kept)
            marginal = cells.sum(axis=left, dtype=np.int64)
            if (times := in_steps(table) // in_steps(shared)) > 1:
                marginal //= times
            digest = blake2b(marginal.tobytes(), digest_size=16).digest()
            if seen.setdefault(shared, digest) != digest:
                return False
    return True


# ---- Statements of an engine that run in threads of their own, and are stopped when nobody waits.


_PATIENCE = 0.2  # seconds between two looks whether somebody still waits

Piece = TypeVar("Piece")
MadePiece = TypeVar("MadePiece", covariant=True)


class Closable(Protocol[MadePiece]):
    """Pieces one after the other, as of a generator, or a reader of Arrow."""

    def __iter__(self) -> Iterator[MadePiece]: ...

    def close(self) -> None: ...


def side_by_side(
    rows: Sequence[Callable[[], Generator[Piece, None, None]]],
    cancel: Callable[[], None],
    on_progress: Progress,
) -> Generator[Piece, None, None]:
    """The results of statements, each in a thread of its own, piece by piece in any order.

    An error of one stops the others, as does `on_progress` by raising, and whoever closes this.
    cancel: stops all statements that run
    """
    with ThreadPoolExecutor(len(rows)) as workers:
        started = [fetched() for fetched in rows]
        fetching = {workers.submit(next, pieces, None): pieces for pieces in started}
        try:
            while fetching:
                done = wait(fetching, _PATIENCE, FIRST_COMPLETED).done
                if not done:
                    on_progress(COUNTING, 0.0)
                for fetched in done:
                    pieces = fetching.pop(fetched)
                    if (piece := fetched.result()) is not None:
                        yield piece
                        fetching[workers.submit(next, pieces, None)] = pieces
        finally:
            while not all(fetched.done() for fetched in fetching):
                with suppress(Exception):
                    cancel()
                wait(fetching, _PATIENCE)
            for pieces in started:
                pieces.close()


# ---- A session with an engine: opened to read only, its statements stopped when nobody waits for
# them.
#
# What an engine says may hold hosts, users or values. It stands in the `private` part of errors,
# and there without the connection's password.


ROWS_AT_ONCE = 100_000  # that are fetched


@dataclass(frozen=True)
class Provenance:
    """What the records of a table or a view come from, as far as the engine tells.

    address  of the database, as that of the session
    tables   schema.table: the one that is named, then those that it reads
    ids      what a server knows these by when they are renamed, and then which of them is part of
             which other table
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
        return Provenance(self.address, (folded(f"{schema or self.schema}.{table}"),))

    def pieces(
        self, rows: Callable[[], "Closable[Piece]"], name: str, on_progress: Progress
    ) -> Generator[Piece, None, None]:
        """The engine's result of a statement about a table, piece by piece.

        rows: closed at the end, whatever happens. They run beside, so that `on_progress` can stop
            them by raising whatever it wants; Ctrl-C does.
        """

        def fetched() -> Generator[Piece, None, None]:
            self.begin()
            with closing(rows()) as pieces:
                yield from pieces

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
        from rpexplore.data.engines.counting import Tally, statement

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
        from rpexplore.data.engines.counting import coded_records

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


def folded(name: str) -> str:
    """A name, or a statement, of an engine to which capital and small letters are one.

    SQLite and DuckDB take only A to Z for a to z, Spark takes all letters so. What is one name to
    any of them is one here, and two of their tables that differ by Ä and ä alone have one account.
    """
    return name.lower()


def mentions(statement: str, name: str) -> bool:
    """Whether a name may be part of a statement: as it is, or with its quotation marks doubled."""
    written = (name, *(name.replace(mark, 2 * mark) for mark in "\"`'"))
    return any(folded(form) in folded(statement) for form in written)


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
    if engine.is_file and (laid := laid_beside(Path(connection.location).resolve(), engine.beside)):
        raise DataError(
            f"The connection {connection.name!r} names a file beside which {laid.name!r} was put "
            "by somebody who may not write to that file, and the engine would take records from "
            "it. Remove it, or have whoever looks after the folder do so."
        )
    module = import_module(f"rpexplore.data.engines.{engine.extra}_session")
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
    "hidden": ("row-level security",),
    "untyped": ("Type mismatch in column",),
    "missing": ("no such table", 'ERROR:  relation "'),
}
"""The same, by what they say in English: libpq and DuckDB have one error for all of these."""


@without_causes
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
            "hidden": f"a policy of row level security hides rows of {what} (or, of a view, of one "
            "that it reads) from the connection's role; name a role that sees all of them, or "
            "count a table that holds the rows that are meant",
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
    # The server's own place for it, whatever language it speaks.
    if getattr(getattr(error, "diag", None), "source_function", "") == "check_enable_rls":
        return "hidden"
    if kind not in ("lost", "failed", "refused"):
        return kind
    said = (kind for kind, words in _WORDS.items() if any(word in str(error) for word in words))
    return next(said, kind)
