"""The app: page config, session state, navigation; and the server that runs it."""

import streamlit as st
from streamlit import runtime

from pages import all_pages
from pages.components.shared import mark
from pages.components.shared.autosave import begin, remember_in_browser
from pages.components.shared.callbacks import finish_callbacks
from pages.components.shared.codebook_notices import lacks_attributes
from pages.components.shared.server import guard, lifespan
from pages.components.shared.style import STYLE
from pages.components.shared.top_bar import bar, notices


def draw() -> None:
    """One run of a session's script."""
    st.set_page_config(page_title="rpexplore", page_icon=mark.ICON, layout="wide")
    st.logo(mark.LOGO)
    st.html(STYLE)
    problem = begin()
    page = st.navigation(all_pages(), position="top")
    top = st.container()
    if not lacks_attributes(page.title):
        page.run()
    with top:  # last, because the page itself may change the scenario
        if page.title != "Home":
            bar()
        notices(problem)
    remember_in_browser()


if runtime.exists():
    draw()
else:  # `streamlit run` takes the server from here
    finish_callbacks()
    app = st.App(__file__, middleware=[guard()], lifespan=lifespan)
