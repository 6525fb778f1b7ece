"""Where a codebook comes from: an example, a file, typed lines, nothing."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from pages.components.codebook.codebook_files import choose_file
from pages.components.codebook.grid import HERE, change_codebook
from pages.components.shared.session import current, escaped, say
from rpexplore.domain.domain import Domain
from rpexplore.scenarios import codebook_import
from rpexplore.scenarios.examples import EXAMPLES, Example

EXAMPLE, FILE, TYPED, EMPTY = "An example", "A file", "Typed in", "Empty"
LINES = "age 0..99\nsex: Female, Male\nregion 12\nincome 0..9999 step 500"


def choose_source() -> None:
    """Widgets to replace the codebook."""
    source = st.segmented_control(
        "Start from", [EXAMPLE, FILE, TYPED, EMPTY], key="codebook source"
    )
    if source == EXAMPLE:
        _example()
    elif source == FILE:
        choose_file()
    elif source == TYPED:
        st.text_area(
            "One attribute a line: a name with its number of values, its range, or its categories",
            placeholder=LINES,
            key="typed",
            height=140,
        )
        st.button("Use this codebook", on_click=_take_typed)
    elif source == EMPTY:
        st.markdown("No attributes at all: add them one by one in the grid below.")
        st.button(
            "Start with an empty codebook",
            on_click=_take,
            args=(lambda: Domain(()), "an empty codebook"),
        )
    else:
        st.caption("Choose a source to replace the attributes below, or change them in the grid.")


def _example() -> None:
    titles = {example.title: example for example in EXAMPLES}
    title = st.radio(
        "Example",
        list(titles),
        key="codebook of example",
        horizontal=True,
    )
    example = titles[title]
    st.caption(escaped(example.summary))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("Use the codebook of this example", on_click=_take_example, args=(example,))
        st.page_link("pages/home.py", label="Open it finished, with its tables and plans, on Home")


def _take_example(example: Example) -> None:
    """The codebook of an example, with the expected counts and the noun that belong to it."""
    _take(
        lambda: example.domain,
        f"the {example.title[0].lower()}{example.title[1:]}",
        record_noun=example.record_noun,
        expected=example.expected,
        survey=example.title,
    )


def _take_typed() -> None:
    text = st.session_state["typed"]
    _take(lambda: codebook_import.domain_from_lines(text), "the typed lines")


def _take(make: Callable[[], Domain], what: str, **more: Any) -> None:
    """Replace the codebook, and what else the scenario says of the records."""
    options = {"record_noun": "records", **more}
    if change_codebook(HERE, make, from_elsewhere=True, **options):
        say(HERE, "success", codebook_import.describe_loaded(current(), what))
