"""Charts of all pages: told in sentences, as numbers, as CSV."""

import json
import sys

import pytest

import rpexplore as rp
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.scenarios.project import Project
from rpexplore.scenarios.table_settings import TableSetting
from rpexplore.workload.query_definitions import stated_from_text
from tests.pages.conftest import check_charts, some_or_all

FRONTIER = "Average vs worst case"
WITHOUT_CHART = (
    "plan", "fairness: Tables", "fairness: Good cells", "queries: Count by count",
    "queries: Release",
)  # fmt: skip


@pytest.fixture
def two(small) -> Project:
    """Two scenarios with targets, weights, public counts and queries to draw."""
    about = rp.Domain.from_sizes({"age": 10, "sex": 2})
    first = small.with_settings(
        [TableSetting(("age", "sex"), target=4.0), TableSetting(("region",), weight=5.0)]
    ).replaced(
        name="as agreed",
        expected=ExpectedCounts.of_total(5000),
        query_list=stated_from_text(about, "everybody: total ± 50\nold: age >= 8 ± 20"),
    )
    return Project((first, first.replaced(name="generous", budget=rp.Budget(rho=1))))


@some_or_all("plan", "fairness")
def test_every_chart_has_a_caption_an_alternative_text_and_its_numbers(app, two, titles):
    session = app("codebook", two.current)
    session.test.session_state["project"] = two
    for page in session.pages(titles):
        if page == "tradeoffs: What if":  # nothing is drawn before one asks
            session.multiselect(key="what if attributes").set_value(["region"]).run()
        if page.partition(":")[0] in ("plan", "fairness", "tradeoffs", "scenarios", "queries"):
            check_charts(session)
            assert bool(session.get("plotly_chart")) == (page not in WITHOUT_CHART), page
        if page == "scenarios":  # the first of its views, drawn over each other
            (chart,) = session.get("plotly_chart")
            names = [trace["name"] for trace in json.loads(chart.proto.spec)["data"]]
            assert names == list(two.names)


@pytest.mark.nightly
def test_what_was_worked_out_survives_a_change_of_page(app, two, monkeypatch):
    session = app("tradeoffs", two.current).show("tradeoffs", FRONTIER)
    assert session.get("plotly_chart")

    def refuse(*_, **__):
        raise AssertionError("worked out once more")

    monkeypatch.setattr(sys.modules["rpexplore.analysis.frontier"], "_next_point", refuse)
    monkeypatch.setattr(sys.modules["rpexplore.planning.planner"], "optimum", refuse)
    session.open("plan").open("tradeoffs").show("tradeoffs", FRONTIER)
    assert not session.error
    assert session.get("plotly_chart")
