"""Plan: the objective and the privacy budget, and how accurate the tables become."""

import streamlit as st

from pages.components.plan.adaptive import adaptive_view
from pages.components.plan.forecast import forecast
from pages.components.plan.objective import (
    budget_inputs,
    budget_meaning,
    loss_input,
    pilot_input,
    reference_distribution_input,
    unit_inputs,
)
from pages.components.plan.results import (
    downloads,
    guarantee,
    one_table,
    smooth_rehearsal,
    table_list,
)
from pages.components.plan.rule import rule_input
from pages.components.plan.sections import sections
from pages.components.plan.targets import required_targets_can_be_met, targets_met
from pages.components.plan.usefulness import (
    budgets_for_shares_input,
    former_plan,
    share_by_budget,
    usefulness,
)
from pages.components.shared.expected_counts import cv_limit_input
from pages.components.shared.session import change, current, escaped, say, show_messages
from pages.components.shared.solutions import plan
from pages.components.shared.texts import explained_title, next_is_last_step
from rpexplore.analysis import workload_grid
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


with st.container(key="layout"):
    with st.container(gap="small", key="heading"):
        explained_title("Plan")
    with st.container(key="inputs"):
        with st.container(gap="small"):
            unit_inputs()
            budget_inputs()
            sufficient = st.container(gap="xsmall")
            budget_meaning()
        with st.container(gap="small"):
            loss_input()
            reference_distribution_input()
            pilot_input()
            cv_limit_input()
            rule_input()
    planned = None
    with st.container(key="answer"):
        has_whole = sections(current())
        if "tables" not in current().kinds:
            pass  # all that there is stands above
        elif missing := current().misses_target:
            missing_targets_input(missing)
        elif current().misses_required:
            st.error(
                "No target is required yet. Give the tables that need it a target on the Tables "
                "page, and tick “Required” beside it."
            )
            st.page_link("pages/workload.py", label="To the tables")
        elif required_targets_can_be_met():
            planned = plan() if has_whole else None
        if planned is not None:
            with sufficient:  # only here is it known that there is a plan
                budgets_for_shares_input()
            drawn = forecast(planned)
            usefulness(planned)
            targets_met(planned)
            with st.container(key="below"):
                with st.container(gap="xsmall"):
                    one_table(planned, former_plan(), drawn)
                with st.container(gap="xsmall"):
                    share_by_budget()
if planned is not None:
    guarantee(planned)
    smooth_rehearsal(planned)
    adaptive_view(planned)
    table_list(planned, former_plan())
    downloads(planned)
    with st.container(horizontal=True):
        next_is_last_step()
        st.page_link("pages/fairness.py", label="Look further: Fairness")
