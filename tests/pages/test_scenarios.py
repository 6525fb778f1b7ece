"""The Scenarios page: kept, arranged, compared."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
import streamlit as st

import rpexplore as rp
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.scenarios.project import Project
from rpexplore.scenarios.table_settings import TableSetting
from tests.pages.conftest import VIEWS, plain


@pytest.fixture
def three(app, small):
    """A session with three scenarios, the second one open."""
    session = app("scenarios", small.replaced(name="as agreed"))
    session.test.session_state["project"] = Project(
        (
            small.replaced(name="as agreed"),
            small.replaced(name="fair", loss=rp.MaxVariance(), note="for the **board**"),
            small.replaced(name="generous", budget=rp.Budget(rho=2)),
        ),
        1,
    )
    return session.run()


def press(session, change, index):
    key = session.project.keys[index]
    session.button(key=f"{change} scenario {key}").click().run()
    assert not session.exception
    return session


def test_a_single_scenario_is_offered_to_be_duplicated(app, small):
    session = app("scenarios", small)
    assert any("duplicate it" in text for text in session.texts("info"))
    # A name that is typed just before the click is not lost.
    session.text_input(key="scenario name").set_value("as agreed")
    press(session, "duplicate", 0)
    assert session.project.names == ("as agreed", "as agreed (2)")
    assert session.scenario.name == "as agreed (2)"
    assert session.selectbox(key="open scenario").value == "as agreed (2)"


def test_scenarios_are_arranged(three):
    press(three, "up", 2)
    assert three.project.names == ("as agreed", "generous", "fair")
    assert three.scenario.name == "fair"
    press(three, "open", 0)
    assert three.scenario.name == "as agreed"
    deleted = f"delete scenario {three.project.keys[1]}"
    press(three, "delete", 1)
    assert three.project.names == ("as agreed", "fair")
    # Buttons belong to a scenario, not to its position: a second click would reach no other one.
    assert deleted not in {button.key for button in three.button}
    three.press("Undo")
    assert three.project.names == ("as agreed", "generous", "fair")


def test_the_open_scenario_is_renamed_and_annotated(three):
    three.text_input(key="scenario name").set_value("even").run()
    three.text_area(key="scenario note").set_value("agreed on Monday").run()
    assert (three.scenario.name, three.scenario.note) == ("even", "agreed on Monday")
    three.text_input(key="scenario name").set_value("as agreed").run()
    assert any("already" in text for text in three.texts("error"))
    assert three.scenario.name == "even"
    three.text_input(key="scenario name").set_value("   ").run()
    assert three.scenario.name == "even"


def test_scenarios_are_compared_table_by_table_or_left_out(three):
    three.show("compared_by", "Table by table")
    three.selectbox(key="compared from").set_value("as agreed").run()
    three.selectbox(key="compared to").set_value("generous").run()
    frame = three.dataframe[-1].value
    assert len(frame) == 7
    assert frame["change"].to_numpy() == pytest.approx([100 * (0.05**0.5 - 1)] * 7)
    three.show("compared_by", "Inputs and outcomes")
    three.multiselect(key="compared").set_value(["as agreed", "generous"]).run()
    assert three.dataframe[0].value.shape[1] == 2 + 2
    press(three, "duplicate", 0)
    assert three.multiselect(key="compared").value == ["as agreed", "as agreed (2)", "generous"]


@pytest.mark.nightly
def test_scenarios_are_judged_over_the_tables_they_share(three, small):
    known = small.replaced(name="as agreed", expected=ExpectedCounts.of_total(200))
    aimed = known.with_settings([TableSetting(("age",), target=4.0)]).replaced(name="aimed")
    larger = aimed.with_request(order=3).replaced(name="larger", budget=rp.Budget(rho=2))
    three.test.session_state["project"] = Project((known, aimed, larger), 0)
    three.run()
    said = plain(three.texts("markdown"))
    assert "Most people are in good cells under “larger”" in said
    assert "“larger” is the most accurate at every number of attributes" in said
    assert "“aimed” misses 1 of 1; “larger” meets the one." in said
    (rows,) = [html.proto.body for html in three.get("html") if "rows bars" in html.proto.body]
    assert rows.count("<tr>") == 1 + 3
    assert "Over the 7 tables that all of them have; 1 only in “larger”." in plain(
        three.texts("caption")
    )
    for view in VIEWS["compared_by"]:
        assert not three.show("compared_by", view).error
    three.show("compared_by", "Tables of one alone")
    assert three.dataframe[-1].value["table"].tolist() == ["age × sex × region"]
    three.show("compared_by", "Table by table")
    three.segmented_control(key="accuracy").set_value("Variance").run()
    three.selectbox(key="compared to").set_value("larger").run()
    frame = three.dataframe[-1].value
    assert {"left_people", "right_people", "right_target"} <= set(frame.columns)


def test_what_differs_is_marked(three):
    three.show("compared_by", "Inputs and outcomes")
    inputs = three.dataframe[0].value.set_index("row")
    assert inputs.loc["Objective", "differs"] == "≠"
    assert inputs.loc["Attributes", "differs"] == ""
    three.toggle(key="only differing").set_value(True).run()
    inputs = three.dataframe[0].value
    assert set(inputs["row"]) == {"Objective", "Privacy budget"}


@pytest.mark.nightly
def test_a_project_is_saved_opened_and_begun_anew(three):
    text = three.project.text()
    assert json.loads(text)["format"] == "rpexplore-project"
    three.file_uploader(key="project file").upload("mine.json", text.encode()).run()
    assert any("Opened mine" in message for message in three.texts("success"))
    assert three.project == Project.parse(text)
    three.file_uploader(key="project file").upload("bad.json", b"{}").run()
    assert any("not a usable" in message for message in three.texts("error"))
    assert three.project == Project.parse(text)
    three.press("Start a new project")
    assert three.scenario.domain.names[0] == "age"
    assert len(three.project.scenarios) == 1
    three.press("Undo")
    assert three.project == Project.parse(text)


def test_the_project_file_is_made_without_the_session(app, small, monkeypatch):
    """The file is made outside the session's thread."""
    made = []
    draw = st.download_button

    def noted(label, data, *more, **options):
        made.append((label, data))
        return draw(label, data, *more, **options)

    monkeypatch.setattr(st, "download_button", noted)
    session = app("scenarios", small)
    with ThreadPoolExecutor() as elsewhere:
        texts = {label: elsewhere.submit(data).result() for label, data in made if callable(data)}
    assert texts["Save project.json"] == session.project.text().encode()


def test_a_scenario_whose_name_was_changed_meanwhile_is_not_opened(app, small):
    session, other = app("plan", small), small.replaced(name="other")
    session.test.session_state["project"] = Project((small, other))
    session.run()
    renamed = Project((small, other.replaced(name="another")))
    session.test.session_state["project"] = renamed
    session.selectbox(key="open scenario").set_value("other").run()
    assert not session.exception
    assert session.project == renamed
