"""Trade-offs: what each change of the plan costs."""

import streamlit as st

from pages.components.shared.inputs import measure_input, part_input
from pages.components.shared.solutions import optimum, part
from pages.components.shared.texts import explained_title, next_page
from pages.components.tradeoffs.budget_curves import (
    PROPORTIONS_KEPT,
    SMALLER_ERRORS,
    budget_view,
    budget_view_of_part,
    targets_view,
)
from pages.components.tradeoffs.frontier import baselines_view, frontier_view, what_if_view

VIEWS = {  # what each is called, the question it answers, and what answers it
    "Smaller errors": (SMALLER_ERRORS, budget_view),
    "Targets": ("Which budget would meet the targets?", targets_view),
    "Average vs worst case": (
        "What would a smaller largest error cost on average?",
        frontier_view,
    ),
    "What if": ("What do some tables cost all the others?", what_if_view),
    "Baselines": ("Why not something simpler?", baselines_view),
}


explained_title("Trade-offs")
kind = part_input()
# A budget can be so small, or large, that there is no plan.
planned = part(kind)
solution = optimum() if planned is not None and kind == "tables" else None
if planned is None or (kind == "tables" and solution is None):
    st.page_link("pages/plan.py", label="To the plan")
elif solution is None:
    measure = measure_input()
    st.subheader(SMALLER_ERRORS)
    budget_view_of_part(planned, measure)
else:
    if solution.budget is not None:
        st.caption(PROPORTIONS_KEPT)
    measure = measure_input()
    # Only the open one is drawn, and which one that is stands in the address.
    for tab, (question, draw) in zip(
        st.tabs(list(VIEWS), key="tradeoffs", bind="query-params"), VIEWS.values(), strict=True
    ):
        if tab.open:
            with tab:
                st.subheader(question)
                draw(solution, measure)
if planned is not None:
    next_page("scenarios", "Scenarios")
