"""The Release page, on a copy of some of the sample's records."""

import shutil
from fractions import Fraction
from pathlib import Path

import pytest

from rpexplore.ledger import Ledger
from rpexplore.release import Release
from rpexplore.webapp_location import sample_data_folder


@pytest.fixture
def records(tmp_path) -> Path:
    lines = (sample_data_folder() / "household.csv").read_text().splitlines(keepends=True)
    path = tmp_path / "survey.csv"
    path.write_text("".join(lines[:501]))
    return path


def set_up(session, records, output=None):
    session.radio(key="source").set_value("A file on this computer").run()
    session.text_input(key="data path").set_value(str(records)).run()
    if output is not None:
        session.text_input(key="output").set_value(str(output)).run()
    return session


def finish(session):
    session.session_state["run"].wait(30)
    session.run()
    return session


def test_cost_is_shown_before_the_run(app):
    session = app("release")
    assert session.metrics() == {
        "Spent on these records": "ρ = 0",
        "After this run": "ρ = 0.1",
        "Cap": "none",
    }
    assert session.button[-1].label == "Run the release: spend ρ = 0.1"


def test_a_release_from_start_to_finish(app, records, tmp_path):
    session = set_up(app("release"), records, tmp_path / "out")
    finish(session.press("Run the release"))
    assert "67 noisy tables" in session.success[0].value
    assert session.code[0].value == str(tmp_path / "out")
    done = Release.load(tmp_path / "out")
    session.multiselect(key="looked at").set_value(["sex"]).run()
    shown = session.dataframe[0].value
    assert shown["value"].tolist() == done.table(["sex"])["value"].tolist()
    session.multiselect(key="looked at").set_value(["sex", "age", "region"]).run()
    assert "no released table" in session.info[0].value
    spent = Ledger.beside(records).account(records).spent_record_rho
    assert spent == done.plan.record_rho <= Fraction("0.1")


def test_a_second_click_does_not_run_again(app, records, tmp_path):
    session = set_up(app("release"), records, tmp_path / "out")
    button = next(each for each in session.button if each.label.startswith("Run the release"))
    button.click()
    session.run()
    first = session.session_state["run"]
    button.click()
    session.run()
    session.open("plan").open("release")
    assert session.session_state["run"] is first
    finish(session)
    assert len(Ledger.beside(records).account(records).runs) == 1


def test_spent_budget_is_shown_for_the_next_run(app, records, tmp_path):
    session = set_up(app("release"), records, tmp_path / "out")
    finish(session.press("Run the release")).press("Prepare another")
    assert session.metrics()["Spent on these records"] == "ρ = 0.1"
    assert session.metrics()["After this run"] == "ρ = 0.2"
    assert session.text_input(key="data path").value == str(records)
    assert session.text_input(key="output").value.startswith("releases/survey-")


def test_a_folder_that_exists_is_refused(app, records, tmp_path):
    session = set_up(app("release"), records, tmp_path)
    assert "never overwritten" in session.error[0].value
    assert session.button[-1].disabled


def test_a_file_that_is_not_there(app, tmp_path):
    session = set_up(app("release"), tmp_path / "nothing.csv")
    assert "There is no file" in session.error[0].value
    assert not [each for each in session.button if each.label.startswith("Run")]


def test_no_file_named_yet(app):
    session = app("release")
    session.radio(key="source").set_value("A file on this computer").run()
    assert "Name the file" in session.info[0].value


def test_a_strange_value_is_on_the_screen_only(app, records, tmp_path, capfd):
    records.write_text(records.read_text().replace("Village", "Secretplace", 1))
    session = set_up(app("release"), records, tmp_path / "out")
    finish(session.press("Run the release"))
    assert "Secretplace" in session.error[0].value
    assert "Secretplace" not in "".join(capfd.readouterr())
    assert not (tmp_path / "out").exists()
    assert Ledger.beside(records).account(records).runs == ()
    session.press("Back")
    assert session.text_input(key="data path").value == str(records)


def test_strange_values_go_into_a_category_of_choice(app, records, tmp_path):
    records.write_text(records.read_text().replace("Village", "Secretplace", 1))
    session = set_up(app("release"), records, tmp_path / "out")
    session.multiselect(key="others").set_value(["settlement"]).run()
    session.selectbox(key="other value of settlement").set_value("Town").run()
    finish(session.press("Run the release"))
    assert session.success


def test_a_run_beyond_the_cap_is_refused(app, records, tmp_path):
    session = set_up(app("release"), records, tmp_path / "out")
    session.text_input(key="cap").set_value("0.15").run()
    finish(session.press("Run the release")).press("Prepare another")
    assert session.metrics()["Cap"] == "ρ = 0.15"
    assert "beyond the cap" in session.error[0].value
    assert session.button[-1].disabled


def test_ledger_elsewhere(app, records, tmp_path):
    session = set_up(app("release"), records, tmp_path / "out")
    session.text_input(key="ledger").set_value(str(tmp_path / "book.sqlite")).run()
    finish(session.press("Run the release"))
    assert (tmp_path / "book.sqlite").exists()
    assert not Ledger.beside(records).path.exists()


def test_a_ledger_that_cannot_be_read(app, records, tmp_path):
    shutil.copy(records, tmp_path / "book.sqlite")
    session = set_up(app("release"), records, tmp_path / "out")
    session.text_input(key="ledger").set_value(str(tmp_path / "book.sqlite")).run()
    assert "ledger" in session.error[0].value
    assert session.button[-1].disabled


def test_another_schema_is_refused_before_anything_is_spent(app, small, records, tmp_path):
    session = set_up(app("release", small), records, tmp_path / "out")
    finish(session.press("Run the release"))
    assert session.error
    assert Ledger.beside(records).account(records).runs == ()
