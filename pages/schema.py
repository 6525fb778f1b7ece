"""Schema: which attributes there are, and which values each can take."""

import streamlit as st

from pages._labels import apply_labels, values_and_labels
from pages._session import (
    bind,
    change,
    change_domain,
    current,
    escaped,
    revision,
    show_messages,
    tell_refused,
    typed,
)
from pages._sources import choose_source
from rpexplore.analysis import grids
from rpexplore.words import count_in_words

HERE = "schema"  # where messages are shown, and the grid, which has its own
GRID = "schema grid"


def add_attribute() -> None:
    change_domain(HERE, lambda: grids.with_new_attribute(current().domain))
    revision(GRID, step=True)


def apply_typed() -> None:
    """Take over what was typed into the grid; what cannot be used says why and stays there."""
    domain, changes = current().domain, typed(GRID)
    refused = ()
    if changes:
        edited = grids.domain_from_grid(domain, changes)
        change_domain(GRID, lambda: edited.domain, renamed=dict(edited.renamed))
        refused = edited.refused
    tell_refused(GRID, GRID, refused)
    if len(current().domain) != len(domain):
        revision(GRID, step=True)


def set_counted() -> None:
    noun = st.session_state["counted"].strip() or "records"
    change(HERE, lambda: current().replaced(counted=noun))


apply_typed()
apply_labels()
st.title("Schema")
st.markdown(
    "Which attributes the tables can have, and which values each can take. This is **public "
    "knowledge**, such as a codebook: a list of values taken from the records would give away "
    "that somebody has them. No records are needed on this page."
)
choose_source(HERE, GRID)
show_messages(HERE)

scenario = current()
domain = scenario.domain
left, middle, right = st.columns(3)
left.metric("Attributes", f"{len(domain):,}")
middle.metric("Values in all", f"{sum(domain.sizes.tolist()):,}")
right.metric(
    "Combinations of all attributes",
    count_in_words(grids.cross_product(domain)),
    help="Cells of the table that crosses all attributes. Planning never builds that table.",
)
st.data_editor(
    grids.schema_grid(domain),
    key=revision(GRID),
    hide_index=True,
    height="content" if len(domain) <= 15 else 560,
    placeholder="",
    alt="Attributes of the schema, editable",
    column_config={
        "name": st.column_config.TextColumn("Name in the data", width=130, required=True),
        "label": st.column_config.TextColumn("Label", width=170),
        "kind": st.column_config.SelectboxColumn(
            "Kind", width=115, options=grids.KINDS, required=True
        ),
        "size": st.column_config.NumberColumn(
            "Values", width=65, disabled=True, format="localized"
        ),
        "values": st.column_config.ListColumn("Categories, or edges of intervals", width=230),
        "minimum": st.column_config.NumberColumn("Lowest", width=75, step=1, format="%d"),
        "maximum": st.column_config.NumberColumn("Highest", width=80, step=1, format="%d"),
        "step": st.column_config.NumberColumn("In groups of", width=105, step=1, format="%d"),
        "remove": st.column_config.CheckboxColumn("Remove", width=75),
    },
    column_order=[
        "name",
        "label",
        "kind",
        "size",
        "values",
        "minimum",
        "maximum",
        "step",
        "remove",
    ],
)
show_messages(GRID)
buttons = st.container(horizontal=True)
buttons.button("Add an attribute", icon=":material/add:", on_click=add_attribute)
problem = grids.why_no_csv(domain)
buttons.download_button(
    "Download codebook.json",
    lambda: domain.text("codebook.json"),
    "codebook.json",
    on_click="ignore",
)
buttons.download_button(
    "Download codebook.csv",
    lambda: domain.text("codebook.csv"),
    "codebook.csv",
    on_click="ignore",
    disabled=bool(problem),
    help=escaped(problem) or None,
)

with st.expander("Values and labels of one attribute"):
    values_and_labels()
st.text_input(
    "What do the tables count? (one row of the data is one of them)",
    key=bind("counted", scenario.counted),
    on_change=set_counted,
    max_chars=40,
    width=480,
)
st.page_link("pages/workload.py", label="Next: choose the tables", icon=":material/arrow_forward:")
