"""The lower part of the Workload page: importance and target of each table."""

import streamlit as st

from pages._session import change, current, revision, say, show_messages, tell_refused, typed
from rpexplore.analysis import workload_grids
from rpexplore.analysis.standard_errors import csv_of_tables
from rpexplore.plan import Plan
from rpexplore.words import column_format

HERE = "settings"
GRID = "workload grid"
MOST_ROWS = 2000


def apply_typed() -> None:
    """Take over what was typed into the grid; call it before anything is drawn."""
    changes, refused = typed(GRID), ()
    if changes:
        edited = workload_grids.scenario_from_grid(
            current(), st.session_state["rows of grid"], changes
        )
        change(HERE, lambda: edited.scenario)
        refused = edited.refused
    tell_refused(GRID, HERE, refused)


def set_many(containing: list[str]) -> None:
    weight, target = st.session_state["weight of many"], st.session_state["target of many"]
    if weight is None and target is None:
        say(HERE, "info", "Type an importance or a target for these tables first.")
        return
    change(
        HERE,
        lambda: current().with_settings(
            workload_grids.settings_for_many(current(), containing, weight, target)
        ),
    )
    revision(GRID, step=True)


def forget() -> None:
    change(HERE, lambda: current().with_request(settings=()))
    revision(GRID, step=True)


def settings(planned: Plan | None) -> None:
    """Filter, the editable grid, the same for many tables at once, and all tables as CSV.

    Without a plan there are no standard errors yet, but targets may be what it waits for.
    """
    workload = current().workload
    st.subheader("Importance and targets")
    st.markdown(
        "**Importance**: a table with 2 counts as if it were there twice; it becomes more "
        "accurate, at the others' expense. **Target**: the standard error you want for its cells; "
        "the plan is compared with it."
    )
    containing = st.multiselect(
        "Only tables with all of these attributes", workload.domain.names, key="containing"
    )
    grid, found = workload_grids.workload_grid(workload, planned, containing, MOST_ROWS)
    if found == 0:
        st.info("No table of the workload has all of these attributes.")
        return
    if found > len(grid):
        st.info(
            f"These are the first {len(grid):,} of {found:,} tables. Choose attributes above to "
            "see others; the CSV file below has all of them."
        )
    st.session_state["rows of grid"] = [workload.tables[place] for place in grid.index]
    digits = column_format(grid["standard_error"]) if planned is not None else None
    st.data_editor(
        grid,
        key=revision(GRID),
        hide_index=True,
        placeholder="",
        alt="Importance and target of each table, editable",
        column_config={
            "table": st.column_config.TextColumn("Table", disabled=True, width="medium"),
            "cells": st.column_config.NumberColumn("Cells", disabled=True, format="localized"),
            "weight": st.column_config.NumberColumn("Importance", min_value=0.0),
            "target": st.column_config.NumberColumn("Target standard error", min_value=0.0),
            "standard_error": st.column_config.NumberColumn(
                "Standard error in the plan", disabled=True, format=digits
            ),
        },
    )
    show_messages(HERE)
    many = st.container(horizontal=True, vertical_alignment="bottom")
    many.number_input(
        "Importance for these", min_value=0.0, value=None, key="weight of many", width=180
    )
    many.number_input(
        "Target for these", min_value=0.0, value=None, key="target of many", width=180
    )
    which = "the table above" if found == 1 else f"all {found:,} tables"
    if containing and found > 1:
        which += " with these attributes"
    many.button(f"Set for {which}", on_click=set_many, args=(containing,))
    many.button(
        "Forget all importances and targets",
        on_click=forget,
        disabled=not current().request.settings,
    )
    if planned is not None:
        st.download_button(
            "Download tables.csv",
            lambda: csv_of_tables(planned),
            "tables.csv",
            "text/csv",
            on_click="ignore",
        )
