"""The values of one attribute on the Schema page, and what they are called."""

import streamlit as st

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
from rpexplore.attribute import Attribute, Categories

HERE = "labels"


def grid_of(attribute: Attribute) -> str:
    """The editor's name: another one for other values, whose rows are not those typed into."""
    values = attribute.values.values if isinstance(attribute.values, Categories) else ()
    return f"labels of {attribute.name} {hash(values)}"


def apply_labels() -> None:
    """Take over typed labels; call it before anything is drawn."""
    domain = current().domain
    name = st.session_state.get("attribute shown", domain.names[0])
    if name not in domain.names or not isinstance(domain[name].values, Categories):
        return
    grid, refused = grid_of(domain[name]), ()
    changes = typed(grid)
    if changes:
        edited = grids.domain_with_labels(domain, name, changes)
        change_domain(HERE, lambda: edited.domain)
        refused = edited.refused
    tell_refused(grid, HERE, refused)


def values_and_labels() -> None:
    """One attribute's values; the labels of categories can be edited."""
    domain = current().domain
    name = st.selectbox("Attribute", domain.names, key="attribute shown")
    if name not in domain.names:
        return
    attribute = domain[name]
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
    else:
        st.dataframe(
            values, hide_index=True, width=480, alt=f"Values of {name}", column_config=columns
        )
        st.caption(f"The labels of {escaped(name)} follow from its numbers.")
    show_messages(HERE)
