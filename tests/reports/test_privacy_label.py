"""The privacy label says what is promised, to whom, and what is not."""

import math
import re
from fractions import Fraction

import pytest

import rpexplore as rp
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.table_plan import TablePlan
from rpexplore.reports.evidence import nist_checklist
from rpexplore.reports.first_pages import epsilons, label
from rpexplore.reports.section import Beside, Checklist, Facts, Points

FACTOR = "a result is at most … times as likely, plus δ"


def plan(**budget) -> TablePlan:
    workload = rp.Workload.all_up_to(rp.Domain.from_sizes({"age": 10, "sex": 2}), 2)
    return plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(**budget))


def facts(made: TablePlan) -> dict[str, str]:
    part = label(made).parts[0]
    assert isinstance(part, Facts)
    return {term: " ".join(sentences) for term, *sentences in part.rows}


def meaning(made: TablePlan) -> str:
    part = label(made).parts[2]
    assert isinstance(part, Points)
    return " ".join(part.sentences)


def lists(made: TablePlan) -> dict[str, str]:
    part = label(made).parts[-1]
    assert isinstance(part, Beside)
    return {points.title: " ".join(points.sentences) for points in part.lists}


def checked(made: TablePlan) -> dict[str, str]:
    part = nist_checklist(made, "people").parts[0]
    assert isinstance(part, Checklist)
    return {str(point): " ".join(rest) for point, *rest in part.rows}


def test_it_names_unit_neighbours_promise_and_plan():
    made = plan(rho="0.1")
    sentences = facts(made)
    assert sentences["Who is protected"].startswith("One record.")
    assert "with k records, the ρ below is k² times" in sentences["Who is protected"]
    assert "one has one record more" in sentences["Neighbouring data"]
    assert sentences["The promise"].startswith("ρ = 0.1 of zero-concentrated")
    assert "set as ρ = 0.1;" in sentences["The promise"]
    assert made.sha256 in sentences["Which plan"]


def test_it_says_what_a_person_may_have():
    sentences = facts(plan(epsilon=1, delta="1e-9", max_records_per_person=3))
    assert sentences["Who is protected"].startswith("One person with at most 3 records.")
    assert "cannot check" in sentences["Who is protected"]
    assert "one person more" in sentences["Neighbouring data"]
    assert "set as ε = 1 at δ = 1e-9;" in sentences["The promise"]
    (rho,) = re.findall(r"ρ = ([0-9.]+)", sentences["The promise"])
    # Rounded up, and no more than that.
    exact = plan(epsilon=1, delta="1e-9", max_records_per_person=3).rho
    assert exact <= Fraction(rho) <= exact * Fraction(1_000_010, 10**6)


def test_what_is_promised_to_people_with_several_records_depends_on_the_neighbours():
    exact = plan(rho="0.1", exact=["sex"])
    assert "no promise to a person with several records" in facts(exact)["Who is protected"]
    assert "k²" not in facts(exact)["Who is protected"] + checked(exact)["Unit of privacy"]
    panel = plan(rho="0.1", max_records_per_person=2, period="sex")
    assert "more than 2 records, or two in the same sex" in facts(panel)["Who is protected"]
    assert "more than 2 records, or two in the same sex" in checked(panel)["Unit of privacy"]


@pytest.mark.parametrize(
    ("budget", "kept"),
    [
        ({}, "measurements only; no exact figure"),
        ({"neighbours": "replace"}, "and the number of records, which is public; no other"),
        ({"exact": ["sex"]}, "the exact totals of sex and the number of records; no other"),
    ],
)
def test_the_checklist_names_exact_figures_that_are_kept(budget, kept):
    points = checked(plan(rho="0.1", **budget))
    assert kept in points["Mixing with other releases"]
    assert ("one from some of them" in points["Sensitivity"]) == bool(budget)


def test_every_epsilon_is_proven_and_only_a_little_above_the_exact_one():
    made = plan(rho="0.5")
    frame = epsilons(made).frame
    assert frame["δ"].tolist() == ["1e-5", "1e-6", "1e-9", "1e-12"]
    for row in frame.to_dict("records"):
        exact = made.epsilon(row["δ"])
        assert exact <= float(row["ε, proven"]) <= exact * 1.001
        assert math.exp(exact) <= float(row[FACTOR].replace(",", "")) <= math.exp(exact) * 1.01


def test_the_stated_delta_is_among_them():
    frame = epsilons(plan(epsilon=2, delta="3e-7")).frame
    row = frame.set_index("δ").loc["3e-7"]
    assert row["ε, proven"] == "2.000"


def test_budgets_that_promise_nothing_still_have_a_label():
    frame = epsilons(plan(rho=2000)).frame
    assert set(frame[FACTOR]) == {"over 10^300"}
    assert "at most 100 % of those who were" in meaning(plan(rho=2000))


def test_the_meaning_holds_for_the_stated_delta():
    text = meaning(plan(epsilon=1, delta="1e-9"))
    assert "at most 2.72 times the chance without, plus 1e-9" in text
    assert "one record" in text
    assert "Guessing gives 5 %." in text


def test_whole_steps_are_mentioned_where_they_matter():
    assert "Where" not in lists(plan(rho="0.001"))["Approximate"]
    assert "below 2 (4 of 4 tables)" in lists(plan(rho=10))["Approximate"]
    assert "sampling, non-response" in lists(plan(rho=10))["Not covered"]


def test_standard_errors_are_bounds_where_the_noise_is_discrete():
    """Of ρ = 10 and the total alone, √0.05 is stated, and whole steps make it much less."""
    workload = rp.Workload.all_up_to(rp.Domain.from_sizes({"age": 10}), 0)
    made = plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=10))
    (stated,) = made.standard_errors.tolist()
    chances = {step: math.exp(-(step**2) / (2 * stated**2)) for step in range(-9, 10)}
    true = math.sqrt(sum(p * k * k for k, p in chances.items()) / sum(chances.values()))
    assert true < stated / 20
    sentences = lists(made)
    assert "never larger than stated" in sentences["Exact"]
    assert "true standard error may be smaller than stated" in sentences["Approximate"]
    assert "All of this was recomputed" not in sentences["Exact"]


@pytest.mark.parametrize("budget", [{"rho": "0.1"}, {"mu": 1}, {"privacy_cost": "1/3"}])
def test_the_budget_is_shown_as_it_was_set(budget):
    ((name, value),) = budget.items()
    letter = {"rho": "ρ", "mu": "μ", "privacy_cost": "2ρ"}[name]
    assert f"set as {letter} = {value};" in facts(plan(**budget))["The promise"]


def test_a_delta_that_is_too_large_is_said_beside_the_promise():
    part = label(plan(epsilon=1, delta="0.05"), rp.ExpectedCounts.of_total(1_000)).parts[0]
    assert isinstance(part, Facts)
    promise = next(" ".join(sentences) for term, *sentences in part.rows if term == "The promise")
    assert "δ = 0.05 is not below 1/1,000" in promise
    assert "below 1/" not in facts(plan(epsilon=1, delta="1e-6"))["The promise"]
