"""Of an adaptive release: how far each table can be from the truth, and what rounds selected."""

import pandas as pd
import streamlit as st

from pages.components.shared.charts import numbers
from rpexplore.figures.chart import Column
from rpexplore.releases.adaptive.adaptive_release import AdaptiveRelease
from rpexplore.releases.adaptive.bound_texts import BOUND_MEANING
from rpexplore.workload.table_text import title

BOUND_COLUMNS = {
    "table": Column("table", "text"),
    "bound": Column("all errors together, 95 %", "text"),
    "measured": Column("all of it measured", "text"),
}
SELECTED_COLUMNS = {
    "round": Column("round", "count"),
    "drawn": Column("drawn as", "count"),
    "table": Column("selected and measured", "text"),
}


def how_it_came_about(release: AdaptiveRelease, record_noun: str) -> None:
    """The bound of each table, what each round selected, and what cannot be made of all this."""
    st.subheader("How far each table can be from the truth", help=BOUND_MEANING)
    bounds = release.bounds.assign(bound=release.describe_bounds(record_noun))
    # The smallest first; those without one last.
    bounds = bounds.sort_values("error_bound_95", kind="stable")
    columns = {
        "table": list(map(title, bounds["attributes"])),
        "bound": bounds["bound"],
        "measured": ["yes" if one else "no" for one in bounds["measured"]],
    }
    numbers(pd.DataFrame(columns), BOUND_COLUMNS, "bounds.csv", "The bound of every table")
    st.subheader("What the rounds selected")
    selected = release.selections
    columns = {
        "round": selected["round"],
        "drawn": selected["drawn"],
        "table": list(map(title, selected["attributes"])),
    }
    numbers(pd.DataFrame(columns), SELECTED_COLUMNS, "rounds.csv", "What was selected")
    st.info(
        "Unbiased counts, subtotals with exact errors, nonnegative or whole tables and "
        "combinations with other releases are made of releases whose plan is not adaptive."
    )
