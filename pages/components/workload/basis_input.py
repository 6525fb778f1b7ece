"""Widgets to choose the basis of an attribute, with the numbers or the file that it needs."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from pages.components.shared.editors import revision
from pages.components.shared.files import download, upload
from pages.components.shared.session import bound, escaped, say
from rpexplore.analysis.glossary import meaning
from rpexplore.common.formatting import capitalised
from rpexplore.domain.attribute import Attribute
from rpexplore.errors import RpexploreError
from rpexplore.scenarios import basis_options
from rpexplore.workload.bases import BASES, Basis, CustomBasis
from rpexplore.workload.custom_basis_file import read_custom_basis

Take = Callable[[Callable[[], Basis], str], Basis | None]
UNCHANGED = "Nothing was changed."


def basis_input(
    where: Any,
    beside: Any,
    below: Any,
    attribute: Attribute,
    present: Basis,
    choose: Callable[[Basis], Any],
    *,
    slot: str,
    key: str,
    label_end: str = "",
) -> None:
    """A basis of the attribute in the container `where`, with its numbers or its file.

    `choose` is given the basis that was chosen, and may refuse it with a message in `slot`.
    """
    kinds = basis_options.available_kinds(attribute)
    awaits_file = st.session_state.get(f"awaits file {key}", False)
    kind = CustomBasis.kind if awaits_file else present.kind

    def take(make: Callable[[], Basis], otherwise: str) -> Basis | None:
        try:
            basis = make()
            choose(basis)
        except RpexploreError as error:
            say(slot, "error", f"{error} {otherwise}")
            return None
        return basis

    def set_kind(kind: str) -> None:
        forget_file(key)
        basis = BASES[kind].default(attribute)
        if basis is None:
            st.session_state[f"awaits file {key}"] = True
        elif basis.kind != present.kind:
            take(lambda: basis, UNCHANGED)

    where.selectbox(
        f"Aggregation of {escaped(attribute.name)}{label_end}",
        kinds if kind in kinds else [*kinds, kind],
        format_func=lambda kind: BASES[kind].title,
        help=meaning(capitalised(BASES[kind].title)),
        **bound(f"kind {key}", kind, set_kind),
    )
    if BASES[kind].parameter == "file":
        with below:
            _file(attribute, present, take, slot, key)
    elif present.parameter != "none":
        with beside:
            _parameter(attribute, present, take, key)


def forget_file(key: str) -> None:
    """Wait no longer for the file of a custom basis."""
    st.session_state.pop(f"awaits file {key}", None)


def _parameter(attribute: Attribute, present: Basis, take: Take, key: str) -> None:
    """A box for the number of the basis, or for its numbers as text."""
    name, text = f"{present.parameter} {key}", present.parameter_text()
    title, hint = present.parameter_title, present.parameter_help(attribute) or None

    def change(parameter: float | str) -> None:
        take(lambda: present.from_parameter(str(parameter)), UNCHANGED)

    if present.parameter == "number":
        number = int(text)
        most = max(attribute.size, number)
        st.number_input(title, 1, most, step=1, help=hint, **bound(name, number, change))
    else:
        st.text_input(title, help=hint, **bound(name, text.replace(",", ", "), change))


def _file(attribute: Attribute, present: Basis, take: Take, slot: str, key: str) -> None:
    """A box for the matrix of a custom basis, and a template for one."""
    so_far = present.describe(attribute)
    unchanged = f"Until a file is taken, {attribute.name} stays as it was: {so_far}."

    def read(content: bytes, file: str) -> None:
        basis = take(lambda: read_custom_basis(content, file, attribute), unchanged)
        if isinstance(basis, CustomBasis):
            forget_file(key)
            revision(f"file {key}", step=True)
            say(slot, "success", f"Took the {len(basis.rows):,} queries of {file}.")

    left, right = st.columns([3, 2], vertical_alignment="bottom")
    with left:
        upload(
            "Matrix as .csv or .npy: a line for each query, with a number for each value",
            ["csv", "npy"],
            revision(f"file {key}"),
            read,
        )
    with right:
        download(
            "own-matrix.csv",
            lambda: basis_options.template_csv(attribute),
            "Download a template",
            key=f"template {key}",
            help="A file that can be used as it is: the total, and each value. Change it and add "
            "lines of your own.",
        )
    if not isinstance(present, CustomBasis):
        st.caption(escaped(unchanged))
