"""The Release page, on a copy of some of the sample's records."""

import os
import shutil
import sys
import threading
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import rpexplore as rp
from pages.components.release.confirmation import ASKED
from pages.components.release.release_task import RELEASE_TASK
from rpexplore.common.webapp_files import sample_data_folder
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.errors import ReleaseError
from rpexplore.queries.definitions import stated_from_text
from rpexplore.releases.ledger import Ledger
from rpexplore.releases.query_release import QueryRelease
from rpexplore.releases.release import release as run_release
from rpexplore.releases.table_release import Release
from rpexplore.scenarios.project import Project
from rpexplore.scenarios.scenario import Scenario
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

    monkeypatch.setattr(sys.modules["pages.components.release.release_task"], "release", waiting)
    yield may_go_on
    may_go_on.set()


def test_a_release_from_start_to_finish(app, records, tmp_path):
    session = set_up(app("release"), records, tmp_path / "out")
    finish(confirmed_run(session))
    assert session.success[0].value == (
        "Finished: 67 noisy tables. This run was charged ρ = 0.1, which cannot be undone; in total "
        "ρ = 0.1 has been spent on these records."
    )
    assert session.code[0].value == str(tmp_path / "out")
    done = Release.load(tmp_path / "out")
    session.multiselect(key="looked at").set_value(["sex"]).run()
    session.radio(key="results view").set_value("List").run()
    shown = session.dataframe[0].value
    assert shown["value"].tolist() == done.table(["sex"])["value"].tolist()
    session.multiselect(key="looked at").set_value(["sex", "age", "region"]).run()
    assert "no released table" in session.info[0].value
    spent = Ledger.beside(records).account(records).spent_record_rho
    assert spent == done.plan.record_rho <= Fraction("0.1")
    # The tables count what the run was for, whatever the scenario says meanwhile.
    renamed = session.scenario.replaced(record_noun="households")
    session.test.session_state["project"] = session.project.with_current(renamed)
    session.multiselect(key="looked at").set_value(["sex"]).run()
    (sentence,) = [text for text in session.texts("markdown") if "of the true one" in text]
    assert "people" in sentence
    session.press("Prepare another")
    assert session.metrics()["Spent on these records"] == "ρ = 0.1"
    assert session.metrics()["After this run"] == "ρ = 0.2"
    assert session.text_input(key="data path").value == str(records)
    assert session.text_input(key="output").value.startswith("releases/survey-")


def test_a_run_is_confirmed_by_the_name_of_its_scenario(app, records, tmp_path):
    session = app("release")
    session.scenario = session.scenario.replaced(expected=ExpectedCounts.of_total(500))
    set_up(session, records, tmp_path / "out").press("Run the release")
    facts = plain(session.texts("markdown"))
    for fact in (
        "Scenario:** Scenario 1",
        "Release:** 67 noisy tables with ",
        f"Records:** {records}",
        "Privacy cost:** ρ = 0.1 for one record (ε = 2.142 at δ = 1e-6)",
        "Ledger:** ρ = 0 spent before, ρ = 0.1 after",
        "Budget limit:** none",
        "Targets:** none set",
        " of the 10,116 cells are publishable, with a coefficient of variation of at most 20 %",
        "Dry run:** not made",
    ):
        assert fact in facts
    session.text_input(key="confirmed name").set_value("Scenario")
    session.press("Spend")
    assert "the name of the scenario is Scenario 1" in plain(session.texts("error"))
    session.press("Cancel")
    assert not [button for button in session.button if button.label.startswith("Spend")]
    assert RELEASE_TASK not in session.session_state
    assert Ledger.beside(records).account(records).entries == ()


def test_a_finished_release_belongs_to_its_project_and_is_found_again(app, records, tmp_path):
    session = finish(confirmed_run(set_up(app("release"), records, tmp_path / "out")))
    assert session.success
    downloads = [button.label for button in session.get("download_button")]
    assert "Download plan and report (.zip)" in downloads
    project, key = session.project, session.query_params["project"]
    open_project(session, Project((session.scenario.replaced(name="Another"),)), "1" * 32)
    assert not session.success
    assert "Last release" not in plain(session.texts("markdown"))
    session.open("results")
    assert not session.radio
    # Back in its own project, also after a reload.
    open_project(session.open("release"), project, key)
    assert session.success
    reloaded = app("release", key=key)
    assert not reloaded.success
    assert f"Last release of this project:** 67 noisy tables, in {tmp_path / 'out'}" in plain(
        reloaded.texts("markdown")
    )
    reloaded.press("Look at its results")
    assert reloaded.title[0].value == "Results"
    assert reloaded.text_input(key="results folder").value == str(tmp_path / "out")


def open_project(session, project, key):
    """Open another project in this session, as a door of the page Home does."""
    session.test.session_state["project"] = project
    session.test.session_state["autosave key"] = key
    session.run()


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


def test_a_strange_value_is_on_the_screen_only(app, records, tmp_path, capfd):
    records.write_text(records.read_text().replace("Village", "Secretplace", 1))
    session = set_up(app("release"), records, tmp_path / "out")
    finish(confirmed_run(session))
    assert "Secretplace" in session.error[0].value
    assert "Secretplace" not in "".join(capfd.readouterr())
    assert not (tmp_path / "out").exists()
    assert Ledger.beside(records).account(records).entries == ()
    assert session.error[0].value.endswith("Nothing was charged\\.")
    assert session.text_input(key="data path").value == str(records)
    assert session.text_input(key="output").value == str(tmp_path / "out")
    assert not run_button(session).disabled
    # It can go into a category of the curator's choice.
    session.multiselect(key="others").set_value(["settlement"]).run()
    session.selectbox(key="other value of settlement").set_value("Town").run()
    finish(confirmed_run(session))
    assert session.success


def test_a_limit_that_cannot_be_and_a_run_beyond_one_are_refused(app, records, tmp_path):
    session = set_up(app("release"), records, tmp_path / "out")
    for text in ("abc", "0"):
        session.text_input(key="limit").set_value(text).run()
        assert len(session.error) == 1
        assert run_button(session).disabled
    session.text_input(key="limit").set_value("0.15").run()
    finish(confirmed_run(session)).press("Prepare another")
    assert session.metrics()["Budget limit"] == "ρ = 0.15"
    assert "left of its budget limit" in session.error[0].value
    assert run_button(session).disabled


def test_a_budget_limit_is_offered_at_the_first_run_of_records_and_never_later(
    app, records, tmp_path
):
    session = set_up(app("release"), records, tmp_path / "out")
    assert "later runs may spend any amount" in plain(session.texts("markdown"))
    assert session.metrics()["Budget limit"] == "none"
    session.press("One more like it: ρ = 0.2")
    assert session.metrics()["Budget limit"] == "ρ = 0.2"
    session.press("Run the release")
    assert "Budget limit:** ρ = 0.2, then ρ = 0.1 left" in plain(session.texts("markdown"))
    session.press("Cancel")
    session.text_input(key="limit").set_value("").run()
    finish(confirmed_run(session)).press("Prepare another")
    assert session.metrics()["Budget limit"] == "none"
    assert "later runs may spend any amount" not in plain(session.texts("markdown"))


def test_category_for_other_values_must_be_chosen_and_is_kept_for_its_codebook(
    app, small, records, tmp_path
):
    session = set_up(app("release"), records, tmp_path / "out")
    session.multiselect(key="others").set_value(["region"]).run()
    assert session.selectbox(key="other value of region").value is None
    assert run_button(session).disabled
    session.selectbox(key="other value of region").set_value("R12").run()
    for _ in range(2):
        session.open("plan").open("release")
        assert session.multiselect(key="others").value == ["region"]
        assert session.selectbox(key="other value of region").value == "R12"
        others = next(box for box in session.expander if box.label.startswith("Out-of"))
        assert others.proto.expanded
    assert not run_button(session).disabled
    line = next(text for text in session.texts("caption") if text.startswith("Out"))
    assert line.replace("\\", "") == "Out-of-codebook values: region → R12 (Outer Isles)"
    session.scenario = small
    session.run()
    assert session.multiselect(key="others").value == []
    session.multiselect(key="others").set_value(["region"]).run()
    assert session.selectbox(key="other value of region").value is None


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
    assert not reloaded.info
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


def test_a_click_on_an_old_picture_of_the_ledger(app, records, tmp_path):
    old = set_up(app("release"), records, tmp_path / "old")
    open_dialog(old)
    finish(confirmed_run(set_up(app("release"), records, tmp_path / "out")))
    old.press("Spend")
    assert "The ledger has changed" in old.warning[0].value.replace("\\", "")
    assert old.metrics()["Spent on these records"] == "ρ = 0.1"
    assert len(Ledger.beside(records).account(records).entries) == 1
    finish(confirmed_run(old))
    assert "in total ρ = 0.2 has been spent" in old.success[0].value


def test_a_run_that_fails_after_it_was_booked_stays_charged(app, records, tmp_path, monkeypatch):
    session = set_up(app("release"), records, tmp_path / "out")

    def failing(plan, data, output, *, ledger, **more):
        Ledger(ledger).book(data, plan, output)
        raise ReleaseError("The disk is full.")

    monkeypatch.setattr(sys.modules["pages.components.release.release_task"], "release", failing)
    finish(confirmed_run(session))
    shown = session.error[0].value.replace("\\", "")
    assert shown.startswith(
        "The disk is full. This run was charged ρ = 0.1, which cannot be undone"
    )
    assert "did not finish. It stays charged" in session.warning[0].value
    assert session.metrics()["Spent on these records"] == "ρ = 0.1"
    assert not run_button(session).disabled


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


def test_what_holds_no_records_or_other_columns_is_refused(app, tmp_path):
    (tmp_path / "a.txt").touch()
    (tmp_path / "a.csv").touch()
    (tmp_path / "b").mkdir()
    session = app("release")
    for path, reason in (
        (tmp_path / "none.csv", "There are no records at"),
        (tmp_path / "a.txt", "must be a .csv or .parquet file"),
        (f'"{tmp_path / "b"}"', "holds no records"),  # as some file managers copy it
    ):
        set_up(session, path)
        assert reason in plain(session.texts("error"))
        assert not session.metrics()
    assert not set_up(session, tmp_path / "a.csv").error
    session = app("release", Scenario(rp.Domain.from_sizes({"age": 10, "shoe size": 5})))
    assert "shoe size" in session.info[0].value
    assert not [button for button in session.button if button.label.startswith("Run")]


def test_folders_and_ledgers_that_cannot_be_used(app, records, tmp_path, monkeypatch):
    shutil.copy(records, tmp_path / "book.sqlite")
    session = set_up(app("release"), records, tmp_path / "out")
    for ledger, message in (
        (tmp_path / "book.sqlite", "ledger"),
        (tmp_path / "none" / "book.sqlite", "There is no folder"),
    ):
        session.text_input(key="ledger").set_value(str(ledger)).run()
        assert message in session.error[0].value
        assert run_button(session).disabled
    session.text_input(key="ledger").set_value("").run()
    session.text_input(key="output").set_value(str(tmp_path)).run()
    assert "nothing is ever overwritten" in session.error[0].value
    assert run_button(session).disabled
    session.text_input(key="output").set_value(str(records / "out")).run()  # below a file
    assert "Nothing can be written" in session.error[0].value
    assert run_button(session).disabled
    session.text_input(key="output").set_value(str(tmp_path / "new" / "out")).run()
    assert not run_button(session).disabled
    assert not session.warning
    with monkeypatch.context() as patch:
        few = shutil._ntuple_diskusage(10**9, 10**9, 10**4)
        patch.setattr(shutil, "disk_usage", lambda folder: few)
        session.run()
    assert "hardly fit" in session.warning[0].value
    assert any("10 kB are free" in text for text in session.texts("caption"))
    monkeypatch.setattr(os, "access", lambda path, mode: mode == os.R_OK)
    session.run()
    assert "Nothing can be written" in session.error[0].value
    assert "cannot be written" in session.error[1].value  # the ledger beside the records
    assert run_button(session).disabled


def test_ledger_of_the_sample_is_beside_its_releases(app, tmp_path):
    session = app("release")
    ledger = tmp_path / "releases" / "rpexplore-ledger.sqlite"
    assert any(str(ledger) in text.replace("\\", "") for text in session.texts("caption"))
    assert not ledger.exists()
    assert session.metrics() == {
        "Spent on these records": "ρ = 0",
        "After this run": "ρ = 0.1",
        "Budget limit": "none",
    }
    assert session.button[-1].label == "Run the release: spend ρ = 0.1"
    finish(confirmed_run(session))
    assert session.success
    sample = sample_data_folder() / "household.csv"
    assert len(Ledger(ledger).account(sample).entries) == 1


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

    monkeypatch.setattr(sys.modules["pages.components.release.release_task"], "release", pausing)
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


def test_a_ledger_that_the_command_line_made_beside_the_sample_is_used(app, monkeypatch, tmp_path):
    sample = Path(shutil.copytree(sample_data_folder(), tmp_path / "sample"))
    app()  # has the app's modules imported
    for module in ("rpexplore.common.webapp_files", "rpexplore.scenarios.examples"):
        monkeypatch.setattr(sys.modules[module], "sample_data_folder", lambda: sample)
    data = sample / "household.csv"
    plan = rp.plan(
        rp.Workload.all_up_to(rp.Domain.load(sample / "household.json"), 1),
        loss=rp.SumOfVariances(),
        budget=rp.Budget(rho="0.25"),
    )
    assert app("release").metrics()["Spent on these records"] == "ρ = 0"
    Ledger.beside(data).book(data, plan, tmp_path / "out", None)
    assert app("release").metrics()["Spent on these records"] == "ρ = 0.25"


# ---- a list of queries


def test_a_list_of_queries_is_checked_run_shown_and_shares_the_ledger(app, small, tmp_path):
    domain = rp.Domain.from_sizes({"age": 10, "sex": 2})
    stated = stated_from_text(domain, "everybody: total ± 50\nold: age >= 8 ± 20")
    records, output = tmp_path / "survey.csv", tmp_path / "answers"
    records.write_text("sex,age\n" + "1,9\n" * 30 + "0,3\n" * 70)
    session = app("queries", small.replaced(query_list=stated)).show("queries", "Release")
    set_up(session, records, output)
    assert any("The plan: 2 noisy answers, ρ = " in text for text in session.texts("markdown"))
    session.press("Dry run")
    assert any("All is in order" in text for text in session.texts("success"))
    assert not output.exists()
    # A dialog that was left open on the page of the tables does not open here.
    session.test.session_state[ASKED] = rp.Plan.file_format
    session.run()
    assert not [button for button in session.button if button.label.startswith("Spend")]
    finish(confirmed_run(session))
    assert not session.exception
    done = QueryRelease.load(output)
    assert done.plan.met.all()
    shown = session.dataframe[0].value
    assert shown["answer"].tolist() == done.answers["answer"].tolist()
    # 100 people, 30 of them old: farther out with probability 1e-11.
    errors = done.answers["standard_error"]
    assert np.all(np.abs(done.answers["answer"] - [100, 30]) < 6.8 * errors)
    (entry,) = Ledger.beside(records).account(records).entries
    assert (entry.state, entry.record_rho) == ("finished", done.plan.record_rho)
    # Its result stays with the list; the tables have a form of their own, with a new folder.
    session.open("release")
    assert not session.success
    assert session.metrics()["Spent on these records"].startswith("ρ = 0.0")
    assert session.text_input(key="output").value.startswith("releases/survey-")
    assert str(output) in plain(session.open("results").texts("caption"))


def test_a_stopped_release_of_queries_is_finished_without_further_cost(
    app, small, tmp_path, monkeypatch
):
    domain = rp.Domain.from_sizes({"age": 10, "sex": 2})
    stated = stated_from_text(domain, "everybody: total ± 50")
    records, output = tmp_path / "survey.csv", tmp_path / "answers"
    records.write_text("sex,age\n" + "1,9\n" * 30)
    session = app("queries", small.replaced(query_list=stated)).show("queries", "Release")
    set_up(session, records, output)

    def full(*args):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("rpexplore.releases.query_release.QuerySteps.write", full)
        finish(confirmed_run(session))
    assert any("No space left" in text for text in session.texts("error"))
    session.press("Finish it without further cost")
    assert plain(session.texts("success")).startswith(
        "Finished: 1 noisy answer. Nothing further was charged. The files are in "
    )
    assert len(QueryRelease.load(output).answers) == 1
    (entry,) = Ledger.beside(records).account(records).entries
    assert entry.state == "finished"


@pytest.mark.parametrize(
    ("name", "reason"), [("y" * 5000, "File name too long"), ("a\x00b", "it holds a NUL")]
)
def test_a_name_that_no_folder_can_have_is_refused(app, name, reason):
    session = app("release")
    session.text_input(key="output").set_value(name).run()
    assert not session.exception
    (error,) = session.texts("error")
    assert plain([error]).startswith("A folder cannot have that name (")
    assert reason in error
    assert run_button(session).disabled


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
    assert "Ledger:** ρ = 0.1 spent before, ρ = 0.1 after" in plain(session.texts("markdown"))
    session.text_input(key="confirmed name").set_value("Scenario 1")
    finish(session.press("Run again"))
    (run,) = Ledger.beside(records).account(records).entries
    assert run.state == "finished"
    (line,) = session.texts("success")
    assert plain([line]) == "Finished: 67 noisy tables. Nothing further was charged."


@pytest.mark.parametrize("name", ["y" * 5000, "a\x00b"])
def test_a_name_that_no_ledger_can_have_is_refused(app, name):
    session = app("release")
    session.text_input(key="ledger").set_value(name).run()
    assert not session.exception
    (error,) = session.texts("error")
    assert plain([error]).startswith("A ledger cannot have that name (")
