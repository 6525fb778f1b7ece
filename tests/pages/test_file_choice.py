"""Files and folders are chosen from a list; whatever is not in it can be named by its path."""

import json
import shutil
from functools import partial

import pytest

from rpexplore.common import installation
from rpexplore.common.installation import sample_data_folder
from rpexplore.data.files.offered import offered
from tests.pages.conftest import plain


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """A folder that the app was started for, with the codebook and the records of an example."""
    folder = tmp_path / "shelf"
    (folder / "inner").mkdir(parents=True)
    for name in ("household.json", "household-codebook.csv", "household-expected.csv"):
        shutil.copy(sample_data_folder() / name, folder)
    shutil.copy(sample_data_folder() / "household.csv", folder / "inner/people.csv")
    monkeypatch.setenv(installation._FOLDERS_VARIABLE, json.dumps([str(folder)]))
    return folder


def test_records_are_chosen_from_a_list_or_named(app, shelf, tmp_path):
    session = app("release")
    session.radio(key="source").set_value("A file or folder on this computer").run()
    assert "Choose the file or folder" in plain(session.texts("info"))
    box = session.selectbox(key="data path listed")
    assert box.options == [
        "shelf/household-codebook.csv",
        "shelf/household-expected.csv",
        "shelf/inner/people.csv",
    ]
    people = shelf.resolve() / "inner/people.csv"
    box.set_value(people).run()
    assert session.text_input(key="data path").value == str(people)
    assert session.text_input(key="output").value.startswith("releases/people-")
    # Another page and back: it is still chosen.
    session.open("plan").open("release")
    assert session.selectbox(key="data path listed").value == people
    # What is not in the list is shown there as it was typed.
    other = shutil.copy(people, tmp_path / "other.csv")
    session.text_input(key="data path").set_value(f'"{other}"').run()
    assert session.selectbox(key="data path listed").options[0] == str(other)
    assert session.text_input(key="output").value.startswith("releases/other-")
    assert not session.exception


def test_a_codebook_in_the_list_says_what_it_is_before_it_is_used(app, small, shelf, monkeypatch):
    session = app("codebook", small)
    session.segmented_control(key="codebook source").set_value("A file").run()
    box = session.selectbox(key="header path listed")
    assert "shelf/household.json" in box.options
    box.set_value(shelf.resolve() / "household.json").run()
    assert "Table Schema: 11 attributes" in plain(session.texts("markdown"))
    assert session.scenario == small
    session.press("Use this codebook")
    assert len(session.scenario.domain) == 11
    few = partial(offered, most=2)
    monkeypatch.setattr("pages.components.shared.files.offered", few)
    session.run()
    assert "Only the first 2 are listed" in plain(session.texts("caption"))
