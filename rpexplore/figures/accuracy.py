"""Accuracy of tables: by number of attributes, by attribute, and as a distribution."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from rpexplore.analysis import accuracy, distributions, fairness
from rpexplore.analysis.measures import STANDARD_ERROR, Accuracy, Measure
from rpexplore.common.text import capitalised, plural, rounded
from rpexplore.figures import axes
from rpexplore.figures.axes import go
from rpexplore.figures.chart import Chart, Column, columns_of

# ---- Accuracy by number of attributes: the chart of a plan at a glance.


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


# ---- Accuracy by attribute: a dot for the median, a range for the tables around it.


_MOST_LINES = 40  # of attributes, before only the ends are drawn


def accuracy_by_attribute_chart(frame: pd.DataFrame, accuracy: Accuracy, record_noun: str) -> Chart:
    """How accurate the tables are that contain each attribute.

    frame: of `analysis.accuracy_by_attribute.by_attribute`, with a row at least
    """
    drawn, left_out = fairness.first_and_last(frame, _MOST_LINES)
    remark = (
        "Dots are medians, thick lines hold the middle half of the tables, thin lines reach the "
        "most and the least accurate."
    )
    if left_out:
        remark += f" {plural(left_out, 'attribute')} in between left out; the numbers have all."
    median, measure = float(np.median(accuracy.values[accuracy.having])), accuracy.measure
    return Chart(
        standard_errors_by_attribute(drawn, median, record_noun, measure),
        subject=f"{capitalised(measure.nouns)} of the tables that contain each attribute",
        sentence=fairness.describe(frame, accuracy, record_noun),
        frame=frame,
        columns=columns_of(frame, measure),
        file=f"{measure.column}_by_attribute.csv",
        remark=remark,
        title="By attribute",
    )


def standard_errors_by_attribute(
    frame: pd.DataFrame, median: float, record_noun: str, measure: Measure = STANDARD_ERROR
) -> go.Figure:
    """One line an attribute, in the order of the frame from the top.

    frame: of `analysis.accuracy_by_attribute.by_attribute`, or some of its rows
    median: that of all tables, marked for comparison
    measure: that of the frame
    """
    rows = frame.to_dict("records")
    figure = go.Figure()
    ranges = (("smallest", "largest", 2, 0.55), ("lower_quartile", "upper_quartile", 8, 0.35))
    for low, high, width, opacity in ranges:
        # One trace for all lines: ends and a gap for each.
        figure.add_trace(
            go.Scatter(
                x=[x for row in rows for x in (row[low], row[high], None)],
                y=[y for row in range(len(rows)) for y in (row, row, None)],
                mode="lines",
                line={"color": axes.style(0).fill(opacity), "width": width},
                hoverinfo="skip",
            )
        )
    figure.add_trace(
        go.Scatter(
            x=[row["median"] for row in rows],
            y=list(range(len(rows))),
            mode="markers+text",
            marker={"color": axes.BLUE, "size": 10},
            text=[measure.text(row["median"], zeros=True) for row in rows],
            textposition="top center",
            hovertext=[
                f"{axes.plotly_text(row['attribute'])}, in {quantiles_text(row, measure)}"
                for row in rows
            ],
            hoverinfo="text",
        )
    )
    low, high = axes.log_range(min(frame["smallest"]), max(frame["largest"]))
    figure.update_xaxes(axes.error_axis(low, high, record_noun, measure), zeroline=False)
    figure.update_yaxes(axes.row_axis(list(frame["attribute"])), range=[len(rows) - 0.4, -0.8])
    axes.marked_line(figure, median, f"median of all tables: {measure.text(median, zeros=True)}")
    return axes.with_layout(figure, 110 + 34 * len(rows), t=30)


# ---- Curves of a share between 0 and 1: how many tables, or cells, reach what.


def distribution_by_order_chart(accuracy: Accuracy, record_noun: str) -> Chart:
    """How many tables are how accurate, by number of attributes."""
    groups, measure = distributions.errors_by_order(accuracy), accuracy.measure
    frame = distributions.quantiles(groups)
    total = distributions.quantiles({0: ("all tables", accuracy.values[accuracy.having])})
    return Chart(
        shares_of_tables(distributions.curves(groups, measure), record_noun, measure),
        subject=f"Share of tables with at most so large a {measure.noun}, by number of attributes",
        sentence=distributions.describe_by_order(frame, record_noun, measure),
        frame=pd.concat([frame, total], ignore_index=True),
        columns=columns_of(frame, measure) | {"series": Column("tables of", "text")},
        file="distribution_by_order.csv",
        remark="The further left a curve, the more accurate its tables; the steeper, the more "
        "alike.",
        title="How many tables are how accurate",
    )


def distribution_by_plan_chart(accuracies: Sequence[Accuracy], record_noun: str) -> Chart:
    """How many tables are how accurate, by plan."""
    groups, measure = distributions.errors_by_plan(accuracies), accuracies[0].measure
    frame = distributions.quantiles(groups)
    return Chart(
        shares_of_tables(distributions.curves(groups, measure), record_noun, measure),
        subject=f"Share of tables with at most so large a {measure.noun}, by plan",
        sentence=distributions.describe_by_plan(frame, record_noun, measure),
        frame=frame,
        columns=columns_of(frame, measure) | {"series": Column("plan", "text")},
        file="distribution_by_plan.csv",
        title="How many would be under another rule",
    )


def shares_of_tables(
    frame: pd.DataFrame, record_noun: str, measure: Measure = STANDARD_ERROR
) -> go.Figure:
    """Distribution functions of the measure: the share of tables with at most so much.

    frame: of `analysis.distributions.curves`
    """
    figure = go.Figure()
    for trace in _traces(frame, measure.column, "hv"):
        trace.hovertemplate = (
            f"%{{y:.0%}} of the tables have a {measure.noun}<br>of at most %{{x:,.3~g}}"
            f"<extra>{axes.plotly_text(str(trace.name))}</extra>"
        )
        figure.add_trace(trace)
    limits = axes.log_range(min(frame[measure.column]), max(frame[measure.column]))
    figure.update_xaxes(axes.error_axis(*limits, record_noun, measure))
    return _with_share_axis(figure, "share of tables")


def _traces(frame: pd.DataFrame, across: str, shape: str) -> list[go.Scatter]:
    traces = []
    for group in sorted(set(frame["group"])):
        rows, look = frame.loc[frame["group"] == group], axes.style(group)
        traces.append(
            go.Scatter(
                x=list(rows[across]),
                y=list(rows["share"]),
                mode="lines",
                line=look.line(shape=shape),
                name=axes.plotly_text(rows["series"].iloc[0]),
            )
        )
    return traces


def _with_share_axis(figure: go.Figure, title: str) -> go.Figure:
    figure.update_yaxes(axes.share_axis(title, -0.02, 1.02))
    return axes.with_layout(figure, 340, legend=True, t=70).update_layout(legend_y=1.1)
