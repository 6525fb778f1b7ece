"""Trade-offs: what each change of the plan costs."""

import streamlit as st

from pages.components.shared.inputs import measure_input
from pages.components.shared.solutions import optimum, plan
from pages.components.shared.texts import explained_title, next_page
from pages.components.tradeoffs.budget_curves import budget_view, targets_view
from pages.components.tradeoffs.frontier import baselines_view, frontier_view, what_if_view

VIEWS = {  # what each is called, the question it answers, and what answers it
    "Smaller errors": ("What would smaller errors cost in privacy?", budget_view),
    "Targets": ("Which budget would meet the targets?", targets_view),
    "Average vs worst case": (
        "What would a smaller largest error cost on average?",
        frontier_view,
    ),
    "What if": ("What do some tables cost all the others?", what_if_view),
    "Baselines": ("Why not something simpler?", baselines_view),
}


explained_title("Trade-offs")
# A budget can be so small, or large, that there is no plan.
solution = None if plan() is None else optimum()
if solution is None:
    st.page_link("pages/plan.py", label="To the plan")
else:
    if solution.budget is not None:
        st.caption(
            "With this objective, the best plan differs from budget to budget. What is shown for "
            "other budgets keeps the proportions of the current plan; the plan that is made for "
            "one can only be better."
        )
    measure = measure_input()
    # Only the open one is drawn, and which one that is stands in the address.
    for tab, (question, draw) in zip(
        st.tabs(list(VIEWS), key="tradeoffs", bind="query-params"), VIEWS.values(), strict=True
    ):
        if tab.open:
            with tab:
                st.subheader(question)
                draw(solution, measure)
    next_page("scenarios", "Scenarios")
