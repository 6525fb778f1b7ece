"""Areas as a treemap and on a map, tested through what is drawn."""

import json

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.analysis.area_accuracy import AreaErrors
from rpexplore.analysis.area_map import read_map
from rpexplore.figures.areas import map_chart, parts_chart

TREE = rp.AreaTree.from_columns({"region": [*"NNS"], "town": ["1", "2", None]})


@pytest.fixture
def errors():
    """all 2, N 1, S not asked for, towns 1 and 3."""
    return AreaErrors(TREE, ("sex",), np.array([2.0, 1.0, np.nan, 1.0, 3.0]))


def test_a_treemap_has_a_rectangle_for_each_area(errors):
    chart = parts_chart(errors, 0)
    trace = chart.figure.data[0]
    assert trace.ids == ("0", "1", "2")
    assert trace.parents == ("", "0", "0")
    assert trace.values == (3, 2, 1)
    assert trace.text == ("σ 2.00", "σ 1.00", "not asked for")
    light, dark = "rgb(219, 231, 246)", "rgb(23, 63, 117)"
    assert trace.marker.colors[:2] == (dark, light)
    assert "rgba" in trace.marker.colors[2]
    assert chart.sentence == (
        "3 areas; the standard error of sex is between 1.00 (N, level region) and 2.00 (all, level "
        "all)."
    )
    bar = chart.figure.data[1].marker.colorbar
    assert bar.ticktext == ("1.00", "1.50", "2.00")  # as far as the colours reach
    below = parts_chart(errors, 1)
    assert below.figure.data[0].ids == ("1", "3", "4")
    assert below.frame["standard_error"].tolist() == [1, 1, 3]


def test_a_map_is_drawn_from_the_shapes_alone(errors):
    square = [[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]
    shape = {"type": "Polygon", "coordinates": [square, square]}
    content = {"features": [{"id": code, "geometry": shape} for code in "NS"]}
    chart = map_chart(read_map(json.dumps(content).encode(), "m", TREE), errors)
    # A trace of Plotly's own maps would fetch their ground from elsewhere.
    assert {trace.type for trace in chart.figure.data} == {"scatter"}
    grey, blue, texts, _ = chart.figure.data
    assert blue.fillcolor != grey.fillcolor
    for trace in (grey, blue):  # two rings, each with a gap behind it
        assert [i for i, x in enumerate(trace.x) if x is None] == [5, 11]
    assert list(texts.hovertext) == ["N<br>σ 1.00", "S<br>not asked for"]
    assert (texts.x[0], texts.y[0]) == (2, 2)
    assert chart.frame["area"].tolist() == ["N", "S"]
