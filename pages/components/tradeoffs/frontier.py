"""Average against worst case, and plainer mechanisms, on the Trade-offs page."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from pages.components.shared.background import worked_out
from pages.components.shared.charts import chart_with_numbers
from pages.components.shared.session import (
    bound,
    change,
    change_project,
    current,
    escaped,
    project,
    say,
    show_messages,
)
from pages.components.shared.solutions import budget_of_whole, optimum, part_budget, plan
from rpexplore.analysis import frontier
from rpexplore.analysis.baselines import compare
from rpexplore.analysis.measures import Measure
from rpexplore.figures.trade_offs import baselines_chart, frontier_chart
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

# ---- Average against worst case, on the Trade-offs page: what the one costs the other.


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


def use_budget(slot: str, budget: Budget, **changes: Any) -> None:
    """Apply a budget to the open scenario, maybe with other changes; messages go to `slot`."""
    if change(
        slot, lambda: current().replaced(budget=budget_of_whole("tables", budget), **changes)
    ):
        say(slot, "success", f"Applied: the budget is now {rho_text(budget.rho, 6, 'nearest')}.")


def save_scenario(slot: str, make: Callable[[], Scenario], note: str) -> None:
    """Save the result as a further scenario, with a note of what it is, and open it."""
    if change_project(slot, lambda: project().added(make().replaced(note=note[:NOTE_LENGTH]))):
        say(slot, "success", f"Saved as “{current().name}”, which is open now.")
