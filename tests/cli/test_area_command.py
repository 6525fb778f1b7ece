"""The script and the command line that the app gives along with a plan for areas make that plan."""

import shlex
import sys
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.common.installation import sample_data_folder
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.areas.area_planner import plan_areas
from rpexplore.planning.plan import load_plan
from rpexplore.reports.bundle import bundle
from rpexplore.reports.script import make_command, python_script
from rpexplore.scenarios.area_study import AreaStudy
from rpexplore.scenarios.scenario import Scenario

CODEBOOK = str(sample_data_folder() / "municipal-register.json")
BUDGET = rp.Budget(epsilon="1", delta="1e-6", max_records_per_person=2)


@pytest.fixture(scope="module")
def begun():
    return AreaStudy.of(CODEBOOK, rp.AreaCodebook.load(CODEBOOK))


def _less(study):
    """Less detail below, one level twice as heavy, another left out; tables with weights."""
    study = study.with_preset("Less detail on lower levels")
    changes = {("municipality", table): None for table in study.rows}
    changes |= {("county", table): 2.0 for table in study.tables["county"].tables}
    changes |= {(level, ("sex",)): 3.0 for level in ("all", "region", "district")}
    changes[("county", ("sex",))] = 6.0
    return replace(study.with_weights(changes), uniform=True)


def _targets(study):
    few = study.with_preset("Totals only").with_target_where_missing(12.5)
    return replace(few, loss=rp.MaxVariance(relative_to="target"))


def _cells(study):
    pairs = {(level, ()): None for level in study.levels}
    return replace(study.with_weights(pairs), loss=rp.SumOfVariances(weighting="cells"))


def _required(study):
    few = study.with_preset("Totals only").with_target_where_missing(rp.Target(30, required=True))
    some = few.with_weights({(level, ("sex",)): 1.0 for level in study.book.tree.levels})
    return replace(some, loss=rp.SumWithinTargets())


@pytest.mark.nightly
@pytest.mark.by_day(1)
@pytest.mark.parametrize("change", [_less, _targets, _cells, _required])
def test_script_and_command_make_the_same_plan(begun, change, run, monkeypatch):
    study = change(begun)
    scenario = Scenario(study.domain, budget=BUDGET, areas=study, asks_for_tables=False)
    plan = scenario.plan().part("areas")
    verb, *words = shlex.split(make_command(plan, scenario).replace("\\\n", ""))
    assert verb == "rpexplore"
    run.done(*words)
    assert load_plan("made.json").text == plan.text
    monkeypatch.setattr(sys, "argv", ["plan.py", "--save", "again.json"])
    exec(python_script(plan, scenario), {"__name__": "__main__"})  # noqa: S102 (is tested)
    assert load_plan("again.json").text == plan.text


@pytest.mark.nightly
def test_all_of_the_bundle_works_where_it_is_unpacked(begun, run):
    study = _less(begun)  # the one of most tables
    plan = plan_areas(study.workload, loss=study.loss, budget=BUDGET, uniform_levels=True)
    scenario = Scenario(study.domain, budget=BUDGET, areas=study)
    files = bundle(plan, scenario)
    assert files == bundle(plan, scenario)
    with ZipFile(BytesIO(files)) as archive:
        archive.extractall(".")
        assert {"plan.json", "report.html", "area_tables.csv", *plan.companions} <= {
            *archive.namelist()
        }
    lines = Path("commands.txt").read_text("utf-8")
    assert make_command(plan, scenario) in lines
    assert all(f"#   {name} " in lines for name in archive.namelist())
    verbs = [line for line in lines.splitlines() if line.startswith("rpe")]
    verify, _, report, release, counts = verbs
    run.done(*verify.split()[1:])
    run.done(*shlex.split(report)[1:])
    assert Path("made.html").read_bytes() == Path("report.html").read_bytes()
    # The last two are understood, and fail at what is not there.
    assert "PATH/TO/records.csv" in run(*release.split()[1:]).stderr
    assert "release" in run(*counts.split()[1:]).stderr


def test_tables_that_options_cannot_say_have_no_command(begun):
    other = begun.with_weights({("county", ("sex",)): 2.0})
    plan = plan_areas(other.workload, loss=other.loss, budget=BUDGET)
    scenario = Scenario(other.domain, budget=BUDGET, areas=other)
    assert make_command(plan, scenario) == ""
    assert "weights=[" in python_script(plan, scenario)


@pytest.mark.by_day(1)
@pytest.mark.parametrize(("loss", "met"), [("sum", 2), ("max", 4), ("required", 4)])
def test_plan_and_show_say_which_targets_are_met(loss, met, run):
    asked = ("--table", "sex", "--target", "sex=14 required", "--level", "district=none")
    options = (*asked, "--rho", "0.01", "--loss", loss, "--out", "p.json")
    made = run.done("plan", CODEBOOK, *options)
    errors = AreaPlan.load("p.json").accuracy()["largest_standard_error"]
    assert (errors <= 14).sum() == met
    for text in (made, run.done("show", "p.json", "--csv", "tables.csv", "--force")):
        assert f"  Targets    {met} of 4 met; " in text
        assert f"  Required   {met} of 4 met" in text
        assert ("--loss required does" in text) == (met < 4)
    above, _, below = text.partition("shadow price  target  of target  met  required\n")
    assert above
    _, *rows = below.splitlines()
    cells = [row.split() for row in rows[:4]]
    assert [[row[-5], *row[-2:]] for row in cells] == [
        ["14", "yes" if error <= 14 else "no", "required"] for error in sorted(errors)[::-1]
    ]
    assert pd.read_csv("tables.csv")["required"].tolist() == ["yes"] * 4
