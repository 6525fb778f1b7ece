"""The cells of a table: noisy counts with their intervals, and accuracy as a heat map."""

import math
from collections.abc import Sequence

import numpy as np

from rpexplore.analysis.cell_accuracy import CellAccuracy
from rpexplore.analysis.released_cells import ReleasedCells
from rpexplore.common.text import describe_share, rounded
from rpexplore.figures import axes
from rpexplore.figures.axes import go, shortened, shortened_labels

# Colours of the heat map are told apart in light and dark themes and by the colour-blind: lightness
# runs one way from 0, and blue is above it, orange below. What may be 0 is seen without colour.


MOST_BARS, MOST_GROUPS = 1000, len(axes.STYLES)
MOST_CELLS = 250  # of the heat map, along each axis

_BAR, _ROW = 12, 24  # pixels of a bar among others, and of a row at least
_FRAME = 110  # pixels of a figure around its rows
_LONG_FIGURE = 700  # pixels: of more, the axis of counts is on top

_PATTERNS = ("", "/", ".", "x", "-", "+")  # of the groups' bars, beside their colours
_LEGEND = 40  # characters of a group's name
_EVERY_MARK = 200  # bars: of more, intervals are lines without ends

# Cells in all, and along an axis: of more, those that may be 0 are left blank instead of crossed.
_MOST_CROSSED, _MOST_APART = 1500, 60
_WIDE = 30  # times the median margin: counts beyond are coloured by their logarithm
_NONE = (186, 193, 202)  # the colour of 0
_ABOVE, _BELOW = ((84, 138, 208), (36, 80, 156)), ((210, 115, 50), (140, 58, 16))
_RELIABILITY = [[0.0, "#a9cfc0"], [0.5, "#b98a35"], [1.0, "#7c2d12"]]
_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


def bars_with_intervals(cells: ReleasedCells, unit: str) -> go.Figure:
    """Bars on their side along the first axis, grouped by the values of a second if there is one.

    The figure is as high as the bars need, each row with its label. Of processed counts, the
    unbiased ones stand beside as marks, and the intervals are theirs.
    cells: of at most `MOST_GROUPS` values on its second axis.
    """
    figure = go.Figure()
    along, *beside = cells.axes
    groups = beside[0].headings if beside else ("",)
    names = shortened_labels(groups, _LEGEND)
    few = cells.value.size <= _EVERY_MARK
    for group, (label, short) in enumerate(zip(groups, names, strict=True)):
        part = cells.at({axis.name: group for axis in beside})
        interval = {
            "type": "data",
            "array": [axes.drawn(margin) for margin in part.margin.tolist()],
            "color": axes.GREY,
            "thickness": 1.5 if few else 1,
            "width": 3 if few else 0,
        }
        look = axes.style(group)
        bars = go.Bar(
            x=[axes.drawn(value) for value in part.value.tolist()],
            y=list(range(part.value.size)),
            orientation="h",
            error_x=None if part.has_unbiased else interval,
            offsetgroup=str(group),
            marker={
                "color": look.fill(0.65),
                "line": {"color": look.colour, "width": 1},
                "pattern": {"shape": _PATTERNS[group % len(_PATTERNS)], "fgcolor": look.colour},
            },
            hovertext=_hovers(
                part, [f"{value}, {label}" if label else value for value in along.headings]
            ),
            hovertemplate="%{hovertext}<extra></extra>",
        )
        figure.add_trace(bars.update(name=axes.plotly_text(short) or _kind(part)))
        if cells.has_unbiased:
            # One entry in the legend stands for the marks of all groups.
            figure.add_trace(
                go.Scatter(
                    x=[axes.drawn(value) for value in part.unbiased.tolist()],
                    y=list(range(part.value.size)),
                    orientation="h",
                    error_x=interval,
                    mode="markers",
                    marker={"symbol": "diamond", "size": 6, "color": axes.GREY},
                    offsetgroup=str(group),
                    hoverinfo="skip",
                    name="unbiased, with its interval",
                    showlegend=group == 0,
                    legendgroup="unbiased",
                )
            )
    height = _FRAME + len(along.labels) * max(_ROW, _BAR * (len(groups) + 1))
    figure.update_yaxes(axes.row_axis(along.headings), title=axes.plotly_text(along.name))
    figure.update_xaxes(
        title=axes.plotly_text(unit),
        side="top" if height > _LONG_FIGURE else "bottom",
        tickformat=",",
        gridcolor=axes.GRID,
        zeroline=True,
        zerolinecolor=axes.GREY,
    )
    if beside:
        figure.update_layout(legend_title_text=axes.plotly_text(beside[0].name))
    figure.update_layout(barmode="group", scattermode="group", bargap=0.2)
    axes.with_layout(figure, height, legend=bool(beside) or cells.has_unbiased, t=40)
    # From the top of the figure: a share of a high one would be far above its bars.
    return figure.update_layout(legend={"y": 1, "yref": "container", "yanchor": "top"})


def _kind(cells: ReleasedCells) -> str:
    if cells.is_adaptive:
        return "estimated (adaptive, biased)"
    if cells.is_smooth:
        return "smooth (biased)"
    return "processed (biased)" if cells.is_biased else "noisy figure"


def is_crossed(cells: ReleasedCells) -> bool:
    """Whether cells that may be 0 are marked by crosses; else they are left blank."""
    along = max(len(axis.labels) for axis in cells.axes)
    return cells.value.size <= _MOST_CROSSED and along <= _MOST_APART


def heat_map(cells: ReleasedCells, what: str, *, by_margin: bool) -> go.Figure:
    """The cells, the first axis down and the second across.

    what: "counts of people"
    by_margin: colours show the margin over the unbiased figure, up to 100 %, instead of figures.
    cells: of at most `MOST_CELLS` values on each of two axes.
    """
    down, across = cells.axes
    doubtful = cells.marked(by_margin=by_margin)
    colours, look = _by_margin(cells) if by_margin else _by_figure(cells, what)
    z = np.vectorize(axes.drawn)(colours).astype(object)
    z[np.isnan(cells.value)] = None
    if not is_crossed(cells):
        z[doubtful] = None
    hovers = _hovers(cells, [f"{left}, {top}" for left in down.headings for top in across.headings])
    figure = go.Figure(
        go.Heatmap(
            z=z.tolist(),
            x=list(range(len(across.labels))),
            y=list(range(len(down.labels))),
            hovertext=np.reshape(hovers, z.shape).tolist(),
            hovertemplate="%{hovertext}<extra></extra>",
            hoverongaps=True,
            # Pixels between cells; none where they are narrow.
            xgap=int(len(across.labels) <= _MOST_APART),
            ygap=int(len(down.labels) <= _MOST_APART),
            **look,
        )
    )
    if is_crossed(cells) and np.any(doubtful):
        # Light crosses with a dark edge, to be seen on any colour.
        rows, columns = np.nonzero(doubtful)
        figure.add_trace(
            go.Scatter(
                x=columns.tolist(),
                y=rows.tolist(),
                mode="markers",
                marker={
                    "symbol": "x",
                    "size": 9 if doubtful.size <= 400 else 5,
                    "color": "white",
                    "line": {"color": "black", "width": 1},
                },
                name="the interval includes 0",
                hoverinfo="skip",
            )
        )
    figure.update_xaxes(axes.category_axis(across.name, across.headings))
    figure.update_yaxes(axes.category_axis(down.name, down.headings, downwards=True))
    height = max(300, min(140 + 26 * len(down.labels), 620))
    return axes.with_layout(figure, height, legend=True, t=40)


def _by_figure(cells: ReleasedCells, what: str) -> tuple[np.ndarray, dict]:
    """Numbers to colour by, and how: around 0 by the figure, far from it by its logarithm."""
    colours, margins = cells.value, cells.margin[~np.isnan(cells.margin)]
    width = float(np.median(margins)) if len(margins) else 0.0
    low = float(np.fmin.reduce(colours, axis=None, initial=0.0))
    high = float(np.fmax.reduce(colours, axis=None, initial=0.0))
    zmin, zmax = low, high if high > low else low + 1.0
    if 0 < _WIDE * width < max(-low, high):
        # 0, and the powers of ten from about a width on, on either side.
        first, last = math.ceil(math.log10(width)), math.floor(math.log10(max(-low, high)))
        powers = [10.0**power for power in range(first, last + 1)]
        ticks = [*(-power for power in powers[::-1]), 0.0, *powers]
        ticks = [tick for tick in ticks if low <= tick <= high]
        positions = [math.asinh(tick / width) for tick in ticks]
        colours = np.arcsinh(colours / width)
        zmin, zmax = math.asinh(zmin / width), math.asinh(zmax / width)
    else:
        ticks = positions = axes.linear_ticks(low, high) if high > low else [0.0]
    # A symmetric scale around 0: equal distance, equal depth of colour.
    reach, zero = max(-zmin, zmax), -zmin / (zmax - zmin)
    scale = []
    if zmin < 0:
        scale += [
            [zero * (1 - share), _colour(_BELOW, share * -zmin / reach)] for share in (1.0, 0.5)
        ]
    scale.append([zero, _colour(_ABOVE, 0.0)])
    if zmax > 0:
        scale += [
            [zero + (1 - zero) * share, _colour(_ABOVE, share * zmax / reach)]
            for share in (0.5, 1.0)
        ]
    return colours, {
        "zmin": zmin,
        "zmax": zmax,
        "colorscale": scale,
        "colorbar": {
            "title": {"text": axes.plotly_text(what), "side": "right"},
            "tickvals": positions,
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
            "title": {"text": "margin as a share of the figure", "side": "right"},
            "tickvals": list(_SHARES),
            "ticktext": texts,
        },
    }


def _colour(side: tuple, share: float) -> str:
    """The colour that far from 0: from none to the side's middle to its end."""
    stops = zip(*(_NONE, *side), strict=True)
    mixed = [round(float(np.interp(share, [0, 0.5, 1], values))) for values in stops]
    return f"rgb({mixed[0]}, {mixed[1]}, {mixed[2]})"


def _hovers(cells: ReleasedCells, labels: Sequence[str]) -> list[str]:
    """The hover text of each cell, in row-major order as the labels."""
    texts = []
    numbers = (array.ravel().tolist() for array in (cells.value, cells.unbiased, cells.margin))
    for label, value, unbiased, margin in zip(labels, *numbers, strict=True):
        if math.isnan(value):
            texts.append(f"{axes.plotly_text(label)}<br>not publishable")
            continue
        text = f"{_count(unbiased)} ±{rounded(margin, 3)}"
        if cells.has_unbiased:
            text = f"processed: {_count(value)}<br>unbiased: {text}"
        texts.append(f"{axes.plotly_text(label)}<br>{text}")
    return texts


def _count(value: float) -> str:
    return f"{value:,.1f}".replace("-", "−")


# ---- Accuracy over the cells of a table: a heat map, a triangle of ranges, or a line.
#
# Colours run from light to dark through one scale whose ends both stand out from light and dark
# backgrounds; the least and the most accurate cell are marked and named as well.


_MOST_MARKED = 60  # points of a line, each with a marker
_WIDE_HEAT_MAP = 8  # times the smallest error: from here on colours go by the logarithm
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
    if high > _WIDE_HEAT_MAP * low:
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
