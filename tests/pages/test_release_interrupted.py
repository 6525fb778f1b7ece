"""Runs of the Release page that are still going, were cancelled, stopped or failed."""

import shutil
import sys
import threading

import pytest

from pages.components.release.release_task import RELEASE_TASK
from rpexplore.errors import ReleaseError
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.releases.release import release as run_release
from tests.pages.conftest import confirmed_run, finish, open_dialog, plain, run_button, set_up
from tests.support.stopped_runs import killed


@pytest.fixture
def stopped(app, monkeypatch):
    """Runs wait, after they have begun, until this is set."""
    app()  # has the app's modules imported
    may_go_on = threading.Event()

    def waiting(*args, **more):
        assert may_go_on.wait(30)
        return run_release(*args, **more)

    monkeypatch.setattr(sys.modules["rpexplore.serving.release_tasks"], "release", waiting)
    yield may_go_on
    may_go_on.set()


@pytest.mark.nightly
def test_a_second_click_does_not_run_again(app, records, tmp_path):
    session = set_up(app("release"), records, tmp_path / "out")
    open_dialog(session)
    button = session.button_of("Spend")
    button.click()
    session.run()
    first = session.session_state[RELEASE_TASK]
    button.click()
    session.run()
    session.open("plan").open("release")
    assert session.session_state[RELEASE_TASK] is first
    finish(session)
    assert len(Ledger.beside(records).account(records).entries) == 1


@pytest.mark.nightly
def test_a_reloaded_page_knows_of_the_run(app, records, stopped, tmp_path):
    first = confirmed_run(set_up(app("release"), records, tmp_path / "out"))
    reloaded = app("release")  # of which the records are not known yet
    assert "A run on other records" in reloaded.info[0].value
    set_up(reloaded, records, tmp_path / "other")
    assert "is in progress" in reloaded.info[0].value
    assert run_button(reloaded).disabled
    elsewhere = set_up(app("release"), shutil.copy(records, tmp_path / "b.csv"), tmp_path / "other")
    assert "A run on other records" in elsewhere.info[0].value
    assert not run_button(elsewhere).disabled
    stopped.set()
    finish(first)
    reloaded.run()
    assert [info.value[:18] for info in reloaded.info] == ["This plan was run "]
    assert reloaded.metrics()["Spent on these records"] == "ρ = 0.1"


def test_two_clicks_in_two_tabs_are_one_run(app, records, stopped, tmp_path):
    first = set_up(app("release"), records, tmp_path / "out")
    second = set_up(app("release"), records, tmp_path / "other")
    open_dialog(first)
    open_dialog(second)
    first.press("Spend")
    second.press("Spend")
    assert RELEASE_TASK not in second.session_state
    assert "is in progress" in second.info[0].value
    stopped.set()
    finish(first)
    assert len(Ledger.beside(records).account(records).entries) == 1


@pytest.mark.nightly
def test_a_run_that_fails_after_it_was_booked_stays_charged(app, records, tmp_path, monkeypatch):
    session = set_up(app("release"), records, tmp_path / "out")

    def failing(plan, data, output, *, ledger, **more):
        Ledger(ledger).book(data, plan, output)
        raise ReleaseError("The disk is full.")

    monkeypatch.setattr(sys.modules["rpexplore.serving.release_tasks"], "release", failing)
    finish(confirmed_run(session))
    shown = session.error[0].value.replace("\\", "")
    assert shown.startswith(
        "The disk is full. This run was charged ρ = 0.1 (ε = 2 at δ = 1e-6), which cannot"
    )
    assert "did not finish. It stays charged" in session.warning[0].value
    assert session.metrics()["Spent on these records"] == "ρ = 0.1"
    assert not run_button(session).disabled


@pytest.mark.nightly
def test_of_two_stopped_runs_into_one_folder_only_the_one_that_was_drawn_is_finished(
    app, records, tmp_path, monkeypatch
):
    session, output = set_up(app("release"), records, tmp_path / "out"), tmp_path / "out"

    def full(*args):
        raise OSError(28, "No space left on device")

    for where in ("release.write_measured", "table_release.TableSteps.write"):
        shutil.rmtree(tmp_path / ".out.unfinished", ignore_errors=True)
        with monkeypatch.context() as patch:
            patch.setattr(f"rpexplore.releases.{where}", full)
            finish(confirmed_run(session))
    states = sorted(warning.value.split("not finish. ")[1] for warning in session.warning)
    assert [state.split(" (")[0] for state in states] == [
        "It is charged, and its noise is drawn and kept.",
        "It stays charged.",
    ]
    session.press("Finish it without further cost")
    assert output.is_dir()
    states = [run.state for run in Ledger.beside(records).account(records).entries]
    assert states == ["started", "finished"]
    reloaded = app("release", key=session.query_params["project"])
    assert f"Last release of this project:** 67 noisy tables, in {output}" in plain(
        reloaded.texts("markdown")
    )


def test_a_run_that_was_stopped_between_its_entry_as_finished_and_its_name_is_finished(
    app, records, tmp_path, monkeypatch
):
    session, output = set_up(app("release"), records, tmp_path / "out"), tmp_path / "out"
    enter = Ledger.finish

    def entered_and_stopped(*arguments):
        enter(*arguments)
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "finish", entered_and_stopped)
        finish(confirmed_run(session))
    assert "It is charged, and its noise is drawn and kept." in session.warning[0].value
    assert not output.exists()
    session.press("Finish it without further cost")
    assert output.is_dir()
    assert [run.state for run in Ledger.beside(records).account(records).entries] == ["finished"]


def test_a_run_cancelled_before_it_is_booked_costs_nothing(app, small_release, stopped):
    session, records, output = small_release
    confirmed_run(session)
    session.button(key="cancel release").click().run()
    stopped.set()
    finish(session)
    assert any(
        "Cancelled" in text and "Nothing was charged" in text for text in session.texts("error")
    )
    assert not output.exists()
    assert Ledger.beside(records).account(records).entries == ()
    assert not run_button(session).disabled


def test_a_booked_run_says_what_cancelling_costs_and_stays_charged(app, small_release, monkeypatch):
    session, records, output = small_release
    booked, go_on = threading.Event(), threading.Event()

    def pausing(*args, on_progress, **more):
        def note(doing, share):
            on_progress(doing, share)
            if doing == "Booking the run in the ledger" and not booked.is_set():
                booked.set()
                assert go_on.wait(30)

        return run_release(*args, on_progress=note, **more)

    monkeypatch.setattr(sys.modules["rpexplore.serving.release_tasks"], "release", pausing)
    confirmed_run(session)
    assert booked.wait(30)
    session.run()
    assert any("stays charged" in text for text in session.texts("markdown"))
    session.button(key="cancel at a cost release").click().run()
    go_on.set()
    finish(session)
    assert any("Cancelled" in text and "was charged" in text for text in session.texts("error"))
    assert not output.exists()
    (run,) = Ledger.beside(records).account(records).entries
    assert run.state == "started"


@pytest.fixture
def small_release(app, records, tmp_path):
    """A session about to release a few tables of the records to a folder."""
    session = app("release")
    output = tmp_path / "released"
    set_up(session, records, output)
    return session, records, output


# By day tests/releases/test_stopped_releases.py does so without a page.
@pytest.mark.nightly
def test_a_booked_run_that_was_stopped_is_run_again_at_the_limit(app, records, tmp_path):
    output = tmp_path / "out"
    session = set_up(app("release"), records, output)
    plan = tmp_path / "plan.json"
    session.planned.save(plan)
    killed("rpexplore.releases.release.write_measured", 1, plan, records, output)
    session.run()
    assert "run the same plan into" in plain(session.texts("warning"))
    session.text_input(key="limit").set_value("0,1").run()
    session.text_input(key="output").set_value("elsewhere").run()
    assert run_button(session).disabled  # a second charge would be beyond the limit
    session.press("Take its folder")
    assert not session.error
    assert session.metrics()["After this run"] == "ρ = 0.1"
    session.press("Run the release again: nothing further is spent")
    assert "Ledger:** ρ = 0.1 (ε = 2 at δ = 1e-6) spent before, ρ = 0.1 (ε" in plain(
        session.texts("markdown")
    )
    session.text_input(key="confirmed name").set_value("Scenario 1")
    finish(session.press("Run again"))
    (run,) = Ledger.beside(records).account(records).entries
    assert run.state == "finished"
    (line,) = session.texts("success")
    assert plain([line]) == "Finished: 67 noisy tables. Nothing further was charged."
