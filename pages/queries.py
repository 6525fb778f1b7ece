"""Own counts: a list of counts, each with the accuracy it needs, and what they cost."""

import streamlit as st

from pages.components.queries import results
from pages.components.queries.list import (
    HERE,
    query_attributes,
    query_list,
    remove_button,
    take_typed,
)
from pages.components.queries.many_queries import builders, csv_files
from pages.components.queries.preset_dialog import preset_button
from pages.components.queries.results import smallest_budget
from pages.components.shared.session import current, show_messages
from pages.components.shared.solutions import part, query_solution
from pages.components.shared.texts import explained_title, next_is_last_step
from rpexplore.planning.counts import QueryPlan
from rpexplore.planning.counts_planner import QueryOptimum
from rpexplore.workload.query_definitions import StatedQueries


def answer(planned: QueryPlan, stated: StatedQueries, solution: QueryOptimum) -> None:
    """How accurate the list is and what it costs; then every count, and what else there is."""
    results.headline(planned, stated)
    results.certificate(planned, solution)
    views = {
        "Count by count": lambda: results.outcomes(planned, stated),
        "Baselines": lambda: results.baselines(solution),
        "Privacy profile": lambda: results.privacy_profile(planned),
    }
    # Only the open one is drawn, and which one that is stands in the address.
    for tab, draw in zip(
        st.tabs(list(views), key="queries", bind="query-params"), views.values(), strict=True
    ):
        if tab.open:
            with tab:
                draw()


take_typed()
with st.container(key="list-layout"):
    with st.container(key="inputs"):
        with st.container(gap="small"):
            explained_title("Own counts")
            show_messages(HERE)
            query_attributes()
            query_list()
            with st.container(horizontal=True):
                preset_button()
                remove_button()
            builders()
            csv_files()
        budget_part = st.container(gap="small")
    answer_part = st.container(key="answer")
stated = current().query_list
if stated is None:
    answer_part.info(
        "Type a first count, or start from a preset; the plan of the list then appears here."
    )
else:
    with budget_part:
        results.objective_inputs()
    with answer_part:
        solution = query_solution()
        planned = None if solution is None else part("counts")
    if solution is not None and planned is not None:
        with budget_part:
            smallest_budget(solution, planned)
        with answer_part:
            answer(planned, stated, solution)
next_is_last_step()
