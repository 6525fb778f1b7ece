"""Sessions on a DuckDB file, which is attached for reading only."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from rpexplore.data.databases.connections import Connection
from rpexplore.data.databases.session import ROWS_AT_ONCE, Session, engine_errors, parts_of
from rpexplore.errors import DataError

_ATTACHED = "rpexplore_records"
_SCHEMAS = (
    "SELECT schema_name FROM information_schema.schemata WHERE catalog_name = current_database()"
)


class DuckDBSession(Session):
    """A session on a file that this process reads."""

    def table(self, name: str) -> Any:
        schema, _ = parts_of(name)
        if schema:
            # DuckDB would take the name of its file for that of the schema.
            with engine_errors(self.connection, name):
                there = self.backend.con.execute(_SCHEMAS).fetchall()
            if schema.lower() not in (known.lower() for (known,) in there):
                raise DataError(
                    f"At the connection {self.connection.name!r} there is no table {name!r}: "
                    f"the file has no schema {schema!r}; write TABLE or SCHEMA.TABLE."
                )
        return super().table(name)

    def _rows(self, statement: Any) -> Iterable[pa.RecordBatch]:
        # Ibis calls what DuckDB has no longer.
        text = self.backend.compile(statement)
        reader = self.backend.con.sql(text).to_arrow_reader(ROWS_AT_ONCE)
        return reader.cast(statement.schema().to_pyarrow())  # sums are of 128 bits there


@contextmanager
def open_session(connection: Connection) -> Iterator[Session]:
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
        yield DuckDBSession(connection, backend, address, "main", backend.con.interrupt)
    finally:
        backend.disconnect()
