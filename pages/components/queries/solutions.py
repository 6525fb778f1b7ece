"""What is planned for the list of queries: solved once for a list, outside the script thread."""

from functools import partial

import streamlit as st

from pages.components.shared.background import Task, has_ended
from pages.components.shared.session import current, escaped, kept
from rpexplore.analysis.query_outcomes import describe_queries
from rpexplore.common.concurrency import Progress
from rpexplore.errors import RpexploreError
from rpexplore.privacy.budget import Budget
from rpexplore.queries.plan import QueryPlan
from rpexplore.queries.planner import QueryOptimum, query_optimum
from rpexplore.queries.query_list import QueryList

MOST_KEPT = 6  # lists whose solutions stay with the session
Tasks = list[tuple[QueryList, Task[QueryOptimum]]]  # the one used last at the end


def optimum() -> QueryOptimum | None:
    """The best measurement for the open scenario's list.

    None while it is being worked out (its progress is then on the page), and where there is none
    (the page then says why).
    """
    stated = current().query_list
    if stated is None:
        return None
    task = _task(stated.queries)
    if not has_ended(task, "planning queries", f"Planning {describe_queries(len(stated))}"):
        return None
    if task.result is None:
        st.error(escaped(f"There is no plan: {task.error}"))
        if task.was_cancelled:
            st.button("Plan again", key="plan queries again", on_click=_forget, args=(task,))
    return task.result


def plan(solution: QueryOptimum, budget: Budget) -> QueryPlan | None:
    """The plan of a budget, which is a division; None, and the page says why, where there is none.

    A budget can be so small that its noise cannot be drawn.
    """
    try:
        return kept("query plan", (solution, budget), lambda: solution.at(budget))
    except RpexploreError as error:
        st.error(escaped(f"There is no plan: {error}"))
        return None


def _task(queries: QueryList) -> Task[QueryOptimum]:
    """The task that solves for a list, begun when it is first needed."""
    tasks: Tasks = st.session_state.setdefault("query optima", [])
    entry = next((entry for entry in tasks if entry[0] is queries), None)
    if entry is None:
        for _, task in tasks:
            task.cancel()
        # What was not finished starts anew when it is needed again.
        tasks[:] = [entry for entry in tasks if entry[1].result is not None]
        entry = queries, Task(partial(_solve, queries)).start()
    else:
        tasks.remove(entry)
    tasks.append(entry)
    del tasks[:-MOST_KEPT]
    return entry[1]


def _solve(queries: QueryList, on_progress: Progress) -> QueryOptimum:
    on_progress(f"Planning {describe_queries(len(queries))}", 0.0)
    return query_optimum(queries, on_progress=on_progress)


def _forget(task: Task[QueryOptimum]) -> None:
    tasks: Tasks = st.session_state["query optima"]
    tasks[:] = [entry for entry in tasks if entry[1] is not task]
