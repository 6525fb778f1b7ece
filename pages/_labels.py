"""The values of one attribute on the Schema page, and what they are called."""

import streamlit as st

from pages._bins import bin_editor
from pages._session import (
    change_domain,
    current,
    escaped,
    revision,
    show_messages,
    tell_refused,
    typed,
)
from rpexplore.analysis import grids
from rpexplore.analysis.bins import numbered
from rpexplore.analysis.unfinished import is_unfinished
from rpexplore.attribute import Attribute, Categories

HERE = "labels"
LISTED, NUMBERS = "categories", "numbers"


def grid_of(attribute: Attribute) -> str:
    """The editor's name: another one for other values, whose rows are not those typed into."""
    values = attribute.values.values if isinstance(attribute.values, Categories) else ()
    return f"labels of {attribute.name} {hash(values)}"


def apply_labels() -> None:
    """Take over typed labels; call it before anything is drawn."""
    domain = current().domain
    name = st.session_state.get("attribute shown", next(iter(domain.names), None))
    if name not in domain or not isinstance(domain[name].values, Categories):
        return
    grid, refused = grid_of(domain[name]), ()
    changes = typed(grid)
    if changes:
        edited = grids.domain_with_labels(domain, name, changes)
        change_domain(HERE, lambda: edited.domain)
        refused = edited.refused
    tell_refused(grid, HERE, refused)


def use_categories(name: str, grid: str) -> None:
    text = st.session_state[f"categories of {name}"]
    if change_domain(
        HERE,
        lambda: grids.domain_with_values(current().domain, name, grids.categories_from_text(text)),
    ):
        revision(grid, step=True)


def first_values(name: str, grid: str) -> None:
    """Widgets to give an attribute the values that it waits for."""
    kind = st.segmented_control(
        f"{escaped(name)} has no values yet. They are",
        [LISTED, NUMBERS],
        required=True,
        default=LISTED,
        key=f"first values of {name}",
    )
    if kind == NUMBERS:
        bin_editor(name, grid)
        return
    st.text_area(
        "Categories as they stand in the data, one a line",
        key=f"categories of {name}",
        height=140,
        placeholder="Female\nMale",
    )
    st.button("Use these categories", on_click=use_categories, args=(name, grid))
    show_messages(HERE)


def values_and_labels(grid: str) -> None:
    """One attribute's values: labels of categories and bins of numbers can be changed."""
    domain = current().domain
    name = st.selectbox("Attribute", domain.names, key="attribute shown")
    if name not in domain:
        return
    attribute = domain[name]
    if is_unfinished(attribute):
        first_values(name, grid)
        return
    values = grids.values_of(attribute)
    if attribute.size > len(values):
        st.caption(f"The first {len(values):,} of {attribute.size:,} values.")
    columns = {
        "value": st.column_config.TextColumn("Value in the data", disabled=True),
        "label": st.column_config.TextColumn("Label"),
    }
    if isinstance(attribute.values, Categories):
        st.data_editor(
            values,
            key=revision(grid_of(attribute)),
            hide_index=True,
            width=480,
            alt=f"Labels of {name}, editable",
            column_config=columns,
        )
        show_messages(HERE)
        return
    left, right = st.columns([1, 2], gap="large")
    with left:
        st.dataframe(
            numbered(attribute.values, grids.MAX_LISTED),
            hide_index=True,
            height=300,
            alt=f"Bins of {name}",
            column_config={"bin": "Bin", "label": "Values"},
        )
    with right:
        bin_editor(name, grid)
