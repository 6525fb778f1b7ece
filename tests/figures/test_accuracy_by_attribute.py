"""Dots and ranges by attribute, tested through their data."""

import math

import pytest

import rpexplore as rp
from rpexplore.analysis.fairness import by_attribute
from rpexplore.figures import accuracy as figures
from tests.analysis.schemes import accuracy_of
from tests.published import figures as published


@pytest.fixture(scope="module")
def frame():
    return by_attribute(accuracy_of(published.workload("CPS", "<=3"), rp.SumOfVariances("cells")))


def test_dots_and_ranges_hold_the_frame(frame):
    figure = figures.standard_errors_by_attribute(frame, 11.5, "people")
    thin, thick, dots = figure.data
    for place, row in enumerate(frame.to_dict("records")):
        assert thin.x[3 * place : 3 * place + 2] == (row["smallest"], row["largest"])
        assert thick.x[3 * place : 3 * place + 2] == (row["lower_quartile"], row["upper_quartile"])
        assert thin.y[3 * place : 3 * place + 2] == (place, place)
        assert dots.x[place] == row["median"]
    assert thin.x[2::3] == (None,) * len(frame)
    assert thick.line.width > thin.line.width


def test_the_first_row_is_at_the_top(frame):
    axis = figures.standard_errors_by_attribute(frame, 11.5, "people").layout.yaxis
    assert list(axis.ticktext) == frame["attribute"].tolist()
    assert axis.range[0] > len(frame) - 1
    assert axis.range[1] < 0


def test_the_median_of_all_tables_is_marked(frame):
    figure = figures.standard_errors_by_attribute(frame, 11.5, "people")
    (line,), (note,) = figure.layout.shapes, figure.layout.annotations
    assert line.x0 == line.x1 == 11.5
    assert note.x == pytest.approx(math.log10(11.5))
    assert note.text == "median of all tables: 11.5"


def test_height_goes_with_the_attributes(frame):
    few = figures.standard_errors_by_attribute(frame.head(2), 11.5, "people")
    all_of_them = figures.standard_errors_by_attribute(frame, 11.5, "people")
    assert all_of_them.layout.height - few.layout.height == 34 * (len(frame) - 2)


def test_names_are_cut_and_not_read_as_markup():
    name = "<b>" + "long " * 20
    domain = rp.Domain.from_sizes({name: 3, "b": 2})
    frame = by_attribute(accuracy_of(rp.Workload.all_up_to(domain, 2)))
    figure = figures.standard_errors_by_attribute(frame, 1.0, "<i>x</i>")
    label = next(text for text in figure.layout.yaxis.ticktext if "long" in text)
    assert label.startswith("&lt;b&gt;")
    assert len(label) < 40
    assert all("<b>" not in text for text in figure.data[2].hovertext)
    assert "<i>" not in figure.layout.xaxis.title.text
