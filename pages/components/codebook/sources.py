"""Where a codebook comes from: the sample, a codebook file, a data file's header, typed lines, …"""

from collections.abc import Callable

import streamlit as st

from pages.components.codebook.file_columns import choose_columns
from pages.components.codebook.grid import GRID, HERE, change_codebook
from pages.components.shared.autosave import new_project
from pages.components.shared.editors import revision
from pages.components.shared.files import upload
from pages.components.shared.session import change, current, say
from rpexplore.common.formatting import plural
from rpexplore.domain.domain import Domain
from rpexplore.scenarios import codebook_import

SAMPLE, FILE, HEADER = "Sample survey", "Codebook file", "Header of a data file"
TYPED, PLAN, EMPTY = "Typed in", "Plan file", "Empty"
EXAMPLE = "age 0..99\nsex: Female, Male\nregion 12\nincome 0..9999 step 500"


def choose_source() -> None:
    """Widgets to replace the codebook."""

    def load(make: Callable[[], Domain], what: str, record_noun: str = "records") -> None:
        if change_codebook(HERE, make, from_elsewhere=True, record_noun=record_noun):
            say(HERE, "success", codebook_import.describe_loaded(current(), what))

    def load_file(content: bytes, name: str) -> None:
        load(lambda: codebook_import.domain_from_bytes(content, name), name)

    def load_typed() -> None:
        text = st.session_state["typed"]
        load(lambda: codebook_import.domain_from_lines(text), "the typed lines")

    def load_plan(content: bytes, name: str) -> None:
        if not change(HERE, lambda: codebook_import.scenario_from_bytes(content, name, current())):
            return
        revision(GRID, step=True)
        st.session_state["typed list"] = None  # of the tables before this plan
        tables = plural(len(current().workload), "table")
        attributes = plural(len(current().domain), "attribute")
        say(
            HERE,
            "success",
            f"Opened {name}: {attributes}, {tables}. The scenario now has its codebook, tables, "
            "weights, targets, objective and budget.",
        )

    source = st.segmented_control(
        "Start from", [SAMPLE, FILE, HEADER, TYPED, PLAN, EMPTY], key="codebook source"
    )
    if source == SAMPLE:
        st.markdown("A made-up household survey of about 50,000 people with 11 attributes.")
        st.button(
            "Use the sample survey",
            on_click=load,
            args=(lambda: new_project().current.domain, "the sample survey", "people"),
        )
    elif source == FILE:
        upload(
            "Codebook: Frictionless Table Schema (.json), or CSV with the columns attribute, "
            "value and, if wanted, label and group",
            ["json", "csv"],
            "codebook",
            load_file,
        )
    elif source == HEADER:
        choose_columns()
    elif source == TYPED:
        st.text_area(
            "One attribute a line: a name with its number of values, its range, or its categories",
            placeholder=EXAMPLE,
            key="typed",
            height=140,
        )
        st.button("Use this codebook", on_click=load_typed)
    elif source == PLAN:
        upload(
            "A plan saved by this app or by the command line: replaces codebook, tables, "
            "objective and budget",
            ["json"],
            "plan file",
            load_plan,
        )
    elif source == EMPTY:
        st.markdown("No attributes at all: add them one by one in the grid below.")
        st.button(
            "Start with an empty codebook",
            on_click=load,
            args=(lambda: Domain(()), "an empty codebook"),
        )
    else:
        st.caption("Choose a source to replace the attributes below, or change them in the grid.")
