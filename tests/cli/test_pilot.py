"""The command line: a plan with a pilot, its release alone, the forecast, and the rest."""

import re

import pytest

from tests.cli.program import BUDGET, CODEBOOK, Program

RECORDS = "age,sex,region\n" + "young,F,R1\n" * 40 + "old,M,R2\n" * 30 + "old,F,R3\n" * 3


@pytest.fixture
def program(tmp_path, monkeypatch) -> Program:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "codebook.csv").write_text(CODEBOOK)
    (tmp_path / "records.csv").write_text(RECORDS)
    program = Program(tmp_path)
    text = program.done(
        "plan", "codebook.csv", "--up-to", "2", *BUDGET, "--pilot", "5%", "--out", "plan.json"
    )
    assert "A pilot measures the one-way tables first, by 4.9" in text
    return program


def test_a_pilot_then_its_forecast_then_the_rest(program):
    run = ("release", "plan.json", "records.csv", "--out", "out")
    text = program.done(*run, "--pilot-only", "--yes")
    assert "The 4 noisy tables are in out-pilot" in text
    assert "Charged ρ = 0.1;" in text
    assert "rpexplore forecast out\n" in text
    facts = program.json("forecast", "out")
    assert facts["tables"]["of"] == 7
    assert "out-pilot by age" in facts["rests_on"]
    assert program.json("forecast", "plan.json", "--public", "out-pilot") == facts
    refused = program.refused("release", "--resume", "--out", "out")
    assert "rpexplore release PLAN DATA --resume --out out, which costs nothing further" in refused
    elsewhere = ("release", "plan.json", "records.csv", "--resume", "--out", "elsewhere")
    assert "There is no run into 'elsewhere'" in program.refused(*elsewhere)
    resumed = program.done(*run, "--resume", "--yes")
    assert "Cost      ρ = 0.1 that is booked already" in resumed
    assert "charged again" not in resumed
    assert "Charged ρ = 0;" in resumed
    assert {"out", "out-pilot"} <= program.files()
    assert program.json("forecast", "out")["tables"]["of"] == 7


def test_a_plan_that_does_not_say_so_has_no_other_rest(program):
    program.done("release", "plan.json", "records.csv", "--out", "out", "--pilot-only", "--yes")
    refused = program.refused("forecast", "out", "--rest", "rest.json")
    assert "only behind a pilot whose plan states what for" in refused
    assert "Drawing populations" not in refused  # said before that, which takes seconds
    assert "rest.json" not in program.files()


def test_a_plan_says_what_its_pilot_costs(program):
    plan = ("plan", "codebook.csv", "--up-to", "2", *BUDGET)
    facts = program.json(*plan, "--pilot", "1/20", "--out", "again.json")
    assert 0.049 < facts["pilot"]["cost_share"] <= 0.05
    assert "pilot" not in program.json(*plan, "--out", "without.json")
    for share in ("0%", "100%"):
        refused = program.refused(*plan, "--pilot", share, "--out", "none.json")
        assert "must be above 0 % and below 100 % of the budget" in refused
    assert "none.json" not in program.files()


def test_a_plan_without_a_pilot_is_refused_before_it_costs_anything(program):
    program.done("plan", "codebook.csv", "--up-to", "1", *BUDGET, "--out", "without.json")
    run = ("release", "without.json", "records.csv", "--out", "out", "--pilot-only")
    assert "The plan has no pilot" in program.refused(*run)
    assert program.json("ledger", "records.csv")["runs"] == []


def test_a_plan_for_a_rule_is_made_from_released_figures(program):
    program.done("plan", "codebook.csv", "--up-to", "1", *BUDGET, "--out", "first.json")
    program.done("release", "first.json", "records.csv", "--out", "first", "--yes")
    rule = ("--require", "CV<=20% for 60% of people in each table")
    plan = ("plan", "codebook.csv", "--up-to", "2", *rule, "--public", "first")
    facts = program.json(*plan, "--out", "rest.json")
    assert "first by age" in facts["rule"]["rests_on"]
    assert program.json("suggest", "rest.json", "--public", "first")["limit"] == 0.2
    program.done("release", "rest.json", "records.csv", "--out", "rest", "--yes")
    program.done("combine", "first", "rest", "--out", "both")
    assert "both" in program.files()


def test_the_rest_is_planned_from_the_pilot_within_the_same_booking(program):
    plan = ("plan", "codebook.csv", "--up-to", "2", *BUDGET, "--pilot", "2%")
    text = program.done(*plan, "--then-most-people", "--cv-limit", "0.1", "--out", "first.json")
    assert "as many people as can be are in cells with a CV of at most 10 %" in text
    run = ("release", "first.json", "records.csv", "--out", "run", "--yes")
    assert "release the pilot alone (--pilot-only)" in program.refused(*run)
    text = program.done(*run, "--pilot-only")
    assert "rpexplore forecast run --rest rest.json\n" in text
    assert "rpexplore release rest.json records.csv --resume --out run" in text
    assert "is made from the figures of a pilot" in program.refused(
        "forecast", "first.json", "--expected-count", "70", "--rest", "rest.json"
    )
    facts = program.json("forecast", "run", "--rest", "rest.json")["rest"]
    assert facts["limit"] == 0.1
    assert facts["people"]["median"] >= facts["before"]["median"]
    again = program.json("forecast", "run", "--rest", "again.json")["rest"]
    assert again["sha256"] == facts["sha256"]  # from the same figures the same plan
    assert program.json("verify", "rest.json")["holds"]
    # Whether or not it says --resume, the run is booked.
    text = program.done("release", "rest.json", "records.csv", "--out", "run", "--yes")
    assert "Cost      ρ = 0.1 that is booked already" in text
    assert "Charged ρ = 0;" in text
    value = (program.folder / "run" / "README.md").read_text().partition("`value`: ")[2]
    assert value.startswith("the noisy count. Unbiased but for what the rest owes to the pilot")
    (booked,) = program.json("ledger", "records.csv")["runs"]
    assert (booked["state"], booked["plan_sha256"]) == ("finished", facts["first_plan_sha256"])
    assert program.json("show", "run")["first_plan"] == facts["first_plan_sha256"]
    refused = program.refused("forecast", "run", "--rest", "third.json")
    assert "is a whole release, whose rest is measured" in refused


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "plans the rest behind a pilot; give its share"),
        (("--pilot", "5%", "--most-people", "--expected-count", "70"), "leave --most-people out"),
        (("--pilot", "5%", "--cv-limit", "2"), "0 % and at most 100 %|above 0 and at most 1"),
    ],
)
def test_a_rest_that_cannot_be_planned_for_is_refused(program, options, said):
    plan = ("plan", "codebook.csv", "--up-to", "2", *BUDGET, "--then-most-people")
    assert re.search(said, program.refused(*plan, *options, "--out", "none.json"))
    assert "none.json" not in program.files()
