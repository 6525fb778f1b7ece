"""The smallest budget with which all own counts are as accurate as wanted."""

import streamlit as st

from pages.components.plan.budget import HERE, budget_inputs, unit_inputs
from pages.components.plan.sections import tables_input
from pages.components.shared.session import attempt, change_fields, current, escaped
from pages.components.shared.solutions import budget_of_whole
from rpexplore.analysis.sufficient_budgets import smallest_query_budget
from rpexplore.planning.counts.query_plan import QueryPlan
from rpexplore.planning.counts.query_planner import QueryOptimum


def smallest_budget(solution: QueryOptimum, planned: QueryPlan) -> None:
    """The budget of the scenario, and the one that is enough for the targets of own counts."""
    unit_inputs()
    budget_inputs()
    tables_input(current())
    has_others = len(current().kinds) > 1
    if has_others:
        share = planned.budget.privacy_cost / current().budget.privacy_cost
        st.caption(
            f"Own counts have {100 * float(share):.3g} % of the budget; the rest is for the other "
            "sections of the plan."
        )
    enough = attempt(lambda: smallest_query_budget(solution, planned.budget))
    if enough is None:
        return
    is_own, needed = enough.budget == planned.budget, "their part" if has_others else "the budget"
    st.markdown(
        f"{escaped(enough.text)} is the smallest budget that meets all targets."
        if is_own
        else f"The smallest budget that meets all targets is {escaped(enough.text)}: "
        f"{escaped(enough.compared)} of {needed}."
    )
    st.button(
        "Make it the budget",
        on_click=change_fields,
        args=(HERE,),
        kwargs={"budget": budget_of_whole("counts", enough.budget)},
        disabled=is_own,
        help="The budget of the whole plan becomes the one at which own counts have this much.",
    )
