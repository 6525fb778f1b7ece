"""The grid of attributes on the Data page, and the labels of their values."""

from rpexplore.domain.categories import Categories
from rpexplore.domain.ordered_values import Bins, Integers
from rpexplore.scenarios.table_settings import TableSetting
from tests.pages.conftest import plain


def test_grid_edits_reach_the_scenario(app, small):
    session = app("codebook", small.with_settings([TableSetting(("age", "sex"), 2.0)]))
    session.type_in_grid("codebook grid", 0, "name", "years")
    session.type_in_grid("codebook grid", 0, "maximum", 49)
    session.type_in_grid("codebook grid", 1, "kind", "categories")
    session.type_in_grid("codebook grid", 1, "values", ["F", "M", "X"])
    session.type_in_grid("codebook grid", 2, "kind", "bins")
    domain = session.scenario.domain
    assert domain["years"].values == Integers(0, 49)
    assert domain["sex"].values == Categories(("F", "M", "X"))
    assert domain["region"].values == Bins((0, 1, 2, 3, 4, 5), are_whole=True)
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
