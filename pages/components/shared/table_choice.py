"""Which tables of the workload to look at: one of them, or those with some attributes."""

from typing import Any

import streamlit as st

from pages.components.shared.session import attempt, kept
from rpexplore.analysis.cell_accuracy import tables_with_cells
from rpexplore.workload.workload import Workload

MOST_TITLES = 1000  # tables to choose from; of more, attributes are chosen


def table_input(workload: Workload, usual: int, key: str) -> int | None:
    """The chosen table; None, which the page explains, while none is. usual: chosen at first."""
    if len(workload) <= MOST_TITLES:
        titles = kept(tables_with_cells, workload)
        if not titles:
            st.info("The total is a single cell; choose tables with attributes.")
            return None
        # By title, which means the same table in every workload; a browser keeps what it shows.
        numbers = {title: number for number, title in titles.items()}
        title = st.selectbox(
            "Table", list(numbers), list(titles).index(usual) if usual in titles else 0, key=key
        )
        return numbers[title]
    typed = st.multiselect(
        "The attributes of the table",
        workload.domain.names,
        workload.tables[usual],
        key=f"{key}, by attributes",
    )
    if not typed:
        st.info("The total is a single cell; choose a table with attributes.")
        return None
    return attempt(lambda: workload.position(typed), show=st.info)


def attributes_filter(workload: Workload, key: str, **options: Any) -> list[str]:
    """The attributes that a list of tables is narrowed to, of those that some table has."""
    names = [workload.domain.names[index] for index in workload.used]
    chosen = st.session_state.get(key, [])
    if not set(chosen) <= set(names):  # the tables that had these are gone
        st.session_state[key] = [name for name in chosen if name in names]
    return st.multiselect("Only tables with all of these attributes", names, key=key, **options)
