"""The traces of charts for paper: lines, marks, texts, boxes and bars, drawn by matplotlib."""

import html
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba

from rpexplore.errors import ExportError

TEXT = "#1b1f24"
POINTS = 0.75  # in a pixel

DASHES = {
    "solid": "solid",
    "dash": (0, (5, 2.5)),
    "dot": (0, (1, 1.6)),
    "dashdot": (0, (5, 2, 1, 2)),
    "longdash": (0, (8, 3)),
    "longdashdot": (0, (8, 2.5, 1, 2.5)),
}
_MARKS = {
    "circle": "o",
    "square": "s",
    "diamond": "D",
    "triangle-up": "^",
    "x": "X",
    "cross": "P",
    "line-ns": "|",
}
_STEPS = {"linear": "default", "hv": "steps-post", "vh": "steps-pre"}


class UndrawableError(ExportError):
    """A figure holds something that is not drawn on paper."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"A chart of this report holds {what}, which cannot be drawn in a PDF; take "
            "report.html, and please report this."
        )


def draw_trace(trace: Any, axes: Axes) -> Any:
    """Draw a trace; returns what stands for it in a legend, None if nothing does."""
    if trace.type == "scatter":
        return _draw_scatter(trace, axes)
    if trace.type == "box":
        return _draw_box(trace, axes)
    if trace.type == "bar":
        return _draw_bars(trace, axes)
    raise UndrawableError(f"a trace of type {trace.type!r}")


def _draw_scatter(trace: Any, axes: Axes) -> Any:
    if trace.fill or trace.error_x.array is not None or trace.error_y.array is not None:
        raise UndrawableError("areas and error bars")
    x, y, mode = floats(trace.x), floats(trace.y), trace.mode
    handle = None
    if "lines" in mode:
        (handle,) = axes.plot(
            x,
            y,
            color=colour_of(trace.line.color),
            linestyle=DASHES[trace.line.dash or "solid"],
            linewidth=POINTS * (trace.line.width or 2),
            drawstyle=_STEPS[trace.line.shape or "linear"],
            solid_capstyle="butt",
        )
    if "markers" in mode:
        handle = _draw_marks(trace.marker, axes, x, y)
    if "text" in mode:
        for across, up, text in zip(x, y, trace.text, strict=True):
            _write(axes, across, up, text, trace.textposition or "middle center")
    return handle


def _draw_marks(marker: Any, axes: Axes, x: np.ndarray, y: np.ndarray) -> Any:
    # A mark that is only a line has no colour but that of its line.
    colour = colour_of(marker.color or marker.line.color or TEXT)
    axes.scatter(
        x,
        y,
        s=_diameters(marker) ** 2,
        marker=_MARKS[marker.symbol or "circle"],
        color=colour,
        alpha=marker.opacity,
        linewidths=POINTS * (marker.line.width or 0),
        clip_on=False,
    )
    # Of one size in the legend, and as plain to see as any other.
    return axes.scatter(
        [], [], s=36, marker=_MARKS[marker.symbol or "circle"], color=colour, linewidths=1.5
    )


def _diameters(marker: Any) -> np.ndarray:
    """Of marks, in points; those by area as Plotly computes them."""
    if np.ndim(marker.size) == 0:
        return np.array(POINTS * (marker.size or 6))
    if marker.sizemode != "area":
        raise UndrawableError("marks of different sizes that are not areas")
    radii = np.sqrt(floats(marker.size) / 2 / marker.sizeref)
    return POINTS * 2 * np.maximum(radii, marker.sizemin or 0)


def _draw_box(trace: Any, axes: Axes) -> Any:
    """Boxes whose quantiles are given; from raw values they would differ from Plotly's."""
    if trace.median is None or trace.orientation == "h":
        raise UndrawableError("boxes that lie, or have to be computed")
    keys = {"q1": "q1", "med": "median", "q3": "q3", "whislo": "lowerfence", "whishi": "upperfence"}
    columns = [floats(trace[name]).tolist() for name in keys.values()]
    boxes = [
        {**dict(zip(keys, row, strict=True)), "fliers": []} for row in zip(*columns, strict=True)
    ]
    line = {"color": colour_of(trace.line.color), "linewidth": POINTS * trace.line.width}
    drawn = axes.bxp(
        boxes,
        positions=floats(trace.x).tolist(),
        widths=trace.width,
        patch_artist=True,
        manage_ticks=False,
        boxprops={"facecolor": colour_of(trace.fillcolor), "edgecolor": line["color"]},
        medianprops=line,
        whiskerprops=line,
        capprops=line,
    )
    return drawn["boxes"][0]


def _draw_bars(trace: Any, axes: Axes) -> Any:
    if trace.orientation != "h" or trace.base is not None:
        raise UndrawableError("bars that stand or float")
    bars = axes.barh(
        floats(trace.y), floats(trace.x), height=0.65, color=colour_of(trace.marker.color)
    )
    if trace.text is not None:
        axes.bar_label(bars, [plain(text) for text in trace.text], padding=3, fontsize=8)
    return bars


def _write(axes: Axes, x: float, y: float, text: str, position: str) -> None:
    """A text beside a point; `position` is where it stands in Plotly's words ("top left")."""
    up, across = position.split()
    shift = {"left": -4, "right": 4}.get(across, 0), {"top": 4, "bottom": -4}.get(up, 0)
    axes.annotate(
        plain(text),
        (x, y),
        shift,
        textcoords="offset points",
        ha={"left": "right", "right": "left"}.get(across, "center"),
        va={"top": "bottom", "bottom": "top"}.get(up, "center"),
        fontsize=8,
        annotation_clip=False,
        parse_math=False,
    )


# ---- Plotly's values


def floats(values: Iterable[Any]) -> np.ndarray:
    """Numbers as float64[n]; None is a gap."""
    return np.array([np.nan if value is None else value for value in values], dtype=float)


def plain(text: str) -> str:
    """A text without Plotly's line breaks and entities."""
    return html.unescape(re.sub(r"<br\s*/?>", "\n", text))


def colour_of(text: str) -> tuple[float, float, float, float]:
    """A colour of CSS as matplotlib has it."""
    match = re.fullmatch(r"rgba?\(([^)]*)\)", text)
    if match is None:
        return to_rgba(text)
    red, green, blue, *opacity = (float(part) for part in match[1].split(","))
    return red / 255, green / 255, blue / 255, opacity[0] if opacity else 1.0
