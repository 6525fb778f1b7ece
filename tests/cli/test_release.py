"""The command line: releases and their ledger, dry runs, stopped runs, records of a person."""

import json
import re
from fractions import Fraction
from pathlib import Path

import duckdb
import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.data.counting import BatchSource
from rpexplore.errors import LedgerError
from rpexplore.planning.areas.area_planner import plan_areas
from rpexplore.planning.table_plan import TablePlan
from rpexplore.releases.area_release import AreaRelease
from rpexplore.releases.charged_run import write_measured
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.releases.table_release import TableRelease
from tests.cli.program import BUDGET, Program
from tests.support.ledgers import database_ledger
from tests.support.stopped_runs import killed

TABLE = "rpexplore.releases.table_release.TableWriter.table"


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
    done = TableRelease.load(folder)
    return {
        table: done.table(table)["value"].round(6).tolist() for table in done.plan.workload.tables
    }


def message(program: Program, *arguments: str) -> str:
    """The error of a run, which says before what it would have cost."""
    result = program(*arguments)
    assert result.exit_code == 2, result.output
    return result.stderr


# ---- runs and the ledger


def test_release_says_what_it_charges_and_where_the_tables_are(planned):
    text = planned.done("release", "plan.json", "records.csv", "--out", "out")
    assert "Protects  one record" in text
    assert "Cost      ρ = 0.1 for this run" in text
    assert "Spent     ρ = 0 on this data so far" in text
    assert "Limit     none in the ledger" in text
    assert "The 7 noisy tables are in out" in text
    assert "Charged ρ = 0.1; spent on this data so far: ρ = 0.1" in text
    assert Path("out/manifest.json").is_file()
    assert "was run on these records before" not in text
    again = planned.done("release", "plan.json", "records.csv", "--out", "out2")
    assert "Spent     ρ = 0.1 on this data so far" in again
    assert re.search(r"This plan was run on these records before, at .* UTC into .*/out\. ", again)
    assert "spent on this data so far: ρ = 0.2" in again


def test_a_plan_for_areas_is_released_by_the_same_verb(run):
    Path("people.csv").write_text("state,town,sex\nN,1,F\nN,2,M\nS,1,F\n", "utf-8")
    tree = rp.AreaTree.from_columns({"state": ["N", "N", "S"], "town": ["1", "2", "1"]})
    tables = rp.Workload.of(rp.Domain.load("codebook.csv"), [("sex",)])
    asked = rp.AreaWorkload.of_levels(tree, dict.fromkeys(tree.levels, tables))
    plan = plan_areas(asked, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.1"))
    plan.save("plan.json")
    text = run.done("release", "plan.json", "people.csv", "--out", "out")
    assert "The 6 noisy tables in areas are in out" in text
    assert AreaRelease.load("out").table("town", "sex")["sex"].tolist() == ["F", "M"] * 3


def test_release_for_persons_says_their_rho_and_books_that_of_records(run):
    arguments = ["--up-to", "1", *BUDGET, "--records-per-person", "2", "--out", "plan.json"]
    run.done("plan", "codebook.csv", *arguments)
    facts = run.json("release", "plan.json", "records.csv", "--out", "out", "--limit-rho", "0.3")
    charged = Fraction(facts["charged_rho"])
    assert charged == TablePlan.load("plan.json").rho
    assert Fraction(facts["spent_rho"]) == charged
    assert facts["limit_rho"] == "0.3"
    account = run.json("ledger", "records.csv")
    assert Fraction(account["spent_rho"]) == charged / 4
    assert Fraction(account["limit_rho"]) == Fraction(3, 40)
    assert account["runs"][0]["state"] == "finished"


def test_release_beyond_the_budget_limit_is_refused(planned):
    planned.done("release", "plan.json", "records.csv", "--out", "a", "--limit-rho", "0.15")
    result = planned("release", "plan.json", "records.csv", "--out", "b")
    assert result.exit_code == 2
    assert "Limit     ρ = 0.15" in result.stdout
    assert re.fullmatch(r"error: .*left of its budget limit.*\n", result.stderr)
    assert not Path("b").exists()


def test_release_counts_unknown_values_as_the_option_says(planned):
    with Path("records.csv").open("a", encoding="utf-8") as file:
        file.write("old,F,Atlantis\n")
    region = ["--unknown-values", "region=R3"]
    planned.done("release", "plan.json", "records.csv", "--out", "o", *region)
    for wrong in ("height=R3", "region", "=R3"):
        refusal = planned.refused(
            "release", "plan.json", "records.csv", "--out", "p", "--unknown-values", wrong
        )
        named = "no attribute 'height'" if wrong.startswith("height") else "such as region=R12"
        assert named in refusal
    twice = ["--unknown-values", "region=R3", "--unknown-values", "region=R2"]
    refusal = planned.refused("release", "plan.json", "records.csv", "--out", "p", *twice)
    assert "twice" in refusal


@pytest.mark.parametrize("debug", ["0", "1"])
def test_values_of_records_are_shown_on_the_screen_only(planned, monkeypatch, debug):
    monkeypatch.setenv("RPEXPLORE_DEBUG", debug)
    with Path("records.csv").open("a", encoding="utf-8") as file:
        file.write("old,F,\x1b[31mAtlantis\n")
    command = ["release", "plan.json", "records.csv", "--out", "out"]
    result = planned(*command)
    assert result.exit_code == 2
    assert "Atlantis" not in result.output  # standard error may be a file
    assert "in a terminal" in result.stderr
    assert "Nothing was charged" in result.stderr
    monkeypatch.setattr("rpexplore.cli.console.on_a_terminal", lambda: True)
    result = planned(*command)
    assert result.exit_code == 2
    assert "Atlantis" not in result.stdout
    assert "Atlantis" in result.stderr
    assert "\x1b" not in result.stderr
    result = planned("release", "plan.json", "records.csv", "--out", "out", "--json")
    assert result.exit_code == 2
    assert "'region'" in json.loads(result.stdout)["error"]
    assert "Atlantis" not in result.output
    # Nothing was charged, and no file holds the value but the records.
    assert Ledger.beside("records.csv").account("records.csv").entries == ()
    holding = [p.name for p in Path().rglob("*") if p.is_file() and b"Atlantis" in p.read_bytes()]
    assert holding == ["records.csv"]


def test_a_budget_limit_can_be_lifted(planned):
    planned.done("ledger", "records.csv", "--limit-record-rho", "1/3")
    assert "ρ = 0.333333" in planned.done("ledger", "records.csv")
    assert re.search(
        r"^Limit +none$",
        planned.done("ledger", "records.csv", "--limit-record-rho", "none"),
        re.MULTILINE,
    )


def test_release_asks_where_somebody_can_answer(planned, monkeypatch):
    monkeypatch.setattr("rpexplore.cli.release.interactive", lambda: True)
    command = ["release", "plan.json", "records.csv", "--out", "out"]
    refused = planned(*command, input="n\n")
    assert refused.exit_code == 2
    assert "nothing was charged" in refused.stderr
    assert not Path("out").exists()
    # The question does not disturb the JSON on standard output.
    agreed = planned(*command, "--json", input="y\n")
    assert agreed.exit_code == 0
    assert json.loads(agreed.stdout)["table_count"] == 7
    assert planned(*command[:-1], "out2", "--yes", input="").exit_code == 0


def test_a_stop_or_failure_after_booking_says_that_it_stays_charged(planned, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    def fail(*_):
        raise OSError(28, "No space left on device", "out")

    command = ["release", "plan.json", "records.csv", "--out", "out"]
    monkeypatch.setattr("rpexplore.releases.release.write_measured", stop)
    stopped = planned(*command)
    assert stopped.exit_code == 130
    assert stopped.stderr == (
        "Stopped. The run was booked before: ρ = 0.1 stays charged. Run it again, into the same "
        "folder: that costs nothing further.\n"
    )
    monkeypatch.setattr("rpexplore.releases.release.write_measured", fail)
    failed = planned(*command, "--json")
    assert failed.exit_code == 2
    refusal = json.loads(failed.stdout)["error"]
    assert "No space left on device" in refusal
    assert "ρ = 0.1 stays charged" in refusal
    monkeypatch.setattr("rpexplore.data.files.source.FileSource.count", stop)
    early = planned(*command)
    assert early.exit_code == 130
    assert "costs nothing further" in early.stderr
    account = Ledger.beside("records.csv").account("records.csv")
    assert [run.state for run in account.entries] == ["started"]
    assert not Path("out").exists()
    monkeypatch.setattr("rpexplore.data.files.source.FileSource.count", BatchSource.count)
    monkeypatch.setattr("rpexplore.releases.release.write_measured", write_measured)
    planned.done(*command)
    account = Ledger.beside("records.csv").account("records.csv")
    assert [run.state for run in account.entries] == ["finished"]


def test_a_stop_says_so_where_the_ledger_cannot_be_read_either(planned, monkeypatch):
    def stop(*_):
        Path("rpexplore-ledger.sqlite").write_bytes(b"")
        raise KeyboardInterrupt

    monkeypatch.setattr("rpexplore.releases.release.write_measured", stop)
    stopped = planned("release", "plan.json", "records.csv", "--out", "out")
    assert stopped.exit_code == 130
    assert "Once the ledger can be read, it tells whether the run is charged" in stopped.stderr


def test_ledger_shows_runs_and_sets_the_budget_limit(planned):
    assert "ρ = 0 for one record" in planned.done("ledger", "records.csv")
    planned.done("release", "plan.json", "records.csv", "--out", "out", "--ledger", "book.sqlite")
    text = planned.done(
        "ledger", "records.csv", "--ledger", "book.sqlite", "--limit-record-rho", "1/3"
    )
    assert "Spent   ρ = 0.1 for one record" in text
    assert "Limit   ρ = 0.333333 for one record" in text
    assert re.search(r"^ +1 .* finished +\w{12}… +/.*/out$", text, re.MULTILINE)
    facts = planned.json("ledger", "records.csv", "--ledger", "book.sqlite")
    assert facts["limit_rho"] == "1/3"
    assert facts["runs"][0]["plan_sha256"] == TablePlan.load("plan.json").sha256
    assert "spent_rho" in planned.json("ledger", "records.csv")
    low = ["--ledger", "book.sqlite", "--limit-record-rho", "0.01"]
    assert "not below what is spent" in planned.refused("ledger", "records.csv", *low)
    assert "check the path" in planned.refused("ledger", "none.csv")


# ---- dry runs


def test_a_dry_run_checks_everything_and_spends_nothing(planned):
    before = planned.files()
    command = ["release", "plan.json", "records.csv", "--out", "out", "--dry-run"]
    text = planned.done(*command)
    assert "each value in it is one of the plan's" in text
    assert "nothing was charged, nothing was written" in text
    assert planned.json(*command)["charged_rho"] == "0"
    # Other records: not a character of it changes, so nothing tells how many there are.
    Path("records.csv").write_text("age,sex,region\nyoung,F,R1\n")
    assert planned.done(*command) == text
    assert planned.files() == before


def test_a_dry_run_refuses_what_a_run_would(planned):
    Path("records.csv").write_text("age,sex,region\nyoung,F,R9\n")
    command = ["release", "plan.json", "records.csv", "--out", "out"]
    assert "not in the codebook" in planned.refused(*command, "--dry-run")
    assert "not in the codebook" in message(planned, *command)
    Path("out").mkdir()
    for more in (["--dry-run"], ["--yes"]):  # nothing is announced before
        assert "already something" in planned.refused(*command, *more)


def test_a_dry_run_of_queries(run):
    arguments = ["--count", "old: age == 'old' ± 20", "--minimum-budget", "targets"]
    run.done("plan", "codebook.csv", *arguments, "--out", "q.json")
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
    (entry,) = Ledger.beside("records.csv").account("records.csv").entries
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
    assert error.count("--resume --out out") == error.count("charged") == 1
    again = planned.refused("release", "plan.json", "records.csv", "--resume", "--out", "out")
    assert "--resume finishes a run from" in again
    assert "cost nothing" in planned.done("release", "--resume", "--out", "out")


@pytest.mark.parametrize("more", [["--limit-rho", "1"], ["--dry-run"]])
def test_resume_takes_nothing_but_the_folder_and_the_ledger(more, planned):
    assert "--resume finishes a run from" in planned.refused(
        "release", *more, "--resume", "--out", "out"
    )


# ---- databases


@pytest.mark.nightly
def test_a_database_gives_the_release_that_its_file_gives(database, planned, without_noise):
    planned.done("release", "plan.json", "records.csv", "--out", "of-file")
    where = ["--database", "SURVEY_DB", "--table", "people"]
    planned.done("release", "plan.json", *where, "--out", "of-database")
    assert values("of-file") == values("of-database")
    text = planned.done("ledger", *where)
    assert "duckdb:survey.duckdb/main.people" in text
    assert "Spent   ρ = 0.1 for one record" in text
    # Other records than those of the file, in the same ledger.
    assert "Spent   ρ = 0.1 for one record" in planned.done("ledger", "records.csv")


def test_a_run_says_which_file_of_a_view_cannot_be_followed(database, planned):
    """As a dry run does: whoever made none saw only that the view was charged by itself."""
    with duckdb.connect(str(database)) as connection:
        connection.execute(
            f"CREATE VIEW hidden AS FROM read_csv('{database.parent}' || '/records.csv')"
        )
    where = ["--database", "SURVEY_DB", "--table", "hidden", "--out", "of-view"]
    assert "READ_CSV, which cannot be followed" in planned.done("release", "plan.json", *where)


@pytest.mark.by_day(4)
@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ([], "got neither"),
        (["records.csv", "--database", "SURVEY_DB", "--table", "people"], "got both"),
        (["--database", "SURVEY_DB"], "go together"),
        (["records.csv", "--table", "people"], "go together"),
        (["records.csv", "--stream"], "--stream goes with --database"),
        (["--database", "SURVEY_DB", "--table", "people", "--stream"], "leave streaming out"),
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
    assert Ledger.beside("records.csv").account("records.csv").entries == ()


@pytest.mark.parametrize(("order", "old"), [([], 2), (["--person-order", "year"], 3)])
def test_of_each_person_the_first_records_are_counted(order, old, of_persons, without_noise):
    rule = ["--person-id", "who", "--excess", "keep-first", *order]
    of_persons.done("release", "plan.json", "records.csv", "--out", "out", *rule)
    done = TableRelease.load("out")
    assert done.table(())["value"].tolist() == pytest.approx([5])
    assert done.table(("age",)).set_index("age")["value"]["old"] == pytest.approx(old)
    assert "first 1 record" in done.manifest["records_per_person"]
    assert done.manifest["records_per_person"] in (done.folder / "README.md").read_text()


def test_texts_call_who_is_protected_as_the_plan_does(of_persons):
    stated = ["--records-per-person", "1", "--unit", "household", "--out", "own.json"]
    of_persons.done("plan", "codebook.csv", "--up-to", "1", *BUDGET, *stated)
    command = ["release", "own.json", "records.csv", "--out", "out", "--person-id", "who"]
    assert "A household (column 'who') has more" in message(of_persons, *command)
    of_persons.done(*command, "--excess", "keep-first")
    readme = Path("out/README.md").read_text("utf-8")
    assert "for one household with at most 1 record: adding" in readme
    assert "Of every household, by the column 'who', the first" in readme
    assert "person" not in readme
    assert TableRelease.load("out").manifest["unit_noun"] == "household"


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
    assert "no person has more than 1 record is taken for granted" in text


def test_a_dry_run_refuses_a_ledger_in_no_folder(planned):
    command = ["release", "plan.json", "records.csv", "--out", "out", "--dry-run"]
    assert "no folder" in planned.refused(*command, "--ledger", "nowhere/book.sqlite")


def test_an_address_in_the_place_of_a_name_is_not_said_again(planned):
    where = ["--database", "postgresql://me:s3cr3t@host/db", "--table", "people"]
    error = message(planned, "release", "plan.json", *where, "--out", "out")
    assert "by its name" in error
    assert "s3cr3t" not in error


# ---- a ledger in PostgreSQL


def test_a_ledger_in_postgresql_is_made_used_and_told_without_its_password(
    planned, postgres, monkeypatch
):
    program, secret = planned, "s3cr3t%2F"
    database_ledger(postgres, monkeypatch)
    postgres.run("DROP SCHEMA rpexplore_ledger CASCADE")
    for name, role in (("LEDGER_OWNER", "ledger_owner"), ("LEDGER", "booker")):
        monkeypatch.setenv(name, postgres.url.replace("keeper@", f"{role}:{secret}@"))
    make = ["ledger", "--create", "--ledger", "postgresql:LEDGER_OWNER", "--grant", "booker"]
    there = ["--ledger", "postgresql:LEDGER"]
    run = ["release", "plan.json", "records.csv", *there]
    said = [
        program.done(*make),
        program.done(*make),
        program.refused(*make[:-2]),
        program.refused("ledger", "--create", "--ledger", "book.sqlite"),
        program.refused(*make, "records.csv"),
        program.done(*run, "--out", "out"),
        message(program, *run[:3], "--ledger", "book.sqlite", "--out", "second"),
        program.done("ledger", "records.csv", *there),
        program.done("combine", "out", *there, "--out", "combined"),
    ]
    assert said[:2] == [
        f"The ledger postgresql:LEDGER_OWNER {what}. Runs can be booked by booker.\n"
        for what in ("is made", "was there already")
    ]
    assert "is there already; leave --create out" in said[2]
    assert "one in a file is made at its first entry" in said[3]
    assert "takes no DATA" in said[4]
    assert "has its account in the ledger 'postgresql:LEDGER'" in said[6]
    assert "finished" in said[7]
    files = [path.read_bytes() for path in Path().rglob("*") if path.is_file()]
    for text in (secret, "s3cr3t/", str(postgres.folder)):
        assert not [one for one in said if text in one]
        assert not [one for one in files if text.encode() in one]


@pytest.mark.nightly
def test_a_schema_may_bear_the_name_of_its_file(planned, monkeypatch):
    with duckdb.connect("survey.duckdb") as connection:
        connection.execute("CREATE SCHEMA survey.survey")
        connection.execute(
            "CREATE TABLE survey.survey.people AS SELECT * FROM read_csv('records.csv')"
        )
    monkeypatch.setenv("SURVEY_DB", "duckdb://survey.duckdb")
    where = ["--database", "SURVEY_DB", "--table", "survey.people"]
    planned.done("release", "plan.json", *where, "--out", "out")
    assert TableRelease.load("out")


def test_all_missing_and_unknown_values_are_told_in_one_dry_run(planned, monkeypatch):
    with Path("records.csv").open("a", encoding="utf-8") as file:
        file.write(",F,Atlantis\n,,R1\nold,,R1\n")
    command = ["release", "plan.json", "records.csv", "--out", "o"]
    result = planned(*command, "--dry-run")
    assert "The columns 'age' and 'sex' hold missing values" in result.stderr
    assert "and the column 'region' holds a value that is not in the codebook" in result.stderr
    assert "Atlantis" not in result.output
    assert "missing." not in result.output
    monkeypatch.setattr("rpexplore.cli.console.on_a_terminal", lambda: True)
    result = planned(*command, "--dry-run")
    assert "'age': 2 missing. 'sex': 2 missing. 'region': 1 not in the codebook" in result.stderr


def test_missing_values_are_another_option_than_unknown_ones(planned, monkeypatch):
    with Path("records.csv").open("a", encoding="utf-8") as file:
        file.write("old,F,Atlantis\nold,,R1\n")
    unknown, missing = ("--unknown-values", "region=R3"), ("--missing-values", "*=M")
    command = ["release", "plan.json", "records.csv", "--out", "o"]
    assert "'sex' holds a missing value" in planned(*command, *unknown).stderr
    assert "'region' holds a value that is not" in planned(*command, *missing).stderr
    monkeypatch.setattr("rpexplore.cli.console.on_a_terminal", lambda: True)
    for result in (planned(*command, *unknown, *missing, *dry) for dry in (["--dry-run"], [])):
        assert result.exit_code == 0
        assert "is missing, and counted as" not in result.stdout
        assert "1 of 'sex' is missing, and counted as" in result.stderr
        assert "1 of 'region' is not in the codebook, and counted as" in result.stderr
    manifest = json.loads(Path("o/manifest.json").read_text())
    assert manifest["missing_values"] == {"sex": "M"}
    assert manifest["unknown_values"] == {"region": "R3"}
    assert "Missing values were counted as: sex: M" in Path("o/README.md").read_text()
    for path in Path("o").rglob("*"):
        assert path.is_dir() or b"is missing, and counted" not in path.read_bytes()


def test_a_booking_that_fails_says_once_whether_the_run_is_charged(planned, monkeypatch):
    def broken(*arguments, **named):
        raise LedgerError("The disk is full.")

    monkeypatch.setattr(Ledger, "book", broken)
    result = planned("release", "plan.json", "records.csv", "--out", "out")
    assert result.exit_code == 2
    assert result.stderr.count("harged") == 1
