"""Charts of the Plan, Trade-offs and Scenarios pages: in words, as numbers, as CSV."""

import json
import sys

import pytest

import rpexplore as rp
from rpexplore.scenarios.project import Project
from rpexplore.scenarios.table_settings import TableSetting

VIEWS = ["Smaller errors", "Targets", "Average vs worst case", "What if"]


@pytest.fixture
def two(small) -> Project:
    """Two scenarios with targets and weights to draw."""
    asked = small.with_settings(
        [TableSetting(("age", "sex"), target=4.0), TableSetting(("region",), weight=5.0)]
    ).replaced(name="as asked")
    return Project((asked, asked.replaced(name="generous", budget=rp.Budget(rho=1))))


def drawn(app, project, page, view=None):
    session = app(page, project.current)
    session.test.session_state["project"] = project
    if view is not None:
        session.test.session_state["tradeoffs"] = view
    session.run()
    if view == "What if":  # nothing is drawn before one asks
        session.multiselect(key="what if attributes").set_value(["region"]).run()
    return session


@pytest.mark.parametrize(
    ("page", "view"),
    [("plan", None), ("scenarios", None), *(("tradeoffs", view) for view in VIEWS)],
)
def test_every_chart_has_a_caption_an_alternative_text_and_its_numbers(app, two, page, view):
    session = drawn(app, two, page, view)
    assert not session.exception
    charts = session.get("plotly_chart")
    captions = " ".join(session.texts("caption")).replace("\\", "")
    assert charts
    for chart in charts:
        words, _, sentence = chart.proto.alt.partition(". ")
        assert words
        assert sentence
        assert sentence in captions
    labels = [button.label for button in session.get("download_button")]
    assert any(label.endswith(".csv") for label in labels)
    assert any(each.label.startswith("The numbers of") for each in session.expander)


def test_scenarios_are_drawn_over_each_other(app, two):
    session = drawn(app, two, "scenarios")
    (chart,) = session.get("plotly_chart")
    assert [trace["name"] for trace in json.loads(chart.proto.spec)["data"]] == list(two.names)


def test_what_was_worked_out_survives_a_change_of_page(app, two, monkeypatch):
    session = drawn(app, two, "tradeoffs", "Average vs worst case")
    assert session.get("plotly_chart")

    def refuse(*_, **__):
        raise AssertionError("worked out once more")

    monkeypatch.setattr(sys.modules["rpexplore.analysis.frontier"], "frontier", refuse)
    monkeypatch.setattr(sys.modules["pages.components.shared.solutions"], "solved", refuse)
    session.open("plan")
    session.test.session_state["tradeoffs"] = "Average vs worst case"
    session.open("tradeoffs")
    assert not session.error
    assert session.get("plotly_chart")
