"""The Fairness page."""

import json

import pytest

import rpexplore as rp
from pages.components.fairness.accuracy import CELLS_VIEW, OWN
from rpexplore.analysis.measures import SCHEMES
from rpexplore.common.text import describe_share
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.domain.expected_counts_file import expected_counts_from_csv
from rpexplore.domain.public_tables import PublicTable
from rpexplore.planning.planner import optimum
from rpexplore.scenarios.project import Project
from rpexplore.scenarios.table_settings import GroupSetting, TableSetting
from tests.pages.conftest import VIEWS, plain
from tests.pages.test_expected_counts import MARGIN

EQUAL, SQRT, CELLS, LARGEST = SCHEMES
MEGABYTE = 10**6


def chart(session, index=0):
    return json.loads(session.get("plotly_chart")[index].proto.spec)


def panels(session):
    """Titles of the panels of the Fairness chart, each in one line."""
    session.show("fairness", "By size")
    notes = chart(session)["layout"]["annotations"]
    return [note["text"].replace("<br>", " ") for note in notes]


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
    assert plain(session.texts("caption")[:2]) == (
        f"±{1.96 * errors.max():.3g} people (95 %), in (total) "
        f"±{1.96 * errors.min():.3g} people (95 %), in sex × region"
    )
    assert panels(session) == [f"{EQUAL} (yours)", SQRT, CELLS, LARGEST]
    assert session.segmented_control(key="plan_shown").value == EQUAL
    # Cells of a marginal are equally accurate: there is none to choose.
    assert "cell_shown" not in {control.key for control in session.segmented_control}
    assert CELLS_VIEW not in [tab.label for tab in session.tabs]
    session.segmented_control(key="plan_shown").set_value(CELLS).run()
    largest = errors_of(small, rp.SumOfVariances("cells")).max()
    assert session.metrics()["Least accurate table"] == f"σ = {largest:.3g}"
    assert session.scenario == small  # looking changes nothing
    session.segmented_control(key="plan_shown").set_value(EQUAL).run()
    gini = session.metrics()["Gini index of σ"]
    session.scenario = small.replaced(budget=rp.Budget(rho="0.4"))
    assert session.run().metrics()["Least accurate table"] == f"σ = {errors.max() / 2:.3g}"
    assert session.metrics()["Gini index of σ"] == gini


def test_own_weights_make_an_own_plan_beside_unweighted_schemes(app, small):
    scenario = small.with_settings([TableSetting(("age",), 9.0)])
    session = app("fairness", scenario)
    assert panels(session) == [OWN, EQUAL, SQRT, CELLS, LARGEST]
    own = errors_of(scenario, scenario.loss)
    assert session.metrics()["Least accurate table"] == f"σ = {own.max():.3g}"
    session.segmented_control(key="plan_shown").set_value(EQUAL).run()
    largest = errors_of(small, small.loss).max()  # without the weights
    assert session.metrics()["Least accurate table"] == f"σ = {largest:.3g}"
    # Nor does a weight of all tables reach them, where the own loss is a scheme's.
    session.scenario = small.with_group(GroupSetting((), weight=50.0)).replaced(
        loss=rp.MaxVariance()
    )
    assert panels(session.run()) == [OWN, EQUAL, SQRT, CELLS, LARGEST]
    assert session.metrics()["Least accurate table"] == f"σ = {largest:.3g}"


@pytest.mark.nightly
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
    assert "relative to its target" in plain(
        session.show("fairness", "Binding targets").texts("markdown")
    )


# ---- measures


def test_the_measure_is_chosen_once_for_all_pages(app, small):
    session = app("fairness", small)
    measure = session.segmented_control(key="accuracy")
    assert measure.options == ["Standard error", "Variance"]
    measure.set_value("Variance").run()
    worst = errors_of(small, small.loss).max() ** 2
    assert session.metrics()["Least accurate table"] == f"σ² = {worst:.3g}"
    for name in VIEWS["fairness"]:
        assert not session.show("fairness", name).error
    titles = {}
    for page, tabs, view in (
        ("fairness", "fairness", "By size"),
        ("tradeoffs", "tradeoffs", "Smaller errors"),
        ("tradeoffs", "tradeoffs", "What if"),
    ):
        session.open(page).show(tabs, view)
        if view == "What if":
            session.multiselect(key="what if attributes").set_value(["region"]).run()
        layout = chart(session)["layout"]
        axes = [layout[axis].get("title", {}).get("text", "") for axis in layout if "axis" in axis]
        titles[view] = " ".join(filter(None, axes))
    for view, title in titles.items():
        of = "" if view == "Smaller errors" else " of a cell"  # each curve says what of
        assert f"variance{of} (people², log scale)" in title, view


# ---- views


# ---- expected counts


def test_people_in_good_cells_under_each_plan(app, small):
    expected = expected_counts_from_csv(small.domain, MARGIN, "margin.csv")
    known = small.replaced(public=(PublicTable(expected),))
    session = app("fairness", known).show("fairness", "Good cells")
    session.text_input(key="wanted coefficient").set_value("3").run()
    assert session.scenario.cv_limit == 0.03
    made = rp.Forecast(small.table_plan(), [expected], limit=0.03)
    under, by_order, tables = (frame.value for frame in session.dataframe[-3:])
    assert under["plan"].tolist() == list(SCHEMES)
    own = under.set_index("plan").loc["Equal weight per table"]
    assert own["people in good cells"] == made.people.text(describe_share)
    assert by_order["attributes"].tolist() == made.by_order()["attributes"].tolist()
    assert tables["people_median"].tolist() == (100 * made.tables()["people_median"]).tolist()
    elsewhere = ExpectedCounts(("height",), (("low", "high"),), (1.0, 2.0))
    session.scenario = small.replaced(public=(PublicTable(elsewhere),), expected=elsewhere)
    session.run()
    assert "the codebook has no attribute 'height' any more" in plain(session.texts("error"))


# ---- very many tables, and what changes


@pytest.mark.nightly
def test_many_tables_do_not_travel_with_the_charts_and_are_points_on_demand(app, many):
    session = app("fairness", many.replaced(expected=ExpectedCounts.of_total(1e9)))
    for name in VIEWS["fairness"]:
        assert not session.show("fairness", name).error
        charts = session.get("plotly_chart")
        assert sum(len(drawn.proto.spec) for drawn in charts) < 0.2 * MEGABYTE, name
        # Long frames are served as they are scrolled, whatever the test runner holds of them.
        whole = [table for table in session.dataframe if len(table.value) <= 2000]
        assert sum(len(table.proto.SerializeToString()) for table in whole) < MEGABYTE, name
    session.show("fairness", "By size")
    session.toggle(key="single tables").set_value(True).run()
    assert "20,876 tables; at most 20,000" in plain(session.texts("info"))
    session.multiselect(key="single tables with").set_value(["a07"]).run()
    assert not session.info
    drawn = chart(session, 1)
    assert {trace["type"] for trace in drawn["data"]} == {"scattergl"}
    assert sum(len(trace["text"]) for trace in drawn["data"]) == 1226
    assert len(session.get("plotly_chart")[1].proto.spec) < MEGABYTE
    session.multiselect(key="single tables with").set_value(["a07", "a08", "a09", "a10"]).run()
    assert "0 tables." in plain(session.texts("info"))


@pytest.mark.nightly
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
    largest = errors_of(small, small.loss).max()
    assert session.metrics()["Least accurate table"] == f"σ = {largest:.3g}"
    assert session.segmented_control(key="plan_shown").value == EQUAL


@pytest.mark.nightly
def test_the_records_are_called_what_they_are_on_every_page(app, small):
    known = small.replaced(expected=ExpectedCounts.of_total(900), record_noun="households")
    session = app("plan", known)
    other = known.replaced(name="Other", budget=rp.Budget(rho="0.2"))
    session.test.session_state["project"] = Project((known, other))
    said = []
    session.unfold("all tables")
    for page, view in (("plan", None), ("fairness", "Good cells"), ("scenarios", None)):
        session.open(page)
        if view:
            session.show("fairness", view)
        heads = [str(list(frame.value)) for frame in session.dataframe]
        texts = [session.texts(kind) for kind in ("markdown", "caption", "subheader")]
        html = [one.proto.body for one in session.get("html")]
        labels = list(session.metrics())
        said.append(" ".join([*heads, *html, *labels, *map(plain, texts)]))
        assert "ouseholds in good cells" in said[-1], page
    assert not [text for text in said if "people in good" in text.lower()]
    assert not [text for text in said if "of people" in text]
