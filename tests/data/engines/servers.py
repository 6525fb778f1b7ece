"""Real engines for tests: a PostgreSQL server of our own, Spark in this process, DuckDB files."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rpexplore.data.engines.connections import Connection
from rpexplore.data.engines.source import DatabaseSource

# Tests that begin a cluster are nightly, but where the environment asks for them by day.
WITH_SPARK = "RPEXPLORE_TEST_SPARK" in os.environ

SQL_TYPES = {
    pa.string(): "text",
    pa.bool_(): "boolean",
    pa.int64(): "bigint",
    pa.float32(): "real",
    pa.float64(): "double precision",
    pa.date32(): "date",
    pa.timestamp("us"): "timestamp",
    pa.timestamp("us", "UTC"): "timestamptz",
    pa.decimal128(10, 2): "numeric(10, 2)",
    pa.decimal128(38, 9): "numeric",
}


def missing(what: str, remedy: str) -> None:
    """Skip where an engine is not there, or fail where engines are required."""
    message = f"no {what} found; {remedy}"
    if os.environ.get("RPEXPLORE_REQUIRE_ENGINES") == "1":
        pytest.fail(message)
    # A newcomer's machine need not have it; where RPEXPLORE_REQUIRE_ENGINES is set, this fails.
    pytest.skip(message)


@dataclass(frozen=True)
class Server:
    """A PostgreSQL server that listens at a socket in its folder alone."""

    folder: Path
    port: int
    programs: Path
    options: str = ""
    database: str = "postgres"

    @property
    def url(self) -> str:
        return f"postgresql://keeper@/{self.database}?host={self.folder}&port={self.port}"

    @property
    def connection(self) -> Connection:
        return Connection("SERVER", self.url)

    def run(self, *statements: str) -> list:
        """The rows of the last of these statements, run as the server's keeper."""
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as server:
            for statement in statements:
                cursor = server.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def source(self, table: pa.Table, name: str) -> DatabaseSource:
        """This table, stored on the server."""
        import psycopg

        columns = ", ".join(f'"{each.name}" {SQL_TYPES[each.type]}' for each in table.schema)
        self.run(f'DROP TABLE IF EXISTS "{name}" CASCADE', f'CREATE TABLE "{name}" ({columns})')
        with (
            psycopg.connect(self.url) as server,
            server.cursor().copy(f'COPY "{name}" FROM STDIN') as copy,
        ):
            for row in table.to_pylist():
                copy.write_row(list(row.values()))
        return DatabaseSource(self.connection, name)

    def start(self) -> None:
        data = self.folder / "data"
        control(self.programs, "pg_ctl", "-D", data, "-w", "-o", self.options, "start")

    def stop(self) -> None:
        """As a failure of the machine does: nothing is tidied up."""
        control(self.programs, "pg_ctl", "-D", self.folder / "data", "-m", "immediate", "stop")


def control(programs: Path, *command: object) -> None:
    """Run a program of the server's, as whom it agrees to run."""
    given = [str(part) for part in (programs / str(command[0]), *command[1:])]
    user = {"user": "postgres"} if os.geteuid() == 0 else {}
    # pg_ctl's server keeps the output open, so that nobody may wait for its end.
    with tempfile.TemporaryFile("w+") as output:
        done = subprocess.run(given, cwd="/", stdout=output, stderr=output, check=False, **user)
        output.seek(0)
        assert done.returncode == 0, output.read()


@contextmanager
def running_postgres() -> Iterator[Server]:
    initdb = shutil.which("initdb") or max(
        map(str, Path("/usr/lib/postgresql").glob("*/bin/initdb")), default=None
    )
    if initdb is None:
        missing("PostgreSQL server", "on Debian: apt-get install postgresql")
        return
    # Not pytest's folder: the server runs as another user where the tests run as root.
    folder = Path(tempfile.mkdtemp(prefix="rpexplore-"))
    # Commits are answered before they are on disk, but for those of who insists on it.
    options = (
        f"-c listen_addresses='' -c unix_socket_directories='{folder}' -c synchronous_commit=off"
    )
    server = Server(folder, 5432, Path(initdb).parent, options)
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres")
        data = folder / "data"
        control(
            server.programs, "initdb", "-D", data, "-U", "keeper", "-A", "trust", "-E", "UTF8",
            "--locale=C", "--no-sync",
        )  # fmt: skip
        server.start()
        try:
            yield server
        finally:
            if (data / "postmaster.pid").exists():
                server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running_spark(
    folder: Path,
    n_processors: int = 1,
    *,
    for_tests: bool = True,
    n_tries: int = 1,
    n_executors: int = 0,
) -> Iterator[Any]:
    """A session in this process.

    for_tests: with settings that are fast for a few records alone. n_tries: of each part of a job.
    n_executors: processes beside this one that do the work; each has one processor
    """
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        missing("Java for Spark", "on Debian: apt-get install default-jre-headless")
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        missing("Spark", "pip install --requirement requirements-spark.lock")
        return
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.memory": "1g",
        "spark.log.level": "OFF",
    }
    if for_tests:
        settings |= {
            "spark.sql.shuffle.partitions": "1",
            # Compiling takes longer than counting so few records.
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
            "spark.sql.adaptive.enabled": "false",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        }
    master = f"local[{n_processors},{n_tries}]"
    if n_executors:
        master = f"local-cluster[{n_executors},1,1024]"
        settings["spark.executorEnv.PYTHONPATH"] = str(Path(__file__).parents[3])
    builder = SparkSession.builder.master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


def in_duckdb(table: pa.Table, path: Path, name: str = "records") -> DatabaseSource:
    """This table, stored in a DuckDB file."""
    import duckdb

    with duckdb.connect(path) as database:
        database.register("given", table)
        database.execute(f'CREATE OR REPLACE TABLE "{name}" AS FROM given')
    return DatabaseSource(Connection("FILE", f"duckdb://{path}"), name)


def in_spark(spark, table: pa.Table, folder: Path, name: str = "records") -> DatabaseSource:
    """This table, as a view of a Parquet file."""
    path = folder / f"{name}.parquet"
    pq.write_table(table, path)
    spark.read.parquet(str(path)).createOrReplaceTempView(name)
    return DatabaseSource(Connection("CLUSTER", "spark://"), name)
