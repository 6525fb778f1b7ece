"""Noisy counts as bars, each with its 95 % interval."""

import plotly.graph_objects as go

from rpexplore.analysis.cell_accuracy import Axis
from rpexplore.analysis.released_cells import ReleasedCells
from rpexplore.common.formatting import rounded
from rpexplore.figures.axes import (
    GREY,
    GRID,
    STYLES,
    category_axis,
    finished,
    plotly_text,
    shortened,
    style,
)

MOST_BARS, MOST_GROUPS = 2000, len(STYLES)

_PATTERNS = ("", "/", ".", "x", "-", "+")  # of the groups' bars, beside their colours
_EVERY_MARK = 200  # bars: of more, intervals are lines without ends


def bars_with_intervals(cells: ReleasedCells, record_noun: str) -> go.Figure:
    """Bars along the first axis, side by side for each value of a second if there is one.

    Of processed counts, the unbiased ones stand beside as marks, and the intervals are theirs.
    cells: of at most `MOST_GROUPS` values on its second axis.
    """
    figure = go.Figure()
    along, *others = cells.axes
    groups = others[0].labels if others else ("",)
    for group, label in enumerate(groups):
        part = cells.at({each.name: group for each in others})
        name = plotly_text(shortened(label, 40)) if label else _kind(cells)
        interval = _interval(part, few=cells.value.size <= _EVERY_MARK)
        figure.add_trace(_bars(part, along, group, label, name, interval))
        if cells.is_biased:
            figure.add_trace(_marks(part, group, interval, show=group == 0))
    figure.update_xaxes(category_axis(along.name, along.labels))
    figure.update_yaxes(
        title=plotly_text(record_noun),
        tickformat=",",
        gridcolor=GRID,
        zeroline=True,
        zerolinecolor=GREY,
    )
    title = {"text": plotly_text(others[0].name)} if others else None
    figure.update_layout(
        barmode="group",
        scattermode="group",
        bargap=0.2,
        showlegend=bool(others) or cells.is_biased,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "title": title},
    )
    return finished(figure, 420).update_layout(margin={"t": 40})


def _bars(
    part: ReleasedCells, along: Axis, group: int, label: str, name: str, interval: dict
) -> go.Bar:
    look = style(group)
    values = part.value.tolist()
    numbers = zip(values, part.unbiased.tolist(), part.margin.tolist(), strict=True)
    hovers = [
        plotly_text(f"{each}, {label}" if label else each) + _told(part, *of)
        for each, of in zip(along.labels, numbers, strict=True)
    ]
    return go.Bar(
        x=list(range(len(values))),
        y=[_short(value) for value in values],
        error_y=None if part.is_biased else interval,
        offsetgroup=str(group),
        marker={
            "color": look.fill(0.65),
            "line": {"color": look.colour, "width": 1},
            "pattern": {"shape": _PATTERNS[group % len(_PATTERNS)], "fgcolor": look.colour},
        },
        hovertext=hovers,
        hovertemplate="%{hovertext}<extra></extra>",
        name=name,
    )


def _marks(part: ReleasedCells, group: int, interval: dict, *, show: bool) -> go.Scatter:
    """The unbiased counts; one entry in the legend stands for all of them."""
    return go.Scatter(
        x=list(range(part.value.size)),
        y=[_short(value) for value in part.unbiased.tolist()],
        error_y=interval,
        mode="markers",
        marker={"symbol": "diamond", "size": 6, "color": GREY},
        offsetgroup=str(group),
        hoverinfo="skip",
        name="unbiased, with its interval",
        showlegend=show,
        legendgroup="unbiased",
    )


def _interval(part: ReleasedCells, *, few: bool) -> dict:
    return {
        "type": "data",
        "array": [_short(margin) for margin in part.margin.tolist()],
        "color": GREY,
        "thickness": 1.5 if few else 1,
        "width": 3 if few else 0,
    }


def _told(part: ReleasedCells, value: float, unbiased: float, margin: float) -> str:
    around = f"{_count(unbiased)} ±{rounded(margin, 3)}"
    return (
        f"<br>processed: {_count(value)}<br>unbiased: {around}"
        if part.is_biased
        else (f"<br>{around}")
    )


def _kind(cells: ReleasedCells) -> str:
    return "processed (biased)" if cells.is_biased else "noisy count"


def _count(value: float) -> str:
    return f"{value:,.1f}".replace("-", "−")


def _short(value: float) -> float:
    """A number with as many digits as a picture needs."""
    return float(f"{value:.6g}")
