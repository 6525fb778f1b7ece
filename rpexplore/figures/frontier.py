"""Average against worst case: the frontier, and where the current plan is."""

import math
from collections.abc import Sequence
from typing import TypeAlias

import pandas as pd

from rpexplore.analysis.measures import STANDARD_ERROR, Measure
from rpexplore.common.formatting import rounded
from rpexplore.figures import axes
from rpexplore.figures.plotly_objects import go

# A text, the point that it belongs to, and whether it stands below that.
_Label: TypeAlias = tuple[str, tuple[float, float], bool]

_OVERLAP = 1.001  # marks within this factor in both errors have one label


def average_against_worst(
    frame: pd.DataFrame,
    bend: int,
    present: tuple[float, float],
    worst: str,
    record_noun: str,
    measure: Measure = STANDARD_ERROR,
) -> go.Figure:
    """The plans of which none is better at both, as a curve; further down and left is better.

    frame: of `analysis.frontier.points_at`; bend: the row to point out; present: (average, largest)
    of the current plan; worst: what the worst case is called
    """
    rows = frame.to_dict("records")
    look = axes.style(0)
    figure = go.Figure(
        go.Scatter(
            x=[row["average"] for row in rows],
            y=[row["largest"] for row in rows],
            mode="lines+markers",
            line=look.line(),
            marker={"symbol": look.marker, "size": 8},
            hovertext=[
                f"average {rounded(row['average'], 4)} (+{rounded(row['given_up'], 2)} %)<br>"
                f"worst case {rounded(row['largest'], 4)} (−{rounded(row['gained'], 2)} %)"
                for row in rows
            ],
            hoverinfo="text",
            **axes.UNFADED,
        )
    )
    figure.add_trace(axes.point(*present, axes.style(1).mark(17, 3, is_open=True)))
    average = f"average {measure.noun} ({measure.unit(axes.plotly_text(record_noun))})"
    sides = (
        _axis([present[0], *frame["average"]], average),
        _axis([present[1], *frame["largest"]], axes.plotly_text(worst)),
    )
    figure.update_xaxes(sides[0])
    figure.update_yaxes(sides[1])
    for text, point, below in _labels(rows, bend, present):
        x, y = (
            math.log10(value) if axis.get("type") == "log" else value
            for value, axis in zip(point, sides, strict=True)
        )
        low, high = sides[0]["range"]
        is_right = x > low + 0.7 * (high - low)
        shift = -14 if is_right else 14
        figure.add_annotation(
            x=x,
            y=y,
            text=text,
            showarrow=False,
            xanchor="right" if is_right else "left",
            xshift=0 if below else shift,
            yanchor="top" if below else "bottom",
            yshift=-8 if below else 0,
        )
    return axes.with_layout(figure, 385)


def _labels(rows: list[dict], bend: int, present: tuple[float, float]) -> list[_Label]:
    """Labels of the ends, the bend and the current plan; one label where two coincide."""
    marked = [("best average", rows[0], False), ("best worst case", rows[-1], True)]
    if 0 < bend < len(rows) - 1:
        text = (
            f"average +{rounded(rows[bend]['given_up'], 2)} %, worst case "
            f"−{rounded(rows[bend]['gained'], 2)} %"
        )
        marked.append((text, rows[bend], False))
    labels = [(text, (row["average"], row["largest"]), below) for text, row, below in marked]
    for index, (text, point, below) in enumerate(labels):
        if all(map(_overlap, point, present)):
            labels[index] = (f"{text} (current plan)", point, below)
            return labels
    return [*labels, ("current plan", present, False)]


def _overlap(left: float, right: float) -> bool:
    return max(left, right) <= min(left, right) * _OVERLAP


def _axis(values: Sequence[float], title: str) -> dict:
    """Linear where that shows the values well, however close together they are; else log."""
    low, high = min(values), max(values)
    if high > 3 * low:
        return axes.log_axis(*axes.log_range(low, high), f"{title}, log scale")
    margin = max(0.12 * (high - low), 1e-4 * high)
    return {
        "range": [low - margin, high + margin],
        "title": title,
        "gridcolor": axes.GRID,
        "zeroline": False,
        "nticks": 8,
    }
