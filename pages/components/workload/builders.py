"""Which tables are asked for: the quick builders and what narrows them, or a list."""

from typing import Any

import streamlit as st

from pages.components.shared.session import bind, change, current
from pages.components.workload.table_list import HERE, MOST_LISTED, own_list
from rpexplore.analysis import workload_grid

NAMES = {
    "up_to": "Up to k-way",
    "of_order": "Exactly k-way",
    "at_most_cells": "Up to n cells",
    "listed": "My own list",
}


def set_kind() -> None:
    kind = st.session_state["kind"]
    listed = current().request.listed
    if kind == "listed" and not listed:
        listed = workload_grid.first_list(current(), MOST_LISTED)
    change(HERE, lambda: current().with_request(kind=kind, listed=listed))


def set_number(field: str) -> None:
    value = st.session_state[field]
    change(HERE, lambda: current().with_request(**{field: None if value is None else int(value)}))


def set_attributes(field: str) -> None:
    chosen, domain = st.session_state[field], current().domain
    names = tuple(domain.names[index] for index in domain.positions(chosen))
    change(HERE, lambda: current().with_request(**{field: names}))


def builders() -> None:
    """The kind of builder, and its numbers or its list."""
    request, domain = current().request, current().domain
    st.segmented_control(
        "Which tables?",
        list(NAMES),
        required=True,
        format_func=NAMES.__getitem__,
        key=bind("kind", request.kind),
        on_change=set_kind,
    )
    if request.kind == "listed":
        own_list()
        return
    size, only, containing, cells = st.columns([2, 3, 3, 2], vertical_alignment="bottom")
    if request.kind == "at_most_cells":
        number(size, "Cells in a table, at most", "cells", request.cells, min_value=1)
    else:
        number(
            size,
            "Attributes in a table" + ("" if request.kind == "of_order" else ", at most"),
            "order",
            min(request.order, len(domain)),
            min_value=0,
            max_value=len(domain),
        )
        number(
            cells,
            "Cells in a table, at most",
            "most_cells",
            request.most_cells,
            min_value=1,
            value=None,  # it can be emptied
            placeholder="any number",
        )
    for column, label, field, placeholder in (
        (only, "Made of these attributes only", "only", "all attributes"),
        (containing, "With all of these attributes", "containing", "none in particular"),
    ):
        column.multiselect(
            label,
            domain.names,
            key=bind(field, list(getattr(request, field))),
            on_change=set_attributes,
            args=(field,),
            placeholder=placeholder,
        )


def number(column: Any, label: str, field: str, present: int | None, **more: Any) -> None:
    key = bind(field, present)
    column.number_input(label, step=1, key=key, on_change=set_number, args=(field,), **more)
