"""Counting in engines: all 455 tables of 3 of 15 attributes of 10 values, of mock records.

Cases of `tests.benchmarks.run`. The time holds the making of the statement and the way of the
counts back. Texts and whole numbers by turns.
"""

import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

import rpexplore as rp
from rpexplore.data.engines.source import DatabaseSource
from rpexplore.data.files.source import FileSource
from tests.benchmarks.areas import mock_people, plan_of
from tests.benchmarks.measure import (
    REPEATS,
    Row,
    best_of_three,
    once,
    peak_gigabytes,
    processes_seconds,
)
from tests.data.engines.servers import in_duckdb, in_spark, running_postgres, running_spark

_TABLES = list(combinations(range(15), 3))
FEW, MANY = 1_000_000, 10_000_000


def domain() -> rp.Domain:
    texts = rp.Categories(tuple(f"value {number}" for number in range(10)))
    return rp.Domain(
        tuple(
            rp.Attribute(f"a{index}", texts if index % 2 else rp.Integers(0, 9))
            for index in range(15)
        )
    )


def records(n_records: int) -> pa.Table:
    rng = np.random.default_rng(0)
    texts = pa.array([f"value {number}" for number in range(10)])
    columns = {}
    for index in range(15):
        codes = rng.integers(0, 10, n_records, dtype=np.int8)
        columns[f"a{index}"] = texts.take(pa.array(codes)) if index % 2 else pa.array(codes)
    return pa.table(columns).cast(
        pa.schema([(f"a{index}", pa.string() if index % 2 else pa.int64()) for index in range(15)])
    )


def _against_file(engine: str, source: DatabaseSource, file: Path, limit: float) -> Iterator[Row]:
    """Processor time of this process by that of counting the same records in a file."""
    own, expected = best_of_three(
        lambda _: FileSource(file).count(domain(), _TABLES), clock=time.process_time
    )
    seconds, counts = best_of_three(
        lambda _: source.count(domain(), _TABLES), clock=time.process_time
    )
    off = max(np.abs(counts.counts(table) - expected.counts(table)).max() for table in _TABLES)
    what = f"{len(_TABLES)} tables of {counts.n_records:,} records in {engine}"
    yield (f"{what}, processor time, times that of a file", seconds / own, "<=", limit)
    yield ("  largest difference of a count", float(off), "<=", 0)


def duckdb_counts() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        file, table = Path(folder) / "records.parquet", records(MANY)
        pq.write_table(table, file)
        source = in_duckdb(table, Path(folder) / "records.duckdb")
        del table
        return list(_against_file("DuckDB", source, file, 2))


def postgresql_counts() -> list[Row]:
    with running_postgres() as server:
        source = server.source(records(FEW), "records")
        seconds, counts = once(lambda: source.count(domain(), _TABLES))
        started = time.process_time()
        seconds_streamed, streamed = best_of_three(
            lambda _: replace(source, stream=True).count(domain(), _TABLES)
        )
        here = (time.process_time() - started) / REPEATS
        copied, _ = best_of_three(lambda _: _copied(server.url))
    differing = sum(
        not np.array_equal(streamed.counts(table), counts.counts(table)) for table in _TABLES
    )
    off = max(abs(int(counts.counts(table).sum()) - FEW) for table in _TABLES)
    return [
        (f"{len(_TABLES)} tables of {FEW:,} records in PostgreSQL, s", seconds, "<=", 25),
        ("  records too many or too few in any table", off, "<=", 0),
        ("  the same, streamed, s", seconds_streamed, "<=", 15),
        ("  times a plain COPY of the table", seconds_streamed / copied, "<=", 1.5),
        ("  the same, streamed, processor time here, s", here, "<=", 4),
        ("  tables that differ when streamed", differing, "<=", 0),
    ]


def _copied(url: str) -> int:
    """How many bytes the records are, when they are copied out of PostgreSQL and thrown away."""
    with psycopg.connect(url) as reading, reading.cursor().copy("COPY records TO STDOUT") as copy:
        return sum(map(len, copy))


def areas_in_postgresql() -> list[Row]:
    """Release of all tables in all areas of a fiftieth of the country, with 6.6 million people."""
    plan = plan_of(50)
    with tempfile.TemporaryDirectory() as name, running_postgres() as server:
        data, stored = Path(name) / "people.parquet", Path(name) / "people.csv"
        mock_people(data, plan.workload.tree, 330_000_000 // 50)
        people = pq.read_table(data)
        csv.write_csv(people, stored, csv.WriteOptions(include_header=False))
        columns = ", ".join(
            f'"{each.name}" {"smallint" if each.type == pa.int8() else "text"}'
            for each in people.schema
        )
        server.run(f"CREATE TABLE people ({columns})")
        with (
            psycopg.connect(server.url) as loading,
            loading.cursor().copy("COPY people FROM STDIN (FORMAT CSV)") as copy,
            stored.open("rb") as file,
        ):
            while some := file.read(1 << 20):
                copy.write(some)
        del people
        source = DatabaseSource(server.connection, "people")
        ledger, rows = Path(name) / "ledger.sqlite", []
        for stream in (False, True):
            of_run = partial(rp.release, plan, replace(source, stream=stream), ledger=ledger)
            seconds, release = once(partial(of_run, Path(name) / f"out {stream}"))
            what = ", streamed" if stream else ""
            rows.append((f"8 tables in 170,000 areas from PostgreSQL{what}, s", seconds, "<=", 240))
            shutil.rmtree(release.folder)
    return [*rows, ("  process peak, GB", peak_gigabytes(), "<=", 2.0)]


def spark_counts() -> list[Row]:
    """With two processors, processor time of Spark and its workers, the session's start apart."""
    if find_spec("pyspark") is None or not shutil.which("java"):
        return []  # requirements-spark.lock is installed apart
    with tempfile.TemporaryDirectory() as folder:
        table = records(MANY)
        file = Path(folder) / "records.parquet"
        pq.write_table(table, file)
        own, expected = best_of_three(
            lambda _: FileSource(file).count(domain(), _TABLES), clock=time.process_time
        )
        with running_spark(Path(folder), n_processors=2, for_tests=False) as spark:
            source = in_spark(spark, table, Path(folder))
            seconds, counts = best_of_three(
                lambda _: source.count(domain(), _TABLES), clock=processes_seconds
            )
            # The least that any way has to do: read all columns, and group them by three. Of texts
            # by the largest length: for the largest text Spark sorts all records first.
            largest = ", ".join(
                f"max({f'octet_length({name})' if number % 2 else name}) m{name}"
                for number, name in enumerate(domain().names)
            )
            bare = f"SELECT a0, a1, a2, count(*) n, {largest} FROM records GROUP BY a0, a1, a2"
            floor, _ = best_of_three(lambda _: spark.sql(bare).collect(), clock=processes_seconds)
    off = max(np.abs(counts.counts(table) - expected.counts(table)).max() for table in _TABLES)
    what = f"{len(_TABLES)} tables of {MANY:,} records in Spark"
    return [
        (f"{what}, processor time, times that of a file", seconds / own, "<=", 3),
        ("  times reading them, and one group-by of three", seconds / floor, "<=", 2.5),
        ("  largest difference of a count", float(off), "<=", 0),
    ]


CASES = (duckdb_counts, postgresql_counts, areas_in_postgresql, spark_counts)
