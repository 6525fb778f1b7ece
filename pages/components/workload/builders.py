"""Which tables there are: the quick builders or a list, and whether they can be planned here."""

import shutil
from functools import partial
from typing import Any

import streamlit as st

from pages.components.shared.expected_counts import expected_total_input, usefulness_of
from pages.components.shared.files import RELEASES, nearest_folder
from pages.components.shared.serving import plans_only
from pages.components.shared.session import bound, change, current, escaped
from rpexplore.analysis import accuracy, measures, workload_grid
from rpexplore.analysis.budget_units import stated_text
from rpexplore.analysis.glossary import meaning
from rpexplore.common.text import describe_count, plural
from rpexplore.figures.queries import share_rows
from rpexplore.planning.table_plan import TablePlan
from rpexplore.releases.feasibility import Fit, ReleaseSize, Remedy, computer_memory
from rpexplore.workload.table_text import tables_from_text, texts_of_tables

# ---- Which tables there are: the quick builders and what narrows them, or a list; what they give.


NAMES = {
    "up_to": "Up to k-way",
    "of_order": "Exactly k-way",
    "at_most_cells": "Up to n cells",
    "listed": "My own list",
}
HERE = "workload"
MOST_LISTED = 2000


def set_fields(**fields: Any) -> None:
    change(HERE, lambda: current().with_request(**fields))


def set_kind(kind: str) -> None:
    listed = current().request.listed
    if kind == "listed" and not listed:
        listed = workload_grid.first_list(current(), MOST_LISTED)
    set_fields(kind=kind, listed=listed)


def set_attributes(field: str, names: list[str]) -> None:
    set_fields(**{field: current().domain.in_order(names)})


def which_tables(planned: TablePlan | None) -> None:
    """What chooses the tables, and what they give at the present plan."""
    with st.container(key="inputs"):
        with st.container(gap="small"):
            st.radio(
                "Which tables?",
                list(NAMES),
                format_func=NAMES.__getitem__,
                label_visibility="collapsed",
                **bound("kind", current().request.kind, set_kind),
            )
            if current().request.kind == "listed":
                own_list()
            else:
                numbers()
        if current().request.kind != "listed":
            with st.container(gap="small"):
                attributes()
    with st.container(gap="small"):
        if planned is not None:
            by_attributes(planned)
        size = ReleaseSize.of(current().workload)
        st.caption(f"{size.text} Reading the records comes on top.")


def numbers() -> None:
    """The numbers of a builder."""
    request, domain = current().request, current().domain
    if request.kind == "at_most_cells":
        number("Cells in a table, at most", "cells", request.cells, min_value=1)
        return
    number(
        "Attributes in a table" + ("" if request.kind == "of_order" else ", at most"),
        "order",
        min(request.order, len(domain)),
        min_value=0,
        max_value=len(domain),
    )
    number(
        "Cells in a table, at most",
        "most_cells",
        request.most_cells,
        min_value=1,
        value=None,  # it can be emptied
        placeholder="any",
    )


def attributes() -> None:
    """The attributes that the tables may have, and those that each has."""
    for label, field, placeholder in (
        ("Made of these attributes only", "only", "all attributes"),
        ("With all of these attributes", "containing", "none in particular"),
    ):
        st.multiselect(
            label,
            current().domain.with_levels.names,
            placeholder=placeholder,
            **bound(field, list(getattr(current().request, field)), partial(set_attributes, field)),
        )


def by_attributes(planned: TablePlan) -> None:
    """What the tables give at the present plan, by their number of attributes."""
    useful, record_noun = usefulness_of(planned), current().record_noun
    budget = stated_text(planned.budget)
    if useful is None:
        st.html(share_rows(accuracy.margins_by_order(planned), record_noun))
        st.caption(f"With the present plan, at {budget}.")
        st.markdown("**Is that accurate enough?** Type how many there will be, about.")
        expected_total_input()
        return
    st.html(share_rows(useful.by_order().rename(columns={"attributes": "name"}), record_noun))
    st.caption(escaped(f"With the present plan, at {budget}: {useful.describe()}"))


def number(label: str, field: str, present: int | None, **more: Any) -> None:
    def set_number(value: float | None) -> None:
        set_fields(**{field: None if value is None else int(value)})

    st.number_input(label, step=1, **bound(field, present, set_number), **more)


def take_list() -> None:
    """Apply the typed list; a refused one is kept to be mended, and says that on every visit."""
    text = st.session_state.get("typed list")
    if text is not None and current().request.kind == "listed":
        done = change(
            HERE,
            lambda: current().with_request(
                listed=tables_from_text(current().domain.with_levels, text)
            ),
            otherwise="The plan still uses the list before this one.",
        )
        st.session_state["typed list"] = None if done else text


def own_list() -> None:
    """The list as text, and a table picked by its attributes."""
    listed, refused = current().request.listed, st.session_state.get("typed list")
    domain = current().domain.with_levels
    if len(listed) > MOST_LISTED and refused is None:
        st.info(
            f"The list has {plural(len(listed), 'table')}, too many to edit as text. Tables can "
            "be added and taken out below; choose another way above to start afresh."
        )
    else:
        text = "\n".join(texts_of_tables(domain, listed)) if refused is None else refused
        (total,) = texts_of_tables(domain, [()])
        st.text_area(
            "One table a line, its attributes separated by commas or ×; "
            f"{total} stands for the total",
            height=220,
            **bound("listed", text, partial(st.session_state.__setitem__, "typed list")),
        )
    picked = st.multiselect(
        "Or pick the attributes of one table",
        domain.names,
        key="picked",
        placeholder="none: the total",
        persist_state="session",
    )
    table = domain.in_order(picked)
    is_listed = set(table) in map(set, listed)
    line = st.container(horizontal=True)
    line.button(
        "Add this table",
        on_click=set_fields,
        kwargs={"listed": (*listed, table)},
        disabled=is_listed or refused is not None,
    )
    line.button(
        "Take it out",
        on_click=set_fields,
        kwargs={"listed": tuple(one for one in listed if set(one) != set(table))},
        disabled=not is_listed or len(listed) == 1 or refused is not None,
    )


# ---- How large the tables are, and whether they can be planned and released here.


def fit() -> Fit:
    """Whether the tables can be planned, and whether their release fits this computer."""
    if plans_only():  # where it is released nobody knows here
        return Fit.of(current().workload, free_disk=float("inf"), memory=float("inf"))
    free_disk = shutil.disk_usage(nearest_folder(RELEASES)).free
    return Fit.of(current().workload, free_disk=free_disk, memory=computer_memory())


def sizes(planned: TablePlan | None) -> None:
    """Tables, cells, largest table, and what will be measured."""
    totals = measures.totals(current().workload)
    st.metric("Tables", f"{totals.tables:,}")
    st.metric("Cells in all tables", describe_count(totals.cells))
    st.metric(
        "Cells of the largest table",
        describe_count(totals.largest_cells),
        help=f"The largest table is {escaped(totals.largest_table)}.",
    )
    if planned is not None:
        st.metric("Tables to measure", f"{len(planned.closure):,}", help=meaning("Residual"))


def narrow(remedy: Remedy) -> None:
    request = current().request.within(most_cells=remedy.most_cells, most_order=remedy.most_order)
    change(HERE, lambda: current().replaced(request=request))


def obstacles(fit: Fit) -> None:
    """What is in the way, and a button that clears it where one limit can; else what it takes."""
    for sentence in fit.obstacles:
        (st.warning if fit.can_be_planned else st.error)(escaped(sentence))
    if fit.remedy is not None:
        limit = f"tables of at most {fit.remedy.limit}"
        drops = f"drops {fit.remedy.dropped:,} of {plural(len(current().workload), 'table')}"
        if current().request.kind == "listed":
            st.markdown(f"Everything would fit with {limit} ({drops}).")
        else:
            st.button(f"Keep {limit} ({drops})", on_click=narrow, args=(fit.remedy,))
    if fit.obstacles:
        st.caption(
            "Tables of fewer attributes are smaller, and so are those of attributes with fewer "
            "values: the Codebook page can group them."
        )
