"""The cells of one table on the Fairness page: which questions are answered more accurately."""

import streamlit as st

from pages.components.shared.charts import exhibit, number, numbers
from pages.components.shared.session import current, escaped, kept
from rpexplore.analysis import cell_accuracy as cells
from rpexplore.analysis.forecast import Forecast
from rpexplore.common.formatting import capitalised
from rpexplore.errors import RpexploreError
from rpexplore.figures.cell_accuracy import cells_of_table as figure_of
from rpexplore.scenarios.basis_options import describe_table
from rpexplore.workload.query_matrix import QueryMatrix

CELLS_VIEW = "Cells of a table"
MOST_OPTIONS = 1000  # tables to choose from, or questions; of more tables, attributes are chosen
LEAST_ACCURATE = "the least accurate"


def cells_of_table(chosen: Forecast) -> None:
    """Standard errors over the cells of a table of the curator's choice."""
    left, right = st.columns([1, 2], gap="large")
    with left:
        table = _table(chosen)
        if table is None:
            return
        asked = cells.questions_of(chosen, table)
        axes = _axes(chosen, table, asked)
        fixed = _fixed(asked, axes)
    found = kept(
        "cells of a table",
        (chosen, table, axes, tuple(fixed.items())),
        lambda: cells.accuracy_of_cells(chosen, table, axes, fixed),
    )
    record_noun = current().record_noun
    answers = capitalised(describe_table(chosen.workload, table, record_noun))
    with right:
        exhibit(
            figure_of(found, record_noun),
            found.describe(record_noun),
            "Standard error over the cells of a table",
            escaped(f"The table: {answers}. Under “{chosen.name}”."),
        )
        with st.expander("The numbers of this chart"):
            frame = found.frame
            columns = {
                name: number("Standard error σ", frame[name])
                if name == "standard_error"
                else number("95 % margin of error", frame[name])
                if name == "margin_95"
                else name
                for name in frame
            }
            numbers(frame, columns, "cells_of_a_table.csv", "Standard errors of the table's cells")


def _table(chosen: Forecast) -> int | None:
    """The table to look at; None, which the page explains, while none is chosen."""
    workload = chosen.workload
    first = kept("least even table", (chosen,), lambda: cells.least_even_table(chosen))
    if len(workload) <= MOST_OPTIONS:
        names = kept("cells titles", (workload,), lambda: cells.tables_with_cells(workload))
        return st.selectbox(
            "Table",
            list(names),
            index=list(names).index(first),
            format_func=names.__getitem__,
            key="cells of",
        )
    attributes = workload.tables[first]
    typed = st.multiselect(
        "The attributes of the table", workload.domain.names, attributes, key="cells of attributes"
    )
    try:
        table = workload.position(typed)
    except RpexploreError as error:
        st.info(escaped(str(error)))
        return None
    if not typed:
        st.info("The total is a single cell; choose a table with attributes.")
        return None
    return table


def _axes(chosen: Forecast, table: int, asked: list[QueryMatrix]) -> tuple[int, ...]:
    """One or two attributes to spread out."""
    usual = cells.usual_axes(chosen, table)
    if len(asked) == 1:
        return usual
    names = [each.attribute.name for each in asked]
    picked = st.multiselect(
        "Spread out",
        range(len(asked)),
        list(usual),
        format_func=names.__getitem__,
        max_selections=2,
        key=f"cells spread out {names}",
        help="One attribute along a line (or in a triangle, where the aggregation is ranges), or "
        "two against each other.",
    )
    return tuple(sorted(picked)) or usual


def _fixed(asked: list[QueryMatrix], axes: tuple[int, ...]) -> dict[int, int]:
    """The questions of attributes that are not spread out, where one is chosen."""
    fixed = {}
    for axis, each in enumerate(asked):
        if axis in axes or each.n_rows > MOST_OPTIONS:
            continue
        labels = [LEAST_ACCURATE, *each.labels()]
        row = st.selectbox(
            each.attribute.name,
            range(len(labels)),
            format_func=labels.__getitem__,
            key=f"cells fixed {each.attribute.name}",
        )
        if row:
            fixed[axis] = row - 1
    return fixed
