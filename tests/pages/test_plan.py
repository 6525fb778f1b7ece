"""The Plan page."""

from fractions import Fraction

import pytest

import rpexplore as rp
from pages.components.shared.session import escaped, kept_name
from rpexplore.analysis import accuracy
from rpexplore.analysis.drawn_counts import DrawnCounts
from rpexplore.analysis.expected_cells import ExpectedCells
from rpexplore.analysis.explanation import explanation
from rpexplore.analysis.suggestions import suggestions
from rpexplore.analysis.usefulness import Usefulness
from rpexplore.common.text import describe_share
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.domain.public_tables import PublicTables
from rpexplore.planning.pilot import with_pilot
from rpexplore.scenarios.workload_changes import for_smooth_tables
from tests.pages.conftest import check_charts, plain


def test_the_plan_is_there_at_once(app):
    session = app("plan")
    metrics = session.metrics()
    assert metrics["A cell of the median table, 95 %"] == "±26.4 people"
    assert metrics["A cell of the least accurate table, 95 %"] == "±29.6 people"
    # epsilon(rho = 0.1, delta = 1e-6) = 2.14194, rounded up
    assert "ε = 2.15 at δ = 1e-6, ρ = 0.1, for one record" in plain(session.texts("caption"))
    assert "at most one part in a billion above the smallest possible" in plain(
        session.texts("markdown")
    )
    assert "ρ-zCDP with ρ = 0.1 for one record" in plain(session.texts("markdown"))
    assert session.dataframe[-1].value["item"].tolist()[0] == "age × occupation"
    assert len(session.dataframe[-1].value) == 67


def metric_of_even(session):
    return next(one for one in session.metric if "if counts were even" in one.label)


def test_expected_counts_tell_what_is_publishable_and_what_a_change_does(app, small):
    session = app("plan", small)
    assert "Publishable cells, if counts were even" not in session.metrics()
    session.text_input(key="expected total").set_value("900").run()
    cells = ExpectedCells.of(session.scenario.expected, small.workload)
    share = Usefulness.of_plan(session.planned, cells, 0.2).share_text
    assert session.metrics()["Publishable cells, if counts were even"] == share
    made = rp.Forecast(session.planned, expected=900)
    assert session.metrics()["People in good cells"] == describe_share(made.people.median)
    assert "Forecast from 900 records" in plain(session.texts("caption"))
    session.selectbox(key="forecast by group").set_value("sex").run()
    assert not metric_of_even(session).delta
    session.text_input(key="wanted coefficient").set_value("5").run()
    stricter = Usefulness.of_plan(session.planned, cells, 0.05)
    assert session.metrics()["Publishable cells, if counts were even"] == stricter.share_text
    assert metric_of_even(session).delta.startswith("-")
    assert "Margin of error ±" not in plain(session.texts("caption"))  # a change of the limit alone
    session.button(key="budget for 0.95").click().run()
    assert "Margin of error ±" in plain(session.texts("caption"))
    assert Usefulness.of_plan(session.planned, cells, 0.05).share >= 0.95
    assert "points" in metric_of_even(session).delta
    assert not session.error


def test_a_rule_is_kept_by_the_plan_and_met_at_the_budget_of_its_button(app, small):
    session = app("plan", small.replaced(expected=ExpectedCounts.of_total(900)))
    rule = session.text_input(key="typed rule")
    rule.set_value("CV<=10% for 110% of people in each table").run()
    assert "got 110" in session.error[0].value
    session.text_input(key="typed rule").set_value("CV<=0.5% for 70% of people in sex").run()
    (stated,) = session.scenario.rules
    assert session.planned.rules == (stated,)
    assert session.text_input(key="typed rule").value == "CV <= 0.5% for 70% of people in sex"
    assert "0 of 1 table meets the rule" in plain(session.texts("caption"))
    session.button(key="budget for rule").click().run()
    assert "1 of 1 table meets the rule" in plain(session.texts("caption"))
    less = session.scenario.budget.rho * Fraction(98, 100)
    assert rp.Forecast(session.planned, expected=900).n_meeting() == 1
    before = session.scenario.replaced(budget=rp.Budget(rho=less)).table_plan()
    assert rp.Forecast(before, expected=900).n_meeting() == 0
    session.text_input(key="typed rule").set_value("").run()
    assert session.scenario.rules == ()


def test_a_table_is_shown_as_it_would_look_and_explained(app, small):
    session = app("plan", small.replaced(expected=ExpectedCounts.of_total(5000)))
    session.selectbox(key="table to look at").set_value("sex").run()
    made_up = session.session_state["made up"][1]
    assert made_up.attributes == ("sex",)
    session.button(key="draw again").click().run()
    assert session.session_state["made up"][1] is not made_up
    for view in ("Bars", "Grid"):
        session.segmented_control(key="made up as").set_value(view).run()
        assert not session.error
        check_charts(session)
    session.segmented_control(key="view of one table").set_value("Explain this number").run()
    (parts,) = [each.value for each in session.dataframe if "measured" in each.value]
    assert parts["share"].sum() == pytest.approx(100)
    assert not session.error


def test_what_would_make_a_table_good_is_listed_and_applied(app, small):
    small = small.replaced(budget=rp.Budget(rho="0.005"))
    session = app("plan", small)
    session.segmented_control(key="view of one table").set_value("What would make it good").run()
    assert "With expected counts" in plain(session.texts("caption"))
    session.text_input(key="expected total").set_value("5000").run()
    session.selectbox(key="table to look at").set_value("age × region").run()
    drawn = DrawnCounts.of(small.workload, PublicTables(small.domain, (), 5000))
    (made,) = suggestions(session.planned, drawn, 0.2, 0.9, [("age", "region")])
    texts = plain(session.texts("markdown"))
    for proposal in made.proposals:
        assert plain([escaped(proposal.text("people"))]) in texts
    numbers = {one.change.action: number for number, one in enumerate(made.proposals)}
    session.button(key=f"apply {numbers['bands']}").click().run()
    assert not session.error
    replacement = made.proposals[numbers["bands"]].change.replacement
    assert replacement in session.scenario.workload.tables
    assert ("age", "region") not in session.scenario.workload.tables
    assert session.scenario.budget == small.budget
    session.scenario = small.replaced(expected=ExpectedCounts.of_total(5000))
    session.run().selectbox(key="table to look at").set_value("age × region").run()
    session.button(key=f"apply {numbers['budget']}").click().run()
    assert session.scenario.budget == made.proposals[numbers["budget"]].budget
    assert not session.error


def test_a_chosen_row_of_all_tables_is_explained(app, small):
    session = app("plan", small)
    assert "Click a table" in plain(session.texts("caption"))
    order = accuracy.least_accurate_first(session.planned)
    table = int(order[2])
    session.session_state[f"tables {hash(order.tobytes())}"] = {
        "selection": {"cells": [[2, "item"]]}
    }
    session.run()
    title = session.dataframe[-2].value["item"][2]
    assert f"**Explain this number: {title}**" in plain(session.texts("markdown"))
    sentence = explanation(session.planned, table).describe("people", small.request)[0]
    assert sentence in plain(session.texts("markdown"))


def test_published_releases_stand_beside_the_budget(app, small):
    session = app("plan", small.replaced(budget=rp.Budget(rho="2.5"))).unfold("budget context")
    text = plain(session.texts("markdown"))
    assert "This plan** \n" in text.replace("  ", " ")
    assert "U.S. Census Bureau, 2021: ρ = 2.56 for a person" in text
    assert "compare only for the same privacy unit" in plain(session.texts("caption"))
    session.press("All published releases")
    listed = session.dataframe[-1]
    assert len(listed.value) == 31
    assert "source" in listed.proto.columns


# ---- the budget


def test_budget_is_typed_exactly_or_slides(app, small):
    session = app("plan", small)
    session.text_input(key="typed budget").set_value("1/3").run()
    assert session.scenario.budget.rho == Fraction(1, 3)
    assert session.text_input(key="typed budget").value == "1/3"
    session.select_slider(key="slid budget").set_value("2").run()
    assert session.scenario.budget == rp.Budget(rho=2)
    assert session.text_input(key="typed budget").value == "2"
    assert "more private" in session.select_slider(key="slid budget").label
    before = session.scenario
    session.text_input(key="typed budget").set_value("-1").run()
    assert len(session.error) == 1
    assert session.scenario == before
    assert session.text_input(key="typed budget").value == "2"
    assert not session.run().error


def test_budget_as_epsilon_and_delta(app, small):
    session = app("plan", small)
    session.segmented_control(key="unit").set_value("epsilon").run()
    assert session.scenario == small  # another unit to look at changes nothing
    assert session.text_input(key="typed budget").value == "2.141"
    assert session.text_input(key="delta").value == "1e-6"
    session.text_input(key="typed budget").set_value("1").run()
    session.text_input(key="delta").set_value("1e-9").run()
    assert session.scenario.budget == rp.Budget(epsilon=1, delta="1e-9")
    assert "ε = 1 at δ = 1e-9" in plain(session.texts("caption"))
    assert not session.info
    session.text_input(key="typed budget").set_value("20").run()
    session.text_input(key="delta").set_value("0.001").run()
    assert "ε above 10 promises little" in session.info[0].value
    assert "δ should be far below one in the number of records" in session.info[1].value
    assert not session.error


def test_protecting_people_costs_accuracy(app, small):
    session = app("plan", small)
    before = session.planned.standard_errors
    session.radio(key="protected").set_value("A person").run()
    session.number_input(key="records per person").set_value(3).run()
    assert session.scenario.budget == rp.Budget(rho="0.1", max_records_per_person=3)
    after = session.planned.standard_errors
    assert after / before == pytest.approx([3.0] * 7, rel=1e-9)
    assert "one person with at most 3 records" in plain(session.texts("caption"))
    session.radio(key="protected").set_value("A record").run()
    assert session.scenario == small


# ---- tables and files


def test_the_plan_is_made_once_and_its_tables_are_filtered(app, small):
    session = app("plan", small)
    planned = session.planned
    session.open("workload").open("release").open("plan")
    assert session.planned is planned
    session.multiselect(key="tables containing").set_value(["sex"]).run()
    assert len(session.dataframe[-1].value) == 3
    session.multiselect(key="tables containing").set_value(["age", "sex", "region"]).run()
    assert "No table has all" in plain(session.texts("info"))
    # Only attributes of some table are offered, and stay chosen.
    session.scenario = small.with_request(kind="listed", listed=(("age",), ("age", "sex")))
    attributes = session.run().multiselect(key="tables containing")
    assert (attributes.options, attributes.value) == (["age", "sex"], ["age", "sex"])


def test_smooth_tables_are_rehearsed_when_asked_for(app, small):
    session = app("plan", small.replaced(expected=ExpectedCounts.of_total(900)))
    session.button_of("Simulate them").click().run()
    assert "Rehearsed on made-up people (900)" in plain(session.texts("markdown"))
    assert "everything else about them is invented" in plain(session.texts("caption"))
    (frame,) = (table.value for table in session.dataframe if "smooth" in table.value)
    assert frame["order"].tolist() == [1, 2]
    # Shares as the sentence has them.
    sentence = plain(session.texts("markdown"))
    assert f"is off by {frame['smooth'].iloc[-1]} of the people (errors of all its" in sentence
    assert "can be rehearsed below" not in plain(session.texts("caption"))
    # Of another plan it is not said.
    session.scenario = for_smooth_tables(session.scenario)
    session.run()
    assert "Rehearsed" not in plain(session.texts("markdown"))
    assert "of unbiased tables; the smooth ones, for which" in plain(session.texts("caption"))


def test_a_pilot_is_chosen_by_a_switch_and_is_in_the_plan(app):
    session = app("plan")
    before = session.planned.mean_variances
    session.toggle(key="pilot").set_value(True).run()
    assert not session.error
    assert session.scenario.pilot == Fraction(1, 20)
    name = kept_name(with_pilot, session.scenario.name)
    planned = session.test.session_state[name][1].part("tables")
    assert float(planned.pilot_share) == pytest.approx(0.05, rel=0.01)
    assert (planned.mean_variances == before).all()
