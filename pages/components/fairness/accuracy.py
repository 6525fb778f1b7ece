"""Views of the Fairness page: accuracy of tables by the plan and by what it is compared with."""

from dataclasses import replace

import pandas as pd
import streamlit as st

from pages.components.shared.charts import (
    chart_with_numbers,
    download_frame,
    listing,
    metrics,
    numbers,
)
from pages.components.shared.inputs import measure_input
from pages.components.shared.session import attempt, current, escaped, kept
from pages.components.shared.solutions import NO_PLAN, optimum, part_budget
from rpexplore.analysis import binding_targets, fairness
from rpexplore.analysis.measures import SCHEMES, Accuracy, scheme_of, unweighted
from rpexplore.common.text import plural
from rpexplore.figures.accuracy import (
    accuracy_by_attribute_chart,
    distribution_by_order_chart,
    distribution_by_plan_chart,
)
from rpexplore.figures.chart import COLUMNS, Chart, columns_of
from rpexplore.figures.fairness import fairness_chart, single_tables_chart
from rpexplore.figures.trade_offs import shadow_prices_chart
from rpexplore.planning.losses.losses import Loss
from rpexplore.planning.mechanism.variances import CELLS
from rpexplore.planning.planner import Optimum
from rpexplore.scenarios.scenario import Scenario
from rpexplore.workload.workload import Workload

# ---- Views of the Fairness page: accuracy by size, its distribution, by table and by attribute.


MOST_POINTS = 20_000  # drawn one by one


def tables_by_size(compared: list[Accuracy], chosen: Accuracy) -> None:
    """The Fairness chart, of all plans."""
    record_noun, own = current().record_noun, own_scheme()
    chart = kept(fairness_chart, tuple(compared), record_noun, own)
    if "table" in chart.frame:
        _draw(chart, chosen, "Point at a mark for the name of its table.")
    else:
        _draw(chart, chosen)
        _single_tables(chosen)


def plans(compared: list[Accuracy], chosen: Accuracy) -> None:
    """Which share of the tables is how accurate under each plan, and how evenly."""
    record_noun = current().record_noun
    _draw(distribution_by_plan_chart(compared, record_noun), chosen)
    st.subheader("The plans side by side")
    measures, measure = kept(fairness.measures, tuple(compared)), chosen.measure
    sentence = fairness.describe_measures(measures, record_noun, measure)
    st.markdown(escaped(sentence))
    st.dataframe(
        fairness.side_by_side(measures, measure),
        hide_index=True,
        alt=f"Measures of evenness by plan. {sentence}",
        column_config={"measure": "Measure", "meaning": "What it says"},
    )
    download_frame(_with_cell(measures, chosen), "evenness.csv")


def _single_tables(chosen: Accuracy) -> None:
    """Points on demand: every table of one plan, or of those that have some attributes."""
    if not st.toggle("Show single tables", key="single tables"):
        return
    containing = st.multiselect(
        "Only tables with all of these attributes",
        chosen.workload.domain.names,
        key="single tables with",
    )
    tables = chosen.workload.containing(containing)
    count = plural(len(tables), "table")
    if len(tables) > MOST_POINTS:
        st.info(f"{count}; at most {MOST_POINTS:,} can be drawn one by one: choose an attribute.")
    elif not len(tables):
        st.info(f"{count}.")
    else:
        _draw(single_tables_chart(chosen, tables, current().record_noun), chosen)


def distribution(chosen: Accuracy) -> None:
    """Which share of the tables is how accurate, by number of attributes."""
    chart = distribution_by_order_chart(chosen, current().record_noun)
    _draw(chart, chosen, f"Under “{escaped(chosen.name)}”.")


def tables_by_attribute(chosen: Accuracy) -> None:
    """How accurate the tables are that contain each attribute."""
    record_noun = current().record_noun
    frame = kept(fairness.by_attribute, chosen)
    if frame.empty:
        st.info(escaped(fairness.describe(frame, chosen, record_noun)))
    else:
        _draw(accuracy_by_attribute_chart(frame, chosen, record_noun), chosen)


def all_tables(chosen: Accuracy) -> None:
    """The ten least accurate, the ten most accurate, and all tables."""
    if not fairness.is_even(chosen):  # else the headline says so
        st.markdown(escaped(fairness.describe_unevenness(chosen, current().record_noun)))
    titles, frames = ("Least accurate", "Most accurate"), fairness.least_and_most_accurate(chosen)
    for column, title, frame in zip(st.columns(2), titles, frames, strict=True):
        if not frame.empty:  # as for a single table
            with column:
                st.subheader(title)
                shown = columns_of(frame.drop(columns="margin_95"))
                listing(frame, shown, f"{title} tables")
    heading = "All tables, the least accurate first"
    st.subheader(heading)
    frame = kept(fairness.ranking, chosen)
    frame = _with_cell(frame, chosen)
    numbers(frame, columns_of(frame), "tables_by_accuracy.csv", heading)


def binding_tables(chosen: Accuracy) -> None:
    """Which tables bind the largest variance, or make up the sum of variances."""
    loss = SCHEMES.get(chosen.name, current().loss)
    what = binding_targets.describe_loss(loss, chosen.workload)
    sentence = kept(binding_targets.describe_shadow_prices, chosen, loss)
    st.markdown(escaped(sentence))
    st.caption("These shares are about small changes of the plan.")
    st.page_link("pages/tradeoffs.py", label="To leave tables out: Trade-offs, What if")
    left, right = st.columns(2)
    with left:
        st.subheader("Tables")
        _draw(shadow_prices_chart(chosen, "table", what), chosen)
    with right:
        st.subheader("By number of attributes")
        _draw(shadow_prices_chart(chosen, "order", what), chosen)
    if chosen.workload.orders.any():
        st.subheader("By attribute")
        _draw(shadow_prices_chart(chosen, "attribute", what), chosen)


def _draw(chart: Chart, accuracy: Accuracy, more: str = "") -> None:
    """Draw a chart; it says at which cell of each table it looks, where cells differ."""
    if accuracy.cell_text:
        chart = replace(
            chart,
            sentence=f"{chart.sentence} {accuracy.cell_text}",
            frame=_with_cell(chart.frame, accuracy),
            columns={**chart.columns, "cell": COLUMNS["cell"]},
        )
    chart_with_numbers(chart, more)


def _with_cell(frame: pd.DataFrame, accuracy: Accuracy) -> pd.DataFrame:
    """The numbers with the cell that they are about, where cells of a table differ."""
    return frame.assign(cell=accuracy.cell_title) if accuracy.cell_text else frame


# ---- What the Fairness page compares: the curator's plan and the schemes, and one to look at.


OWN = "Your plan"


def accuracies(scenario: Scenario) -> list[Accuracy]:
    """The curator's plan and the four schemes, which weigh tables by their own rule alone.

    Empty while they are being worked out or where there are none; the page then says why.
    """
    own, budget = scenario.workload, part_budget("tables", scenario)
    bare = kept(unweighted, own)
    plans: dict[str, tuple[Loss, Workload]] = {name: (loss, bare) for name, loss in SCHEMES.items()}
    if scenario.misses_target:
        st.info(
            f"Your own plan is not among these: table {escaped(scenario.misses_target)} has no "
            "target yet. Set one on the Plan page."
        )
    elif not scheme_of(scenario.loss, own):
        plans = {OWN: (scenario.loss, own), **plans}
    # Each measures attributes as is best for itself: what is best for one rule can make another
    # one look less even than it is.
    solutions: dict[str, Optimum] = {}
    for name, (loss, workload) in plans.items():
        solution = optimum(loss, scenario, workload)
        if solution is None:
            return []
        solutions[name] = solution

    return (
        attempt(
            lambda: [
                kept(Accuracy.of_optimum, name, solution, budget, slot=name)
                for name, solution in solutions.items()
            ],
            NO_PLAN,
        )
        or []
    )


def own_scheme() -> str:
    """The scheme that is the curator's own plan; "" if that is none of them."""
    return scheme_of(current().loss, current().workload)


def choose_plan(compared: list[Accuracy]) -> Accuracy:
    """The plan to look at closely: the curator's own, or that of a scheme."""
    own = own_scheme()
    by_name = {accuracy.name: accuracy for accuracy in compared}
    chosen = st.segmented_control(
        "Plan to look at: all have the same tables and budget",
        list(by_name),
        default=own or compared[0].name,
        format_func=lambda name: f"{name} (your plan)" if name == own else name,
        required=True,
        key="plan_shown",
        bind="query-params",
        help="Your plan, and plans with other rules for how much each table counts.",
    )
    return by_name.get(chosen or "", compared[0])


def seen_as_chosen(compared: list[Accuracy], chosen: Accuracy) -> tuple[list[Accuracy], Accuracy]:
    """All plans in the measure, and at the cell of each table, that the curator chooses."""
    measure = measure_input()
    cells_differ = any(plan.cells_differ for plan in compared)
    there = _at_chosen_cell(compared) if cells_differ else compared
    there = [kept(plan.in_measure, measure, slot=plan.name) for plan in there]
    return there, there[compared.index(chosen)]


def _at_chosen_cell(compared: list[Accuracy]) -> list[Accuracy]:
    cell = st.segmented_control(
        "The cells of a table are not equally accurate here. Cell to look at",
        list(CELLS),
        default="mean",
        format_func=CELLS.__getitem__,
        required=True,
        key="cell_shown",
        bind="query-params",
        help="Of each table; everything below is about that cell.",
    )
    return [kept(accuracy.at_cell, cell or "mean", slot=accuracy.name) for accuracy in compared]


def headline(chosen: Accuracy) -> None:
    """The least and the most accurate table, and how uneven that is."""
    record_noun = current().record_noun
    if fairness.is_even(chosen):
        st.markdown(escaped(fairness.describe_unevenness(chosen, record_noun)))
        return
    figures = fairness.headline(chosen, record_noun)
    metrics(*((label, value, escaped(caption)) for label, value, caption in figures))
