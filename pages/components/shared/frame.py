"""What is around every page: title, session state, navigation and the line on top."""

import streamlit as st

from pages import all_pages
from pages.components.shared import mark
from pages.components.shared.autosave import begin, remember_in_browser
from pages.components.shared.codebook_notices import lacks_attributes
from pages.components.shared.session_log import session_number
from pages.components.shared.style import STYLE
from pages.components.shared.top_bar import account_line, bar, notices
from pages.components.shared.turns import has_place
from rpexplore.common.event_log import timed_event


def draw() -> None:
    """One run of a session's script."""
    st.set_page_config(page_title="rpexplore", page_icon=mark.ICON, layout="wide")
    st.logo(mark.LOGO)
    st.html(STYLE)
    if not has_place():
        return
    problem = begin()
    page = st.navigation(all_pages(), position="top")
    with timed_event("page run", session=session_number(), page=page.title):
        top = st.container()
        if not lacks_attributes(page.title):
            page.run()
        with top:  # last, because the page itself may change the scenario
            account_line()
            if page.title != "Home":
                bar()
            notices(problem)
        remember_in_browser()
