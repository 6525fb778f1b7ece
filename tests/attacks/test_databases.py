"""Runs on databases: their passwords are told nowhere, and a stop while counting costs nothing."""

import signal
import time
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import rpexplore as rp
from pages.components.shared.background import Task, finish_kept_tasks
from rpexplore.data.engines.connections import Connection
from rpexplore.data.engines.source import DatabaseSource
from rpexplore.planning.plan import load_plan
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.ledger.ledger import Ledger
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
