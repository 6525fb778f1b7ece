"""What all figures share: Plotly, colours, marks, axes, labels and user text."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from rpexplore.analysis.measures import STANDARD_ERROR, Measure
from rpexplore.common.installation import require

require("plotly", "app", "charts and reports")

import plotly.graph_objects as go  # noqa: E402 - first it is said what is missing

# Colours read on light and dark backgrounds (at least 3:1 on both); text colour, font and
# background are left to whoever shows the figure. Series differ in mark and dash as well, and are
# labelled where they are, so that nothing is told by colour alone.


BLUE = "#3c76c3"
GREY = "#7f858d"
GRID = "rgba(127, 139, 153, 0.2)"

_MOST_TICKS = 12  # labels on an axis of labels; half as many where they are long
_LONG = 8  # characters of a label that counts as long
_ACROSS = 18  # characters of a label where others stand beside it


@dataclass(frozen=True)
class Style:
    """How one series is drawn: colour, marker and dash in Plotly's words."""

    colour: str
    marker: str
    dash: str

    def fill(self, opacity: float = 0.25) -> str:
        """The colour as a translucent fill."""
        red, green, blue = bytes.fromhex(self.colour[1:])
        return f"rgba({red}, {green}, {blue}, {opacity})"

    def line(self, **more: object) -> dict:
        """The line of a curve."""
        return {"color": self.colour, "dash": self.dash, "width": 2.5} | more

    def mark(self, size: int = 10, edge: int = 2, *, is_open: bool = False) -> dict:
        """A mark for a single point, filled or hollow."""
        return {
            "symbol": f"{self.marker}-open" if is_open else self.marker,
            "size": size,
            "color": self.colour,
            "line": {"color": self.colour, "width": edge},
        }


STYLES = (
    Style(BLUE, "circle", "solid"),
    Style("#c2571a", "square", "dash"),
    Style("#1b8a6b", "diamond", "dot"),
    Style("#9a5fc0", "triangle-up", "dashdot"),
    Style("#c2458b", "x", "longdash"),
    Style("#8a7a1c", "cross", "longdashdot"),
)


def style(series: int) -> Style:
    """The style of a series by its number, starting over after the last."""
    return STYLES[series % len(STYLES)]


def with_layout(
    figure: go.Figure, height: int = 380, *, legend: bool = False, **margins: float
) -> go.Figure:
    """The figure with the layout of all of them.

    legend: above the chart, where there is one. margins: l, r, t, b, in pixels where not 10
    """
    return figure.update_layout(
        margin={"l": 10, "r": 10, "t": 10, "b": 10} | margins,
        height=height,
        dragmode=False,
        showlegend=legend,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
    )


def drawn(value: float) -> float:
    """A number with as many digits as a picture needs."""
    return float(f"{value:.6g}")


# Where points can be clicked, all stay as they are but the one that was.
UNFADED = {"unselected": {"marker": {"opacity": 1}}, "selected": {"marker": {"size": 13}}}


def point(x: float, y: float, mark: dict) -> go.Scatter:
    """A single point that says nothing when it is pointed at; mark: of `Style.mark`."""
    return points([x], [y], mark)


def points(
    x: Sequence[float], y: Sequence[float], mark: dict, hovers: Sequence[str] = ()
) -> go.Scatter:
    """Points that look alike; mark: of `Style.mark`; hovers: what each says, if any does."""
    return go.Scatter(
        x=x,
        y=y,
        mode="markers",
        marker=mark,
        hovertext=hovers or None,
        hoverinfo="text" if hovers else "skip",
        unselected=UNFADED["unselected"],
    )


def numbers_beside(x: Sequence[float], y: Sequence[float], texts: Sequence[str]) -> go.Scatter:
    """Texts to the right of points."""
    return go.Scatter(
        x=x,
        y=y,
        text=texts,
        mode="text",
        textposition="middle right",
        hoverinfo="skip",
        cliponaxis=False,
    )


def row_bars(
    labels: Sequence[object],
    values: Sequence[float],
    ends: Sequence[float],
    texts: Sequence[str],
    *,
    hover: str,
    marker: dict,
    room: float,
) -> go.Figure:
    """A figure with the bars.

    Args:
        labels: What the rows are called, [n].
        values: The lengths of the bars, [n].
        ends: Beyond which values the numbers stand, [n].
        texts: The numbers, [n].
        hover: How Plotly shows a value.
        marker: How Plotly draws the bars.
        room: For the numbers, as a share of the largest end.
    """
    rows, most = list(range(len(labels))), max(ends)
    bars = go.Bar(
        x=values,
        y=rows,
        orientation="h",
        marker=marker,
        hovertext=[plotly_text(str(label)) for label in labels],
        hovertemplate=f"%{{hovertext}}: {hover}<extra></extra>",
        showlegend=False,
    )
    numbers = numbers_beside([end + 0.02 * most for end in ends], rows, texts)
    figure = go.Figure([bars, numbers.update(showlegend=False)])
    figure.update_xaxes(
        range=[0, (1 + room) * most],
        showticklabels=False,  # each bar has its number
        showgrid=False,
        zeroline=False,
    )
    figure.update_yaxes(row_axis(labels))
    return figure.update_layout(bargap=0.35)


def log_axis(
    low: float, high: float, title: str | None = None, measure: Measure = STANDARD_ERROR
) -> dict:
    """Settings of a Plotly log axis from `low` to `high` with round ticks; measure: of values."""
    ticks = log_ticks(low, high)
    return {
        "type": "log",
        "range": [math.log10(low), math.log10(high)],
        "tickvals": ticks,
        "ticktext": [measure.text(tick, 4) for tick in ticks],
        "title": title,
        "gridcolor": GRID,
    }


def error_axis(
    low: float,
    high: float,
    record_noun: str,
    measure: Measure = STANDARD_ERROR,
    of: str = " of a cell",
) -> dict:
    """Settings of a Plotly log axis of standard errors, or of another measure."""
    title = measure.label(plotly_text(record_noun), "log scale", of)
    return log_axis(low, high, title, measure)


def share_axis(title: str, low: float, high: float) -> dict:
    """Settings of a Plotly axis of shares, with ticks from 0 to 100 %."""
    return {
        "title": title,
        "range": [low, high],
        "tickvals": [tenth / 10 for tenth in range(0, 11, 2)],
        "ticktext": [f"{10 * tenth} %" for tenth in range(0, 11, 2)],
        "gridcolor": GRID,
        "zeroline": False,
    }


def row_axis(labels: Sequence[object]) -> dict:
    """Settings of a Plotly y axis with one label a row, at 0, 1, … from the top."""
    return {
        "tickvals": list(range(len(labels))),
        "ticktext": [plotly_text(label) for label in shortened_labels([*map(str, labels)])],
        "range": [len(labels) - 0.4, -0.6],
        "showgrid": False,
        "zeroline": False,
    }


def log_range(smallest: float, largest: float) -> tuple[float, float]:
    """Limits of a log axis: some room around the data, and never less than a factor of two."""
    margin = max((largest / smallest) ** 0.12, math.sqrt(2 * smallest / largest), 1.05)
    return smallest / margin, largest * margin


def log_ticks(low: float, high: float) -> list[float]:
    """Round numbers within a range, few enough to read on a log axis.

    Even steps within a factor of ten; from there 1-2-5 steps, thinned out to decades if needed.
    """
    if high / low < 10:
        return linear_ticks(low, high)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if len(decades) <= 4 else (1,)
    ticks = [step * 10.0**e for e in decades[:: math.ceil(len(decades) / 9)] for step in steps]
    return [tick for tick in ticks if low <= tick <= high]


def linear_ticks(low: float, high: float) -> list[float]:
    """The multiples of a round step within a range, about eight at most."""
    exponent = math.floor(math.log10(high - low)) - 1
    steps = [nice * 10.0**e for e in (exponent, exponent + 1) for nice in (1, 2, 5)]
    step = next(step for step in steps if (high - low) / step <= 8)
    return [count * step for count in range(math.ceil(low / step), math.floor(high / step) + 1)]


def plotly_text(text: str) -> str:
    """User text for a figure, where Plotly would read tags and entities."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def category_axis(name: str, labels: Sequence[str], *, downwards: bool = False) -> dict:
    """Settings of a Plotly axis of labels at 0, 1, …; downwards: the first on top.

    About a dozen labels are written, fewer where they are long; downwards more.
    """
    is_long = max(map(len, labels)) > _LONG
    most = _MOST_TICKS // 2 if is_long and not downwards else _MOST_TICKS
    if downwards:
        most = 2 * _MOST_TICKS
    needed = math.ceil(len(labels) / most)
    steps = (nice * 10**power for power in range(7) for nice in (1, 2, 5))
    ticks = list(range(0, len(labels), next(step for step in steps if step >= needed)))
    ends = [-0.5, len(labels) - 0.5]
    short = shortened_labels(labels, LONGEST if downwards else _ACROSS)
    return {
        "title": plotly_text(name),
        "tickvals": ticks,
        "ticktext": [plotly_text(short[tick]) for tick in ticks],
        "range": ends[::-1] if downwards else ends,
        "showgrid": False,
        "zeroline": False,
    }


def spread_apart(positions: Sequence[float], gap: float) -> list[float]:
    """Places for labels that belong at these positions, at least `gap` apart, as near as can be.

    In the order given; labels that belong at one position keep their order, the first one highest.
    """
    descending = sorted(range(len(positions)), key=lambda label: -positions[label])
    # Moved together by their rank, "at least a gap apart" is "not ascending": the least-squares
    # answer pools neighbours that would be (as in isotonic regression).
    pools: list[tuple[float, int]] = []  # (mean, how many)
    for rank, label in enumerate(descending):
        mean, count = positions[label] + rank * gap, 1
        while pools and pools[-1][0] < mean:
            before, many = pools.pop()
            mean, count = (before * many + mean * count) / (many + count), many + count
        pools.append((mean, count))
    moved = [0.0] * len(positions)
    means = (mean for mean, count in pools for _ in range(count))
    for rank, (label, mean) in enumerate(zip(descending, means, strict=True)):
        moved[label] = mean - rank * gap
    return moved


def marked_line(figure: go.Figure, value: float, text: str) -> None:
    """An upright dotted line at a value of a logarithmic x axis, with its text on top."""
    line = {"color": GREY, "width": 1.5, "dash": "dot"}
    ends = {"x0": value, "x1": value, "y0": 0, "y1": 1, "yref": "paper"}
    figure.add_shape(type="line", **ends, line=line, layer="below")
    # Unlike shapes, annotations are placed by the logarithm.
    figure.add_annotation(
        x=math.log10(value), y=1, yref="paper", yanchor="bottom", text=text, showarrow=False
    )


# ---- Labels of one axis, short enough to stand there: cut where they agree, not where they
# differ.


LONGEST = 30  # characters of a label in a figure

_BETWEEN = " ,;:–-"  # what a label does not begin with
_COMMON, _MANY = 8, 3  # a start this long, in characters, of this many labels says nothing
_HEAD = 6  # characters of a start that are worth keeping


def shortened(text: str, longest: int = LONGEST) -> str:
    """The text, cut where it is too long for a label."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def shortened_labels(labels: Sequence[str], longest: int = LONGEST) -> list[str]:
    """The labels, those that are too long cut so that different ones still look different.

    Left out is a start that a label has in common with others, or its middle; the end is cut where
    that is not enough. Where all this fails, labels stay as long as they are.

    Example:
        >>> shortened_labels(["Employed, full time", "Employed, part time", "Retired"], 12)
        ['…full time', '…part time', 'Retired']
    """
    if all(len(label) <= longest for label in labels):
        return list(labels)
    # All beginnings of each label, word by word.
    starts = {
        label: list(accumulate(re.findall(r"\w+|\W+", label))) for label in dict.fromkeys(labels)
    }
    counts = Counter(start for of_label in starts.values() for start in of_label)
    short = {
        label: _cut(label, _in_common(label, of_label, counts, longest), longest)
        for label, of_label in starts.items()
    }
    alike = Counter(short.values())
    return [short[label] if alike[short[label]] == 1 else label for label in labels]


def _in_common(label: str, starts: Sequence[str], counts: Counter[str], longest: int) -> int:
    """How many characters at the start to leave out; 0: none.

    As few as needed, behind which the label differs from others that begin alike.
    """
    lengths = [
        len(start)
        for start, longer in pairwise(starts)
        if counts[start] > counts[longer]
        and (len(start) >= longest / 2 or (len(start) >= _COMMON and counts[start] >= _MANY))
    ]
    fitting = [length for length in lengths if len(label) - length < longest]
    return next(iter(fitting), max(lengths, default=0))


def _cut(label: str, start: int, longest: int) -> str:
    """The label if it is short, else without what it has in common, and its end if need be."""
    if len(label) <= longest or start == 0:
        return shortened(label, longest)
    own = label[start:].lstrip(_BETWEEN) or label[start:]
    # Of the start, the whole words that there is room for.
    head = label[: max(longest - len(own), 0)].rpartition(" ")[0].rstrip(_BETWEEN)
    if len(head) < _HEAD:
        head = ""
    return f"{head}…{shortened(own, longest - 1 - len(head))}"
