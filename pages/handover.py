"""Hand over: take a plan along, for those who approve it and those who run it on the records."""

import streamlit as st

from pages.components.areas.study import study
from pages.components.handover.commands import commands
from pages.components.release.export import take_along
from pages.components.release.which_plan import ADAPTIVE, kind_input
from pages.components.shared.adaptive import adaptive_plan_of_scenario
from pages.components.shared.explanations import explained_title
from pages.components.shared.serving import HAND_OVER
from pages.components.shared.session import current
from pages.components.shared.solutions import plan

with st.container(key="layout"):
    left = st.container(gap="small")
    right = st.container()
with left:
    explained_title(HAND_OVER)
with right:
    planned = plan() if kind_input("Plan to hand over") != ADAPTIVE else adaptive_plan_of_scenario()
    if planned is not None:
        with left:
            take_along(planned.alone)
        commands(planned.alone)
    if current().query_list is not None:
        st.page_link("pages/queries.py", label="Your list of queries has its plan on Queries")
    if study() is not None:
        st.page_link("pages/areas.py", label="Your areas have their plan on the page Areas")
