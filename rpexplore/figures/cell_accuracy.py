"""Accuracy over the cells of a table: a heat map, a triangle of ranges, or a line.

Colours run from light to dark through one scale whose ends both stand out from light and dark
backgrounds; the least and the most accurate cell are marked and named as well.
"""

import math

import numpy as np

from rpexplore.analysis.cell_accuracy import CellAccuracy
from rpexplore.common.formatting import rounded
from rpexplore.figures import axes
from rpexplore.figures.labels import shortened
from rpexplore.figures.plotly_objects import go

_MOST_MARKED = 60  # points of a line, each with a marker
_WIDE = 8  # times the smallest error: from here on colours go by the logarithm
# Sequential, from light blue to dark red-brown by way of a middle that is neither.
_SCALE = [[0.0, "#9cc5f2"], [0.35, "#5b90d4"], [0.65, "#8f62b3"], [1.0, "#932a5b"]]


def cells_of_table(accuracy: CellAccuracy, record_noun: str) -> go.Figure:
    """The accuracy over the cells of a table; the least and the most accurate are marked."""
    unit = accuracy.measure.label(axes.plotly_text(record_noun))
    is_line = len(accuracy.axes) == 1
    figure = _line(accuracy, unit) if is_line else _heat_map(accuracy, unit)
    if not accuracy.is_level:
        _mark(figure, accuracy, accuracy.least_accurate, "least accurate", "x")
        _mark(figure, accuracy, accuracy.most_accurate, "most accurate", "circle")
    across = accuracy.axes[-1]
    figure.update_xaxes(axes.category_axis(across.name, across.labels))
    return axes.with_layout(figure, 400 if is_line else 460, legend=True, t=40)


def _heat_map(accuracy: CellAccuracy, unit: str) -> go.Figure:
    errors = accuracy.values
    low, high = float(np.nanmin(errors)), float(np.nanmax(errors))
    colours, limits = errors, (low, max(high, low * (1 + 1e-9)))
    bar: dict = {"title": {"text": unit, "side": "right"}}
    if high > _WIDE * low:
        colours, limits = np.log10(errors), (math.log10(low), math.log10(high))
        ticks = axes.log_ticks(low, high)
        bar |= {
            "tickvals": [math.log10(tick) for tick in ticks],
            "ticktext": [rounded(tick, 4) for tick in ticks],
        }
    hovers, texts = [], []
    for row in range(errors.shape[0]):
        columns = range(errors.shape[1])
        hovers.append([axes.plotly_text(accuracy.label((row, column))) for column in columns])
        texts.append(["" if math.isnan(error) else rounded(error, 3) for error in errors[row]])
    heat = go.Heatmap(
        z=[[None if math.isnan(z) else axes.drawn(z) for z in row] for row in colours.tolist()],
        zmin=limits[0],
        zmax=limits[1],
        x=list(range(errors.shape[1])),
        y=list(range(errors.shape[0])),
        customdata=texts,
        hovertext=hovers,
        hovertemplate=f"%{{hovertext}}<br>{accuracy.measure.noun}: %{{customdata}}<extra></extra>",
        colorscale=_SCALE,
        colorbar=bar,
        showscale=True,
    )
    down = accuracy.axes[0]
    figure = go.Figure(heat)
    return figure.update_yaxes(axes.category_axis(down.name, down.labels, downwards=True))


def _line(accuracy: CellAccuracy, unit: str) -> go.Figure:
    errors = [axes.drawn(error) for error in accuracy.values.tolist()]
    points = {
        "x": list(range(len(errors))),
        "y": errors,
        "hovertext": [axes.plotly_text(label) for label in accuracy.axes[0].labels],
        "hovertemplate": f"%{{hovertext}}<br>{accuracy.measure.noun}: %{{y:,.3~g}}<extra></extra>",
        "showlegend": False,
    }
    if accuracy.is_even:
        trace = go.Scatter(
            points,
            mode="lines+markers" if len(errors) <= _MOST_MARKED else "lines",
            line={"color": axes.BLUE, "width": 2.5},
            marker={"size": 5},
        )
    else:
        trace = go.Bar(points, marker={"color": axes.style(0).fill(0.6)})
    base = "normal" if accuracy.is_even else "tozero"  # bars must start at 0, a line need not
    figure = go.Figure(trace)
    return figure.update_yaxes(title=unit, rangemode=base, gridcolor=axes.GRID, zeroline=False)


def _mark(
    figure: go.Figure, accuracy: CellAccuracy, cell: tuple[int, ...], name: str, symbol: str
) -> None:
    """A mark with a light edge around a dark one, to be seen on any colour."""
    error = float(accuracy.values[cell])
    y, x = cell if len(cell) == 2 else (axes.drawn(error), cell[0])
    label = axes.plotly_text(shortened(accuracy.label(cell)))
    figure.add_trace(
        go.Scatter(
            x=[x],
            y=[y],
            mode="markers",
            marker={
                "symbol": symbol,
                "size": 13,
                "color": "white",
                "line": {"color": "black", "width": 2},
            },
            name=f"{name}: {label}, {accuracy.measure.symbol} = {rounded(error, 3)}",
            hoverinfo="skip",
        )
    )
