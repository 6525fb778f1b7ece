"""One plan for all that a scenario asks for, and what older files become."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

import rpexplore as rp
from rpexplore.errors import PlanError, WorkloadError
from rpexplore.scenarios.project import Project
from rpexplore.scenarios.scenario import Scenario
from rpexplore.workload.query_definitions import StatedQueries

OLD = Path(__file__).with_name("project_version_1.json")  # as the version before wrote it
COUNTS = StatedQueries.of(rp.QueryList(rp.Domain.from_sizes({"sex": 2}), [[0, 1]], ("women",), [5]))
BOTH = Scenario(rp.Domain.from_sizes({"age": 3, "sex": 2}), query_list=COUNTS)


def test_what_is_asked_for_is_one_plan_within_one_budget():
    plan = BOTH.plan()

    assert [part.kind for part in plan.parts] == ["tables", "counts"]
    assert plan.rho <= BOTH.budget.rho
    best = rp.plan(rp.Request(tables=BOTH.workload, counts=COUNTS.queries, budget=BOTH.budget))
    assert plan.sha256 == best.sha256


def test_stated_shares_are_those_of_the_parts():
    shares = (("tables", Fraction(1, 4)), ("counts", Fraction(3, 4)))
    plan = replace(BOTH, shares=shares).plan()

    costs = [part.budget.privacy_cost for part in plan.parts]
    assert costs == [BOTH.budget.privacy_cost * share for _, share in shares]


@pytest.mark.parametrize("domain", [BOTH.domain, rp.Domain(())])
def test_counts_can_be_asked_for_without_tables(domain: rp.Domain):
    alone = replace(BOTH, domain=domain, asks_for_tables=len(domain) == 0)

    assert alone.kinds == ("counts",)
    assert [part.kind for part in alone.plan().parts] == ["counts"]


def test_nothing_at_all_is_refused():
    with pytest.raises(WorkloadError, match="Nothing is asked for"):
        replace(BOTH, query_list=None, asks_for_tables=False).plan()


def test_shares_stated_for_other_parts_are_out_of_use():
    shares = (("tables", Fraction(1, 4)), ("counts", Fraction(3, 4)))
    without = replace(BOTH, shares=shares, query_list=None)

    assert without.stated_shares is None
    assert without.plan().part("tables").budget == BOTH.budget


@pytest.mark.parametrize("share", [Fraction(1, 2), Fraction(0)])
def test_shares_that_are_not_the_whole_are_refused(share: Fraction):
    with pytest.raises(PlanError, match="sum to exactly 1"):
        replace(BOTH, shares=(("tables", share), ("counts", Fraction(1, 4))))


def test_all_of_it_is_in_the_file():
    shares = (("tables", Fraction(1, 3)), ("counts", Fraction(2, 3)))
    stated = replace(BOTH, shares=shares, asks_for_tables=False)

    again = Scenario.parse(stated.text())
    assert (again.shares, again.asks_for_tables) == (shares, False)
    assert again == stated


def test_a_project_of_version_1_is_converted_when_it_is_opened():
    opened = Project.parse(OLD.read_text())

    old, tables = opened.scenarios
    assert (old.kinds, tables.kinds) == (("tables", "counts"), ("tables",))
    assert old.stated_shares is None
    assert old.plan().rho <= old.budget.rho  # once for both, where it was once for each
    assert '"format_version": 2' in opened.text()
    assert '"format_version": 1' not in opened.text()
    assert Project.parse(opened.text()) == opened


def test_a_scenario_keeps_the_pilot_that_it_wants():
    wanted = replace(BOTH, pilot=Fraction(1, 20))
    again = Scenario.parse(wanted.text())
    assert again.pilot == Fraction(1, 20)
    request = rp.Request(
        tables=BOTH.workload, counts=COUNTS.queries, budget=BOTH.budget, pilot="5%"
    )
    assert again.plan().text == rp.plan(request).text
    assert '"pilot"' not in BOTH.text()
    with pytest.raises(PlanError, match="above 0 % and below 100 %"):
        replace(BOTH, pilot=Fraction(1))


EPSILON = rp.Budget(epsilon="1", delta="1e-6")


def test_a_scenario_keeps_what_the_rest_behind_its_pilot_is_planned_for():
    wanted = replace(BOTH, pilot=Fraction(1, 50), then="surely", cv_limit=0.1, budget=EPSILON)
    again = Scenario.parse(wanted.text())
    assert again == wanted
    request = rp.Request(
        tables=BOTH.workload,
        counts=COUNTS.queries,
        budget=wanted.budget,
        pilot="2%",
        then=rp.RestObjective("0.1", "surely"),
    )
    made = rp.plan(request)
    assert again.plan().text == made.text
    opened = Scenario.of_plan(made.part("tables"))
    assert (opened.rest_objective, opened.cv_limit) == (rp.RestObjective("0.1", "surely"), 0.1)
    with pytest.raises(PlanError, match="state the pilot's share"):
        replace(BOTH, then="median")
    with pytest.raises(PlanError, match="median or surely, got 20 % and 'soon'"):
        replace(wanted, cv_limit=0.2, then="soon")
