"""Accuracy over the cells of a table: a heat map, a triangle of ranges, or a line.

Colours run from light to dark through one scale whose ends both stand out from light and dark
backgrounds; the least and the most accurate cell are marked and named as well.
"""

import math

import numpy as np
import plotly.graph_objects as go

from rpexplore.analysis.cell_accuracy import Axis, CellAccuracy
from rpexplore.common.formatting import rounded
from rpexplore.figures.axes import (
    BLUE,
    GRID,
    category_axis,
    finished,
    log_ticks,
    plotly_text,
    shortened,
    style,
)

_MOST_MARKED = 60  # points of a line, each with a marker
_WIDE = 8  # times the smallest error: from here on colours go by the logarithm
# Sequential, from light blue to dark red-brown by way of a middle that is neither.
_SCALE = [[0.0, "#9cc5f2"], [0.35, "#5b90d4"], [0.65, "#8f62b3"], [1.0, "#932a5b"]]


def cells_of_table(found: CellAccuracy, record_noun: str) -> go.Figure:
    """The standard errors over the cells of a table, with the worst and the best one marked."""
    unit = f"standard error of a cell ({plotly_text(record_noun)})"
    return _line(found, unit) if found.down is None else _heat_map(found, found.down, unit)


def _heat_map(found: CellAccuracy, down: Axis, unit: str) -> go.Figure:
    errors = found.errors
    low, high = float(np.nanmin(errors)), float(np.nanmax(errors))
    is_wide = high > _WIDE * low
    colours = np.log10(errors) if is_wide else errors
    bar: dict = {"title": {"text": unit, "side": "right"}}
    if is_wide:
        ticks = log_ticks(low, high)
        bar |= {
            "tickvals": [math.log10(tick) for tick in ticks],
            "ticktext": [rounded(tick, 4) for tick in ticks],
        }
    held = np.where(np.isfinite(errors), errors, np.inf)
    texts = [
        ["" if math.isinf(each) else rounded(each, 3) for each in row] for row in held.tolist()
    ]
    heat = go.Heatmap(
        z=[[None if math.isnan(each) else each for each in row] for row in _short(colours)],
        zmin=math.log10(low) if is_wide else low,
        zmax=math.log10(high) if is_wide else max(high, low * (1 + 1e-9)),
        x=list(range(errors.shape[1])),
        y=list(range(errors.shape[0])),
        customdata=texts,
        hovertext=_hovers(found, down),
        hovertemplate="%{hovertext}<br>standard error: %{customdata}<extra></extra>",
        colorscale=_SCALE,
        colorbar=bar,
        showscale=True,
    )
    figure = go.Figure(heat)
    if not found.is_level:
        for place, name, symbol in ((found.worst, "worst", "x"), (found.best, "best", "circle")):
            _mark(figure, place[1], place[0], symbol, _named(found, place, name))
    figure.update_xaxes(category_axis(found.across.name, found.across.labels))
    figure.update_yaxes(category_axis(down.name, down.labels, downwards=True))
    _legend_on_top(figure)
    return finished(figure, 460).update_layout(margin={"t": 40})


def _line(found: CellAccuracy, unit: str) -> go.Figure:
    places, errors = list(range(len(found.errors))), _short(found.errors)
    hover = {
        "hovertext": [plotly_text(label) for label in found.across.labels],
        "hovertemplate": "%{hovertext}<br>standard error: %{y:,.3~g}<extra></extra>",
        "showlegend": False,
    }
    if found.is_even:
        few = len(places) <= _MOST_MARKED
        trace = go.Scatter(
            x=places,
            y=errors,
            mode="lines+markers" if few else "lines",
            line={"color": BLUE, "width": 2.5},
            marker={"size": 5},
            **hover,
        )
    else:
        trace = go.Bar(x=places, y=errors, marker={"color": style(0).fill(0.6)}, **hover)
    figure = go.Figure(trace)
    if not found.is_level:
        for (place,), name, symbol in ((found.worst, "worst", "x"), (found.best, "best", "circle")):
            _mark(figure, place, errors[place], symbol, _named(found, (place,), name))
    figure.update_xaxes(category_axis(found.across.name, found.across.labels))
    base = "normal" if found.is_even else "tozero"  # bars must start at 0, a line need not
    figure.update_yaxes(title=unit, rangemode=base, gridcolor=GRID, zeroline=False)
    _legend_on_top(figure)
    return finished(figure, 400).update_layout(margin={"t": 40})


def _mark(figure: go.Figure, x: float, y: float, symbol: str, name: str) -> None:
    """A mark with a light edge around a dark one, to be seen on any colour."""
    look = {"symbol": symbol, "size": 13, "color": "white", "line": {"color": "black", "width": 2}}
    figure.add_trace(
        go.Scatter(x=[x], y=[y], mode="markers", marker=look, name=name, hoverinfo="skip")
    )


def _named(found: CellAccuracy, place: tuple[int, ...], name: str) -> str:
    label = plotly_text(shortened(found.label(place)))
    return f"{name}: {label}, σ = {rounded(float(found.errors[place]), 3)}"


def _hovers(found: CellAccuracy, down: Axis) -> list[list[str]]:
    return [
        [plotly_text(found.label((row, column))) for column in range(len(found.across.labels))]
        for row in range(len(down.labels))
    ]


def _short(values: np.ndarray) -> list:
    """Numbers with as many digits as a picture needs."""
    return np.vectorize(lambda each: float(f"{each:.5g}"))(values).tolist()


def _legend_on_top(figure: go.Figure) -> None:
    figure.update_layout(
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}, hovermode="closest"
    )
