"""Editors: grids whose cells are applied to the scenario in every run, and removable lines."""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from pages.components.shared.session import say


def apply_cells(
    name: str, slot: str, apply: Callable[[dict[int, dict[str, Any]]], Sequence[str]]
) -> None:
    """Apply what was typed into an editor since it was first drawn, and say what is refused.

    Call it in every run, before the editor is drawn: the values are absolute, and applying them
    again changes nothing. What cannot be used keeps its message as long as it stands in the grid,
    and is mentioned once more when the editor forgets it (its page is left, or for a new codebook).

    `apply` is given {row: {column: value}}, and returns why some of it is refused.
    """
    cells = dict(st.session_state.get(revision(name), {}).get("edited_rows", {}))
    refused = apply(cells) if cells else ()
    for reason in refused:
        say(slot, "error", f"{reason} This change is not in effect until it is mended.")
    if not cells:
        for reason in st.session_state.get(f"{name} refused", ()):
            say(slot, "warning", f"A change you had typed was given up: {reason}")
    st.session_state[f"{name} refused"] = refused


def removable(text: str, key: str, remove: Callable[[], None]) -> None:
    """A line of Markdown with a button that removes what it tells."""
    line = st.container(horizontal=True, vertical_alignment="center", gap="small")
    line.markdown(text, width="content")
    line.button("Remove", key=key, on_click=remove, type="tertiary")


def revision(name: str, step: bool = False) -> str:
    """A key for an editor; another one after a step, which makes it forget what was typed."""
    st.session_state[f"{name} revision"] = st.session_state.get(f"{name} revision", 0) + step
    forgotten = st.session_state.get("typed forgotten", 0)
    return f"{name} {forgotten}.{st.session_state[f'{name} revision']}"
