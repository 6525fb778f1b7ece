"""What a table or view comes from: one account with all that it reads, whose changes are seen."""

import time
from dataclasses import replace

import duckdb
import pyarrow as pa
import pytest

from rpexplore.data.engines.connections import Connection
from rpexplore.data.engines.source import DatabaseSource
from rpexplore.data.files.source import FileSource
from rpexplore.data.source import Source
from rpexplore.domain.domain import Domain
from rpexplore.errors import DataError
from tests.data.engines.servers import Server, in_duckdb, in_spark
from tests.support.processor_time import PATIENCE

TABLE = pa.table({"sex": ["m", "f"], "n": [1, 2]})
ALL = "SELECT * FROM "


def together(tmp_path, *sources: Source) -> bool:
    """Whether all share an account with the first, however they are entered."""
    names = [set(source.names(tmp_path)) for source in sources]
    return all(names[0] & others for others in names[1:])


@pytest.fixture
def survey(postgres) -> Server:
    """The tables people and visits of a server, and a role that may read."""
    for name in ("people", "visits"):
        postgres.source(TABLE, name)
    postgres.run(
        "DO $$ BEGIN CREATE ROLE reader LOGIN; EXCEPTION WHEN duplicate_object THEN END $$",
        "GRANT SELECT ON people, visits TO reader",
    )
    return postgres


@pytest.fixture(params=["psycopg", "ADBC"])
def of_server(request):
    """A table of a server, by each of the two ways to it."""
    if request.param == "psycopg":
        return by_psycopg
    pytest.importorskip("adbc_driver_postgresql")
    return by_adbc


def by_psycopg(server: Server, name: str) -> DatabaseSource:
    return DatabaseSource(server.connection, name)


def by_adbc(server: Server, name: str) -> DatabaseSource:
    return DatabaseSource(Connection("SERVER", f"adbc+{server.url}"), name, stream=True)


@pytest.fixture
def file(tmp_path):
    """Runs statements in a DuckDB file that has the tables people and visits."""
    path = tmp_path / "survey.duckdb"
    for name in ("people", "visits"):
        in_duckdb(TABLE, path, name)

    def run(*statements: str) -> Connection:
        with duckdb.connect(path) as database:
            for statement in statements:
                database.execute(statement)
        return Connection("FILE", f"duckdb://{path}")

    return run


# --- accounts


def test_a_server_that_does_not_say_which_it_is_is_refused_with_the_grant_to_ask_for(
    of_server, survey
):
    url = survey.url.replace("keeper@", "reader:s3cr3t@")
    source = DatabaseSource(Connection("READER", url), "people")
    survey.run("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
    try:
        with pytest.raises(DataError) as caught:
            source.fingerprint()
    finally:
        survey.run("GRANT EXECUTE ON FUNCTION pg_control_system() TO PUBLIC")
    assert "GRANT EXECUTE ON FUNCTION pg_control_system() TO " in str(caught.value)
    assert "s3cr3t" not in caught.value.on_screen()
    assert source.names(survey.folder) == of_server(survey, "people").names(survey.folder)


def test_a_view_of_a_server_has_one_account_with_its_tables(of_server, survey, tmp_path):
    survey.run(
        f"CREATE VIEW adults AS {ALL} people WHERE sex IN (SELECT sex FROM visits)",
        f"CREATE VIEW women AS {ALL} adults WHERE sex = 'f'",
        f"CREATE MATERIALIZED VIEW kept AS {ALL} people",
    )
    view, people = of_server(survey, "women"), of_server(survey, "people")
    assert view.names(tmp_path)[0].endswith("/public.women")
    assert together(tmp_path, view, people)
    assert together(tmp_path, view, of_server(survey, "visits"))
    assert together(tmp_path, of_server(survey, "kept"), people)
    assert not together(tmp_path, people, of_server(survey, "visits"))
    own = "'women' has one account in the ledger with what it reads: public.adults, public.people "
    assert view.remarks()[-1] == f"{own}and public.visits."
    assert not [remark for remark in people.remarks() if "account" in remark]


def test_a_table_of_a_server_is_the_same_by_whatever_way(survey, tmp_path):
    pytest.importorskip("adbc_driver_postgresql")
    people, by_other = by_psycopg(survey, "people"), by_adbc(survey, "people")
    streamed = replace(people, stream=True)
    for other in (streamed, by_other):
        assert other.names(tmp_path) == people.names(tmp_path)
        assert "leave their server" in other.remarks()[0]
    assert streamed.fingerprint() == people.fingerprint()
    with pytest.raises(DataError, match="there is no table 'nowhere'"):
        by_psycopg(survey, "nowhere").fingerprint()


def test_a_table_of_a_server_keeps_its_account_in_another_schema_and_database(survey, tmp_path):
    """Also where somebody else's table then has its name: both are meant by it."""
    pytest.importorskip("adbc_driver_postgresql")
    survey.run("DROP DATABASE IF EXISTS one", "DROP DATABASE IF EXISTS two", "CREATE DATABASE one")
    one, two = (replace(survey, database=database) for database in ("one", "two"))
    before = one.source(TABLE, "people")
    names = set(before.names(tmp_path))
    one.run("CREATE SCHEMA kept", "ALTER TABLE people SET SCHEMA kept")
    one.run("ALTER TABLE kept.people RENAME TO persons", "CREATE VIEW v AS TABLE kept.persons")
    survey.run("ALTER DATABASE one RENAME TO two")
    for by in (by_psycopg, by_adbc):
        for name in ("kept.persons", "v"):
            assert names & set(by(two, name).names(tmp_path))
    survey.run("DROP DATABASE two")


def test_a_table_of_a_server_has_one_account_with_its_partitions(of_server, survey, tmp_path):
    survey.run(
        "DROP TABLE IF EXISTS years",
        "CREATE TABLE years (sex text, year int) PARTITION BY LIST (year)",
        "CREATE TABLE y26 PARTITION OF years FOR VALUES IN (2026)",
    )
    assert together(tmp_path, of_server(survey, "years"), of_server(survey, "y26"))


def test_a_table_of_a_server_keeps_its_account_when_it_is_renamed(of_server, survey, tmp_path):
    source = of_server(survey, "people")
    source.names(tmp_path)
    survey.run("DROP TABLE IF EXISTS renamed", "ALTER TABLE people RENAME TO renamed")
    assert together(tmp_path, source, of_server(survey, "renamed"))


def test_a_view_of_duckdb_has_one_account_with_its_tables(file, tmp_path):
    connection = file(
        f"CREATE VIEW adults AS {ALL} people WHERE sex IN (SELECT sex FROM visits)",
        f"CREATE VIEW women AS {ALL} adults WHERE false",
        'CREATE TABLE "Odd ""one" AS SELECT 1 AS sex',
        f'CREATE VIEW odd AS {ALL} "Odd ""one"',
    )
    view, people, visits, odd, one = (
        DatabaseSource(connection, name)
        for name in ("women", "People", "main.visits", "odd", 'odd "one')
    )
    assert view.names(tmp_path)[0] == "duckdb:survey.duckdb/main.women"
    assert together(tmp_path, view, people)
    assert together(tmp_path, view, visits)
    assert together(tmp_path, odd, one)
    assert not together(tmp_path, people, visits)
    assert view.remarks() == (
        "'women' has one account in the ledger with what it reads: main.people and main.visits.",
    )
    assert people.remarks() == ()


@pytest.mark.parametrize("pattern", ["it''s.csv", "*.csv"])
def test_a_view_of_duckdb_has_one_account_with_the_files_it_reads(pattern, file, tmp_path):
    path = tmp_path / "it's.csv"
    path.write_text("sex\nm\n")
    connection = file(
        f"CREATE MACRO records() AS TABLE {ALL} read_csv('{tmp_path}/{pattern}')",
        f"CREATE VIEW outside AS {ALL} Records()",
    )
    source = DatabaseSource(connection, "outside")
    assert together(tmp_path, source, FileSource(path))
    assert str(path) in source.remarks()[0]
    before = source.fingerprint()
    path.write_text("sex\nf\n")
    assert source.fingerprint() != before


def test_files_that_a_view_of_duckdb_does_not_name_are_said_to_be_apart(file, tmp_path):
    (tmp_path / "x.csv").write_text("sex\nm\n")
    connection = file(
        f"CREATE VIEW hidden AS {ALL} read_csv('{tmp_path}' || '/x.csv')",
    )
    (remark,) = DatabaseSource(connection, "hidden").remarks()
    assert "READ_CSV, which cannot be followed" in remark


def test_a_view_of_spark_is_said_to_have_an_account_of_its_own(spark, tmp_path):
    people = in_spark(spark, TABLE, tmp_path, "people")
    spark.sql(f"{ALL} people").createOrReplaceTempView("adults")
    view = DatabaseSource(Connection("CLUSTER", "spark://"), "adults")
    assert not together(tmp_path, view, people)
    (remark,) = view.remarks()
    assert "reads what Spark keeps, which cannot be followed" in remark
    assert "an account of its own" in remark


# --- changes


def differs(source: DatabaseSource, before: object) -> bool:
    """Whether the fingerprint changes; a server counts rows a moment after they are written."""
    deadline = time.monotonic() + PATIENCE
    while source.fingerprint() == before and time.monotonic() < deadline:
        time.sleep(0.05)
    return source.fingerprint() != before


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO people VALUES ('m', 3)",
        "UPDATE people SET sex = 'f'",
        "DELETE FROM people WHERE n = 1",
        "TRUNCATE people",
        "ALTER TABLE people ALTER n TYPE int",
    ],
)
def test_a_change_in_a_table_of_a_server_is_seen(of_server, change, survey):
    source = of_server(survey, "people")
    before = source.fingerprint()
    assert source.fingerprint() == before
    survey.run(change)
    assert differs(source, before)


def test_a_change_below_a_view_of_a_server_is_seen(of_server, survey):
    survey.run(f"CREATE OR REPLACE VIEW adults AS {ALL} people")
    source = of_server(survey, "adults")
    before = source.fingerprint()
    survey.run("UPDATE people SET sex = 'f'")
    assert differs(source, before)
    before = source.fingerprint()
    survey.run(f"CREATE OR REPLACE VIEW adults AS {ALL} people WHERE sex = 'f'")
    assert differs(source, before)


def test_a_materialised_view_changes_when_it_is_made_anew(of_server, survey):
    survey.run(f"CREATE MATERIALIZED VIEW kept AS {ALL} people")
    source, people = of_server(survey, "kept"), of_server(survey, "people")
    before, of_people = source.fingerprint(), people.fingerprint()
    survey.run("UPDATE people SET sex = 'f'")
    assert differs(people, of_people)
    assert source.fingerprint() == before
    survey.run("REFRESH MATERIALIZED VIEW kept")
    assert differs(source, before)


# --- one file from the first look to the booking


def test_a_link_led_elsewhere_still_means_the_file_that_was_counted(tmp_path):
    link = tmp_path / "link.duckdb"
    one, other = tmp_path / "one.duckdb", tmp_path / "other.duckdb"
    in_duckdb(TABLE, one)
    in_duckdb(TABLE.slice(0, 1), other)
    link.symlink_to(one)
    source = DatabaseSource(Connection("LINK", f"duckdb://{link}"), "records")
    before = source.fingerprint()
    link.unlink()
    link.symlink_to(other)
    assert source.fingerprint() == before
    assert source.count(Domain.from_sizes({}), [()]).n_records == 2
    assert source.names(tmp_path)[0] == "duckdb:one.duckdb/main.records"
