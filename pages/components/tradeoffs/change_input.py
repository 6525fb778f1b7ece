"""Which tables a what-if is about and what becomes of them, and the buttons that make it so."""

import streamlit as st

from pages.components.shared.session import change, current, say, show_messages
from pages.components.tradeoffs.adopt import keep_scenario
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.workload_changes import (
    ADD,
    BOOST,
    LEAVE_OUT,
    WorkloadChange,
    changed_scenario,
)
from rpexplore.workload.workload import Workload

HERE = "what if"
ACTIONS = {LEAVE_OUT: "are left out", BOOST: "count differently", ADD: "are added"}
ANY = "any number"


def change_inputs() -> WorkloadChange | None:
    """Which tables, and what becomes of them; None while that is not chosen."""
    names, largest = current().domain.names, int(current().workload.orders.max())
    action = st.segmented_control(
        "What if these tables …",
        list(ACTIONS),
        format_func=ACTIONS.__getitem__,
        default=LEAVE_OUT,
        required=True,
        key="what_if",
        bind="query-params",
    )
    action = action or LEAVE_OUT
    containing = st.multiselect(
        "Tables with all of these attributes",
        names,
        key="what if attributes",
        placeholder="Any attributes",
        persist_state="session",
    )
    orders: list[str | int] = [ANY, *range(largest + 1)]
    if action == ADD:
        orders = [*range(len(containing), max(len(containing), min(largest + 2, len(names))) + 1)]
    order = st.selectbox(
        "and with so many attributes in all",
        orders,
        index=orders.index(largest + 1) if largest + 1 in orders else 0,
        format_func=str,
        key=f"what if order {action}",
        persist_state="session",
    )
    factor = 2.0
    if action == BOOST:
        factor = st.number_input(
            "They count so many times as much",
            min_value=0.01,
            value=2.0,
            key="what if factor",
            persist_state="session",
        )
    show_messages(HERE)
    if order == ANY and not containing:
        return None
    places = current().domain.positions([name for name in containing if name in names])
    wanted = int(order) if order in range(len(names) + 1) else None
    return WorkloadChange(action, tuple(names[place] for place in places), wanted, factor)


def apply_or_save(workload_change: WorkloadChange, workload: Workload, words: str) -> None:
    """Buttons that make the change, in the open scenario or in a new one. words: what it does"""

    def scenario() -> Scenario:
        return changed_scenario(current(), workload_change, workload)

    def make_it_so() -> None:
        if change(HERE, scenario):
            say(HERE, "success", "Applied. What you see next starts from there.")

    line = st.container(horizontal=True)
    line.button("Apply", on_click=make_it_so)
    line.button("Save as scenario", on_click=keep_scenario, args=(HERE, scenario, words))
