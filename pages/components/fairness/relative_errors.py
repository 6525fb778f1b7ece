"""Relative errors on the Fairness page: expected counts from public sources, and what follows."""

from collections.abc import Callable

import streamlit as st

from pages.components.shared.charts import chart_with_numbers, listing, numbers
from pages.components.shared.files import upload
from pages.components.shared.session import (
    attempt,
    bound,
    change,
    current,
    escaped,
    kept,
    show_messages,
)
from rpexplore.analysis import relative_errors
from rpexplore.analysis.expected_cells import ExpectedCells
from rpexplore.analysis.forecast import Forecast
from rpexplore.common.typed_numbers import needed_number_of, number_of, number_text
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.domain.expected_counts_file import expected_counts_from_csv
from rpexplore.errors import RpexploreError
from rpexplore.figures.chart import Column, columns_of
from rpexplore.figures.distributions import publishable_cells_chart

HERE = "expected"


def relative_errors_view(compared: list[Forecast], chosen: Forecast) -> None:
    """Standard errors against expected counts, and which cells are accurate enough to publish."""
    st.markdown(
        f"An error of ±30 {escaped(current().record_noun)} is much in a cell of 100 and little in "
        "one of 10,000. The **coefficient of variation** (CV) of a cell is its standard error "
        "divided by its expected count; many offices publish a cell only up to a certain CV."
    )
    _expected_inputs()
    show_messages(HERE)
    expected = current().expected
    if expected is None:
        return
    cells = attempt(lambda: kept(ExpectedCells.of, expected, chosen.workload))
    if cells is None:
        return
    if cells.left_out:
        st.info(escaped(cells.left_out_text))
    if not cells.held.any():
        return
    st.text_input(
        "Publishable: coefficient of variation at most (%)",
        width=360,
        **bound("wanted coefficient", f"{100 * current().cv_limit:.10g}", _set_limit),
    )
    coefficient = current().cv_limit
    _publishable_cells(compared, chosen, cells, coefficient)
    _cells_of_table(chosen, cells, coefficient)


def _set_limit(typed: str) -> None:
    def limit() -> float:
        return needed_number_of(typed, "The coefficient of variation", least=0.1, most=1000.0) / 100

    change(HERE, lambda: current().replaced(cv_limit=limit()))


def _expected_inputs() -> None:
    """A total or a public table; both are kept with the scenario."""
    st.info(
        "Type or load only what is **already public**: a census total, an earlier published table. "
        "It is saved with the scenario and shown in the report. Never take it from the "
        "confidential records: that would publish something about them without any noise."
    )
    expected = current().expected

    def set_expected(make: Callable[[], ExpectedCounts | None]) -> None:
        change(HERE, lambda: current().replaced(expected=make()))

    def of_total(typed: str) -> ExpectedCounts | None:
        total = number_of(typed, "The expected number", least=0.0)
        return None if total is None else ExpectedCounts.of_total(total)

    def set_total(typed: str) -> None:
        set_expected(lambda: of_total(typed))

    def load(content: bytes, name: str) -> None:
        set_expected(lambda: expected_counts_from_csv(current().domain, content, name))

    left, right = st.columns(2)
    left.text_input(
        f"Expected number of {escaped(current().record_noun)} in all, spread evenly over the cells",
        placeholder="none typed",
        **bound(
            "expected total",
            number_text(
                expected.total if expected is not None and not expected.attributes else None
            ),
            set_total,
        ),
    )
    with right:
        upload(
            "Or a published table: CSV with some attributes of the codebook as columns, and count",
            ["csv"],
            "expected margin",
            load,
        )
    if expected is not None:
        text, button = st.columns([4, 1], vertical_alignment="center")
        text.markdown(f"**Expected counts:** {escaped(expected.text)}.")
        button.button("Remove", on_click=set_expected, args=(lambda: None,))


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
