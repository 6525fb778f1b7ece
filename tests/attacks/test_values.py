"""Which value a record has: values at the limits of their column's type are counted, or refused."""

import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rpexplore import Amounts, Attribute, Bins, Dates, Domain, Integers
from rpexplore.data.engines.connections import Connection
from rpexplore.data.engines.source import DatabaseSource
from rpexplore.data.files.source import FileSource
from rpexplore.data.frames import FrameSource
from rpexplore.errors import DataError

YEARS = Dates("1900", "2599", "year", missing=(("", "not stated"), ("x", "other")))


def years_of(source) -> list[int | str]:
    """The years in which records of this source are counted, or the labels of missing values."""
    domain = Domain((Attribute("c", YEARS),))
    counts = source.count(domain, [(0,)], unknown_values={"c": "other"}).counts((0,))
    return [
        int(label) if label.isdigit() else label
        for label, n in zip(domain["c"].labels(), counts.tolist(), strict=True)
        for _ in range(n)
    ]


def test_times_finer_and_farther_than_an_engine_rounds_to(tmp_path):
    """A fraction of a second is no missing value, and no fraction rounds a day up."""
    import duckdb

    path = tmp_path / "records.duckdb"
    columns = {
        "fraction": "timestamp '2026-01-31 12:00:00.5'",
        "fine": "timestamp_ns '2025-12-31 23:59:59.999999999'",
        "before": "timestamp_ns '1969-12-31 23:59:59.999999999'",
        "seconds": "timestamp_s '2500-01-01'",
        "thousandths": "timestamp_ms '2500-01-01 10:00:00.5'",
        "zoned": "timestamptz '2026-01-31 12:00:00.5+00'",
        "nothing": "NULL::timestamp",
    }
    with duckdb.connect(path) as database:
        for name, value in columns.items():
            database.execute(f'CREATE TABLE "{name}" AS SELECT {value} AS c')
    connection = Connection("FILE", f"duckdb://{path}")
    found = {name: years_of(DatabaseSource(connection, name)) for name in columns}
    expected = {"fraction": [2026], "fine": [2025], "before": [1969], "seconds": [2500]}
    expected |= {"thousandths": [2500], "zoned": ["other"], "nothing": ["not stated"]}
    assert found == expected


def test_old_times_of_parquet_hold_more_years_than_nanoseconds(tmp_path):
    days = [datetime.date(2500, 1, 1), datetime.date(1600, 1, 1), None]
    records = pa.table({"c": pa.array(days).cast(pa.timestamp("us"))})
    pq.write_table(records, tmp_path / "records.parquet", use_deprecated_int96_timestamps=True)
    assert years_of(FileSource(tmp_path / "records.parquet")) == [2500, "not stated", "other"]


@pytest.mark.parametrize(
    "kind", [pa.duration("s"), pa.duration("ns"), pa.month_day_nano_interval()]
)
def test_durations_are_numbers_of_no_unit_and_refused(kind, tmp_path):
    nothing = (0, 0, 0) if pa.types.is_interval(kind) else 1
    records = pa.table({"c": pa.array([nothing], kind)})
    sources = [FrameSource(records, name="survey")]
    if not pa.types.is_interval(kind):
        sources.append(FrameSource(records.to_pandas(), name="survey"))
        pq.write_table(records, tmp_path / "records.parquet")
        sources.append(FileSource(tmp_path / "records.parquet"))
    for source in sources:
        for values in (Amounts(0, 365), Integers(0, 9), Bins((0, 5, 10))):
            with pytest.raises(DataError, match=r"'c' of .* is of a kind .* cannot be counted"):
                source.count(Domain((Attribute("c", values),)), [(0,)])


@pytest.mark.parametrize(
    ("kind", "value", "minimum", "maximum"),
    [("tinyint", 100, -50, 120), ("smallint", 32_000, -32_000, 32_767), ("uhugeint", 5, 0, 9)],
)
def test_small_and_large_kinds_of_whole_numbers(kind, value, minimum, maximum, tmp_path):
    import duckdb

    path = tmp_path / "records.duckdb"
    with duckdb.connect(path) as database:
        database.execute(f"CREATE TABLE records AS SELECT {value}::{kind} AS c")
    domain = Domain((Attribute("c", Integers(minimum, maximum)),))
    counts = DatabaseSource(Connection("FILE", f"duckdb://{path}"), "records").count(domain, [(0,)])
    assert counts.counts((0,)).argmax() == value - minimum


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "marked as UTF-8"])
def test_a_quote_that_swallows_records_is_noticed_in_the_first_value_too(mark, tmp_path):
    (tmp_path / "records.csv").write_bytes(mark + b'"id,c\n1,2000\n2,2000\n"x",c\n3,2001\n')
    with pytest.raises(DataError, match="quotation mark that is not closed"):
        years_of(FileSource(tmp_path / "records.csv"))
