"""--require: a rule in place of a budget, or beside one, from the command line."""

import pytest

import rpexplore as rp
from rpexplore.analysis import populations
from rpexplore.planning.verification import verify

RULE = "CV<=10% for 90% of people in each table"
EACH = ("plan", "codebook.csv", "--up-to", "2", "--out", "plan.json", "--force")


@pytest.fixture
def public(run):
    (run.folder / "region.csv").write_text("region,count\nR1,500\nR2,300\nR3,90\n")
    return ("--public", "region.csv")


def test_a_rule_is_met_at_the_budget_that_is_found_and_kept_in_the_plan(run, public):
    facts = run.json(*EACH, "--require", RULE, *public, "--delta", "1e-6")
    plan = rp.Plan.load("plan.json")
    assert verify(plan).holds
    assert set(dict(plan.budget.stated)) == {"epsilon", "delta"}
    assert facts["rules"] == ["CV <= 10% for 90% of people in each table"]
    assert facts["rule"]["meeting"] == facts["rule"]["tables"] == 7
    assert facts["rule"]["surely"] < 7
    assert "comes to a target for 7 tables" in facts["why"]
    ends = [float(facts["rule"]["budget_range"][end]) for end in ("low", "median", "high")]
    assert ends[0] < ends[1] < ends[2]
    assert ends[0] < float(plan.rho) < ends[2]
    assert "binding" in facts["why"]
    shown = run.done("show", "plan.json")
    assert "  Rule       CV of at most 10 % for 90 % of people in each table" in shown
    forecast = run.json("forecast", "plan.json", *public)
    assert forecast["rules"] == ["CV of at most 10 % for 90 % of people in each table"]
    assert {row["meets"] for row in forecast["list"]} == {"yes", "open"}
    assert run.json("forecast", "plan.json", *public, "--limit", "0.2")["rules"] == []
    surely = run.json(*EACH, "--require", RULE, *public, "--certainty", "surely")
    assert surely["rule"]["surely"] == 7
    assert rp.Plan.load("plan.json").rho > plan.rho


@pytest.mark.nightly
def test_at_a_stated_budget_it_is_said_which_tables_meet_it(run, public):
    stated = (
        "--rho",
        "0.001",
        "--require",
        "CV<=10% for 90% of people in region and in region,sex",
    )
    facts = run.json(*EACH, *stated, *public)
    assert facts["rule"]["tables"] == 2
    assert facts["rule"]["meeting"] == 0
    enough = facts["rule"]["smallest_budget"]
    again = run.json(*EACH, *stated[2:], *public)
    # Tables without a rule get a tenth of the smallest budget on top.
    assert float(rp.Plan.load("plan.json").budget.rho) == pytest.approx(
        1.1 * float(enough), rel=1e-3
    )
    assert again["rule"]["meeting"] == 2
    assert "0 of 2 tables meet the rule" in run.done(*EACH, *stated, *public)
    # Nothing is said of whether tables meet it without counts, but the plan keeps it.
    assert "rule" not in run.json(*EACH, *stated)
    assert len(rp.Plan.load("plan.json").part("tables").rules) == 1


def test_a_request_file_has_a_list_of_rules(run, public):
    (run.folder / "request.toml").write_text(
        'up-to = 1\npublic = ["region.csv"]\n'
        'require = ["CV<=10% for 90% of people in each table", "CV<=9% for 50% of cells in sex"]\n'
    )
    run.done("plan", "codebook.csv", "--request", "request.toml", "--out", "plan.json")
    assert len(rp.Plan.load("plan.json").part("tables").rules) == 2


@pytest.mark.nightly
def test_most_people_are_in_good_cells_by_weights_that_are_kept_in_the_plan(
    run, public, monkeypatch
):
    monkeypatch.setattr(populations, "N_POPULATIONS", 48)  # few find no better weights
    stated = ("--rho", "0.01", *public, "--design-effect", "1.2", "--cv-limit", "0.1")
    found = run.json(*EACH, *stated, "--most-people")["most_people"]
    assert found["people"]["median"] > found["before"]["median"]
    plan = rp.Plan.load("plan.json")
    assert verify(plan).holds
    assert len(set(plan.part("tables").workload.weights.tolist())) > 1
    judged = ("--limit", "0.1", "--design-effect", "1.2", *public)
    forecast = run.json("forecast", "plan.json", *judged)["people"]
    assert forecast == pytest.approx(found["people"], abs=1e-6)
    said = run.done(*EACH, *stated, "--most-people", "--certainty", "surely")
    assert "Weights for most people in good cells (CV of at most 10 %)" in said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--most-people", "--rho", "1"], "--most-people needs a forecast of the counts"),
        (
            ["--most-people", "--rho", "1", "--expected-count", "9", "--loss", "max"],
            "leave --loss out",
        ),
        (
            ["--most-people", "--require", RULE, "--expected-count", "99999"],
            "leave --require without a budget out",
        ),
        (["--require", RULE], "--require finds the smallest budget by a forecast"),
        (["--rho", "1", "--certainty", "surely"], "--certainty goes with --require"),
        (["--rho", "1", "--public", "region.csv"], "--public goes with --require"),
        (["--require", RULE, "--minimum-budget", "required"], "leave --minimum-budget required"),
        (["--require", "CV<=10%", "--expected-count", "9"], "must be written like CV<=20%"),
        (["--require", RULE.replace("90", "101"), "--expected-count", "9"], "got 101 %"),
        (["--require", RULE.replace("10%", "0%"), "--expected-count", "9"], "got 0 %"),
        (
            ["--require", "CV<=9% for 90% of cells in age,sex,region", "--expected-count", "9"],
            "is about a table that is not asked for",
        ),
        (
            ["--require", RULE, "--require", RULE.replace("10", "20"), "--expected-count", "9"],
            "contradict each other",
        ),
        (
            ["--require", RULE.replace("people", "cells"), "--expected-count", "4"],
            "No budget reaches the rule 'CV <= 10% for 90% of cells in each table'",
        ),
        (["--adaptive", "--rho", "1", "--expected-count", "9", "--require", RULE], "--require"),
    ],
)
def test_what_does_not_go_together_is_refused(run, public, options, message):
    assert message in run.refused(*EACH, *options)
    assert "plan.json" not in run.files()
