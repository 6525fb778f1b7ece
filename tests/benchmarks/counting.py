"""Counting of files: time and memory by the number of records, and what other engines take.

Cases of `tests.benchmarks.run`. All tables of at most three of 15 attributes, 576 of them, of mock
records in a Parquet file that is made once. Every count runs in a process of its own that has
imported no more than it needs. The others count the 455 tables of three alone, from which
the rest would follow, on fewer records, and with their data in memory in their best types.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from rpexplore.data.files.source import FileSource
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.categories import Categories
from rpexplore.domain.domain import Domain
from rpexplore.domain.ordered_values import Integers
from tests.benchmarks.measure import Row, peak_gigabytes

ROOT = Path(__file__).resolve().parents[2]
SIZES = (2, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20)
NAMES = tuple(f"a{index}" for index in range(len(SIZES)))
TABLES = [table for order in range(4) for table in combinations(range(len(SIZES)), order)]
TRIPLES = [table for table in TABLES if len(table) == 3]
FEW, MANY = 1_000_000, 10_000_000
LARGE = 368  # the size of each of 4 attributes, any three of which have 5·10^7 cells


def mock_domain() -> Domain:
    """Whole numbers and texts by turns."""
    values = [
        Integers(0, size - 1)
        if index % 2
        else Categories(tuple(f"value {each}" for each in range(size)))
        for index, size in enumerate(SIZES)
    ]
    return Domain(tuple(map(Attribute, NAMES, values)))


def mock_file(n_records: int) -> Path:
    """The mock records, made by another process if they are not there yet."""
    path = Path(tempfile.gettempdir()) / f"rpexplore-mock-{n_records}.parquet"
    if not path.is_file():
        _in_its_own_process("make", n_records)
    return path


def _make(n_records: int) -> None:
    path = Path(tempfile.gettempdir()) / f"rpexplore-mock-{n_records}.parquet"
    unfinished = path.with_suffix(".unfinished")
    domain, rng = mock_domain(), np.random.default_rng(0)
    schema = pa.schema(
        [(each.name, pa.int64() if index % 2 else pa.string()) for index, each in enumerate(domain)]
    )
    with pq.ParquetWriter(unfinished, schema) as writer:
        for start in range(0, n_records, FEW):
            n_rows = min(FEW, n_records - start)
            columns = []
            for index, attribute in enumerate(domain):
                codes = (rng.random(n_rows) ** 1.5 * attribute.size).astype(np.int64)
                texts = pa.array([f"value {each}" for each in range(attribute.size)])
                columns.append(codes if index % 2 else texts.take(pa.array(codes)))
            writer.write_table(pa.table(columns, schema=schema))
    unfinished.replace(path)


def _count(n_records: int) -> dict[str, float]:
    source = FileSource(mock_file(n_records))
    start, worked = time.perf_counter(), time.process_time()
    counts = source.count(mock_domain(), TABLES)
    seconds, worked = time.perf_counter() - start, time.process_time() - worked
    assert counts.n_records == n_records
    peak, bare = peak_gigabytes(), _read(n_records)
    return {"seconds": seconds, "worked": worked, "peak": peak, "bare": bare}


def _read(n_records: int) -> float:
    """Processor time of nothing but reading all columns, texts with their distinct values."""
    start = time.process_time()
    with pq.ParquetFile(mock_file(n_records), read_dictionary=list(NAMES)) as file:
        for _ in file.iter_batches(1 << 18):
            pass
    return time.process_time() - start


def _count_csv(n_records: int) -> dict[str, float]:
    """The same records as CSV with their texts in quotes, beside nothing but reading these."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.csv"
        pyarrow.csv.write_csv(pq.read_table(mock_file(n_records)), path)
        return _in_its_own_process("quoted", n_records, folder)


def _count_quoted(n_records: int, folder: str) -> dict[str, float]:
    path = Path(folder) / "records.csv"
    start = time.process_time()
    counts = FileSource(path).count(mock_domain(), TABLES)
    worked, peak = time.process_time() - start, peak_gigabytes()
    assert counts.n_records == n_records
    texts = dict.fromkeys(NAMES, pa.dictionary(pa.int32(), pa.string()))
    options = pyarrow.csv.ConvertOptions(column_types=texts)
    start = time.process_time()
    with pyarrow.csv.open_csv(path, convert_options=options) as reader:
        for _ in reader:
            pass
    return {"worked": worked, "peak": peak, "bare": time.process_time() - start}


def _count_large(n_records: int) -> dict[str, float]:
    """Four tables that are counted by themselves, as each is far larger than a block."""
    n_attributes = 4
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.parquet"
        pq.write_table(
            pa.table({f"a{i}": rng.integers(0, LARGE, n_records) for i in range(n_attributes)}),
            path,
        )
        domain = Domain.from_sizes({f"a{i}": LARGE for i in range(n_attributes)})
        start = time.perf_counter()
        counts = FileSource(path).count(domain, list(combinations(range(n_attributes), 3)))
        seconds = time.perf_counter() - start
    cells = sum(table.size for table in counts.tables.values())
    return {"seconds": seconds, "peak": peak_gigabytes(), "cells": cells}


def _duckdb(n_records: int) -> dict[str, float]:
    import duckdb

    with duckdb.connect() as connection:
        start = time.perf_counter()
        columns = []
        for index, (name, size) in enumerate(zip(NAMES, SIZES, strict=True)):
            listed = ", ".join(f"'value {each}'" for each in range(size))
            columns.append(f"{name}::UTINYINT {name}" if index % 2 else f"{name}::e{index} {name}")
            if not index % 2:
                connection.execute(f"CREATE TYPE e{index} AS ENUM ({listed})")
        connection.execute(
            f"CREATE TABLE t AS SELECT {', '.join(columns)} FROM '{mock_file(n_records)}'"
        )
        for table in TRIPLES:
            names = ", ".join(NAMES[index] for index in table)
            connection.execute(f"SELECT {names}, count(*) FROM t GROUP BY {names}").fetchnumpy()
        return {"seconds": time.perf_counter() - start}


def _polars(n_records: int) -> dict[str, float]:
    import polars

    start = time.perf_counter()
    frame = polars.read_parquet(mock_file(n_records)).with_columns(
        polars.col(name).cast(
            polars.UInt8
            if index % 2
            else polars.Enum([f"value {each}" for each in range(SIZES[index])])
        )
        for index, name in enumerate(NAMES)
    )
    queries = [frame.lazy().group_by([NAMES[index] for index in table]).len() for table in TRIPLES]
    polars.collect_all(queries)
    return {"seconds": time.perf_counter() - start}


def _pandas(n_records: int) -> dict[str, float]:
    import pandas

    start = time.perf_counter()
    frame = pandas.read_parquet(mock_file(n_records)).astype("category")
    for table in TRIPLES:
        frame.groupby([NAMES[index] for index in table], observed=True, sort=False).size()
    return {"seconds": time.perf_counter() - start}


_ACTIONS: dict[str, Callable[..., dict[str, float] | None]] = {
    "make": _make,
    "count": _count,
    "large": _count_large,
    "csv": _count_csv,
    "quoted": _count_quoted,
    "DuckDB": _duckdb,
    "polars": _polars,
    "pandas": _pandas,
}


def _in_its_own_process(action: str, n_records: int, *more: str) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.benchmarks.counting", action, str(n_records), *more]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def counting_by_records() -> list[Row]:
    rows: list[Row] = []
    figures = {}
    for n_records, limit, worked in ((FEW, 5, 0.8), (2 * FEW, 8, 1.2), (MANY, 25, 3)):
        mock_file(n_records)
        figures[n_records] = measured = _in_its_own_process("count", n_records)
        rows += [
            (
                f"count {len(TABLES)} tables of {n_records:,} records, s",
                measured["seconds"],
                "<=",
                limit,
            ),
            ("  time of all its processors, s", measured["worked"], "<=", worked),
            ("  times reading them alone", measured["worked"] / measured["bare"], "<=", 12),
            ("  process peak, GB", measured["peak"], "<=", 0.6),
        ]
    growth = figures[MANY]["worked"] / figures[2 * FEW]["worked"] / (MANY / (2 * FEW))
    return [*rows, ("  processors' time of a record, against 2,000,000 records", growth, "<=", 1.3)]


def counting_of_quoted_csv() -> list[Row]:
    mock_file(FEW)
    measured = _in_its_own_process("csv", FEW)
    return [
        (f"count {FEW:,} records of quoted CSV, s (CPU)", measured["worked"], "<=", 1.5),
        ("  times reading them alone", measured["worked"] / measured["bare"], "<=", 3),
        ("  process peak, GB", measured["peak"], "<=", 0.4),
    ]


def counting_of_large_tables() -> list[Row]:
    measured = _in_its_own_process("large", FEW)
    assert measured["cells"] >= 1.9e8
    return [
        (
            f"count tables of {measured['cells']:,.0f} cells, {FEW:,} records, s",
            measured["seconds"],
            "<=",
            10,
        ),
        ("  process peak, GB", measured["peak"], "<=", 1.2),
    ]


def counting_by_others() -> list[Row]:
    mock_file(FEW)
    ours = _in_its_own_process("count", FEW)["seconds"]
    return [
        (
            f"{name}, {len(TRIPLES)} tables of {FEW:,} records, times as long",
            _in_its_own_process(name, FEW)["seconds"] / ours,
            ">=",
            1.0,
        )
        for name in ("DuckDB", "polars", "pandas")
    ]


CASES = (counting_by_records, counting_of_quoted_csv, counting_of_large_tables, counting_by_others)

if __name__ == "__main__":
    print(json.dumps(_ACTIONS[sys.argv[1]](int(sys.argv[2]), *sys.argv[3:])))
