"""Curves of a share between 0 and 1: how many tables, or cells, reach what."""

from collections.abc import Sequence

import pandas as pd

from rpexplore.analysis import distributions, relative_errors
from rpexplore.analysis.forecast import Forecast
from rpexplore.analysis.measures import STANDARD_ERROR, Measure
from rpexplore.common.formatting import rounded
from rpexplore.figures import axes
from rpexplore.figures.chart import Chart, Column, columns_of
from rpexplore.figures.plotly_objects import go


def distribution_by_order_chart(forecast: Forecast, record_noun: str) -> Chart:
    """How many tables are how accurate, by number of attributes."""
    groups, measure = distributions.errors_by_order(forecast), forecast.measure
    frame = distributions.quantiles(groups)
    total = distributions.quantiles({0: ("all tables", forecast.values[forecast.having])})
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


def distribution_by_plan_chart(forecasts: Sequence[Forecast], record_noun: str) -> Chart:
    """How many tables are how accurate, by plan."""
    groups, measure = distributions.errors_by_plan(forecasts), forecasts[0].measure
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


def publishable_cells_chart(curves: pd.DataFrame, frame: pd.DataFrame, coefficient: float) -> Chart:
    """How many cells are publishable, by number of attributes.

    curves, frame: of `analysis.relative_errors.curves` and `.by_order`. coefficient: the largest
    coefficient of variation of a publishable cell.
    """
    return Chart(
        shares_of_cells(curves, coefficient),
        subject="Share of publishable cells against the wanted coefficient of variation",
        sentence=relative_errors.describe_by_order(frame, coefficient),
        frame=frame,
        columns=columns_of(frame),
        file="publishable_cells_by_order.csv",
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
            f"%{{y:.0%}} of the tables have a {measure.noun}<br>of at most %{{x:{measure.hover}}}"
            f"<extra>{axes.plotly_text(str(trace.name))}</extra>"
        )
        figure.add_trace(trace)
    limits = axes.log_range(min(frame[measure.column]), max(frame[measure.column]))
    figure.update_xaxes(axes.error_axis(*limits, record_noun, measure))
    return _with_share_axis(figure, "share of tables")


def shares_of_cells(frame: pd.DataFrame, coefficient: float) -> go.Figure:
    """Share of publishable cells against the wanted coefficient of variation, which is marked.

    frame: of `analysis.relative_errors.curves`
    """
    figure = go.Figure()
    for trace in _traces(frame, "coefficient", "linear"):
        trace.hovertemplate = (
            "%{y:.1%} of the cells at a coefficient<br>of variation of %{x:.3~p}"
            f"<extra>{axes.plotly_text(str(trace.name))}</extra>"
        )
        figure.add_trace(trace)
    low, high = min(frame["coefficient"]), max(frame["coefficient"])
    axis = axes.log_axis(low, high, "wanted coefficient of variation (log scale)")
    figure.update_xaxes(axis, ticktext=[f"{rounded(100 * tick, 3)} %" for tick in axis["tickvals"]])
    axes.marked_line(figure, min(max(coefficient, low), high), f"wanted: {100 * coefficient:g} %")
    return _with_share_axis(figure, "share of publishable cells")


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
