"""The last line of a page: where the way goes on."""

import streamlit as st

from pages.components.shared.serving import last_step


def next_page(page: str, title: str) -> None:
    """A link to the next page of the way."""
    st.page_link(f"pages/{page}.py", label=f"Next: {title}", icon=":material/arrow_forward:")


def next_is_last_step() -> None:
    """A link to the page where the plan leaves the app."""
    next_page(*last_step())
