"""The Trade-offs page."""

import json
import time

import pytest

import rpexplore as rp
from pages.components.shared import background
from rpexplore.analysis import frontier
from rpexplore.analysis.sufficient_budgets import TARGET_LOSS
from rpexplore.errors import PlanError
from rpexplore.planning import planner
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.table_settings import GroupSetting
from rpexplore.scenarios.workload_request import WorkloadRequest
from tests.pages.conftest import VIEWS, plain
from tests.support.processor_time import PATIENCE

BUDGETS, TARGETS, FRONTIER, WHAT_IF, BASELINES = VIEWS["tradeoffs"]


def charts(session):
    return [chart.proto for chart in session.get("plotly_chart")]


def all_texts(session):
    return plain(
        session.texts("caption")
        + session.texts("markdown")
        + session.texts("info")
        + session.texts("error")
        + session.texts("success")
    )


@pytest.fixture
def tradeoffs(app):
    """Opens the page on a view."""

    def make(scenario, view=BUDGETS):
        return app("tradeoffs", scenario).show("tradeoffs", view)

    return make


def without_wait(session, seconds=PATIENCE):
    """Runs again until no task goes on."""
    deadline = time.monotonic() + seconds
    while session.get("progress") and time.monotonic() < deadline:
        time.sleep(0.1)
        session.run()
    return session


# ---- any state


def targeted(scenario):
    return scenario.with_group(GroupSetting((), target=4.0))


def generous(scenario):
    return scenario.replaced(budget=rp.Budget(rho="4.9e99"))


def tiny(scenario):
    return scenario.replaced(budget=rp.Budget(epsilon="1e-20", delta="1e-200"))


def of_people_with_target_loss(scenario):
    budget = rp.Budget(mu="0.5", max_records_per_person=7)
    return targeted(scenario).replaced(loss=TARGET_LOSS, budget=budget)


@pytest.mark.by_day(1)
@pytest.mark.parametrize(
    "state",
    [generous, tiny, of_people_with_target_loss],
    ids=lambda state: state.__name__,
)
def test_every_view_of_every_state_is_drawn(tradeoffs, small, state):
    session = tradeoffs(state(small))
    for view in VIEWS["tradeoffs"]:
        without_wait(session.show("tradeoffs", view))
        assert not session.exception
        assert not session.error
        assert "nan" not in all_texts(session).split()
        assert all(chart.alt for chart in charts(session))


def test_without_a_plan_or_targets_it_says_why(app, small, monkeypatch):
    session = app("tradeoffs", small.replaced(loss=TARGET_LOSS))
    assert "has no target" in plain(session.texts("error"))
    assert not charts(session)
    with monkeypatch.context() as patch:

        def refuse(*_, **__):
            raise PlanError("These tables cannot be planned with.")

        patch.setattr(planner, "optimum", refuse)
        session = app("tradeoffs", small)
        assert "There is no plan: These tables cannot" in plain(session.texts("error"))
        assert not charts(session)
    session = app("tradeoffs", small).show("tradeoffs", TARGETS)
    assert "No table has a target yet" in plain(session.texts("info"))
    assert not charts(session)


# ---- smaller errors


@pytest.mark.nightly
def test_tables_are_added_to_the_chart_and_given_up_with_the_codebook(tradeoffs, small):
    session = tradeoffs(small)
    session.multiselect(key="tables with curves").set_value(["age,sex", "total"]).run()
    labels = [note["text"] for note in json.loads(charts(session)[0].spec)["layout"]["annotations"]]
    assert {"least accurate table", "age × sex", "(total)"} <= set(labels)
    assert session.selectbox(key="wanted for").options[-2:] == ["age × sex", "(total)"]
    session.show("tradeoffs", WHAT_IF)
    session.multiselect(key="what if attributes").set_value(["region"]).run()
    session.scenario = Scenario(rp.Domain.from_sizes({"a": 3, "b": 4}), WorkloadRequest(order=1))
    for view in VIEWS["tradeoffs"]:
        assert not session.show("tradeoffs", view).error


@pytest.mark.nightly
def test_a_wanted_error_is_priced_and_comes_true(tradeoffs, small):
    budget = rp.Budget(mu="0.5", max_records_per_person=3)
    session = tradeoffs(small.replaced(budget=budget))
    session.text_input(key="wanted standard_error").set_value("0").run()
    assert "must be above 0" in plain(session.texts("error"))
    session.text_input(key="wanted standard_error").set_value("3").run()
    assert "For a standard error of 3 people" in plain(session.texts("markdown"))
    session.press("Use this budget")
    assert session.scenario.budget.stated[0][0] == budget.stated[0][0]
    assert session.scenario.budget.unit == budget.unit
    errors = session.scenario.table_plan().standard_errors
    assert 3 * (1 - 1e-3) < errors.max() <= 3
    assert "Applied" in session.success[0].value


# ---- targets


@pytest.mark.nightly
def test_targets_and_what_they_take(tradeoffs, small):
    scenario = targeted(small)
    session = tradeoffs(scenario, TARGETS)
    errors = scenario.table_plan().standard_errors
    metrics = session.metrics()
    assert metrics["Targets met now"] == f"{(errors <= 4).sum()} of 7"
    frame = session.dataframe[-1].value
    assert frame["present"].tolist() == pytest.approx(sorted(errors, reverse=True))
    session.press("Use this budget")
    assert (session.scenario.table_plan().standard_errors <= 4).all()
    assert session.metrics()["Targets met now"] == "7 of 7"
    # Another objective meets them at a smaller one, and none does at a yet smaller one.
    session.press("Undo")
    assert "No plan of this kind can do it with a noticeably smaller budget" in plain(
        session.texts("caption")
    )
    session.press("Apply this budget and objective")
    assert session.scenario.loss == TARGET_LOSS
    assert (session.scenario.table_plan().standard_errors <= 4).all()
    assert [button.label for button in session.button].count("Use this budget") == 1
    less = session.scenario.budget.rho * 999 / 1000
    plan = session.scenario.replaced(budget=rp.Budget(rho=less)).table_plan()
    assert (plan.standard_errors > 4).any()


# ---- average against worst case


def test_the_frontier_is_drawn_and_a_plan_of_it_applied(tradeoffs, small):
    session = without_wait(tradeoffs(small, FRONTIER))
    frame = session.dataframe[-1].value
    assert len(frame) == 11
    assert frame["gap"].max() <= 1e-6
    assert "all the way" in plain(session.texts("caption"))
    first = small.table_plan()
    assert frame["largest"].iloc[0] == pytest.approx(first.standard_errors.max(), rel=1e-6)
    last = small.replaced(loss=rp.MaxVariance()).table_plan()
    assert frame["largest"].iloc[-1] == pytest.approx(last.standard_errors.max(), rel=1e-6)
    point = next(box for box in session.selectbox if box.label == "A plan of the curve").value
    session.press("Apply this plan")
    assert session.project.names == ("Scenario 1",)
    assert plain([session.success[0].value]).startswith("Applied: average ")
    plan = session.scenario.table_plan()
    assert plan.standard_errors.max() == pytest.approx(frame["largest"].iloc[point], rel=1e-3)
    session.scenario = small.with_request(kind="listed", listed=(("age",),))
    assert "next to nothing to trade" in plain(without_wait(session.run()).texts("info"))
    assert not charts(session)


# ---- what if


@pytest.mark.nightly
def test_what_if_tables_are_added_and_count_more(tradeoffs, small):
    session = tradeoffs(small, WHAT_IF)
    session.segmented_control(key="what_if").set_value("add").run()
    assert session.selectbox(key="what if order add").value == 3
    assert "Adding the table age × sex × region makes" in plain(session.texts("caption"))
    session.press("Apply")
    assert session.scenario.request.order == 3
    session.segmented_control(key="what_if").set_value("boost").run()
    session.multiselect(key="what if attributes").set_value(["age", "sex"]).run()
    session.text_input(key="what if factor").set_value("9").run()
    assert "Counting the 2 tables with age and sex 9 times as much" in plain(
        session.texts("caption")
    )
    then = session.dataframe[-1].value.set_index("table")["after"]
    session.press("Save as scenario")
    assert session.project.names == ("Scenario 1", "Scenario 1 (2)")
    assert session.scenario.note.startswith("Counting the 2 tables with age")
    plan = session.scenario.table_plan()
    assert then["age × sex"] == pytest.approx(
        plan.standard_errors[plan.workload.position(("age", "sex"))], rel=1e-9
    )


def test_what_if_tables_are_left_out(tradeoffs, small):
    session = tradeoffs(small, WHAT_IF)
    assert "to say which tables change" in plain(session.texts("info"))
    session.multiselect(key="what if attributes").set_value(["region"]).run()
    assert (
        "Leaving out the 3 tables with region makes the standard errors of the other 4"
    ) in plain(session.texts("caption"))
    smaller = small.with_request(only=("age", "sex"))
    frame = session.dataframe[-1].value.set_index("table")
    kept = dict(zip(smaller.workload.tables, smaller.table_plan().standard_errors, strict=True))
    assert frame.loc["age × sex", "after"] == pytest.approx(kept["age", "sex"], rel=1e-9)
    session.press("Apply")
    assert session.scenario.workload.tables == smaller.workload.tables
    assert "Applied" in session.success[0].value
    assert "no such table" in plain(session.texts("info"))


# ---- very many tables


@pytest.mark.nightly
def test_many_tables_do_not_travel_and_are_typed(tradeoffs, many):
    session = tradeoffs(many.with_group(GroupSetting((), target=500.0)))
    for view in VIEWS["tradeoffs"]:
        session.show("tradeoffs", view)
        if view == WHAT_IF:
            session.multiselect(key="what if attributes").set_value(["a07"]).run()
            assert "the 1,226 tables with a07" in plain(without_wait(session).texts("caption"))
        without_wait(session)
        assert not session.error
        # (Long tables are served as they are scrolled; the test runner has no server for that.)
        assert sum(len(chart.spec) for chart in charts(session)) < 100_000
        widgets = [*session.multiselect, *session.selectbox]
        assert all(len(widget.options) < 1000 for widget in widgets)
    session.session_state["tables with curves"] = ["a01, a02", "a01,nobody"]
    session.show("tradeoffs", BUDGETS)
    assert session.selectbox(key="wanted for").options[-1] == "a01 × a02"
    assert "nobody" in plain(session.texts("error"))


# ---- what takes longer


def test_long_work_shows_how_far_it_is_and_can_be_cancelled(tradeoffs, small, monkeypatch):
    real, begun = frontier.frontier, []

    def endless(*ends, on_progress):
        begun.append(True)
        while True:
            on_progress("Plan 4 of up to 11", 0.3)
            time.sleep(0.01)

    monkeypatch.setattr(background, "PATIENCE", 0.1)
    monkeypatch.setattr(frontier, "frontier", endless)
    session = tradeoffs(small, FRONTIER)
    assert "Plan 4 of up to 11" in session.get("progress")[0].proto.text
    assert not charts(session)
    session.press("Cancel")
    assert "Cancelled" in plain(without_wait(session.run()).texts("error"))
    assert len(begun) == 1
    monkeypatch.setattr(frontier, "frontier", real)
    session.press("Try again")
    assert len(charts(without_wait(session))) == 1


def test_work_that_is_not_needed_any_more_is_given_up(tradeoffs, small, monkeypatch):
    ended = []

    def endless(*ends, on_progress):
        try:
            while True:
                on_progress("Plan 4 of up to 11", 0.3)
                time.sleep(0.01)
        finally:
            ended.append(ends[0].loss)

    monkeypatch.setattr(background, "PATIENCE", 0.1)
    monkeypatch.setattr(frontier, "frontier", endless)
    session = tradeoffs(small, FRONTIER)
    session.selectbox(key="average").set_value("cells").run()
    assert ended == [rp.SumOfVariances()]
    session.press("Cancel")


def test_plainer_mechanisms_stand_beside_the_plan(tradeoffs, small):
    compared = rp.compare(rp.optimum(small.workload, loss=small.loss).at(small.budget))
    session = tradeoffs(small, BASELINES)
    assert len(charts(session)) == 1
    texts = all_texts(session)
    assert all(plain([sentence]) in texts for sentence in compared.sentences)
