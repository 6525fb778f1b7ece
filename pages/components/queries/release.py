"""The release of a list of queries: its run here, or what runs it elsewhere."""

import streamlit as st

from pages.components.queries.results import OWN_RELEASE, hand_over
from pages.components.release.last_release import last_release
from pages.components.release.run import run_form, run_in_place_of_form
from rpexplore.planning.counts.query_plan import QueryPlan


def release(planned: QueryPlan) -> None:
    """The run of the list, or the plan file and the command that runs it elsewhere."""
    if not run_in_place_of_form("counts"):
        last_release()
        st.markdown(OWN_RELEASE)
        run_form(planned.alone)
    with st.expander("Run it where the records are"):
        hand_over(planned)
