"""The last line of a page: where the way goes on."""

import streamlit as st


def next_page(page: str, title: str) -> None:
    """A link to the next page of the way."""
    st.page_link(f"pages/{page}.py", label=f"Next: {title}", icon=":material/arrow_forward:")
