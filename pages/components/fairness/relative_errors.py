"""Relative errors on the Fairness page: which cells are publishable, under which plan."""

import streamlit as st

from pages.components.shared.charts import chart_with_numbers, listing, numbers
from pages.components.shared.expected_counts import cv_limit_input, expected_cells
from pages.components.shared.session import current, escaped, kept
from rpexplore.analysis import relative_errors
from rpexplore.analysis.expected_cells import ExpectedCells
from rpexplore.analysis.forecast import Forecast
from rpexplore.errors import RpexploreError
from rpexplore.figures.chart import Column, columns_of
from rpexplore.figures.distributions import publishable_cells_chart


def relative_errors_view(compared: list[Forecast], chosen: Forecast) -> None:
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
    compared: list[Forecast], chosen: Forecast, cells: ExpectedCells, coefficient: float
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


def _cells_of_table(chosen: Forecast, cells: ExpectedCells, coefficient: float) -> None:
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
