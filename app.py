"""The app: page config, session state, navigation."""

import streamlit as st

from pages import all_pages
from rpexplore.domain import Domain
from rpexplore.scenario import Scenario
from rpexplore.webapp_location import sample_data_folder

# Drawn here: for a named icon Streamlit would make the browser ask a font service.
ICON = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" fill="#3c76c3">
<path d="M1 1h6v6H1zM9 1h6v6H9zM1 9h6v6H1zM9 9h6v6H9z"/></svg>"""
st.set_page_config(page_title="rpexplore", page_icon=ICON, layout="wide")

# A new session opens on the sample data, so that a complete plan is there to look at.
if "scenario" not in st.session_state:
    sample = Domain.load(sample_data_folder() / "household.json")
    st.session_state["scenario"] = Scenario(sample, counted="people")

st.navigation(all_pages(), position="top").run()
