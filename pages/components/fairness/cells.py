"""The cells of one table on the Fairness page, and which cells are publishable."""

from dataclasses import replace

import streamlit as st

from pages.components.shared.charts import chart_with_numbers, listing, numbers
from pages.components.shared.expected_counts import cv_limit_input, expected_cells
from pages.components.shared.inputs import table_input, without_counts
from pages.components.shared.session import current, escaped, kept
from rpexplore.analysis import cell_accuracy
from rpexplore.analysis import expected_cells as relative_errors
from rpexplore.analysis.expected_cells import ExpectedCells
from rpexplore.analysis.measures import Accuracy
from rpexplore.common.text import capitalised
from rpexplore.errors import RpexploreError
from rpexplore.figures.accuracy import publishable_cells_chart
from rpexplore.figures.cells import cells_of_table
from rpexplore.figures.chart import Chart, Column, columns_of
from rpexplore.scenarios.bases import describe_table
from rpexplore.workload.table_text import QueryMatrix

# ---- The cells of one table on the Fairness page: which queries are answered more accurately.


CELLS_VIEW = "Cells of a table"
MOST_OPTIONS = 1000  # queries to choose from
LEAST_ACCURATE = "the least accurate"
NO_CV = "the coefficients of variation of single cells are listed under “Relative errors”."


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
    with right:
        accuracy = replace(found, measure=without_counts(chosen.measure, NO_CV))
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


# ---- Relative errors on the Fairness page: which cells are publishable, under which plan.


def relative_errors_view(compared: list[Accuracy], chosen: Accuracy) -> None:
    """Standard errors against expected counts, and which cells are accurate enough to publish."""
    st.markdown(
        f"An error of ±30 {escaped(current().record_noun)} is much in a cell of 100 and little in "
        "one of 10,000. The **coefficient of variation** (CV) of a cell is its standard error "
        "divided by its expected count; many offices publish a cell only up to a certain CV."
    )
    cells = expected_cells(current().workload)
    if cells is None:
        st.info(
            "Expected counts say what an error is worth: type or load them beside the codebook."
        )
        st.page_link("pages/codebook.py", label="To the expected counts")
        return
    if cells.left_out:
        st.info(escaped(cells.left_out_text))
    if not cells.held.any():
        return
    cv_limit_input()
    coefficient = current().cv_limit
    _publishable_cells(compared, chosen, cells, coefficient)
    _cells_of_table(chosen, cells, coefficient)


def _publishable_cells(
    compared: list[Accuracy], chosen: Accuracy, cells: ExpectedCells, coefficient: float
) -> None:
    """How many cells are accurate enough: by order, by plan and by table."""
    st.subheader("Publishable cells")
    left, right = st.columns([3, 2])
    with left:
        chart = publishable_cells_chart(
            kept(relative_errors.curves, chosen, cells),
            relative_errors.by_order(chosen, cells, coefficient),
            coefficient,
        )
        more = f"Under “{escaped(chosen.name)}”; the error is that of the privacy noise alone."
        chart_with_numbers(chart, more)
    with right:
        st.markdown("**Under each plan**")
        shares = relative_errors.by_plan(compared, cells, coefficient).filter(
            ["plan", "share", "whole"]
        )
        listing(shares, columns_of(shares), "Publishable cells by plan")
    st.subheader("Table by table, the most publishable first")
    frame = kept(relative_errors.of_tables, chosen, cells, coefficient)
    numbers(
        frame, columns_of(frame), "publishable_cells_by_table.csv", "Publishable cells by table"
    )


def _cells_of_table(chosen: Accuracy, cells: ExpectedCells, coefficient: float) -> None:
    """The cells of one table, each publishable or not."""
    st.subheader("The cells of one table")
    names = st.multiselect(
        "The attributes of the table", current().domain.names, key="table to list"
    )
    if not names and chosen.workload.orders[0] > 0:
        st.caption("Choose a table by its attributes.")
        return
    try:
        table = chosen.workload.position(names)
        frame = relative_errors.of_cells(chosen, cells, table, coefficient)
    except RpexploreError as error:
        st.info(escaped(str(error)))
        return
    st.caption(escaped(relative_errors.describe_cells(frame, coefficient)))
    attributes = frame.columns.difference(relative_errors.OF_CELLS, sort=False)
    columns = {name: Column(name, "name") for name in attributes}
    numbers(
        frame,
        columns | columns_of(frame.filter(relative_errors.OF_CELLS)),
        "publishable_cells.csv",
        "The cells of the table, with their expected counts",
    )
