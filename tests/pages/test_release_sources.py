"""The Release page: where records lie, records of a person, dry runs, ledger, stopped runs."""

from pathlib import Path

import duckdb
import pandas as pd
import pytest

import rpexplore as rp
from pages.components.release.release_task import RELEASE_TASK
from rpexplore.data.engines.source import DatabaseSource
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.releases.table_release import TableRelease
from rpexplore.scenarios.examples import EXAMPLES
from tests.pages.conftest import confirmed_run, finish, plain, run_button, set_up
from tests.support.stopped_runs import killed

DATABASE = "A table of a database"
CHECK = "dry run button"


def run_to_the_end(session):
    finish(confirmed_run(session))
    return TableRelease.load(session.session_state[RELEASE_TASK].inputs.output)


def dry_run(session):
    session.button(key=CHECK).click().run()
    session.session_state["dry run"][1].wait(30)
    return session.run()


@pytest.mark.nightly
def test_a_folder_is_released_and_its_ledger_lies_beside_it(app, records, tmp_path):
    halves = records.read_text().splitlines(keepends=True)
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "a.csv").write_text("".join(halves[:200]))
    (folder / "b.csv").write_text("".join([halves[0], *halves[200:]]))
    session = set_up(app("release"), folder, tmp_path / "out")
    assert run_to_the_end(session).folder == tmp_path / "out"
    assert len(Ledger(tmp_path / "rpexplore-ledger.sqlite").account(folder).entries) == 1


@pytest.mark.nightly
def test_records_of_fixed_width_ask_for_the_codebook_with_their_positions(app, records, tmp_path):
    frame = pd.read_csv(records, dtype=str, keep_default_na=False)
    fixed, codebook = records.with_name("survey.dat"), records.with_name("survey.xml")
    fixed.write_text("".join(f"{''.join(row)}\n" for row in padded(frame)))
    ends = frame.apply(lambda column: column.str.len().max()).cumsum()
    places = zip(ends.shift(fill_value=0) + 1, ends, strict=True)
    codebook.write_text(
        "<codeBook><dataDscr>"
        + "".join(
            f'<var name="{name}"><location StartPos="{start}" EndPos="{end}"/></var>'
            for name, (start, end) in zip(frame, places, strict=True)
        )
        + "</dataDscr></codeBook>"
    )
    session = set_up(app("release"), fixed)
    assert "Choose the codebook with the positions" in plain(session.texts("info"))
    session.text_input(key="positions path").set_value(str(records)).run()
    assert "is no DDI codebook" in plain(session.texts("error"))
    session.text_input(key="positions path").set_value(str(codebook)).run()
    assert not session.error
    session.text_input(key="output").set_value(str(tmp_path / "out")).run()
    assert run_to_the_end(session).folder == tmp_path / "out"


def padded(frame):
    widths = [frame[name].str.len().max() for name in frame]
    for row in frame.itertuples(index=False):
        yield [text.ljust(width) for text, width in zip(row, widths, strict=True)]


def protecting_persons(app):
    """A session whose plan protects a person with at most one record."""
    session = app()
    session.scenario = session.scenario.replaced(
        budget=rp.Budget(rho="0.1", max_records_per_person=1)
    )
    return session.run().open("release")


# --- a database


@pytest.fixture
def database(records, monkeypatch) -> Path:
    path = records.parent / "survey.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE people AS SELECT * FROM read_csv('{records}')")
    monkeypatch.setenv("SURVEY_DB", f"duckdb:///{path}")
    return path


def of_database(session, name="SURVEY_DB", table="people"):
    session.radio(key="source").set_value(DATABASE).run()
    session.text_input(key="connection").set_value(name)
    session.text_input(key="database table").set_value(table)
    return session.run()


@pytest.mark.nightly
def test_a_table_of_a_database_is_released_by_the_name_of_its_connection(app, database, tmp_path):
    session = of_database(app("release"))
    assert not session.error
    session.text_input(key="output").set_value(str(tmp_path / "out")).run()
    done = run_to_the_end(session)
    assert "postgresql" not in done.manifest["guarantee"]
    assert f"duckdb:///{database}" not in repr(session.session_state[RELEASE_TASK].inputs)
    assert str(database) not in session.project.text()


@pytest.mark.nightly
def test_what_is_missing_of_a_database_is_named(app, database):
    session = app("release")
    session.radio(key="source").set_value(DATABASE).run()
    assert "Name the connection and the table" in session.info[0].value
    of_database(session, name="NOWHERE")
    assert "There is no connection" in session.error[0].value
    of_database(session, table="nothing")
    assert "nothing" in session.error[0].value


@pytest.mark.nightly
def test_a_table_on_a_server_needs_an_order_and_a_ledger(app, database, monkeypatch):
    monkeypatch.setattr(DatabaseSource, "home", None)  # as of a server, which has no folder
    session = protecting_persons(app)
    of_database(session)
    assert "Name the ledger to go on" in plain(session.texts("info"))
    assert not session.metrics()
    assert run_button(session).disabled
    session.text_input(key="ledger").set_value(str(database.with_name("own.sqlite"))).run()
    assert "Name the ledger to go on" not in plain(session.texts("info"))
    assert session.metrics()["Spent on these records"] == "ρ = 0"
    assert not run_button(session).disabled
    session.selectbox(key="person column").set_value("age").run()
    session.radio(key="person excess").set_value("Count only the first").run()
    assert "The records of a database have no order" in plain(session.texts("info"))
    assert run_button(session).disabled
    session.selectbox(key="person order").set_value("sex").run()
    assert not session.info
    assert not run_button(session).disabled


# --- a dry run


def test_a_dry_run_refuses_what_a_run_would_and_records_that_change_after_it(
    app, records, tmp_path
):
    usable = records.read_text()
    records.write_text(usable.replace("Village", "Secretplace", 1))
    session = dry_run(set_up(app("release"), records, tmp_path / "out"))
    assert "Secretplace" in session.error[0].value
    assert "Nothing was charged" in session.error[0].value
    # No run until the dry run passes, or something else is chosen.
    assert run_button(session).disabled
    assert "repeat the dry run" in session.info[0].value
    session.multiselect(key="others").set_value(["settlement"]).run()
    session.selectbox(key="other value of settlement").set_value("Town").run()
    assert not run_button(session).disabled
    session.multiselect(key="others").set_value([]).run()
    assert run_button(session).disabled
    records.write_text(usable)
    session = dry_run(session.run())
    assert "nothing was spent" in session.success[0].value
    assert not run_button(session).disabled
    assert "500" not in session.success[0].value.replace(str(tmp_path), "")
    assert Ledger.beside(records).account(records).entries == ()
    assert not (tmp_path / "out").exists()
    # What was checked is shown for exactly this run.
    session.text_input(key="output").set_value(str(tmp_path / "elsewhere")).run()
    assert not session.success
    session.text_input(key="output").set_value(str(tmp_path / "out")).run()
    assert session.success
    lines = records.read_text().splitlines(keepends=True)
    records.write_text("".join(lines[:-1]))
    confirmed_run(session)
    session.session_state[RELEASE_TASK].wait(30)
    session.run()
    assert "have changed since they were checked" in session.error[0].value
    assert "Nothing was charged" in session.error[0].value


# --- records of a person


@pytest.fixture
def of_persons(app, records):
    """Two records of one person; the plan protects one with at most one."""
    header, *lines = records.read_text().splitlines()
    rows = [f"{line},{max(i, 1)}" for i, line in enumerate(lines)]
    records.write_text("\n".join([f"{header},who", *rows]) + "\n")
    return protecting_persons(app)


@pytest.mark.nightly
def test_too_many_records_of_a_person_are_refused(of_persons, records, tmp_path):
    session = set_up(of_persons, records, tmp_path / "out")
    session.selectbox(key="person column").set_value("who").run()
    dry_run(session)
    assert "who" in session.error[0].value
    session.radio(key="person excess").set_value("Count only the first").run()
    done = run_to_the_end(session)
    assert "first 1 record" in done.manifest["records_per_person"]


# --- the ledger, and runs that were stopped


@pytest.mark.nightly
def test_the_ledger_is_shown_with_other_records_in_it(app, records, tmp_path):
    other = records.with_name("other.csv")
    other.write_text(records.read_text())
    for data, where in ((records, "one"), (other, "two")):
        run_to_the_end(set_up(app("release"), data, tmp_path / where))
    session = set_up(app("release"), records, tmp_path / "three")
    shown = [frame.value for frame in session.dataframe]
    (runs,) = [frame for frame in shown if "state" in frame]
    assert runs["output"].tolist() == [str(tmp_path / "one")]
    assert runs["rho"].tolist() == ["0.1"]
    (others,) = [frame for frame in shown if "dataset" in frame]
    assert others["dataset"].tolist() == ["other.csv"]


def test_other_records_have_their_own_ledger_and_budget_limit(app, records, tmp_path):
    session = set_up(app("release"), records, tmp_path / "out")
    session.text_input(key="ledger").set_value(str(tmp_path / "own.sqlite"))
    session.text_input(key="limit").set_value("1").run()
    session.radio(key="source").set_value("The sample data").run()
    assert session.text_input(key="ledger").value == ""
    assert session.text_input(key="limit").value == ""


@pytest.mark.nightly
def test_a_stopped_run_is_finished_on_the_page(app, records, tmp_path):
    session = app("plan")
    session.planned.save(tmp_path / "plan.json")
    killed(
        "rpexplore.releases.table_release.TableWriter.table",
        3,
        tmp_path / "plan.json",
        records,
        tmp_path / "out",
    )
    session = set_up(session.open("release"), records, tmp_path / "other")
    assert any("its noise is drawn and kept" in warning.value for warning in session.warning)
    session.press("Finish it without further cost")  # short enough to be waited for
    assert TableRelease.load(tmp_path / "out")
    assert Ledger.beside(records).account(records).entries[0].state == "finished"
    assert any("Finished" in success.value for success in session.success)
    assert not session.error
    assert session.session_state["results folder"] == str(tmp_path / "out")
    session.run()
    assert not any("its noise is drawn" in warning.value for warning in session.warning)


@pytest.mark.nightly
def test_every_example_proposes_its_own_records(app):
    for example in EXAMPLES:
        session = app("release", example.project().current)
        assert str(example.records) in plain(session.texts("caption"))
        if example.person_column:
            assert session.selectbox(key="person column").value == example.person_column
