"""Charts for paper: a Plotly figure drawn as SVG by matplotlib, without a browser.

Draws what the report's figures use: the traces of `static_traces` on linear and logarithmic axes,
alone or side by side, with upright lines, notes and a legend. Anything else is refused, so that a
chart on paper never silently lacks what the screen shows.
"""

import io
import textwrap
import threading
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
import plotly.graph_objects as go
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from rpexplore.export.report.static_traces import (
    DASHES,
    POINTS,
    TEXT,
    UndrawableError,
    colour_of,
    draw_trace,
    plain,
)

WIDTH = 7.0  # inches, the column of an A4 page
INCHES = 0.72 / 96  # in a pixel; smaller than on a screen, so that two fit on a page

_FONTS = ("Liberation Sans", "Arial", "DejaVu Sans", "Noto Sans CJK JP", "Noto Sans CJK SC")
_SETTINGS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "rpexplore",  # the same figure, the same bytes
    "font.size": 8.5,
    "axes.edgecolor": "#7f858d",
    "axes.linewidth": 0.6,
    "axes.labelcolor": TEXT,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": "#57606a",
    "ytick.color": "#57606a",
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "text.color": TEXT,
}
_lock = threading.Lock()  # matplotlib's settings are the whole process's


@dataclass(frozen=True, eq=False)
class _Plot:
    """A pair of Plotly's axes, and where matplotlib draws it."""

    x: Any
    y: Any
    axes: Axes


def svg(figure: go.Figure) -> str:
    """The figure as an SVG text, as wide as a column of paper, and in proportion as high.

    Raises `UndrawableError` for what is not drawn here.
    """
    known = set(fontManager.get_font_names())
    families = [name for name in _FONTS if name in known]
    with _lock, matplotlib.rc_context({**_SETTINGS, "font.family": families}):
        size = (WIDTH, INCHES * (figure.layout.height or 400))
        drawn = Figure(figsize=size, layout="constrained")
        _draw(figure, drawn)
        text = io.StringIO()
        with warnings.catch_warnings():
            # Texts are written as such: whoever shows them has more fonts than matplotlib.
            warnings.filterwarnings("ignore", "Glyph .* missing from font")
            drawn.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    return text.getvalue()


def _draw(figure: Any, drawn: Figure) -> None:
    plots = _plots(figure, drawn)
    legend: list[tuple[Any, str]] = []
    for trace in figure.data:
        handle = draw_trace(trace, plots[_axes_of(trace)].axes)
        if handle is not None and trace.name and trace.showlegend is not False:
            legend.append((handle, plain(trace.name)))
    for (across, _), plot in plots.items():
        if plot.y.overlaying is None:  # else the other pair's
            _set_axis(plot.axes, "x", plot.x)
        _set_axis(plot.axes, "y", plot.y, titled=across == (plot.y.anchor or "x"))
    for shape in figure.layout.shapes:
        _draw_line(shape, plots)
    for note in figure.layout.annotations:
        _draw_note(note, plots)
    if legend and figure.layout.showlegend is not False:
        _draw_legend(drawn, legend)


def _axes_of(trace: Any) -> tuple[str, str]:
    """The names of the axes that a trace is drawn on: ("x", "y2")."""
    return trace.xaxis or "x", trace.yaxis or "y"


def _plots(figure: Any, drawn: Figure) -> dict[tuple[str, str], _Plot]:
    """The pairs of axes side by side, in the order of their names."""
    pairs = {
        pair: [figure.layout[f"{name[0]}axis{name[1:]}"] for name in pair]
        for pair in dict.fromkeys(map(_axes_of, figure.data))
    }
    columns = [pair for pair, (_, y) in pairs.items() if y.overlaying is None]
    heights = {tuple(y.domain or (0, 1)) for _, y in pairs.values()}
    if len(heights) > 1:
        raise UndrawableError("plots one below the other")
    grid = drawn.add_gridspec(1, len(columns))
    plots: dict[tuple[str, str], _Plot] = {}
    for place, pair in enumerate(columns):
        x, y = pairs[pair]
        shared = plots[columns[0]].axes if place and (y.matches or pair[1] == "y") else None
        plots[pair] = _Plot(x, y, drawn.add_subplot(grid[0, place], sharey=shared))
        # An axis that several plots have is written beside one of them.
        plots[pair].axes.tick_params(labelleft=pair[0] == (y.anchor or "x"))
    for pair, (x, y) in pairs.items():
        if y.overlaying is not None:
            below = next(plot.axes for other, plot in plots.items() if other[0] == pair[0])
            plots[pair] = _Plot(x, y, below.twinx())
    return plots


def _set_axis(axes: Axes, letter: str, settings: Any, *, titled: bool = True) -> None:
    axis = axes.xaxis if letter == "x" else axes.yaxis
    log = settings.type == "log"
    if log:
        (axes.set_xscale if letter == "x" else axes.set_yscale)("log")
    axis.set_minor_locator(NullLocator())
    if settings.tickvals is not None:
        axis.set_major_locator(FixedLocator(list(map(float, settings.tickvals))))
        axis.set_ticklabels([plain(str(text)) for text in settings.ticktext], parse_math=False)
    elif not log:
        axis.set_major_locator(MaxNLocator(settings.nticks or 6))
    if settings.tickformat == ".0%":
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f} %"))
    elif settings.tickformat is not None:
        raise UndrawableError(f"the tick format {settings.tickformat!r}")
    if settings.range is not None:
        ends = [10.0**end if log else end for end in settings.range]
        (axes.set_xlim if letter == "x" else axes.set_ylim)(*ends)
    if settings.showticklabels is False:
        axis.set_tick_params(labelleft=False)
    if settings.title.text and titled:
        axis.set_label_text(plain(settings.title.text), parse_math=False)
    if settings.showgrid is not False:
        axis.grid(True, color=colour_of(settings.gridcolor or "#e2e5e9"), linewidth=0.6)


def _draw_line(shape: Any, plots: dict[tuple[str, str], _Plot]) -> None:
    """An upright line over the whole height, as `add_vline` makes it."""
    whole = shape.yref == "paper" or str(shape.yref).endswith("domain")
    if shape.type != "line" or shape.x0 != shape.x1 or not whole:
        raise UndrawableError("shapes other than upright lines")
    _plot_at(shape.xref, plots).axes.axvline(
        shape.x0,
        color=colour_of(shape.line.color),
        linestyle=DASHES[shape.line.dash or "solid"],
        linewidth=POINTS * shape.line.width,
    )


def _draw_note(note: Any, plots: dict[tuple[str, str], _Plot]) -> None:
    """The title of a plot, or a note above a place on its axis."""
    if note.showarrow is not False or note.y is None or note.y < 0.99:
        raise UndrawableError("notes other than above a plot")
    text = plain(note.text)
    if note.xref == "paper":
        middles = {sum(plot.x.domain or (0, 1)) / 2: plot for plot in plots.values()}
        plot = middles[min(middles, key=lambda middle: abs(middle - note.x))]
        width = 100 // len(middles)
        plot.axes.set_title(textwrap.fill(text, width), fontsize=8.5, parse_math=False)
        return
    plot = _plot_at(note.xref, plots)
    plot.axes.annotate(
        text,
        (10.0**note.x if plot.x.type == "log" else note.x, 1),
        (0, 3),
        xycoords=plot.axes.get_xaxis_transform(),
        textcoords="offset points",
        ha="center",
        fontsize=8,
        annotation_clip=False,
        parse_math=False,
    )


def _plot_at(name: str | None, plots: dict[tuple[str, str], _Plot]) -> _Plot:
    return next(plot for pair, plot in plots.items() if (name or "x") in pair)


def _draw_legend(drawn: Figure, entries: Sequence[tuple[Any, str]]) -> None:
    # A label that starts with an underscore would be left out.
    labels = [f"\u200b{text}" if text.startswith("_") else text for _, text in entries]
    legend = drawn.legend(
        [handle for handle, _ in entries],
        labels,
        loc="outside upper left",
        ncols=max(1, min(len(entries), 110 // (max(map(len, labels)) + 9))),
        frameon=False,
        fontsize=8,
        handlelength=2.6,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
