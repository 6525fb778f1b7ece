"""From before to after, through its data."""

import math

import pandas as pd

from rpexplore.figures.trade_offs import before_and_after

FRAME = pd.DataFrame(
    {
        "name": ["total", "<b>a</b>", "age × sex, left out", "age × region, added"],
        "concerned": [False, False, True, True],
        "before": [10.0, 20.0, 30.0, math.nan],
        "after": [8.0, 25.0, math.nan, 40.0],
        "note": ["−20 %", "+25 %", "not available", "new"],
    }
)


def test_marks_and_lines_hold_the_frame():
    figure = before_and_after(FRAME, "people")
    marks = {
        (y, trace.marker.symbol): x
        for trace in figure.data
        for x, y in zip(trace.x, trace.y, strict=True)
    }
    assert marks == {
        (0, "circle-open"): 10,
        (0, "circle"): 8,
        (1, "circle-open"): 20,
        (1, "circle"): 25,
        (2, "square-open"): 30,
        (3, "square"): 40,
    }
    assert [(line.x0, line.x1, line.y0) for line in figure.layout.shapes] == [
        (10, 8, 0),
        (20, 25, 1),
    ]


def test_rows_are_named_from_the_top_and_noted_at_the_right():
    layout = before_and_after(FRAME, "people").layout
    assert layout.yaxis.range[0] > layout.yaxis.range[1]
    assert layout.yaxis.ticktext[2] == "age × sex, left out"
    assert [note.text for note in layout.annotations] == FRAME["note"].tolist()
    assert [note.y for note in layout.annotations] == [0, 1, 2, 3]


def test_the_axis_holds_everything():
    axis = before_and_after(FRAME, "people").layout.xaxis
    assert axis.type == "log"
    assert 10 ** axis.range[0] < 8 < 40 < 10 ** axis.range[1]
    assert "people" in axis.title.text
    assert 2 <= len(axis.tickvals) == len(axis.ticktext) <= 5
    assert axis.tickangle == 0


def test_user_text_is_not_read_as_markup_and_long_names_are_cut():
    frame = FRAME.assign(name=["x" * 100, *FRAME["name"][1:]])
    figure = before_and_after(frame, "<i>people</i>")
    assert figure.layout.yaxis.ticktext[1] == "&lt;b&gt;a&lt;/b&gt;"
    assert len(figure.layout.yaxis.ticktext[0]) == 30
    assert all("<b>" not in hover for trace in figure.data for hover in trace.hovertext)
    assert figure.data[0].hovertext[0] == f"{'x' * 100}<br>before 10, after 8<br>−20 %"
    assert "<i>" not in figure.layout.xaxis.title.text
