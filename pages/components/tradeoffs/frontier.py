"""Average against worst case, on the Trade-offs page: what the one costs the other."""

import streamlit as st

from pages.components.shared.background import Note, worked_out
from pages.components.shared.charts import exhibit, number, numbers
from pages.components.shared.session import current, escaped, show_messages
from pages.components.shared.solutions import optimum
from pages.components.tradeoffs.adopt import keep_scenario
from rpexplore.analysis import frontier as trade
from rpexplore.figures import frontier as figures
from rpexplore.planning.losses.base import (
    WEIGHTINGS,
    MaxVariance,
    SumOfVariances,
    describe_weighting,
)
from rpexplore.planning.optimum import Optimum
from rpexplore.planning.planner import optimum_with_strategies_of
from rpexplore.scenarios.scenario import Scenario

HERE = "frontier"
AT_ONCE = 20_000  # tables; with more it takes seconds, and is done when asked for


def average_against_worst(solution: Optimum) -> None:
    """The frontier between the sum and the largest variance, with the current plan on it."""
    left, right = st.columns([1, 2], gap="large")
    weighting = left.selectbox(
        "How tables count in the average",
        list(WEIGHTINGS),
        index=list(WEIGHTINGS).index(_weighting(solution)),
        format_func=describe_weighting,
        key="average",
        bind="query-params",
    )
    with right:
        found = _found(solution, SumOfVariances(weighting or "equal"))
        if found is not None:
            _show(found, solution)
    if found is not None and not found.is_a_point:
        with left:
            _keep(found)


def _found(solution: Optimum, average: SumOfVariances) -> trade.Frontier | None:
    """The frontier; None while it is not asked for or goes on, or where it failed."""
    worst = solution.loss if isinstance(solution.loss, MaxVariance) else MaxVariance()
    if not solution.workload.is_marginals:
        return _found_measured_alike(solution, average, worst)
    best_average = optimum(average)
    best_worst = optimum(worst) if best_average is not None else None
    if best_average is None or best_worst is None:
        return None
    key = (best_average, best_worst)
    if len(solution.workload) > AT_ONCE and st.session_state.get("frontier asked for") != key:
        st.markdown(
            f"With {len(solution.workload):,} tables this takes some seconds; you can go on "
            "working, and cancel it."
        )
        st.button("Find what lies between", on_click=_ask, args=(key,), type="primary")
        return None
    return worked_out(
        "frontier", key, lambda note: trade.frontier(best_average, best_worst, note=note)
    )


def _found_measured_alike(
    solution: Optimum, average: SumOfVariances, worst: MaxVariance
) -> trade.Frontier | None:
    """The frontier between plans that measure attributes as the current one does."""
    st.caption(trade.STRATEGIES_OF_PLAN)

    def work(note: Note) -> trade.Frontier:
        note(0.0, "Planning for the best average and the best worst case")
        ends = (
            optimum_with_strategies_of(solution, solution.workload, loss)
            for loss in (average, worst)
        )
        return trade.frontier(*ends, note=note)

    return worked_out("frontier", (solution, average, worst), work)


def _ask(key: tuple) -> None:
    st.session_state["frontier asked for"] = key


def _weighting(solution: Optimum) -> str:
    return solution.loss.weighting if isinstance(solution.loss, SumOfVariances) else "equal"


def _show(found: trade.Frontier, solution: Optimum) -> None:
    """The curve in words and as a chart, and its numbers."""
    budget, record_noun = current().budget, current().record_noun
    frame = trade.points_at(found, budget)
    measure = trade.worst_measure(found.worst, solution.workload.weights)
    sentence = trade.describe_frontier(found, frame, measure, record_noun)
    if found.is_a_point:
        st.info(escaped(sentence))
        return
    present = trade.errors_of(found, trade.point_of(solution, found.average, found.worst), budget)
    unit = "" if found.worst.relative_to == "target" else f" ({record_noun})"
    exhibit(
        figures.average_against_worst(
            frame, trade.bend(frame), present, f"{measure}{unit}", record_noun
        ),
        sentence,
        "The best averages against the best worst cases",
        f"{trade.describe_marks(found)} The average is the root of the mean variance.",
    )
    with st.expander("The numbers of this chart"):
        columns = {
            "average": number("Average σ", frame["average"], 4),
            "largest": number("Worst case", frame["largest"], 4),
            "given_up": st.column_config.NumberColumn("Average σ larger by", format="%.3g %%"),
            "gained": st.column_config.NumberColumn("Worst case smaller by", format="%.3g %%"),
            "share": st.column_config.NumberColumn("Weight of the worst case", format="percent"),
            "gap": st.column_config.NumberColumn("Proven within", format="%.1e"),
        }
        numbers(frame, columns, "average_against_worst.csv", "Average against worst case")


def _keep(found: trade.Frontier) -> None:
    """One of the plans as a scenario of its own."""
    frame = trade.points_at(found, current().budget)
    rows = frame.to_dict("records")
    words = [trade.describe_point(row) for row in rows]
    place = st.selectbox(
        "A plan of the curve",
        range(len(words)),
        index=trade.bend(frame),
        format_func=words.__getitem__,
        key="point of frontier",
        help="Between the ends, the weight of each table is set so that the plan comes out"
        + (", if attributes are measured as in yours." if found.is_measured_alike else "."),
    )
    point = found.points[place or 0]

    def scenario() -> Scenario:
        return trade.scenario_between(current(), found, point.share)

    note = trade.describe_note(found, rows[place or 0])
    st.button("Save as scenario", on_click=keep_scenario, args=(HERE, scenario, note))
    show_messages(HERE)
