"""The budget on the Queries page: as much as the targets need, or the scenario's own."""

import streamlit as st

from pages.components.plan.budget import budget_inputs, unit_inputs
from pages.components.shared.session import change, current, escaped, show_messages
from rpexplore.analysis.sufficient_budgets import SufficientBudget, smallest_query_budget
from rpexplore.errors import RpexploreError
from rpexplore.privacy.budget import Budget
from rpexplore.queries.planner import QueryOptimum

HERE = "budget of queries"
ENOUGH, OWN = "As much as the targets need", "The scenario's budget"


def query_budget(solution: QueryOptimum) -> Budget | None:
    """The budget to plan the list with; None, and the page says why, where there is none."""
    unit_inputs(HERE)
    chosen = st.radio(
        "Budget of the list",
        [ENOUGH, OWN],
        captions=[
            "The smallest with which every query is as accurate as wanted.",
            "All queries get better, or worse, by one common factor.",
        ],
        key="query budget",
        persist_state="session",
    )
    own, enough = current().budget, _smallest(solution)
    if enough is not None:
        is_own = enough.budget == own
        st.markdown(
            f"The scenario's budget, {escaped(enough.text)}, is the smallest that meets all "
            "targets."
            if is_own
            else f"The smallest budget that meets all targets is {escaped(enough.text)}: "
            f"{escaped(enough.compared)} of the scenario."
        )
        st.button(
            "Make it the scenario's budget",
            on_click=_use,
            args=(enough.budget,),
            disabled=is_own,
            help="The budget of the Plan page is then this one, too.",
        )
    if chosen == OWN:
        budget_inputs(HERE)
        return own
    show_messages(HERE)
    return None if enough is None else enough.budget


def chosen_budget(solution: QueryOptimum) -> Budget | None:
    """The budget that was chosen here, on another page; None, and it says why, without one."""
    if st.session_state.get("query budget", ENOUGH) == OWN:
        return current().budget
    enough = _smallest(solution)
    return None if enough is None else enough.budget


def _smallest(solution: QueryOptimum) -> SufficientBudget | None:
    try:
        return smallest_query_budget(solution, current().budget)
    except RpexploreError as error:
        st.error(escaped(str(error)))
        return None


def _use(enough: Budget) -> None:
    change(HERE, lambda: current().replaced(budget=enough))
