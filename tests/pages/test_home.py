"""The Home page: its doors, what was opened before, and the gallery."""

import pytest

from pages.components.home.doors import PICTURES
from pages.components.shared.session import escaped
from rpexplore.scenarios.autosave import Autosaves
from rpexplore.scenarios.examples import EXAMPLES
from rpexplore.scenarios.project import Project
from tests.pages.conftest import plain


def recent(session) -> list[str]:
    """The projects to go on with, without the time at which they were saved."""
    return [
        button.label.replace("\\", "").rpartition(" · ")[0]
        for button in session.button
        if str(button.key).startswith("recent ")
    ]


def test_there_is_a_picture_of_every_example():
    assert set(PICTURES) == {example.key for example in EXAMPLES}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.key)
def test_an_example_opens_finished_on_the_plan_page(app, example):
    session = app("home")
    assert escaped(example.question) in session.texts("markdown")
    session.button(key=f"example {example.key}").click().run()
    assert session.title[0].value == "Plan"
    assert session.project == example.project()
    assert session.metrics()
    assert not session.error


def test_an_example_leaves_the_project_before_as_it_was(app):
    session = app("plan")
    session.text_input(key="typed budget").set_value("0.25").run()
    mine, key = session.project, session.query_params["project"]
    session.open("home")
    assert recent(session) == ["Household survey · 1 scenario"]
    session.press("Open the household survey")
    assert "The project before is kept" in session.success[0].value
    assert session.query_params["project"] != key
    assert session.button(key="Undo step").disabled  # it would lead to another project
    assert Autosaves.of_user().text(key) == mine.text()
    session.open("home")
    assert len(recent(session)) == 2
    session.button(key=f"recent {key}").click().run()
    assert session.title[0].value == "Plan"
    assert session.project == mine


def test_an_example_that_was_not_changed_is_opened_again(app):
    session = app("home")
    for _ in range(2):
        session.open("home").press("Open the household survey")
    assert len(recent(session.open("home"))) == 1
    session.open("plan").text_input(key="typed budget").set_value("0.25").run()
    session.open("home").press("Open the household survey")
    assert session.project == EXAMPLES[0].project()
    assert recent(session.open("home")) == ["Household survey · 2 scenarios"] * 2


def test_projects_of_other_browsers_are_not_listed(app):
    app("home").press("Open the household survey")
    assert not recent(app("home"))


def test_own_data_begin_with_an_empty_codebook(app):
    session = app("home").press("Start with a codebook")
    assert session.title[0].value == "Codebook"
    assert len(session.scenario.domain) == 0
    assert len(session.get("file_uploader")) == 1


def test_a_project_file_is_opened(app, small):
    session = app("home")
    box = session.get("file_uploader")[0]
    box.upload("project.json", Project((small,)).text().encode(), "application/json").run()
    assert session.title[0].value == "Plan"
    assert session.scenario == small


def test_what_is_no_project_file_is_refused(app):
    session = app("home")
    before = session.project
    session.get("file_uploader")[0].upload("project.json", b"{}", "application/json").run()
    assert "Nothing was opened." in plain(session.texts("error"))
    assert session.project == before
