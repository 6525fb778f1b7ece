"""The Plan page."""

import html
import json
import re
import time
from fractions import Fraction

import pytest

import rpexplore as rp
from pages.components.shared.session import escaped, kept_name
from rpexplore.analysis.drawn_counts import DrawnCounts
from rpexplore.analysis.ranges import Range
from rpexplore.analysis.shared_suggestions import shared_suggestions
from rpexplore.analysis.suggestions import Bench, suggestions
from rpexplore.analysis.typical_counts import typical_counts
from rpexplore.common.text import describe_share, rounded
from rpexplore.domain.area_codebook import AreaCodebook
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.domain.public_tables import PublicTables
from rpexplore.planning.pilot import with_pilot
from rpexplore.scenarios.area_study import AreaStudy
from rpexplore.scenarios.workload_changes import for_smooth_tables
from rpexplore.workload.query_definitions import stated_from_text
from rpexplore.workload.rules import parse_rule
from tests.pages.conftest import plain
from tests.support.processor_time import PATIENCE


def test_the_plan_is_there_at_once(app):
    session = app("plan")
    metrics = session.metrics()
    assert metrics["95 % margin of error, median table"] == "±26.4 people"
    assert "At most ±29.6: age × occupation" in plain(session.texts("caption"))
    # epsilon(rho = 0.1, delta = 1e-6) = 2.14194, rounded up
    assert "ε = 2 at δ = 1e-6, ρ = 0.1. A guess at who" in plain(session.texts("caption"))
    assert "at most one part in a billion above the smallest possible" in plain(
        session.texts("markdown")
    )
    assert "ρ-zCDP with ρ = 0.1 for one record" in plain(session.texts("markdown"))
    assert not session.dataframe  # lists cost nothing until they are opened
    session.unfold("all tables")
    assert session.dataframe[-1].value["item"].tolist()[0] == "age × occupation"
    assert len(session.dataframe[-1].value) == 67


def test_how_many_tables_meet_is_said_one_by_one_too_where_that_differs(app):
    scenario = app("plan").scenario.replaced(budget=rp.Budget(rho="0.2"))
    session = app("plan", scenario)
    assert session.metrics()["Tables that meet the rule"] == "62 of 67"
    assert "Judged one by one, by their medians, 61 meet it" in plain(session.texts("caption"))


def test_expected_counts_tell_who_is_in_good_cells_and_what_a_change_does(app, small):
    session = app("plan", small)
    label = "People in good cells"
    assert label not in session.metrics()
    session.text_input(key="expected total").set_value("900").run()
    made = rp.Forecast(session.planned, expected=900)
    low, median, high = made.people.texts(describe_share)
    assert session.metrics()[label] == median
    assert f"{low} to {high}. Good cells: {made.cells.text(describe_share)}" in plain(
        session.texts("caption")
    )
    assert "Forecast from 900 records" in plain(session.texts("caption"))
    session.unfold("by group")
    session.selectbox(key="forecast by").set_value("sex").run()
    assert [*session.dataframe[-1].value["value"]] == ["0", "1"]
    session.text_input(key="wanted coefficient").set_value("5").run()
    stricter = rp.Forecast(session.planned, expected=900, limit=0.05)
    metric = next(one for one in session.metric if one.label == label)
    assert metric.value == describe_share(stricter.people.median)
    assert metric.delta.startswith("-")
    session.button(key="budget for rule").click().run()
    n_tables = len(small.workload)
    assert session.metrics()["Tables that meet the rule"] == f"{n_tables} of {n_tables}"
    assert "Margin of error ±" in plain(session.texts("caption"))  # and what it was before
    assert not session.error


def squares_of(session) -> dict[str, str]:
    """What each square or bar of the page says, by the title of its table."""
    (shown,) = (
        json.loads(element.proto.json)["html"]
        for element in session.get("bidi_component")
        if "data-table" in element.proto.json
    )
    says = re.findall('aria-label="([^"]*)"', shown)
    return dict(html.unescape(text).split(": ", 1) for text in says)


def test_every_table_has_a_square_or_a_bar_with_its_forecast(app, small):
    scenario = small.with_request(order=3).replaced(expected=ExpectedCounts.of_total(900))
    session = app("plan", scenario)
    made = rp.Forecast(session.planned, expected=900)
    words = {
        "yes": "meets the rule",
        "open": "meets the rule by the median, not surely",
        "no": "does not meet the rule",
    }
    expected = {}
    for row in made.tables().to_dict("records"):
        people = Range(row["people_low"], row["people_median"], row["people_high"])
        text = f"{people.text(describe_share)} of people in good cells; {words[row['meets']]}"
        expected[row["table"]] = text
    two_way = squares_of(session)
    assert two_way == {table: expected[table] for table in two_way}
    assert sorted(two_way) == sorted(
        title for title in expected if 0 < len(title.split(" × ")) < 3 and title != "(total)"
    )
    session.segmented_control(key="tables of").set_value("1-way").run()
    one_way = [*squares_of(session)]
    assert "(total)" in one_way
    people = made.tables().set_index("table")["people_median"]
    assert people[one_way].is_monotonic_increasing  # the worst first
    session.segmented_control(key="tables of").set_value("3-way").run()
    session.selectbox(key="third attribute").set_value("sex").run()
    shown = squares_of(session)
    assert "age × sex × region" in shown
    assert all("sex" in title for title in shown)
    row = made.by_order().set_index("attributes").loc["3 attributes"]
    low, median, high = (round(row[f"meeting_{end}"]) for end in ("low", "median", "high"))
    met = f"{median}" if low == high else f"{median} ({low} to {high})"
    three_way = people[people.index.str.count("×") == 2]
    assert f"{met} of {len(three_way)} meet the rule. The worst: {three_way.idxmin()}." in plain(
        session.texts("caption")
    )


def test_a_rule_is_kept_by_the_plan_and_met_at_the_budget_of_its_button(app, small):
    session = app("plan", small.replaced(expected=ExpectedCounts.of_total(900)))
    rule = session.text_input(key="typed rule")
    rule.set_value("CV<=10% for 110% of people in each table").run()
    assert "got 110" in session.error[0].value
    session.text_input(key="typed rule").set_value("CV<=0.5% for 70% of people in sex").run()
    (stated,) = session.scenario.rules
    assert session.planned.rules == (stated,)
    assert session.text_input(key="typed rule").value == "CV <= 0.5% for 70% of people in sex"
    assert session.metrics()["Tables that meet the rule"] == "0 of 1"
    session.button(key="budget for rule").click().run()
    assert session.metrics()["Tables that meet the rule"] == "1 of 1"
    less = session.scenario.budget.rho * Fraction(98, 100)
    assert rp.Forecast(session.planned, expected=900).n_meeting() == 1
    before = session.scenario.replaced(budget=rp.Budget(rho=less)).table_plan()
    assert rp.Forecast(before, expected=900).n_meeting() == 0
    session.text_input(key="typed rule").set_value("").run()
    assert session.scenario.rules == ()


def test_the_budget_for_the_rule_is_that_of_the_whole_plan(app, small):
    scenario = small.replaced(
        expected=ExpectedCounts.of_total(900),
        budget=rp.Budget(epsilon="0.5", delta="1e-6"),
        query_list=stated_from_text(small.domain, "everybody: total ± 50"),
    )
    session = app("plan", scenario)
    shown = session.metrics()["Budget at which all do"]
    session.button(key="budget for rule").click().run()
    enough = session.scenario.budget
    assert enough.stated_delta == Fraction("1e-6")
    assert shown == f"ε = {rounded(enough.stated_epsilon, 3, 'up')}"
    assert session.metrics()["Budget at which all do"] == shown


def test_a_plan_is_made_for_the_rule(app, small):
    rule = "CV <= 20% for 90% of people in each table"
    expected = ExpectedCounts.of_total(900)
    session = app("plan", small.replaced(expected=expected))
    same = session.metrics()["Budget at which all do"]
    session.button(key="plan for rule").click().run()
    assert not session.error
    assert session.scenario.rules == session.planned.rules == (parse_rule(small.domain, rule),)
    assert session.scenario.loss == rp.MaxVariance("target")
    ruled = rp.RuleTargets(small.workload, [rule], expected=900)
    assert session.scenario.workload.targets == pytest.approx(ruled.workload.targets)
    needed = rp.minimum_budget(ruled.workload).budget.rho
    assert float(session.scenario.budget.rho) == pytest.approx(float(needed), rel=1e-3)
    assert rp.Forecast(session.planned, expected=900).n_meeting() == len(small.workload)
    assert float(same.removeprefix("ρ = ")) >= float(needed)


def test_a_table_is_opened_with_typical_counts_and_explained(app, small):
    session = app("plan", small.replaced(expected=ExpectedCounts.of_total(5000)))
    session.session_state["opened table"] = ("age", "sex")
    session.run()
    (shown,) = (box.proto.body for box in session.get("html") if "typical" in box.proto.body)
    drawn = DrawnCounts.of(small.workload, PublicTables(small.domain, (), 5000))
    place = session.planned.workload.position(("age", "sex"))
    counts = typical_counts(session.planned, drawn, place, 0.2)
    assert f"{counts.counts[0, 0]:,.0f}" in shown
    session.segmented_control(key="view of one table").set_value("Explain this number").run()
    (parts,) = [each.value for each in session.dataframe if "measured" in each.value]
    assert parts["share"].sum() == pytest.approx(100)
    assert not session.error


@pytest.mark.nightly
def test_what_would_make_a_table_good_is_listed_and_applied(app, small):
    small = small.replaced(budget=rp.Budget(rho="0.005"))
    session = app("plan", small)
    session.segmented_control(key="view of one table").set_value("What would make it good").run()
    assert "With expected counts" in plain(session.texts("caption"))
    session.text_input(key="expected total").set_value("5000").run()
    session.session_state["opened table"] = ("age", "region")
    session.run()
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
    session.run()
    session.button(key=f"apply {numbers['budget']}").click().run()
    assert session.scenario.budget == made.proposals[numbers["budget"]].budget
    assert not session.error


def test_one_change_for_many_tables_is_applied_to_all_of_them(app, small):
    domain = rp.Domain([rp.Attribute("age", rp.Integers(0, 99)), *small.domain.attributes[1:]])
    scenario = small.replaced(
        domain=domain, budget=rp.Budget(rho="0.0005"), expected=ExpectedCounts.of_total(50_000)
    )
    session = app("plan", scenario)
    session.segmented_control(key="view of one table").set_value("What would make it good").run()
    session.unfold("changes together")
    drawn = DrawnCounts.of(scenario.workload, PublicTables(domain, (), 50_000))
    made = shared_suggestions(Bench(session.planned, drawn, 0.2, 0.9, None, "people"))
    best = made.proposals[0]
    assert plain([escaped(best.text("people"))]) in plain(session.texts("markdown"))
    session.button(key="apply together 0").click().run()
    assert not session.error
    tables = scenario.workload.tables
    expected = {best.replacements.get(table, table) for table in tables}
    assert len(best.replacements) == best.n_changed > 1
    assert {*session.scenario.workload.tables} == expected != {*tables}
    assert session.scenario.budget == scenario.budget


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
    assert session.text_input(key="typed budget").value == "1.994"
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
    session.unfold("all tables")
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
    session.unfold("model-based estimates")
    session.button_of("Simulate them").click().run()
    assert "Simulated on made-up people (900)" in plain(session.texts("markdown"))
    assert "everything else about them is invented" in plain(session.texts("caption"))
    (frame,) = (table.value for table in session.dataframe if "smooth" in table.value)
    assert frame["order"].tolist() == [1, 2]
    # Shares as the sentence has them.
    sentence = plain(session.texts("markdown"))
    assert f"is off by {frame['smooth'].iloc[-1]} of the people (errors of all its" in sentence
    # Of another plan it is not said.
    session.scenario = for_smooth_tables(session.scenario)
    session.run()
    assert "Simulated on" not in plain(session.texts("markdown"))


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


def test_a_proposal_for_a_table_in_areas_changes_its_level_alone(app, small):
    codes = [(county, town) for county in "NS" for town in "123"]
    tree = rp.AreaTree.from_columns(
        {"county": [one for one, _ in codes], "town": [two for _, two in codes]}
    )
    ages = rp.Attribute("age", rp.Integers(0, 39))
    book = AreaCodebook("home", tree, rp.Domain((ages,)))
    study = AreaStudy.of("areas.json", book)
    scenario = small.replaced(areas=study, asks_for_tables=False)
    session = app("plan", scenario.replaced(expected=ExpectedCounts.of_total(2000)))
    deadline = time.monotonic() + PATIENCE
    while not any(one.key == "apply 0" for one in session.button):
        assert time.monotonic() < deadline
        session.run()
    assert session.selectbox(key="table in areas").value == "town: age"
    session.button(key="apply 0").click().run()
    assert not session.error
    tables = session.scenario.areas.tables
    assert ("age",) not in tables["town"].tables
    assert ("age",) in tables["county"].tables
    assert session.scenario.areas.workload.n_tables == study.workload.n_tables
