"""The command lines: run by a shell, they make the very plan, and a report of it."""

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from rpexplore.analysis.accuracy import csv_of_accuracy
from rpexplore.cli.main import cli
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.planning.table_plan import TablePlan
from rpexplore.releases.table_release import TableRelease
from rpexplore.reports.recipe import custom_basis_files
from rpexplore.reports.script import command_lines
from tests.reports.reports import plan_of
from tests.reports.scenarios import SCENARIOS


def export_to(folder: Path, plan: TablePlan) -> None:
    plan.save(folder / "plan.json")
    plan.workload.domain.save(folder / "codebook.json")
    (folder / "tables.csv").write_text(csv_of_accuracy(plan), encoding="utf-8")
    for file, text in custom_basis_files(plan.workload).values():
        (folder / file).write_bytes(text.encode())


def verb(text: str, name: str) -> list[str]:
    """The arguments of the line for one verb."""
    joined = text.replace("\\\n", " ")
    start = joined.index(f"rpexplore {name} ")
    return shlex.split(joined[start:].split("\n\n")[0])[1:]


def test_targets_are_written_as_typed():
    scenario = SCENARIOS["units"].with_request(order=1)
    options = verb(command_lines(scenario.table_plan(), scenario), "plan")
    given = [option for option in options if option.startswith("--target")]
    assert given == [
        "--target=age=±50 at 95 % required",
        "--target=sex=5 % of 1000",
        "--target=region=12.50 required",
    ]


@pytest.mark.by_day(6)
def test_the_plan_is_made_again_to_the_byte(scenario, plan, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    export_to(tmp_path, plan)
    done = CliRunner().invoke(cli, verb(command_lines(plan, scenario), "plan"))
    assert done.exit_code == 0, done.output
    assert Path("made.json").read_bytes() == plan.text.encode()


def test_the_release_line_runs_the_release(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scenario, plan = SCENARIOS["listed"], plan_of("listed")
    export_to(tmp_path, plan)
    rows = [f"{5 * i % 100},{'FM'[i % 2]},R{i % 12:02},{10 * i},only" for i in range(60)]
    Path("PATH/TO").mkdir(parents=True)
    Path("PATH/TO/records.csv").write_text("\n".join(["age,sex,region,income,one", *rows]))
    line = verb(command_lines(plan, scenario), "release")
    done = CliRunner().invoke(cli, line)
    assert done.exit_code == 0, done.output
    assert TableRelease.load("release").plan.sha256 == plan.sha256


def test_short_wishes_are_options_and_long_ones_a_file():
    def plan_line(name: str) -> list[str]:
        return verb(command_lines(plan_of(name), SCENARIOS[name]), "plan")

    assert plan_line("up to")[2:4] == ["--up-to", "2"]
    assert plan_line("of order")[2:4] == ["--of-order", "2"]
    assert plan_line("at most cells")[2:4] == ["--at-most-cells", "90"]
    assert plan_line("higher order than attributes")[2:4] == ["--up-to", "5"]
    listed = plan_line("listed")
    assert listed[2:7] == [
        "--table=total",
        "--table=age",
        "--table=sex,region",
        "--weight=total=2.0",
        "--target=total=3.25",
    ]
    assert listed[-6:] == ["--mu", "0.7", "--records-per-person", "3", "--out", "made.json"]
    for name in ("groups", "long list"):
        assert plan_line(name)[2:4] == ["--tables", "tables.csv"]
    assert plan_line("of order")[-4:-2] == ["--rho", "1/3"]
    bases = [word.removeprefix("--basis=") for word in plan_line("prefix") if "--basis=" in word]
    assert bases == [
        "age=prefix",
        "age=identity@age,region",
        "age=identity@age,one",
        "region=hierarchy",
        "income=ranges@income",
        "one=windows:2",
    ]
    assert "--uniform-reference" in plan_line("even totals")
    assert "--basis=age=custom:young and old.csv" in plan_line("own")
    assert "--basis=age=custom:custom-basis-1.json@age,income" in plan_line("own")


def test_the_report_is_told_the_total_that_is_expected_and_the_limit():
    scenario = SCENARIOS["up to"].replaced(expected=ExpectedCounts.of_total(1250), cv_limit=0.1)
    line = verb(command_lines(plan_of("up to"), scenario), "report")
    assert line[-4:] == ["--expected-count", "1250", "--cv-limit", "0.1"]


def test_the_lines_name_the_plan_they_make():
    plan = plan_of("up to")
    assert plan.sha256 in command_lines(plan, SCENARIOS["up to"])
