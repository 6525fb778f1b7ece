"""The report on a plan for tables in areas."""

import re

import pytest

import rpexplore as rp
from rpexplore.analysis.area_accuracy import errors_by_level
from rpexplore.analysis.area_levels import beside_shares_by_level
from rpexplore.common.text import rounded
from rpexplore.errors import PlanError
from rpexplore.planning.areas.area_planner import plan_areas
from rpexplore.reports.report import html, report
from rpexplore.reports.section import Numbers
from rpexplore.results.estimates.area_guess_errors import guess_errors_by_level
from tests.releases.area_plans import PLANS


def numbers_of(made, title):
    (found,) = (
        part
        for section in made.sections
        for part in section.parts
        if isinstance(part, Numbers) and title in part.title
    )
    return found.frame


def test_a_report_on_areas_has_levels_errors_proof_and_the_shares_beside():
    plan = PLANS["the same"]
    expected = rp.ExpectedCounts.of_total(900)
    errors = guess_errors_by_level(plan, expected)
    made = report(
        plan, survey="Register", record_noun="people", expected=expected, area_guesses=errors
    )
    guesses = numbers_of(made, "Expected errors of best guesses by level")
    assert guesses is errors
    page = re.sub("<[^>]+>", " ", html(made))
    assert made.subtitle.startswith("A plan to release 42 tables of 14 areas over 3 attributes")
    headings = [made.label.heading, *(section.heading for section in made.sections)]
    assert headings[:6] == ["Privacy label", "Codebook", "Areas", "Tables", "Accuracy", "Fairness"]
    assert "ρ = 0.5 of zero-concentrated differential privacy" in page
    assert plan.sha256 in page
    assert all(name in page for name in plan.companions)
    assert rounded(plan.certificate.loss_value, 9) in page
    assert "every choice of independent Gaussian noise on the residuals of every area" in page
    errors = numbers_of(made, "All tables by level, the least accurate")
    assert errors["largest"].is_monotonic_decreasing
    assert len(errors) == len(errors_by_level(plan)) == 12
    assert rounded(errors["largest"].max(), 3) in page
    beside = numbers_of(made, "Beside shares of the budget by level")
    assert beside["loss"].tolist() == beside_shares_by_level(plan)["loss"].tolist()
    assert made.front[1].parts[0].rows[-1] == ("Name, date, signature",)


@pytest.mark.parametrize("name", ["some areas", "none below"])
def test_areas_that_are_asked_for_different_tables_have_a_report(name):
    made = report(PLANS[name])
    assert len(html(made)) > 10_000
    fairness = next(section for section in made.sections if section.heading == "Fairness")
    differ = "are asked for different tables" in " ".join(fairness.sentences)
    assert differ == (name == "some areas")


def test_a_comparison_that_cannot_be_planned_is_left_out_with_the_reason(monkeypatch):
    def fail(plan):
        raise PlanError("The search came within 0.02 of the best possible.")

    monkeypatch.setattr("rpexplore.reports.areas.beside_shares_by_level", fail)
    made = report(PLANS["the same"])
    fairness = next(section for section in made.sections if section.heading == "Fairness")
    assert fairness.sentences[-1].endswith(
        "by level are not known. The search came within 0.02 of the best possible."
    )
    assert not any("Beside shares" in part.title for part in fairness.parts)


def test_targets_of_areas_are_counted_and_what_would_meet_them_is_said():
    asked = PLANS["the same"].workload
    sexes = rp.Workload.of(asked.domain, [("sex",)], targets=[3.0])
    tables = rp.AreaWorkload.of_levels(asked.tree, {asked.tree.levels[0]: sexes})  # the top alone
    loss = rp.MaxVariance(relative_to="target")
    made = report(plan_areas(tables, loss=loss, budget=rp.Budget(rho="0.05")))
    text = " ".join(next(s for s in made.sections if s.heading == "Targets").sentences)
    assert "Targets are missed" in text
    assert "The one target is not met." in text
    assert dict(row[:2] for row in made.front[0].parts[0].rows)["Targets"] in text


def test_tables_of_areas_in_other_bases_are_told_by_their_least_accurate_cell():
    asked = PLANS["the same"].workload
    ages = rp.Workload.of(asked.domain, [("age",)]).with_bases({"age": rp.Prefix()})
    tables = rp.AreaWorkload.of_levels(asked.tree, dict.fromkeys(asked.tree.levels[:3], ages))
    plan = plan_areas(tables, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.5"))
    made = report(plan, expected=rp.ExpectedCounts.of_total(900))
    page = re.sub("<[^>]+>", " ", html(made))
    headings = [section.heading for section in made.sections]
    assert "Aggregation" in headings
    assert not {"Relative errors", "Best guesses"} & set(headings)
    assert "ResidualPlanner+ in every area of a tree" in page
    assert "do not all have the same standard error" in page
    assert f"σ = {rounded(plan.accuracy()['largest_standard_error'].max(), 3)}" in page
