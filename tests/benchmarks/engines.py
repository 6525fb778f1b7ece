"""Counting in engines: all tables of up to 3 of 15 attributes, of a million mock records.

Cases of `tests.benchmarks.run`. Codes, blocks and sums are all made in the engine, in one
statement; the time holds the making of the statement and the way of the counts back.
"""

import tempfile
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa

import rpexplore as rp
from rpexplore.data.counts import Counts
from rpexplore.data.databases.source import DatabaseSource
from tests.benchmarks.measure import Row, once
from tests.data.databases.servers import in_duckdb, running_postgres

_SIZES = (2, 2, 3, 4, 5, 5, 6, 7, 8, 9, 10, 12, 15, 18, 20)
_RECORDS = 1_000_000


def domain() -> rp.Domain:
    """Texts and whole numbers in turn."""
    return rp.Domain(
        tuple(
            rp.Attribute(
                f"a{index}",
                rp.Categories(tuple(f"value {number}" for number in range(size)))
                if index % 2
                else rp.Integers(0, size - 1),
            )
            for index, size in enumerate(_SIZES)
        )
    )


def records() -> pa.Table:
    rng = np.random.default_rng(0)
    columns = {}
    for index, size in enumerate(_SIZES):
        codes = rng.integers(0, size, _RECORDS)
        texts = pa.array([f"value {number}" for number in range(size)])
        columns[f"a{index}"] = texts.take(pa.array(codes)) if index % 2 else pa.array(codes)
    return pa.table(columns)


def _rows(engine: str, source: DatabaseSource, limit: float) -> Iterator[Row]:
    tables = [table for k in range(4) for table in combinations(range(len(_SIZES)), k)]
    seconds, counts = once(lambda: source.count(domain(), tables))
    assert isinstance(counts, Counts)
    off = max(abs(int(counts.counts(table).sum()) - _RECORDS) for table in tables)
    yield (f"{len(tables)} tables of 10^6 records in {engine}, s", seconds, "<=", limit)
    yield ("  records too many or too few in any table", off, "<=", 0)


def duckdb_counts() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        return list(_rows("DuckDB", in_duckdb(records(), Path(folder) / "records.duckdb"), 60))


def postgresql_counts() -> list[Row]:
    with running_postgres() as server:
        return list(_rows("PostgreSQL", server.source(records(), "records"), 120))


CASES = (duckdb_counts, postgresql_counts)
