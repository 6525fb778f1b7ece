"""The tables as a list of one's own: as text, and picked by their attributes."""

from collections.abc import Callable

import streamlit as st

from pages.components.shared.session import bind, change, current
from rpexplore.common.formatting import plural
from rpexplore.workload.table_text import tables_from_text, text_of_total, texts_of_tables

HERE = "workload"
MOST_LISTED = 2000


def set_list() -> None:
    st.session_state["typed list"] = st.session_state["listed"]


def take_list() -> None:
    """Apply the typed list; a refused one is kept to be mended, and says that on every visit."""
    text = st.session_state.get("typed list")
    if text is not None and current().request.kind == "listed":
        done = change(
            HERE,
            lambda: current().with_request(listed=tables_from_text(current().domain, text)),
            otherwise="The plan still uses the list before this one.",
        )
        st.session_state["typed list"] = None if done else text


def change_list(change_of: Callable[[tuple, tuple], tuple]) -> None:
    domain, listed = current().domain, current().request.listed
    indices = domain.positions(st.session_state["picked"])
    table = tuple(domain.names[index] for index in indices)
    change(HERE, lambda: current().with_request(listed=change_of(listed, table)))


def own_list() -> None:
    """The list as text, and a table picked by its attributes."""
    listed, refused = current().request.listed, st.session_state.get("typed list")
    domain = current().domain
    if len(listed) > MOST_LISTED and refused is None:
        st.info(
            f"The list has {plural(len(listed), 'table')}, too many to edit as text. Tables can "
            "be added and taken out below; choose another way above to start afresh."
        )
    else:
        text = "\n".join(texts_of_tables(domain, listed)) if refused is None else refused
        st.text_area(
            "One table a line, its attributes separated by commas or ×; "
            f"{text_of_total(domain)} stands for the total",
            key=bind("listed", text),
            on_change=set_list,
            height=220,
        )
    pick, buttons = st.columns([3, 2], vertical_alignment="bottom")
    picked = pick.multiselect(
        "Or pick the attributes of one table",
        domain.names,
        key="picked",
        placeholder="none: the total",
    )
    is_listed = set(picked) in [set(table) for table in listed]
    line = buttons.container(horizontal=True)
    line.button(
        "Add this table",
        on_click=change_list,
        args=(lambda tables, table: (*tables, table),),
        disabled=is_listed or refused is not None,
    )
    line.button(
        "Take it out",
        on_click=change_list,
        args=(lambda tables, table: tuple(other for other in tables if other != table),),
        disabled=not is_listed or len(listed) == 1 or refused is not None,
    )
