"""--exact on the command line: the plan, what is said of it, its report and its script."""

import json

import pytest

import rpexplore as rp
from rpexplore.reports.recipe import source_of_budget
from tests.cli.program import CODEBOOK, Program

ASKED = ("plan", "codebook.csv", "--up-to", "2", "--rho", "0.1", "--out", "plan.json")


@pytest.fixture
def run(tmp_path, monkeypatch) -> Program:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "codebook.csv").write_text(CODEBOOK)
    return Program(tmp_path)


def test_a_plan_with_exact_totals_its_report_and_its_script(run, tmp_path):
    said = run.done(*ASKED, "--exact", "region", "--exact", "sex,age")
    assert "neighbours keep the totals of age × sex and region, which are exact" in said
    plan = rp.Plan.load("plan.json")
    assert plan.budget == rp.Budget(rho="0.1", exact=["region", ("age", "sex")])
    facts = json.loads(run.done("show", "plan.json", "--json"))
    assert facts["exact_totals"] == [["age", "sex"], ["region"]]
    assert "the dearest change that was found costs" in run.done("verify", "plan.json")
    run.done("report", "plan.json", "--out", "report.html")
    report = (tmp_path / "report.html").read_text()
    assert "if they have the same totals of age × sex and region" in report
    assert "whatever these tell" in report
    source = source_of_budget(plan.budget)
    assert source == """rp.Budget(rho="0.1", exact=[['age', 'sex'], 'region'])"""


def test_totals_of_few_people_and_targets_are_warned_of_by_public_counts(run, tmp_path):
    (tmp_path / "public.csv").write_text("region,count\nR1,900\nR2,400\nR3,4\n")
    exact = ("--exact", "region", "--expected", "public.csv")
    said = run.done(*ASKED, *exact)
    assert "1 cell of the exact total region holds fewer than 10 records (about 4 with" in said
    assert "region R3)" in said
    said = run.done(*ASKED, "--exact", "sex", "--target", "sex=5", "--force")
    assert "A target is set for sex, which the exact totals release without noise" in said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--exact", "sex", "--neighbours", "add-remove"), "leave --neighbours out"),
        (("--exact", "sex,age,region"), "and no table has it; ask for that table"),
        (("--exact", "area@state"), "the plan has none; give the areas (--areas)"),
        (("--exact", "sex", "--records-per-person", "2"), "go with one record as the privacy unit"),
        (("--exact", "sex", "--basis", "sex=prefix"), "exact totals are of single values"),
        (("--exact", "sex", "--pilot", "5%"), "A pilot does not go with a panel or with exact"),
        (
            ("--exact", "sex", "--count", 'women: sex = "F"', "--count-target", "5"),
            "The exact totals tell all own counts",
        ),
    ],
    ids=["added", "no table", "no areas", "persons", "sums", "pilot", "counts"],
)
def test_what_is_not_known_is_refused_in_a_sentence(run, options, message):
    told = run(*ASKED, *options)
    assert told.exit_code != 0
    assert message in told.output


def test_own_counts_and_areas_beside_tables_keep_the_totals(run):
    (run.folder / "homes.csv").write_text("home\nR1|1\nR1|2\nR2|1\n")
    areas = ("--areas", "homes.csv", "--separator", "|", "--level-names", "state,town")
    counts = ("--count", 'old women: sex = "F" & age = "old"', "--count", 'women: sex = "F"')
    exact = ("--exact", "sex", "--exact", "area@state", "--count-target", "5")
    said = run.done(*ASKED, *areas, "--table", "state,sex", *counts, *exact)
    assert "Plan for 7 tables, 2 tables in areas and 2 own counts" in said
    assert "neighbours keep the totals of area@state and sex, which are exact" in said
    assert "holds" in run.done("verify", "plan.json")
    counts = rp.Plan.load("plan.json").part("counts")
    assert (counts.variances == 0).tolist() == [False, True]
    alone = (*ASKED[:2], *counts_alone(), "--rho", "0.1", "--out", "alone.json", "--exact", "sex")
    told = run(*alone)
    assert told.exit_code != 0
    assert "ask for these totals as tables beside the own counts" in told.output


def counts_alone() -> tuple[str, ...]:
    return "--count", 'women: sex = "F"', "--count-target", "5"


@pytest.mark.nightly
def test_numbers_of_records_of_areas_are_exact(run):
    homes = "home\nR1|1\nR1|2\nR2|1\n"
    (run.folder / "homes.csv").write_text(homes)
    areas = ("--areas", "homes.csv", "--separator", "|", "--level-names", "state,town")
    assert "each is written area@state, and" in run(*ASKED, *areas, "--exact", "state").output
    asked = (*ASKED, *areas, "--detail", "same", "--exact", "area@state")
    said = run.done(*asked, "--target", "5")
    assert "neighbours keep the totals of area@state, which are exact" in said
    assert "A target is set for (total) on the level all and (total) on the level state" in said
    assert "the dearest that was found costs 0." in run.done("verify", "plan.json")
    budget = rp.Plan.load("plan.json").budget
    assert budget.exact == (("area@state",),)
    assert source_of_budget(budget) == """rp.Budget(rho="0.1", exact=['area@state'])"""
    run.done("report", "plan.json", "--out", "report.html")
    assert "have the same totals of area@state" in (run.folder / "report.html").read_text()
    said = run.done(*asked, "--force", "--expected-count", "12", "--exact", "area@town")
    assert "the areas of the exact total area@town have 4 records on average" in said
    assert "total area@state have" in said
    # By their totals one town of three is small, and no state: 94 and 20 records.
    (run.folder / "known.csv").write_text("code,total\nR1|1,90\nR1|2,4\nR2|1,20\n")
    known = ("--expected-areas", "known.csv")
    said = run.done(*asked, "--force", *known, "--exact", "area@town")
    assert "1 of 3 areas of the exact total area@town has fewer than 10 records (the small" in said
    assert "114 records" in said
    assert "3 known totals of areas" in said
    assert "total area@state ha" not in said
    assert "records (the smallest" not in run.done(*asked, "--force", *known)
    refused = run(*ASKED, "--force", *known)
    assert "goes with a codebook that has areas" in refused.output
    told = run(*ASKED, "--force", "--exact", "area@state")
    assert told.exit_code != 0
    assert "area@state" in told.output
