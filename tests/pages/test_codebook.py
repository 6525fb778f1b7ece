"""The Codebook page."""

import json
import threading

import pytest

import rpexplore as rp
from rpexplore.data.files.columns import read_column_values
from rpexplore.domain.attribute import Bins, Categories, Integers
from rpexplore.scenarios.examples import EXAMPLES
from rpexplore.scenarios.scenario import TableSetting
from tests.pages.conftest import plain

CSV = b"attribute,value,label\nsex,F,Female\nsex,M,Male\nregion,N,\nregion,S,\n"


def upload(session, name, content):
    session.segmented_control(key="codebook source").set_value("A file").run()
    session.file_uploader(key="codebook").upload(name, content).run()
    return session


def test_a_codebook_is_loaded_and_an_unusable_one_leaves_it(app, small):
    session = app("codebook")
    # The sample's income has intervals, which CSV cannot say.
    as_json, as_csv = session.download_button
    assert (as_json.disabled, as_csv.disabled) == (False, True)
    assert "income groups numbers" in as_csv.help
    upload(session, "codebook.csv", CSV)
    assert [button.disabled for button in session.download_button] == [False, False]
    assert session.scenario.domain.names == ("sex", "region")
    assert session.scenario.domain["sex"].labels() == ["Female", "Male"]
    assert not session.error
    assert session.metrics()["Combinations of all attributes"] == "4"
    assert session.scenario.record_noun == "records"  # no longer the people of the sample
    assert "Loaded codebook.csv (CSV codebook): 2 attributes, 4 values" in session.success[
        0
    ].value.replace("\\", "")
    assert not session.run().success
    before = session.scenario
    session.file_uploader(key="codebook").upload("c.csv", CSV + b"sex,F,\n").run()
    assert "listed twice" in session.error[0].value
    assert len(session.error) == 1
    assert session.scenario == before
    # Settings that do not fit the new codebook are named once.
    session.scenario = small.with_settings(
        [TableSetting(("age", "sex"), 2.0), TableSetting(("sex",), 3.0)]
    )
    upload(session.run(), "again.csv", CSV)
    assert "age × sex" in plain(session.texts("warning"))
    assert session.scenario.request.settings == ()
    assert not session.run().warning


def test_a_codebook_is_typed_or_comes_from_a_plan_and_an_unusable_one_leaves_it(app, small):
    scenario = small.with_settings([TableSetting(("sex",), 2.0, 9.0)]).replaced(
        loss=rp.MaxVariance(), budget=rp.Budget(rho="0.3", max_records_per_person=2)
    )
    session = app("codebook")
    session.segmented_control(key="codebook source").set_value("Typed in").run()
    session.text_area(key="typed").set_value("age 0..99\nsex: F, M").run()
    session.press("Use this codebook")
    assert session.scenario.domain.names == ("age", "sex")
    session.text_area(key="typed").set_value("age").run()
    session.press("Use this codebook")
    assert "Line 1" in session.error[0].value
    assert session.text_area(key="typed").value == "age"
    assert session.scenario.domain.names == ("age", "sex")
    upload(session, "plan.json", scenario.plan().text.encode())
    assert session.scenario == scenario.replaced(record_noun="records")
    assert "3 attributes, 7 tables" in plain(session.texts("success"))
    before = session.scenario
    upload(session, "project.json", session.project.text().encode())
    assert "of the kind rpexplore-project" in plain(session.texts("error"))
    assert session.scenario == before


def test_the_counts_of_an_example_stay_with_its_codebook(app):
    session = app("codebook")
    household = session.scenario.domain
    counts = session.scenario.expected
    assert counts is not None
    upload(session, "same.json", household.text("same.json").encode())
    assert session.scenario.expected == counts
    # One's own codebook may have the same attributes: the counts are of other people all the same.
    own = rp.Domain(household.attributes[:3])
    upload(session, "own.json", own.text("own.json").encode())
    assert session.scenario.domain == own
    assert session.scenario.expected is None
    assert "expected counts" not in plain(session.texts("warning"))


def test_what_a_codebook_leaves_out_is_named(app, small):
    fields = [
        {"name": "sex", "type": "boolean", "groups": [["a"], ["b"]]},
        {"name": "weight", "type": "number"},
    ]
    session = upload(app("codebook", small), "s.json", json.dumps({"fields": fields}).encode())
    assert session.scenario.domain.names == ("sex",)
    said = plain(session.texts("success"))
    assert "Loaded s.json (Table Schema): 1 attribute, 2 values, 1 with groups." in said
    assert "no values for them: weight (type number)" in plain(session.texts("warning"))


def test_a_dropped_data_file_offers_its_columns_and_changes_nothing(app, small):
    session = upload(app("codebook", small), "survey.csv", b"id,sex,income\n1,SECRET,2\n")
    assert session.scenario == small
    assert session.multiselect(key="columns to take").options == ["id", "sex", "income"]
    assert "SECRET" not in str(session.main)
    assert "what to take" not in [radio.key for radio in session.radio]  # its records are not here
    session.multiselect(key="columns to take").set_value(["sex"]).run()
    session.press("Add these")
    assert session.scenario == small  # has one of that name, with values
    session.press("Replace the codebook")
    assert session.scenario.domain.names == ("sex",)
    assert "No values yet: sex" in plain(session.texts("warning"))


# ---- the grid


def test_grid_edits_reach_the_scenario(app, small):
    session = app("codebook", small.with_settings([TableSetting(("age", "sex"), 2.0)]))
    session.type_in_grid("codebook grid", 0, "name", "years")
    session.type_in_grid("codebook grid", 0, "maximum", 49)
    session.type_in_grid("codebook grid", 1, "kind", "categories")
    session.type_in_grid("codebook grid", 1, "values", ["F", "M", "X"])
    session.type_in_grid("codebook grid", 2, "kind", "intervals")
    domain = session.scenario.domain
    assert domain["years"].values == Integers(0, 49)
    assert domain["sex"].values == Categories(("F", "M", "X"))
    assert domain["region"].values == Bins((0, 1, 2, 3, 4, 5))
    assert session.scenario.request.settings == (TableSetting(("years", "sex"), 2.0),)
    assert not session.error
    assert session.data_editor[0].value["size"].tolist() == [50, 3, 5]


def test_an_unusable_edit_keeps_its_message_until_it_is_mended(app, small):
    session = app("codebook", small)
    session.type_in_grid("codebook grid", 0, "maximum", -1)
    assert "maximum must not be below" in session.error[0].value
    assert session.scenario == small
    assert session.run().error
    session.type_in_grid("codebook grid", 0, "maximum", 4)
    assert not session.error
    assert session.scenario.domain["age"].size == 5
    # Nor is it dropped silently when the page is left.
    session.type_in_grid("codebook grid", 1, "name", "age")
    session.open("workload").open("codebook")
    assert "given up" in session.warning[0].value
    assert "twice" in session.warning[0].value
    assert not session.error
    assert not session.run().warning


def test_without_attributes_the_page_says_what_to_do(app, small):
    session = app("codebook", small)
    session.segmented_control(key="codebook source").set_value("Empty").run()
    session.press("Start with an empty codebook")
    assert len(session.scenario.domain) == 0
    assert "No attributes yet" in session.info[0].value
    assert not session.data_editor
    assert not session.metric
    session.press("Add an attribute")
    assert session.scenario.domain.names == ("attribute_1",)
    assert "No values yet: attribute_1" in plain(session.texts("warning"))
    session.type_in_grid("codebook grid", 0, "maximum", 9)
    assert session.warning
    session.type_in_grid("codebook grid", 0, "minimum", 0)
    assert session.scenario.domain["attribute_1"].values == Integers(0, 9)
    assert not session.warning
    assert session.scenario.workload.orders.max() == 1
    assert session.scenario.request.order == small.request.order


def test_typed_cells_do_not_reach_other_rows_or_another_codebook(app, small):
    session = app("codebook", small).press("Add an attribute")
    assert session.scenario.domain.names == ("age", "sex", "region", "attribute_4")
    session.type_in_grid("codebook grid", 1, "remove", True)
    assert session.scenario.domain.names == ("age", "region", "attribute_4")
    # What was typed belongs to rows that have moved since: it must not be applied again.
    assert session.run().scenario.domain.names == ("age", "region", "attribute_4")
    session.type_in_grid("codebook grid", 0, "name", "years")
    session.segmented_control(key="codebook source").set_value("An example").run()
    session.press("Use the codebook")
    assert session.run().scenario.domain.names[0] == "age"


def test_every_example_has_a_codebook_with_its_expected_counts(app, small):
    session = app("codebook", small)
    session.segmented_control(key="codebook source").set_value("An example").run()
    assert session.radio(key="codebook of example").options == [one.title for one in EXAMPLES]
    session.radio(key="codebook of example").set_value("Health register").run()
    session.press("Use the codebook")
    (register,) = [one for one in EXAMPLES if one.title == "Health register"]
    scenario = session.scenario
    assert (scenario.domain, scenario.expected) == (register.domain, register.expected)
    assert scenario.record_noun == "stays"
    assert scenario.name == small.name
    assert "Loaded the health register: 8 attributes" in plain(session.texts("success"))


# ---- labels


def test_labels_are_edited(app):
    session = app("codebook")
    session.selectbox(key="attribute shown").set_value("sex").run()
    session.type_in_grid("labels of sex", 0, "label", "Women")
    assert session.scenario.domain["sex"].labels()[0] == "Women"
    other = session.scenario.domain["sex"].labels()[1]
    session.type_in_grid("labels of sex", 0, "label", other)
    assert "stands for two categories" in session.error[0].value
    assert session.scenario.domain["sex"].labels()[0] == "Women"
    # What was typed belongs to values that are no longer in these rows.
    session.type_in_grid("labels of sex", 0, "label", "Ladies")
    values = list(session.scenario.domain["sex"].values.values)
    row = session.scenario.domain.names.index("sex")
    session.type_in_grid("codebook grid", row, "values", ["X", *values])
    assert session.scenario.domain["sex"].labels() == ["X", "Ladies", other]


# ---- the rest


def test_what_is_counted(app, small):
    session = app("codebook", small)
    session.text_input(key="record_noun").set_value("visits").run()
    session.open("plan")
    assert session.metrics()["A cell of the median table, 95 %"].endswith(" visits")
    session.open("codebook").text_input(key="record_noun").set_value(" ").run()
    assert session.scenario.record_noun == "records"


# ---- the columns of a data file


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
    assert session.metrics()["Values in all"] == "0"
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
    drawn = " ".join(str(element) for element in session.main)
    assert "151" not in drawn
    assert "150" not in drawn.replace(str(data), "")
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

    monkeypatch.setattr("pages.components.codebook.file_columns.read_column_values", waiting)
    monkeypatch.setattr("pages.components.codebook.file_columns.PATIENCE", 0.2)
    return go_on


def begin_reading(session, path, columns, button="Replace the codebook"):
    choose_columns(session, path, columns)
    session.radio(key="what to take").set_value("Names, and the values found in the records").run()
    session.checkbox(key=f"understood for {path}").set_value(True).run()
    return session.press(button)


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


def test_a_reading_cancelled_after_its_last_note_changes_nothing(app, small, data, monkeypatch):
    go_on = threading.Event()

    def late(path, names, on_progress):
        on_progress("", 1.0)
        assert go_on.wait(20)
        return read_column_values(path, names)

    monkeypatch.setattr("pages.components.codebook.file_columns.read_column_values", late)
    monkeypatch.setattr("pages.components.codebook.file_columns.PATIENCE", 0.2)
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


# ---- bins


def choose_bins(session, name, how):
    session.selectbox(key="attribute shown").set_value(name).run()
    session.segmented_control(key=f"how to bin {name}").set_value(how).run()
    return session


def field(widgets, label):
    return next(widget for widget in widgets if widget.label.startswith(label))


def test_bins_that_cannot_be_keep_what_was_typed(app, small):
    session = choose_bins(app("codebook", small), "age", "Equal widths")
    field(session.text_input, "Width of a bin").set_value("0").run()
    assert "width must be above 0" in session.error[0].value
    assert len(session.error) == 1
    assert not any(button.label == "Use these bins" for button in session.button)
    assert field(session.run().text_input, "Width of a bin").value == "0"
    choose_bins(session, "age", "Own edges")
    field(session.text_area, "Edges").set_value("0, 5, x").run()
    assert "got 'x'" in session.error[0].value.replace("\\", "")
    assert field(session.text_area, "Edges").value == "0, 5, x"
    assert session.scenario == small
    # A single bin has no neighbour.
    domain = rp.Domain((rp.Attribute("one", Integers(3, 3)),))
    session.scenario = small.replaced(domain=domain)
    choose_bins(session.run(), "one", "Merge")
    assert "two different bins" in session.error[0].value
    choose_bins(session, "one", "Split")
    assert not session.exception


def test_equal_widths_own_edges_merging_and_splitting(app, small):
    session = choose_bins(app("codebook", small), "age", "Equal widths")
    assert "As it is" in plain(session.texts("caption"))
    field(session.text_input, "Width of a bin").set_value("5").run()
    assert "2 bins: 0 to 4, 5 to 9." in plain(session.texts("markdown"))
    assert session.scenario == small  # only shown yet
    session.press("Use these bins")
    assert session.scenario.domain["age"].values == Integers(0, 9, 5)
    assert session.data_editor[0].value["step"].tolist()[0] == 5
    choose_bins(session, "age", "Own edges")
    field(session.text_area, "Edges").set_value("0, 5, 10, 100").run()
    session.press("Use these bins")
    assert session.scenario.domain["age"].values == Bins((0, 5, 10, 100))
    choose_bins(session, "age", "Merge").press("Use these bins")
    assert session.scenario.domain["age"].values == Bins((0, 10, 100))
    choose_bins(session, "age", "Split")
    field(session.number_input, "Bin").set_value(2).run()
    assert field(session.text_input, "The upper part").value == "55"
    session.press("Use these bins")
    assert session.scenario.domain["age"].values == Bins((0, 10, 55, 100))
    assert not session.exception


def test_bins_and_categories_complete_attributes_that_wait_for_values(app, small):
    session = app("codebook", small).press("Add an attribute")
    session.selectbox(key="attribute shown").set_value("attribute_4").run()
    session.segmented_control(key="first values of attribute_4").set_value("numbers").run()
    for label, value in (("From", 0.0), ("To", 1.0), ("Width of a bin", 0.25)):
        field(session.text_input, label).set_value(str(value)).run()
    assert "must be whole" in session.error[0].value
    field(session.segmented_control, "Its values are").set_value("numbers with decimals").run()
    session.press("Use these bins")
    assert session.scenario.domain["attribute_4"].values == Bins((0, 0.25, 0.5, 0.75, 1))
    session.press("Add an attribute")
    session.selectbox(key="attribute shown").set_value("attribute_5").run()
    session.press("Use these categories")
    assert "must have 1 to" in session.error[0].value
    session.text_area(key="categories of attribute_5").set_value("F\nF").run()
    session.press("Use these categories")
    assert "listed twice" in session.error[0].value
    assert session.text_area(key="categories of attribute_5").value == "F\nF"
    session.text_area(key="categories of attribute_5").set_value("F\nM").run()
    session.press("Use these categories")
    assert session.scenario.domain["attribute_5"].values == Categories(("F", "M"))
    assert not session.error


def test_typed_limits_do_not_come_on_top_of_new_bins(app, small):
    session = app("codebook", small)
    session.type_in_grid("codebook grid", 0, "maximum", 19)
    choose_bins(session, "age", "Own edges")
    field(session.text_area, "Edges").set_value("0, 50").run()
    session.press("Use these bins")
    assert session.run().scenario.domain["age"].values == Bins((0, 50))
    # Nor do typed bins reach another codebook.
    choose_bins(session, "age", "Equal widths")
    field(session.text_input, "Width of a bin").set_value("7").run()
    session.segmented_control(key="codebook source").set_value("Typed in").run()
    session.text_area(key="typed").set_value("age 0..9").run()
    session.press("Use this codebook")
    assert field(session.text_input, "Width of a bin").value == "1"
    assert field(session.text_input, "To").value == "9"
