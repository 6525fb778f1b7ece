"""--neighbours on the command line: the plan, its report and its script."""

import json

import pytest

import rpexplore as rp
from rpexplore.cli.options import Neighbours
from rpexplore.privacy.budget import NEIGHBOURS
from rpexplore.reports.recipe import source_of_budget
from tests.cli.program import CODEBOOK, Program


def test_a_plan_for_replaced_records_its_report_and_its_script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "codebook.csv").write_text(CODEBOOK)
    run = Program(tmp_path)
    asked = ("plan", "codebook.csv", "--up-to", "2", "--rho", "0.1")
    said = run.done(*asked, "--neighbours", "replace", "--out", "plan.json")
    assert "one record; neighbours replace it; the number of records is public" in said
    plan = rp.Plan.load("plan.json")
    assert plan.budget == rp.Budget(rho="0.1", neighbours="replace")
    facts = json.loads(run.done("show", "plan.json", "--json"))
    assert facts["neighbours"] == "replace"
    checked = run.done("verify", "plan.json")
    assert "the dearest replacement that was found costs" in checked
    run.done("report", "plan.json", "--out", "report.html")
    report = (tmp_path / "report.html").read_text()
    assert "Two sets of records are neighbours if they are equally many" in report
    assert "one record more" not in report.split("Neighbouring data")[1][:400]
    assert source_of_budget(plan.budget) == 'rp.Budget(rho="0.1", neighbours="replace")'
    run.done(*asked, "--neighbours", "add-remove", "--out", "added.json")
    assert "neighbours" not in (tmp_path / "added.json").read_text()


def test_both_kinds_of_neighbours_are_offered():
    assert tuple(kind.value for kind in Neighbours) == NEIGHBOURS


@pytest.mark.nightly
def test_tables_and_own_counts_with_replaced_records_are_planned_and_released(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "codebook.csv").write_text(CODEBOOK)
    run = Program(tmp_path)
    run.done(
        "plan", "codebook.csv", "--up-to", "2", "--count", 'women: sex = "F"',
        "--count-target", "5", "--rho", "0.1", "--neighbours", "replace", "--out", "plan.json",
    )  # fmt: skip
    plan = rp.Plan.load("plan.json")
    assert [part.kind for part in plan.parts] == ["tables", "counts"]
    assert rp.verify(plan).holds
    assert sum(part.exact_privacy_cost for part in plan.parts) <= plan.budget.privacy_cost
    run.done("report", "plan.json", "--out", "report.html")
    records = [f"{age},{sex},R1" for age in ("young", "old") for sex in "FM" for _ in range(40)]
    (tmp_path / "records.csv").write_text("\n".join(["age,sex,region", *records, ""]))
    run.done("release", "plan.json", "records.csv", "--out", "out")
    women = rp.Release.load("out").part("counts").answer("women")
    assert abs(women.value - 80) < 10 * women.standard_error
