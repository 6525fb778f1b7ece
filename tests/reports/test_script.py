"""The Python script: it makes the very plan it was exported for, and runs the release if asked."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore import Budget, Domain, Forecast, MaxVariance, Workload
from rpexplore.analysis.accuracy import csv_of_accuracy
from rpexplore.domain.levels import Level
from rpexplore.planning.pilot import with_pilot
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.table_plan import TablePlan
from rpexplore.releases.table_release import TableRelease
from rpexplore.reports.recipe import Recipe, custom_basis_files
from rpexplore.reports.script import command_lines, python_script
from rpexplore.scenarios.scenario import Scenario
from tests.reports.reports import plan_of
from tests.reports.scenarios import SCENARIOS, survey
from tests.support import strategies


def exported(folder: Path, name: str) -> tuple[TablePlan, Path]:
    """The plan of a scenario, and its script, with what it needs beside it."""
    scenario, plan, path = SCENARIOS[name], plan_of(name), folder / "plan.py"
    path.write_text(python_script(plan, scenario), encoding="utf-8")
    if Recipe.of(plan, scenario).needs_tables_csv:
        (folder / "tables.csv").write_text(csv_of_accuracy(plan), encoding="utf-8")
    for file, text in custom_basis_files(plan.workload).values():
        (folder / file).write_bytes(text.encode())
    return plan, path


def test_a_plan_that_keeps_a_forecast_is_made_again_without_it():
    scenario, plan = SCENARIOS["groups"], plan_of("groups")
    kept = Forecast(plan, expected=1_000).in_plan()
    for text in (python_script(kept, scenario), command_lines(kept, scenario)):
        assert plan.sha256 in text
        assert kept.sha256 not in text
        assert "keeps a forecast as well" in text


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs a script with its arguments as a program would be, in this process."""

    def run(path: Path, *arguments: str) -> tuple[int, str, str]:
        """Its exit code, and what it wrote to standard output and standard error."""
        monkeypatch.chdir(path.parent)
        monkeypatch.setattr(sys, "argv", [str(path), *arguments])
        capsys.readouterr()
        code: int | str | None = 0
        try:
            runpy.run_path(str(path), run_name="__main__")
        except SystemExit as ended:
            code = ended.code
        output, error = capsys.readouterr()
        # A text in place of the code is written by the interpreter, which then ends with 1.
        return (
            (1, output, f"{error}{code}") if isinstance(code, str) else (code or 0, output, error)
        )

    return run


def made_by(path: Path) -> TablePlan:
    """The plan that a script makes, in this process.

    Not imported: bytecode of another script of this name, size and second would be taken for its.
    """
    return runpy.run_path(str(path), run_name="exported_plan")["plan"]()


@pytest.mark.by_day(6)
def test_every_script_makes_its_plan_to_the_byte(name, tmp_path):
    plan, path = exported(tmp_path, name)
    assert made_by(path).text == plan.text


def test_a_script_has_levels_and_their_own_matrices(tmp_path):
    ages = rp.Attribute(
        "age",
        rp.Integers(0, 9),
        levels=(Level("adult", ("0-4",) * 5 + ("5+",) * 5), Level("two", tuple("aabbccddee"))),
    )
    domain = rp.Domain((ages, rp.Attribute("sex", rp.Integers(0, 1))))
    workload = rp.Workload.of(domain, [("age@two",), ("sex", "age@adult"), ("age",)])
    adults = rp.CustomBasis([[0, 1]], ["adults"], "adults")
    workload = workload.with_bases({"age@adult": adults})
    plan = rp.plan(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.5")).part("tables")
    path = tmp_path / "plan.py"
    path.write_text(python_script(plan, Scenario.of_plan(plan)), encoding="utf-8")
    for file, text in custom_basis_files(plan.workload).values():
        (tmp_path / file).write_bytes(text.encode())
    assert made_by(path).part("tables").text == plan.text


def test_a_script_has_targets_as_typed_and_the_same_required(tmp_path):
    plan, path = exported(tmp_path, "units")
    assert plan.workload.required.any()
    made = made_by(path).part("tables")
    assert made.workload.required.tolist() == plan.workload.required.tolist()
    text = path.read_text("utf-8")
    for typed in ("±50 at 95 % required", "30", "5 % of 1000", "12.50 required"):
        assert f'rp.Target.parse("{typed}")' in text


def test_a_script_has_the_pilot_of_its_plan(tmp_path):
    tables = Workload.all_up_to(Domain.from_sizes({"a": 5, "b": 3, "c": 2}), 2)
    plan = plan_tables(tables, loss=MaxVariance(), budget=Budget(rho="0.3"))
    piloted = with_pilot(plan, "2.5%").part("tables")
    path = tmp_path / "plan.py"
    path.write_text(python_script(piloted, Scenario.of_plan(piloted)), encoding="utf-8")
    assert made_by(path).text == piloted.text


def test_a_script_and_commands_have_what_the_rest_is_planned_for(run, tmp_path):
    domain = Domain.from_sizes({"a": 3, "b": 2})
    plan = rp.plan(
        Workload.all_up_to(domain, 2),
        loss=rp.SumOfVariances(),
        budget=Budget(rho="0.3"),
        pilot="2%",
        then=rp.RestObjective("0.1", "surely"),
    )
    scenario, path = Scenario.of_plan(plan.part("tables")), tmp_path / "plan.py"
    path.write_text(python_script(plan, scenario), encoding="utf-8")
    (tmp_path / "records.csv").write_text("a,b\n" + "1,1\n" * 40)
    code, text, _ = run(path, "records.csv", "--release", "out")
    assert (code, "The pilot is in out-pilot" in text) == (0, True)
    assert rp.Release.load(tmp_path / "out-pilot").plan.part("tables").pilot_of == plan.sha256
    commands = command_lines(plan, scenario)
    assert "--then-most-people --cv-limit 0.1 --certainty surely" in " ".join(commands.split())
    assert "--pilot-only --out release\nrpexplore forecast release --rest rest.json" in commands


@pytest.mark.nightly
def test_a_script_runs_by_itself(tmp_path):
    plan, path = exported(tmp_path, "hostile")
    done = subprocess.run(
        [sys.executable, str(path), "--save", "made.json"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "made.json").read_bytes() == plan.text.encode()
    assert plan.sha256 in done.stdout
    assert "alert" not in done.stdout


def test_nothing_is_written_without_options(run, tmp_path):
    _, path = exported(tmp_path, "up to")
    assert run(path)[0] == 0
    assert {each.name for each in tmp_path.iterdir()} == {"plan.py"}


@given(
    strategies.workloads(strategies.described_domains(), with_targets=False),
    strategies.losses(),
    strategies.budgets(least=1e-6),
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_plan_has_a_script(tmp_path, workload, loss, budget):
    plan = plan_tables(workload, loss=loss, budget=budget)
    path = tmp_path / "plan.py"
    path.write_text(python_script(plan, Scenario.of_plan(plan)), encoding="utf-8")
    made = made_by(path)
    assert made.text == plan.text
    assert made.domain == workload.domain


WRITABLE = st.characters(codec="utf-8", min_codepoint=1)


@given(st.text(WRITABLE, max_size=40), st.text(WRITABLE, max_size=200))
def test_no_name_and_no_note_gets_out_of_its_comment(name, note):
    scenario = Scenario.of_plan(_PLAN)
    bare = python_script(_PLAN, scenario).splitlines()
    remarked = python_script(_PLAN, scenario.replaced(name=f"n{name}", note=note))
    lines = [line for line in remarked.split("\n") if line not in bare]
    assert all(line.startswith("# ") or not line for line in lines)


_PLAN = plan_of("listed")


def test_a_script_runs_the_release_when_given_records(run, tmp_path):
    plan, path = exported(tmp_path, "listed")
    rows = [f"{5 * i % 100},{'FM'[i % 2]},R{i % 12:02},{10 * i},only" for i in range(60)]
    (tmp_path / "records.csv").write_text("\n".join(["age,sex,region,income,one", *rows]))
    code, _, error = run(path, "records.csv", "--release", "tables", "--limit-rho", "1")
    assert code == 0, error
    release = TableRelease.load(tmp_path / "tables")
    assert release.plan.sha256 == plan.sha256
    assert (tmp_path / "rpexplore-ledger.sqlite").exists()
    code, _, error = run(path, "records.csv", "--release", "tables")
    assert code == 1
    assert error.startswith("error: There is already something at")


@pytest.mark.parametrize("arguments", [["records.csv"], ["--release", "tables"]])
def test_records_and_folder_are_given_together(arguments, run, tmp_path):
    _, path = exported(tmp_path, "up to")
    code, _, error = run(path, *arguments)
    assert code == 2
    assert "both the records and --release FOLDER" in error


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("all_up_to(domain, 2)", "all_up_to(domain, 1)", "this script was changed"),
        ("VERSION = ", "VERSION = '0.0' or ", "the plan was exported by 0.0"),
    ],
)
def test_another_plan_is_not_passed_off_as_the_exported_one(run, tmp_path, old, new, message):
    _, path = exported(tmp_path, "up to")
    text = path.read_text("utf-8").replace('SHA256 = "', 'SHA256 = "0')
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")
    code, _, error = run(path, "--save", "made.json")
    assert code == 1
    assert message in error
    assert "Nothing was saved or released" in error
    assert not (tmp_path / "made.json").exists()


def test_builders_stand_in_the_script_as_requested():
    def script(name: str) -> str:
        return python_script(plan_of(name), SCENARIOS[name])

    assert "rp.Workload.all_up_to(domain, 2)" in script("up to")
    assert "rp.Workload.all_of_order(domain, 2)" in script("of order")
    assert "rp.Workload.all_with_at_most(domain, cells=90)" in script("at most cells")
    narrowed = 'all_up_to(domain, 3, only=("age", "sex", "region"), containing=("sex",), cells=300)'
    assert narrowed in script("narrowed")
    assert 'rp.Budget(epsilon="1.5", delta="1e-9")' in script("at most cells")
    assert 'rp.Budget(rho="1/3")' in script("of order")
    assert 'rp.Budget(mu="0.7", max_records_per_person=3)' in script("listed")
    assert 'rp.Attribute("age", rp.Integers(0, 99, step=5), label="Age in years")' in script(
        "up to"
    )
    assert "rp.Bins((0, 500, 1000.5, 20000))" in script("up to")
    assert "tables.csv" in script("long list")
    assert 'workload = workload.with_bases({"region": rp.Hierarchy()})' in script("prefix")
    assert (
        'workload = workload.with_bases({"income": rp.Ranges()}, tables=[("income",)])'
        in script("prefix")
    )
    assert "uniform_reference=True," in script("even totals")
    assert "uniform_reference" not in script("prefix")
    assert '.with_name("young and old.csv")' in script("own")
    assert survey().names == SCENARIOS["up to"].domain.names
