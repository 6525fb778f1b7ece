"""What is planned for the list of queries, and its budget: the smallest, or the scenario's own."""

from collections import deque

import streamlit as st

from pages.components.plan.budget import HERE, budget_inputs, unit_inputs
from pages.components.shared.background import worked_out
from pages.components.shared.session import (
    attempt,
    change_fields,
    current,
    escaped,
    kept,
    show_messages,
)
from pages.components.shared.session_log import plan_solved
from pages.components.shared.solutions import NO_PLAN
from rpexplore.analysis.sufficient_budgets import SufficientBudget, smallest_query_budget
from rpexplore.common.concurrency import Progress
from rpexplore.common.formatting import plural
from rpexplore.planning.counts.query_plan import QueryPlan
from rpexplore.planning.counts.query_planner import QueryOptimum, query_optimum
from rpexplore.privacy.budget import Budget
from rpexplore.queries.query_list import QueryList

MOST_KEPT = 6  # lists whose solutions stay with the session, for an undo
ENOUGH, OWN = "As much as the targets need", "The scenario's budget"


def optimum() -> QueryOptimum | None:
    """The solution of the open scenario's list; None, and the page says why, without."""
    stated = current().query_list
    if stated is None:
        return None
    queries = stated.queries
    solutions: deque[QueryOptimum] = st.session_state.setdefault(
        "query optima", deque(maxlen=MOST_KEPT)
    )
    for solution in solutions:
        if solution.queries is queries:
            return solution

    solution = worked_out(_solve, queries, problem=NO_PLAN)
    if solution is not None:
        solutions.append(solution)
    return solution


def _solve(queries: QueryList, on_progress: Progress) -> QueryOptimum:
    on_progress(f"Planning {plural(len(queries), 'query')}", 0.0)
    with plan_solved("queries", len(queries)):
        return query_optimum(queries, on_progress=on_progress)


def plan(solution: QueryOptimum, budget: Budget) -> QueryPlan | None:
    """The plan of a budget; None, and the page says why, where its noise cannot be drawn."""
    return attempt(lambda: kept(solution.at, budget), NO_PLAN)


def query_budget(solution: QueryOptimum) -> Budget | None:
    """The budget to plan the list with; None, and the page says why, where there is none."""
    unit_inputs()
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
            on_click=change_fields,
            args=(HERE,),
            kwargs={"budget": enough.budget},
            disabled=is_own,
            help="The budget of the Plan page is then this one, too.",
        )
    if chosen == OWN:
        budget_inputs()
        return own
    show_messages(HERE)
    return None if enough is None else enough.budget


def _smallest(solution: QueryOptimum) -> SufficientBudget | None:
    return attempt(lambda: smallest_query_budget(solution, current().budget))
