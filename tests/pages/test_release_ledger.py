"""The ledger, the budget limit and the folder on the Release page."""

import os
import shutil
import sys
from fractions import Fraction
from pathlib import Path

import pytest

import rpexplore as rp
from rpexplore.common.installation import sample_data_folder
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.ledger.ledger import Ledger
from tests.pages.conftest import confirmed_run, finish, open_dialog, plain, run_button, set_up
from tests.support.ledgers import database_ledger


@pytest.mark.nightly
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
    assert "This plan was run on these records before" in plain(session.texts("info"))


def test_a_budget_limit_is_offered_at_the_first_run_of_records_and_never_later(
    app, records, tmp_path
):
    session = set_up(app("release"), records, tmp_path / "out")
    assert "later runs may spend any amount" in plain(session.texts("markdown"))
    assert session.metrics()["Budget limit"] == "none"
    session.press("One more like it: ρ = 0.2")
    assert session.metrics()["Budget limit"] == "ρ = 0.2"
    session.press("Run the release")
    facts = plain(session.texts("markdown"))
    # ε(0.2) = 3.1311 and ε(0.1) = 2.1419
    assert "Budget limit:** ρ = 0.2 (ε = 3.14 at δ = 1e-6), then ρ = 0.1 (ε = 2.14 at" in facts
    session.press("Cancel")
    for unit, typed in (("epsilon", "3.1310556"), ("rho", "0.2"), ("epsilon", "3.1310556")):
        # A browser that was drawn twice at once may not have heard of the unit, and sends none.
        for sent in (unit, None):
            session.segmented_control(key="limit unit").set_value(sent).run()
            assert session.text_input(key="limit").value == typed
            assert session.segmented_control(key="limit unit").value == unit
    session.text_input(key="limit").set_value("").run()
    session.press("This run only: ε = 2.142")
    session.press("Run the release")
    assert "then nothing left" in plain(session.texts("markdown"))
    session.press("Cancel")
    session.text_input(key="limit").set_value("").run()
    finish(confirmed_run(session)).press("Prepare another")
    assert session.metrics()["Budget limit"] == "none"
    assert "later runs may spend any amount" not in plain(session.texts("markdown"))


@pytest.mark.nightly
def test_a_click_on_an_old_picture_of_the_ledger(app, records, tmp_path):
    old = set_up(app("release"), records, tmp_path / "old")
    open_dialog(old)
    finish(confirmed_run(set_up(app("release"), records, tmp_path / "out")))
    old.press("Spend")
    assert "The ledger has changed" in old.warning[0].value.replace("\\", "")
    assert old.metrics()["Spent on these records"] == "ρ = 0.1"
    assert len(Ledger.beside(records).account(records).entries) == 1
    finish(confirmed_run(old))
    assert "in total ρ = 0.2 (ε = 2.93 at δ = 1e-6) has been spent" in old.success[0].value


@pytest.mark.nightly
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


@pytest.mark.nightly
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
    assert session.button[-1].label == "Run the release: spend ρ = 0.1 (ε = 2 at δ = 1e-6)"
    finish(confirmed_run(session))
    assert session.success
    sample = sample_data_folder() / "household.csv"
    assert len(Ledger(ledger).account(sample).entries) == 1
    # Nothing lies beside the sample that could refuse another ledger.
    session.press("Prepare another")
    (tmp_path / "home" / "ledgers.json").unlink()
    session.text_input(key="ledger").set_value(str(tmp_path / "own.sqlite")).run()
    assert f"has its account in the ledger '{ledger}'" in plain(session.texts("error"))
    assert run_button(session).disabled


def test_an_account_elsewhere_is_used_unless_another_ledger_is_named(app, records, tmp_path):
    ledger = Ledger(tmp_path / "named.sqlite")
    ledger.set_limit(records, Fraction(1))
    moved = records.rename(tmp_path / "moved.csv")
    session = set_up(app("release"), moved, tmp_path / "out")
    assert str(ledger.path) in plain(session.texts("caption"))
    assert session.metrics()["Budget limit"] == "ρ = 1"
    session.text_input(key="ledger").set_value(str(tmp_path / "own.sqlite")).run()
    assert "has its account in the ledger" in plain(session.texts("error"))


def test_a_ledger_that_the_command_line_made_beside_the_sample_is_used(app, monkeypatch, tmp_path):
    sample = Path(shutil.copytree(sample_data_folder(), tmp_path / "sample"))
    app()  # has the app's modules imported
    for module in ("rpexplore.common.installation", "rpexplore.scenarios.examples"):
        monkeypatch.setattr(sys.modules[module], "sample_data_folder", lambda: sample)
    data = sample / "household.csv"
    plan = plan_tables(
        rp.Workload.all_up_to(rp.Domain.load(sample / "household.json"), 1),
        loss=rp.SumOfVariances(),
        budget=rp.Budget(rho="0.25"),
    )
    assert app("release").metrics()["Spent on these records"] == "ρ = 0"
    Ledger.beside(data).book(data, plan, tmp_path / "out", None)
    assert app("release").metrics()["Spent on these records"] == "ρ = 0.25"


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


@pytest.mark.parametrize("name", ["y" * 5000, "a\x00b"])
def test_a_name_that_no_ledger_can_have_is_refused(app, name):
    session = app("release")
    session.text_input(key="ledger").set_value(name).run()
    assert not session.exception
    (error,) = session.texts("error")
    assert plain([error]).startswith("A ledger cannot have that name (")


# By day tests/cli/test_release.py makes and uses such a ledger.
@pytest.mark.nightly
def test_a_ledger_in_postgresql_is_named_by_its_connection(
    app, records, tmp_path, postgres, monkeypatch
):
    ledger = database_ledger(postgres, monkeypatch)
    session = set_up(app("release"), records, tmp_path / "out")
    for typed, problem in (
        ("postgresql:NOWHERE", "There is no connection 'NOWHERE'"),
        ("postgresql://keeper:s3cr3t@host/survey", "must be given by the name of a connection"),
    ):
        session.text_input(key="ledger").set_value(typed).run()
        assert problem in plain(session.texts("error"))
        assert "s3cr3t" not in plain(session.texts("error"))
        assert run_button(session).disabled
    session.text_input(key="ledger").set_value("postgresql:LEDGER").run()
    assert "postgresql:LEDGER" in plain(session.texts("caption"))
    finish(confirmed_run(session)).press("Prepare another")
    assert [entry.state for entry in ledger.account(records).entries] == ["finished"]
    session.text_input(key="ledger").set_value(str(tmp_path / "other.sqlite")).run()
    assert "has its account in the ledger 'postgresql:LEDGER'" in plain(session.texts("error"))
