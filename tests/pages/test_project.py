"""What is kept of a session: undo, autosave, several scenarios, sessions apart."""

import re
import threading

import pytest

import rpexplore as rp
from pages.components.shared import background
from rpexplore.planning import planner
from rpexplore.scenarios.autosave import Autosaves
from rpexplore.scenarios.project import Project
from rpexplore.scenarios.scenario import Scenario
from tests.pages.conftest import plain


def typed_budget(session, value):
    session.text_input(key="typed budget").set_value(value).run()
    return session


def test_a_change_is_undone_and_made_again(app, small):
    session = app("plan", small)
    assert session.button(key="Undo step").disabled
    typed_budget(session, "0.2")
    typed_budget(session, "0.3")
    session.press("Undo")
    assert session.text_input(key="typed budget").value == "0.2"
    session.press("Undo")
    assert session.scenario == small
    assert session.button(key="Undo step").disabled
    session.press("Redo")
    assert session.scenario.budget == rp.Budget(rho="0.2")
    typed_budget(session, "0.5")
    assert session.button(key="Redo step").disabled  # that way was left
    # What was typed into a grid is undone with the change.
    session.open("workload").show("workload", "weights")
    before = session.scenario
    session.type_in_grid("workload grid", 1, "weight", 5.0)
    assert session.scenario.request.settings
    session.press("Undo")
    session.run()
    assert session.scenario == before


def saved(session) -> Project | None:
    saved = Autosaves.of_user().read(session.query_params["project"])
    return saved and saved.project


def test_every_change_is_saved_and_a_refresh_finds_it_without_the_codebook_in_the_address(app):
    before = app("plan")
    assert saved(before) is None
    typed_budget(before, "0.5")
    typed_budget(before, "0.25")
    assert saved(before) == before.project
    before.press("Undo")
    assert saved(before) == before.project
    for page in ("home", "plan", "queries", "release"):
        after = app(page, key=before.query_params["project"])
        assert after.project == before.project, page
        assert not after.error, page
        address = str(dict(after.query_params))
        assert not any(name in address for name in (*after.scenario.domain.names, "people"))


@pytest.mark.nightly
def test_two_windows_on_one_project_go_separate_ways(app):
    first = app("plan")
    typed_budget(first, "0.25")
    key = first.query_params["project"]
    second = app("plan", key=key)
    typed_budget(first, "0.3")
    typed_budget(second, "0.4")
    assert any("another window" in text for text in second.texts("warning"))
    assert second.query_params["project"] != key
    assert saved(first) == first.project
    assert saved(second) == second.project
    typed_budget(second, "0.5")
    assert not second.warning


def test_a_full_disk_is_said_and_stops_nothing(app, small, monkeypatch):
    session = app("plan", small)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Autosaves, "save", full)
    typed_budget(session, "0.25")
    assert any("not saved" in text for text in session.texts("error"))
    assert session.scenario.budget == rp.Budget(rho="0.25")
    monkeypatch.undo()
    typed_budget(session, "0.3")
    assert not session.error


def test_another_scenario_is_opened_on_any_page(app, small):
    session = app("plan", small)
    other = Scenario(small.domain, budget=rp.Budget(rho=2), name="generous")
    session.test.session_state["project"] = session.project.added(other).opened(0)
    session.run()
    session.selectbox(key="open scenario").set_value("generous").run()
    assert session.text_input(key="typed budget").value == "2"
    session.open("workload")
    assert session.selectbox(key="open scenario").value == "generous"
    session.press("Undo")
    assert session.scenario == small


def test_a_project_that_cannot_be_opened_is_kept(app):
    before = app("plan")
    typed_budget(before, "0.25")
    key = before.query_params["project"]
    path = Autosaves.of_user().path(key)
    text = before.project.text()
    path.write_text(re.sub(r'"format_version": \d+', '"format_version": 99', text, count=1))
    text = path.read_text()
    after = app("plan", key=key)
    assert any("cannot be opened" in message for message in after.texts("error"))
    typed_budget(after, "0.3")
    assert after.query_params["project"] != key
    assert path.read_text() == text


def test_undo_while_a_plan_is_made_plans_again(app, small, monkeypatch):
    may_go_on, solved = threading.Event(), planner.optimum

    def slow(workload, **options):
        if len(workload) < len(small.workload):
            may_go_on.wait(20)
        return solved(workload, **options)

    monkeypatch.setattr(background, "PATIENCE", 0.1)
    session = app("workload", small)
    for _ in range(50):
        if "noisy measurements" in plain(session.texts("caption")):
            break
        session.run()
    monkeypatch.setattr(planner, "optimum", slow)
    session.number_input(key="order").set_value(1).run()
    session.press("Undo")
    session.press("Redo")
    may_go_on.set()
    for _ in range(50):
        session.run()
        if "noisy measurements" in plain(session.texts("caption")):
            break
    assert not session.error
    assert ", computed from 4 noisy measurements" in plain(session.texts("caption"))
