"""The cells of one table on the Fairness page, and how many people are in good cells."""

from dataclasses import replace

import streamlit as st

from pages.components.shared.charts import chart_with_numbers, numbers
from pages.components.shared.expected_counts import cv_limit_input, forecast
from pages.components.shared.inputs import table_input
from pages.components.shared.session import current, escaped, kept
from rpexplore.analysis import cell_accuracy
from rpexplore.analysis.forecast import under_each_plan
from rpexplore.analysis.glossary import meaning
from rpexplore.analysis.measures import Accuracy
from rpexplore.analysis.ranges import range_columns
from rpexplore.common.text import capitalised
from rpexplore.figures.cells import cells_of_table
from rpexplore.figures.chart import COLUMNS, Chart, Column, columns_of
from rpexplore.planning.table_plan import TablePlan
from rpexplore.scenarios.bases import describe_table
from rpexplore.workload.table_text import QueryMatrix

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
    st.subheader(escaped(heading))
    of_whom = Column(f"{made.whom} in good cells", "share")
    columns = FORECAST_COLUMNS | {"people_median": of_whom}
    numbers(kept(shown.tables), columns, "forecast_by_table.csv", heading)
