"""Pages that need records, which a server that plans only does not have."""

import streamlit as st

from pages.components.shared.serving import plans_only
from pages.components.shared.session import project


def runs_here(title: str) -> bool:
    """Whether a page that needs records, or what was made of them, is there; else it says so."""
    project()  # on a new server, where this may be the first page to be requested
    if plans_only():
        st.title(title)
        st.info(
            "This server plans only: records, and what is released of them, stay where they are. "
            "There, “rpexplore app” has this page."
        )
    return not plans_only()
