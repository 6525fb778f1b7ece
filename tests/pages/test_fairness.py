"""The Fairness page."""

import json

import pytest

import rpexplore as rp
from pages.components.fairness.forecasts import OWN
from rpexplore.analysis.forecast import SCHEMES
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.domain.expected_counts_file import expected_counts_from_csv
from rpexplore.planning.planner import optimum
from rpexplore.scenarios.scenario import Scenario, TableSetting, WorkloadRequest
from rpexplore.scenarios.table_settings import GroupSetting

VIEWS = ["By size", "Distribution", "Tables", "Attributes", "Binding targets", "Relative errors"]
EQUAL, SQRT, CELLS, LARGEST = SCHEMES
MEGABYTE = 10**6


def plain(texts):
    return " ".join(texts).replace("\\", "")


def view(session, name):
    """Open a tab, as a click or the address would."""
    session.session_state["fairness"] = name
    session.run()
    assert not session.exception
    return session


def chart(session, index=0):
    return json.loads(session.get("plotly_chart")[index].proto.spec)


def panels(session):
    """Titles of the panels of the first chart."""
    return [note["text"] for note in chart(session)["layout"]["annotations"]]


def errors_of(scenario, loss):
    return optimum(scenario.workload, loss=loss).standard_errors(scenario.budget)


# ---- what is compared


def test_the_first_screen_shows_unevenness_and_another_plan_can_be_looked_at(app, small):
    session = app("fairness", small)
    errors = errors_of(small, small.loss)
    metrics = session.metrics()
    assert metrics["Least accurate table"] == f"σ = {errors.max():.3g}"
    assert metrics["Most accurate table"] == f"σ = {errors.min():.3g}"
    assert metrics["Least vs most accurate"] == f"{errors.max() / errors.min():.2f} times"
    assert session.texts("caption")[:2] == ["people, in \\(total\\)", "people, in sex × region"]
    assert panels(session) == [f"{EQUAL} (yours)", SQRT, CELLS, LARGEST]
    session.segmented_control(key="plan_shown").set_value(CELLS).run()
    worst = errors_of(small, rp.SumOfVariances("cells")).max()
    assert session.metrics()["Least accurate table"] == f"σ = {worst:.3g}"
    assert session.scenario == small  # looking changes nothing


@pytest.mark.parametrize("loss", list(SCHEMES.values()))
def test_an_own_plan_that_is_a_scheme_is_marked(app, small, loss):
    session = app("fairness", small.replaced(loss=loss))
    own = next(name for name, each in SCHEMES.items() if each == loss)
    assert f"{own} (yours)" in panels(session)
    assert len(panels(session)) == 4
    assert session.segmented_control(key="plan_shown").value == own


def test_own_weights_make_an_own_plan_beside_unweighted_schemes(app, small):
    scenario = small.with_settings([TableSetting(("age",), 9.0)])
    session = app("fairness", scenario)
    assert panels(session) == [OWN, EQUAL, SQRT, CELLS, LARGEST]
    own = errors_of(scenario, scenario.loss)
    assert session.metrics()["Least accurate table"] == f"σ = {own.max():.3g}"
    session.segmented_control(key="plan_shown").set_value(EQUAL).run()
    worst = errors_of(small, small.loss).max()  # without the weights
    assert session.metrics()["Least accurate table"] == f"σ = {worst:.3g}"


@pytest.mark.parametrize("containing", [(), ("age",)])
def test_weights_of_a_group_do_not_reach_the_schemes(app, small, containing):
    weighted = small.with_group(GroupSetting(containing, weight=50.0))
    session = app("fairness", weighted.replaced(loss=rp.MaxVariance()))
    assert panels(session) == [OWN, EQUAL, SQRT, CELLS, LARGEST]
    for name in (EQUAL, CELLS):
        session.segmented_control(key="plan_shown").set_value(name).run()
        worst = errors_of(small, SCHEMES[name]).max()
        assert session.metrics()["Least accurate table"] == f"σ = {worst:.3g}"


def test_own_targets_make_an_own_plan(app, small):
    scenario = small.replaced(loss=rp.MaxVariance(relative_to="target"))
    session = app("fairness", scenario)
    assert "(total) has no target yet" in plain(session.texts("info"))
    assert panels(session) == list(SCHEMES)
    tables = scenario.workload.tables
    scenario = scenario.with_settings(
        [TableSetting(table, 1.0, 10.0 + index) for index, table in enumerate(tables)]
    )
    session = app("fairness", scenario)
    assert not session.info
    assert panels(session)[0] == OWN
    assert "relative to its target" in plain(view(session, "Binding targets").texts("markdown"))


def test_a_changed_budget_moves_everything_at_once(app, small):
    session = app("fairness", small)
    before = session.metrics()
    session.scenario = small.replaced(budget=rp.Budget(rho="0.4"))
    session.run()
    worst = errors_of(small, small.loss).max() / 2
    assert session.metrics()["Least accurate table"] == f"σ = {worst:.3g}"
    assert session.metrics()["Gini index of σ"] == before["Gini index of σ"]


# ---- views


def test_every_chart_has_a_caption_an_alternative_text_and_its_numbers(app, small):
    session = app("fairness", small)
    for name in VIEWS:
        charts = view(session, name).get("plotly_chart")
        numbers = [each for each in session.expander if each.label == "The numbers of this chart"]
        assert len(numbers) == len(charts), name
        for drawn, table in zip(charts, numbers, strict=True):
            words, _, sentence = drawn.proto.alt.partition(". ")
            assert words
            assert sentence.split(". ")[0] in plain(session.texts("caption"))
            (frame,) = table.dataframe
            assert len(frame.value) > 0
            (button,) = table.get("download_button")
            assert button.label.endswith(".csv")


# ---- expected counts

MARGIN = (
    b"sex,region,count\n"
    + "".join(
        f"{sex},{region},{100 * region}\n" for sex in range(2) for region in range(5)
    ).encode()
)


def test_a_total_is_typed(app, small):
    session = view(app("fairness", small), "Relative errors")
    assert "already public" in plain(session.texts("info"))
    assert not session.get("plotly_chart")
    session.number_input(key="expected total").set_value(5000.0).run()
    assert session.scenario.expected == ExpectedCounts.of_total(5000)
    assert len(session.get("plotly_chart")) == 1
    assert "5,000 in total, spread evenly" in plain(session.texts("markdown"))
    assert "At a coefficient of variation of 20 %" in plain(session.texts("caption"))
    session.number_input(key="expected total").set_value(None).run()
    assert session.scenario.expected is None


def test_a_public_margin_is_loaded_and_removed_and_a_bad_one_refused(app, small):
    session = view(app("fairness", small), "Relative errors")
    session.file_uploader(key="expected margin").upload("margin.csv", MARGIN[:-8]).run()
    assert len(session.error) == 1
    assert "margin.csv: 1 row of 10 missing" in plain(session.texts("error"))
    assert session.scenario == small
    session.file_uploader(key="expected margin").upload("margin.csv", MARGIN).run()
    expected = session.scenario.expected
    assert expected.attributes == ("sex", "region")
    assert expected.total == 2000
    assert "2,000 in total, by sex × region as published" in plain(session.texts("markdown"))
    assert session.number_input(key="expected total").value is None
    session.press("Remove")
    assert session.scenario.expected is None


def test_publishable_cells_of_one_table(app, small):
    expected = expected_counts_from_csv(small.domain, MARGIN, "margin.csv")
    session = view(app("fairness", small.replaced(expected=expected)), "Relative errors")
    session.number_input(key="wanted coefficient").set_value(3.0).run()
    session.multiselect(key="table to list").set_value(["region"]).run()
    listed = session.dataframe[-1].value
    assert listed["region"].tolist() == ["0", "1", "2", "3", "4"]
    assert listed["expected"].tolist() == [0, 200, 400, 600, 800]
    error = errors_of(small, small.loss)[small.workload.position(("region",))]
    wanted = [
        "yes" if count > 0 and error / count <= 0.03 else "no" for count in range(0, 801, 200)
    ]
    assert listed["accurate"].tolist() == wanted
    assert 0 < wanted.count("yes") < 5
    session.multiselect(key="table to list").set_value(["age", "sex", "region"]).run()
    assert "is not in the workload" in plain(session.texts("info"))


def test_a_margin_that_does_not_fit_says_so(app, small):
    elsewhere = ExpectedCounts(("height",), (("low", "high"),), (1.0, 2.0))
    session = view(app("fairness", small.replaced(expected=elsewhere)), "Relative errors")
    assert "the codebook has no attribute 'height' any more" in plain(session.texts("error"))
    assert not session.get("plotly_chart")


# ---- extreme states


@pytest.mark.parametrize(
    ("sizes", "order"),
    [({"only": 1}, 0), ({"age": 10}, 1), ({"a": 1, "b": 1}, 2), ({"a": 10**6, "b": 10**6}, 2)],
)
def test_extreme_schemas(app, sizes, order):
    scenario = Scenario(
        rp.Domain.from_sizes(sizes),
        WorkloadRequest(order=order),
        expected=ExpectedCounts.of_total(1e6),
    )
    session = app("fairness", scenario)
    for name in VIEWS:
        assert not view(session, name).error, name


def test_hostile_names_are_never_formatting(app, hostile):
    session = app("fairness", hostile.replaced(expected=ExpectedCounts.of_total(1e6)))
    for name in VIEWS:
        view(session, name)
        for kind in ("markdown", "caption", "error", "info", "warning"):
            for text in session.texts(kind):
                for mark in ("**bold**", "$x$", "<b>", "<i>", "[a](", ":red[", "`x`"):
                    assert mark not in text, name
        for drawn in session.get("plotly_chart"):
            assert "<b>" not in drawn.proto.spec
            assert "<i>" not in drawn.proto.spec


def test_many_tables_do_not_travel_with_the_charts_and_are_points_on_demand(app, wide):
    session = app("fairness", wide.replaced(expected=ExpectedCounts.of_total(1e9)))
    for name in VIEWS:
        assert not view(session, name).error
        charts = session.get("plotly_chart")
        assert sum(len(drawn.proto.spec) for drawn in charts) < 0.2 * MEGABYTE, name
        # Long frames are served as they are scrolled, whatever the test runner holds of them.
        whole = [each for each in session.dataframe if len(each.value) <= 2000]
        assert sum(len(each.proto.SerializeToString()) for each in whole) < MEGABYTE, name
    view(session, "By size")
    session.toggle(key="single tables").set_value(True).run()
    assert "166,751 tables; at most 20,000" in plain(session.texts("info"))
    session.multiselect(key="single tables with").set_value(["a07"]).run()
    assert not session.info
    drawn = chart(session, 1)
    assert {trace["type"] for trace in drawn["data"][:-1]} == {"scattergl"}
    assert sum(len(trace["text"]) for trace in drawn["data"][:-1]) == 4951
    assert len(session.get("plotly_chart")[1].proto.spec) < MEGABYTE
    session.multiselect(key="single tables with").set_value(["a07", "a08", "a09", "a10"]).run()
    assert "0 tables." in plain(session.texts("info"))


def test_the_choice_survives_a_change_of_what_is_compared(app, small):
    weighted = small.with_settings([TableSetting(("age",), 9.0)])
    session = app("fairness", weighted)
    assert session.segmented_control(key="plan_shown").value == OWN
    session.segmented_control(key="plan_shown").set_value(CELLS).run()
    # The plan looked at becomes the curator's own, which changes its label.
    session.scenario = small.replaced(loss=SCHEMES[CELLS])
    session.run()
    assert not session.exception
    assert session.segmented_control(key="plan_shown").value == CELLS
    session.scenario = weighted
    session.run()
    session.segmented_control(key="plan_shown").set_value(OWN).run()
    session.scenario = small  # where there is none beside the schemes
    session.run()
    assert not session.exception
    worst = errors_of(small, small.loss).max()
    assert session.metrics()["Least accurate table"] == f"σ = {worst:.3g}"
    assert session.segmented_control(key="plan_shown").value == EQUAL


def test_the_address_holds_no_name_of_the_schema(app, small):
    """Only the view and the plan are bound to it, and both are named by the app."""
    scenario = small.replaced(expected=ExpectedCounts.of_total(5000))
    bound = set()
    for name in VIEWS:
        session = view(app("fairness", scenario), name)
        session.segmented_control(key="plan_shown").set_value(CELLS).run()
        for widget in [*session.segmented_control, *session.multiselect, *session.toggle]:
            if widget.proto.HasField("query_param_key"):
                bound.add(widget.proto.query_param_key)
                names = [option.content for option in widget.proto.options]
                assert names == [f"{EQUAL} (your plan)", SQRT, CELLS, LARGEST]
        assert list(session.query_params) == ["project"]
    assert bound == {"plan_shown"}
