"""Pages for tables whose cells are not equally accurate."""

import json

import numpy as np
import pytest

from pages.components.fairness.accuracy import CELLS_VIEW
from rpexplore.analysis.measures import SCHEMES
from rpexplore.common.text import rounded
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.planning.planner import optimum
from rpexplore.scenarios.project import Project
from rpexplore.scenarios.table_settings import TableSetting
from tests.analysis import bases
from tests.pages.conftest import plain

SCENARIO = bases.scenario()
SEEN = {
    "mean": "the root mean square",
    "largest": "its least accurate",
    "smallest": "its most accurate",
}


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """A busy machine searches for longer than a page waits before it shows how far it is."""
    monkeypatch.setattr("pages.components.shared.background.PATIENCE", 60.0)


@pytest.fixture(scope="module")
def solved():
    return optimum(SCENARIO.workload, loss=SCENARIO.loss)


# ---- Fairness


@pytest.mark.nightly
def test_one_control_says_which_cell_all_views_are_about(app, solved):
    cell = "largest"
    session = app("fairness", SCENARIO.replaced(expected=ExpectedCounts.of_total(2000)))
    session.segmented_control(key="cell_shown").set_value(cell).run()
    assert not session.exception
    largest = solved.standard_errors(SCENARIO.budget, cell).max()
    assert session.metrics()["Least accurate table"] == f"σ = {largest:.3g}"
    for name in ("By size", "Distribution", "Attributes", "Binding targets"):
        session.show("fairness", name)
        for chart in session.get("plotly_chart"):
            assert SEEN[cell] in chart.proto.alt
        assert SEEN[cell] in plain(session.texts("caption"))
    session.show("fairness", "Tables")
    listed = session.dataframe[-1].value
    (shown,) = set(listed["cell"])
    assert SEEN[cell] in shown
    assert listed["standard_error"].max() == pytest.approx(largest)
    assert {"smallest_standard_error", "largest_standard_error"} <= set(listed.columns)
    session.show("fairness", "Good cells")
    assert "age (cumulative)" in session.dataframe[-1].value["table"].tolist()


@pytest.mark.nightly
def test_other_rules_are_planned_on_their_own_and_once(app, monkeypatch):
    weighed = SCENARIO.with_settings([TableSetting(("age",), 3.0)]).replaced(uniform_reference=True)
    session = app("fairness", weighed).show("fairness", "By size")
    panels = json.loads(session.get("plotly_chart")[0].proto.spec)["layout"]["annotations"]
    titles = [panel["text"].replace("<br>", " ") for panel in panels]
    assert titles[1:] == list(SCHEMES)
    assert "taken over from your plan" not in plain(session.texts("caption"))
    largest = {}
    for name, loss in SCHEMES.items():
        alone = optimum(SCENARIO.workload, loss=loss, uniform_reference=True)
        largest[name] = alone.standard_errors(SCENARIO.budget).max()
    # None of them is planned again to look at it.
    monkeypatch.setattr("rpexplore.planning.solving.with_best_strategies", None)
    for name, error in largest.items():
        session.segmented_control(key="plan_shown").set_value(name).run()
        assert not session.exception
        assert not session.error
        assert session.metrics()["Least accurate table"] == f"σ = {rounded(error, 3)}"


@pytest.mark.nightly
def test_the_cells_of_a_table(app, solved):
    session = app("fairness", SCENARIO).show("fairness", CELLS_VIEW)
    tables = session.selectbox(key="cells of")
    assert "age (cumulative) × region (hierarchy)" in tables.options
    tables.set_value("age (cumulative) × region (hierarchy)").run()
    assert not session.exception
    (chart,) = session.get("plotly_chart")
    heat = json.loads(chart.proto.spec)["data"][0]
    errors = np.array(heat["z"], dtype=float)
    plan = solved.at(SCENARIO.budget)
    np.testing.assert_allclose(errors, plan.cell_standard_errors(("age", "region")), rtol=1e-3)
    captions = plain(session.texts("caption"))
    assert chart.proto.alt.partition(". ")[2] in captions
    assert "The table: People with age ≤ a, by region" in captions
    assert "cells_of_a_table.csv" in plain(
        widget.label for widget in session.get("download_button")
    )
    session.multiselect[0].set_value([0]).run()
    assert not session.exception
    line = json.loads(session.get("plotly_chart")[0].proto.spec)["data"][0]
    np.testing.assert_allclose(line["y"], errors.max(axis=1), rtol=1e-3)
    fixed = next(widget for widget in session.selectbox if widget.label == "region")
    fixed.set_value(3).run()
    line = json.loads(session.get("plotly_chart")[0].proto.spec)["data"][0]
    np.testing.assert_allclose(line["y"], errors[:, 2], rtol=1e-3)


# ---- Plan, Trade-offs, Scenarios


def test_the_plan_page_tells_median_and_least_accurate_cells(app, solved):
    session = app("plan", SCENARIO)
    largest = solved.standard_errors(SCENARIO.budget, "largest").max()
    said = plain(session.texts("caption"))
    assert f"At most ±{1.959964 * largest:.3g}: " in said
    assert "Proven optimal for what is measured." in plain(session.texts("markdown"))
    session.unfold("all tables")
    listed = next(widget.value for widget in session.dataframe if "outcome" in widget.value)
    assert listed["largest_standard_error"].max() == pytest.approx(largest)


@pytest.mark.nightly
def test_trade_offs_of_unequal_cells(app):
    scenario = SCENARIO.with_settings([TableSetting(("age", "sex"), target=4.0)])
    session = app("tradeoffs", scenario).show("tradeoffs", "What if")
    session.multiselect(key="what if attributes").set_value(["region"]).run()
    assert "How attributes are measured stays as in your plan" in plain(session.texts("caption"))
    assert not session.error
    assert session.get("plotly_chart")
    session.show("tradeoffs", "Average vs worst case")
    text = plain(session.texts("caption"))
    assert "The best average of the plans that measure attributes as yours does, " in text
    assert "among plans that measure attributes as yours does, none is better at both" in text
    assert session.get("plotly_chart")
    session.press("Apply this plan")
    (applied,) = (plain([message.value]) for message in session.success)
    assert applied.startswith("Applied: average ")
    assert applied.endswith("measured otherwise, it can be a little better.")
    assert not session.exception
    assert not session.error


def test_scenarios_with_other_bases_stand_side_by_side(app):
    session = app("scenarios", SCENARIO)
    more = SCENARIO.replaced(name="more", loss=SCHEMES["Equal weight per cell"])
    session.test.session_state["project"] = Project((SCENARIO, more))
    session.run()
    assert not session.exception
    session.show("compared_by", "Inputs and outcomes")
    rows = session.dataframe[0].value["row"].tolist()
    assert "Aggregation" in rows
    assert "Largest ÷ smallest σ of a cell" in session.dataframe[1].value["row"].tolist()
    differences = session.show("compared_by", "Table by table").dataframe[-1].value
    assert {"left_largest", "right_largest"} <= set(differences.columns)
