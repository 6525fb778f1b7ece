"""A session with an engine: opened to read only, its statements stopped when nobody waits for them.

What an engine says may hold hosts, users or values. It stands in the `private` part of errors, and
there without the connection's password.
"""

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa

from rpexplore.data.databases.connections import Connection
from rpexplore.data.source import CountProgress
from rpexplore.errors import DataError, RpexploreError

_PATIENCE = 0.2  # seconds between two looks whether somebody still waits
# A server has 20 seconds to answer; one that is gone is noticed within a minute or so.
_DEFAULTS = {
    "application_name": "rpexplore",
    "connect_timeout": 20,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}
_IDENTIFIER = "SELECT system_identifier FROM pg_control_system()"
_ATTACHED = "rpexplore_records"
_SCHEMAS = (
    "SELECT schema_name FROM information_schema.schemata WHERE catalog_name = current_database()"
)
_PIECE = 100_000  # rows of counts that are fetched at a time

_MODULES = {
    "duckdb": ("duckdb", "duckdb"),
    "postgresql": ("psycopg", "postgres"),
    "spark": ("pyspark", "spark"),
}
_LOCAL = ("", "localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Session:
    """An open session.

    backend   of Ibis
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

    def table(self, name: str) -> Any:
        """A table of the engine, schema.table or table; raises `DataError` if it is not there."""
        schema, table = parts_of(name)
        with engine_errors(self.connection, name):
            if schema and self.connection.engine == "duckdb":
                # DuckDB would take the name of its file for that of the schema.
                there = self.backend.con.execute(_SCHEMAS).fetchall()
                if schema.lower() not in (each.lower() for (each,) in there):
                    raise DataError(
                        f"At the connection {self.connection.name!r} there is no table {name!r}: "
                        f"the file has no schema {schema!r}; write TABLE or SCHEMA.TABLE."
                    )
            return self.backend.table(table, database=schema or None)

    def extent(self, name: str) -> str:
        """What tells, in PostgreSQL, that a table was filled or made anew; "" for other engines."""
        if self.connection.engine != "postgresql":
            return ""
        parts = [part for part in parts_of(name) if part]
        quoted = ".".join('"' + part.replace('"', '""') + '"' for part in parts)
        with engine_errors(self.connection, name):
            found = self.backend.con.execute(
                "SELECT pg_relation_filenode(oid), pg_relation_size(oid) "
                "FROM (SELECT to_regclass(%s) AS oid) AS named",
                (quoted,),
            )
            return str(found.fetchone())

    def place(self, name: str) -> str:
        """The address of a table, with its schema."""
        schema, table = parts_of(name)
        place = f"{schema or self.schema}.{table}"
        if self.connection.engine != "postgresql":  # they take capitals for small letters
            place = place.lower()
        return f"{self.address}/{place}"

    @contextmanager
    def held(self, records: Any) -> Iterator[Any]:
        """The same records, worked out once by an engine that would do it anew for every table."""
        if self.connection.engine != "spark":
            yield records
            return
        cached = records.cache()
        try:
            yield cached
        finally:
            with suppress(Exception):  # the session may be gone
                cached.release()

    def pieces(
        self, statement: Any, name: str, on_progress: CountProgress
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a statement, piece by piece, of at most 100,000 rows where the engine can.

        It runs beside, so that `on_progress` can stop it by raising whatever it wants; Ctrl-C does.
        """
        arrived: queue.Queue = queue.Queue(maxsize=2)
        left = threading.Event()
        worker = threading.Thread(
            target=self._fetch, args=(statement, arrived, left), name="counting", daemon=True
        )
        with engine_errors(self.connection, name):
            worker.start()
            try:
                while True:
                    try:
                        piece = arrived.get(timeout=_PATIENCE)
                    except queue.Empty:
                        on_progress(0.0)
                        continue
                    if piece is None:
                        break
                    if isinstance(piece, BaseException):
                        raise piece
                    yield piece
            finally:
                left.set()
                worker.join(_PATIENCE)
                while worker.is_alive():
                    with suppress(Exception):
                        self.cancel()
                    worker.join(_PATIENCE)

    def _fetch(self, statement: Any, arrived: queue.Queue, left: threading.Event) -> None:
        def hand_over(item: object) -> None:
            while not left.is_set():
                with suppress(queue.Full):
                    arrived.put(item, timeout=_PATIENCE)
                    return

        try:
            self.begin()
            for piece in self._rows(statement):
                hand_over(piece)
                if left.is_set():
                    return
            hand_over(None)
        except BaseException as error:  # told where somebody waits for it
            hand_over(error)

    def _rows(self, statement: Any) -> Iterable[pa.RecordBatch]:
        if self.connection.engine == "duckdb":  # Ibis calls what DuckDB has no longer
            text = self.backend.compile(statement)
            reader = self.backend.con.sql(text).to_arrow_reader(_PIECE)
            return reader.cast(statement.schema().to_pyarrow())  # sums are of 128 bits there
        return self.backend.to_pyarrow_batches(statement, chunk_size=_PIECE)


def parts_of(name: str) -> tuple[str, str]:
    """Schema ("" for none) and table of a name as people write it; raises `DataError`."""
    parts = name.split(".")
    if len(parts) > 2 or not all(part.strip() for part in parts):
        raise DataError(
            f"The table must be named as table or schema.table, got {name!r}; make a view of a "
            "simpler name if its own holds a full stop."
        )
    return (parts[0], parts[1]) if len(parts) == 2 else ("", parts[0])


@contextmanager
def opened(connection: Connection) -> Iterator[Session]:
    """A session that reads only; closed whatever happens.

    Raises `DataError` if a package is missing or the engine cannot be reached.
    """
    module, extra = _MODULES[connection.engine]
    for needed in ("ibis", module):
        if find_spec(needed) is None:
            raise DataError(
                f"The connection {connection.name!r} needs the package {needed!r}; install it: "
                f"pip install 'rpexplore[{extra}]'"
            )
    opening = {"duckdb": _duckdb, "postgresql": _postgres, "spark": _spark}[connection.engine]
    with opening(connection) as session:
        yield session


@contextmanager
def engine_errors(connection: Connection, table: str = "") -> Iterator[None]:
    """Tell what goes wrong in an engine as a `DataError`, in words that a remedy follows from."""
    try:
        yield
    except RpexploreError:
        raise
    # Engines and their drivers raise what they like; what the caller raises passes through.
    except Exception as error:
        if not _kind(error):
            raise
        error = _first(error)
        kind = _kind(error)
        what = f"the table {table!r}" if table else "the engine"
        said = {
            "missing": f"there is no table {table!r}, or the connection may not see it; check the "
            "name, letter by letter, and its schema",
            "refused": f"the connection may not read {what}; ask for the right to select from it",
            "lost": "the connection was lost or could not be made; see that the engine runs and "
            "can be reached, and run again",
            "stopped": "the engine stopped the counting; run again, with more time if it has a "
            "limit",
            "failed": f"the engine could not work on {what}; see what it says, and correct the "
            "table or the connection",
        }[kind]
        raise DataError(
            f"At the connection {connection.name!r} {said}.",
            private=f"The engine says: {connection.without_secrets(str(error)).strip()}",
        ) from None


def _first(error: BaseException) -> BaseException:
    """The first error of an engine that this one came of, best one whose remedy is known.

    Closing after an error may fail as well, and tells less.
    """
    chain = [error]
    while (context := chain[-1].__context__) is not None:
        chain.append(context)
    told = [each for each in reversed(chain) if _kind(each)]
    return next((each for each in told if _kind(each) != "failed"), told[0])


def _kind(error: BaseException) -> str:
    """What went wrong, in a word; "" for what is no error of an engine."""
    names = {base.__name__ for base in type(error).__mro__}
    package = {base.__module__.partition(".")[0] for base in type(error).__mro__}
    text = str(error)
    if "TableNotFound" in names or "UndefinedTable" in names or "TABLE_OR_VIEW_NOT" in text:
        return "missing"
    if "InsufficientPrivilege" in names:
        return "refused"
    if names & {"QueryCanceled", "InterruptException"}:
        return "stopped"
    if names & {"OperationalError", "InterfaceError", "ConnectionException", "IOException"}:
        return "lost"
    if package & {"psycopg", "duckdb", "_duckdb", "pyspark", "py4j", "ibis"}:
        return "failed"
    return "lost" if isinstance(error, OSError) else ""


@contextmanager
def _duckdb(connection: Connection) -> Iterator[Session]:
    import ibis

    path = Path(connection.location)
    if not path.is_file():
        raise DataError(
            f"The connection {connection.name!r} names a DuckDB file that is not there; correct "
            "the path where it is kept."
        )
    with engine_errors(connection):
        # Under a name of ours: the file's own may be that of a schema in it.
        backend = ibis.duckdb.connect()
        quoted = str(path).replace("'", "''")
        backend.con.execute(f"ATTACH '{quoted}' AS {_ATTACHED} (READ_ONLY)")
        backend.con.execute(f"USE {_ATTACHED}")
    try:
        address = f"duckdb:{path.resolve()}"
        yield Session(connection, backend, address, "main", backend.con.interrupt)
    finally:
        backend.disconnect()


@contextmanager
def _postgres(connection: Connection) -> Iterator[Session]:
    """One transaction that reads only and sees one state of the records."""
    import ibis
    import psycopg
    import psycopg.conninfo

    try:
        given: dict[str, Any] = dict(psycopg.conninfo.conninfo_to_dict(connection.url))
    except psycopg.Error:
        # Its text quotes the address.
        raise DataError(
            f"The connection {connection.name!r} is not an address that PostgreSQL takes; write "
            "postgresql://user:password@host:5432/database, with special signs as %40 and so on."
        ) from None
    given = _DEFAULTS | given
    with engine_errors(connection):
        server = psycopg.connect(**given, autocommit=True)
    try:
        with engine_errors(connection):
            # Compiling hundreds of groupings takes longer than running them.
            server.execute("SET jit = off")
            server.execute("SET work_mem = '64MB'")
            server.execute("SET client_encoding = 'UTF8'")
            with suppress(psycopg.Error):  # older servers do not look whether somebody still waits
                server.execute("SET client_connection_check_interval = '10s'")
            known = None
            with suppress(psycopg.Error):  # whoever may not ask knows the server by its address
                known = server.execute(_IDENTIFIER).fetchone()
            encoding = server.info.parameter_status("server_encoding")
            if encoding != "UTF8":
                raise DataError(
                    f"At the connection {connection.name!r} the database must hold texts as UTF8, "
                    f"got {encoding}; count an export of the records, or a copy in UTF8."
                )
            backend = ibis.postgres.from_connection(server)
            # Closing the connection ends it, whatever happens.
            server.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            schema = backend.current_database
        info = server.info
        host = info.host.lower().rstrip(".")
        host = "localhost" if host in _LOCAL or host.startswith(("/", "@")) else host
        address = f"postgresql://{host}:{info.port}/{info.dbname}"
        if known is not None:  # a server has many addresses, and one number
            address = f"postgresql:{known[0]}/{info.dbname}"

        def cancel() -> None:
            server.cancel_safe(timeout=5)

        yield Session(connection, backend, address, schema, cancel)
    finally:
        server.close()


@contextmanager
def _spark(connection: Connection) -> Iterator[Session]:
    """The Spark session that is there, which goes on, or one that Spark makes and is stopped."""
    import ibis
    from pyspark.sql import SparkSession  # pyright: ignore[reportMissingImports]

    there = SparkSession.getActiveSession()
    with engine_errors(connection):
        spark = there or _new_spark(connection)
        backend = ibis.pyspark.connect(spark)
        schema = spark.catalog.currentDatabase()
    group = f"rpexplore-{uuid4()}"

    def begin() -> None:
        spark.sparkContext.setJobGroup(group, "counting", interruptOnCancel=True)

    def cancel() -> None:
        spark.sparkContext.cancelJobGroup(group)

    try:
        # Not by its master: a cluster has many, and its tables are the same from each.
        yield Session(connection, backend, "spark:", schema, cancel, begin)
    finally:
        if there is None:
            spark.stop()


def _new_spark(connection: Connection) -> Any:
    from pyspark.sql import SparkSession  # pyright: ignore[reportMissingImports]

    builder = SparkSession.builder.appName("rpexplore")
    if host := connection.location.partition("?")[0]:
        builder = builder.master(f"spark://{host}")
    for key, value in connection.options().items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
