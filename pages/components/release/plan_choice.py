"""Which plan is released: that of the tables, or that of the list of queries if there is one."""

import streamlit as st

from pages.components.queries import solutions as query_solutions
from pages.components.queries.budget import chosen_budget
from pages.components.shared import solutions
from pages.components.shared.session import current
from rpexplore.planning.release_plan import ReleasePlan

TABLES, QUERIES = "The tables", "The list of queries"


def chosen_plan() -> ReleasePlan | None:
    """The plan to release; None, and the page says why, while there is none."""
    if current().query_list is None:
        return solutions.plan()
    choice = st.radio(
        "What to release",
        [TABLES, QUERIES],
        key="plan to release",
        horizontal=True,
        persist_state="session",
        help="Each is a release of its own, with its own cost.",
    )
    if choice == TABLES:
        return solutions.plan()
    st.page_link("pages/queries.py", label="The queries, their targets and their budget")
    optimum = query_solutions.optimum()
    budget = None if optimum is None else chosen_budget(optimum)
    return None if optimum is None or budget is None else query_solutions.plan(optimum, budget)
