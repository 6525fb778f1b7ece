"""The Release page, on a copy of some of the sample's records."""

from fractions import Fraction

import pytest
import streamlit as st

import rpexplore as rp
from pages.components.release.release_task import RELEASE_TASK
from pages.components.results import files
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.releases.finished_release import Release
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.releases.table_release import TableRelease
from rpexplore.scenarios.project import Project
from rpexplore.scenarios.scenario import Scenario
from tests.pages.conftest import confirmed_run, finish, plain, run_button, set_up


def test_a_release_from_start_to_finish(app, records, tmp_path, monkeypatch):
    session = set_up(app("release"), records, tmp_path / "out")
    downloads, draw = {}, st.download_button
    monkeypatch.setattr(
        st,
        "download_button",
        lambda label, data, file, *more, **options: (
            downloads.update({label: data}) or draw(label, data, file, *more, **options)
        ),
    )
    monkeypatch.setattr(files, "in_other_process", lambda function, *args: function(*args))
    finish(confirmed_run(session))
    assert session.success[0].value == (
        "Finished: 67 noisy tables. This run was charged ρ = 0.1 (ε = 2 at δ = 1e-6), which "
        "cannot be undone; in total ρ = 0.1 (ε = 2 at δ = 1e-6) has been spent on these records."
    )
    assert session.code[0].value == str(tmp_path / "out")
    page = downloads["Download a page for readers"]().decode()
    assert "<h1>Household survey</h1>" in page
    assert "People by Age in years" in page
    done = TableRelease.load(tmp_path / "out")
    session.open("results").multiselect(key="looked at").set_value(["sex"]).run()
    session.radio(key="results view").set_value("List").run()
    shown = session.dataframe[0].value
    assert shown["value"].tolist() == done.table(["sex"])["value"].tolist()
    session.multiselect(key="looked at").set_value(["sex", "age", "region"]).run()
    assert "no released table" in session.info[0].value
    session.open("release")
    spent = Ledger.beside(records).account(records).spent_record_rho
    assert spent == done.plan.record_rho <= Fraction("0.1")
    session.press("Prepare another")
    assert session.metrics()["Spent on these records"] == "ρ = 0.1"
    assert session.metrics()["After this run"] == "ρ = 0.2"
    assert session.text_input(key="data path").value == str(records)
    assert session.text_input(key="output").value.startswith("releases/survey-")
    # The ledger beside the records binds, whatever other one is named.
    session.text_input(key="ledger").set_value(str(tmp_path / "own.sqlite")).run()
    assert "has its account in the ledger" in plain(session.texts("error"))
    assert run_button(session).disabled


@pytest.mark.nightly
def test_a_release_keeps_the_forecast_of_its_plan_if_that_is_wanted(app, records, tmp_path):
    session = app("release")
    session.scenario = session.scenario.replaced(public=(), expected=ExpectedCounts.of_total(500))
    session.run()
    plain_plan = session.scenario.plan()
    session.checkbox(key="keep forecast").set_value(True).run()
    finish(confirmed_run(set_up(session, records, tmp_path / "out")))
    kept = Release.load(tmp_path / "out").plan
    made = rp.Forecast(plain_plan, expected=500)
    assert kept.forecast == made.stated
    assert kept.sha256 != plain_plan.sha256
    labels = [button.label for button in session.get("download_button")]
    assert labels.index("Download a page for readers") < labels.index("Download report.html")


def test_a_run_is_confirmed_by_the_name_of_its_scenario(app, records, tmp_path):
    session = app("release")
    session.scenario = session.scenario.replaced(public=(), expected=ExpectedCounts.of_total(500))
    set_up(session, records, tmp_path / "out").press("Run the release")
    facts = plain(session.texts("markdown"))
    for fact in (
        "Scenario:** Scenario 1",
        "Release:** 67 noisy tables with ",
        f"Records:** {records}",
        "Privacy cost:** ρ = 0.1 (ε = 2 at δ = 1e-6) for one record",
        "Ledger:** ρ = 0 spent before, ρ = 0.1 (ε = 2 at δ = 1e-6) after",
        "Budget limit:** none",
        "Targets:** none set",
        " of people are in good cells, with a coefficient of variation of at most 20 %; ",
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


@pytest.mark.nightly
def test_a_finished_release_belongs_to_its_project_and_is_found_again(app, records, tmp_path):
    session = set_up(app("release"), records, tmp_path / "out")
    session.checkbox(key="parquet only").check().run()
    session = finish(confirmed_run(session))
    assert session.success
    assert not list((tmp_path / "out" / "tables").glob("*.csv"))
    downloads = [button.label for button in session.get("download_button")]
    assert "Download plan and report (.zip)" in downloads
    assert session.open("results").multiselect(key="looked at").value == ["age"]
    session.open("release")
    project, key = session.project, session.query_params["project"]
    open_project(session, Project((session.scenario.replaced(name="Another"),)), "1" * 32)
    assert not session.success
    assert "Last release" not in plain(session.texts("markdown"))
    session.open("results")
    assert not session.radio
    assert not session.text_input(key="results folder").value
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
    assert "The release of this project" in reloaded.texts("caption")


def open_project(session, project, key):
    """Open another project in this session, as a door of the page Home does."""
    session.test.session_state["project"] = project
    session.test.session_state["autosave key"] = key
    session.run()


def test_what_is_typed_for_a_release_belongs_to_its_project(app, records, tmp_path):
    session = set_up(app("release"), records, tmp_path / "out")
    session.text_input(key="limit").set_value("0.5").run()
    project, key = session.project, session.session_state["autosave key"]
    open_project(session, Project((session.scenario.replaced(name="Another"),)), "1" * 32)
    assert session.radio(key="source").value == "The sample data"
    assert session.text_input(key="output").value.startswith("releases/household-")
    assert not session.text_input(key="limit").value
    open_project(session, project, key)
    assert session.text_input(key="data path").value == str(records)
    assert session.text_input(key="output").value == str(tmp_path / "out")
    assert session.text_input(key="limit").value == "0.5"


@pytest.mark.nightly
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


@pytest.mark.nightly
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
    # Its numbers have no cell for missing values, which alone could take any.
    assert session.multiselect(key="others").options == []


def test_missing_values_are_counted_where_the_curator_says(app, records, tmp_path):
    text = records.read_text().splitlines()
    header = text[0].split(",")
    at = header.index("region")
    row = text[1].split(",")
    row[at] = ""
    records.write_text("\n".join([*text, ",".join(row)]) + "\n")
    session = set_up(app("release"), records, tmp_path / "out")
    session.multiselect(key="missings").set_value(["region"]).run()
    session.selectbox(key="missing value of region").set_value("R12").run()
    session.press("Dry run")
    assert "1 of 'region' is missing, and counted as 'Outer Isles'." in plain(
        session.texts("success")
    )


@pytest.mark.nightly
def test_impossible_records_are_refused_until_the_curator_has_them_counted(app, tmp_path):
    sex = rp.Attribute("sex", rp.Categories(("f", "m")))
    age = rp.Attribute("age", rp.Integers(0, 2))
    (tmp_path / "people.csv").write_text("sex,age\nf,0\nm,1\n")
    scenario = Scenario(rp.Domain((sex, age), ({"sex": "f", "age": "0"},)))
    session = set_up(app("release", scenario), tmp_path / "people.csv", tmp_path / "out")
    session.press("Dry run")
    assert "impossible: sex=f age=0." in plain(session.texts("error"))
    session.checkbox(key="count impossible").check().run()
    session.press("Dry run")
    assert "impossible are counted as they are" in plain(session.texts("success"))


def test_what_holds_no_records_or_other_columns_is_refused(app, tmp_path):
    (tmp_path / "a.doc").touch()
    (tmp_path / "a.csv").touch()
    (tmp_path / "b").mkdir()
    session = app("release")
    for path, reason in (
        (tmp_path / "none.csv", "There are no records at"),
        (tmp_path / "a.doc", "must be a .csv or .parquet file"),
        (f'"{tmp_path / "b"}"', "holds no records"),  # as some file managers copy it
    ):
        set_up(session, path)
        assert reason in plain(session.texts("error"))
        assert not session.metrics()
    assert not set_up(session, tmp_path / "a.csv").error
    session = app("release", Scenario(rp.Domain.from_sizes({"age": 10, "shoe size": 5})))
    assert "shoe size" in session.info[0].value
    assert not [button for button in session.button if button.label.startswith("Run")]


def test_a_dialog_that_was_left_open_is_not_one_of_another_plan(app, records, tmp_path):
    def spends(session) -> bool:
        return any(button.label.startswith("Spend") for button in session.button)

    session = set_up(app("release"), records, tmp_path / "out").press("Run the release")
    assert spends(session)
    session.scenario = session.scenario.replaced(budget=rp.Budget(rho="0.2"))
    assert not spends(session.run())
    session.scenario = session.scenario.replaced(budget=rp.Budget(rho="0.1"))
    assert spends(session.run())
