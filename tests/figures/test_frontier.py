"""Average against worst case, through its data."""

import pandas as pd
import pytest

from rpexplore.figures.trade_offs import average_against_worst

FRAME = pd.DataFrame(
    {
        "average": [10.0, 10.1, 10.5, 12.0],
        "largest": [40.0, 25.0, 21.0, 20.0],
        "given_up": [0.0, 1.0, 5.0, 20.0],
        "gained": [0.0, 37.5, 47.5, 50.0],
    }
)


def draw(present, frame=FRAME, bend=1):
    return average_against_worst(frame, bend, present, "largest standard error (people)", "people")


def texts_of(figure):
    return [annotation.text for annotation in figure.layout.annotations]


def test_the_curve_holds_the_frame():
    figure = draw((11.0, 30.0))
    curve = figure.data[0]
    assert list(curve.x) == FRAME["average"].tolist()
    assert list(curve.y) == FRAME["largest"].tolist()
    assert curve.hovertext[1] == "average 10.1 (+1 %)<br>worst case 25 (−38 %)"
    assert figure.layout.xaxis.title.text == "average standard error (people)"
    assert figure.layout.yaxis.title.text == "largest standard error (people)"


def test_ends_bend_and_present_plan_are_named():
    figure = draw((11.0, 30.0))
    assert texts_of(figure) == [
        "best average",
        "best worst case",
        "average +1 %, worst case −38 %",
        "current plan",
    ]
    own = figure.data[1]
    assert (own.x[0], own.y[0]) == (11.0, 30.0)
    assert own.marker.symbol != figure.data[0].marker.symbol


@pytest.mark.parametrize(("row", "sentence"), [(0, "best average"), (3, "best worst case")])
def test_a_present_plan_that_is_an_end_has_one_label(row, sentence):
    present = (FRAME["average"][row], FRAME["largest"][row] * 1.0001)
    texts = texts_of(draw(present))
    assert f"{sentence} (current plan)" in texts
    assert "current plan" not in texts
    assert len(texts) == 3


def test_no_bend_where_it_is_an_end():
    assert len(texts_of(draw((11.0, 30.0), bend=0))) == 3


def test_axes_hold_everything_and_are_logarithmic_where_needed():
    layout = draw((11.0, 60.0)).layout
    assert layout.xaxis.type is None
    assert layout.xaxis.range[0] < 10 < 12 < layout.xaxis.range[1]
    assert layout.yaxis.range[0] < 20 < 60 < layout.yaxis.range[1]
    layout = draw((11.0, 600.0)).layout
    assert layout.yaxis.type == "log"
    assert 10 ** layout.yaxis.range[0] < 20 < 600 < 10 ** layout.yaxis.range[1]
    assert "log scale" in layout.yaxis.title.text


def test_frontiers_that_hardly_differ_fill_the_chart():
    frame = FRAME.assign(average=[10.0, 10.0001, 10.0002, 10.0003])
    low, high = draw((10.0, 40.0), frame).layout.xaxis.range
    assert high - low < 0.01


def test_user_text_is_not_read_as_markup():
    figure = average_against_worst(FRAME, 1, (11, 30), "error (<b>x</b>)", "<b>x</b>")
    assert "<b>" not in figure.layout.xaxis.title.text
    assert "<b>" not in figure.layout.yaxis.title.text
