"""Home: what the app is for, the way through it, and the doors into it."""

import streamlit as st

from pages.components.home.doors import doors, enter_opened, gallery
from pages.components.shared.serving import HAND_OVER, last_step

# The pages of the way, and what is done there.
LAST = {
    "Release": "A report for the board, a dry run, noisy tables with intervals.",
    HAND_OVER: "A report for the board, and the plan for those who keep the records.",
}
last = last_step()
STEPS = {
    "Codebook": ("codebook", "Which attributes there are, and which values each can take."),
    "Tables": ("workload", "Which tables are asked for, their weights and their targets."),
    "Plan": ("plan", "Privacy budget and objective; which tables are accurate enough."),
    last.title: (last.page, LAST[last.title]),
}

enter_opened()
st.title("Which tables can you publish, how accurate will each be, and can you prove it?")
st.markdown(
    "rpexplore plans a differentially private release before anyone touches the records: the best "
    "noise for all tables together, the accuracy of each table, and a plan that others can verify."
)
with st.container(key="steps"):
    for number, (column, (name, (page, task))) in enumerate(
        zip(st.columns(len(STEPS)), STEPS.items(), strict=True), start=1
    ):
        with column.container(gap="xxsmall"):
            st.page_link(f"pages/{page}.py", label=f":blue[**{number} {name}**]")
            st.caption(task)
doors()
gallery()
