"""Views of the Fairness page: accuracy by size, its distribution, by table and by attribute."""

from dataclasses import replace

import pandas as pd
import streamlit as st

from pages.components.fairness.forecasts import own_scheme
from pages.components.shared.charts import chart_with_numbers, download_frame, listing, numbers
from pages.components.shared.session import current, escaped, kept
from rpexplore.analysis import accuracy_by_attribute, fairness, shadow_prices, variance_by_size
from rpexplore.analysis.forecast import SCHEMES, Forecast
from rpexplore.common.formatting import plural
from rpexplore.figures.accuracy_by_attribute import accuracy_by_attribute_chart
from rpexplore.figures.chart import COLUMNS, Chart, columns_of
from rpexplore.figures.distributions import distribution_by_order_chart, distribution_by_plan_chart
from rpexplore.figures.fairness import fairness_chart, single_tables
from rpexplore.figures.shadow_prices import shadow_prices_chart

MOST_POINTS = 20_000  # drawn one by one


def tables_by_size(compared: list[Forecast], chosen: Forecast) -> None:
    """The Fairness chart, of all plans."""
    record_noun, own = current().record_noun, own_scheme()
    chart = kept(fairness_chart, tuple(compared), record_noun, own)
    if "table" in chart.frame:
        _draw(chart, chosen, "Point at a mark for the name of its table.")
    else:
        _draw(chart, chosen)
        _single_tables(chosen)


def plans(compared: list[Forecast], chosen: Forecast) -> None:
    """Which share of the tables is how accurate under each plan, and how evenly."""
    record_noun = current().record_noun
    _draw(distribution_by_plan_chart(compared, record_noun), chosen)
    st.subheader("The plans side by side")
    measures, measure = kept(fairness.measures, tuple(compared)), chosen.measure
    sentence = fairness.describe_measures(measures, record_noun, measure)
    st.markdown(escaped(sentence))
    st.dataframe(
        fairness.side_by_side(measures, measure),
        hide_index=True,
        alt=f"Measures of evenness by plan. {sentence}",
        column_config={"measure": "Measure", "meaning": "What it says"},
    )
    download_frame(_with_cell(measures, chosen), "evenness.csv")


def _single_tables(chosen: Forecast) -> None:
    """Points on demand: every table of one plan, or of those that have some attributes."""
    if not st.toggle("Show single tables", key="single tables"):
        return
    containing = st.multiselect(
        "Only tables with all of these attributes",
        chosen.workload.domain.names,
        key="single tables with",
    )
    tables = chosen.workload.containing(containing)
    count = plural(len(tables), "table")
    if len(tables) > MOST_POINTS:
        st.info(f"{count}; at most {MOST_POINTS:,} can be drawn one by one: choose an attribute.")
    elif not len(tables):
        st.info(f"{count}.")
    else:
        frame = variance_by_size.points([chosen], tables)
        chart = Chart(
            single_tables(frame, current().record_noun, chosen.measure),
            subject=f"{chosen.measure.title} of a cell against the size of single tables",
            sentence=f"{count} of “{chosen.name}”, each a mark; point at it for its name.",
            frame=frame,
            columns=columns_of(frame),
            file="single_tables.csv",
        )
        _draw(chart, chosen)


def distribution(chosen: Forecast) -> None:
    """Which share of the tables is how accurate, by number of attributes."""
    chart = distribution_by_order_chart(chosen, current().record_noun)
    _draw(chart, chosen, f"Under “{escaped(chosen.name)}”.")


def tables_by_attribute(chosen: Forecast) -> None:
    """How accurate the tables are that contain each attribute."""
    record_noun = current().record_noun
    frame = kept(accuracy_by_attribute.by_attribute, chosen)
    if frame.empty:
        st.info(escaped(accuracy_by_attribute.describe(frame, chosen, record_noun)))
    else:
        _draw(accuracy_by_attribute_chart(frame, chosen, record_noun), chosen)


def all_tables(chosen: Forecast) -> None:
    """The ten least accurate, the ten most accurate, and all tables."""
    if not fairness.is_even(chosen):  # else the headline says so
        st.markdown(escaped(fairness.describe_unevenness(chosen, current().record_noun)))
    titles, frames = ("Least accurate", "Most accurate"), fairness.least_and_most_accurate(chosen)
    for column, title, frame in zip(st.columns(2), titles, frames, strict=True):
        if not frame.empty:  # as for a single table
            with column:
                st.subheader(title)
                shown = columns_of(frame.drop(columns="margin_95"))
                listing(frame, shown, f"{title} tables")
    heading = "All tables, the least accurate first"
    st.subheader(heading)
    frame = kept(fairness.ranking, chosen)
    frame = _with_cell(frame, chosen)
    numbers(frame, columns_of(frame), "tables_by_accuracy.csv", heading)


def binding_tables(chosen: Forecast) -> None:
    """Which tables bind the largest variance, or make up the sum of variances."""
    loss = SCHEMES.get(chosen.name, current().loss)
    what = shadow_prices.describe_loss(loss, chosen.workload)
    sentence = kept(shadow_prices.describe, chosen, loss)
    st.markdown(escaped(sentence))
    st.caption("These shares are about small changes of the plan.")
    st.page_link("pages/tradeoffs.py", label="To leave tables out: Trade-offs, What if")
    left, right = st.columns(2)
    with left:
        st.subheader("Tables")
        _draw(shadow_prices_chart(chosen, "table", what), chosen)
    with right:
        st.subheader("By number of attributes")
        _draw(shadow_prices_chart(chosen, "order", what), chosen)
    if chosen.workload.orders.any():
        st.subheader("By attribute")
        _draw(shadow_prices_chart(chosen, "attribute", what), chosen)


def _draw(chart: Chart, forecast: Forecast, more: str = "") -> None:
    """Draw a chart; it says at which cell of each table it looks, where cells differ."""
    if forecast.cell_text:
        chart = replace(
            chart,
            sentence=f"{chart.sentence} {forecast.cell_text}",
            frame=_with_cell(chart.frame, forecast),
            columns={**chart.columns, "cell": COLUMNS["cell"]},
        )
    chart_with_numbers(chart, more)


def _with_cell(frame: pd.DataFrame, forecast: Forecast) -> pd.DataFrame:
    """The numbers with the cell that they are about, where cells of a table differ."""
    return frame.assign(cell=forecast.cell_title) if forecast.cell_text else frame
