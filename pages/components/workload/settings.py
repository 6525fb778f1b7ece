"""The lower part of the Tables page: weight and target of each table, or of many."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from pages.components.shared.editors import apply_cells, revision
from pages.components.shared.session import change, current, show_messages
from pages.components.workload.group_settings import GRID, HERE, groups_in_effect, many_at_once
from rpexplore.analysis import workload_grid
from rpexplore.analysis.accuracy import csv_of_tables
from rpexplore.common.formatting import column_format
from rpexplore.planning.plan import Plan
from rpexplore.workload.table_text import Table
from rpexplore.workload.targets import NOTATIONS

MOST_ROWS = 2000


def apply_typed() -> None:
    """Apply what was typed into the grid; call it before anything is drawn."""

    def apply(cells: dict[int, dict[str, Any]]) -> Sequence[str]:
        rows = st.session_state["rows of grid"]
        edited = workload_grid.scenario_from_grid(current(), rows, cells)
        change(HERE, lambda: edited.scenario)
        return edited.refused

    apply_cells(GRID, HERE, apply)


def show_rows(tables: list[Table]) -> None:
    """Remember the table of each row; for other tables than before the grid starts afresh.

    As long as their number stays the same, Streamlit would put what was typed into a row of the
    former tables into the same row of these.
    """
    if tables != st.session_state.get("rows of grid"):
        revision(GRID, step=True)
    st.session_state["rows of grid"] = tables


def settings(planned: Plan | None) -> None:
    """Filter, the editable grid, the same for many tables at once, and all tables as CSV.

    Without a plan there are no standard errors yet, but targets may be what it waits for.
    """
    workload = current().workload
    st.subheader("Weight and targets")
    st.markdown(
        "**Weight**: a table with 2 counts as if it were there twice; it becomes more "
        "accurate, at the others' expense. **Target**: how accurate you want its cells, which "
        f"the plan is compared with; type {NOTATIONS}. **Required**: a target that "
        "has to be met, whatever the other tables lose."
    )
    groups_in_effect()
    containing = st.multiselect(
        "Only tables with all of these attributes",
        workload.domain.names,
        key="tables with",
        placeholder="all tables",
    )
    grid, n_tables = workload_grid.workload_grid(current(), planned, containing, MOST_ROWS)
    if n_tables == 0:
        st.info("No table has all of these attributes.")
        return
    many_at_once(containing, n_tables)
    if n_tables > len(grid):
        st.info(
            f"These are the first {len(grid):,} of {n_tables:,} tables. Choose attributes above to "
            "see others; the CSV file below has all of them."
        )
    show_rows(workload_grid.tables_of_rows(workload, grid))
    digits = column_format(grid["standard_error"]) if planned is not None else None
    heading = "Standard error in the plan"
    if not workload.is_marginals:
        heading = "Standard error (root mean square of the cells)"
    st.data_editor(
        grid,
        key=revision(GRID),
        hide_index=True,
        placeholder="",
        alt="Weight and target of each table, editable",
        column_config={
            "table": st.column_config.TextColumn("Table", disabled=True, width="medium"),
            "cells": st.column_config.NumberColumn("Cells", disabled=True, format="localized"),
            "weight": st.column_config.NumberColumn("Weight", min_value=0.0),
            "target": st.column_config.TextColumn("Target", help=NOTATIONS),
            "required": st.column_config.CheckboxColumn("Required"),
            "outcome": st.column_config.TextColumn(
                "Met or short by", disabled=True, help="By the least accurate cell of the table."
            ),
            "standard_error": st.column_config.NumberColumn(heading, disabled=True, format=digits),
        },
    )
    show_messages(HERE)
    if planned is not None:
        st.download_button(
            "Download tables.csv",
            lambda: csv_of_tables(planned),
            "tables.csv",
            "text/csv",
            on_click="ignore",
        )
