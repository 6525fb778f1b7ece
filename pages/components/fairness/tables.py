"""Views of the Fairness page table by table: the least and most accurate, and those that bind."""

from typing import Any

import pandas as pd
import streamlit as st

from pages.components.fairness.cell_note import chart_with_cell, with_cell
from pages.components.shared.charts import chart_with_numbers, column_config, listing, numbers
from pages.components.shared.session import current, escaped, kept
from rpexplore.analysis import fairness, shadow_prices
from rpexplore.analysis.forecast import SCHEMES, Forecast
from rpexplore.figures import shadow_prices as shares
from rpexplore.figures.columns import columns_of


def all_tables(chosen: Forecast) -> None:
    """The ten least accurate, the ten most accurate, and all tables."""
    found = fairness.unevenness(chosen)
    if not found.is_even:  # else the headline says so
        st.markdown(escaped(fairness.describe_unevenness(found, current().record_noun)))
    worst, best = fairness.worst_and_best(chosen)
    left, right = st.columns(2)
    for column, title, frame in ((left, "Least accurate", worst), (right, "Most accurate", best)):
        if frame.empty:  # of a single table
            continue
        with column:
            st.subheader(title)
            shown = frame.drop(columns="margin_95")
            listing(
                shown,
                column_config(shown, columns_of(shown)),
                f"The tables that are {title.lower()}",
            )
    st.subheader("All tables, the least accurate first")
    frame = kept("fairness ranking", (chosen,), lambda: fairness.ranking(chosen, names_of(chosen)))
    frame = with_cell(frame, chosen)
    numbers(
        frame,
        column_config(frame, columns_of(frame)),
        "tables_by_standard_error.csv",
        "All tables, the least accurate first",
    )


def names_of(chosen: Forecast) -> Any:
    """What the tables are called, kept for as long as they are the same."""
    workload = chosen.workload
    return kept("fairness names", (workload,), lambda: fairness.all_titles(workload))


def binding_tables(chosen: Forecast) -> None:
    """Which tables hold the largest variance, or the sum of variances, up."""
    loss = SCHEMES.get(chosen.name, current().loss)
    found = kept("fairness binding_tables", (chosen,), lambda: shadow_prices.binding_tables(chosen))
    what = shadow_prices.what_is_held(loss, chosen.workload)
    st.markdown(escaped(shadow_prices.describe(found, what)))
    st.page_link(
        "pages/tradeoffs.py",
        label="That is about small changes. Leaving tables out is tried under What if, on the "
        "Trade-offs page",
    )
    left, right = st.columns(2)
    with left:
        st.subheader("Tables")
        _shadow_prices(chosen, shadow_prices.by_table(chosen), "table", what)
    with right:
        st.subheader("By number of attributes")
        _shadow_prices(chosen, shadow_prices.by_order(chosen), "attributes", what)
    frame = shadow_prices.by_attribute(chosen)
    if frame["tables"].any():
        st.subheader("By attribute")
        _shadow_prices(chosen, frame, "attribute", what)


def _shadow_prices(chosen: Forecast, frame: pd.DataFrame, names: str, what: str) -> None:
    chart_with_numbers(chart_with_cell(shares.chart(frame, names, what), chosen))
