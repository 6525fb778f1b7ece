"""Average against worst case: the frontier, and where the current plan is."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd
import plotly.graph_objects as go

from rpexplore.common.formatting import rounded
from rpexplore.figures.axes import GRID, log_axis, log_range, plotly_text, style, with_layout

_OVERLAP = 1.001  # marks within this factor in both errors have one label


def average_against_worst(
    frame: pd.DataFrame, bend: int, present: tuple[float, float], worst: str, record_noun: str
) -> go.Figure:
    """The plans of which none is better at both, as a curve; further down and left is better.

    frame: of `analysis.frontier.points_at`; bend: the row to point out; present: (average, largest)
    standard error of the current plan; worst: what the worst case is called
    """
    rows = frame.to_dict("records")
    look, own = style(0), style(1)
    figure = go.Figure(
        go.Scatter(
            x=[row["average"] for row in rows],
            y=[row["largest"] for row in rows],
            mode="lines+markers",
            line=look.line(),
            marker={"symbol": look.marker, "size": 8},
            hovertext=[_hover(row) for row in rows],
            hoverinfo="text",
        )
    )
    figure.add_trace(
        go.Scatter(
            x=[present[0]],
            y=[present[1]],
            mode="markers",
            marker=own.mark(17, 3, is_open=True),
            hoverinfo="skip",
        )
    )
    average = f"average standard error ({plotly_text(record_noun)})"
    axes = (
        _axis([present[0], *frame["average"]], average),
        _axis([present[1], *frame["largest"]], plotly_text(worst)),
    )
    figure.update_xaxes(axes[0])
    figure.update_yaxes(axes[1])
    for label in _labels(rows, bend, present):
        _annotate(figure, label, axes)
    return with_layout(figure, 385)


@dataclass(frozen=True)
class _Label:
    """A text beside a point: on its right, or below it."""

    x: float
    y: float
    text: str
    below: bool = False


def _labels(rows: list[dict], bend: int, present: tuple[float, float]) -> list[_Label]:
    """What the ends, the bend and the current plan are called; one label where two are one."""
    first, middle, last = rows[0], rows[bend], rows[-1]
    labels = [
        _Label(first["average"], first["largest"], "best average"),
        _Label(last["average"], last["largest"], "best worst case", below=True),
    ]
    if 0 < bend < len(rows) - 1:
        text = (
            f"average +{rounded(middle['given_up'], 2)} %, worst case "
            f"−{rounded(middle['gained'], 2)} %"
        )
        labels.append(_Label(middle["average"], middle["largest"], text))
    for index, label in enumerate(labels):
        if _overlap(label.x, present[0]) and _overlap(label.y, present[1]):
            labels[index] = replace(label, text=f"{label.text} (current plan)")
            return labels
    return [*labels, _Label(*present, "current plan")]


def _annotate(figure: go.Figure, label: _Label, axes: tuple[dict, dict]) -> None:
    x, y = (
        math.log10(value) if axis.get("type") == "log" else value
        for value, axis in zip((label.x, label.y), axes, strict=True)
    )
    low, high = axes[0]["range"]
    is_right = x > low + 0.7 * (high - low)
    shift = 0 if label.below else (-14 if is_right else 14)
    figure.add_annotation(
        x=x,
        y=y,
        text=label.text,
        showarrow=False,
        xanchor="right" if is_right else "left",
        xshift=shift,
        yanchor="top" if label.below else "bottom",
        yshift=-8 if label.below else 0,
    )


def _overlap(left: float, right: float) -> bool:
    return max(left, right) <= min(left, right) * _OVERLAP


def _hover(row: dict) -> str:
    return (
        f"average {rounded(row['average'], 4)} (+{rounded(row['given_up'], 2)} %)<br>"
        f"worst case {rounded(row['largest'], 4)} (−{rounded(row['gained'], 2)} %)"
    )


def _axis(values: Sequence[float], title: str) -> dict:
    """Linear where that shows the values well, however close together they are; else log."""
    low, high = min(values), max(values)
    if high > 3 * low:
        return log_axis(*log_range(low, high), f"{title}, log scale")
    margin = max(0.12 * (high - low), 1e-4 * high)
    return {
        "range": [low - margin, high + margin],
        "title": title,
        "gridcolor": GRID,
        "zeroline": False,
        "nticks": 8,
    }
