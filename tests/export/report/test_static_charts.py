"""Charts for paper show what the figures hold, where they hold it."""

import re
from xml.etree import ElementTree

import numpy as np
import plotly.graph_objects as go
import pytest

from rpexplore.export.report.report import report
from rpexplore.export.report.static_charts import svg
from rpexplore.export.report.static_traces import UndrawableError
from tests.export.scenarios import SCENARIOS

SVG = "{http://www.w3.org/2000/svg}"


def texts(drawn: str) -> list[str]:
    """The texts of a drawing, line by line."""
    root = ElementTree.fromstring(drawn)
    return [str(node.text) for node in root.iter(f"{SVG}text")]


def points(drawn: str, colour: str) -> np.ndarray:
    """The points of the longest line of a colour, [n][2], upwards as in a chart."""
    root = ElementTree.fromstring(drawn)
    found = [
        np.array(re.findall(r"[ML] (-?[\d.]+) (-?[\d.]+)", path.get("d", "")), dtype=float)
        for path in root.iter(f"{SVG}path")
        if f"stroke: {colour}" in (path.get("style") or "")
    ]
    line = max(found, key=len)
    return line * [1, -1]


def line_figure(**layout) -> go.Figure:
    figure = go.Figure(
        go.Scatter(
            x=[1, 10, 100, 1000],
            y=[0, 1, 4, 9],
            mode="lines",
            line={"color": "#c2571a", "dash": "dash"},
            name="a line",
        )
    )
    return figure.update_layout(**layout)


def test_lines_are_where_their_numbers_are():
    drawn = points(svg(line_figure()), "#c2571a")
    steps = np.diff(drawn, axis=0)
    assert steps[:, 0] / steps[0, 0] == pytest.approx([1, 10, 100], rel=1e-3)
    assert steps[:, 1] / steps[0, 1] == pytest.approx([1, 3, 5], rel=1e-3)


def test_log_axes_are_logarithmic():
    drawn = points(svg(line_figure(xaxis={"type": "log", "range": [0, 3]})), "#c2571a")
    steps = np.diff(drawn[:, 0])
    assert steps == pytest.approx([steps[0]] * 3, rel=1e-3)


def test_steps_go_across_before_they_go_up():
    figure = line_figure().update_traces(line_shape="hv")
    drawn = points(svg(figure), "#c2571a")
    assert len(drawn) == 7
    assert np.diff(drawn[:, 1])[0::2] == pytest.approx([0, 0, 0])
    assert np.diff(drawn[:, 0])[1::2] == pytest.approx([0, 0, 0])


def test_axes_can_point_down():
    up = points(svg(line_figure(yaxis={"range": [-1, 10]})), "#c2571a")
    down = points(svg(line_figure(yaxis={"range": [10, -1]})), "#c2571a")
    assert np.all(np.diff(up[:, 1]) > 0)
    assert np.all(np.diff(down[:, 1]) < 0)


def test_titles_ticks_and_legend_are_written():
    figure = line_figure(
        xaxis={"title": "across &amp; over", "tickvals": [10, 100], "ticktext": ["ten", "$100$"]},
        yaxis={"title": "a_b<br>second line"},
        showlegend=True,
    )
    figure.add_scatter(x=[5], y=[5], mode="markers", marker={"color": "#111111"}, name="_private")
    found = texts(svg(figure))
    assert {"across & over", "ten", "$100$", "a line"} <= set(found)
    assert any("a_b" in text for text in found)
    assert any("_private" in text for text in found)


def test_the_same_figure_is_drawn_the_same():
    assert svg(line_figure()) == svg(line_figure())


@pytest.mark.parametrize("name", ["groups", "hostile", "up to", "targets"])
def test_every_chart_of_the_report_is_drawn(name):
    for chart in report(SCENARIOS[name].plan()).charts:
        drawn = svg(chart.figure)
        root = ElementTree.fromstring(drawn)
        assert root.tag == f"{SVG}svg"
        assert not [node for node in root.iter() if node.tag.endswith(("script", "image"))]
        # Every text that the figure writes itself is on paper.
        written = " ".join(" ".join(texts(drawn)).split())
        for trace in chart.figure.data:
            if "text" in (trace.mode or "") if trace.type == "scatter" else False:
                for text in trace.text:
                    assert " ".join(text.split()) in written


def test_boxes_show_the_quantiles_they_are_given():
    (chart, *_) = report(SCENARIOS["groups"].plan()).charts
    found = texts(svg(chart.figure))
    frame = chart.numbers.frame
    assert any(text.startswith("median ") for text in found)
    assert f"{len(SCENARIOS['groups'].domain)} tables" in " ".join(found)
    assert len(frame) == 4


@pytest.mark.parametrize(
    "figure",
    [
        go.Figure(go.Heatmap(z=[[1, 2], [3, 4]])),
        go.Figure(go.Scattergl(x=[1], y=[1], mode="markers")),
        go.Figure(go.Scatter(x=[1, 2], y=[1, 2], mode="lines", fill="tozeroy")),
        go.Figure(go.Scatter(x=[1], y=[1], mode="markers", error_y={"array": [1]})),
        go.Figure(go.Box(y=[1, 2, 3], x=[0, 0, 0])),
        go.Figure(go.Bar(x=[1], y=[1])),
        line_figure(yaxis={"tickformat": "~s"}),
        line_figure().add_hline(y=1),
        line_figure().add_annotation(x=1, y=1, text="here"),
        line_figure().add_vrect(x0=1, x1=2),
    ],
    ids=lambda figure: figure.data[0].type,
)
def test_what_is_not_drawn_is_refused(figure):
    with pytest.raises(UndrawableError):
        svg(figure)
