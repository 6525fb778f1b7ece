"""The Tables page."""

import re

import numpy as np
import pytest

import rpexplore as rp
from pages.components.shared.background import task_name
from rpexplore.analysis.forecast import Forecast
from rpexplore.common.text import rounded
from rpexplore.domain.domain import TO_COMPLETE
from rpexplore.releases import feasibility
from rpexplore.releases.release import release
from rpexplore.results import smooth_choice
from rpexplore.results.second_plan import weights_from_release
from rpexplore.results.smooth_choice import choose_smooth_weights
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.table_settings import TableSetting
from rpexplore.scenarios.workload_changes import for_smooth_tables
from rpexplore.scenarios.workload_request import WorkloadRequest
from rpexplore.workload.query_definitions import StatedQueries
from rpexplore.workload.smooth_weights import SmoothWeights
from rpexplore.workload.targets import Target
from tests.pages.conftest import plain
from tests.support.processor_time import PATIENCE, at_most


def choose(session, kind):
    session.radio(key="kind").set_value(kind).run()
    return session


def weights(session):
    return session.show("workload", "weights")


def said(session):
    return plain(session.texts("caption"))


def disabled(session):
    return {button.label: button.disabled for button in session.button}


@pytest.mark.nightly
def test_quick_builders(app, small):
    session = app("workload", small)
    # (total), 10 + 2 + 5 and 20 + 50 + 10 cells.
    largest = "at most 50 in one (age × region)"
    measured = "computed from 7 noisy measurements"
    assert f"In all 7 tables with 98 cells, {largest}, {measured}" in said(session)
    for kind, key, value, tables in (
        ("up_to", "order", 1, "4"),
        ("of_order", "order", 2, "3"),
        ("at_most_cells", "cells", 10, "5"),
    ):
        choose(session, kind).number_input(key=key).set_value(value).run()
        assert f"In all {tables} tables" in said(session)
        assert not session.error


def lines_of(session):
    """What is published, as the page lists it: the texts of each line."""
    texts = [plain([text]) for text in session.texts("markdown")]
    weights = [place for place, text in enumerate(texts) if text.endswith("[weight]")]
    return ["; ".join(texts[place - 2 : place + 3]) for place in weights]


def test_lines_are_added_edited_and_removed_in_one_list(app, small):
    session = app("workload", small)
    session.multiselect(key="attributes of One table").set_value(["region", "sex", "age"]).run()
    session.button(key="add One table").click().run()
    assert session.query_params["part"] == "which-2"
    assert len(session.scenario.workload) == 8
    assert session.scenario.workload.orders.max() == 3
    session.text_input(key="Weight of these tables 2").set_value("3").run()
    session.text_input(key="Target of these tables 2").set_value("±40").run()
    setting = TableSetting(("age", "sex", "region"), 3.0, Target(40, "margin", 95))
    assert session.scenario.request.settings == (setting,)
    every, one = lines_of(session)
    assert "All tables up to 2-way" in every
    assert "7 tables" in every
    assert "age × sex × region" in one
    assert "100 cells]; 3" in one
    assert "±40 at 95 %" in one
    margin = 1.959964 * session.scenario.table_plan().standard_errors[-1]
    assert f"±{rounded(margin, 3)}" in one
    # The first line goes; the other one stays, and comes back by undo.
    session.button(key="remove which").click().run()
    assert session.scenario.workload.tables == [("age", "sex", "region")]
    session.press("Undo").press("Undo").press("Undo").press("Undo")
    assert session.scenario == small
    # The last line: nothing is published until something is added.
    session.button(key="remove which").click().run()
    assert "Nothing is published yet" in plain(session.texts("info"))
    session.press("Tables")
    assert session.scenario == small


def test_a_weight_of_the_only_line_holds_for_tables_that_come_later(app, small):
    session = app("workload", small.with_request(order=1))
    session.text_input(key="Weight of these tables").set_value("2").run()
    session.text_input(key="Target of these tables").set_value("5").run()
    session.number_input(key="order").set_value(2).run()
    assert session.scenario.workload.weights.tolist() == [2.0] * 7
    assert session.scenario.workload.targets.tolist() == [5.0] * 7
    session.text_input(key="Weight of these tables").set_value("").run()
    session.text_input(key="Target of these tables").set_value("").run()
    assert session.scenario == small
    session.text_input(key="Weight of these tables").set_value("heavy").run()
    assert "The weight" in plain(session.texts("error"))
    assert session.scenario == small


def test_forecasts_stand_in_the_lines(app, small):
    session = app("workload", small)
    assert "median margin, 95 %" in lines_of(session)[0]
    session.text_input(key="expected total").set_value("900").run()
    made = Forecast(session.scenario.table_plan(), expected=900)
    assert "of people in good cells" in lines_of(session)[0]
    low, high = made.people.low, made.people.high
    text = re.search(r"(\d+) % \((\d+) % to (\d+) %\)", lines_of(session)[0])
    assert text is not None
    assert float(text[2]) / 100 == pytest.approx(low, abs=0.05)  # other populations were drawn
    assert float(text[3]) / 100 == pytest.approx(high, abs=0.05)


def test_the_open_part_is_in_the_address_and_remembered(app, small):
    session = app("workload", small)
    session.button(key="edit weights").click().run()
    assert session.query_params["part"] == "weights"
    session.multiselect(key="tables with").set_value(["sex"]).run()
    del session.query_params["part"]
    session.open("plan").open("workload")
    assert session.multiselect(key="tables with").value == ["sex"]
    session.press("Close")
    assert not session.multiselect(key="attributes of One table").value
    assert "tables with" not in [box.key for box in session.multiselect]


def test_the_number_of_attributes_stays_what_it_was_with_fewer_of_them(app, small):
    scenario, _ = small.with_request(order=3).with_domain(rp.Domain(small.domain.attributes[:1]))
    session = app("workload", scenario)
    assert session.number_input(key="order").value == 1
    assert session.scenario.request.order == 3


def test_a_list_starts_with_the_present_tables_and_is_edited(app, small):
    session = choose(app("workload", small), "listed")
    assert session.text_area(key="listed").value.splitlines()[:3] == ["total", "age", "sex"]
    session.text_area(key="listed").set_value("sex × age\nregion").run()
    assert session.scenario.workload.tables == [("region",), ("age", "sex")]


def test_an_unusable_list_stays_to_be_mended(app, small):
    session = choose(app("workload", small), "listed")
    before = session.scenario
    session.text_area(key="listed").set_value("age\nheight").run()
    assert "Line 2" in session.error[0].value
    assert session.scenario == before
    assert session.text_area(key="listed").value == "age\nheight"
    for _ in range(2):  # for as long as it is kept, also on later visits
        assert "still uses the list before this one" in session.error[0].value
        assert len(session.error) == 1
        session.open("plan").open("workload")
    assert session.text_area(key="listed").value == "age\nheight"
    assert session.scenario == before
    session.text_area(key="listed").set_value("age").run()
    assert not session.error
    assert session.text_area(key="listed").value == "age"


def test_a_list_with_an_attribute_named_total(app):
    domain = rp.Domain.from_sizes({"total": 2, "a,b": 3, "age": 4})
    session = choose(app("workload", Scenario(domain, WorkloadRequest(order=2))), "listed")
    text = session.text_area(key="listed").value
    assert text.splitlines()[:2] == ["(total)", "total"]
    assert "(total) stands for the total" in session.text_area(key="listed").label
    before = session.scenario
    session.text_area(key="listed").set_value(text + "\n").run()
    assert not session.error
    assert session.scenario == before
    assert session.scenario.workload.tables[:2] == [(), ("total",)]


# ---- narrowing


def test_a_quick_builder_is_narrowed(app, small):
    session = app("workload", small)
    session.multiselect(key="containing").set_value(["sex"]).run()
    assert session.scenario.workload.tables == [("sex",), ("age", "sex"), ("sex", "region")]
    session.multiselect(key="only").set_value(["region", "sex"]).run()
    assert session.scenario.request.only == ("sex", "region")  # in the codebook's order
    session.number_input(key="most_cells").set_value(5).run()
    assert session.scenario.workload.tables == [("sex",)]
    assert "sex, region; each with sex; at most 5 cells" in lines_of(session)[0]
    session.number_input(key="most_cells").set_value(None).run()
    session.multiselect(key="only").set_value([]).run()
    session.multiselect(key="containing").set_value([]).run()
    assert session.scenario == small
    # One that leaves no table is refused.
    session.multiselect(key="only").set_value(["age"]).run()
    session.multiselect(key="containing").set_value(["sex"]).run()
    assert "not one of the attributes that tables may have" in session.error[0].value
    assert session.multiselect(key="containing").value == []
    assert session.scenario.request.only == ("age",)


# ---- weight and targets


def grid_of(session):
    return session.data_editor[0].value.set_index("table")


def test_weight_and_targets_are_typed_and_shown_in_units(app, small):
    session = weights(app("workload", small))
    before = grid_of(session)["error"]
    session.type_in_grid("workload grid", 2, "weight", 5.0)
    session.type_in_grid("workload grid", 2, "target", "3")
    assert session.scenario.request.settings == (TableSetting(("sex",), 5.0, 3.0),)
    after = grid_of(session)["error"]
    assert after["sex"] < before["sex"]
    assert after["age"] > before["age"]
    session.type_in_grid("workload grid", 1, "target", "+/- 1,000")
    session.type_in_grid("workload grid", 2, "target", "0.1 % of 100")
    session.type_in_grid("workload grid", 3, "target", "! 12.50")
    assert not session.error
    grid = grid_of(session)
    assert grid["target"].tolist()[1:4] == ["±1000 at 95 %", "0.1 % of 100", "σ = 12.50"]
    assert grid["required"].tolist()[1:4] == [False, False, True]
    age, sex, region = grid["outcome"].tolist()[1:4]
    assert age.startswith("met: ±")
    assert sex.startswith("short by ")
    assert sex.endswith(" points, out of reach")
    assert region.startswith("met: σ = ")
    assert grid["outcome"].tolist()[0] == ""
    again = Scenario.parse(session.scenario.text())
    assert again == session.scenario
    session.open("plan").open("workload")
    assert grid_of(session).equals(grid)


@pytest.mark.nightly
def test_a_target_of_many_tables_is_in_any_unit_and_errors_stand_beside_it_in_that(app, small):
    session = weights(app("workload", small))
    session.press("Set for all 7 tables")
    assert "Type a weight or a target" in session.info[0].value
    session.text_input(key="target of many").set_value("5 %").run()
    session.press("Set for all 7 tables")
    assert "must be written like" in session.error[0].value
    assert session.text_input(key="target of many").value == "5 %"
    assert session.scenario == small
    errors = session.scenario.table_plan().standard_errors
    for typed, target, factor in (
        ("50", Target(50), 1),
        ("±50 at 90 %", Target(50, "margin", 90), 1.644854),
        ("50 % of 1000 required", Target(50, "cv", count=1000, required=True), 1 / 10),
    ):
        session.text_input(key="target of many").set_value(typed).run()
        session.press("Set for all 7 tables")
        assert not session.error
        (group,) = session.scenario.request.groups
        assert group.target == target
        shown = session.data_editor[0].value["error"].to_numpy()
        assert shown == pytest.approx(factor * errors)
        assert session.text_input(key="target of many").value == ""
    assert ", required" in plain(session.texts("markdown"))
    assert session.scenario.workload.required.all()


@pytest.mark.nightly
def test_typed_cells_do_not_reach_other_tables_in_as_many_rows(app, small):
    """Streamlit would keep them: the columns and the number of rows are the same."""
    session = app("workload", small)
    session.multiselect(key="only").set_value(["age", "sex"]).run()
    weights(session).type_in_grid("workload grid", 1, "weight", 9.0)
    session.type_in_grid("workload grid", 2, "weight", 7.0)
    session.type_in_grid("workload grid", 2, "target", "3")
    typed = (TableSetting(("age",), 9.0), TableSetting(("sex",), 7.0, 3.0))
    assert session.scenario.request.settings == typed
    session.show("workload", "which").multiselect(key="only").set_value(["age", "region"]).run()
    assert weights(session).data_editor[0].value["table"].tolist()[2] == "region"
    session.run()
    assert session.scenario.request.settings == typed
    # Changes of the filter, too, and back to the first tables.
    session.show("workload", "which").multiselect(key="only").set_value([]).run()
    weights(session)
    for chosen in (["sex"], ["region"], ["age"]):
        session.multiselect(key="tables with").set_value(chosen).run()
        session.type_in_grid("workload grid", 0, "weight", 5.0)
    assert [setting.weight for setting in session.run().scenario.request.settings] == [5.0] * 3
    assert session.scenario.workload.weights.tolist() == [1, 5, 5, 5, 1, 1, 1]
    choose(session.show("workload", "which"), "at_most_cells")
    session.number_input(key="cells").set_value(5).run()
    assert "1 setting of tables" in " ".join(session.texts("caption"))


def test_a_refused_cell_is_not_dropped_silently_for_other_tables(app, small):
    session = app("workload", small)
    session.multiselect(key="only").set_value(["age", "sex"]).run()
    weights(session).type_in_grid("workload grid", 2, "weight", 0.0)
    assert "must be a positive number" in session.error[0].value
    session.show("workload", "which").multiselect(key="only").set_value(["age", "region"]).run()
    assert "given up" in session.warning[0].value
    assert not session.error
    assert session.scenario.request.settings == ()


def test_targets_are_set_where_the_plan_waits_for_them(app, small):
    scenario = small.replaced(loss=rp.MaxVariance(relative_to="target"))
    session = weights(app("workload", scenario))
    assert "has no target" in session.error[0].value
    assert session.data_editor[0].value["error"].isna().all()
    session.type_in_grid("workload grid", 1, "target", "7")
    session.text_input(key="target of many").set_value("5").run()
    session.press("Set for all 7 tables")
    assert not session.error
    assert session.scenario.workload.targets.tolist() == [5.0] * 7
    assert session.data_editor[0].value["error"].notna().all()


@pytest.mark.nightly
def test_many_tables_are_set_at_once_and_forgotten(app, small):
    session = weights(app("workload", small))
    session.multiselect(key="tables with").set_value(["sex"]).run()
    assert len(session.data_editor[0].value) == 3
    session.press("Set for")
    assert "Type a weight" in session.info[0].value
    session.text_input(key="weight of many").set_value("2").run()
    session.press("Set for all 3 tables with sex")
    assert session.scenario.workload.weights.tolist() == [1, 1, 2, 1, 2, 1, 2]
    assert "All tables with sex: weight × 2" in plain(session.texts("markdown"))
    # A second click does not multiply once more, but another factor does.
    assert session.text_input(key="weight of many").value == ""
    session.text_input(key="weight of many").set_value("1.5").run()
    session.press("Set for")
    assert session.scenario.workload.weights.tolist() == [1, 1, 3, 1, 3, 1, 3]
    session.press("Remove all weights")
    assert session.scenario == small
    # A weight can be set as well, with a target, until the group is removed.
    session.scenario = small.with_settings([TableSetting(("age",), 7.0)])
    session.multiselect(key="tables with").set_value([]).run()
    session.segmented_control(key="how to weight").set_value("set to").run()
    session.text_input(key="weight of many").set_value("4").run()
    session.text_input(key="target of many").set_value("9").run()
    session.press("Set for all 7 tables")
    assert session.scenario.workload.weights.tolist() == [4.0] * 7
    assert session.scenario.workload.targets.tolist() == [9.0] * 7
    session.button(key="drop group 0").click().run()
    assert session.scenario == small


# ---- what will not fit, and other extremes


def of_sizes(*sizes, **request):
    domain = rp.Domain.from_sizes({f"a{i:02}": size for i, size in enumerate(sizes)})
    return Scenario(domain, WorkloadRequest(**request))


def test_a_table_of_two_billion_cells_is_shown_and_narrowed_away(app):
    session = app("workload", of_sizes(2000, 1000, 1000, order=3))
    assert "at most about 2 billion in one" in said(session)
    assert weights(session).data_editor[0].value["cells"].max() == 2e9
    assert session.data_editor[0].value["error"].notna().all()
    text = plain(session.texts("warning"))
    assert "The table a00 × a01 × a02 has about 2 billion cells" in text  # on any disk
    assert not session.error
    session.press("Keep tables of at most 10,000,000 cells (drops 1 of 8 tables)")
    assert session.scenario.request.most_cells == 10**7
    assert not session.warning
    assert "Keep tables" not in " ".join(disabled(session))
    # Of a list the page only says what would fit.
    tables = (("a00",), ("a00", "a01", "a02"))
    session.scenario = session.scenario.with_request(kind="listed", listed=tables)
    session.run()
    assert session.warning
    text = plain(session.texts("markdown"))
    assert "tables of at most 10,000 cells (drops 1 of 2 tables)" in text
    assert "Keep tables" not in " ".join(disabled(session))


def test_what_cannot_be_planned_is_said_before_it_is_tried(app, monkeypatch):
    monkeypatch.setattr(feasibility, "MAX_INCIDENCES", 1000)
    session = app("workload", of_sizes(*[2] * 8, order=8))
    (error,) = session.texts("error")
    assert "too much to plan" in error
    assert "noisy measurement" not in said(session)
    assert weights(session).data_editor[0].value["error"].isna().all()
    session.press("Keep tables of at most 3 attributes")  # 1 + 8·2 + 28·4 + 56·8 = 577
    assert not session.error
    assert session.scenario.request.order == 3


def test_without_attributes_or_values_every_page_says_so(app, small):
    session = app("workload", Scenario(rp.Domain(())))
    for page in ("workload", "plan", "fairness", "tradeoffs", "release"):
        session.open(page)
        assert "No attributes yet" in session.info[0].value
        assert len(session.title) == 1
        assert not session.error
        assert not session.metric
    session.open("areas")  # which have a codebook of their own
    assert "Open the sample country" in disabled(session)
    assert not session.error
    domain = rp.Domain((*small.domain.attributes, rp.Attribute("income", TO_COMPLETE)))
    session.scenario = small.replaced(domain=domain)
    for page in ("workload", "plan", "fairness", "tradeoffs", "release"):
        session.open(page)
        assert "No values yet for \\'income\\'" in session.warning[0].value
        assert not session.exception


@pytest.mark.nightly
def test_very_many_tables_are_cut_visibly_set_at_once_and_listed_without_their_text(app, very_many):
    """≤ 1.5 s of processor time for a change, with a factor of two for a slower machine."""
    session = weights(app("workload", very_many))
    assert "first 2,000 of 166,751" in session.info[0].value
    assert len(session.data_editor[0].value) == 2000
    assert session.download_button[0].label == "Download tables.csv"
    session.text_input(key="weight of many").set_value("2").run()
    with at_most(3):
        session.press("Set for all 166,751 tables")
    assert session.scenario.request.settings == ()
    assert set(session.scenario.workload.weights.tolist()) == {2.0}
    assert len(session.scenario.text()) < 20_000
    # A list begins with the attributes, not with more tables than can be edited.
    choose(session.show("workload", "which"), "listed")
    assert len(session.scenario.workload) == 100
    tables = very_many.workload.tables[:3000]
    session.scenario = very_many.with_request(kind="listed", listed=tuple(tables))
    session.run()
    assert "3,000 tables, too many to edit as text" in plain(session.texts("info"))
    assert not session.text_area


@pytest.mark.nightly
def test_weights_for_smooth_tables_say_what_they_cost_before_they_are_applied(app, small):
    asked = small.with_request(kind="of_order")
    session = weights(app("workload", asked))
    session.button_of("Weights for smooth tables").click().run()
    assert "Apply" not in {button.label for button in session.button}
    session.text_input(key="expected total").set_value("5000").run()
    text = plain(session.texts("markdown"))
    # The total and the three attributes.
    assert "4 smaller tables are added." in text
    effect = text[text.index("In the 3 tables, the margin of error of an unbiased cell") :]
    before, after = re.findall(r"from ±([\d.]+) to ±([\d.]+) people in the median", effect)[0]
    unbiased = asked.table_plan()
    least = " × ".join(unbiased.workload.tables[int(np.argmax(unbiased.standard_errors))])
    assert re.search(rf"from ±[\d.]+ for {least} to ±[\d.]+ for .* in the least", effect)
    assert float(before) < float(after)
    assert "Weights for smooth tables" not in {button.label for button in session.button}
    session.button_of("Simulate smooth tables").click().run()
    assert "Simulated on made-up people (5,000)" in plain(session.texts("markdown"))
    assert session.scenario.request == asked.request
    session.button(key="apply smooth weights").click().run()
    assert session.scenario.request.smooth_weights == SmoothWeights(0.1, 5000)
    margin = 1.959964 * np.median(session.scenario.table_plan().standard_errors[-3:])
    assert float(after) == pytest.approx(margin, rel=5e-3)
    assert "set the weights anew" not in plain(session.texts("caption"))
    session.scenario = session.scenario.replaced(budget=rp.Budget(rho=1))
    assert "set the weights anew" in plain(session.run().texts("caption"))
    session.button(key="drop smooth weights").click().run()
    assert session.scenario.request.smooth_weights is None


@pytest.mark.nightly
def test_weights_for_tables_of_three_are_the_simulated_mixture(app, small, monkeypatch):
    monkeypatch.setattr(smooth_choice, "loses_less_at_worst", lambda *_: True)
    expected = rp.ExpectedCounts.of_total(5_000)
    session = weights(app("workload", small.with_request(order=3).replaced(expected=expected)))
    session.button_of("Weights for smooth tables").click().run()
    name = task_name(choose_smooth_weights)
    session.session_state[name][1].wait(PATIENCE)
    session.run()
    choice = choose_smooth_weights(session.scenario.workload, session.scenario.budget, expected)
    assert choice.weights.by_cell > 0
    described = choice.describe().split(" An adaptive plan")[0]  # which differs by chance
    links = [link.proto.label for link in session.get("page_link")]
    assert "Choose the adaptive plan" in links
    assert plain([described]) in plain(session.texts("markdown"))
    session.button(key="apply smooth weights").click().run()
    assert session.scenario.request.smooth_weights == choice.weights


@pytest.mark.nightly
def test_weights_for_smooth_tables_beside_own_counts_are_those_of_the_share_of_tables(app, small):
    """By the rule of the command line, in `tests/cli/test_plan.py`."""
    women = rp.QueryList(rp.Domain.from_sizes({"sex": 2}), [[0, 1]], ("women",), [5])
    expected = rp.ExpectedCounts.of_total(5_000)
    asked = small.replaced(query_list=StatedQueries.of(women), expected=expected)
    by_whole = for_smooth_tables(asked)
    session = weights(app("workload", asked))
    session.button_of("Weights for smooth tables").click().run()
    session.button(key="apply smooth weights").click().run()
    share = by_whole.plan().part("tables").budget
    assert share.rho < asked.budget.rho
    assert session.scenario.request.smooth_weights == SmoothWeights(float(share.rho), 5_000)


@pytest.mark.nightly
def test_weights_for_smooth_tables_from_a_first_release(app, small, tmp_path):
    rows = "".join(f"{i % 10},{i % 2},{i % 5}\n" for i in range(300))
    (tmp_path / "records.csv").write_text(f"age,sex,region\n{rows}")
    first = release(small.table_plan(), tmp_path / "records.csv", tmp_path / "first").folder
    session = weights(app("workload", small))
    session.button_of("Weights for smooth tables").click().run()
    session.radio(key="smooth weights by").set_value("A first release").run()
    assert "apply smooth weights" not in {button.key for button in session.button}
    session.text_input(key="first release").set_value(str(first)).run()
    assert "the margin of error of an unbiased cell" in plain(session.texts("markdown"))
    session.button(key="apply smooth weights").click().run()
    expected = weights_from_release(first, small.domain, small.budget)
    assert session.scenario.request.smooth_weights == expected
    captions = plain(session.texts("caption"))
    assert "Release this plan on the same records: both budgets add up." in captions
    assert "set the weights anew" not in captions
