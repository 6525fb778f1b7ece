"""Runs on databases: passwords are told nowhere, a stop while counting costs nothing, and functions
of somebody else's see no record."""

import signal
import sqlite3
import time
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import rpexplore as rp
from rpexplore.data.engines.connections import Connection
from rpexplore.data.engines.source import DatabaseSource
from rpexplore.data.source import PersonRule
from rpexplore.errors import DataError
from rpexplore.planning.plan import load_plan
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.serving.tasks import Task, finish_kept_tasks
from tests.attacks.books import PLAN
from tests.cli.program import Program, started
from tests.data.engines.servers import Server, in_duckdb
from tests.support.processor_time import PATIENCE

RECORDS = pa.table({"sex": [0, 1, 1, 0], "age": [0, 1, 2, 2]})
REPORT = """
from rpexplore.data.engines.session import Session
pieces = Session.pieces
def reported(*arguments):
    print("counting", flush=True)
    return pieces(*arguments)
Session.pieces = reported
"""


@pytest.fixture
def program(tmp_path, monkeypatch) -> Program:
    monkeypatch.chdir(tmp_path)
    tables = rp.Workload.all_up_to(rp.Domain.from_sizes({"sex": 2, "age": 3}), 2)
    plan_tables(tables, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1)).save("plan.json")
    return Program(tmp_path)


def on(table: str) -> list[str]:
    """A release of a table of the connection RECORDS."""
    where = ["--database", "RECORDS", "--table", table, "--ledger", "ledger.sqlite"]
    return ["release", "plan.json", *where, "--out", "out"]


def test_a_password_is_told_nowhere(program, postgres, monkeypatch, caplog):
    postgres.source(RECORDS, "people")
    url = postgres.url.replace("keeper@", "keeper:s3cr3t%2F@")
    monkeypatch.setenv("RECORDS", url)
    caplog.set_level(0)
    said = [
        program(*arguments).output
        for arguments in (
            [*on("people"), "--dry-run", "--stream"],
            on("nothing"),
            on("people"),
            on("people"),
            ["ledger", *on("people")[2:-2], "--json"],
            ["ledger", "--database", url, "--table", "people"],
        )
    ]
    monkeypatch.setenv("RECORDS", url.replace("/postgres?", "/none?"))
    said += [program(*on("people")).output, caplog.text]
    assert "leave their server" in said[0]
    assert len(list(Path("out").iterdir())) > 3
    for secret in ("s3cr3t", url):
        assert not [text for text in said if secret in text]
        files = [path for path in Path().rglob("*") if path.is_file()]
        assert not [path for path in files if secret.encode() in path.read_bytes()]


@pytest.fixture(params=["duckdb", "postgresql"])
def slow(request, tmp_path) -> Connection:
    """A connection with a view `slow` that nobody could wait for."""
    rows = "SELECT 1 AS sex, 1 AS age FROM"
    if request.param == "duckdb":
        connection = in_duckdb(RECORDS, tmp_path / "records.duckdb").connection
        with duckdb.connect(connection.location) as database:
            database.execute(f"CREATE VIEW slow AS {rows} range(100000000000000) t(n) WHERE n <> 1")
        return connection
    server: Server = request.getfixturevalue("postgres")
    server.run(
        "DROP VIEW IF EXISTS slow",
        f"CREATE VIEW slow AS {rows} generate_series(1, 10000) WHERE pg_sleep(0.1)::text = ''",
    )
    return server.connection


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("slow", "number"),
    [
        ("postgresql", signal.SIGINT),
        *(
            pytest.param(*each, marks=pytest.mark.nightly)
            for each in [
                ("postgresql", signal.SIGTERM),
                ("duckdb", signal.SIGINT),
                ("duckdb", signal.SIGTERM),
            ]
        ),
    ],
    indirect=["slow"],
)
def test_a_run_stopped_while_it_counts_is_not_booked(number, slow, program, monkeypatch):
    monkeypatch.setenv("RECORDS", slow.url)
    process = started(*on("slow"), patch=REPORT)
    assert process.stdout is not None
    assert any(line == "counting\n" for line in process.stdout)
    time.sleep(0.3)
    process.send_signal(number)
    process.communicate(timeout=PATIENCE)
    assert process.returncode != 0
    assert Ledger("ledger.sqlite").accounts() == ()
    assert not Path(".out.unfinished").exists()


def test_a_run_of_the_app_stopped_while_it_counts_is_not_booked(slow, program):
    source = DatabaseSource(slow, "slow")
    plan = load_plan("plan.json")
    task = Task(
        lambda progress: rp.release(
            plan, source, "out", ledger="ledger.sqlite", on_progress=progress
        ),
        kept_from=0.3,
    ).start()
    while task.doing != "Counting the records":
        task.wait(0.05)
    task.wait(0.5)
    finish_kept_tasks()
    assert not task.is_going
    assert task.error == "Cancelled."
    assert Ledger("ledger.sqlite").accounts() == ()


PERSONS = pa.table({"sex": ["F"] * 20 + ["M"] * 10, "pid": [f"p{n}" for n in range(30)]})
SEX = rp.Domain((rp.Attribute("sex", rp.Categories(("F", "M"))),))
ARGUMENTS = {
    "text": "varchar", "regexp_replace": "varchar, text, text", "lower": "varchar",
    "btrim": "varchar, text", "convert_to": "varchar, name", "encode": "bytea, varchar",
}  # fmt: skip


@pytest.fixture(params=["counted", "streamed", "ADBC"])
def of_server(request, postgres) -> DatabaseSource:
    """The table persons of a server, of columns for which the server's own functions need casts."""
    source = postgres.source(PERSONS, "persons")
    postgres.run(
        "ALTER TABLE persons ALTER sex TYPE varchar", "ALTER TABLE persons ALTER pid TYPE varchar"
    )
    if request.param != "ADBC":
        return replace(source, stream=request.param == "streamed")
    pytest.importorskip("adbc_driver_postgresql")
    return DatabaseSource(Connection("SERVER", f"adbc+{postgres.url}"), "persons", stream=True)


def sexes(source: DatabaseSource) -> list[int]:
    rule = PersonRule("pid", 1, "refuse")
    return source.count(SEX, [(0,)], person_rule=rule).counts((0,)).tolist()


@pytest.mark.by_day(1)
def test_functions_in_a_schema_of_the_path_are_not_taken_for_those_of_the_server(
    of_server, postgres
):
    """They would be called with every value, and in the name of whoever counts."""
    says = "LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'called with %', $1; END $$"
    made = [
        f"CREATE FUNCTION public.{name}({arguments}) RETURNS text {says}"
        for name, arguments in ARGUMENTS.items()
    ]
    made += [
        f"CREATE FUNCTION public.unequal(regproc, int) RETURNS boolean {says}",
        "CREATE OPERATOR public.<> (LEFTARG = regproc, RIGHTARG = int, FUNCTION = public.unequal)",
        f"CREATE FUNCTION public.same(varchar, varchar) RETURNS boolean {says}",
        "CREATE OPERATOR public.= (LEFTARG = varchar, RIGHTARG = varchar, FUNCTION = public.same)",
        # What the catalogue is asked is for the server to answer, too.
        "CREATE FUNCTION public.current_database(VARIADIC int[]) RETURNS text LANGUAGE sql "
        "AS 'SELECT NULL'",
    ]
    names = [f"FUNCTION public.{name}" for name in [*ARGUMENTS, "current_database"]]
    names += ["FUNCTION public.unequal CASCADE", "FUNCTION public.same CASCADE"]
    try:
        postgres.run(*made)
        assert sexes(of_server) == [20, 10]
        of_server.fingerprint()
    finally:
        postgres.run(*(f"DROP {name.replace(' public', ' IF EXISTS public')}" for name in names))


def test_tables_are_found_where_the_path_of_the_role_says(postgres):
    pytest.importorskip("adbc_driver_postgresql")
    postgres.source(PERSONS, "persons")
    postgres.run(
        "DROP SCHEMA IF EXISTS survey CASCADE",
        "CREATE SCHEMA survey",
        "CREATE TYPE survey.sexes AS ENUM ('F', 'M')",
        "CREATE TABLE survey.replies AS SELECT sex::survey.sexes, pid FROM persons LIMIT 25",
        "CREATE TABLE survey.persons_too AS TABLE persons",
        "ALTER ROLE keeper SET search_path = nowhere, survey, public",
    )
    try:
        assert sexes(DatabaseSource(postgres.connection, "replies")) == [20, 5]
        assert sexes(DatabaseSource(postgres.connection, "persons")) == [20, 10]
        of_driver = DatabaseSource(Connection("SERVER", f"adbc+{postgres.url}"), "persons", True)
        assert sexes(of_driver) == [20, 10]
        given = Connection("SERVER", f"adbc+{postgres.url}&options=-c%20work_mem%3D8MB")
        assert sexes(DatabaseSource(given, "survey.persons_too", True)) == [20, 10]
    finally:
        postgres.run("ALTER ROLE keeper RESET search_path")


@pytest.mark.by_day(2)
def test_rows_that_a_policy_hides_are_not_left_out_without_a_word(of_server, postgres):
    postgres.run(
        "DO $$ BEGIN CREATE ROLE counter LOGIN; EXCEPTION WHEN duplicate_object THEN END $$",
        "ALTER TABLE persons ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY visible ON persons USING (sex = 'F')",
        "GRANT SELECT ON persons TO counter",
        "GRANT EXECUTE ON FUNCTION pg_control_system() TO counter",
    )
    url = of_server.connection.url
    limited = replace(of_server, connection=Connection("OTHER", url.replace("keeper", "counter")))
    with pytest.raises(DataError, match="policy of row level security hides rows of the table"):
        sexes(limited)
    assert sexes(of_server) == [20, 10]  # by its owner, to whom the policy does not apply


@pytest.mark.parametrize("engine", ["duckdb", "sqlite"])
def test_a_table_in_other_letters_has_the_same_account(engine, tmp_path):
    """Both engines take People and PEOPLE for one name."""
    path = tmp_path / f"x.{engine}"
    connect = duckdb.connect if engine == "duckdb" else sqlite3.connect
    with closing(connect(path)) as database:
        database.execute("CREATE TABLE People (a int)")
        database.execute("INSERT INTO People VALUES (0), (1)")
        database.execute("CREATE VIEW Adults AS SELECT a FROM pEOPLE")
        database.commit()
    connection = Connection("RECORDS", f"{engine}:///{path}")
    for n_runs, name in enumerate(("People", "PEOPLE", "main.people", "aDULTS"), 1):
        source = DatabaseSource(connection, name)
        rp.release(PLAN, source, tmp_path / f"{n_runs}", ledger=tmp_path / "ledger.sqlite")
        assert len(Ledger(tmp_path / "ledger.sqlite").account(source).entries) == n_runs


def test_macros_in_a_file_are_not_taken_for_functions_of_duckdb(tmp_path):
    source = in_duckdb(PERSONS, tmp_path / "persons.duckdb", "persons")
    with duckdb.connect(source.connection.location) as database:
        for name in ("text", "lower", "trim", "nfc_normalize", "hex"):
            database.execute(f"CREATE MACRO {name}(x) AS 'M'")
        for name in ("encode", "coalesce", "sum", "count", "min", "max"):
            with suppress(duckdb.Error):
                database.execute(f"CREATE MACRO {name}(x) AS 7")
        database.execute("CREATE MACRO regexp_replace(x, y, z) AS 'M'")
        database.execute("CREATE MACRO duckdb_views() AS TABLE SELECT 1 AS view_name")
        database.execute("CREATE SCHEMA other")
        database.execute("CREATE TABLE other.persons AS FROM main.persons LIMIT 21")
    assert sexes(source) == [20, 10]
    assert sexes(replace(source, table="other.persons")) == [20, 1]
    assert source.names(tmp_path)[0] == "duckdb:persons.duckdb/main.persons"
