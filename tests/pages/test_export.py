"""The export part of the Release page: a button for everything, and one a piece."""

import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

import rpexplore as rp
from pages.components.plan.results import FOUND
from pages.components.release import export
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.errors import ExportError
from rpexplore.planning.table_plan import TablePlan
from rpexplore.reports import bundle, report
from rpexplore.results.rehearsal import rehearse_smooth_tables
from rpexplore.scenarios.project import Project
from rpexplore.scenarios.scenario import Scenario
from tests.releases.area_plans import PLANS
from tests.support.processor_time import PATIENCE


def page() -> None:
    import streamlit as st

    from pages.components.release.export import export_section

    export_section(st.session_state["the plan"], st.session_state["project"].current)


@pytest.fixture
def made(monkeypatch) -> dict[str, Callable[[], str | bytes]]:
    """What each button would hand out, by file name, as far as buttons were drawn."""
    files: dict[str, Callable[[], str | bytes]] = {}
    draw = st.download_button

    def noted(label, data, file_name, *more, **options):
        files[file_name] = data
        return draw(label, data, file_name, *more, **options)

    monkeypatch.setattr(st, "download_button", noted)
    return files


def opened(scenario: Scenario) -> tuple[AppTest, TablePlan]:
    session, plan = AppTest.from_function(page, default_timeout=PATIENCE), scenario.table_plan()
    session.session_state["project"] = Project((scenario,))
    session.session_state["the plan"] = plan
    session.run()
    assert not session.exception
    return session, plan


def test_one_click_takes_everything(made, small):
    session, plan = opened(small)
    first = session.download_button[0]
    assert first.label == "Download plan and report (.zip)"
    assert first.proto.type == "primary"
    with zipfile.ZipFile(BytesIO(made["plan-bundle.zip"]())) as archive:
        assert archive.read("plan.json").decode() == plan.text
        assert "report.html" in archive.namelist()
    assert not session.code  # until the commands are to be shown


@pytest.mark.nightly
def test_the_commands_on_the_page_are_those_of_the_bundle(made, small):
    session, _ = opened(small.replaced(survey="Ages of the town"))
    session.session_state["commands"] = True
    session.run()
    assert "--survey 'Ages of the town'" in session.code[0].value
    with zipfile.ZipFile(BytesIO(made["plan-bundle.zip"]())) as archive:
        commands = archive.read("commands.txt").decode()
    assert commands.rstrip().endswith(session.code[0].value.rstrip())


@pytest.mark.nightly
def test_the_report_has_the_errors_of_best_guesses_for_areas_to_expect(made):
    plan = PLANS["the same"]
    session = AppTest.from_function(page, default_timeout=PATIENCE)
    scenario = Scenario(plan.domain).replaced(expected=ExpectedCounts.of_total(900))
    session.session_state["project"] = Project((scenario,))
    session.session_state["the plan"] = plan.alone
    session.run()
    assert not session.exception
    assert "Expected errors of best guesses by level" in made["report.html"]()


@pytest.mark.nightly
def test_a_rehearsal_of_this_session_is_in_the_report(made, small):
    expected = ExpectedCounts.of_total(900)
    scenario = small.replaced(expected=expected)
    session, plan = opened(scenario)
    rehearsal = rehearse_smooth_tables(plan, expected)
    assert "Simulated on" not in made["report.html"]()
    session.session_state[FOUND] = (plan, expected), rehearsal
    session.run()
    assert "what the simulation of smooth tables found" in " ".join(
        caption.value for caption in session.caption
    )
    assert "Simulated on made-up people (900)" in made["report.html"]()
    with zipfile.ZipFile(BytesIO(made["plan-bundle.zip"]())) as archive:
        assert "--simulate" in archive.read("commands.txt").decode()
    session.session_state["commands"] = True
    session.run()
    assert "rpexplore verify plan.json" in session.code[0].value
    assert plan.sha256 in session.code[0].value


def file_made(session, name, made):
    """What is made of a slow piece, once its button was pressed and the work is done."""
    next(button for button in session.button if button.label == f"Make {name}").click().run()
    for _ in range(30):
        if name in made:
            return made[name]
        session.run()
    raise AssertionError(f"{name} was never made")


@pytest.fixture
def in_thread(monkeypatch):
    """What is made in another process is made in this one, which is faster for little."""
    monkeypatch.setattr(export, "in_other_process", lambda make, **_: make())


@pytest.mark.nightly
@pytest.mark.usefixtures("in_thread")
def test_many_tables_are_reported_on_outside_the_script(made, monkeypatch):
    monkeypatch.setattr(export, "MANY", 5)
    domain = rp.Domain.from_sizes({"age": 10, "sex": 2, "region": 5})
    session, plan = opened(Scenario(domain))
    assert "report.html" not in made
    assert plan.sha256 in file_made(session, "report.html", made)
    with zipfile.ZipFile(BytesIO(file_made(session, "plan-bundle.zip", made))) as archive:
        assert archive.read("plan.json").decode() == plan.text


@pytest.mark.usefixtures("in_thread")
def test_what_cannot_be_made_says_why_and_can_be_tried_again(made, small, monkeypatch):
    def fail(*_):
        raise ExportError("The disk of fonts is gone; put it back.")

    monkeypatch.setattr(report, "find_browser", lambda: Path("chromium"))
    monkeypatch.setattr(report, "pdf", fail)
    session, _ = opened(small)
    with pytest.raises(AssertionError, match="never made"):
        file_made(session, "report.pdf", made)
    assert "The disk of fonts is gone" in session.error[0].value
    monkeypatch.setattr(report, "pdf", lambda *_: b"%PDF-")
    next(button for button in session.button if button.label == "Try again").click().run()
    session.run()
    assert made["report.pdf"] == b"%PDF-"


def test_without_a_browser_the_pdf_is_off_and_says_what_to_do(monkeypatch, small):
    monkeypatch.setattr(report, "find_browser", lambda: None)
    session, _ = opened(small)
    (button,) = (button for button in session.button if "pdf" in button.label)
    assert button.proto.disabled
    assert any(f"{report.NO_BROWSER}." in caption.value for caption in session.caption)


def test_nothing_is_made_before_it_is_asked_for(monkeypatch, many):
    def refuse(*_):
        raise AssertionError("made without being asked for")

    for name in ("bundle", "report_as", "commands_of"):
        monkeypatch.setattr(bundle, name, refuse)
    monkeypatch.setattr(export, "python_script", refuse)
    opened(many)


@pytest.mark.nightly
def test_values_from_records_are_named_and_warned_of(small):
    attribute = rp.Attribute("a*b", rp.Categories(("x", "y")), "values found in the records")
    opened_small, _ = opened(small)
    assert not opened_small.warning
    assert "Nothing of it was made from records." in opened_small.markdown[0].value
    scenario = small.replaced(domain=rp.Domain((*small.domain.attributes, attribute)))
    session, _ = opened(scenario)
    text = session.markdown[0].value
    assert "made from records\\, except the values of a\\*b\\, which were taken" in text
    (warning,) = session.warning
    assert "the values of a\\*b. Nothing protects" in warning.value
