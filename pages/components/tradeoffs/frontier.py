"""Average against worst case, plainer mechanisms, and other tables, on the Trade-offs page."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from pages.components.shared.background import worked_out
from pages.components.shared.charts import chart_with_numbers, numbers
from pages.components.shared.inputs import number_field
from pages.components.shared.session import (
    attempt,
    bound,
    change,
    change_project,
    current,
    escaped,
    kept,
    project,
    say,
    show_messages,
)
from pages.components.shared.solutions import budget_of_whole, optimum, part_budget, plan
from rpexplore.analysis import frontier, what_if
from rpexplore.analysis.baselines import compare
from rpexplore.analysis.measures import Measure
from rpexplore.figures.trade_offs import (
    baselines_chart,
    changes_by_order_chart,
    columns_of_changes,
    extreme_changes_chart,
    frontier_chart,
)
from rpexplore.planning.losses.losses import (
    WEIGHTINGS,
    MaxVariance,
    SumOfVariances,
    describe_weighting,
)
from rpexplore.planning.planner import Optimum
from rpexplore.privacy.budget import Budget
from rpexplore.privacy.conversions import rho_text
from rpexplore.scenarios.scenario import NOTE_LENGTH, Scenario
from rpexplore.scenarios.workload_changes import (
    ADD,
    BOOST,
    LEAVE_OUT,
    WorkloadChange,
    changed_scenario,
    changed_workload,
)
from rpexplore.workload.workload import Workload

HERE = "frontier"
POINT = "point of frontier"


def frontier_view(solution: Optimum, measure: Measure) -> None:
    """The frontier between the sum and the largest variance, with the current plan on it."""
    loss = solution.loss
    current_weighting = loss.weighting if isinstance(loss, SumOfVariances) else "equal"
    left, right = st.columns([1, 2], gap="large")
    weighting = left.selectbox(
        "How tables count in the average",
        list(WEIGHTINGS),
        index=list(WEIGHTINGS).index(current_weighting),
        format_func=describe_weighting,
        key="average",
        bind="query-params",
    )
    with right:
        curve = _frontier(solution, SumOfVariances(weighting or "equal"))
        if curve is not None:
            _show(curve, solution, measure)
    if curve is not None and not curve.is_a_point:
        with left:
            _apply_point(curve, measure)


def _frontier(solution: Optimum, average: SumOfVariances) -> frontier.Frontier | None:
    """The frontier; None while it goes on, or where it failed."""
    worst = solution.loss if isinstance(solution.loss, MaxVariance) else MaxVariance()
    if not solution.workload.is_marginals:
        st.caption(frontier.STRATEGIES_OF_PLAN)
        return worked_out(frontier.frontier_of_strategies, solution, average, worst)
    best_average = optimum(average)
    best_worst = optimum(worst) if best_average is not None else None
    if best_average is None or best_worst is None:
        return None
    return worked_out(frontier.frontier, best_average, best_worst)


def _show(curve: frontier.Frontier, solution: Optimum, measure: Measure) -> None:
    """The curve in a sentence and as a chart, and its numbers."""
    budget, record_noun = part_budget("tables"), current().record_noun
    frame = frontier.points_at(curve, budget, measure)
    sentence = frontier.describe_frontier(curve, frame, record_noun, measure)
    if curve.is_a_point:
        st.info(escaped(sentence))
        return
    own_point = curve.values(solution.table_variances)
    present = curve.errors(*own_point, budget, measure)

    def take(point: dict[str, Any]) -> None:
        """Choose the plan whose mark was clicked; the current plan has a mark of its own."""
        if point["curve_number"] == 0:
            st.session_state[POINT] = curve, point["point_index"]

    chart = frontier_chart(curve, frame, present, sentence, record_noun, measure)
    chart_with_numbers(chart, "Click a mark to take it.", take=take)


def _apply_point(curve: frontier.Frontier, measure: Measure) -> None:
    """One of the plans for the open scenario."""
    frame = frontier.points_at(curve, part_budget("tables"), measure)
    rows = frame.to_dict("records")
    chosen_of, chosen = st.session_state.get(POINT, (None, 0))
    texts = [frontier.describe_point(row) for row in rows]

    def take(index: int) -> None:
        st.session_state[POINT] = curve, index

    index = st.selectbox(
        "A plan of the curve",
        range(len(rows)),
        format_func=texts.__getitem__,
        # Other texts, another box: a browser keeps what it shows.
        **bound(f"{POINT}: {texts}", chosen if chosen_of is curve else frontier.bend(frame), take),
        help="Applied, a plan between the ends sets the weight of each table, and the curve is "
        "then drawn for these weights.",
    )
    worst_weight = curve.points[index].worst_weight

    def apply() -> None:
        if change(HERE, lambda: frontier.scenario_between(current(), curve, worst_weight)):
            say(HERE, "success", frontier.describe_applied(curve, rows[index]))

    st.button("Apply this plan", on_click=apply)
    show_messages(HERE)


# ---- The plan beside plainer mechanisms, on the Trade-offs page: why not something simpler?


def baselines_view(solution: Optimum, measure: Measure) -> None:
    """What plainer mechanisms would need for the plan's errors, drawn, in words and in numbers."""
    planned = plan()
    comparison = None if planned is None else worked_out(compare, planned)
    if comparison is None:
        return
    _, *others = comparison.sentences
    chart_with_numbers(baselines_chart(comparison))
    for sentence in others:
        st.markdown(escaped(sentence))


# ---- How the Trade-offs page applies a result.


def use_budget(slot: str, budget: Budget, kind: str = "tables", **changes: Any) -> None:
    """Apply the budget of a part to the scenario, maybe with other changes.

    Messages go to `slot`.
    """
    if change(slot, lambda: current().replaced(budget=budget_of_whole(kind, budget), **changes)):
        say(slot, "success", f"Applied: the budget is now {rho_text(budget.rho, 6, 'nearest')}.")


def save_scenario(slot: str, make: Callable[[], Scenario], note: str) -> None:
    """Save the result as a further scenario, with a note of what it is, and open it."""
    if change_project(slot, lambda: project().added(make().replaced(note=note[:NOTE_LENGTH]))):
        say(slot, "success", f"Saved as “{current().name}”, which is open now.")


# ---- What if: tables left out, with another weight or added, and how all others change.


IF_HERE = "what if"
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
    show_messages(IF_HERE)
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
        if change(IF_HERE, scenario):
            say(
                IF_HERE,
                "success",
                "Applied. The comparison now starts from the changed tables.",
            )

    line = st.container(horizontal=True)
    line.button("Apply", on_click=apply)
    line.button("Save as scenario", on_click=save_scenario, args=(IF_HERE, scenario, note))
