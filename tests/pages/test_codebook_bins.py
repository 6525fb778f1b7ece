"""Bins and categories of one attribute on the Data page."""

import pytest

import rpexplore as rp
from rpexplore.domain.categories import Categories
from rpexplore.domain.ordered_values import Bins, Dates, Integers
from tests.pages.conftest import plain


def choose_bins(session, name, how):
    session.selectbox(key="attribute shown").set_value(name).run()
    session.segmented_control(key=f"how to bin {name}").set_value(how).run()
    return session


def field(widgets, label):
    return next(widget for widget in widgets if widget.label.startswith(label))


@pytest.mark.nightly
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


@pytest.mark.nightly
def test_equal_widths_own_edges_merging_and_splitting(app, small):
    session = choose_bins(app("codebook", small), "age", "Equal widths")
    assert "As it is" in plain(session.texts("caption"))
    field(session.text_input, "Width of a bin").set_value("5").run()
    assert "2 bins: 0 to 4, 5 to 9." in plain(session.texts("markdown"))
    assert session.scenario == small  # only shown yet
    session.press("Use these bins")
    assert session.scenario.domain["age"].values == Integers(0, 9, 5)
    assert session.data_editor[0].value["step"].tolist()[0] == "5"
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


@pytest.mark.nightly
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


@pytest.mark.nightly
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


def test_dates_and_cells_for_missing_values_are_made_on_the_page(app, small):
    session = app("codebook", small).press("Add an attribute")
    session.selectbox(key="attribute shown").set_value("attribute_4").run()
    session.segmented_control(key="first values of attribute_4").set_value("dates").run()
    for label, value in (("First day", "2026-01-01"), ("Last day", "2026-13-31")):
        field(session.text_input, label).set_value(value).run()
    assert "A day must be written as" in session.error[0].value
    field(session.text_input, "Last day").set_value("2026-12-31").run()
    field(session.text_input, "In groups of").set_value("quarter").run()
    field(session.text_input, "How the records write").set_value("%d/%m/%Y").run()
    assert "4 bins: 2026-Q1, 2026-Q2, 2026-Q3, 2026-Q4." in plain(session.texts("markdown"))
    session.press("Use these bins")
    dates = Dates("2026-01-01", "2026-12-31", "quarter", format="%d/%m/%Y")
    assert session.scenario.domain["attribute_4"].values == dates
    field(session.text_area, "Missing values").set_value("01/01/1900 = unknown\n = open").run()
    session.press("Use these missing values")
    missing = (("01/01/1900", "unknown"), ("", "open"))
    assert session.scenario.domain["attribute_4"].values.missing == missing
    session.segmented_control(key="how to group attribute_4").set_value("Own edges").run()
    edges = ("2026-01-01", "2026-02-15", "2026-12-31")
    field(session.text_area, "The days on which").set_value(", ".join(edges)).run()
    session.press("Use these bins")
    expected = Dates(edges=edges, format="%d/%m/%Y", missing=missing)
    assert session.scenario.domain["attribute_4"].values == expected
    # Numbers get cells in the same way; what cannot be says why.
    session.selectbox(key="attribute shown").set_value("age").run()
    field(session.text_area, "Missing values").set_value("-9\n-9").run()
    session.press("Use these missing values")
    assert "listed twice" in session.error[0].value
    field(session.text_area, "Missing values").set_value("-9 = refused").run()
    session.press("Use these missing values")
    assert session.scenario.domain["age"].values == Integers(0, 9, missing=(("-9", "refused"),))
    assert not session.exception
