"""The values of one attribute on the Codebook page: what they are called, and their groups."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from pages.components.codebook.bins import bin_editor
from pages.components.codebook.grid import change_codebook
from pages.components.shared.editors import apply_cells, revision
from pages.components.shared.session import change_domain, current, escaped, show_messages
from rpexplore.domain.attribute import Attribute, Categories
from rpexplore.domain.provenance import is_unfinished
from rpexplore.scenarios.bins import numbered
from rpexplore.scenarios.codebook_grid import (
    MAX_LISTED,
    categories_from_text,
    domain_with_labels,
    domain_with_values,
    values_of,
)

HERE = "labels"
LISTED, NUMBERS = "categories", "numbers"
GROUP_HELP = (
    "Group: what several values belong to, such as the part of the country that a region lies in. "
    "Groups within groups are written from the largest on: South \\> East."
)


def grid_of(attribute: Attribute) -> str:
    """The editor's name: another one for other values, whose rows are not those typed into."""
    values = attribute.values
    # Of categories without their labels, which are what is typed.
    key = hash(values.values if isinstance(values, Categories) else values)
    return f"labels of {attribute.name} {key}"


def apply_labels() -> None:
    """Apply typed labels and groups; call it before anything is drawn."""
    domain = current().domain
    name = st.session_state.get("attribute shown", next(iter(domain.names), None))
    if name not in domain or is_unfinished(domain[name]):
        return

    def apply(cells: dict[int, dict[str, Any]]) -> Sequence[str]:
        edited, refused = domain_with_labels(domain, name, cells)
        change_domain(HERE, lambda: edited)
        return refused

    apply_cells(grid_of(domain[name]), HERE, apply)


def use_categories(name: str) -> None:
    text = st.session_state[f"categories of {name}"]
    change_codebook(
        HERE,
        lambda: domain_with_values(current().domain, name, categories_from_text(text)),
    )


def first_values(name: str) -> None:
    """Widgets to give an attribute the values that it waits for."""
    kind = st.segmented_control(
        f"{escaped(name)} has no values yet. They are",
        [LISTED, NUMBERS],
        required=True,
        default=LISTED,
        key=f"first values of {name}",
    )
    if kind == NUMBERS:
        bin_editor(name)
        return
    st.text_area(
        "Categories as they stand in the data, one a line",
        key=f"categories of {name}",
        height=140,
        placeholder="Female\nMale",
    )
    st.button("Use these categories", on_click=use_categories, args=(name,))
    show_messages(HERE)


def values_and_labels() -> None:
    """One attribute's values: labels of categories and bins of numbers can be changed."""
    domain = current().domain
    name = st.selectbox("Attribute", domain.names, key="attribute shown")
    if name not in domain:
        return
    attribute = domain[name]
    if is_unfinished(attribute):
        first_values(name)
        return
    values = values_of(attribute)
    if attribute.size > len(values):
        st.caption(f"The first {len(values):,} of {attribute.size:,} values.")
    if isinstance(attribute.values, Categories):
        _editor(attribute, values)
        return
    left, right = st.columns([1, 2], gap="large")
    with left:
        _editor(
            attribute,
            numbered(attribute.values, MAX_LISTED).assign(group=values.group),
        )
    with right:
        bin_editor(name)


def _editor(attribute: Attribute, frame: pd.DataFrame) -> None:
    """Values, one a row: labels of categories can be typed, and the groups of any values."""
    has_labels = isinstance(attribute.values, Categories)
    st.data_editor(
        frame,
        key=revision(grid_of(attribute)),
        hide_index=True,
        width=640,
        height="auto" if has_labels else 300,
        alt=f"Values of {attribute.name}, editable",
        placeholder="",
        column_config={
            "value": st.column_config.TextColumn("Value in the data", disabled=True),
            "bin": st.column_config.NumberColumn("Bin", disabled=True, width=50),
            "label": st.column_config.TextColumn(
                "Label" if has_labels else "Values", disabled=not has_labels
            ),
            "group": st.column_config.TextColumn("Group", help=GROUP_HELP),
        },
    )
    show_messages(HERE)
    st.caption(
        f"{GROUP_HELP} On the Tables page the groups can then be the aggregation of the attribute."
    )
