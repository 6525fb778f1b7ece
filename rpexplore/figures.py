"""Figures: tidy DataFrames in, Plotly figures out. Small ones: data is aggregated before.

Colours read on light and dark backgrounds (at least 3:1 on both); text colour, font and
background are left to whoever shows the figure.
"""

import math

import pandas as pd
import plotly.graph_objects as go

from rpexplore.words import plural, rounded

BLUE = "#3c76c3"
_FILL = "rgba(60, 118, 195, 0.25)"
_GRID = "rgba(127, 139, 153, 0.2)"


def standard_errors_by_order(frame: pd.DataFrame, counted: str) -> go.Figure:
    """Box-like quantiles of the standard error for each number of attributes, on a log axis.

    frame: of `analysis.standard_errors.by_order`. Smallest, median and largest carry their
    numbers; a number that would lie on another is left to the hover text.
    """
    rows = frame.to_dict("records")
    low, high = _log_range(
        min(row["smallest"] for row in rows), max(row["largest"] for row in rows)
    )
    figure = go.Figure()
    for place, row in enumerate(rows):
        figure.add_trace(
            go.Box(
                x=[place],
                q1=[row["lower_quartile"]],
                median=[row["median"]],
                q3=[row["upper_quartile"]],
                lowerfence=[row["smallest"]],
                upperfence=[row["largest"]],
                width=0.3,
                line={"color": BLUE, "width": 2},
                fillcolor=_FILL,
                hoverinfo="skip",
                showlegend=False,
            )
        )
        labels = _labels(row, math.log(high / low))
        figure.add_trace(
            go.Scatter(
                x=[place + 0.19] * len(labels),
                y=[value for value, _ in labels],
                text=[text for _, text in labels],
                mode="text",
                textposition="middle right",
                hovertext=_hover(row),
                hoverinfo="text",
                showlegend=False,
                cliponaxis=False,
            )
        )
    figure.update_xaxes(
        tickvals=list(range(len(rows))),
        ticktext=[_order_label(row) for row in rows],
        range=[-0.5, len(rows) - 0.2],
        showgrid=False,
        zeroline=False,
    )
    ticks = log_ticks(low, high)
    figure.update_yaxes(
        type="log",
        range=[math.log10(low), math.log10(high)],
        tickvals=ticks,
        ticktext=[rounded(tick, 4) for tick in ticks],
        title=f"standard error of a cell ({plotly_text(counted)}, log scale)",
        gridcolor=_GRID,
    )
    figure.update_layout(margin={"l": 10, "r": 10, "t": 10, "b": 10}, height=380, dragmode=False)
    return figure


def log_ticks(low: float, high: float) -> list[float]:
    """Round numbers within a range, few enough to read on a log axis.

    Even steps within a factor of ten; from there 1-2-5 steps, thinned out to decades if needed.
    """
    if high / low < 10:
        exponent = math.floor(math.log10(high - low)) - 1
        steps = [nice * 10.0**e for e in (exponent, exponent + 1) for nice in (1, 2, 5)]
        step = next(step for step in steps if (high - low) / step <= 8)
        first, last = math.ceil(low / step), math.floor(high / step)
        return [place * step for place in range(first, last + 1)]
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if len(decades) <= 4 else (1,)
    ticks = [step * 10.0**e for e in decades[:: math.ceil(len(decades) / 9)] for step in steps]
    return [tick for tick in ticks if low <= tick <= high]


def plotly_text(text: str) -> str:
    """User text for a figure, where Plotly would read tags and entities."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _log_range(smallest: float, largest: float) -> tuple[float, float]:
    """Limits of the axis: some room around the data, and never less than a factor of two."""
    margin = max((largest / smallest) ** 0.12, math.sqrt(2 * smallest / largest), 1.05)
    return smallest / margin, largest * margin


def _labels(row: dict, span: float) -> list[tuple[float, str]]:
    """(where, text) of the numbers beside a box, those that stand clear of the median's."""
    median = row["median"]
    if row["tables"] == 1:
        return [(median, rounded(median, 3, zeros=True))]
    labels = [(median, f"median {rounded(median, 3, zeros=True)}")]
    for name, value in (("worst", row["largest"]), ("best", row["smallest"])):
        if abs(math.log(value / median)) > 0.05 * span:
            labels.append((value, f"{name} {rounded(value, 3, zeros=True)}"))
    return labels


def _hover(row: dict) -> str:
    if row["tables"] == 1:
        return f"{plotly_text(row['worst_table'])}: {rounded(row['median'], 3)}"
    return (
        f"{plural(row['tables'], 'table')}<br>"
        f"worst {rounded(row['largest'], 3)}: {plotly_text(row['worst_table'])}<br>"
        f"three quarters at most {rounded(row['upper_quartile'], 3)}<br>"
        f"half at most {rounded(row['median'], 3)}<br>"
        f"one quarter at most {rounded(row['lower_quartile'], 3)}<br>"
        f"best {rounded(row['smallest'], 3)}: {plotly_text(row['best_table'])}"
    )


def _order_label(row: dict) -> str:
    name = "total" if row["order"] == 0 else plural(row["order"], "attribute")
    return f"{name}<br>{plural(row['tables'], 'table')}"
