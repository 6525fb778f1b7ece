"""The former address of areas, which are on the page Tables."""

import streamlit as st

st.switch_page("pages/workload.py", query_params={"part": "areas"})
