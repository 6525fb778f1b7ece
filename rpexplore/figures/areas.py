"""Accuracy by area: an area and its parts as a treemap, and the areas of a level on a map."""

import numpy as np
import pandas as pd

from rpexplore.analysis.area_accuracy import AreaErrors, describe_parts, error_text
from rpexplore.analysis.area_map import AreaMap, Ring
from rpexplore.common.text import capitalised, rounded
from rpexplore.figures import axes
from rpexplore.figures.axes import go
from rpexplore.figures.chart import COLUMNS, Chart, Column

# From accurate to not, readable on light and dark grounds, and in print.
_SCALE: list[tuple[float, str]] = [(0.0, "#dbe7f6"), (0.5, "#6f9bd3"), (1.0, "#173f75")]
_SHADES = 24  # of them on a map
_NOT_ASKED = "rgba(127, 139, 153, 0.25)"
_BORDER = "rgba(255, 255, 255, 0.7)"

# What matters first, under short headings: narrow screens show three columns or so.
_ERROR = Column("error σ", term="Standard error")
AREA_COLUMNS = {
    "area": Column("area", "text"),
    "standard_error": _ERROR,
    "times_median": Column("× median", term="Median"),
    "level": COLUMNS["level"],
    "parts": Column("parts", "count"),
    "family": Column("family", "count"),
    "code": Column("codes", "text"),
}
LEVEL_COLUMNS = {
    "level": COLUMNS["level"],
    "areas": Column("areas", "count"),
    "undivided": Column("leaves", "count"),
    "fewest_parts": Column("fewest children", "count"),
    "median_parts": Column("median children", "count", term="Median"),
    "most_parts": Column("most children", "count"),
}
ACCURACY_COLUMNS = {
    "level": COLUMNS["level"],
    "standard_error": _ERROR,
    "largest_standard_error": Column("largest σ", term="Least / most accurate"),
    "largest_table": Column("of table", "text"),
    "margin_95": Column("95 % margin", term="Margin of error"),
    "areas": Column("areas", "count"),
    "tables": COLUMNS["tables"],
}
TABLE_COLUMNS = {
    "item": COLUMNS["item"],
    "level": COLUMNS["level"],
    "standard_error": _ERROR,
    "largest_standard_error": Column("largest σ", term="Least / most accurate"),
    "target": Column("target", term="Target"),
    "met": Column("met", "text"),
    "required": Column("required", "text"),
    "smallest_standard_error": Column("smallest σ", term="Least / most accurate"),
    "margin_95": Column("95 % margin", term="Margin of error"),
    "areas": Column("areas", "count"),
    "cells": COLUMNS["cells"],
    "weight": Column("weight", term="Weight"),
    "shadow_price": Column("contribution", "share", term="Binding targets"),
}
USEFUL_COLUMNS = {
    "level": COLUMNS["level"],
    "share": Column("publishable cells", "share", term="Publishable share"),
    "in_full": Column("tables in full", "count"),
    "tables": Column("of tables", "count"),
    "median_count": Column("records in the median area", "rounded"),
}
SIZE_COLUMNS = {
    "size": Column("number", "text"),
    "areas": Column("areas", "count"),
    "smallest": Column("smallest σ"),
    "median": Column("median σ", term="Median"),
    "largest": Column("largest σ"),
}


def shares_listed(beside: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, Column]]:
    """Of `levels.beside_shares_by_level`: shares as texts with the same digits, and its columns."""
    own = {
        "title": Column("budget by level", "text"),
        "ratio": Column("this plan, as a share of it", "text"),
        "loss": Column("objective"),
    }
    levels = {name: Column(str(name), "name") for name in beside.columns if name not in own}
    texts = {
        name: [f"{rounded(100 * share, 3, zeros=True)} %" for share in beside[name]]
        for name in ("ratio", *levels)
    }
    return beside.assign(**texts), own | levels


def parts_chart(errors: AreaErrors, top: int) -> Chart:
    """The parts of an area as a treemap, coloured by the standard error of a table."""
    frame, left_out = errors.with_parts(top)
    columns = {name: column for name, column in AREA_COLUMNS.items() if name in frame}
    return Chart(
        treemap(frame),
        subject=f"Standard error of {errors.title} in {frame['area'].iloc[0]} and its parts",
        sentence=describe_parts(frame, errors.title),
        frame=frame.loc[:, list(columns)],
        columns=columns,
        file="areas.csv",
        remark=" ".join(
            filter(
                None,
                [
                    "A rectangle is as large as the number of leaves in it; darker "
                    "is less accurate, grey is not asked for.",
                    left_out,
                ],
            )
        ),
        title="Accuracy by area",
    )


def map_chart(areas: AreaMap, errors: AreaErrors) -> Chart:
    """The areas of a level on a map, coloured by the standard error of a table."""
    frame = areas.frame(errors)
    columns = {name: column for name, column in AREA_COLUMNS.items() if name in frame}
    return Chart(
        shaded_map(frame, areas),
        subject=f"Map of the standard error of {errors.title} on the level {areas.level}",
        sentence=areas.describe(),
        frame=frame.loc[:, list(columns)],
        columns=columns,
        file="area_map.csv",
        remark="Darker is less accurate; grey is not asked for.",
        title="Map",
    )


def treemap(frame: pd.DataFrame) -> go.Figure:
    """Rectangles in rectangles; frame: of `AreaErrors.with_parts`."""
    errors = frame["standard_error"].to_numpy()
    low, high = _range(errors)
    shares = ((errors - low) / (high - low)).tolist()
    colours = [_NOT_ASKED if share != share else _colour(share) for share in shares]
    # Where a white text is easier to read than a dark one.
    letters = ["#ffffff" if share > 0.65 else "#101820" for share in shares]
    texts = _error_texts(errors)
    figure = go.Figure(
        go.Treemap(
            ids=[str(number) for number in frame["number"]],
            parents=["" if parent < 0 else str(parent) for parent in frame["parent"]],
            labels=[axes.plotly_text(area) for area in frame["area"]],
            values=frame["undivided"].tolist(),
            branchvalues="total",
            text=texts,
            customdata=[
                f"{axes.plotly_text(level)}, {_size(parts, family)}"
                for level, parts, family in zip(
                    frame["level"], frame["parts"], frame["family"], strict=True
                )
            ],
            textinfo="label+text",
            hovertemplate="%{label}<br>%{text}<br>%{customdata}<extra></extra>",
            marker={"colors": colours, "line": {"width": 1, "color": _BORDER}, "pad": {"t": 20}},
            textfont={"color": letters},
            pathbar={"visible": False},
            tiling={"packing": "squarify", "pad": 1},
        )
    )
    figure.add_trace(_colour_bar(errors))
    _hide_axes(figure)
    figure.update_layout(uniformtext={"minsize": 10, "mode": "hide"})
    return axes.with_layout(figure, 520, t=60)


def shaded_map(frame: pd.DataFrame, areas: AreaMap) -> go.Figure:
    """Shapes without any ground below them; frame: of `AreaMap.frame`.

    Not Plotly's own maps: those fetch their ground from elsewhere, even where it is not shown.
    """
    errors = frame["standard_error"].to_numpy()
    low, high = _range(errors)
    shades = np.where(np.isnan(errors), -1, (errors - low) / (high - low) * _SHADES)
    shades = np.minimum(shades.astype(int), _SHADES - 1)
    figure = go.Figure()
    for shade in np.unique(shades).tolist():
        x: list[float | None] = []
        y: list[float | None] = []
        for row in np.flatnonzero(shades == shade).tolist():
            for ring in areas.rings[row]:
                x += [*(axes.drawn(point[0]) for point in ring), None]
                y += [*(axes.drawn(point[1]) for point in ring), None]
        share = (shade + 0.5) / _SHADES
        figure.add_trace(
            go.Scatter(
                x=x,
                y=y,
                fill="toself",
                fillcolor=_NOT_ASKED if shade < 0 else _colour(share),
                mode="lines",
                line={"width": 0.7, "color": _BORDER},
                hoverinfo="skip",
            )
        )
    middles = [_middle(rings) for rings in areas.rings]
    texts = [
        f"{axes.plotly_text(area)}<br>{text}"
        for area, text in zip(frame["area"], _error_texts(errors), strict=True)
    ]
    figure.add_trace(
        go.Scatter(
            x=[x for x, _ in middles],
            y=[y for _, y in middles],
            mode="markers",
            marker={"size": 16, "opacity": 0},
            hovertext=texts,
            hoverinfo="text",
        )
    )
    figure.add_trace(_colour_bar(errors))
    _hide_axes(figure)
    figure.update_yaxes(scaleanchor="x", scaleratio=areas.stretch)
    return axes.with_layout(figure, 480, t=60)


def _middle(rings: list[Ring]) -> tuple[float, float]:
    xs, ys = zip(*max(rings, key=len), strict=True)
    return (min(xs) + max(xs)) / 2, (min(ys) + max(ys)) / 2


def _error_texts(errors: np.ndarray) -> list[str]:
    smallest = float(np.nanmin(errors, initial=np.inf))
    return [
        f"σ {error_text(error, smallest)}" if error == error else "not asked for"
        for error in errors.tolist()
    ]


def _size(parts: int, family: int) -> str:
    own = f"{parts:,} parts" if parts > 1 else "1 part" if parts else "not divided"
    return f"{own}, one of {family:,} in its family" if family > 1 else own


def _range(errors: np.ndarray) -> tuple[float, float]:
    """The ends of the scale, apart."""
    known = errors[~np.isnan(errors)]
    if not len(known):
        return 0.0, 1.0
    low, high = float(np.min(known)), float(np.max(known))
    return (low, high) if high > low * 1.001 else (0.9 * low, 1.1 * high)


def _colour(share: float) -> str:
    pieces = _SCALE[:2] if share <= _SCALE[1][0] else _SCALE[1:]
    (low, below), (high, above) = pieces
    part = (share - low) / (high - low)
    mixed = [
        round(a + part * (b - a))
        for a, b in zip(bytes.fromhex(below[1:]), bytes.fromhex(above[1:]), strict=True)
    ]
    return f"rgb({mixed[0]}, {mixed[1]}, {mixed[2]})"


def _colour_bar(errors: np.ndarray) -> go.Scatter:
    """A trace that shows nothing but the scale."""
    low, high = _range(errors)
    ends = [low, (low + high) / 2, high]
    return go.Scatter(
        x=[None],
        y=[None],
        mode="markers",
        hoverinfo="skip",
        marker={
            "color": [low],
            "cmin": low,
            "cmax": high,
            "colorscale": _SCALE,
            "showscale": True,
            "colorbar": {
                "title": {"text": capitalised("standard error σ"), "side": "top"},
                "orientation": "h",
                "thickness": 10,
                "len": 0.5,
                "x": 0,
                "xanchor": "left",
                # Of the picture, not of the plot, which it would push down.
                "yref": "container",
                "y": 1,
                "yanchor": "top",
                "ypad": 0,
                "outlinewidth": 0,
                "tickvals": ends,
                "ticktext": [error_text(end, low) for end in ends],
            },
        },
    )


def _hide_axes(figure: go.Figure) -> None:
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
