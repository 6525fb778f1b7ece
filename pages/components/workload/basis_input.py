"""Widgets to choose one way to ask an attribute, with the widths or the file that it needs."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from pages.components.shared.session import bind, escaped, revision, say
from rpexplore.domain.attribute import Attribute
from rpexplore.errors import RpexploreError
from rpexplore.scenarios import basis_options as basis_options
from rpexplore.workload.bases import Basis, Hierarchy, Windows
from rpexplore.workload.custom_basis import CustomBasis

Take = Callable[[Basis], None]


def way_input(
    where: Any,
    beside: Any,
    below: Any,
    attribute: Attribute,
    present: Basis,
    take: Take,
    *,
    place: str,
    key: str,
    there: str = "",
) -> None:
    """A way to ask the attribute, and what the way needs: beside it, or a file below.

    take: told the basis that was chosen; place: where it says what is wrong; key: of the widgets;
    there: what its label ends with
    """
    usable = [way for way in basis_options.WAYS if not basis_options.why_not(way, attribute)]
    way = "custom" if _awaits_file(key) else present.kind

    def choose() -> None:
        forget_file(key)
        basis = basis_options.first_basis(st.session_state[f"way {key}"], attribute)
        if basis is None:
            st.session_state[f"awaits file {key}"] = True
        elif basis.kind != present.kind:
            take(basis)

    where.selectbox(
        f"How {escaped(attribute.name)} is asked{there}",
        usable if way in usable else [*usable, way],
        format_func=basis_options.WAYS.__getitem__,
        key=bind(f"way {key}", way),
        on_change=choose,
    )
    if way == "windows" and isinstance(present, Windows):
        _width(beside, attribute, present, take, key)
    elif way == "hierarchy":
        _groups(beside, attribute, present, take, place, key)
    elif way == "custom":
        _file(below, attribute, present, take, place, key)


def forget_file(key: str) -> None:
    """Wait no longer for a file of own questions."""
    st.session_state.pop(f"awaits file {key}", None)


def _awaits_file(key: str) -> bool:
    return st.session_state.get(f"awaits file {key}", False)


def _width(beside: Any, attribute: Attribute, present: Windows, take: Take, key: str) -> None:
    def change_width() -> None:
        take(Windows(int(st.session_state[f"width {key}"])))

    beside.number_input(
        "How many values are summed",
        min_value=1,
        max_value=max(attribute.size, present.width),
        step=1,
        key=bind(f"width {key}", present.width),
        on_change=change_width,
    )


def _groups(
    beside: Any, attribute: Attribute, present: Basis, take: Take, place: str, key: str
) -> None:
    def change_widths() -> None:
        try:
            take(basis_options.hierarchy_of_text(st.session_state[f"widths {key}"]))
        except RpexploreError as error:
            say(place, "error", f"{error} Nothing was changed.")

    has_groups = isinstance(present, Hierarchy) and bool(attribute.groups)
    beside.text_input(
        "Values in a group, such as 5, 10",
        key=bind(f"widths {key}", basis_options.text_of_hierarchy(present)),
        on_change=change_widths,
        placeholder="the groups of the schema" if has_groups else "",
        help="Groups of so many consecutive values; several widths give groups within groups. "
        + (
            "Empty: the groups that the values have on the Schema page."
            if has_groups
            else "For groups of your own, give the values groups on the Schema page."
        ),
    )


def _file(
    below: Any, attribute: Attribute, present: Basis, take: Take, place: str, key: str
) -> None:
    def read_file() -> None:
        file = st.session_state[revision(f"file {key}")]
        if file is None:
            return
        try:
            own = basis_options.custom_basis_of_file(file.name, file.getvalue(), attribute)
        except RpexploreError as error:
            say(place, "error", f"{error} {_still_in_effect(attribute, present)}")
            return
        forget_file(key)
        revision(f"file {key}", step=True)
        say(place, "success", f"Took the {len(own.rows):,} questions of {file.name}.")
        take(own)

    left, right = below.columns([3, 2], vertical_alignment="bottom")
    left.file_uploader(
        "QueryMatrix as .csv or .npy: a line for each, with a number for each value",
        type=["csv", "npy"],
        key=revision(f"file {key}"),
        on_change=read_file,
    )
    right.download_button(
        "Download a template",
        lambda: basis_options.template_csv(attribute),
        "questions.csv",
        "text/csv",
        key=f"template {key}",
        on_click="ignore",
        help="A file that can be used as it is: the total, and each value. Change it and add "
        "lines of your own.",
    )
    if not isinstance(present, CustomBasis):
        below.caption(escaped(_still_in_effect(attribute, present)))


def _still_in_effect(attribute: Attribute, present: Basis) -> str:
    return (
        f"Until a file is taken, {attribute.name} is asked as before: {present.words(attribute)}."
    )
