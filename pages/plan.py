"""Plan: the objective and the privacy budget, and how good the tables become."""

from functools import partial

import streamlit as st

from pages.components.plan.headline import headline, rule_input
from pages.components.plan.objective import budget_inputs, loss_input, sections
from pages.components.plan.overview import by_size_and_group, opened_table, overview
from pages.components.plan.results import (
    adaptive_view,
    downloads,
    proof,
    smooth_rehearsal,
    table_list,
)
from pages.components.plan.targets import required_targets_can_be_met, targets_met
from pages.components.shared.charts import folded
from pages.components.shared.expected_counts import cv_limit_input, forecast
from pages.components.shared.session import change, current, escaped, say, show_messages
from pages.components.shared.solutions import plan, whole_plan
from pages.components.shared.texts import explained_title, next_is_last_step
from rpexplore.analysis import workload_grid
from rpexplore.analysis.budget_units import describe_guess
from rpexplore.common.text import needed_number_of


def set_missing_targets() -> None:
    typed = st.session_state["target for all"]
    if not typed.strip():
        say("targets", "error", "Type a target standard error first.")
        return
    change(
        "targets",
        lambda: workload_grid.with_target_where_missing(
            current(), needed_number_of(typed, "The target", least=0.0)
        ),
    )


def missing_targets_input(table: str) -> None:
    """What an objective relative to targets waits for, and a box to give it."""
    st.error(
        f"Table {escaped(table)} has no target. Set one for every table on the Tables page, or "
        "here for all at once."
    )
    with st.form("targets", border=False):
        st.text_input(
            "Target standard error for every table without one", key="target for all", width=360
        )
        st.form_submit_button("Set this target", on_click=set_missing_targets)
    show_messages("targets")
    st.page_link("pages/workload.py", label="To the tables")


with st.container(key="heading"):
    explained_title("Plan")
with st.container(key="controls"):
    with st.container(gap="xsmall"):
        meaning_of_budget = budget_inputs()
    with st.container(gap="small"):
        loss_input()
    with st.container(gap="small", key="rule"):
        cv_limit_input()
        rule_input()
planned = made = None
answer, parts = st.container(), st.container()
with parts:
    has_whole = sections(current())
with answer:
    if "tables" not in current().kinds:
        pass  # the other parts are shown below
    elif missing := current().misses_target:
        missing_targets_input(missing)
    elif current().misses_required:
        st.error(
            "No target is required yet. Give the tables that need it a target on the Tables page, "
            "and tick “Required” beside it."
        )
        st.page_link("pages/workload.py", label="To the tables")
    elif required_targets_can_be_met():
        planned = plan() if has_whole else None
    if planned is not None:
        made = forecast(planned)
        headline(planned, made)
        if current().then:
            st.info(escaped(planned.note))
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            if made is not None:
                known, survey = escaped(made.public_tables.text), escaped(made.survey_text)
                st.caption(f"Forecast from {known}. {survey}", width="stretch")
                st.page_link("pages/codebook.py", label="Public tables")
            proof(planned)
        targets_met(planned)
whole = whole_plan() if has_whole and {*current().kinds} - {"tables"} else None
if planned is not None or whole is not None:
    of_budget = planned.alone if whole is None and planned is not None else whole
    meaning_of_budget.caption(describe_guess(current().budget, of_budget))
    with st.container(key="below"):
        with st.container(gap="small"):
            opened = overview(planned, made, whole)
        if planned is not None and opened is not None:
            with st.container(gap="small"):
                opened_table(planned, made, opened)
if planned is not None:
    folded("All tables", "all tables", partial(table_list, planned, made))
    if made is not None:
        folded("By number of attributes and by group", "by group", partial(by_size_and_group, made))
    if not planned.workload.uses_levels:  # which neither of them has
        folded("Model-based estimates", "model-based estimates", partial(smooth_rehearsal, planned))
        folded("Adaptive plan (biased)", "adaptive plan", adaptive_view)
    downloads(planned)
next_is_last_step()
