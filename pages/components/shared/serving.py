"""How this server serves: for one's own records beside it, or for planning alone."""

import streamlit as st

from pages.components.shared.session import project
from rpexplore.common.server_settings import server_settings

HAND_OVER = "Hand over"


def plans_only() -> bool:
    """Whether this server is shared and has no records: its pages read no path and run nothing."""
    return server_settings().planning_only


def where_kept() -> str:
    """Where the things of a session are kept, behind "saved" or "kept"."""
    return "on the server" if plans_only() else "on this computer"


def last_step() -> tuple[str, str]:
    """The file and the title of the page where a plan leaves the app."""
    return ("handover", HAND_OVER) if plans_only() else ("release", "Release")


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
