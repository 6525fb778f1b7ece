"""Widgets to choose the basis of an attribute, with the numbers or the file that it needs."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from pages.components.shared.editors import revision
from pages.components.shared.session import bind, escaped, say
from rpexplore.domain.attribute import Attribute
from rpexplore.errors import RpexploreError
from rpexplore.scenarios import basis_options
from rpexplore.workload.bases import BASES, Basis, CustomBasis
from rpexplore.workload.custom_basis_file import read_custom_basis

Take = Callable[[Basis], None]


def basis_input(
    where: Any,
    beside: Any,
    below: Any,
    attribute: Attribute,
    present: Basis,
    take: Take,
    *,
    slot: str,
    key: str,
    label_end: str = "",
) -> None:
    """A basis of the attribute, and what the basis needs: beside it, or a file below.

    Args:
        where: The container of the choice; beside: of its numbers; below: of its file.
        present: The basis so far.
        take: Is given the basis that was chosen.
        slot: Where messages on what is wrong are shown.
        key: Of the widgets.
        label_end: What the label of the choice ends with.
    """
    kinds = basis_options.available_kinds(attribute)
    awaits_file = st.session_state.get(f"awaits file {key}", False)
    kind = CustomBasis.kind if awaits_file else present.kind

    def choose() -> None:
        forget_file(key)
        basis = BASES[st.session_state[f"kind {key}"]].default(attribute)
        if basis is None:
            st.session_state[f"awaits file {key}"] = True
        elif basis.kind != present.kind:
            take(basis)

    where.selectbox(
        f"Aggregation of {escaped(attribute.name)}{label_end}",
        kinds if kind in kinds else [*kinds, kind],
        format_func=lambda kind: BASES[kind].title,
        key=bind(f"kind {key}", kind),
        on_change=choose,
    )
    if BASES[kind].parameter == "file":
        _file(below, attribute, present, take, slot, key)
    elif present.parameter != "none":
        _parameter(beside, attribute, present, take, slot, key)


def forget_file(key: str) -> None:
    """Wait no longer for the file of a custom basis."""
    st.session_state.pop(f"awaits file {key}", None)


def _parameter(
    beside: Any, attribute: Attribute, present: Basis, take: Take, slot: str, key: str
) -> None:
    """A box for the number of the basis, or for its numbers as text."""
    name, text = f"{present.parameter} {key}", present.parameter_text()

    def change() -> None:
        try:
            take(present.from_parameter(str(st.session_state[name])))
        except RpexploreError as error:
            say(slot, "error", f"{error} Nothing was changed.")

    title, hint = present.parameter_title, present.parameter_help(attribute) or None
    if present.parameter == "number":
        number = int(text)
        beside.number_input(
            title,
            min_value=1,
            max_value=max(attribute.size, number),
            step=1,
            key=bind(name, number),
            on_change=change,
            help=hint,
        )
    else:
        text = text.replace(",", ", ")
        beside.text_input(title, key=bind(name, text), on_change=change, help=hint)


def _file(
    below: Any, attribute: Attribute, present: Basis, take: Take, slot: str, key: str
) -> None:
    def read_file() -> None:
        file = st.session_state[revision(f"file {key}")]
        if file is None:
            return
        try:
            basis = read_custom_basis(file.getvalue(), file.name, attribute)
        except RpexploreError as error:
            say(slot, "error", f"{error} {_still_in_effect(attribute, present)}")
            return
        forget_file(key)
        revision(f"file {key}", step=True)
        say(slot, "success", f"Took the {len(basis.rows):,} queries of {file.name}.")
        take(basis)

    left, right = below.columns([3, 2], vertical_alignment="bottom")
    left.file_uploader(
        "Matrix as .csv or .npy: a line for each query, with a number for each value",
        type=["csv", "npy"],
        key=revision(f"file {key}"),
        on_change=read_file,
    )
    right.download_button(
        "Download a template",
        lambda: basis_options.template_csv(attribute),
        "own-matrix.csv",
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
        f"Until a file is taken, {attribute.name} stays as it was: {present.describe(attribute)}."
    )
