"""Sessions on a DuckDB file, which is attached for reading only."""

import glob
import hashlib
import json
import os
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from rpexplore.common.files import listed_path
from rpexplore.common.processes import Progress
from rpexplore.data.engines.connections import Connection
from rpexplore.data.engines.session import (
    ROWS_AT_ONCE,
    Provenance,
    Request,
    Session,
    SQLSession,
    engine_errors,
    file_state,
    folded,
    mentions,
    parts_of,
    quoted,
)
from rpexplore.data.engines.source import coded, count_streamed, with_plain_types
from rpexplore.data.source import UNCLEAR, Counts, PersonRule
from rpexplore.errors import DataError

_ATTACHED = "rpexplore_records"
_DAY = 24 * 3600  # seconds
# DuckDB's own functions come first: a file may hold macros of the same names, which would be taken
# for them in its catalog.
_OWN_NAMES = f"SET search_path = 'system.main,{_ATTACHED}.main'"
_SCHEMAS = f"""
SELECT schema_name FROM information_schema.schemata WHERE catalog_name = '{_ATTACHED}'
"""
_DEFINITIONS = f"""
SELECT view_name, sql FROM duckdb_views() WHERE database_name = '{_ATTACHED}' AND NOT internal
UNION ALL
SELECT function_name, macro_definition FROM duckdb_functions()
WHERE database_name = '{_ATTACHED}' AND NOT internal
"""
_COLLATIONS = f"""
SELECT 1 FROM (SELECT database_name, sql FROM duckdb_tables()
UNION ALL SELECT database_name, sql FROM duckdb_views()
UNION ALL SELECT database_name, macro_definition FROM duckdb_functions()) AS definitions
WHERE database_name = '{_ATTACHED}' AND sql ILIKE '%collate%'
"""
"""Rows where something in the file may have a collation: DuckDB does not say which columns do."""
_READ_NOTHING = {"RANGE", "GENERATE_SERIES", "REPEAT", "REPEAT_ROW", "UNNEST"}
_READ_FILES = ("READ_CSV", "READ_JSON", "READ_NDJSON", "READ_PARQUET", "READ_TEXT", "READ_BLOB")
_READ_FILES += ("PARQUET_",)
"""Functions that look for their files when they are planned, by how they begin."""
_NAME_PART = re.compile(r'"(?:[^"]|"")*"|[^."]+')
_QUOTED = re.compile(r"'((?:[^']|'')*)'" r'|"((?:[^"]|"")*)"')


class DuckDBSession(SQLSession):
    """A session on a file that this process reads."""

    def table(self, name: str) -> Any:
        schema, table = parts_of(name)
        if schema:
            # DuckDB would take the name of its file for that of the schema.
            with engine_errors(self.connection, name):
                there = self.backend.con.execute(_SCHEMAS).fetchall()
            if folded(schema) not in (folded(known) for (known,) in there):
                raise DataError(
                    f"At the connection {self.connection.name!r} there is no table {name!r}: "
                    f"the file has no schema {schema!r}; write TABLE or SCHEMA.TABLE."
                )
        with engine_errors(self.connection, name):
            return self.backend.table(table, database=(_ATTACHED, schema or self.schema))

    def provenance(self, name: str) -> Provenance:
        """From the plan for reading all of it, and from the files that definitions of views name.

        Files whose names a definition does not spell are not seen, which is noticed by planning
        again where no other files than those may be read.
        """
        own = super().provenance(name)
        schema, table = parts_of(name)
        qualified = ".".join(map(quoted, (_ATTACHED, schema or self.schema, table)))
        with engine_errors(self.connection, name), self.backend.con.cursor() as cursor:
            cursor.execute(_OWN_NAMES)  # a cursor has a path of its own
            cursor.execute("PRAGMA disable_optimizer")  # it leaves out what adds no row
            rows = cursor.execute(f"EXPLAIN (FORMAT JSON) FROM {qualified}").fetchall()
            definitions = cursor.execute(_DEFINITIONS).fetchall()
        scans = list(_scans(json.loads(rows[0][1])))
        tables = [_table_of(scan["Table"]) for scan in scans if "Table" in scan]
        functions = [scan["Function"] for scan in scans if "Function" in scan]
        found: dict[str, list[Path]] = {}
        for pattern in _quoted_texts(table, definitions) if functions else []:
            if paths := self._files(pattern):
                found[pattern] = paths
        files = {path.resolve() for paths in found.values() for path in paths}
        reads_others = functions and self._reads_others(qualified, name, [*found, *map(str, files)])
        for pattern, paths in found.items():
            if glob.has_magic(pattern):
                _refuse_copies(name, paths)
                files.add(Path(re.split(r"[*?\[]", pattern, maxsplit=1)[0] + "x").resolve().parent)
        # What looks for its file once it runs is refused nothing when it is planned.
        unseen = [one for one in functions if reads_others or not one.startswith(_READ_FILES)]
        database = Path(self.connection.location)
        # What is not yet in the file of a database itself lies beside it.
        seen = [database, Path(f"{database}.wal"), *sorted(files)]
        return replace(
            own,
            tables=tuple(dict.fromkeys([*own.tables, *sorted(tables)])),
            files=tuple(sorted(files)),
            unseen=tuple(dict.fromkeys(unseen)),
            state=tuple(state for path in seen for state in file_state(path)),
        )

    def _files(self, pattern: str) -> list[Path]:
        """The files that DuckDB takes a text for, hidden ones as well; none for most texts."""
        import duckdb

        if "://" in pattern and not pattern.startswith("file:"):
            return []  # nobody elsewhere is asked for what may be no name of a file
        # What it says of texts that are no patterns is its own affair.
        with suppress(duckdb.Error, ValueError), self.backend.con.cursor() as cursor:
            rows = cursor.execute("SELECT file FROM glob(?)", [pattern]).fetchall()
            return [path for (file,) in rows if (path := Path(file)).is_file()]
        return []

    def _reads_others(self, qualified: str, name: str, allowed: Sequence[str]) -> bool:
        """Whether the plan for reading a table looks for a file that is not among these."""
        import duckdb

        with engine_errors(self.connection, name), duckdb.connect() as alone:
            _attach(alone, self.connection.location)
            alone.execute("SET allowed_paths = $1", [list(allowed)])
            alone.execute("SET enable_external_access = false")
            try:
                alone.execute(f"EXPLAIN FROM {qualified}")
            except duckdb.PermissionException:
                return True
        return False

    def count(self, name: str, request: Request, on_progress: Progress) -> Counts:
        """Of coded records, and amounts as they are, which stream into the counter of files.

        DuckDB is in this process, and so are the records: counting them here tells nobody more, and
        takes a twentieth of the time of its own grouping.
        """
        from rpexplore.data.engines.counting import streamed

        if request.rule is not None:
            self._refuse_equal_ids(name, request.rule)
        with engine_errors(self.connection, name):
            text = self.backend.compile(streamed(self.coded_records(name, request), request))
        rows = self.pieces(
            lambda: self.backend.con.sql(text).to_arrow_reader(ROWS_AT_ONCE), name, on_progress
        )
        with closing(rows):
            records: Iterator[pa.RecordBatch] = rows
            if request.ranges:
                records = coded(map(with_plain_types, rows), request)
            return count_streamed(records, request, on_progress)

    def _refuse_equal_ids(self, name: str, rule: PersonRule) -> None:
        """Raise `DataError` for two ids that a collation of the file takes for one.

        Of all records, also where some are in no universe.
        """
        column = self.table(name)[rule.column]
        if not column.type().is_string():
            return
        with engine_errors(self.connection, name), self.backend.con.cursor() as cursor:
            cursor.execute(_OWN_NAMES)  # a cursor has a path of its own
            if not cursor.execute(_COLLATIONS).fetchall():
                return
            schema, table = parts_of(name)
            records = ".".join(map(quoted, (_ATTACHED, schema or self.schema, table)))
            forms = f"count(DISTINCT encode({quoted(rule.column)}))"
            found = f"FROM {records} GROUP BY {quoted(rule.column)} HAVING {forms} > 1 LIMIT 1"
            if cursor.execute(f"SELECT 1 {found}").fetchall():
                raise rule.error(UNCLEAR)


@contextmanager
def open_session(connection: Connection) -> Iterator[Session]:
    import ibis

    path = Path(connection.location)
    if not path.is_file():
        what = "that is a folder or a device" if path.exists() else "that is not there"
        raise DataError(
            f"The connection {connection.name!r} names a DuckDB file {what}; correct the path "
            "where it is kept."
        )
    with _folder_beside(path.resolve()) as beside:
        with engine_errors(connection):
            # Under a name of ours: the file's own may be that of a schema in it.
            backend = ibis.duckdb.connect()
            backend.con.execute("SET enable_progress_bar = false")  # Ibis shows one
            backend.con.execute(f"SET temp_directory = {_text(beside)}")
            _attach(backend.con, str(path))
        try:
            address = f"duckdb:{listed_path(path)}"
            yield DuckDBSession(connection, backend, address, "main", backend.con.interrupt)
        finally:
            backend.disconnect()


def _attach(database: Any, path: str) -> None:
    """Attach a file to a database in memory."""
    # Of other kinds of files, it would fetch what reads them from the internet.
    database.execute("SET autoinstall_known_extensions = false")
    database.execute(f"ATTACH {_text(path)} AS {_ATTACHED} (READ_ONLY, TYPE duckdb)")
    database.execute(_OWN_NAMES)


@contextmanager
def _folder_beside(path: Path) -> Iterator[str]:
    """A folder for records that exceed memory, which nobody else can open; "" where none can be.

    Beside the file, and not in the folder that one works in, where DuckDB would make its own. What
    a process that was killed has left of them goes after a day, if it is empty. That of one that
    runs is locked.
    """
    if not os.access(path.parent, os.W_OK):
        yield ""
        return
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        with suppress(OSError, ImportError):
            # A new one may not be locked yet.
            if time.time() - left.stat().st_mtime > _DAY:
                with _locked(left):
                    left.rmdir()
    named = {"prefix": f".{path.name}.", "suffix": ".tmp", "dir": path.parent}
    with TemporaryDirectory(**named, ignore_cleanup_errors=True) as folder, ExitStack() as held:
        with suppress(OSError, ImportError):  # where no folder can be locked, none is cleared away
            held.enter_context(_locked(Path(folder)))
        yield folder


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep a folder locked; `OSError` if another session does, or `ImportError` on Windows."""
    import fcntl

    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(lock)


def _scans(operators: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Everything that a query plan reads: tables, and functions that read elsewhere."""
    for operator in operators:
        info = operator["extra_info"]
        if "Table" in info or info.get("Function", "RANGE") not in _READ_NOTHING:
            yield info
        yield from _scans(operator["children"])


def _table_of(scanned: str) -> str:
    """schema.table of what a plan calls catalog.schema.table, with quotation marks where needed."""
    parts = [
        part[1:-1].replace('""', '"') if part.startswith('"') else part
        for part in _NAME_PART.findall(scanned)
    ]
    return folded(".".join(parts[1:]))


def _quoted_texts(view: str, definitions: Sequence[tuple[str, str]]) -> list[str]:
    """What is quoted in a view and in all views that it mentions: names of files, among others."""
    # Macros of one name, and views of one name in several schemas, are all meant.
    reached: list[tuple[str, str]] = []
    texts = [view]
    while more := [
        definition
        for definition in definitions
        if definition not in reached and any(mentions(text, definition[0]) for text in texts)
    ]:
        reached += more
        texts = [text for _, text in more]
    texts = [
        single.replace("''", "'") or double.replace('""', '"')
        for _, text in reached
        for single, double in _QUOTED.findall(text)
    ]
    return list(dict.fromkeys(texts))


def _refuse_copies(view: str, paths: Iterable[Path]) -> None:
    """Raise `DataError` where a pattern finds one file twice: a link to it, or the same bytes.

    As of a folder of records: files below folders of different keys are other records, and those
    that hold none may be alike.
    """
    alike: defaultdict[object, list[Path]] = defaultdict(list)
    for found in paths:
        keys = tuple(part for part in found.parent.parts if "=" in part)
        alike[keys, found.stat().st_size].append(found)
    for files in alike.values():
        first: dict[object, Path] = {}
        for path in files if len(files) > 1 else []:
            with path.open("rb") as content:
                digest = hashlib.file_digest(content, "sha256").digest()
            other = first.setdefault(digest, path)
            if other is not path and _has_records(path):
                raise DataError(
                    f"The view {view!r} seems to read the same records twice, in {str(other)!r} "
                    f"and {str(path)!r}; move one of them elsewhere, or name the files in the view."
                )


def _has_records(path: Path) -> bool:
    """Whether there are any in a file that DuckDB reads; of other than Parquet, a second line."""
    with path.open("rb") as content:
        if content.read(4) == b"PAR1":
            return pyarrow.parquet.read_metadata(path).num_rows > 0
        content.seek(0)
        return content.readline() != b"" and content.readline() != b""


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
