"""Noisy counts as a heat map: how many, or how reliable; what may be 0 is seen without colour.

Colours are told apart in light and dark themes and by the colour-blind: lightness runs one way
from 0, and blue is above it, orange below.
"""

import math

import numpy as np
import plotly.graph_objects as go

from rpexplore.analysis.cell_accuracy import Axis
from rpexplore.analysis.released_cells import ReleasedCells
from rpexplore.common.formatting import describe_share, rounded
from rpexplore.figures.axes import category_axis, finished, plotly_text

MOST_CELLS = 250  # along each axis

# Cells in all, and along an axis: of more, those that may be 0 are left blank instead of crossed.
_MOST_CROSSED, _MOST_APART = 1500, 60
_WIDE = 30  # times the typical margin: counts beyond are coloured by their logarithm
_NONE = (186, 193, 202)  # the colour of 0
_ABOVE, _BELOW = ((84, 138, 208), (36, 80, 156)), ((210, 115, 50), (140, 58, 16))
_RELIABILITY = [[0.0, "#a9cfc0"], [0.5, "#b98a35"], [1.0, "#7c2d12"]]
_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


def is_crossed(cells: ReleasedCells) -> bool:
    """Whether cells that may be 0 are marked by crosses; else they are left blank."""
    along = max(len(axis.labels) for axis in cells.axes)
    return cells.value.size <= _MOST_CROSSED and along <= _MOST_APART


def heat_map(cells: ReleasedCells, record_noun: str, *, by_margin: bool) -> go.Figure:
    """The cells, the first axis down and the second across.

    by_margin: colours show the margin over the unbiased count, up to 100 %, instead of counts.
    cells: of at most `MOST_CELLS` values on each of two axes.
    """
    down, across = cells.axes
    doubtful = cells.includes_zero
    colours, look = _by_margin(cells) if by_margin else _by_count(cells, record_noun)
    z = [[float(f"{each:.4g}") for each in row] for row in colours.tolist()]
    if not is_crossed(cells):
        z = [
            [None if blank else each for each, blank in zip(row, blanks, strict=True)]
            for row, blanks in zip(z, doubtful.tolist(), strict=True)
        ]
    figure = go.Figure(
        go.Heatmap(
            z=z,
            x=list(range(len(across.labels))),
            y=list(range(len(down.labels))),
            hovertext=_hovers(cells, down, across),
            hovertemplate="%{hovertext}<extra></extra>",
            hoverongaps=True,
            xgap=_gap(across),
            ygap=_gap(down),
            **look,
        )
    )
    if is_crossed(cells) and np.any(doubtful):
        figure.add_trace(_crosses(doubtful))
    figure.update_xaxes(category_axis(across.name, across.labels))
    figure.update_yaxes(category_axis(down.name, down.labels, downwards=True))
    figure.update_layout(legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0})
    height = max(300, min(140 + 26 * len(down.labels), 620))
    return finished(figure, height).update_layout(margin={"t": 40})


def _by_count(cells: ReleasedCells, record_noun: str) -> tuple[np.ndarray, dict]:
    """Numbers to colour by, and how: around 0 by the count, far from it by its logarithm."""
    values, width = cells.value, float(np.median(cells.margin))
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
    reach = max(-low, high)
    is_wide = width > 0 and reach > _WIDE * width
    ticks = _ticks(low, high, width if is_wide else None)
    zmin, zmax = low, high if high > low else low + 1.0
    colours, places = values, ticks
    if is_wide:
        colours = np.arcsinh(values / width)
        zmin, zmax = math.asinh(zmin / width), math.asinh(zmax / width)
        places = [math.asinh(tick / width) for tick in ticks]
    return colours, {
        "zmin": zmin,
        "zmax": zmax,
        "colorscale": _around_zero(zmin, zmax),
        "colorbar": {
            "title": {"text": f"count ({plotly_text(record_noun)})", "side": "right"},
            "tickvals": places,
            "ticktext": [rounded(tick, 4).replace("-", "−") for tick in ticks],
        },
    }


def _by_margin(cells: ReleasedCells) -> tuple[np.ndarray, dict]:
    texts = [*(describe_share(share) for share in _SHARES[:-1]), "100 % or more"]
    return np.minimum(cells.relative_margin, 1.0), {
        "zmin": 0.0,
        "zmax": 1.0,
        "colorscale": _RELIABILITY,
        "colorbar": {
            "title": {"text": "margin as a share of the count", "side": "right"},
            "tickvals": list(_SHARES),
            "ticktext": texts,
        },
    }


def _around_zero(low: float, high: float) -> list[list]:
    """A scale from low ≤ 0 to high ≥ 0: as far from 0, as far from its colour, on either side."""
    reach, zero = max(-low, high), -low / (high - low)
    scale = []
    for share in (1.0, 0.5, 0.0):
        if low < 0 and share:
            scale.append([zero * (1 - share), _colour(_BELOW, share * -low / reach)])
    scale.append([zero, _colour(_ABOVE, 0.0)])
    if high > 0:
        scale += [
            [zero + (1 - zero) * share, _colour(_ABOVE, share * high / reach)]
            for share in (0.5, 1.0)
        ]
    return scale


def _colour(side: tuple, share: float) -> str:
    """The colour so far from 0: from none to the side's middle to its end."""
    stops = (_NONE, *side)
    first = min(int(2 * share), 1)
    part = 2 * share - first
    mixed = [round(a + (b - a) * part) for a, b in zip(stops[first], stops[first + 1], strict=True)]
    return f"rgb({mixed[0]}, {mixed[1]}, {mixed[2]})"


def _ticks(low: float, high: float, width: float | None) -> list[float]:
    """Round numbers from low to high with 0; with a width, powers of ten from about there on."""
    if width is not None:
        first, last = math.ceil(math.log10(width)), math.floor(math.log10(max(-low, high)))
        powers = [10.0**power for power in range(first, last + 1)]
        return [
            tick
            for tick in (*(-each for each in powers[::-1]), 0.0, *powers)
            if low <= tick <= high
        ]
    span = high - low
    if span == 0:
        return [0.0]
    exponent = math.floor(math.log10(span)) - 1
    steps = [nice * 10.0**e for e in (exponent, exponent + 1) for nice in (1, 2, 5)]
    step = next(step for step in steps if span / step <= 8)
    return [place * step for place in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _gap(axis: Axis) -> int:
    """Pixels between cells; none where they are narrow."""
    return 1 if len(axis.labels) <= _MOST_APART else 0


def _crosses(doubtful: np.ndarray) -> go.Scatter:
    """Light crosses with a dark edge, to be seen on any colour."""
    down, across = np.nonzero(doubtful)
    size = 9 if doubtful.size <= 400 else 5
    return go.Scatter(
        x=across.tolist(),
        y=down.tolist(),
        mode="markers",
        marker={
            "symbol": "x",
            "size": size,
            "color": "white",
            "line": {"color": "black", "width": 1},
        },
        name="the interval includes 0",
        showlegend=True,
        hoverinfo="skip",
    )


def _hovers(cells: ReleasedCells, down: Axis, across: Axis) -> list[list[str]]:
    values, margins = cells.value.tolist(), cells.margin.tolist()
    unbiased = cells.unbiased.tolist()
    left = [plotly_text(label) for label in down.labels]
    top = [plotly_text(label) for label in across.labels]
    return [
        [
            f"{left[row]}, {top[column]}<br>"
            + (f"processed: {_count(values[row][column])}<br>unbiased: " if cells.is_biased else "")
            + f"{_count(unbiased[row][column])} ±{rounded(margins[row][column], 3)}"
            for column in range(len(top))
        ]
        for row in range(len(left))
    ]


def _count(value: float) -> str:
    return f"{value:,.1f}".replace("-", "−")
