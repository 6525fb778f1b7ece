"""The universe: the same records are counted by every source, against a loop over the records."""

import sqlite3
from contextlib import closing
from datetime import date
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from rpexplore import Attribute, Categories, Domain, Integers
from rpexplore.data.engines.connections import Connection
from rpexplore.data.engines.source import DatabaseSource
from rpexplore.data.files.source import FileSource
from rpexplore.data.frames import FrameSource
from rpexplore.data.source import PersonRule
from rpexplore.errors import DataError
from rpexplore.workload.universe import universe_of
from tests.data.engines.conftest import two_stores
from tests.data.engines.servers import in_duckdb, in_spark

DOMAIN = Domain(
    (
        Attribute("sex", Categories(("1", "2"), ("Male", "Female"))),
        Attribute("age", Integers(0, 99, 10, (("-9", "refused"),))),
    )
)
# Of a household, whose other columns hold anything, and of persons.
ROWS = [
    ("H", "x", None, None, None, "a"), ("P", "1", 15, 0.5, "2026-01-31", "a"),
    ("P", "2", 16, 1.5, "2026-02-01", "b"), ("P", "1", 17, None, None, "b"),
    ("p", "2", 40, 16.0, "2025-12-31", "c"), ("P", "2", -9, 1e17, "2026-02-01", "c"),
    (None, "1", 99, -3.25, "2026-02-02", "c"), ("P", "2", 64, 1.5, "2026-02-01", "d"),
]  # fmt: skip
NAMES = ("RECTYPE", "sex", "age", "pay", "day", "who")
# What a condition means, written in Python; None is missing, and the age -9 is as well.
MEANT = {
    "RECTYPE = P & age >= 16": lambda r, s, a, p, d: r == "P" and a is not None and a >= 16,
    '16 < age <= 64 | !(RECTYPE in ("P", "H"))': lambda r, s, a, p, d: (
        (a is not None and 16 < a <= 64) or r not in ("P", "H")
    ),
    "pay != 1.5 & sex = Female & RECTYPE = P": lambda r, s, a, p, d: (
        p != 1.5 and s == "2" and r == "P"
    ),
    'day >= "2026-02-01" and RECTYPE != "H"': lambda r, s, a, p, d: (
        d is not None and d >= "2026-02-01" and r != "H"
    ),
    'day = "2026-02-01" | !(day != "2026-01-31")': lambda r, s, a, p, d: (
        d in ("2026-02-01", "2026-01-31")
    ),
    "pay > 1.5 & pay < 1e18": lambda r, s, a, p, d: p is not None and 1.5 < p < 1e18,
    'RECTYPE = "none of these"': lambda r, s, a, p, d: False,
    "sex >= 2 & RECTYPE = P": lambda r, s, a, p, d: s == "2" and r == "P",
}
TABLE = pa.table(
    {
        name: pa.array(
            [
                date.fromisoformat(row[place]) if name == "day" and row[place] else row[place]
                for row in ROWS
            ],
            {"age": pa.int64(), "pay": pa.float64(), "day": pa.date32()}.get(name, pa.string()),
        )
        for place, name in enumerate(NAMES)
    }
)


def check(source, texts=tuple(MEANT), rule=None):
    for text in texts:
        kept = [
            row for row in ROWS
            if MEANT[text](row[0], row[1], None if row[2] == -9 else row[2], *row[3:5])
        ]  # fmt: skip
        counts = source.count(
            DOMAIN, [(0, 1), ()], universe=universe_of(text, DOMAIN), person_rule=rule
        )
        assert counts.n_records == len(kept), text
        expected = [[0] * 11 for _ in range(2)]
        for row in kept:
            expected[int(row[1]) - 1][10 if row[2] == -9 else row[2] // 10] += 1
        assert counts.counts((0, 1)).tolist() == expected, text


def test_files_and_frames(tmp_path):
    pa.csv.write_csv(TABLE, tmp_path / "a.csv")
    pq.write_table(TABLE, tmp_path / "a.parquet")
    for source in (
        FileSource(tmp_path / "a.csv"),
        FileSource(tmp_path / "a.parquet"),
        FrameSource(pd.DataFrame(TABLE.to_pandas()), name="x"),
        FrameSource(TABLE, name="x"),
    ):
        check(source)
    # In the universe nobody has more than two records; in all there are persons with three.
    check(source, ["RECTYPE = P & age >= 16"], PersonRule("who", 2))
    with pytest.raises(DataError, match="no column 'RECTYP'"):
        source.count(DOMAIN, [(0,)], universe=universe_of("RECTYP = P", DOMAIN))
    ages = Domain(DOMAIN.attributes[1:])
    with pytest.raises(DataError, match="'age' holds a missing value"):  # of the household
        source.count(ages, [(0,)], universe=universe_of("sex = x", ages))


@two_stores
def test_engines(store):
    source = store(TABLE)
    check(source)
    check(source, ["RECTYPE = P & age >= 16"], PersonRule("who", 2))


def test_sqlite(tmp_path):
    pytest.importorskip("adbc_driver_sqlite")
    path = tmp_path / "records.db"
    rows = [[str(value) if isinstance(value, date) else value for value in row] for row in ROWS]
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE records (RECTYPE, sex, age, pay, day, who)")
        database.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?)", rows)
    source = DatabaseSource(Connection("FILE", f"sqlite://{path}"), "records")
    check(source)
    check(source, ["RECTYPE = P & age >= 16"], PersonRule("who", 2))


def test_spark(spark, tmp_path):
    source = in_spark(spark, TABLE, tmp_path)
    check(source, [*MEANT][:2])
    with pytest.raises(DataError, match="'pay' holds numbers, and the plan compares it with texts"):
        source.count(DOMAIN, [()], universe=universe_of("pay != true", DOMAIN))
    check(source, ["RECTYPE = P & age >= 16"], PersonRule("who", 2))


def test_numbers_that_are_decimals_texts_or_large_in_a_database(tmp_path):
    values = [Decimal("1.50"), Decimal("1.51"), None]
    records = pa.table(
        {
            "sex": ["1", "2", "1"],
            "d": pa.array(values, pa.decimal128(10, 2)),
            "t": ["1.50", " 2", "x"],
            "i": [2**53 + 2, 1, 2],
        }
    )
    domain = Domain(DOMAIN.attributes[:1])
    for source in (in_duckdb(records, tmp_path / "a.duckdb"), FrameSource(records, name="x")):
        for text, n in (("d > 1.5", 1), ("t <= 2", 2), ("i > 2", 1), ("d = 1.50 & t = 1.5", 1)):
            counts = source.count(domain, [(0,)], universe=universe_of(text, domain))
            assert counts.n_records == n, text


# What no value of a column's type can be, so that a negation would hold for all records.
OTHERWISE = [
    ("yes", '!(yes = 1)', "booleans"), ("yes", 'yes != "Y"', "booleans"),
    ("pay", "pay != true", "numbers"), ("pay", '!(pay < "2026-02-01")', "numbers"),
    ("day", "!(day < 20260201)", "days"), ("day", "day != 20260201", "days"),
]  # fmt: skip
TYPED = pa.table({**{name: TABLE[name] for name in NAMES}, "yes": [True, False] * 4})


def check_otherwise(source):
    for name, text, held in OTHERWISE:
        with pytest.raises(DataError, match=rf"'{name}' holds .*{held}.* compares it with"):
            source.count(DOMAIN, [()], universe=universe_of(text, DOMAIN))
    for text, n_records in (("yes = true", 4), ('pay in (1.5, "none")', 2)):
        counts = source.count(DOMAIN, [()], universe=universe_of(text, DOMAIN))
        assert counts.n_records == n_records


def test_a_comparison_that_no_value_of_a_columns_type_can_be_is_refused(tmp_path):
    check_otherwise(FrameSource(TYPED, name="x"))
    check_otherwise(in_duckdb(TYPED, tmp_path / "a.duckdb"))
    nothing = pa.table({"sex": ["1"], "yes": pa.array([None], pa.int64())})  # of any type
    source, within = FrameSource(nothing, name="x"), universe_of("yes != true", DOMAIN)
    assert source.count(Domain(DOMAIN.attributes[:1]), [()], universe=within).n_records == 1


def test_a_moment_is_on_its_day_by_each_comparison(tmp_path):
    moments = ["2026-02-01 00:00", "2026-02-01 23:59", "2026-02-02 00:00", None]
    at = pa.array(moments).cast(pa.timestamp("us"))
    records = pa.table({"sex": ["1"] * 4, "at": at})
    pa.csv.write_csv(records, tmp_path / "a.csv")
    domain = Domain(DOMAIN.attributes[:1])
    for source in (
        FrameSource(records, name="x"),
        FileSource(tmp_path / "a.csv"),
        in_duckdb(records, tmp_path / "a.duckdb"),
    ):
        for text, n in (("=", 2), ("<=", 2), ("!=", 2), (">", 1)):
            universe = universe_of(f'at {text} "2026-02-01"', domain)
            assert source.count(domain, [(0,)], universe=universe).n_records == n, text


def test_booleans_of_sqlite_are_numbers(tmp_path):
    pytest.importorskip("adbc_driver_sqlite")
    with closing(sqlite3.connect(tmp_path / "records.db")) as database, database:
        database.execute("CREATE TABLE records (sex, yes BOOLEAN)")
        database.executemany("INSERT INTO records VALUES (?, ?)", [("1", True), ("2", False)])
    source = DatabaseSource(Connection("FILE", f"sqlite://{tmp_path}/records.db"), "records")
    domain = Domain(DOMAIN.attributes[:1])
    with pytest.raises(DataError, match="'yes' holds numbers, and the plan compares it with texts"):
        source.count(domain, [(0,)], universe=universe_of("!(yes = true)", domain))
    assert source.count(domain, [(0,)], universe=universe_of("yes = 1", domain)).n_records == 1
