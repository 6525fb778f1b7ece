"""Views of the Fairness page table by table: who is worst and best off, and who decides."""

from typing import Any

import streamlit as st

from pages.components.fairness.charts import columns_of, exhibit_with_numbers, with_cell
from pages.components.shared.charts import listing, numbers
from pages.components.shared.session import current, escaped, kept
from rpexplore.analysis import fairness, rankings, shadow_prices
from rpexplore.analysis.forecast import SCHEMES, Forecast
from rpexplore.figures import shadow_prices as shares

MOST_BARS = 15


def all_tables(chosen: Forecast) -> None:
    """The ten worst off, the ten best off, and all of them."""
    found = fairness.unevenness(chosen)
    if not found.is_even:  # else the headline says so
        st.markdown(escaped(fairness.unevenness_in_words(found, current().counted)))
    worst, best = rankings.worst_and_best(chosen)
    left, right = st.columns(2)
    for column, title, frame in ((left, "Worst off", worst), (right, "Best off", best)):
        if frame.empty:  # of a single table
            continue
        with column:
            st.subheader(title)
            shown = frame.drop(columns="margin_95")
            listing(shown, columns_of(shown), f"The tables that are {title.lower()}")
    st.subheader("All tables, the worst off first")
    frame = kept("fairness ranking", (chosen,), lambda: rankings.ranking(chosen, names_of(chosen)))
    frame = with_cell(frame, chosen)
    numbers(
        frame,
        columns_of(frame),
        "tables_by_standard_error.csv",
        "All tables, the worst off first",
    )


def names_of(chosen: Forecast) -> Any:
    """What the tables are called, kept for as long as they are the same."""
    workload = chosen.workload
    return kept("fairness names", (workload,), lambda: rankings.all_titles(workload))


def tables_that_decide(chosen: Forecast) -> None:
    """Which tables hold the largest variance, or the sum of variances, up."""
    loss = SCHEMES.get(chosen.name, current().loss)
    found = kept("fairness holders", (chosen,), lambda: shadow_prices.holders(chosen))
    what = shadow_prices.what_is_held(loss, chosen.workload)
    st.markdown(escaped(shadow_prices.in_words(found, what)))
    st.page_link(
        "pages/tradeoffs.py",
        label="That is about small changes. Leaving tables out is tried under What if, on the "
        "Trade-offs page",
    )
    left, right = st.columns(2)
    with left:
        st.subheader("Tables")
        frame = shadow_prices.by_table(chosen)
        exhibit_with_numbers(
            shares.bars(frame, "table", what),
            shadow_prices.first_in_words(frame, "table", what),
            frame,
            "shares_of_tables.csv",
            seen=chosen,
            alt=f"Share of {what} by table",
        )
    with right:
        st.subheader("By number of attributes")
        frame = shadow_prices.by_order(chosen)
        exhibit_with_numbers(
            shares.bars(frame, "attributes", what),
            shadow_prices.first_in_words(frame, "attributes", what),
            frame,
            "shares_by_order.csv",
            seen=chosen,
            alt=f"Share of {what} by number of attributes",
        )
    frame = shadow_prices.by_attribute(chosen)
    if frame["tables"].any():
        st.subheader("By attribute")
        exhibit_with_numbers(
            shares.bars(frame[:MOST_BARS], "attribute", what),
            shadow_prices.first_in_words(frame, "attribute", what),
            frame,
            "shares_by_attribute.csv",
            seen=chosen,
            more="A table counts with each of its attributes."
            + (f" The first {MOST_BARS} of {len(frame):,}." if len(frame) > MOST_BARS else ""),
            alt=f"Share of {what} by attribute",
        )
