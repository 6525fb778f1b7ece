"""Attributes from the columns of a data file on the Data page."""

import threading

import pandas as pd
import pyreadstat
import pytest

import rpexplore as rp
from rpexplore.data.files.columns import read_column_values
from rpexplore.domain.categories import Categories
from tests.pages.conftest import plain


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.csv"
    ids = "\n".join(f"id{i},F,{i % 3},x" for i in range(150))
    path.write_text(f"id,sex,size,word\n{ids}\nid150,M,2,y\n")
    return path


def choose_columns(session, path, columns):
    session.segmented_control(key="codebook source").set_value("A file").run()
    session.text_input(key="header path").set_value(str(path)).run()
    if columns:
        session.multiselect(key="columns to take").set_value(columns).run()
    return session


def disabled(session, label):
    return next(button.disabled for button in session.button if button.label.startswith(label))


def test_columns_come_in_by_name_only(app, small, data, monkeypatch):
    monkeypatch.setattr("rpexplore.data.files.source.FileSource.batches", None)  # no record
    session = choose_columns(app("codebook", small), data, [])
    assert session.multiselect(key="columns to take").options == ["id", "sex", "size", "word"]
    assert disabled(session, "Replace the codebook")
    session.multiselect(key="columns to take").set_value(["size", "sex"]).run()
    session.press("Replace the codebook")
    assert session.scenario.domain.names == ("sex", "size")
    assert "Took 2 columns of data.csv" in plain(session.texts("success"))
    assert "No values yet: sex, size" in plain(session.texts("warning"))
    assert session.metrics()["Categories"] == "0"
    assert session.data_editor[0].value["kind"].tolist() == ["to be completed"] * 2
    session.scenario = small
    session.run().press("Add these")
    assert session.scenario.domain.names == ("age", "sex", "region", "size")
    assert session.scenario.domain["sex"] == small.domain["sex"]
    assert session.scenario.record_noun == "people"
    assert not session.exception


def test_values_are_inferred_only_after_the_warning_is_confirmed(app, small, data):
    session = choose_columns(app("codebook", small), data, ["id", "sex", "size", "word"])
    session.radio(key="what to take").set_value("Names, and the values found in the records").run()
    assert "not protected" in session.warning[0].value
    assert disabled(session, "Replace the codebook")
    session.checkbox(key=f"understood for {data}").set_value(True).run()
    assert not disabled(session, "Replace the codebook")
    session.press("Replace the codebook")
    domain = session.scenario.domain
    assert domain["sex"].values == Categories(("F", "M"))
    assert domain["size"].values == Categories(("0", "1", "2"))
    assert domain["sex"].label == "values found in the records"
    text = plain(session.texts("warning"))
    assert "From the records: the values of sex, size and word. Nothing protects" in text
    assert "Not listed: id (more than 100 different values)" in text
    assert "No values yet: id" in text
    # Nothing tells how many records there are, or how often a value occurs.
    drawn = plain([str(element) for element in session.main]).replace(str(data), "")
    assert "151" not in drawn
    assert "150" not in drawn
    assert not session.exception


@pytest.fixture
def slow(monkeypatch) -> threading.Event:
    """Makes readings of records wait until this is set; then they note their last batch."""
    go_on = threading.Event()

    def waiting(path, names, on_progress):
        on_progress("", 0.25)
        assert go_on.wait(20)
        on_progress("", 1.0)
        return read_column_values(path, names)

    monkeypatch.setattr("pages.components.codebook.files.read_column_values", waiting)
    monkeypatch.setattr("pages.components.codebook.files.PATIENCE", 0.2)
    return go_on


def begin_reading(session, path, columns, button="Replace the codebook"):
    choose_columns(session, path, columns)
    session.radio(key="what to take").set_value("Names, and the values found in the records").run()
    session.checkbox(key=f"understood for {path}").set_value(True).run()
    return session.press(button)


@pytest.mark.nightly
def test_a_long_reading_goes_on_beside_other_pages(app, small, data, slow):
    session = begin_reading(app("codebook", small), data, ["sex"])
    assert session.scenario == small
    assert any(button.label == "Cancel" for button in session.button)
    task = session.session_state["columns task"][0]
    session.open("plan")
    slow.set()
    task.wait(20)
    session.open("codebook")
    assert session.scenario.domain["sex"].values == Categories(("F", "M"))
    assert not session.exception


@pytest.mark.nightly
def test_a_reading_cancelled_after_its_last_note_changes_nothing(app, small, data, monkeypatch):
    go_on = threading.Event()

    def late(path, names, on_progress):
        on_progress("", 1.0)
        assert go_on.wait(20)
        return read_column_values(path, names)

    monkeypatch.setattr("pages.components.codebook.files.read_column_values", late)
    monkeypatch.setattr("pages.components.codebook.files.PATIENCE", 0.2)
    session = begin_reading(app("codebook", small), data, ["sex"])
    task = session.session_state["columns task"][0]
    session.press("Cancel")
    go_on.set()
    task.wait(20)
    assert task.result is not None  # it came to its end all the same
    session.open("plan").open("codebook")
    assert "Cancelled. Nothing was changed." in plain(session.texts("error"))
    assert session.scenario == small
    assert "columns task" not in session.session_state


@pytest.mark.nightly
def test_values_come_to_the_codebook_they_were_looked_for_in(app, small, data, slow):
    session = begin_reading(app("codebook", small), data, ["sex", "word"], "Add these")
    task = session.session_state["columns task"][0]
    other = small.replaced(name="Another", record_noun="visits")
    session.scenario = other
    slow.set()
    task.wait(20)
    session.run()
    assert session.scenario == other
    text = plain(session.texts("warning"))
    assert "looked for in scenario Scenario 1" in text
    assert "nothing was changed" in text
    # Nor do they come to the same scenario with another codebook.
    slow.clear()
    session = begin_reading(app("codebook", small), data, ["sex", "word"], "Add these")
    session.scenario = small.replaced(domain=rp.Domain(small.domain.attributes[:2]))
    slow.set()
    session.session_state["columns task"][0].wait(20)
    session.run()
    assert session.scenario.domain.names == ("age", "sex")


@pytest.mark.nightly
def test_files_without_names_or_that_break_off_change_nothing(app, small, tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("1,2,3\n4,5,6\n")
    session = choose_columns(app("codebook", small), path, [])
    assert "may be a record" in session.error[0].value
    assert not session.multiselect
    path.write_text("a,b\n1,2\n3\n")
    choose_columns(session, path, ["a"])
    session.radio(key="what to take").set_value("Names, and the values found in the records").run()
    session.checkbox(key=f"understood for {path}").set_value(True).run()
    session.press("Replace the codebook")
    assert "Nothing was changed" in session.error[0].value
    assert session.scenario == small


def test_a_hierarchy_gives_the_attribute_that_fits_its_groups(app, small):
    session = app("codebook", small)
    session.segmented_control(key="codebook source").set_value("A file").run()
    *ends, last = small.domain["region"].stored_values()
    text = "".join(["Ends\n", *(f"@{value}\n" for value in ends), f"{last}\n"])
    session.file_uploader(key="codebook").upload("regions.hrc", text.encode()).run()
    assert session.selectbox(key="attribute of groups").value == "region"
    session.press("Use these groups")
    assert session.scenario.domain["region"].groups == (*[("Ends",)] * len(ends), ())
    assert "region has the groups of regions.hrc" in plain(session.texts("success"))
    assert not session.exception


@pytest.mark.nightly
def test_labels_in_a_file_of_spss_come_in_without_typing(app, small, tmp_path):
    path = tmp_path / "survey.sav"
    records = pd.DataFrame({"sex": [1.0, 2.0, 9.0], "age": [30.0, 40.0, 50.0]})
    labels = {"sex": {1.0: "Male", 2.0: "Female", 9.0: "Refused"}}
    pyreadstat.write_sav(records, path, variable_value_labels=labels, missing_ranges={"sex": [9.0]})
    session = app("codebook", small)
    session.segmented_control(key="codebook source").set_value("A file").run()
    session.text_input(key="header path").set_value(str(path)).run()
    session.press("Use this codebook")
    (sex,) = session.scenario.domain
    assert sex.labels() == ["Male", "Female", "Refused"]
    assert sex.groups == ((), (), ("Missing",))
    assert "Left out, because the file lists no values for them: age" in plain(
        session.texts("warning")
    )
    # The others of its columns are added by their names.
    session.multiselect(key="columns to take").set_value(["age"]).run()
    session.press("Add these")
    assert session.scenario.domain.names == ("sex", "age")
    assert not session.exception


def test_a_codebook_with_other_names_is_mapped(app, small, tmp_path):
    path = tmp_path / "codes.csv"
    path.write_text("Merkmal;Schlüssel;Titel\nsex;1;men\nsex;2;women\nage;1;young\nage;2;old\n")
    session = choose_columns(app("codebook", small), path, [])
    assert not session.table
    session.toggle(key="is codebook codes.csv").set_value(True).run()
    chosen = {box.label: box.value for box in session.selectbox if box.label in ("Value", "Label")}
    assert chosen == {"Value": "Schlüssel", "Label": "Titel"}
    assert session.table[0].value.shape == (3, 3)
    session.press("Use this codebook")
    assert session.scenario.domain["sex"].values == Categories(("1", "2"), ("men", "women"))
    assert not session.exception


def test_a_codebook_with_a_row_for_each_attribute_is_mapped(app, small, tmp_path):
    path = tmp_path / "codes.csv"
    path.write_text("Merkmal;Werte\nsex;1=men|2=women\nage;0..99\n")
    session = choose_columns(app("codebook", small), path, [])
    session.toggle(key="is codebook codes.csv").set_value(True).run()
    chosen = {box.label: box.value for box in session.selectbox if box.label in ("Name", "Values")}
    assert chosen == {"Name": "Merkmal", "Values": "Werte"}
    session.press("Use this codebook")
    assert session.scenario.domain["sex"].values == Categories(("1", "2"), ("men", "women"))
    assert session.scenario.domain["age"].size == 100
    assert not session.exception
