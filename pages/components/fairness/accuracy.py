"""Views of the Fairness page: accuracy of tables and of cells, and people in good cells."""

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
from pages.components.shared.expected_counts import cv_limit_input, forecast
from pages.components.shared.inputs import measure_input, table_input
from pages.components.shared.session import attempt, current, escaped, kept
from pages.components.shared.solutions import NO_PLAN, optimum, part_budget
from rpexplore.analysis import binding_targets, cell_accuracy, fairness
from rpexplore.analysis.glossary import meaning
from rpexplore.analysis.measures import SCHEMES, Accuracy, scheme_of, unweighted
from rpexplore.analysis.ranges import range_columns, under_each_plan
from rpexplore.common.text import capitalised, plural
from rpexplore.figures.accuracy import (
    accuracy_by_attribute_chart,
    distribution_by_order_chart,
    distribution_by_plan_chart,
)
from rpexplore.figures.cells import cells_of_table
from rpexplore.figures.chart import COLUMNS, Chart, Column, columns_of
from rpexplore.figures.fairness import fairness_chart, single_tables_chart
from rpexplore.figures.trade_offs import shadow_prices_chart
from rpexplore.planning.losses.losses import Loss
from rpexplore.planning.mechanism.variances import CELLS
from rpexplore.planning.planner import Optimum
from rpexplore.planning.table_plan import TablePlan
from rpexplore.scenarios.bases import describe_table
from rpexplore.scenarios.scenario import Scenario
from rpexplore.workload.table_text import QueryMatrix
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


# ---- The cells of one table on the Fairness page: which queries are answered more accurately.


CELLS_VIEW = "Cells of a table"
MOST_OPTIONS = 1000  # queries to choose from
LEAST_ACCURATE = "the least accurate"


def cells_view(chosen: Accuracy) -> None:
    """Standard errors over the cells of a table of the curator's choice."""
    left, right = st.columns([1, 2], gap="large")
    with left:
        usual = kept(cell_accuracy.least_even_table, chosen)
        table = table_input(chosen.workload, usual, "cells of")
        if table is None:
            return
        matrices = cell_accuracy.query_matrices(chosen, table)
        axes = _axes(chosen, table, matrices)
        fixed = _fixed(matrices, axes)
    found = kept(cell_accuracy.accuracy_of_cells, chosen, table, axes, fixed)
    accuracy = replace(found, measure=chosen.measure)
    record_noun = current().record_noun
    description = capitalised(describe_table(chosen.workload, table, record_noun))
    frame = accuracy.frame
    count = len(accuracy.axes)
    attributes = {name: Column(name, "name") for name in frame.columns[:count]}
    chart = Chart(
        cells_of_table(accuracy, record_noun),
        subject=f"{accuracy.measure.title} over the cells of a table",
        sentence=accuracy.describe(record_noun),
        frame=frame,
        columns=attributes | columns_of(frame.iloc[:, count:]),
        file="cells_of_a_table.csv",
        remark=f"The table: {description}. Under “{chosen.name}”.",
    )
    with right:
        chart_with_numbers(chart)


def _axes(chosen: Accuracy, table: int, matrices: list[QueryMatrix]) -> tuple[int, ...]:
    """One or two attributes to spread out."""
    usual = cell_accuracy.usual_axes(chosen, table)
    if len(matrices) == 1:
        return usual
    names = [matrix.attribute.name for matrix in matrices]
    picked = st.multiselect(
        "Spread out",
        range(len(names)),
        list(usual),
        format_func=names.__getitem__,
        max_selections=2,
        key=f"cells spread out {names}",
        help="One attribute along a line (or in a triangle, where the aggregation is ranges), or "
        "two against each other.",
    )
    return tuple(sorted(picked)) or usual


def _fixed(matrices: list[QueryMatrix], axes: tuple[int, ...]) -> dict[int, int]:
    """The queries of attributes that are not spread out, where one is chosen."""
    fixed = {}
    for axis, matrix in enumerate(matrices):
        if axis in axes or matrix.n_rows > MOST_OPTIONS:
            continue
        labels = [LEAST_ACCURATE, *matrix.labels()]
        row = st.selectbox(
            matrix.attribute.name,
            range(len(labels)),
            format_func=labels.__getitem__,
            # Other labels, another box: a browser keeps what it shows.
            key=f"cells fixed {matrix.attribute.name} {hash(tuple(labels))}",
        )
        if row:
            fixed[axis] = row - 1
    return fixed


# ---- Good cells on the Fairness page: how many people are in them, under which plan.


FORECAST_COLUMNS = {
    "table": COLUMNS["table"],
    "cells": COLUMNS["cells"],
    "standard_error": COLUMNS["standard_error"],
    "people_median": Column("in good cells", "share"),
    "people_low": Column("from", "share"),
    "people_high": Column("to", "share"),
    "cells_median": Column("good cells", "share"),
    "meets": Column("meets the rule", "text"),
}


def good_cells_view(planned: TablePlan, compared: list[Accuracy], chosen: Accuracy) -> None:
    """People in good cells by a forecast: under each plan, and table by table under the chosen."""
    st.markdown(f"**Good cell.** {meaning('Good cell')}")
    if current().expected is None:
        st.info(
            f"How many {escaped(current().counted)} are in good cells depends on how many records "
            "there are; say it, or add public tables, on the Data page."
        )
        st.page_link("pages/codebook.py", label="To what is public")
        return
    cv_limit_input()
    made = forecast(planned)
    if made is None:
        return
    under = [kept(made.under, plan, slot=plan.name) for plan in compared]
    st.subheader("Under each plan")
    frame = kept(under_each_plan, [plan.name for plan in compared], under)
    st.dataframe(
        frame, hide_index=True, alt=f"{capitalised(made.whom)} in good cells under each plan"
    )
    st.caption(escaped(made.rests_on))
    shown = under[compared.index(chosen)]
    st.subheader("By number of attributes")
    by_order = range_columns(kept(shown.by_order), "attributes", "meeting", made.whom)
    st.dataframe(by_order, hide_index=True, alt="Forecast by number of attributes")
    heading = f"Table by table, the fewest {made.whom} in good cells first"
    st.subheader(escaped(heading), anchor=False)
    of_whom = Column(f"{made.whom} in good cells", "share")
    columns = FORECAST_COLUMNS | {"people_median": of_whom}
    numbers(kept(shown.tables), columns, "forecast_by_table.csv", heading)
