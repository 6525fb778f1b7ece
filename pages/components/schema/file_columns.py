"""The columns of a data file as attributes: by name only, or with the values in its records."""

import streamlit as st

from pages.components.schema.column_values import Columns, take
from pages.components.shared.paths import path_of
from pages.components.shared.session import current, escaped
from rpexplore.common.formatting import plural
from rpexplore.data.files.columns import MOST_VALUES, Header, read_header
from rpexplore.errors import DataError

NAMES, FOUND = "Names only", "Names, and the values found in the records"
WARNING = (
    "**What is found in records is not protected.** The values become part of the codebook, which "
    "is published with every table. A rare value (an occupation, a country of birth) tells "
    "everybody that somebody in the data has it, and a value that is not listed, that nobody has. "
    "No budget covers that. Where a codebook or another public list exists, use it instead. The "
    "label of each such attribute will say where its values come from."
)


def choose_columns(slot: str, grid: str) -> None:
    """Widgets to take the columns of a data file; the file is read in place, never uploaded."""
    typed = st.text_input(
        "Path of the data file (.csv or .parquet)",
        key="header path",
        persist_state="session",
        placeholder="/data/survey.csv",
        help="The file stays where it is, on this computer. Of a CSV file the first line is "
        "looked at, of a Parquet file the names and declared types of its columns.",
    )
    if not typed.strip():
        st.caption("Only the names of the columns are read, none of the records.")
        return
    path = path_of(typed)
    try:
        header = read_header(path)
    except DataError as error:
        st.error(escaped(error.on_screen()))
        return
    chosen = columns_to_take(header)
    what = st.radio(
        "What to take from the file",
        [NAMES, FOUND],
        captions=[
            "No record is read. You give the values afterwards, from public knowledge.",
            "Reads all records of these columns, on this computer.",
        ],
        key="what to take",
        persist_state="session",
    )
    understood = what == NAMES
    if what == FOUND:
        st.warning(WARNING)
        understood = st.checkbox(
            "I have read this, and the lists of values of these columns may be public",
            key=f"understood for {path}",
        )
        st.caption(
            f"A column with more than {MOST_VALUES} different values, or a measurement, is not "
            "listed. No values are counted."
        )
    line = st.container(horizontal=True)
    for label, add in (
        ("Replace the codebook by these", False),
        ("Add these to the codebook", True),
    ):
        line.button(
            label,
            on_click=take,
            args=(Columns(path, chosen, add, slot, grid), header, what == FOUND),
            disabled=not chosen or not understood or (add and len(current().domain) == 0),
        )


def columns_to_take(header: Header) -> list[str]:
    """The columns that are ticked."""
    declared = {column.name: column.declared for column in header.columns}
    chosen = st.multiselect(
        "Columns that become attributes",
        list(declared),
        key="columns to take",
        format_func=lambda name: name + (f" ({declared[name]})" if declared.get(name) else ""),
        placeholder="none yet; leave out names, record numbers and the like",
    )
    if header.left_out:
        st.caption(
            f"{plural(header.left_out, 'column')} without a name of their own, or with columns "
            "inside, cannot be attributes."
        )
    return [name for name in declared if name in chosen]
