"""Objectives of own counts and free counts on the command line: planned, shown, released."""

from pathlib import Path

import pytest

from rpexplore.planning.counts import QueryPlan
from rpexplore.releases.query_release import QueryRelease

LIST = (
    "plan", "codebook.csv", "--count", 'women: sex = "Female" @ 5', "--count",
    'old: age = "old" @ 20', "--out", "plan.json",
)  # fmt: skip
HOME = ("young men: age = 'young' & sex = 'Male' @ 9\n", "young men")


def test_the_objective_of_own_counts(run):
    run.done(*LIST, "--rho", "0.1", "--counts-objective", "sum")
    plan = QueryPlan.load("plan.json")
    assert plan.objective.option == "sum"
    assert "Objective  minimise the average error relative to targets" in run.done(
        "show", "plan.json"
    )
    facts = run.json("show", "plan.json")
    assert facts["objective"] == "sum"
    assert facts["mean_ratio"] == pytest.approx(plan.certificate.loss_value)
    assert "has a mean ratio below" in run.done("verify", "plan.json")


def test_targets_come_first_at_the_smallest_budget_for_them(run):
    asked = (*LIST, "--counts-objective", "targets-then-sum")
    run.done(*asked, "--minimum-budget", "targets")
    plan = QueryPlan.load("plan.json")
    assert plan.met.all()
    half = str(plan.budget.rho / 2)
    message = run.refused(*asked, "--force", "--rho", half)
    assert "targets of own counts cannot all be met at this budget" in message


@pytest.mark.parametrize("with_file", [True, False])
def test_free_counts_are_released_at_no_further_cost(run, with_file):
    """Of young men nothing is asked, so that all of their budget is left."""
    text, name = HOME
    Path("second.txt").write_text(text)
    given = ("--free-counts", "second.txt")
    if not with_file:
        given = ("--count", text.strip(), "--free-count", name)
    facts = run.json(*LIST, "--rho", "0.1", *given)
    assert facts["free_counts"] == [name]
    plan = QueryPlan.load("plan.json")
    run.done(*LIST, "--rho", "0.1", "--force")
    alone = QueryPlan.load("plan.json")
    assert plan.exact_privacy_cost == alone.exact_privacy_cost
    assert plan.variances[:2] == pytest.approx(alone.variances, rel=1e-9)
    # One record costs 1/σ² = 2ρ.
    assert plan.variances[2] == pytest.approx(1 / 0.2, rel=1e-3)
    plan.save("plan.json")
    shown = run.done("show", "plan.json")
    assert "Free       'young men': no record costs more for them" in shown
    assert "without what is measured for 1 free count alone" in run.done("verify", "plan.json")
    run.done("release", "plan.json", "records.csv", "--out", "release")
    release = QueryRelease.load("release")
    assert release.answer(name).standard_error == pytest.approx(plan.standard_errors[2])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--free-count", "nobody"), "no own count 'nobody' that could be free"),
        (("--free-count", "women", "--free-count", "old"), "leave one out"),
    ],
)
def test_free_counts_that_cannot_be(run, options, message):
    assert message in run.refused(*LIST, "--rho", "0.1", *options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--counts-objective", "sum"), "--counts-objective is about own counts, and none"),
        (("--free-count", "women"), "take what other own counts leave of the budget"),
    ],
)
def test_options_of_own_counts_need_some(run, options, message):
    asked = ("plan", "codebook.csv", "--up-to", "1", "--rho", "0.1", "--out", "plan.json")
    assert message in run.refused(*asked, *options)
