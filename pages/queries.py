"""The former address of own counts, which are on the page Tables."""

import streamlit as st

st.switch_page("pages/workload.py", query_params={"part": "counts"})
