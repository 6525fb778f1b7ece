"""Plan: the objective and the privacy budget, and how accurate the tables become."""

import streamlit as st

from pages.components.plan.budget import budget_inputs, unit_inputs
from pages.components.plan.loss import loss_input, reference_distribution_input
from pages.components.plan.results import chart, downloads, headline, table_list
from pages.components.plan.targets import required_targets_can_be_met, targets_met
from pages.components.shared.explanations import explained_title
from pages.components.shared.session import change, current, escaped, say, show_messages
from pages.components.shared.solutions import plan
from rpexplore.analysis import workload_grid
from rpexplore.common.typed_numbers import needed_number_of


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


explained_title("Plan")
left, right = st.columns([1, 2], gap="large")
with left:
    st.subheader("Privacy")
    unit_inputs()
    budget_inputs()
    st.subheader("Objective")
    loss_input()
    reference_distribution_input()
planned = None
with right:
    if missing := current().misses_target:
        missing_targets_input(missing)
    elif current().misses_required:
        st.error(
            "No target is required yet. Give the tables that need it a target on the Tables page, "
            "and tick “Required” beside it."
        )
        st.page_link("pages/workload.py", label="To the tables")
    elif required_targets_can_be_met():
        planned = plan()
    if planned is not None:
        headline(planned)
        targets_met(planned)
        chart(planned)
if planned is not None:
    table_list(planned)
    downloads(planned)
    st.page_link("pages/fairness.py", label="Next: fairness", icon=":material/arrow_forward:")
