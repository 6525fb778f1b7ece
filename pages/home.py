"""Home: what the app answers, the ways into it, and all saved projects."""

import streamlit as st

from pages.components.home.doors import doors, enter_opened, gallery, picture, projects

enter_opened()
st.title("Will your tables be good enough to publish, and for whom?")
st.markdown(
    "rpexplore plans a differentially private release before anyone touches the records: the best "
    "noise for all tables together, the accuracy of each table, and a plan that others can verify."
)
with st.container(key="first"):
    with st.container():
        picture()
    with st.container(gap="small"):
        doors()
projects()
gallery()
