"""The command line: expected counts, and what plans are worth by them."""

from pathlib import Path

import pytest

from tests.cli.program import BUDGET


@pytest.mark.nightly
def test_show_forecasts_tables_as_the_forecast_does(planned):
    facts = planned.json("show", "plan.json", "--expected-count", "90")["forecast"]
    made = planned.json("forecast", "plan.json", "--expected-count", "90")
    assert facts == {name: made[name] for name in facts}
    strict = planned.json("show", "plan.json", "--expected-count", "90", "--cv-limit", "0.05")
    assert strict["forecast"]["limit"] == 0.05
    assert strict["forecast"]["people"]["median"] < facts["people"]["median"]
    text = planned.done("show", "plan.json", "--expected-count", "90")
    assert "People in good cells" in text
    assert "\n2 attributes " in text
    assert planned.json("show", "plan.json")["forecast"] is None


@pytest.mark.nightly
def test_the_design_of_a_survey_counts_beside_the_noise(planned):
    """Two cells of 45 of 90: noise of σ = 3.16 alone is 7 %; sampling 1.8 · 0.5/45 = (14 %)²."""
    asked = ("show", "plan.json", "--expected-count", "90", "--cv-limit", "0.14")
    survey = ("--design-effect", "1.8", "--sampling-fraction", "1%")
    noise, total = (planned.json(*asked, *more)["forecast"] for more in ((), survey))
    assert total["survey"]["design_effect"] == 1.8
    assert total["people"]["median"] < noise["people"]["median"]
    assert "noise and sampling (design effect 1.8" in planned.done(*asked, *survey)
    planned.done("report", "plan.json", *asked[2:], *survey, "--out", "report.html")
    assert "design effect 1.8" in Path("report.html").read_text()
    assert "go with --expected-count" in planned.refused("show", "plan.json", *survey)


def test_plan_takes_a_public_table_as_expected_counts(run):
    Path("public.csv").write_text("sex,count\nF,5000\nM,0\n")
    made = ("plan", "codebook.csv", "--table", "sex", *BUDGET)
    facts = run.json(*made, "--expected", "public.csv", "--out", "plan.json")
    assert facts["forecast"]["people"]["median"] == 1  # all of them are in one cell
    assert facts["forecast"]["cells"]["median"] == 0.5
    assert "counts by sex" in run.done(*made, "--expected", "public.csv", "--out", "again.json")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--cv-limit", "0.1"), "--cv-limit goes with --expected-count N or --expected FILE"),
        (("--expected-count", "9", "--expected", "records.csv"), "not both"),
        (("--expected", "nothing.csv"), "nothing.csv' cannot be read"),
        (("--expected-count", "-1"), "at least 1, got -1"),
        (("--expected-count", "9", "--cv-limit", "20"), "0.2 is 20 %"),
    ],
)
def test_what_does_not_go_together_is_refused(planned, options, message):
    assert message in planned.refused("show", "plan.json", *options)


def test_own_counts_are_publishable_or_not(run):
    asked = ("--count", "adults: age = 'old' ± 60", "--minimum-budget", "targets")
    run.done("plan", "codebook.csv", *asked, "--out", "q.json")
    text = run.done("show", "q.json", "--expected-count", "90")
    assert "0 of 1 own count are publishable" in text  # ±60 of 45 or so


def test_smooth_tables_are_rehearsed_by_expected_counts(planned):
    command = ("simulate", "plan.json", "--expected-count", "90")
    facts = planned.json(*command)
    assert facts["records"] == 90
    assert [row["order"] for row in facts["errors"]] == [1, 2]
    assert {"unbiased", "nonnegative", "smooth"} <= facts["errors"][0].keys()
    text = planned.done(
        "simulate", "plan.json", "--expected-count", "90", "--record-noun", "people"
    )
    assert "Simulated on made-up people (90): a smooth table of 2 attributes is" in text
    assert "need expected counts" in planned.refused("simulate", "plan.json")
