"""Views of the Fairness page table by table: the least and most accurate, and those that bind."""

from typing import Any

import streamlit as st

from pages.components.fairness.cell_note import chart_at_cell, with_cell
from pages.components.shared.charts import listing, numbers
from pages.components.shared.session import current, escaped, kept
from rpexplore.analysis import fairness, shadow_prices
from rpexplore.analysis.forecast import SCHEMES, Forecast
from rpexplore.figures import shadow_prices as figures
from rpexplore.figures.columns import columns_of


def all_tables(chosen: Forecast) -> None:
    """The ten least accurate, the ten most accurate, and all tables."""
    if not fairness.is_even(chosen):  # else the headline says so
        st.markdown(escaped(fairness.describe_unevenness(chosen, current().record_noun)))
    titles, frames = ("Least accurate", "Most accurate"), fairness.worst_and_best(chosen)
    for column, title, frame in zip(st.columns(2), titles, frames, strict=True):
        if not frame.empty:  # as for a single table
            with column:
                st.subheader(title)
                shown = columns_of(frame.drop(columns="margin_95"))
                listing(frame, shown, f"{title} tables")
    heading = "All tables, the least accurate first"
    st.subheader(heading)
    frame = kept("fairness ranking", (chosen,), lambda: fairness.ranking(chosen, names_of(chosen)))
    frame = with_cell(frame, chosen)
    numbers(frame, columns_of(frame), "tables_by_standard_error.csv", heading)


def names_of(chosen: Forecast) -> Any:
    """What the tables are called, kept for as long as they are the same."""
    workload = chosen.workload
    return kept("fairness names", (workload,), lambda: fairness.all_titles(workload))


def binding_tables(chosen: Forecast) -> None:
    """Which tables bind the largest variance, or make up the sum of variances."""
    loss = SCHEMES.get(chosen.name, current().loss)
    binding = kept("fairness binding", (chosen,), lambda: shadow_prices.binding_tables(chosen))
    what = shadow_prices.describe_loss(loss, chosen.workload)
    st.markdown(escaped(shadow_prices.describe(binding, what)))
    st.page_link(
        "pages/tradeoffs.py",
        label="That is about small changes. Leaving tables out is tried under What if, on the "
        "Trade-offs page",
    )
    by_table, by_order = shadow_prices.by_table(chosen), shadow_prices.by_order(chosen)
    left, right = st.columns(2)
    with left:
        st.subheader("Tables")
        chart_at_cell(figures.chart(by_table, "table", what), chosen)
    with right:
        st.subheader("By number of attributes")
        chart_at_cell(figures.chart(by_order, "attributes", what), chosen)
    by_attribute = shadow_prices.by_attribute(chosen)
    if by_attribute["tables"].any():
        st.subheader("By attribute")
        chart_at_cell(figures.chart(by_attribute, "attribute", what), chosen)
