"""Queries: a list of one's own queries, each with the accuracy it needs, and what they cost."""

import streamlit as st

from pages.components.queries import results
from pages.components.queries.attributes import query_attributes
from pages.components.queries.many_queries import builders, csv_files
from pages.components.queries.query_lines import HERE, query_list, take_typed
from pages.components.queries.solutions import optimum, plan, query_budget
from pages.components.shared.explanations import explained_title
from pages.components.shared.session import current, show_messages
from rpexplore.queries.definitions import StatedQueries


def plan_of_list(stated: StatedQueries) -> None:
    """The plan of the list: its budget, the accuracy of each query, and what else would cost."""
    st.subheader("Cost and accuracy")
    left, right = st.columns([1, 2], gap="large")
    with right:
        solution = optimum()
    if solution is None:
        return
    with left:
        budget = query_budget(solution)
    if budget is None:
        return
    with right:
        planned = plan(solution, budget)
        if planned is not None:
            results.headline(planned, stated)
            results.certificate(planned, solution)
    if planned is not None:
        results.outcomes(planned, stated)
        results.downloads(planned)
        results.privacy_profile(planned)
        results.baselines(solution)


take_typed()
explained_title("Queries")
st.markdown(
    "Your own queries, each with the accuracy it needs: counts of people, or of whatever the "
    "records are, that meet a condition. They are planned together: all of them are as accurate "
    "as you want at the smallest budget. This list is released by itself, beside the tables of "
    "the other pages, and its cost comes on top of theirs."
)
show_messages(HERE)
query_attributes()
query_list()
builders()
csv_files()
stated = current().query_list
if stated is not None:
    plan_of_list(stated)
