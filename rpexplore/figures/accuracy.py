"""Accuracy by number of attributes: the chart of a plan at a glance."""

import math

import pandas as pd
import plotly.graph_objects as go

from rpexplore.analysis import accuracy
from rpexplore.common.formatting import plural, rounded
from rpexplore.figures.axes import (
    BLUE,
    finished,
    log_axis,
    log_range,
    plotly_text,
    style,
)
from rpexplore.figures.chart import Chart
from rpexplore.figures.columns import columns_of


def chart_by_order(frame: pd.DataFrame, record_noun: str, *, cells_differ: bool) -> Chart:
    """The standard error by number of attributes.

    frame: of `analysis.accuracy.by_order`. cells_differ: whether some table's cells differ in
    accuracy.
    """
    return Chart(
        standard_errors_by_order(frame, record_noun),
        subject="Standard error of a cell by number of attributes",
        sentence=accuracy.describe_by_order(frame, record_noun, cells_differ=cells_differ),
        frame=frame,
        columns=columns_of(frame),
        file="standard_errors_by_order.csv",
        remark=accuracy.describe_boxes(frame, cells_differ=cells_differ),
    )


def standard_errors_by_order(frame: pd.DataFrame, record_noun: str) -> go.Figure:
    """Box-like quantiles of the standard error for each number of attributes, on a log axis.

    frame: of `analysis.standard_errors.by_order`. Smallest, median and largest carry their
    numbers; a number that would lie on another is left to the hover text.
    """
    rows = frame.to_dict("records")
    low, high = log_range(min(row["smallest"] for row in rows), max(row["largest"] for row in rows))
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
                fillcolor=style(0).fill(),
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
    title = f"standard error of a cell ({plotly_text(record_noun)}, log scale)"
    figure.update_yaxes(log_axis(low, high, title))
    return finished(figure)


def _labels(row: dict, span: float) -> list[tuple[float, str]]:
    """(where, text) of the numbers beside a box, those that stand clear of the median's."""
    median = row["median"]
    if row["tables"] == 1 and row["smallest"] == row["largest"]:
        return [(median, rounded(median, 3, zeros=True))]
    middle = "median" if row["tables"] > 1 else "typical"
    labels = [(median, f"{middle} {rounded(median, 3, zeros=True)}")]
    for name, value in (("worst", row["largest"]), ("best", row["smallest"])):
        if abs(math.log(value / median)) > 0.05 * span:
            labels.append((value, f"{name} {rounded(value, 3, zeros=True)}"))
    return labels


def _hover(row: dict) -> str:
    if row["tables"] == 1:
        table = f"{plotly_text(row['worst_table'])}: {rounded(row['median'], 3)}"
        if row["smallest"] == row["largest"]:
            return table
        return (
            f"{table}<br>worst cell {rounded(row['largest'], 3)}<br>"
            f"best cell {rounded(row['smallest'], 3)}"
        )
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
