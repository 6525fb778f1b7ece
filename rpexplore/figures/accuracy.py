"""Accuracy by number of attributes: the chart of a plan at a glance."""

import math

import pandas as pd

from rpexplore.analysis import accuracy
from rpexplore.analysis.measures import STANDARD_ERROR, Measure
from rpexplore.common.formatting import plural, rounded
from rpexplore.figures import axes
from rpexplore.figures.chart import Chart, columns_of
from rpexplore.figures.plotly_objects import go


def accuracy_by_order_chart(frame: pd.DataFrame, record_noun: str, *, cells_differ: bool) -> Chart:
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

    frame: of `analysis.accuracy.by_order`. Smallest, median and largest carry their numbers; a
    number that would lie on another is left to the hover text.
    """
    rows = frame.to_dict("records")
    low, high = axes.log_range(min(frame["smallest"]), max(frame["largest"]))
    figure = go.Figure()
    for x, row in enumerate(rows):
        figure.add_trace(
            go.Box(
                x=[x],
                q1=[row["lower_quartile"]],
                median=[row["median"]],
                q3=[row["upper_quartile"]],
                lowerfence=[row["smallest"]],
                upperfence=[row["largest"]],
                width=0.3,
                line={"color": axes.BLUE, "width": 2},
                fillcolor=axes.style(0).fill(),
                hoverinfo="skip",
            )
        )
        heights, texts = zip(*_labels(row, math.log(high / low)), strict=True)
        labels = axes.numbers_beside([x + 0.19] * len(texts), heights, texts)
        figure.add_trace(labels.update(hovertext=_hover(row), hoverinfo="text"))
    figure.update_xaxes(
        tickvals=list(range(len(rows))),
        ticktext=[_order_label(row) for row in rows],
        range=[-0.5, len(rows) - 0.2],
        showgrid=False,
        zeroline=False,
    )
    figure.update_yaxes(axes.error_axis(low, high, record_noun))
    return axes.with_layout(figure)


def quantiles_text(row: dict, measure: Measure = STANDARD_ERROR) -> str:
    """How accurate the tables of a row are, for its hover text."""
    least, most = (axes.plotly_text(row[f"{end}_accurate_table"]) for end in ("least", "most"))
    return (
        f"{plural(row['tables'], 'table')}<br>"
        f"largest {measure.text(row['largest'])}: {least}<br>"
        f"three quarters at most {measure.text(row['upper_quartile'])}<br>"
        f"half at most {measure.text(row['median'])}<br>"
        f"one quarter at most {measure.text(row['lower_quartile'])}<br>"
        f"smallest {measure.text(row['smallest'])}: {most}"
    )


def _labels(row: dict, span: float) -> list[tuple[float, str]]:
    """(where, text) of the numbers beside a box, those that stand clear of the median's."""
    median, is_one = row["median"], row["tables"] == 1
    if is_one and row["smallest"] == row["largest"]:
        return [(median, rounded(median, 3, zeros=True))]
    middle = "root mean square" if is_one else "median"
    labels = [(median, f"{middle} {rounded(median, 3, zeros=True)}")]
    for name in ("largest", "smallest"):
        if abs(math.log(row[name] / median)) > 0.05 * span:
            labels.append((row[name], f"{name} {rounded(row[name], 3, zeros=True)}"))
    return labels


def _hover(row: dict) -> str:
    if row["tables"] > 1:
        return quantiles_text(row)
    table = f"{axes.plotly_text(row['least_accurate_table'])}: {rounded(row['median'], 3)}"
    if row["smallest"] == row["largest"]:
        return table
    return (
        f"{table}<br>least accurate cell {rounded(row['largest'], 3)}<br>"
        f"most accurate cell {rounded(row['smallest'], 3)}"
    )


def _order_label(row: dict) -> str:
    name = "total" if row["order"] == 0 else plural(row["order"], "attribute")
    return f"{name}<br>{plural(row['tables'], 'table')}"
