"""The command line: expected counts, and how much of a plan is publishable by them."""

from pathlib import Path

import pytest

from rpexplore.planning.table_plan import TablePlan
from tests.cli.program import BUDGET


def share(plan: TablePlan, total: float, limit: float) -> float:
    """Share of the cells of all tables whose CV is within a limit."""
    rows = plan.accuracy()
    publishable = rows["standard_error"] * rows["cells"] / total <= limit
    return float((rows["cells"] * publishable).sum() / rows["cells"].sum())


def test_show_says_what_is_publishable_in_all_and_by_number_of_attributes(planned):
    plan = TablePlan.load("plan.json")
    facts = planned.json("show", "plan.json", "--expected-count", "90")["publishable"]
    assert facts["share"] == pytest.approx(share(plan, 90, 0.2))
    assert 0 < facts["share"] < 1
    assert facts["cv_limit"] == 0.2
    assert [row["attributes"] for row in facts["by_attributes"]] == [
        "total",
        "1 attribute",
        "2 attributes",
    ]
    strict = planned.json("show", "plan.json", "--expected-count", "90", "--cv-limit", "0.05")
    assert strict["publishable"]["share"] == pytest.approx(share(plan, 90, 0.05))
    assert strict["publishable"]["share"] < facts["share"]
    text = planned.done("show", "plan.json", "--expected-count", "90")
    assert "Expected counts: 90 in total, spread evenly over the cells of each table." in text
    assert "\n2 attributes " in text
    assert "cells are publishable, with a coefficient of variation of at most 20 %" in text
    assert planned.json("show", "plan.json")["publishable"] is None


def test_the_design_of_a_survey_counts_beside_the_noise(planned):
    """Two cells of 45 of 90: noise of σ = 3.16 alone is 7 %; sampling 1.8 · 0.5/45 = (14 %)²."""
    asked = ("show", "plan.json", "--expected-count", "90", "--cv-limit", "0.14")
    survey = ("--design-effect", "1.8", "--sampling-fraction", "1%")
    noise, total = planned.json(*asked), planned.json(*asked, *survey)
    assert total["publishable"]["survey"]["design_effect"] == 1.8
    assert total["publishable"]["share"] < noise["publishable"]["share"]
    assert "(of noise and sampling: design effect 1.8" in planned.done(*asked, *survey)
    planned.done("report", "plan.json", *asked[2:], *survey, "--out", "report.html")
    assert "design effect 1.8" in Path("report.html").read_text()
    assert "go with --expected-count" in planned.refused("show", "plan.json", *survey)


def test_plan_takes_a_public_table_as_expected_counts(run):
    Path("public.csv").write_text("sex,count\nF,5000\nM,0\n")
    made = ("plan", "codebook.csv", "--table", "sex", *BUDGET)
    facts = run.json(*made, "--expected", "public.csv", "--out", "plan.json")
    assert facts["publishable"]["share"] == 0.5
    text = run.done(*made, "--expected", "public.csv", "--out", "again.json")
    assert "by sex as published" in text
    assert "50 % of the 2 cells are publishable" in text


def test_levels_of_a_hierarchy_are_told(run):
    made = ("plan", "codebook.csv", "--table", "region", "--basis", "region=hierarchy:2", *BUDGET)
    text = run.done(*made, "--expected-count", "90", "--out", "plan.json")
    assert "region (hierarchy of 2), total " in text
    assert "region (hierarchy of 2), single values " in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--cv-limit", "0.1"), "--cv-limit goes with --expected-count N or --expected FILE"),
        (("--expected-count", "9", "--expected", "records.csv"), "not both"),
        (("--expected", "nothing.csv"), "nothing.csv' cannot be read"),
        (("--expected-count", "-1"), "must be 0 to"),
        (("--expected-count", "9", "--cv-limit", "20"), "0.2 is 20 %"),
    ],
)
def test_what_does_not_go_together_is_refused(planned, options, message):
    assert message in planned.refused("show", "plan.json", *options)


def test_own_counts_are_publishable_or_not(run):
    asked = ("--count", "adults: age = 'old' ± 60", "--minimum-budget", "targets")
    run.done("plan", "codebook.csv", *asked, "--out", "q.json")
    text = run.done("show", "q.json", "--expected-count", "90")
    assert "The one own count is not publishable" in text  # ±60 of 45 or so


def test_smooth_tables_are_rehearsed_by_expected_counts(planned):
    command = ("rehearse", "plan.json", "--expected-count", "90")
    facts = planned.json(*command)
    assert facts["records"] == 90
    assert [row["order"] for row in facts["errors"]] == [1, 2]
    assert {"unbiased", "nonnegative", "smooth"} <= facts["errors"][0].keys()
    text = planned.done(
        "rehearse", "plan.json", "--expected-count", "90", "--record-noun", "people"
    )
    assert "Rehearsed on made-up people (90): a smooth table of 2 attributes is" in text
    assert "need expected counts" in planned.refused("rehearse", "plan.json")
