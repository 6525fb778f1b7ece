"""The adaptive plan of the open scenario: of its tables, budget and expected counts alone."""

import streamlit as st

from pages.components.shared.background import worked_out
from pages.components.shared.expected_counts import expected_total_input
from pages.components.shared.session import current, kept
from pages.components.shared.session_log import plan_solved
from pages.components.shared.solutions import NO_PLAN, part_budget
from rpexplore.analysis.adaptive import tables_of
from rpexplore.common.concurrency import Progress
from rpexplore.planning.adaptive.adaptive_plan import AdaptivePlan
from rpexplore.planning.adaptive.adaptive_planner import adaptive_plan
from rpexplore.privacy.budget import Budget
from rpexplore.workload.workload import Workload


def adaptive_plan_of_scenario() -> AdaptivePlan | None:
    """The plan; None while it is made, and where there is none, which the page explains."""
    scenario = current()
    if len(scenario.kinds) > 1 and scenario.stated_shares is None:
        st.warning(
            f"{NO_PLAN}adaptive tables promise no accuracy that could be compared with that of the "
            "other sections. State the shares of the budget on the Plan page, under Sections: "
            "adaptive tables then have that of the tables."
        )
        st.page_link("pages/plan.py", label="To the shares")
        return None
    if scenario.expected is None:
        st.markdown("How the budget is divided depends on how many there will be, about.")
        expected_total_input()
        return None
    tables, left_out = kept(tables_of, scenario.workload)
    if left_out:
        st.caption(left_out)
    records = max(round(scenario.expected.total), 1)
    return worked_out(_planned, tables, part_budget("tables"), records, problem=NO_PLAN)


def _planned(tables: Workload, budget: Budget, records: int, on_progress: Progress) -> AdaptivePlan:
    on_progress("Planning", 0.0)
    with plan_solved("adaptive", len(tables)):
        return adaptive_plan(tables, budget=budget, expected_records=records)
