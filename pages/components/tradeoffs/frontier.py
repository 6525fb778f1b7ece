"""Average against worst case, on the Trade-offs page: what the one costs the other."""

import streamlit as st

from pages.components.shared.background import worked_out
from pages.components.shared.charts import chart_with_numbers
from pages.components.shared.session import current, escaped, show_messages
from pages.components.shared.solutions import optimum
from pages.components.tradeoffs.adopt import save_scenario
from rpexplore.analysis import frontier as trade
from rpexplore.common.concurrency import Progress
from rpexplore.figures import frontier as figures
from rpexplore.figures.chart import Chart, Column
from rpexplore.planning.losses.base import (
    WEIGHTINGS,
    MaxVariance,
    SumOfVariances,
    describe_weighting,
)
from rpexplore.planning.optimum import Optimum
from rpexplore.planning.planner import optimum_with_strategies_of

HERE = "frontier"
COLUMNS = {
    "average": Column("average σ", digits=4),
    "largest": Column("worst case", digits=4),
    "given_up": Column("average σ larger by", "change"),
    "gained": Column("worst case smaller by", "change"),
    "worst_weight": Column("weight of the worst case", "share"),
    "gap": Column("proven within"),
}


def average_against_worst(solution: Optimum) -> None:
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
        frontier = _frontier(solution, SumOfVariances(weighting or "equal"))
        if frontier is not None:
            _show(frontier, solution)
    if frontier is not None and not frontier.is_a_point:
        with left:
            _save_point(frontier)


def _frontier(solution: Optimum, average: SumOfVariances) -> trade.Frontier | None:
    """The frontier; None while it goes on, or where it failed."""
    worst = solution.loss if isinstance(solution.loss, MaxVariance) else MaxVariance()
    if not solution.workload.is_marginals:
        return _frontier_with_strategies(solution, average, worst)
    best_average = optimum(average)
    best_worst = optimum(worst) if best_average is not None else None
    if best_average is None or best_worst is None:
        return None
    return worked_out(
        "frontier",
        (best_average, best_worst),
        lambda on_progress: trade.frontier(best_average, best_worst, on_progress=on_progress),
    )


def _frontier_with_strategies(
    solution: Optimum, average: SumOfVariances, worst: MaxVariance
) -> trade.Frontier | None:
    """The frontier between plans that measure attributes as the current one does."""
    st.caption(trade.STRATEGIES_OF_PLAN)

    def work(on_progress: Progress) -> trade.Frontier:
        on_progress("Planning for the best average and the best worst case", 0.0)
        ends = (
            optimum_with_strategies_of(solution, solution.workload, loss)
            for loss in (average, worst)
        )
        return trade.frontier(*ends, on_progress=on_progress)

    return worked_out("frontier", (solution, average, worst), work)


def _show(frontier: trade.Frontier, solution: Optimum) -> None:
    """The curve in a sentence and as a chart, and its numbers."""
    budget, record_noun = current().budget, current().record_noun
    frame = trade.points_at(frontier, budget)
    measure = trade.worst_measure(frontier.worst_loss, solution.workload.weights)
    sentence = trade.describe_frontier(frontier, frame, measure, record_noun)
    if frontier.is_a_point:
        st.info(escaped(sentence))
        return
    own_point = frontier.values(solution.table_variances)
    current_errors = frontier.errors(*own_point, budget)
    unit = "" if frontier.worst_loss.relative_to == "target" else f" ({record_noun})"
    chart_with_numbers(
        Chart(
            figures.average_against_worst(
                frame, trade.bend(frame), current_errors, f"{measure}{unit}", record_noun
            ),
            subject="The best averages against the best worst cases",
            sentence=sentence,
            frame=frame,
            columns=COLUMNS,
            file="average_against_worst.csv",
            remark=f"{trade.describe_marks(frontier)} The average is the root of the mean "
            "variance.",
        )
    )


def _save_point(frontier: trade.Frontier) -> None:
    """One of the plans as a scenario of its own."""
    frame = trade.points_at(frontier, current().budget)
    rows = frame.to_dict("records")
    index = st.selectbox(
        "A plan of the curve",
        range(len(rows)),
        index=trade.bend(frame),
        format_func=lambda index: trade.describe_point(rows[index]),
        key="point of frontier",
        help="Between the ends, the weight of each table is set to give this plan"
        + (", if attributes are measured as in yours." if frontier.has_fixed_strategies else "."),
    )
    worst_weight = frontier.points[index or 0].worst_weight
    st.button(
        "Save as scenario",
        on_click=save_scenario,
        args=(
            HERE,
            lambda: trade.scenario_between(current(), frontier, worst_weight),
            trade.describe_note(frontier, rows[index or 0]),
        ),
    )
    show_messages(HERE)
