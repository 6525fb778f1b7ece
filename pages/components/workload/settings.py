"""Weight and targets on the Tables page, of each table or of many at once."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import streamlit as st

from pages.components.shared.files import download
from pages.components.shared.inputs import (
    apply_cells,
    attributes_filter,
    removable,
    required_first_button,
    revision,
)
from pages.components.shared.session import change, current, escaped, say, show_messages
from pages.components.workload.smooth_weights import smooth_weights_in_effect, smooth_weights_input
from rpexplore.analysis import workload_grid
from rpexplore.analysis.accuracy import csv_of_accuracy
from rpexplore.analysis.glossary import meaning
from rpexplore.analysis.targets_met import target_counts
from rpexplore.common.text import number_of, number_text
from rpexplore.figures.chart import column_format
from rpexplore.planning.table_plan import TablePlan
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.table_settings import GroupSetting
from rpexplore.workload.table_text import Table
from rpexplore.workload.targets import NOTATIONS, Target

MOST_ROWS = 2000
HERE = "settings"
GRID = "workload grid"
TIMES, SET = "multiplied by", "set to"
TARGETS = f"{NOTATIONS}; or one that is required, such as ±50 required"
_BACKGROUND = "cells", "median_count"  # columns of the grid that go with a table


def apply_typed() -> None:
    """Apply what was typed into the grid; call it before anything is drawn."""

    def apply(cells: dict[int, dict[str, Any]]) -> Sequence[str]:
        rows = st.session_state["rows of grid"]
        edited, refused = workload_grid.scenario_from_grid(current(), rows, cells)
        change(HERE, lambda: edited)
        return refused

    apply_cells(GRID, HERE, apply)


def show_rows(tables: list[Table]) -> None:
    """Remember the table of each row; for other tables than before the grid starts afresh.

    As long as their number stays the same, Streamlit would put what was typed into a row of the
    former tables into the same row of these.
    """
    if tables != st.session_state.get("rows of grid"):
        revision(GRID, step=True)
    st.session_state["rows of grid"] = tables


def settings(planned: TablePlan | None) -> None:
    """Filter, the same for many tables at once, the editable grid, and all tables as CSV.

    Without a plan there are no standard errors yet, but targets may be what it waits for.
    """
    workload = current().workload
    with st.container(key="inputs"), st.container(gap="small"):
        containing = attributes_filter(
            workload, "tables with", placeholder="all tables", persist_state="session"
        )
        n_tables = len(workload.containing(containing))
        many_at_once(containing, n_tables)
    with st.container(gap="small"):
        # Without a plan a share of the budget may be open; at several levels no table is smooth.
        has_share = planned is not None or len(current().kinds) == 1
        if has_share and not workload.has_levels:
            smooth_weights_input(planned)
        smooth_weights_in_effect()
        for position, group in enumerate(current().request.groups):  # as they take effect
            removable(escaped(group.text), f"drop group {position}", partial(drop_group, position))
        if planned is not None and (met := target_counts(planned)).targets:
            st.markdown(f":material/straighten: **Targets.** {escaped(met.text)}")
            required_first_button(planned, HERE)
        if n_tables == 0:
            st.info("No table has all of these attributes.")
        else:
            grid_of_tables(planned, containing)
        show_messages(HERE)


def grid_of_tables(planned: TablePlan | None, containing: list[str]) -> None:
    """The editable grid of the tables with these attributes, and all tables as CSV."""
    workload, like = current().workload, workload_grid.like_targets(current())
    grid, n_tables = workload_grid.workload_grid(current(), planned, containing, MOST_ROWS, like)
    if n_tables > len(grid):
        st.info(
            f"These are the first {len(grid):,} of {n_tables:,} tables. Choose attributes to see "
            "others; the CSV file below has all of them."
        )
    show_rows(workload_grid.tables_of_rows(workload, grid))
    heading, explained = workload_grid.error_heading(workload, like)
    digits = column_format(grid["error"]) if planned is not None else None
    st.data_editor(
        grid.assign(weight=grid["weight"].map(number_text)),
        key=revision(GRID),
        hide_index=True,
        placeholder="",
        alt="Weight and target of each table, editable",
        column_config={
            "table": st.column_config.TextColumn("Table", disabled=True, width="medium"),
            "cells": st.column_config.NumberColumn("Cells", disabled=True, format="localized"),
            "weight": st.column_config.TextColumn("Weight", help=meaning("Weight")),
            "target": st.column_config.TextColumn(
                "Target", help=f"{meaning('Target')} Type {TARGETS}."
            ),
            "required": st.column_config.CheckboxColumn("Required", help=meaning("Required")),
            "outcome": st.column_config.TextColumn(
                "Met or short by",
                disabled=True,
                help="By the least accurate cell of the table. Out of reach: even with the whole "
                "budget for itself, the table would miss its target.",
            ),
            "error": st.column_config.NumberColumn(
                heading, disabled=True, format=digits, help=explained
            ),
        },
        # What is typed first: on a phone there is no room for all.
        column_order=["table", "weight", "target", "required", "outcome", "error", *_BACKGROUND],
    )
    with st.container(horizontal=True):
        if planned is not None:
            download("tables.csv", lambda: csv_of_accuracy(planned))
        request = current().request
        if request.groups or request.settings or request.smooth_weights:
            st.button("Remove all weights and targets", on_click=forget)


def set_group(containing: list[str]) -> None:
    state = st.session_state
    weight, target = (state[key].strip() for key in ("weight of many", "target of many"))
    if not weight and not target:
        say(HERE, "info", "Type a weight or a target for these tables first.")
        return

    def changed() -> Scenario:
        how = "factor" if state["how to weight"] == TIMES else "weight"
        given: dict[str, Any] = {how: number_of(weight, "The weight", least=0.0)}
        if target:
            given["target"] = Target.parse(target)
        return current().with_group(GroupSetting(tuple(containing), **given))

    if change(HERE, changed):
        revision(GRID, step=True)
        state.update({"weight of many": "", "target of many": ""})  # not multiplied once more


def drop_group(position: int) -> None:
    change(HERE, lambda: workload_grid.without_group(current(), position))
    revision(GRID, step=True)


def forget() -> None:
    change(HERE, lambda: current().with_request(settings=(), groups=(), smooth_weights=None))
    revision(GRID, step=True)


def many_at_once(containing: list[str], n_tables: int) -> None:
    """Weight and target of all tables that the filter leaves, and the button that sets them."""
    st.segmented_control(
        "Weight is",
        [TIMES, SET],
        required=True,
        key="how to weight",
        default=TIMES,
        persist_state="session",
        help=meaning("Weight"),
    )
    for label, key, more in (
        ("Weight for these", "weight of many", ""),
        ("Target for these", "target of many", f"{meaning('Target')} Type {TARGETS}."),
    ):
        st.text_input(
            label, key=key, placeholder="unchanged", persist_state="session", help=more or None
        )
    which = "1 table" if n_tables == 1 else f"all {n_tables:,} tables"
    if containing:
        which += f" with {escaped(' and '.join(containing))}"
    st.button(f"Set for {which}", on_click=set_group, args=(containing,), disabled=n_tables == 0)
