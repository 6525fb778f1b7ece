"""The scatter of cell variances, tested through its data."""

import math

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.analysis import distributions as analysis
from rpexplore.analysis.measures import SCHEMES, STANDARD_ERROR, VARIANCE
from rpexplore.figures import fairness as figures
from tests.analysis.schemes import accuracy_of, of_schemes
from tests.published import figures as published


@pytest.fixture(scope="module")
def adult():
    return of_schemes(published.workload("Adult", "<=3"))


def drawn(figure, panel):
    """The traces of a panel."""
    axis = "x" if panel == 0 else f"x{panel + 1}"
    return [t for t in figure.data if (t.xaxis or "x") == axis]


def test_a_panel_holds_the_tables_of_its_plan(adult):
    frame = analysis.points(adult)
    figure = figures.by_plan(frame, "people")
    for panel, accuracy in enumerate(adult):
        traces = drawn(figure, panel)
        assert [trace.name for trace in traces] == [
            "total",
            "1 attribute",
            "2 attributes",
            "3 attributes",
        ]
        assert sum(len(trace.x) for trace in traces) == 470
        result = np.concatenate([trace.y for trace in traces])
        np.testing.assert_allclose(result, accuracy.standard_errors, rtol=1e-6)
        cells = np.concatenate([trace.x for trace in traces])
        np.testing.assert_allclose(cells, accuracy.workload.cells, rtol=1e-6)


def test_orders_differ_in_colour_and_marker_alike_in_all_panels(adult):
    figure = figures.by_plan(analysis.points(adult), "people")
    first = drawn(figure, 0)
    assert len({trace.marker.symbol for trace in first}) == 4
    assert len({trace.marker.color for trace in first}) == 4
    for panel in range(1, 4):
        for trace, other in zip(first, drawn(figure, panel), strict=True):
            assert trace.marker.symbol == other.marker.symbol
            assert trace.marker.color == other.marker.color
    assert sum(bool(trace.showlegend) for trace in figure.data) == 4


@pytest.mark.parametrize(
    ("measure", "title"),
    [
        (STANDARD_ERROR, "standard error of a cell (people, log scale)"),
        (VARIANCE, "variance of a cell (people², log scale)"),
    ],
)
def test_axes_are_shared_and_say_the_measure(adult, measure, title):
    adult = [accuracy.in_measure(measure) for accuracy in adult]
    figure = figures.by_plan(analysis.points(adult), "people", measure=measure)
    layout = figure.layout
    for axis in (layout.xaxis, layout.xaxis2, layout.xaxis3, layout.xaxis4):
        assert axis.type == "log"
        assert axis.range == layout.xaxis.range
        assert 10 ** axis.range[0] < 1
        assert 10 ** axis.range[1] > 10**6
    values = [value for accuracy in adult for value in accuracy.values]
    for axis in (layout.yaxis, layout.yaxis2, layout.yaxis3, layout.yaxis4):
        assert axis.type == "log"
        assert axis.range == layout.yaxis.range
        assert 10 ** axis.range[0] < min(values)
        assert 10 ** axis.range[1] > max(values)
    assert [layout[f"yaxis{n}"].title.text for n in ("", "3")] == ["", title]
    assert f"{measure.noun}: " in figure.data[0].hovertemplate


def test_panels_are_titled_in_pairs_and_the_own_one_is_marked(adult):
    figure = figures.by_plan(analysis.points(adult), "people", own="Equal weight per cell")
    texts = [note.text.replace("<br>", " ") for note in figure.layout.annotations]
    assert texts == [name + " (yours)" * (name == "Equal weight per cell") for name in SCHEMES]
    lines = [line for note in figure.layout.annotations for line in note.text.split("<br>")]
    assert max(map(len, lines)) <= 22  # half of a narrow screen
    domains = [figure.layout[f"xaxis{n}"].domain for n in ("", "2", "3", "4")]
    for left, right in (domains[:2], domains[2:]):
        assert left[0] == 0
        assert left[1] < right[0]
        assert right[1] == pytest.approx(1)
    heights = [figure.layout[f"yaxis{n}"].domain for n in ("", "2", "3", "4")]
    assert heights[0] == heights[1]
    assert heights[2] == heights[3]
    assert heights[2][0] == pytest.approx(0)
    assert heights[2][1] < heights[0][0]
    assert heights[0][1] == 1


def test_bubbles_tell_their_number_of_tables_by_area(adult):
    frame = analysis.bins(adult)
    figure = figures.by_plan(frame, "people")
    sizes = [size for trace in drawn(figure, 2) for size in trace.marker.size]
    assert sum(sizes) == 470
    trace = drawn(figure, 0)[3]
    assert trace.marker.sizemode == "area"
    # The largest has the largest diameter: sizeref is 2 · max / diameter².
    assert 2 * frame["tables"].max() / trace.marker.sizeref == pytest.approx(14**2)
    assert list(trace.text) == [f"{size:,}" for size in trace.marker.size]
    assert "tables of 3 attributes: %{text}" in trace.hovertemplate


def test_single_tables_are_drawn_by_webgl():
    accuracy = accuracy_of(published.workload("CPS", "<=3"))
    figure = figures.single_tables(analysis.points([accuracy]), "people")
    assert {trace.type for trace in figure.data} == {"scattergl"}
    assert sum(len(trace.x) for trace in figure.data) == 26


def test_names_are_not_read_as_markup():
    domain = rp.Domain.from_sizes({"<b>a</b>": 3})
    frame = analysis.points([accuracy_of(rp.Workload.all_up_to(domain, 1))])
    text = figures.by_plan(frame, "<i>x</i>").to_json()
    assert "<b>a" not in text
    assert "<i>" not in text
    assert "&lt;b&gt;a" in text.encode().decode("unicode_escape")


def test_size_of_the_largest_figures():
    """20,000 points with names, and the bins of 10^5 tables, stay far below 3 MB."""
    domain = rp.Domain.from_sizes({f"attribute_{i:02}": 2 + i for i in range(50)})
    accuracy = accuracy_of(rp.Workload.all_up_to(domain, 3))
    frame = analysis.points([accuracy], np.arange(20_000))
    assert len(figures.single_tables(frame, "people").to_json()) < 2_000_000
    assert len(figures.by_plan(analysis.bins([accuracy] * 5), "people").to_json()) < 300_000


@pytest.mark.parametrize(
    ("low", "high", "most", "texts"),
    [
        (0.7, 2e6, 4, ["1", "100", "10,000", "10⁶"]),
        (0.7, 2e12, 4, ["10", "10⁵", "10⁹"]),
        (15, 330, 8, ["20", "50", "100", "200"]),
    ],
)
def test_ticks_are_few_and_short(low, high, most, texts):
    axis = figures._axis(low, high, most)
    assert axis["ticktext"] == texts
    assert len(axis["tickvals"]) == len(texts) <= most


def test_numbers_of_cells_are_whole():
    axis = figures._axis(0.7, 1.5, 4, whole=True)
    assert axis["tickvals"] == [1]
    assert axis["range"] == [math.log10(0.7), math.log10(1.5)]


def test_errors_beyond_short_floats_are_drawn_as_they_are():
    """σ is of the size of 10^49 at ρ = 1e-99, and short floats end at 3.4e38."""
    workload = rp.Workload.all_up_to(rp.Domain.from_sizes({"a": 2, "b": 3}), 2)
    frame = analysis.points([accuracy_of(workload, rho="1e-99")])
    with np.errstate(all="raise"):
        figure = figures.single_tables(frame, "people")
    drawn = np.concatenate([np.asarray(trace.y) for trace in figure.data])
    assert drawn.min() > 1e48
    assert np.isfinite(drawn).all()
