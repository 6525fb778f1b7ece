"""The release of tables in areas: the plan to take along, and its run on the records."""

import streamlit as st

from pages.components.areas.export import take_along
from pages.components.areas.hand_over import OWN_RELEASE, say_without_whole_counts
from pages.components.areas.study import area_plan
from pages.components.release.last_release import last_release
from pages.components.release.run import run_form, run_in_place_of_form
from rpexplore.scenarios.area_study import AreaStudy


def release_view(opened: AreaStudy) -> None:
    """The form of the run beside the plan's files; or how far a run is, or its result."""
    if run_in_place_of_form("areas"):
        return
    planned = area_plan(opened)
    if planned is None:
        return
    with st.container(key="layout"):
        with st.container(key="inputs", gap="small"):
            take_along(planned)
        with st.container(key="answer"):
            last_release()
            st.subheader("Run the release")
            st.markdown(OWN_RELEASE)
            say_without_whole_counts(planned)
            run_form(planned.alone)
