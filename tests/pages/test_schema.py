"""The Schema page."""

import pytest

import rpexplore as rp
from rpexplore.attribute import Bins, Categories, Integers
from rpexplore.scenario import TableSetting

CSV = b"attribute,value,label\nsex,F,Female\nsex,M,Male\nregion,N,\nregion,S,\n"


def upload(session, name, content):
    session.segmented_control(key="schema source").set_value("Codebook file").run()
    session.file_uploader(key="codebook").upload(name, content).run()
    return session


def test_totals(app):
    metrics = app("schema").metrics()
    assert metrics["Attributes"] == "11"
    assert metrics["Combinations of all attributes"] == "about 8.8 billion"


def test_a_codebook_is_loaded(app):
    session = upload(app("schema"), "codebook.csv", CSV)
    assert session.scenario.domain.names == ("sex", "region")
    assert session.scenario.domain["sex"].labels() == ["Female", "Male"]
    assert not session.error
    assert session.metrics()["Combinations of all attributes"] == "4"
    assert session.scenario.counted == "records"  # no longer the people of the sample
    assert "Loaded codebook.csv: 2 attributes, 4 values" in session.success[0].value.replace(
        "\\", ""
    )
    assert not session.run().success


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("c.csv", b"a,b\n1,2\n", "must have a header"),
        ("c.csv", CSV + b"sex,F,\n", "listed twice"),
        ("c.json", b"{", "not valid JSON"),
        ("c.json", b'{"fields": [{"name": "x"}]}', "x"),
        ("c.csv", "attribute,value\né,1\n".encode("latin-1"), "not UTF"),
    ],
)
def test_an_unusable_codebook_leaves_the_old_schema(app, name, content, told):
    session = upload(app("schema"), name, content)
    assert told in session.error[0].value
    assert len(session.error) == 1
    assert len(session.scenario.domain) == 11
    assert not session.exception


def test_sizes_are_typed(app):
    session = app("schema")
    session.segmented_control(key="schema source").set_value("Typed in").run()
    session.text_area(key="typed").set_value("age 0..99\nsex: F, M").run()
    session.press("Use this schema")
    assert session.scenario.domain.names == ("age", "sex")
    session.text_area(key="typed").set_value("age").run()
    session.press("Use this schema")
    assert "Line 1" in session.error[0].value
    assert session.text_area(key="typed").value == "age"
    assert session.scenario.domain.names == ("age", "sex")


def test_back_to_the_sample(app, small):
    session = app("schema", small)
    session.segmented_control(key="schema source").set_value("Sample survey").run()
    session.press("Use the sample survey")
    assert len(session.scenario.domain) == 11


def test_what_no_longer_fits_is_told(app, small):
    scenario = small.with_settings([TableSetting(("age", "sex"), 2.0), TableSetting(("sex",), 3.0)])
    session = upload(app("schema", scenario), "codebook.csv", CSV)
    assert "age × sex" in session.warning[0].value.replace("\\", "")
    assert session.scenario.request.settings == ()
    assert not session.run().warning


def test_settings_of_unchanged_attributes_are_kept_and_named(app, small):
    scenario = small.with_settings(
        [TableSetting(("age",), 2.0), TableSetting(("sex",), target=3.0)]
    )
    session = app("schema", scenario)
    session.segmented_control(key="schema source").set_value("Typed in").run()
    session.text_area(key="typed").set_value("age 0..99\nsex 2").run()
    session.press("Use this schema")
    assert session.scenario.request.settings == (TableSetting(("sex",), target=3.0),)
    assert "Kept: importance or target of sex" in session.success[0].value.replace("\\", "")
    assert "table age." in session.warning[0].value.replace("\\", "")


def test_a_plan_is_opened(app, small):
    scenario = small.with_settings([TableSetting(("sex",), 2.0, 9.0)]).replaced(
        loss=rp.MaxVariance(), budget=rp.Budget(rho="0.3", max_records_per_person=2)
    )
    session = app("schema")
    session.segmented_control(key="schema source").set_value("Plan file").run()
    uploader = session.file_uploader(key="plan file")
    uploader.upload("plan.json", scenario.plan().text.encode()).run()
    assert session.scenario == scenario.replaced(counted="records")
    assert "3 attributes, 7 tables" in session.success[0].value.replace("\\", "")
    before = session.scenario
    session.file_uploader(key="plan file").upload("other.json", b"{}").run()
    assert session.error
    assert session.scenario == before


# ---- the grid


def test_grid_edits_reach_the_scenario(app, small):
    session = app("schema", small.with_settings([TableSetting(("age", "sex"), 2.0)]))
    session.type_in_grid("schema grid", 0, "name", "years")
    session.type_in_grid("schema grid", 0, "maximum", 49)
    session.type_in_grid("schema grid", 1, "kind", "categories")
    session.type_in_grid("schema grid", 1, "values", ["F", "M", "X"])
    session.type_in_grid("schema grid", 2, "kind", "intervals")
    domain = session.scenario.domain
    assert domain["years"].values == Integers(0, 49)
    assert domain["sex"].values == Categories(("F", "M", "X"))
    assert domain["region"].values == Bins((0, 1, 2, 3, 4, 5))
    assert session.scenario.request.settings == (TableSetting(("years", "sex"), 2.0),)
    assert not session.error
    assert session.data_editor[0].value["size"].tolist() == [50, 3, 5]


def test_an_unusable_edit_keeps_its_message_until_it_is_mended(app, small):
    session = app("schema", small)
    session.type_in_grid("schema grid", 0, "maximum", -1)
    assert "maximum must not be below" in session.error[0].value
    assert session.scenario == small
    assert session.run().error
    session.type_in_grid("schema grid", 0, "maximum", 4)
    assert not session.error
    assert session.scenario.domain["age"].size == 5


def test_one_unusable_cell_does_not_hold_up_the_others(app, small):
    session = app("schema", small)
    session.type_in_grid("schema grid", 1, "name", "age")
    session.type_in_grid("schema grid", 0, "label", "Years")
    session.type_in_grid("schema grid", 0, "maximum", 4)
    assert session.scenario.domain["age"].label == "Years"
    assert session.metrics()["Combinations of all attributes"] == "50"
    assert len(session.error) == 1
    assert "is in the domain twice" in session.error[0].value
    assert "not in effect until it is mended" in session.error[0].value


def test_what_was_refused_is_not_dropped_silently(app, small):
    session = app("schema", small)
    session.type_in_grid("schema grid", 1, "name", "age")
    session.open("workload").open("schema")
    assert "given up" in session.warning[0].value
    assert "twice" in session.warning[0].value
    assert not session.error
    assert not session.run().warning


def test_attributes_are_added_and_removed(app, small):
    session = app("schema", small).press("Add an attribute")
    assert session.scenario.domain.names == ("age", "sex", "region", "attribute_4")
    session.type_in_grid("schema grid", 1, "remove", True)
    assert session.scenario.domain.names == ("age", "region", "attribute_4")
    # What was typed belongs to rows that have moved since: it must not be applied again.
    assert session.run().scenario.domain.names == ("age", "region", "attribute_4")


def test_the_last_attribute_stays(app, small):
    session = app("schema", small)
    for row in (0, 0, 0):
        session.type_in_grid("schema grid", row, "remove", True)
    assert len(session.scenario.domain) == 1
    assert "at least one attribute" in session.error[0].value


def test_typed_cells_do_not_reach_another_schema(app, small):
    session = app("schema", small)
    session.type_in_grid("schema grid", 0, "name", "years")
    session.segmented_control(key="schema source").set_value("Sample survey").run()
    session.press("Use the sample survey")
    assert session.run().scenario.domain.names[0] == "age"


# ---- labels


def test_labels_are_edited(app):
    session = app("schema")
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
    session.type_in_grid("schema grid", row, "values", ["X", *values])
    assert session.scenario.domain["sex"].labels() == ["X", "Ladies", other]


# ---- the rest


def test_codebooks_can_be_downloaded(app, small):
    assert [button.disabled for button in app("schema", small).download_button] == [False, False]
    # The sample's income has intervals, which CSV cannot say.
    as_json, as_csv = app("schema").download_button
    assert (as_json.disabled, as_csv.disabled) == (False, True)
    assert "income groups numbers" in as_csv.help


def test_what_is_counted(app, small):
    session = app("schema", small)
    session.text_input(key="counted").set_value("visits").run()
    session.open("plan")
    assert session.metrics()["A cell of a typical table"].endswith(" visits")
    session.open("schema").text_input(key="counted").set_value(" ").run()
    assert session.scenario.counted == "records"
