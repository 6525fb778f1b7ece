"""Weight and targets on the Tables page, of each table or of many at once; the page's parts."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st

from pages.components.shared.expected_counts import expected_cells
from pages.components.shared.files import download
from pages.components.shared.inputs import (
    apply_cells,
    attributes_filter,
    number_field,
    removable,
    required_first_button,
    revision,
)
from pages.components.shared.session import (
    bound,
    change,
    current,
    escaped,
    kept,
    say,
    show_messages,
)
from pages.components.shared.texts import next_page
from pages.components.workload.smooth_weights import smooth_weights_in_effect, smooth_weights_input
from rpexplore.analysis import workload_grid
from rpexplore.analysis.accuracy import csv_of_accuracy
from rpexplore.analysis.glossary import meaning
from rpexplore.analysis.targets_met import target_counts
from rpexplore.analysis.workload_grid import tables_set
from rpexplore.common.text import number_of, number_text, plural
from rpexplore.errors import RpexploreError
from rpexplore.figures.chart import column_format
from rpexplore.planning.table_plan import TablePlan
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.table_settings import GroupSetting
from rpexplore.workload.table_text import Table
from rpexplore.workload.targets import CV, MARGIN, NOTATIONS, STANDARD_ERROR, UNITS, Target, plain

# ---- Weight and targets on the Tables page, of each table or of many at once.


MOST_ROWS = 2000
HERE = "settings"
GRID = "workload grid"
TIMES, SET = "multiplied by", "set to"
_SIGNS = {STANDARD_ERROR: "σ", MARGIN: "±", CV: "%"}
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
    with st.container(key="inputs"):
        with st.container(gap="small"):
            containing = attributes_filter(
                workload, "tables with", placeholder="all tables", persist_state="session"
            )
            n_tables = len(workload.containing(containing))
            many_weights()
        with st.container(gap="small"):
            like = many_targets()
            set_button(containing, n_tables)
    with st.container(gap="small"):
        smooth_weights_input(planned)
        smooth_weights_in_effect()
        groups_in_effect()
        if planned is not None and (met := target_counts(planned)).targets:
            st.markdown(f":material/straighten: **Targets.** {escaped(met.text)}")
            required_first_button(planned, HERE)
        if n_tables == 0:
            st.info("No table has all of these attributes.")
        else:
            grid_of_tables(planned, containing, like)
        show_messages(HERE)


def grid_of_tables(planned: TablePlan | None, containing: list[str], like: Target | None) -> None:
    """The editable grid of the tables with these attributes, and all tables as CSV.

    like: a target in whose unit errors are; without it they are standard errors
    """
    workload = current().workload
    cells = expected_cells(workload)
    medians = None if cells is None else kept(cells.medians)
    grid, n_tables = workload_grid.workload_grid(
        current(), planned, containing, MOST_ROWS, medians, like
    )
    if n_tables > len(grid):
        st.info(
            f"These are the first {len(grid):,} of {n_tables:,} tables. Choose attributes to see "
            "others; the CSV file below has all of them."
        )
    show_rows(workload_grid.tables_of_rows(workload, grid))
    heading, explained = "Standard error", meaning("Standard error")
    if like is not None and like.confidence is not None:
        heading = f"Margin, ± at {plain(like.confidence)} %"
        explained = "How near to the true count a cell is, with this confidence."
    elif like is not None and like.count is not None:
        heading = f"Error, % of {plain(like.count, ',')}"
    digits = column_format(grid["error"]) if planned is not None else None
    if not workload.is_marginals:
        heading += " (root mean square)"
    st.data_editor(
        grid.assign(weight=grid["weight"].map(number_text)),
        key=revision(GRID),
        hide_index=True,
        placeholder="",
        alt="Weight and target of each table, editable",
        column_config={
            "table": st.column_config.TextColumn("Table", disabled=True, width="medium"),
            "cells": st.column_config.NumberColumn("Cells", disabled=True, format="localized"),
            "median_count": st.column_config.NumberColumn(
                "Median expected count",
                disabled=True,
                format="localized",
                help=f"Half of the cells are expected to hold at most so much. "
                f"{meaning('Expected counts')}",
            ),
            "weight": st.column_config.TextColumn("Weight", help=meaning("Weight")),
            "target": st.column_config.TextColumn(
                "Target", help=f"{meaning('Target')} Type {NOTATIONS}."
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
    required = state["required of many"]
    try:
        weight, value, more = _typed_of_many(state["unit of many"])
    except RpexploreError as error:
        say(HERE, "error", str(error))
        return
    if value is None and (required or weight is None):
        missing = "a required target" if required else "a weight or a target"
        say(HERE, "info", f"Type {missing} for these tables first.")
        return
    how = "factor" if state["how to weight"] == TIMES else "weight"

    def target() -> Target | None:
        unit = state["unit of many"]
        return None if value is None else Target(value, unit, **more, required=required)

    done = change(
        HERE,
        lambda: current().with_group(
            GroupSetting(tuple(containing), target=target(), **{how: weight})
        ),
    )
    if done:
        revision(GRID, step=True)
        # A second click should not multiply once more.
        state.update({"weight of many": "", "target of many": "", "required of many": False})


def _typed_of_many(unit: str) -> tuple[float | None, float | None, dict[str, float | None]]:
    """Weight and target for many tables, and what the target's unit needs beside it."""
    state = st.session_state

    def number(name: str, most: float | None = None) -> float | None:
        return number_of(state[f"{name} of many"], f"The {name}", least=0.0, most=most)

    more = {}
    if unit == MARGIN:
        more["confidence"] = number("confidence", most=100.0)
    if unit == CV:
        more["count"] = number("count")
    return number("weight"), number("target"), more


def drop_group(position: int) -> None:
    change(HERE, lambda: workload_grid.without_group(current(), position))
    revision(GRID, step=True)


def forget() -> None:
    change(HERE, lambda: current().with_request(settings=(), groups=(), smooth_weights=None))
    revision(GRID, step=True)


def many_weights() -> None:
    """The weight of all tables that the filter leaves."""
    st.segmented_control(
        "Weight is",
        [TIMES, SET],
        required=True,
        key="how to weight",
        default=TIMES,
        persist_state="session",
        help=meaning("Weight"),
    )
    _number("Weight for these", "weight of many", placeholder="unchanged")


def many_targets() -> Target | None:
    """The target of all tables that the filter leaves; one in its unit, if that is complete."""
    confidence, count = None, None
    unit = st.selectbox(
        "Target is a",
        list(UNITS),
        format_func=UNITS.__getitem__,
        key="unit of many",
        persist_state="session",
        help=meaning("Target"),
    )
    _number(f"Target for these, {_SIGNS[unit]}", "target of many", placeholder="unchanged")
    if unit == MARGIN:
        confidence = _number("Confidence, %", "confidence of many", value=95.0, most=100.0)
    if unit == CV:
        count = _number("Expected count of a cell", "count of many")
    st.checkbox(
        "Required", key="required of many", persist_state="session", help=meaning("Required")
    )
    try:
        return Target(1, unit, confidence, count)
    except RpexploreError:
        return None  # the button says what is missing


def set_button(containing: list[str], n_tables: int) -> None:
    """The button that sets them, which says for how many tables."""
    which = "1 table" if n_tables == 1 else f"all {n_tables:,} tables"
    if containing:
        which += f" with {escaped(' and '.join(containing))}"
    st.button(f"Set for {which}", on_click=set_group, args=(containing,), disabled=n_tables == 0)


def _number(label: str, key: str, *, value: float | None = None, **more: Any) -> float | None:
    return number_field(label, key, value=value, least=0.0, persist_state="session", **more)


def groups_in_effect() -> None:
    """The settings of groups of tables, in the order in which they take effect."""
    for position, group in enumerate(current().request.groups):
        removable(escaped(group.text), f"drop group {position}", partial(drop_group, position))


# ---- The parts of the Tables page: which of them is open, and how many there are of what it sets.


ADDRESS = "part"
_LAST_OPEN = "part of tables"


@dataclass(frozen=True)
class Part:
    """A part of the page: its name, the question it answers, how, and of what it sets some."""

    name: str
    question: str
    purpose: str
    noun: str = ""


PARTS = {
    "which": Part(
        "Which tables",
        "Which tables do you want to publish?",
        "With fewer and smaller tables each becomes more accurate at the same privacy budget. Sums "
        "of cells of a table need no table of their own.",
    ),
    "weights": Part(
        "Weights and targets",
        "Which tables matter more, and how accurate must they be?",
        "A table with a larger weight becomes more accurate, at the others' expense. With a target "
        "the page says whether the table is accurate enough.",
        "table",
    ),
    "aggregation": Part(
        "Aggregation",
        "What does a table count along each attribute?",
        "Usually single values. Where readers will add up values, such as ages 18 to 64, have the "
        "table count these sums: the noise is then made for them.",
        "attribute",
    ),
}
FIRST = next(iter(PARTS))


def counts(scenario: Scenario) -> dict[str, int]:
    """How many tables there are, tables with a weight or target, and attributes aggregated."""
    aggregated = {choice.attribute for choice in scenario.request.basis_choices}
    return {
        "which": len(scenario.workload),
        "weights": tables_set(scenario.workload),
        "aggregation": len(aggregated),
    }


def label(part: str, count: int) -> str:
    """ "Which tables (576)", "Weights and targets (11 tables)", "Aggregation (1 attribute)"."""
    noun = PARTS[part].noun
    text = plural(count, noun) if noun else f"{count:,}"
    return PARTS[part].name + (f" ({text})" if count else "")


def choose_part(scenario: Scenario) -> str:
    """The part in the address, or the one that was open last."""
    part = st.query_params.get(ADDRESS) or st.session_state.get(_LAST_OPEN, FIRST)
    if part not in PARTS:
        part = FIRST
    st.session_state[_LAST_OPEN] = part
    number = counts(scenario)
    st.segmented_control(
        "Part of the page",
        list(PARTS),
        format_func=lambda part: label(part, number[part]),
        required=True,
        label_visibility="collapsed",
        **bound("open part", part, _open),
    )
    return part


def _open(part: str) -> None:
    st.query_params[ADDRESS] = part


def lead_on(part: str) -> None:
    """The next part, if there is one, and the plan."""
    names = list(PARTS)
    following = names[names.index(part) + 1 :][:1]
    with st.container(horizontal=True, vertical_alignment="center"):
        for name in following:
            st.button(
                f"Next: {PARTS[name].name}",
                icon=":material/arrow_forward:",
                on_click=_open,
                args=(name,),
                type="tertiary",
            )
        if following:
            st.page_link("pages/plan.py", label="Straight to Plan")
        else:
            next_page("plan", "Plan")
