"""The Home page: its doors, the saved projects, and the gallery."""

import re

import pytest

from pages.components.home.doors import PICTURES
from pages.components.shared.session import escaped
from rpexplore.scenarios.autosave import Autosaves
from rpexplore.scenarios.examples import COUNTRY_KEY, EXAMPLES
from rpexplore.scenarios.project import Project
from tests.pages.conftest import plain


def listed(session) -> list[str]:
    """The names of the saved projects, as the page lists them."""
    buttons = [button for button in session.button if str(button.key).startswith("open project ")]
    return [button.label.replace("\\", "") for button in buttons]


def change_budget(session, rho: str):
    session.open("plan").text_input(key="typed budget").set_value(rho).run()
    return session


def test_there_is_a_picture_of_every_example():
    assert set(PICTURES) == {COUNTRY_KEY, *(example.key for example in EXAMPLES)}


@pytest.mark.nightly  # its 24,939 areas take seconds; by day other examples open below
def test_the_census_opens_with_its_areas_and_is_a_project_once_it_is_changed(app):
    session = app("home")
    session.button(key=f"example {COUNTRY_KEY}").click().run()
    assert session.title[0].value == "Plan"
    assert session.scenario.kinds == ("areas",)
    assert session.query_params["project"] == COUNTRY_KEY
    assert Autosaves.of_user().keys() == []
    again = change_budget(app("plan", key=COUNTRY_KEY), "0.25")
    assert Autosaves.of_user().keys() == [again.query_params["project"]]


def test_cells_become_good_enough_as_the_budget_grows(app):
    session = app("home")
    shares = []
    for epsilon in (0.1, 1.0, 10.0):
        session.select_slider(key="first look").set_value(epsilon).run()
        shares += re.findall(r"(\S+ %) of the stays", plain(session.texts("caption")))
    assert shares == ["0 %", "73 %", "99.7 %"]


@pytest.mark.by_day(1)
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.key)
def test_an_example_opens_finished_and_is_a_project_once_it_is_changed(app, example):
    session = app("home")
    assert escaped(example.question) in session.texts("markdown")
    session.button(key=f"example {example.key}").click().run()
    assert session.title[0].value == "Plan"
    assert session.project == example.project()
    assert session.metrics()
    assert not session.error
    assert session.query_params["project"] == example.key
    assert Autosaves.of_user().keys() == []
    again = app("plan", key=example.key)  # after a reload
    assert again.project == example.project()
    change_budget(again, "0.25")
    assert Autosaves.of_user().keys() == [again.query_params["project"]]


@pytest.mark.nightly
def test_an_example_leaves_the_project_before_as_it_was(app):
    session = change_budget(app("plan"), "0.25")
    mine, key = session.project, session.query_params["project"]
    session.open("home").press("Open the household survey")
    assert "The project before is kept" in session.success[0].value
    assert session.button(key="Undo step").disabled  # it would lead to another project
    assert Autosaves.of_user().text(key) == mine.text()
    session.open("home").button(key=f"open project {key}").click().run()
    assert session.title[0].value == "Plan"
    assert session.project == mine


@pytest.mark.nightly
def test_every_browser_finds_all_projects(app):
    first = change_budget(app("plan"), "0.25")
    second = app("plan").open("home")
    assert listed(second) == ["Household survey"]
    second.button(key=f"open project {first.query_params['project']}").click().run()
    assert second.project == first.project
    assert change_budget(second, "0.75").query_params["project"] == first.query_params["project"]


def test_projects_are_renamed_copied_deleted_and_brought_back(app):
    session = change_budget(app("plan"), "0.25")
    key = session.query_params["project"]
    session.open("home").button(key=f"Duplicate {key}").click().run()
    assert sorted(listed(session)) == ["Household survey", "Household survey (copy)"]
    (copy,) = {*Autosaves.of_user().keys()} - {key}

    session.text_input(key=f"name {copy} Household survey (copy)").set_value("Second try")
    session.button(key=f"FormSubmitter:rename {copy}-Rename").click().run()
    assert sorted(listed(session)) == ["Household survey", "Second try"]
    session.text_input(key=f"name {key} Household survey").set_value("First try")
    session.button(key=f"FormSubmitter:rename {key}-Rename").click().run()  # the open one
    assert session.project.current.survey == "First try"
    assert sorted(listed(session)) == ["First try", "Second try"]

    session.button(key=f"Delete {copy}").click().run()
    assert listed(session) == ["First try"]
    session.button(key="undelete").click().run()
    assert sorted(listed(session)) == ["First try", "Second try"]
    session.button(key=f"Delete {key}").click().run()
    assert listed(session) == ["Second try"]
    assert session.query_params["project"] not in (key, copy)  # nor is it saved again by itself
    assert Autosaves.of_user().keys() == [copy]


def test_many_projects_are_searched(app, small):
    saves = Autosaves.of_user()
    for number in range(12):
        project = Project((small.replaced(survey=f"Survey {number}"),))
        saves.save(f"{number:032x}", project.text(), None)
    assert app("plan", key=f"{3:032x}").scenario.survey == "Survey 3"  # not the one saved last
    session = app("plan").open("home")
    assert len(listed(session)) == 10
    assert "2 further projects" in plain(session.texts("caption"))
    session.text_input(key="search projects").set_value("survey 11").run()
    assert listed(session) == ["Survey 11"]


def test_own_data_begin_with_an_empty_codebook(app):
    session = app("home").press("Start with a codebook")
    assert session.title[0].value == "Data"
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
