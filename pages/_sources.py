"""Where a schema comes from: the sample, a codebook file, or lines that are typed."""

from collections.abc import Callable

import streamlit as st

from pages._session import change_domain, current, revision
from rpexplore.analysis import grids
from rpexplore.domain import Domain
from rpexplore.webapp_location import sample_data_folder

SAMPLE, FILE, TYPED = "Sample survey", "Codebook file", "Typed in"
EXAMPLE = "age 0..99\nsex: Female, Male\nregion 12\nincome 0..9999 step 500"


def sample() -> Domain:
    """The schema of the sample data, whose records are people."""
    return Domain.load(sample_data_folder() / "household.json")


def choose_source(place: str, grid: str) -> None:
    """Widgets to replace the schema; messages go to `place`, the editor `grid` starts afresh."""

    def load(make: Callable[[], Domain], counted: str) -> None:
        change_domain(place, make, counted=counted)
        revision(grid, step=True)

    def counted() -> str:
        """What the tables count, which is not people only because the sample's do."""
        return "records" if current().domain == sample() else current().counted

    def load_file() -> None:
        file = st.session_state["codebook"]
        if file is not None:
            load(lambda: grids.domain_from_bytes(file.getvalue(), file.name), counted())

    def load_typed() -> None:
        load(lambda: grids.domain_from_lines(st.session_state["typed"]), counted())

    source = st.segmented_control("Start from", [SAMPLE, FILE, TYPED], key="schema source")
    if source == SAMPLE:
        st.markdown("A made-up household survey of about 50,000 people with 11 attributes.")
        st.button("Use the sample survey", on_click=load, args=(sample, "people"))
    elif source == FILE:
        st.file_uploader(
            "Codebook: Frictionless Table Schema (.json), or CSV with the columns attribute, "
            "value and, if wanted, label",
            type=["json", "csv"],
            key="codebook",
            on_change=load_file,
        )
    elif source == TYPED:
        st.text_area(
            "One attribute a line: a name with its number of values, its range, or its categories",
            placeholder=EXAMPLE,
            key="typed",
            height=140,
        )
        st.button("Use this schema", on_click=load_typed)
    else:
        st.caption("Choose a source to replace the attributes below, or change them in the grid.")
