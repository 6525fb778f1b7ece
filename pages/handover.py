"""Hand over: take a plan along, for those who approve it and those who run it on the records."""

import streamlit as st

from pages.components.release.export import commands, take_along
from pages.components.release.form import plan_to_run, say_without_whole_counts
from pages.components.shared.texts import explained_title
from rpexplore.serving.sessions import HAND_OVER

with st.container(key="layout"):
    left = st.container(gap="small")
    right = st.container()
with left:
    explained_title(HAND_OVER)
with right:
    planned = plan_to_run("Plan to hand over", takes_files=False)
    if planned is not None:
        with left:
            take_along(planned)
        say_without_whole_counts(planned)
        commands(planned)
