"""What if: tables left out, with another weight or added, and how all others change."""

import streamlit as st

from pages.components.shared.background import worked_out
from pages.components.shared.charts import chart_with_numbers, numbers
from pages.components.shared.inputs import number_field
from pages.components.shared.session import attempt, change, current, kept, say, show_messages
from pages.components.shared.solutions import part_budget
from pages.components.tradeoffs.frontier import save_scenario
from rpexplore.analysis import what_if
from rpexplore.analysis.measures import Measure
from rpexplore.figures.trade_offs import (
    changes_by_order_chart,
    columns_of_changes,
    extreme_changes_chart,
)
from rpexplore.planning.planner import Optimum
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.workload_changes import (
    ADD,
    BOOST,
    LEAVE_OUT,
    WorkloadChange,
    changed_scenario,
    changed_workload,
)
from rpexplore.workload.workload import Workload

HERE = "what if"
ACTIONS = {LEAVE_OUT: "are left out", BOOST: "get another weight", ADD: "are added"}
ANY = "any number"


def what_if_view(solution: Optimum, measure: Measure) -> None:
    """Choose tables and how they change; see how every other table changes."""
    action = st.segmented_control(
        "What if these tables …",
        list(ACTIONS),
        format_func=ACTIONS.__getitem__,
        default=LEAVE_OUT,
        required=True,
        key="what_if",
        bind="query-params",
    )
    left, right = st.columns([1, 2], gap="large")
    with left:
        workload_change = _change_inputs(action or LEAVE_OUT)
    if workload_change is None:
        right.info(
            "Choose attributes, or a number of attributes, to say which tables change. All other "
            "tables are then compared with how they are now, at the same budget."
        )
        return
    scenario = current()
    # Refused where the change means nothing, as after it was applied.
    with right:
        workload = attempt(
            lambda: kept(
                changed_workload,
                scenario,
                workload_change,
                by=(scenario.domain, scenario.request, scenario.loss, workload_change),
            ),
            show=st.info,
        )
        if workload is None:
            return
        if not workload.is_marginals:
            st.caption(
                "How attributes are measured stays as in your plan; standard errors are root mean "
                "squares over cells. Applied, the tables are planned anew, which may do a little "
                "better."
            )
        changes = worked_out(
            what_if.changes_planned, solution, workload, scenario.loss, workload_change
        )
    if changes is None:
        return
    with right:
        changes = changes.in_measure(measure)
    budget = part_budget("tables")
    sentence = what_if.describe_changes(changes, budget, scenario.record_noun)
    with right:
        _charts(changes, sentence)
    with left:
        _apply_or_save(workload_change, workload, sentence)
    frame = kept(what_if.of_tables, changes, budget)
    with st.expander("The numbers of every table"):
        columns = columns_of_changes(changes.measure)
        numbers(frame, columns, "what_if.csv", "Changes of every table")


def _charts(changes: what_if.AccuracyChanges, sentence: str) -> None:
    """The change by number of attributes, and for the tables that change most and least."""
    budget, record_noun = part_budget("tables"), current().record_noun
    chart_with_numbers(changes_by_order_chart(changes, budget, sentence, record_noun))
    if what_if.others_differ(changes):
        st.markdown("**The other tables that change most and least**")
        chart_with_numbers(extreme_changes_chart(changes, budget, record_noun))


def _change_inputs(action: str) -> WorkloadChange | None:
    """Which tables, and how they change; None while that is not chosen."""
    names, largest = current().domain.names, int(current().workload.orders.max())
    containing = st.multiselect(
        "Tables with all of these attributes",
        names,
        key="what if attributes",
        placeholder="Any attributes",
        persist_state="session",
    )
    orders: list[str | int] = [ANY, *range(largest + 1)]
    if action == ADD:
        most = max(len(containing), min(largest + 2, len(names)))
        orders = [*range(len(containing), most + 1)]
    order = st.selectbox(
        "and with this number of attributes in all",
        orders,
        index=orders.index(largest + 1) if largest + 1 in orders else 0,
        format_func=str,
        key=f"what if order {action}",
        persist_state="session",
    )
    factor: float | None = 2.0
    if action == BOOST:
        factor = number_field(
            "Their weight is multiplied by",
            "what if factor",
            value=2.0,
            least=0.01,
            persist_state="session",
        )
    show_messages(HERE)
    if factor is None or (order == ANY and not containing):
        return None
    attributes = tuple(name for name in names if name in containing)
    wanted = int(order) if order in range(len(names) + 1) else None
    return WorkloadChange(action, attributes, wanted, factor)


def _apply_or_save(workload_change: WorkloadChange, workload: Workload, note: str) -> None:
    """Buttons that make the change, in the open scenario or in a new one with this note."""

    def scenario() -> Scenario:
        return changed_scenario(current(), workload_change, workload)

    def apply() -> None:
        if change(HERE, scenario):
            say(HERE, "success", "Applied. The comparison now starts from the changed tables.")

    line = st.container(horizontal=True)
    line.button("Apply", on_click=apply)
    line.button("Save as scenario", on_click=save_scenario, args=(HERE, scenario, note))
