"""Sessions by ADBC: drivers hand records over as Arrow, to be coded and counted here.

What a value means is then what it means in a file, whatever the engine. One statement reads the
columns that are counted, and nothing else.
"""

import json
import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from rpexplore.common.files import listed_path
from rpexplore.common.processes import Progress
from rpexplore.data.coding import Coder, kind_of
from rpexplore.data.engines.connections import Connection
from rpexplore.data.engines.postgres_servers import (
    STARTUP_OPTIONS,
    TEXTS,
    address_of,
    catalogue_of,
    located,
    refuse_equal_ids,
)
from rpexplore.data.engines.session import (
    ROWS_AT_ONCE,
    Provenance,
    Request,
    Session,
    engine_errors,
    file_state,
    folded,
    mentions,
    parts_of,
    quoted,
)
from rpexplore.data.engines.source import (
    coded,
    count_streamed,
    nothing_quoted,
    plain_type,
    with_plain_types,
)
from rpexplore.data.persons import kept_records
from rpexplore.data.source import Counts, PersonRule
from rpexplore.errors import DataError

_DRIVERS = {"postgresql": "postgresql", "grpc": "flightsql", "grpc+tls": "flightsql"}
"""The driver for an address behind adbc+, if it is not named like its scheme."""
_PERSON = "person"
_UNIVERSE = "u"  # and the place of a column of the universe
_KINDS = (
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_date,
    pa.types.is_timestamp,
    pa.types.is_string,
    pa.types.is_dictionary,
)
_DEFINITIONS = """
SELECT name, type, sql FROM sqlite_schema WHERE type IN ('table', 'view')
"""
_OPTIONS = re.compile(r"[?&]options=[^&]*")
_BATCH_ROWS = "adbc.sqlite.query.batch_rows"


class ADBCSession(Session):
    """A session by an ADBC driver. `backend` is its connection."""

    def provenance(self, name: str) -> Provenance:
        schema, table = parts_of(name)
        named = f"{schema or self.schema}.{table}"
        return Provenance(self.address, (named,), unseen=("what its server keeps",))

    def columns(self, name: str) -> list[tuple[str, str]]:
        with engine_errors(self.connection, name):
            nothing = self._read(f"SELECT * FROM {self._table(name)} WHERE 1 = 0")
            return [(field.name, str(field.type)) for field in nothing.schema]

    def count(self, name: str, request: Request, on_progress: Progress) -> Counts:
        """Of records that come as they are. Of persons, more than they may have are refused."""
        rule, names = request.rule, request.domain.names
        if rule is not None and rule.excess == "keep first":
            raise DataError(
                f"At the connection {self.connection.name!r} no record of a person can be left "
                "out; make a view that holds what is counted of each, or count an export."
            )
        columns = {f"v{index}": names[index] for index in request.attribute_indices}
        columns |= request.area_columns
        universe = request.universe
        if rule is not None:
            columns[_PERSON] = rule.column
        if universe is not None:
            columns |= {f"{_UNIVERSE}{i}": name for i, name in enumerate(universe.columns)}
        with engine_errors(self.connection, name):
            self._check(name, list(columns.values()))
            if rule is not None:
                self._check_persons(name, rule)
            table = self._table(name)
        written = self._expressions(name, columns.values())
        listed = ", ".join(f"{written[of]} AS {alias}" for alias, of in columns.items())
        statement = f"SELECT {listed or '1 AS any_value'} FROM {table}"
        persons: list[tuple[pa.RecordBatch, float]] = []

        def batches() -> Generator[pa.RecordBatch, None, None]:
            with self.backend.cursor() as cursor:
                self._prepare(cursor)
                cursor.execute(statement)
                with cursor.fetch_record_batch() as reader:
                    for batch in reader:
                        yield within(with_plain_types(batch))

        of_universe = [] if universe is None else list(map(Coder, universe.domain))

        def within(batch: pa.RecordBatch) -> pa.RecordBatch:
            if universe is None:
                return batch
            columns = [batch.column(f"{_UNIVERSE}{i}") for i in range(len(of_universe))]
            universe.check_kinds(dict(zip(universe.columns, map(kind_of, columns), strict=True)))
            with nothing_quoted():
                codes = [
                    coder.signed_codes(column)
                    for coder, column in zip(of_universe, columns, strict=True)
                ]
            return batch.filter(pa.array(universe.holds(codes)))

        def without_persons(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in rows:
                if rule is not None:
                    column = batch.column(_PERSON)
                    persons.append((pa.record_batch({rule.column: column}), 0.0))
                yield batch

        with closing(self.pieces(batches, name, on_progress)) as rows:
            of_all = replace(request, rule=None)
            records = coded(without_persons(rows), of_all)
            counts = count_streamed(records, of_all, on_progress)
        if rule is not None:
            kept_records(persons, rule, on_progress)  # refuses
        return counts

    def count_streamed(self, name: str, request: Request, on_progress: Progress) -> Counts:
        return self.count(name, request, on_progress)

    def _check_persons(self, name: str, rule: PersonRule) -> None:
        """Raise `DataError` for ids of which the engine knows that they leave open who is who."""

    def _prepare(self, cursor: Any) -> None:
        """Settings of the statement that reads records."""

    def _expressions(self, name: str, columns: Iterable[str]) -> dict[str, str]:
        """How a statement reads columns, by their names."""
        return {column: quoted(column) for column in columns}

    def _table(self, name: str) -> str:
        """The name as SQL has it."""
        return ".".join(quoted(part) for part in parts_of(name) if part)

    def _check(self, name: str, columns: Sequence[str]) -> None:
        """Raise `DataError` for a column that cannot be counted."""
        written = self._expressions(name, columns)
        listed = ", ".join(f"{written[of]} AS {quoted(of)}" for of in dict.fromkeys(columns))
        statement = f"SELECT {listed or '1 AS any_value'} FROM {self._table(name)} WHERE 1 = 0"
        schema = self._read(statement).schema
        for column in columns:
            kind = plain_type(schema.field(column).type)
            if not any(is_of(kind) for is_of in _KINDS):
                raise DataError(
                    f"The column {column!r} is of a kind ({kind}) that cannot be counted; make a "
                    "column of text, of numbers or of dates from it, in a view say."
                )

    def _read(self, statement: str) -> pa.Table:
        with self.backend.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetch_record_batch().read_all()


class ServerSession(ADBCSession):
    """A session on a PostgreSQL server, whose tables have the account that they have otherwise."""

    def provenance(self, name: str) -> Provenance:
        with engine_errors(self.connection, name):
            return catalogue_of(self._ask, *self._located(name)).provenance(self.address)

    def _table(self, name: str) -> str:
        return ".".join(quoted(part) for part in self._located(name) if part)

    def _expressions(self, name: str, columns: Iterable[str]) -> dict[str, str]:
        """Texts of other types as texts, as otherwise: the driver fills some up with blanks."""
        texts = json.loads(self._ask(TEXTS, *self._located(name)))
        return {
            column: f"{quoted(column)}::pg_catalog.text" if column in texts else quoted(column)
            for column in columns
        }

    def _check_persons(self, name: str, rule: PersonRule) -> None:
        refuse_equal_ids(self._ask, *self._located(name), rule)

    def _located(self, name: str) -> tuple[str, str]:
        """Where the path is usual, as a role may have another one: in its own schema, or public."""
        return located(self._ask, name, [self._ask("SELECT current_user::text"), "public"])

    def _ask(self, statement: str, *parameters: str) -> str:
        return _asked(self.backend, statement, *parameters)


class SQLiteSession(ADBCSession):
    """A session on a file that this process reads. Its columns have no types, its values have."""

    def provenance(self, name: str) -> Provenance:
        """With all tables and views that are mentioned where a view or virtual table is defined."""

        def is_virtual(row: dict[str, Any]) -> bool:
            return folded(row["sql"]).startswith("create virtual")

        with engine_errors(self.connection, name):
            definitions = self._read(_DEFINITIONS).to_pylist()
        readers = [row for row in definitions if row["type"] == "view" or is_virtual(row)]
        names = dict.fromkeys(folded(row["name"]) for row in definitions)
        reached = [folded(parts_of(name)[1])]
        for reader in reached:  # grows meanwhile
            texts = [row["sql"] for row in readers if folded(row["name"]) == reader]
            reached += [
                other
                for other in names
                if other not in reached and any(mentions(text, other) for text in texts)
            ]
        unseen = [
            f"the virtual table {row['name']}"
            for row in definitions
            if folded(row["name"]) in reached and is_virtual(row)
        ]
        # What is not yet in the file of a database itself lies beside it.
        path = self.connection.location
        return Provenance(
            self.address,
            tuple(f"main.{table}" for table in reached),
            unseen=tuple(unseen),
            state=(*file_state(Path(path)), *file_state(Path(f"{path}-wal"))),
        )

    def _check(self, name: str, columns: Sequence[str]) -> None:
        """Refuse a column whose values are of several types.

        Arrow's columns have one, so that what a value becomes would depend on the others.
        """
        kinds = [f"nullif(typeof({quoted(column)}), 'null')" for column in columns]
        ends = [f"min({kind}), max({kind})" for kind in kinds]
        if not ends:
            return
        found = self._read(f"SELECT {', '.join(ends)} FROM {self._table(name)}")
        ends = [column[0].as_py() for column in found.columns]
        for column, low, high in zip(columns, ends[::2], ends[1::2], strict=True):
            if low != high or low == "blob":
                types = f"type {low}" if low == high else f"types {low} and {high}"
                raise DataError(
                    f"The column {column!r} holds values of the {types}, and can "
                    "have one, text, integer or real; convert them, in a view say (CAST)."
                )

    def _prepare(self, cursor: Any) -> None:
        # The types of columns are those of their first values.
        cursor.adbc_statement.set_options(**{_BATCH_ROWS: str(ROWS_AT_ONCE)})


@contextmanager
def open_session(connection: Connection) -> Iterator[Session]:
    if connection.engine == "sqlite":
        with _sqlite_session(connection) as session:
            yield session
        return
    scheme, _, rest = connection.url.partition("://")
    kind = scheme.lower().removeprefix("adbc+")
    driver = _DRIVERS.get(kind, kind)
    if find_spec(f"adbc_driver_{driver}") is None:
        raise DataError(
            f"The connection {connection.name!r} needs the package 'adbc-driver-{driver}'; install "
            f"it: pip install adbc-driver-{driver}"
        )
    uri = rest if driver == "snowflake" else f"{kind}://{rest}"
    if driver == "postgresql":
        uri = _with_options(uri)
    with _connected(connection, driver, uri) as backend:
        if driver == "postgresql":
            with engine_errors(connection):
                address = address_of(partial(_asked, backend), connection)
            yield ServerSession(connection, backend, address, "", backend.adbc_cancel)
            return
        # Without user and options.
        address = f"{kind}://{rest.rpartition('@')[2].partition('?')[0]}".lower()
        yield ADBCSession(connection, backend, address, "", backend.adbc_cancel)


@contextmanager
def _sqlite_session(connection: Connection) -> Iterator[Session]:
    path = Path(connection.location)
    if not path.is_file():
        raise DataError(
            f"The connection {connection.name!r} names a SQLite file that is not there; correct "
            "the path where it is kept."
        )
    path = path.resolve()
    with _connected(connection, "sqlite", f"file:{quote(str(path))}?mode=ro") as backend:
        address = f"sqlite:{listed_path(path)}"
        yield SQLiteSession(connection, backend, address, "main", backend.adbc_cancel)


@contextmanager
def _connected(connection: Connection, driver: str, uri: str) -> Iterator[Any]:
    with engine_errors(connection):
        backend = import_module(f"adbc_driver_{driver}.dbapi").connect(uri)
    try:
        yield backend
    finally:
        with engine_errors(connection):
            backend.close()


def _with_options(uri: str) -> str:
    """The address of a server at which its own names are meant, and all rows are read.

    The driver asks the server as soon as it is connected, so that a statement would come too late.
    Of several settings of one name the last one holds.
    """
    ours = quote(STARTUP_OPTIONS)
    if _OPTIONS.search(uri):
        return _OPTIONS.sub(rf"\g<0>%20{ours}", uri)
    return f"{uri}{'&' if '?' in uri else '?'}options={ours}"


def _asked(backend: Any, statement: str, *parameters: str) -> str:
    """The one value of a statement with parameters $1 and so on."""
    with backend.cursor() as cursor:
        cursor.execute(statement, parameters or None)
        return cursor.fetchone()[0]
