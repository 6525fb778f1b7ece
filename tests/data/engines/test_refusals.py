"""What engines refuse, told as one error that names the remedy and shows no record."""

import subprocess
import sys
import time

import duckdb
import pytest

from rpexplore import Domain
from rpexplore.data.engines.connections import Connection
from rpexplore.data.engines.source import DatabaseSource
from rpexplore.errors import DataError, MissingExtraError
from tests.data.engines.people import DOMAIN, people
from tests.data.engines.servers import in_duckdb


def refusal(source: DatabaseSource, domain: Domain = DOMAIN) -> DataError:
    with pytest.raises(DataError) as caught:
        source.count(domain, [(0,)])
    return caught.value


@pytest.mark.parametrize("name", ["nothing", "nowhere.people"])
def test_a_table_that_is_not_there(name, store):
    source = store(people(5))
    error = refusal(DatabaseSource(source.connection, name))
    assert f"there is no table {name!r}" in str(error)


def test_names_of_postgresql_are_taken_letter_by_letter(postgres):
    source = DatabaseSource(postgres.source(people(5), "people").connection, "People")
    assert "there is no table 'People'" in str(refusal(source))


def test_a_table_that_is_not_there_in_spark(spark):
    error = refusal(DatabaseSource(Connection("CLUSTER", "spark://"), "nothing"))
    assert "there is no table 'nothing'" in str(error)


@pytest.mark.parametrize("name", ["", "a.b.c", "a.", ".a"])
def test_what_names_no_table(name):
    with pytest.raises(DataError, match=r"schema\.table"):
        DatabaseSource(Connection("X", "duckdb:///x"), name)


def test_a_column_that_is_not_there(store):
    error = refusal(store(people(5)), Domain.from_sizes({"sex2": 2}))
    assert "have no column 'sex2'" in str(error)
    assert "note" not in str(error)


def test_a_table_that_may_not_be_read(postgres):
    postgres.source(people(5), "people")
    postgres.run("DROP ROLE IF EXISTS guest", "CREATE ROLE guest LOGIN PASSWORD 's3cr3t'")
    url = postgres.url.replace("keeper@", "guest:s3cr3t@")
    error = refusal(DatabaseSource(Connection("GUEST", url), "people"))
    assert "may not read the table 'people'" in str(error)
    assert "s3cr3t" not in error.on_screen()


@pytest.mark.parametrize(
    ("url", "remedy"),
    [
        ("postgresql://ann:s3cr3t@127.0.0.1:1/survey", "no server answers"),
        ("postgresql://ann:s3cr3t@/x?host=/nowhere", "no server answers"),
        ("postgresql://ann:s3cr3t@[::1/x", "write postgresql://user:password@host"),
        ("postgresql://ann:s3cr3t@localhost:99999/x", "host and port"),
        ("postgresql://ann:s3cr3t@nowhere.invalid/x", "host and port"),
        ("postgresql://ann:s3cr3t@localhost/x?nonsense=s3cr3t", "write postgresql://user:password"),
    ],
)
def test_a_server_that_cannot_be_reached(url, remedy):
    error = refusal(DatabaseSource(Connection("AWAY", url), "people"))
    assert "'AWAY'" in str(error)
    assert remedy in str(error)
    assert "ann" not in str(error)
    assert "s3cr3t" not in error.on_screen()


def test_a_server_that_lets_nobody_in(postgres):
    """Access as it is set up where passwords count; the fixture's server trusts everybody."""
    rules = postgres.folder / "data" / "pg_hba.conf"
    trusting = rules.read_text()
    postgres.run("DROP ROLE IF EXISTS ann", "CREATE ROLE ann LOGIN PASSWORD 's3cr3t'")
    loaded = "SELECT pg_conf_load_time()"
    before = postgres.run(loaded)
    rules.write_text(f"local all ann scram-sha-256\n{trusting}")
    postgres.run("SELECT pg_reload_conf()")
    try:
        while postgres.run(loaded) == before:
            time.sleep(0.05)
        for at, remedy in {
            "ann:wr0ng@/postgres": "refuses the user or the password",
            "ann@/postgres": "refuses the user or the password",
            "nobody:wr0ng@/postgres": "refuses the user or the password",
            "ann:s3cr3t@/wr0ng": "has no such database",
        }.items():
            url = postgres.url.replace("keeper@/postgres", at)
            error = refusal(DatabaseSource(Connection("DOOR", url), "people"))
            assert f"At the connection 'DOOR' the server {remedy}" in str(error), at
            assert "wr0ng" not in str(error)
            assert "s3cr3t" not in error.on_screen()
    finally:
        rules.write_text(trusting)
        postgres.run("SELECT pg_reload_conf()")


def test_a_duckdb_file_that_is_not_there_or_is_none(tmp_path):
    path = tmp_path / "records.duckdb"
    source = DatabaseSource(Connection("FILE", f"duckdb://{path}"), "records")
    assert "not there" in str(refusal(source))
    for content in (b"nonsense" * 1000, b"", b"SQLite format 3\x00" + bytes(4096)):
        path.write_bytes(content)
        assert "damaged, or of another kind" in str(refusal(source))
    path.unlink()
    path.mkdir()
    assert "is a folder" in str(refusal(source))


def test_a_duckdb_file_that_another_program_writes_to(tmp_path):
    source = in_duckdb(people(5), tmp_path / "records.duckdb")
    location = source.connection.location
    writing = f"import duckdb; c = duckdb.connect({location!r}); print(flush=True)"
    with subprocess.Popen(
        [sys.executable, "-c", f"{writing}; input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert "close it there, and run again" in str(refusal(source))
        process.communicate(b"\n")
    assert source.count(DOMAIN, [()]).n_records == 5


def test_a_view_whose_table_is_gone(tmp_path):
    source = in_duckdb(people(5), tmp_path / "records.duckdb")
    with duckdb.connect(source.connection.location) as database:
        database.execute("CREATE VIEW left_over AS FROM records")
        database.execute("DROP TABLE records")
    error = refusal(DatabaseSource(source.connection, "left_over"))
    assert "'left_over' (or, of a view, none that it reads)" in str(error)


@pytest.mark.parametrize("package", ["ibis", "duckdb"])
def test_a_missing_package_tells_what_to_install(package, tmp_path, monkeypatch):
    source = in_duckdb(people(5), tmp_path / "records.duckdb")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"'{package}' .*\"rpexplore\[duckdb\]\""):
        source.count(DOMAIN, [(0,)])


def test_nothing_is_ever_written(postgres):
    """Not even by what stands in a view."""
    postgres.run(
        "DROP VIEW IF EXISTS sly",
        "CREATE TABLE IF NOT EXISTS written (x int)",
        "CREATE OR REPLACE FUNCTION writes() RETURNS text VOLATILE LANGUAGE sql AS "
        "$$ INSERT INTO public.written VALUES (1); SELECT 'm' $$",
        "CREATE VIEW sly AS SELECT writes() AS sex FROM generate_series(1, 3)",
    )
    error = refusal(DatabaseSource(postgres.connection, "sly"))
    assert "read-only" in error.private
    assert postgres.run("SELECT count(*) FROM written") == [(0,)]
