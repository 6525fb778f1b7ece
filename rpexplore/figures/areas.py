"""Accuracy by area: an area and its parts as a treemap, and the areas of a level on a map."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from rpexplore.analysis.area_accuracy import AreaErrors, describe_parts, error_text
from rpexplore.analysis.area_map import AreaMap, Ring
from rpexplore.common.text import describe_share, rounded
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
GUESS_COLUMNS = {
    "level": COLUMNS["level"],
    "size": Column("records of the area", "rounded"),
    "unbiased": Column("error σ, unbiased"),
    "alike": Column("σ of best guesses, areas alike"),
    "differing": Column("σ, areas that differ"),
    "people_unbiased": Column("records in good cells, unbiased", "share"),
    "people_alike": Column("records, areas alike", "share"),
    "people_differing": Column("records, areas that differ", "share"),
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
    letters = _letters(np.array(shares))
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


QUANTITIES = {
    "value": "Count",
    "standard_error": "Standard error σ",
    "cv": "CV",
    "publishable": "Publishable or not",
}
"""What the map of results can show, by the column of `AreaMap.outcome`."""

_MOST_CV = 1.0  # larger ones are coloured alike: such a figure cannot be told from 0
_MOST_NAMES = 60  # on a map; of more, names are shown while pointing
_PUBLISHABLE, _DOUBTFUL = "#6f9bd3", "#d9a441"


def outcome_chart(
    areas: AreaMap, frame: pd.DataFrame, shown: str, subject: str, remark: str
) -> Chart:
    """The released figures of the areas of a level on a map.

    frame: of `AreaMap.outcome`; shown: the key of what `QUANTITIES` has; subject: what the figures
    are; remark: which they are of, in sentences
    """
    columns = {
        "area": AREA_COLUMNS["area"],
        "value": Column("noisy count", "estimate"),
        "standard_error": _ERROR,
        "cv": Column("CV", "share"),
        "flag": Column("quality", "text"),
        "publishable": Column("publishable", "text"),
        "code": AREA_COLUMNS["code"],
    }
    n_good = int(np.sum(frame["publishable"] == "yes"))
    legend = "Darker is larger."
    if shown == "value":
        legend = "Darker is larger, on a scale of square roots."
    if shown == "publishable":
        legend = "Blue is publishable, ochre is not."
    elif shown == "cv":
        legend = f"Darker is less reliable, from a CV of {describe_share(_MOST_CV)} on alike."
    return Chart(
        outcome_map(areas, frame, shown),
        subject=f"Map of {subject}: {QUANTITIES[shown].lower()}",
        sentence=(
            f"{areas.describe()} {n_good:,} of the {len(frame):,} figures on the map are "
            "publishable."
        ),
        frame=frame.assign(cv=frame["cv"].where(np.isfinite(frame["cv"]))),
        columns=columns,
        file="results_map.csv",
        remark=f"{legend} {remark}".strip(),
        title="Map",
    )


def outcome_map(areas: AreaMap, frame: pd.DataFrame, shown: str) -> go.Figure:
    """As `shaded_map`, with the borders of the level above, and names where they are few."""
    shapes = frame.index.tolist()
    texts = [
        f"{axes.plotly_text(area)}<br>{rounded(value, 4, 'nearest')} (σ {rounded(error, 3)}), CV "
        f"{describe_share(cv) if np.isfinite(cv) else 'none: not above 0'}"
        f"{f', {flag}' if flag else ''}; {'publishable' if good == 'yes' else 'not publishable'}"
        for area, value, error, cv, flag, good in frame[
            ["area", "value", "standard_error", "cv", "flag", "publishable"]
        ].itertuples(index=False)
    ]
    figure, letters = go.Figure(), _letters(np.zeros(len(frame)))
    if shown == "publishable":
        good = (frame["publishable"] == "yes").to_numpy()
        for colour, name, which in (
            (_PUBLISHABLE, "publishable", good),
            (_DOUBTFUL, "not publishable", ~good),
        ):
            _fill(figure, areas, [shapes[row] for row in np.flatnonzero(which).tolist()], colour)
            figure.data[-1].update(name=name, showlegend=True)
    else:
        values = frame[shown].to_numpy(dtype=float)
        if shown == "cv":
            values = np.minimum(values, _MOST_CV)
        if shown == "value":  # counts of areas are skewed: by their roots more of them differ
            low, high = 0.0, math.sqrt(max(float(values.max()), 1.0))
            ends = [low, high / 2, high]
            ticks = [end**2 for end in ends]
            scaled = np.sqrt(np.maximum(values, 0.0))
        else:
            low, high = _range(values)
            ends = ticks = [low, (low + high) / 2, high]
            scaled = values
        shares = np.clip((scaled - low) / (high - low), 0, 1)
        _shade(figure, areas, shapes, shares)
        letters = _letters(shares)
        of_tick = describe_share if shown == "cv" else lambda tick: rounded(tick, 3)
        figure.add_trace(_scale(QUANTITIES[shown], ends, [of_tick(tick) for tick in ticks]))
    x: list[float | None] = []
    y: list[float | None] = []
    for side in areas.borders(shapes):
        x += [*(axes.drawn(point[0]) for point in side), None]
        y += [*(axes.drawn(point[1]) for point in side), None]
    line = {"width": 1.4, "color": axes.GREY}
    figure.add_trace(
        go.Scatter(x=x, y=y, mode="lines", line=line, hoverinfo="skip", showlegend=False)
    )
    # Without the code, for which there is no room.
    names = [area.rsplit(" (", 1)[0] for area in frame["area"]] if len(frame) <= _MOST_NAMES else []
    _point_out(figure, [areas.rings[shape] for shape in shapes], texts, names, letters)
    figure = _as_map(figure, areas)
    if shown == "publishable":
        legend = {"orientation": "h", "x": 0, "yref": "container", "y": 1, "yanchor": "top"}
        figure.update_layout(showlegend=True, legend=legend)
    return figure


def shaded_map(frame: pd.DataFrame, areas: AreaMap) -> go.Figure:
    """Shapes without any ground below them; frame: of `AreaMap.frame`.

    Not Plotly's own maps: those fetch their ground from elsewhere, even where it is not shown.
    """
    errors = frame["standard_error"].to_numpy()
    low, high = _range(errors)
    figure = go.Figure()
    _shade(figure, areas, range(len(areas.rings)), (errors - low) / (high - low))
    texts = [
        f"{axes.plotly_text(area)}<br>{text}"
        for area, text in zip(frame["area"], _error_texts(errors), strict=True)
    ]
    _point_out(figure, areas.rings, texts)
    figure.add_trace(_colour_bar(errors))
    return _as_map(figure, areas)


def _as_map(figure: go.Figure, areas: AreaMap) -> go.Figure:
    _hide_axes(figure)
    figure.update_yaxes(scaleanchor="x", scaleratio=areas.stretch)
    return axes.with_layout(figure, 480, t=60)


def _shade(figure: go.Figure, areas: AreaMap, shapes: Sequence[int], shares: np.ndarray) -> None:
    """Fill shapes by shares of the scale, 0 to 1; NaN: not asked for."""
    shades = np.where(np.isnan(shares), -1, shares * _SHADES)
    shades = np.minimum(shades.astype(int), _SHADES - 1)
    for shade in np.unique(shades).tolist():
        colour = _NOT_ASKED if shade < 0 else _colour((shade + 0.5) / _SHADES)
        _fill(
            figure, areas, [shapes[row] for row in np.flatnonzero(shades == shade).tolist()], colour
        )


def _fill(figure: go.Figure, areas: AreaMap, shapes: Sequence[int], colour: str) -> None:
    """One trace of shapes in one colour."""
    x: list[float | None] = []
    y: list[float | None] = []
    for shape in shapes:
        for ring in areas.rings[shape]:
            x += [*(axes.drawn(point[0]) for point in ring), None]
            y += [*(axes.drawn(point[1]) for point in ring), None]
    figure.add_trace(
        go.Scatter(
            x=x,
            y=y,
            fill="toself",
            fillcolor=colour,
            mode="lines",
            line={"width": 0.7, "color": _BORDER},
            hoverinfo="skip",
        )
    )


def _point_out(
    figure: go.Figure,
    rings: Sequence[list[Ring]],
    texts: list[str],
    names: Sequence[str] = (),
    letters: Sequence[str] = (),
) -> None:
    """A text for each shape while its middle is pointed at, and its name there, in its colour."""
    middles = [_middle(of_shape) for of_shape in rings]
    figure.add_trace(
        go.Scatter(
            x=[x for x, _ in middles],
            y=[y for _, y in middles],
            mode="markers+text" if names else "markers",
            marker={"size": 16, "opacity": 0},
            text=[axes.plotly_text(name) for name in names] or None,
            textfont={"size": 10, "color": [*letters] or None},
            hovertext=texts,
            hoverinfo="text",
            showlegend=False,
        )
    )


def _letters(shares: np.ndarray) -> list[str]:
    """The colours of texts on shares of the scale: white where that is easier to read."""
    return ["#ffffff" if share > 0.65 else "#101820" for share in shares.tolist()]


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
    """The scale of standard errors."""
    low, high = _range(errors)
    ends = [low, (low + high) / 2, high]
    return _scale("Standard error σ", ends, [error_text(end, low) for end in ends])


def _scale(title: str, ends: list[float], texts: list[str]) -> go.Scatter:
    """A trace that shows nothing but a scale; ends: its lower end, middle and upper end"""
    return go.Scatter(
        x=[None],
        y=[None],
        mode="markers",
        hoverinfo="skip",
        marker={
            "color": [ends[0]],
            "cmin": ends[0],
            "cmax": ends[-1],
            "colorscale": _SCALE,
            "showscale": True,
            "colorbar": {
                "title": {"text": title, "side": "top"},
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
                "ticktext": texts,
            },
        },
    )


def _hide_axes(figure: go.Figure) -> None:
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
