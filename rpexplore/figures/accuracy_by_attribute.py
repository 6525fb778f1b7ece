"""Accuracy by attribute: a dot for the median, a range for the tables around it."""

import numpy as np
import pandas as pd

from rpexplore.analysis import accuracy_by_attribute
from rpexplore.analysis.forecast import Forecast
from rpexplore.analysis.measures import STANDARD_ERROR, Measure
from rpexplore.common.formatting import capitalised, plural
from rpexplore.figures import axes
from rpexplore.figures.accuracy import quantiles_text
from rpexplore.figures.chart import Chart, columns_of
from rpexplore.figures.plotly_objects import go

_MOST_LINES = 40  # of attributes, before only the ends are drawn


def accuracy_by_attribute_chart(frame: pd.DataFrame, forecast: Forecast, record_noun: str) -> Chart:
    """How accurate the tables are that contain each attribute.

    frame: of `analysis.accuracy_by_attribute.by_attribute`, with a row at least
    """
    drawn, left_out = accuracy_by_attribute.first_and_last(frame, _MOST_LINES)
    remark = (
        "Dots are medians, thick lines hold the middle half of the tables, thin lines reach the "
        "most and the least accurate."
    )
    if left_out:
        remark += f" {plural(left_out, 'attribute')} in between left out; the numbers have all."
    median, measure = float(np.median(forecast.values[forecast.having])), forecast.measure
    return Chart(
        standard_errors_by_attribute(drawn, median, record_noun, measure),
        subject=f"{capitalised(measure.nouns)} of the tables that contain each attribute",
        sentence=accuracy_by_attribute.describe(frame, forecast, record_noun),
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
