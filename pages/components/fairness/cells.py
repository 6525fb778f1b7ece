"""The cells of one table on the Fairness page: which queries are answered more accurately."""

from dataclasses import replace

import streamlit as st

from pages.components.shared.charts import chart_with_numbers
from pages.components.shared.measure import without_counts
from pages.components.shared.session import current, kept
from pages.components.shared.table_choice import table_input
from rpexplore.analysis import cell_accuracy
from rpexplore.analysis.forecast import Forecast
from rpexplore.common.formatting import capitalised
from rpexplore.figures.cell_accuracy import cells_of_table
from rpexplore.figures.chart import Chart, Column, columns_of
from rpexplore.scenarios.basis_options import describe_table
from rpexplore.workload.query_matrix import QueryMatrix

CELLS_VIEW = "Cells of a table"
MOST_OPTIONS = 1000  # queries to choose from
LEAST_ACCURATE = "the least accurate"
NO_CV = "the coefficients of variation of single cells are listed under “Relative errors”."


def cells_view(chosen: Forecast) -> None:
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


def _axes(chosen: Forecast, table: int, matrices: list[QueryMatrix]) -> tuple[int, ...]:
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
