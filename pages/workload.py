"""Workload: which tables are wanted, and how much each matters."""

import streamlit as st

from pages._session import bind, change, current, escaped, plan, show_messages
from pages._settings import apply_typed, settings
from rpexplore.analysis import workload_grids
from rpexplore.scenario import tables_from_text, text_from_tables
from rpexplore.words import count_in_words, plural

HERE = "workload"
MOST_LISTED = 2000
NAMES = {
    "up_to": "Up to so many attributes",
    "of_order": "Exactly so many attributes",
    "at_most_cells": "Up to so many cells",
    "listed": "My own list",
}


def set_kind() -> None:
    kind = st.session_state["kind"]
    if kind is None:  # the chosen one was clicked again
        return
    listed = current().request.listed
    if kind == "listed" and not listed:
        listed = workload_grids.first_list(current(), MOST_LISTED)
    change(HERE, lambda: current().with_request(kind=kind, listed=listed))


def set_number(field: str) -> None:
    change(HERE, lambda: current().with_request(**{field: int(st.session_state[field])}))


def set_list() -> None:
    st.session_state["typed list"] = st.session_state["listed"]


def take_list() -> None:
    """Take over the typed list; a refused one is kept to be mended, and says so on every visit."""
    text = st.session_state.get("typed list")
    if text is not None and current().request.kind == "listed":
        done = change(
            HERE,
            lambda: current().with_request(listed=tables_from_text(current().domain, text)),
            otherwise="The plan still uses the list before this one.",
        )
        st.session_state["typed list"] = None if done else text


def add_to_list() -> None:
    picked = current().domain.positions(st.session_state["picked"])
    table = tuple(current().domain.names[place] for place in picked)
    change(HERE, lambda: current().with_request(listed=(*current().request.listed, table)))


apply_typed()
take_list()
st.title("Workload")
st.markdown("Which tables you want to publish, and how much each of them matters.")
scenario = current()
request, domain = scenario.request, scenario.domain
kind = st.segmented_control(
    "Which tables?",
    list(NAMES),
    format_func=NAMES.__getitem__,
    key=bind("kind", request.kind),
    on_change=set_kind,
)
if request.kind in ("up_to", "of_order"):
    st.number_input(
        "Attributes in a table" if request.kind == "of_order" else "Attributes in a table, at most",
        min_value=0,
        max_value=len(domain),
        key=bind("order", request.order),
        on_change=set_number,
        args=("order",),
        width=240,
    )
elif request.kind == "at_most_cells":
    st.number_input(
        "Cells in a table, at most",
        min_value=1,
        key=bind("cells", request.cells),
        on_change=set_number,
        args=("cells",),
        width=240,
    )
else:
    refused = st.session_state.get("typed list")
    st.text_area(
        "One table a line, its attributes separated by commas or ×; total stands for the total",
        key=bind(
            "listed",
            text_from_tables(request.listed) if refused is None else refused,
        ),
        on_change=set_list,
        height=220,
    )
    pick, add = st.columns([3, 1], vertical_alignment="bottom")
    pick.multiselect("Or pick attributes", domain.names, key="picked")
    add.button(
        "Add this table",
        on_click=add_to_list,
        disabled=not st.session_state["picked"] or refused is not None,
    )
show_messages(HERE)

totals = workload_grids.totals(scenario.workload)
if scenario.misses_target:
    planned = None
    st.error(
        f"There is no plan yet: table {escaped(scenario.misses_target)} has no target. Set one for "
        "every table, in the grid or with “Target for these” below it, or choose another aim on "
        "the Plan page."
    )
else:
    planned = plan()
columns = [column.container(gap="xxsmall") for column in st.columns(4)]
columns[0].metric("Tables", f"{totals.tables:,}")
columns[1].metric("Cells in all tables", count_in_words(totals.cells))
columns[2].metric("Cells of the largest table", count_in_words(totals.largest_cells))
columns[2].caption(escaped(totals.largest_table))
if planned is not None:
    columns[3].metric(
        "Tables to measure",
        f"{len(planned.closure):,}",
        help="The tables asked for and everything they contain (the closure). Each contributes "
        "one noisy measurement (its residual), and all tables are computed from these.",
    )
if scenario.settings_aside:
    st.caption(
        f"{plural(scenario.settings_aside, 'importance or target')} of tables that are not asked "
        "for now kept aside."
    )

settings(planned)
st.page_link("pages/plan.py", label="Next: the plan", icon=":material/arrow_forward:")
