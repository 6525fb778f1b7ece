"""The command line: where records may lie, dry runs, stopped runs, records of a person."""

import json
from pathlib import Path

import duckdb
import pandas as pd
import pytest

from rpexplore.releases.ledger import Ledger
from rpexplore.releases.table_folder import Release
from tests.cli.test_main import BUDGET, Program
from tests.cli.test_main import planned as planned
from tests.cli.test_main import run as run
from tests.support.stopped_runs import killed

TABLE = "rpexplore.releases.table_folder.FolderWriter.table"


@pytest.fixture
def database(planned, monkeypatch) -> Path:
    """The same records as a table of a DuckDB file, by the name of its connection."""
    path = Path("survey.duckdb").absolute()
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE people AS SELECT * FROM read_csv('records.csv')")
    monkeypatch.setenv("SURVEY_DB", f"duckdb:///{path}")
    return path


@pytest.fixture
def without_noise(monkeypatch):
    import numpy as np

    monkeypatch.setattr(
        "rpexplore.releases.measurement.discrete_gaussian",
        lambda size, gamma_squared: np.zeros(size, dtype=np.int64),
    )


def values(folder: str) -> dict:
    done = Release.load(folder)
    return {
        table: done.table(table)["value"].round(6).tolist() for table in done.plan.workload.tables
    }


def message(program: Program, *arguments: str) -> str:
    """The error of a run, which says before what it would have cost."""
    result = program(*arguments)
    assert result.exit_code == 2, result.output
    return result.stderr


# ---- dry runs


def test_a_dry_run_checks_everything_and_spends_nothing(planned):
    before = planned.files()
    command = ["release", "plan.json", "records.csv", "--out", "out", "--dry-run"]
    text = planned.done(*command)
    assert "each value in it is one of the plan's" in text
    assert "nothing was charged, nothing was written" in text
    assert "90" not in text
    assert planned.json(*command)["charged_rho"] == "0"
    assert planned.files() == before


def test_a_dry_run_refuses_what_a_run_would(planned):
    Path("records.csv").write_text("age,sex,region\nyoung,F,R9\n")
    command = ["release", "plan.json", "records.csv", "--out", "out"]
    assert "not in the codebook" in planned.refused(*command, "--dry-run")
    assert "not in the codebook" in message(planned, *command)
    Path("out").mkdir()
    assert "already something" in planned.refused(*command, "--dry-run")


def test_a_dry_run_of_queries(run):
    arguments = ["--query", "old: age == 'old' ± 20", "--minimum-budget"]
    run.done("queries", "plan", "--codebook", "codebook.csv", *arguments, "--out", "q.json")
    text = run.done("release", "q.json", "records.csv", "--out", "out", "--dry-run")
    assert "nothing was charged" in text


# ---- stopped runs


def test_a_stopped_run_is_finished_for_nothing(planned):
    killed(TABLE, 3, "plan.json", "records.csv", "out")
    again = message(planned, "release", "plan.json", "records.csv", "--out", "out", "--yes")
    assert "rpexplore release --resume --out out" in again
    facts = planned.json("release", "--resume", "--out", "out")
    assert facts["charged_rho"] == "0"
    assert facts["table_count"] == 7
    (entry,) = Ledger.beside("records.csv").account("records.csv").runs
    assert entry.state == "finished"
    assert "no run into" in planned.refused("release", "--resume", "--out", "nothing")


def test_a_failure_after_the_drawing_says_how_to_go_on(planned, monkeypatch):
    def full(self, position):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(TABLE, full)
        failed = planned("release", "plan.json", "records.csv", "--out", "out", "--json")
    error = json.loads(failed.stdout)["error"]
    assert "No space left on device" in error
    assert "--resume --out out" in error
    assert "stays charged" in error
    assert "cost nothing" in planned.done("release", "--resume", "--out", "out")


@pytest.mark.parametrize(
    "more", [["plan.json", "records.csv"], ["--limit-rho", "1"], ["--dry-run"], ["plan.json"]]
)
def test_resume_takes_nothing_but_the_folder_and_the_ledger(more, planned):
    assert "--resume finishes a run from" in planned.refused(
        "release", *more, "--resume", "--out", "out"
    )


# ---- databases


def test_a_database_gives_the_release_that_its_file_gives(database, planned, without_noise):
    planned.done("release", "plan.json", "records.csv", "--out", "of-file")
    where = ["--database", "SURVEY_DB", "--table", "people"]
    planned.done("release", "plan.json", *where, "--out", "of-database")
    assert values("of-file") == values("of-database")
    text = planned.done("ledger", *where)
    assert "duckdb:survey.duckdb/main.people" in text
    assert "Spent  ρ = 0.1 for one record" in text
    # Other records than those of the file, in the same ledger.
    assert "Spent  ρ = 0.1 for one record" in planned.done("ledger", "records.csv")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ([], "got neither"),
        (["records.csv", "--database", "SURVEY_DB", "--table", "people"], "got both"),
        (["--database", "SURVEY_DB"], "go together"),
        (["records.csv", "--table", "people"], "go together"),
        (["--database", "NOWHERE", "--table", "people"], "no connection 'NOWHERE'"),
        (["--database", "SURVEY_DB", "--table", "nothing"], "nothing"),
    ],
)
def test_records_are_named_in_one_way(options, problem, database, planned):
    error = message(planned, "release", "plan.json", *options, "--out", "out")
    assert problem in error
    assert str(database) not in error


def test_a_plan_and_a_folder_are_needed(planned):
    assert "Name the plan" in planned.refused("release", "--out", "out")
    assert "--out FOLDER" in planned.refused("release", "plan.json", "records.csv")


# ---- records of a person


@pytest.fixture
def of_persons(run) -> Program:
    """Six records of five persons, two of them of one; a plan for at most one each."""
    frame = pd.DataFrame(
        {
            "who": [1, 2, 3, 3, 4, 5],
            "age": ["young"] * 3 + ["old"] * 3,
            "sex": ["F"] * 6,
            "region": ["R1"] * 6,
            "year": [1, 1, 2, 1, 1, 1],
        }
    )
    frame.to_csv("records.csv", index=False)
    run.done(
        *("plan", "codebook.csv", "--up-to", "1", *BUDGET),
        *("--records-per-person", "1", "--out", "plan.json"),
    )
    return run


def test_persons_with_more_records_are_refused_before_anything_is_spent(of_persons):
    command = ["release", "plan.json", "records.csv", "--out", "out", "--person-id", "who"]
    assert "'who'" in message(of_persons, *command)
    assert Ledger.beside("records.csv").account("records.csv").runs == ()


@pytest.mark.parametrize(("order", "old"), [([], 2), (["--person-order", "year"], 3)])
def test_of_each_person_the_first_records_are_counted(order, old, of_persons, without_noise):
    rule = ["--person-id", "who", "--excess", "keep-first", *order]
    of_persons.done("release", "plan.json", "records.csv", "--out", "out", *rule)
    done = Release.load("out")
    assert done.table(())["value"].tolist() == pytest.approx([5])
    assert done.table(("age",)).set_index("age")["value"]["old"] == pytest.approx(old)
    assert "first 1 record" in done.manifest["records_per_person"]
    assert done.manifest["records_per_person"] in (done.folder / "README.md").read_text()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--excess", "keep-first"], "goes with --person-id"),
        (["--person-id", "who", "--person-order", "year"], "goes with --excess"),
        (["--person-id", "nobody"], "nobody"),
    ],
)
def test_rules_that_make_no_sense(options, problem, of_persons):
    command = ["release", "plan.json", "records.csv", "--out", "out", *options]
    assert problem in message(of_persons, *command)


def test_a_plan_for_records_knows_no_persons(planned):
    command = ["release", "plan.json", "records.csv", "--out", "out", "--person-id", "age"]
    assert "protects one record" in planned.refused(*command)


def test_a_dry_run_says_what_is_taken_for_granted(of_persons):
    text = of_persons.done("release", "plan.json", "records.csv", "--out", "out", "--dry-run")
    assert "nobody has more than 1 record is taken for granted" in text


def test_a_dry_run_refuses_a_ledger_in_no_folder(planned):
    command = ["release", "plan.json", "records.csv", "--out", "out", "--dry-run"]
    assert "no folder" in planned.refused(*command, "--ledger", "nowhere/book.sqlite")


def test_an_address_in_the_place_of_a_name_is_not_said_again(planned):
    where = ["--database", "postgresql://me:s3cr3t@host/db", "--table", "people"]
    error = message(planned, "release", "plan.json", *where, "--out", "out")
    assert "by its name" in error
    assert "s3cr3t" not in error


def test_a_schema_may_bear_the_name_of_its_file(planned, monkeypatch):
    with duckdb.connect("survey.duckdb") as connection:
        connection.execute("CREATE SCHEMA survey.survey")
        connection.execute(
            "CREATE TABLE survey.survey.people AS SELECT * FROM read_csv('records.csv')"
        )
    monkeypatch.setenv("SURVEY_DB", "duckdb://survey.duckdb")
    where = ["--database", "SURVEY_DB", "--table", "survey.people"]
    planned.done("release", "plan.json", *where, "--out", "out")
    assert Release.load("out")
