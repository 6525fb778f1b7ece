"""The measure in which the pages that look further tell the accuracy."""

from collections.abc import Iterable

import streamlit as st

from pages.components.shared.expected_counts import expected_cells
from pages.components.shared.session import current
from rpexplore.analysis.expected_cells import ExpectedCells
from rpexplore.analysis.glossary import meaning
from rpexplore.analysis.measures import COEFFICIENT_OF_VARIATION, STANDARD_ERROR, VARIANCE, Measure

TERMS = ("Standard error", "Coefficient of variation", "Variance", "Margin of error")


def cells_of_open_scenario() -> ExpectedCells | None:
    """What is expected of the open scenario's tables; None without, or where it does not fit."""
    return expected_cells(current().workload, show=lambda _: None)


def measure_input(expected: Iterable[ExpectedCells | None]) -> Measure:
    """The choice, which holds on all pages; the CV where all these tables have expected counts."""
    offered = [STANDARD_ERROR, COEFFICIENT_OF_VARIATION, VARIANCE]
    if not all(cells is not None and cells.has_coefficients for cells in expected):
        offered.remove(COEFFICIENT_OF_VARIATION)
    by_title = {measure.title: measure for measure in offered}
    title = st.segmented_control(
        "Accuracy as",
        list(by_title),
        default=STANDARD_ERROR.title,
        required=True,
        key="accuracy",
        bind="query-params",
        help=" ".join(meaning(term) for term in TERMS),
    )
    return by_title.get(title or "", STANDARD_ERROR)


def without_counts(measure: Measure, because: str) -> Measure:
    """The measure for what has no CV; the page then says why it shows another one."""
    if measure != COEFFICIENT_OF_VARIATION:
        return measure
    st.caption(f"Shown as standard errors: {because}")
    return STANDARD_ERROR
