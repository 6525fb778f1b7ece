"""What values mean in engines: the same as in files, for every awkward one."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from rpexplore import Attribute, Bins, Categories, Dates, Domain
from rpexplore.data.coding import MISSING, UNKNOWN, Coder, Takers
from rpexplore.data.engines import spark_areas
from rpexplore.data.engines.coding import BLANKS
from rpexplore.data.engines.connections import Connection
from rpexplore.data.engines.packing import unpacked
from rpexplore.data.engines.session import Request
from rpexplore.data.engines.source import DatabaseSource
from rpexplore.data.files.source import FileSource
from rpexplore.data.source import Counts
from rpexplore.errors import DataError
from tests.data import awkward
from tests.data.engines.servers import in_duckdb, in_spark


@pytest.fixture(scope="module", params=awkward.SOME_OR_ALL)
def ways(request) -> awkward.Ways:
    return request.param


@pytest.fixture(scope="module")
def of_file(ways, tmp_path_factory) -> Counts:
    path = tmp_path_factory.mktemp("file") / "records.parquet"
    pq.write_table(awkward.table(ways), path)
    return counted(FileSource(path), ways)


def counted(source: FileSource | DatabaseSource, ways: awkward.Ways) -> Counts:
    return source.count(awkward.domain(ways), awkward.tables(ways), **awkward.takers(ways))


def disagreements(of_file: Counts, of_engine: Counts, ways: awkward.Ways) -> list[str]:
    """Every value that an engine and a file do not take for the same."""
    results = []
    domain, values = awkward.domain(ways), awkward.table(ways)
    for row, index in awkward.tables(ways):
        name = domain.names[index]
        one, two = of_file.counts((row, index)), of_engine.counts((row, index))
        results += [
            f"{name}: {values[name][int(at)].as_py()!r} is {np.flatnonzero(one[at])} in a file, "
            f"{np.flatnonzero(two[at])} in the engine"
            for at in np.flatnonzero(np.any(one != two, axis=1))
        ]
    return results


def test_the_columns_try_both_inside_and_outside(of_file, ways):
    assert {way for of_column in ways.values() for way in of_column} == {*awkward.VALUES}
    for index, name in enumerate(awkward.domain(ways).names[1:], start=1):
        assert of_file.counts((index,)).sum() == awkward.N_ROWS, name
        if name.split()[0] in ("text", "float", "single", "whole"):
            assert np.count_nonzero(of_file.counts((index,))) > 1, name


def test_duckdb_reads_as_files_are_read(of_file, ways, tmp_path):
    source = in_duckdb(awkward.table(ways), tmp_path / "records.duckdb")
    assert disagreements(of_file, counted(source, ways), ways) == []


def test_postgresql_reads_as_files_are_read(of_file, ways, postgres):
    source = postgres.source(awkward.table(ways), "awkward")
    assert disagreements(of_file, counted(source, ways), ways) == []


@pytest.mark.nightly  # the expressions are those above, and `test_counts_are_exact` streams
def test_postgresql_streams_what_files_have(of_file, ways, postgres):
    source = replace(postgres.source(awkward.table(ways), "awkward"), stream=True)
    assert disagreements(of_file, counted(source, ways), ways) == []


def test_postgresql_by_adbc_reads_as_files_are_read(of_file, ways, postgres):
    pytest.importorskip("adbc_driver_postgresql")
    postgres.source(awkward.table(ways), "awkward")
    connection = Connection("SERVER", f"adbc+{postgres.url}")
    source = DatabaseSource(connection, "awkward", stream=True)
    assert disagreements(of_file, counted(source, ways), ways) == []


def test_spark_reads_as_files_are_read(of_file, ways, spark, tmp_path):
    source = in_spark(spark, awkward.table(ways), tmp_path)
    assert disagreements(of_file, counted(source, ways), ways) == []


@pytest.mark.parametrize("most_in_a_method", [0, 99])
def test_spark_finds_nothing_that_is_something_else_in_files(most_in_a_method, spark, monkeypatch):
    monkeypatch.setattr(spark_areas, "_MOST_IN_A_METHOD", most_in_a_method)
    domain, table = awkward.domain(awkward.WAYS), awkward.table(awkward.WAYS)
    request = Request(
        "x", domain, tuple((index,) for index in range(len(domain.names))), Takers(), None
    )
    frame = spark.createDataFrame(table)
    kinds = {field.name: field.dataType.simpleString() for field in frame.schema}
    layout = spark_areas.layout_of(kinds, request, ())
    words = frame.selectExpr(*spark_areas.word_expressions(kinds, request, layout)).toArrow()
    columns = unpacked(np.stack([word.to_numpy() for word in words.columns], axis=1), layout.words)
    for index in layout.listed:
        attribute = domain.attributes[index]
        column = table[attribute.name].combine_chunks()
        codes = Coder(attribute).signed_codes(column)
        found = columns.column(f"c{index}").to_numpy()
        assert np.array_equal(found[found != UNKNOWN], codes[found != UNKNOWN]), attribute.name
        assert np.any(found >= 0), attribute.name
        assert np.count_nonzero(found == MISSING) == column.null_count, attribute.name
    looked_up = {domain.names[index].partition(" ")[0] for index in layout.listed}
    assert looked_up == {"row", "text", "date", "whole"}


@pytest.mark.nightly
def test_collations_of_spark_are_not_asked(spark):
    frame = spark.createDataFrame([("a",), ("A",), ("a",), ("a ",)], "c string COLLATE UTF8_LCASE")
    frame.createOrReplaceTempView("texts")
    assert of_letters(DatabaseSource(Connection("CLUSTER", "spark://"), "texts")) == [2, 1, 0, 1]


def test_blanks_are_those_of_files():
    signs = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    trimmed = pc.utf8_trim_whitespace(pa.array(signs)).to_pylist()
    assert "".join(sign for sign, left in zip(signs, trimmed, strict=True) if not left) == BLANKS


# --- types that files do not have

LETTERS = Domain((Attribute("c", Categories(("a", "A", "b", "rest"))),))


def of_letters(source: DatabaseSource) -> list[int]:
    return source.count(LETTERS, [(0,)], unknown_values={"c": "rest"}).counts((0,)).tolist()


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("text", [2, 1, 0, 1]),
        ('text COLLATE "careless"', [2, 1, 0, 1]),
        ("varchar(9)", [2, 1, 0, 1]),
        ("char(9)", [3, 1, 0, 0]),  # blanks at the end are no part of it
        ("letter", [2, 1, 0, 1]),
        ("a_domain", [2, 1, 0, 1]),
    ],
)
def test_text_types_of_postgresql_are_compared_exactly(kind, expected, postgres):
    postgres.run(
        "DROP TABLE IF EXISTS texts",
        "CREATE COLLATION IF NOT EXISTS careless "
        "(provider = icu, locale = 'und-u-ks-level1', deterministic = false)",
        "DROP TYPE IF EXISTS letter",
        "CREATE TYPE letter AS ENUM ('a', 'A', 'b', 'a ')",
        "DROP DOMAIN IF EXISTS a_domain",
        "CREATE DOMAIN a_domain AS text",
        f"CREATE TABLE texts (c {kind})",
        "INSERT INTO texts VALUES ('a'), ('A'), ('a'), ('a ')",
    )
    assert of_letters(DatabaseSource(postgres.connection, "texts")) == expected


@pytest.mark.parametrize(
    "kind", ["varchar", "varchar COLLATE nocase", "ENUM ('a', 'A', 'b', 'a ')"]
)
def test_text_types_of_duckdb_are_compared_exactly(kind, tmp_path):
    import duckdb

    source = in_duckdb(pa.table({"c": ["a"]}), tmp_path / "records.duckdb")
    with duckdb.connect(source.connection.location) as database:
        database.execute(f"CREATE OR REPLACE TABLE records (c {kind})")
        database.execute("INSERT INTO records VALUES ('a'), ('A'), ('a'), ('a ')")
    assert of_letters(source) == [2, 1, 0, 1]


def test_numbers_without_a_scale_in_postgresql(postgres):
    postgres.run(
        "DROP TABLE IF EXISTS amounts",
        "CREATE TABLE amounts (c numeric)",
        "INSERT INTO amounts VALUES (0.5), (1), (1e30), (1e-400), ('NaN'), (1e400)",
    )
    domain = Domain((Attribute("c", Bins((0, 0.5, 1, 2), (("-9", "other"),))),))
    counts = DatabaseSource(postgres.connection, "amounts").count(
        domain, [(0,)], unknown_values={"c": "other"}
    )
    assert counts.counts((0,)).tolist() == [1, 1, 1, 3]


@pytest.mark.parametrize("column", [[[1]], [b"a"], [{"x": 1}]], ids=["list", "bytes", "struct"])
def test_other_kinds_of_columns_are_refused(column, tmp_path):
    source = in_duckdb(pa.table({"c": column}), tmp_path / "records.duckdb")
    for values in (Categories(("a",)), Bins((0, 1))):
        with pytest.raises(DataError, match="'c' is of a kind"):
            source.count(Domain((Attribute("c", values),)), [(0,)])


@pytest.mark.parametrize("size", [24, 25, 1000, 20_000])
def test_long_lists_of_categories(size, tmp_path, postgres):
    """Short lists are compared one after the other, long ones are joined."""
    endings = ("", " \\", f" and {chr(200)}")
    texts = [f"place {number}, 'quoted'{endings[number // 3 % 3]}" for number in range(size)]
    domain = Domain((Attribute("c", Categories(tuple(texts))),))
    records = pa.table({"c": [texts[number] for number in range(0, size, 3)] * 2})
    expected = [2 * (number % 3 == 0) for number in range(size)]
    for source in (
        in_duckdb(records, tmp_path / "records.duckdb"),
        postgres.source(records, "places"),
    ):
        assert source.count(domain, [(0,)]).counts((0,)).tolist() == expected


def test_more_bins_than_a_statement_can_hold_are_refused(tmp_path):
    source = in_duckdb(pa.table({"c": [1.0]}), tmp_path / "records.duckdb")
    most = Domain((Attribute("c", Bins(tuple(range(513)))),))
    assert source.count(most, [(0,)]).counts((0,)).argmax() == 1
    more = Domain((Attribute("c", Bins(tuple(range(514)))),))
    with pytest.raises(DataError, match="at most 512 bins"):
        source.count(more, [(0,)])


def test_days_that_no_calendar_has_are_not_in_the_codebook(tmp_path, postgres):
    import duckdb

    values = "('infinity'), ('-infinity'), ('2026-01-31'), ('0044-03-15 BC'), (NULL)"
    kinds = {"d": "date", "t": "timestamp", "z": "timestamptz"}
    create = [f"CREATE TABLE {name} (c {kind})" for name, kind in kinds.items()]
    insert = [f"INSERT INTO {name} VALUES {values}" for name in kinds]
    postgres.run(*(f"DROP TABLE IF EXISTS {name}" for name in kinds), *create)
    postgres.run("SET TIMEZONE = UTC", *insert)
    source = in_duckdb(pa.table({"c": ["a"]}), tmp_path / "records.duckdb")
    with duckdb.connect(source.connection.location) as database:
        database.execute("SET TimeZone = 'UTC'")
        for statement in (*create, *(line.replace(" BC", " (BC)") for line in insert)):
            database.execute(statement)
    dates = Dates("0001", "9999", "year", missing=(("x", "unknown"), ("", "none")))
    domain = Domain((Attribute("c", dates),))
    for name in kinds:
        for table in (DatabaseSource(postgres.connection, name), replace(source, table=name)):
            counts = table.count(domain, [(0,)], unknown_values={"c": "unknown"}).counts((0,))
            assert (counts[2025], counts[-2], counts[-1]) == (1, 3, 1), (name, table)
