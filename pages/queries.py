"""Queries: a list of one's own questions, each with the accuracy it needs, and what they cost."""

import streamlit as st

from pages.components.queries.attributes import about
from pages.components.queries.baselines import compared
from pages.components.queries.budget import budget
from pages.components.queries.builders import add_many
from pages.components.queries.files import as_files
from pages.components.queries.privacy_profile import spare
from pages.components.queries.query_lines import HERE, lines, take_typed
from pages.components.queries.results import certificate, downloads, headline, outcomes
from pages.components.queries.solutions import optimum, plan
from pages.components.shared.session import current, show_messages


def results() -> None:
    """The plan of the list: its budget, what each query gets, and what else would cost."""
    st.subheader("What they cost, and what they get")
    left, right = st.columns([1, 2], gap="large")
    with right:
        solution = optimum()
    if solution is None:
        return
    with left:
        allowed = budget(solution)
    if allowed is None:
        return
    with right:
        planned = plan(solution, allowed)
        if planned is not None:
            headline(planned)
            certificate(planned, solution)
    if planned is not None:
        outcomes(planned)
        downloads(planned)
        spare(planned)
        compared(solution)


take_typed()
st.title("Queries")
st.markdown(
    "Your own questions, each with the accuracy it needs: counts of people, or of whatever the "
    "records are, that meet a condition. They are planned together, so that all of them are as "
    "accurate as you want at the smallest budget. This list is released by itself, beside the "
    "tables of the other pages; what it costs comes on top of theirs."
)
show_messages(HERE)
about()
lines()
add_many()
as_files()
if current().query_list is not None:
    results()
