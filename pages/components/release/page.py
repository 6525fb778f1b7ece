"""Release: take the plan along, run it on records, once, and look at the result."""

import streamlit as st

from pages.components.release.export import take_along
from pages.components.release.last_release import last_release
from pages.components.release.run import run_form, run_in_place_of_form
from pages.components.release.which_plan import plan_to_run, say_without_whole_counts
from pages.components.shared.explanations import explained_title
from pages.components.shared.next_page import next_page


def draw() -> None:
    """The page."""
    with st.container(key="layout"):
        left = st.container(gap="small")
        right = st.container()
    with left:
        explained_title("Release")
    with right:
        if not run_in_place_of_form():
            last_release()
            planned = plan_to_run()
            if planned is not None:
                with left:
                    take_along(planned)
                st.subheader("Run the release")
                say_without_whole_counts(planned)
                run_form(planned)
    next_page("results", "Results")
