"""The share of the budget by cell, tested through its data."""

import pandas as pd

from rpexplore.figures.query_profile import shares_of_cells


def frame_of(shares):
    cells = [f"<b>{place}</b>, women" for place in range(len(shares))]
    return pd.DataFrame({"cell": cells, "share": shares, "spare": [s < 1 for s in shares]})


def test_cells_with_unused_budget_differ_in_mark_and_colour():
    used, unused = shares_of_cells(frame_of([1.0, 0.25, 1.0, 0.5])).data
    assert (list(used.x), list(used.y)) == ([0, 2], [1.0, 1.0])
    assert (list(unused.x), list(unused.y)) == ([1, 3], [0.25, 0.5])
    assert used.marker.symbol != unused.marker.symbol
    assert used.marker.color != unused.marker.color
    assert (used.name, unused.name) == ("all of it used", "some unused")


def test_only_what_there_is_is_drawn():
    (trace,) = shares_of_cells(frame_of([1.0, 1.0])).data
    assert trace.name == "all of it used"


def test_shares_are_shown_from_zero():
    axis = shares_of_cells(frame_of([1.0, 0.9])).layout.yaxis
    assert axis.range[0] == 0
    assert axis.range[1] > 1


def test_names_are_no_markup_and_few_are_written():
    figure = shares_of_cells(frame_of([0.5] * 1000 + [1.0] * 24))
    assert len(figure.layout.xaxis.ticktext) <= 6
    assert len(figure.layout.xaxis.ticktext) == len(figure.layout.xaxis.tickvals)
    assert not any("<b>" in text for text in figure.layout.xaxis.ticktext)
    assert not any("<b>" in text for trace in figure.data for text in trace.hovertext)
