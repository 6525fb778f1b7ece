"""Release: take a plan of tables along, run it on records, once, and look at the result."""

import streamlit as st

from pages.components.areas.study import study
from pages.components.release.export import take_along
from pages.components.release.last_release import last_release
from pages.components.release.run import run_form, run_in_place_of_form
from pages.components.release.which_plan import ADAPTIVE, adaptive_plan_input, kind_input
from pages.components.shared.explanations import explained_title
from pages.components.shared.next_page import next_page
from pages.components.shared.session import current
from pages.components.shared.solutions import plan


def draw() -> None:
    """The page."""
    with st.container(key="layout"):
        left = st.container(gap="small")
        right = st.container()
    with left:
        explained_title("Release")
    with right:
        if not run_in_place_of_form("tables", "rounds"):
            last_release()
            planned = plan() if kind_input() != ADAPTIVE else adaptive_plan_input()
            if planned is not None:
                with left:
                    take_along(planned.alone)
                st.subheader("Run the release")
                run_form(planned.alone)
            if current().query_list is not None:
                st.page_link(
                    "pages/queries.py", label="Your list of queries is released on the Queries page"
                )
            if study() is not None:
                st.page_link("pages/areas.py", label="Your areas are released on the page Areas")
    next_page("results", "Results")
