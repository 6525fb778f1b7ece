"""Plan: what "accurate" means, what it may cost in privacy, and what comes of it."""

import streamlit as st

from pages._budget import budget_inputs, unit_inputs
from pages._chart import chart
from pages._optima import plan
from pages._results import downloads, headline, table_list
from pages._session import bind, change, current, escaped, say, show_messages
from pages._targets import targets_met
from pages._totals import totals_input
from rpexplore.analysis import workload_grids
from rpexplore.losses import (
    AIMS,
    WEIGHTINGS,
    MaxVariance,
    SumOfVariances,
    weighting_in_words,
)

HERE = "plan"
SUM, LARGEST, TARGET = "sum", "largest", "target"
CAPTIONS = {
    SUM: "The weighted sum of all tables' variances.",
    LARGEST: "The largest variance of all tables, by importance.",
    TARGET: "The largest variance compared with its target.",
}


def set_loss() -> None:
    chosen, weighting = st.session_state["aim"], st.session_state.get("weighting", "equal")
    losses = {
        SUM: SumOfVariances(weighting),
        LARGEST: MaxVariance(),
        TARGET: MaxVariance(relative_to="target"),
    }
    change(HERE, lambda: current().replaced(loss=losses[chosen]))


def aim_of(loss: SumOfVariances | MaxVariance) -> str:
    if isinstance(loss, SumOfVariances):
        return SUM
    return TARGET if loss.relative_to == "target" else LARGEST


def set_missing_targets() -> None:
    target = st.session_state["target for all"]
    if target is None:
        say("targets", "error", "Type a target standard error first.")
        return
    change(
        "targets",
        lambda: workload_grids.with_target_where_missing(current(), target),
    )


def ask_for_targets(table: str) -> None:
    """What the third aim waits for, and a box to give it."""
    st.error(
        f"Table {escaped(table)} has no target. Set one for every table on the Workload page, or "
        "here for all at once."
    )
    with st.form("targets", border=False):
        st.number_input(
            "Target standard error for every table without one",
            min_value=0.0,
            value=None,
            key="target for all",
            width=360,
        )
        st.form_submit_button("Set this target", on_click=set_missing_targets)
    show_messages("targets")
    st.page_link("pages/workload.py", label="To the workload")


def inputs() -> None:
    loss = current().loss
    st.subheader("Privacy")
    unit_inputs(HERE)
    budget_inputs(HERE)
    show_messages(HERE)
    st.subheader("What to aim for")
    st.radio(
        "The plan should give",
        list(CAPTIONS),
        format_func=lambda aim: AIMS[aim].capitalize(),
        captions=list(CAPTIONS.values()),
        key=bind("aim", aim_of(loss)),
        on_change=set_loss,
    )
    if isinstance(loss, SumOfVariances):
        st.selectbox(
            "How tables count in the sum",
            list(WEIGHTINGS),
            format_func=weighting_in_words,
            key=bind("weighting", loss.weighting),
            on_change=set_loss,
            help="On top of each table's importance, which is set on the Workload page.",
        )
    totals_input(HERE)


st.title("Plan")
left, right = st.columns([1, 2], gap="large")
with left:
    inputs()
planned = None
with right:
    if missing := current().misses_target:
        ask_for_targets(missing)
    else:
        planned = plan()
    if planned is not None:
        headline(planned)
        targets_met(planned)
        chart(planned)
if planned is not None:
    table_list(planned)
    downloads(planned)
    st.page_link("pages/fairness.py", label="Next: fairness", icon=":material/arrow_forward:")
