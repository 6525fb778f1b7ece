"""Views of the Fairness page: accuracy by size, its distribution, and by attribute."""

import streamlit as st

from pages.components.fairness.charts import exhibit_with_numbers, with_cell
from pages.components.fairness.forecasts import own_scheme
from pages.components.shared.charts import download
from pages.components.shared.session import current, escaped, kept
from rpexplore.analysis import accuracy_by_attribute as attributes
from rpexplore.analysis import distributions as spread
from rpexplore.analysis import fairness
from rpexplore.analysis import variance_by_size as cell_variances
from rpexplore.analysis.forecast import Forecast
from rpexplore.common.formatting import plural
from rpexplore.figures import accuracy_by_attribute as attribute_figures
from rpexplore.figures import distributions as curves
from rpexplore.figures import variance_by_size as size_figures

MOST_POINTS = 20_000  # drawn one by one
MOST_LINES = 40  # of attributes, before only the ends are drawn


def by_size(compared: list[Forecast], chosen: Forecast) -> None:
    """Cell variance against cell count for all plans, and the measures beside each other."""
    counted = current().counted
    many = len(chosen.workload) > cell_variances.MOST_POINTS
    make = cell_variances.bins if many else cell_variances.points
    frame = kept("fairness sizes", tuple(compared), lambda: make(compared))
    exhibit_with_numbers(
        size_figures.by_plan(frame, counted, own_scheme()),
        cell_variances.in_words(compared, counted),
        frame,
        "cell_variances.csv",
        seen=chosen,
        more="Each mark stands for the tables of nearly that size and variance; the larger, the "
        "more tables."
        if many
        else "Each mark is a table; point at it for its name.",
        alt="Variance of a cell against the number of cells of its table, by plan",
    )
    if many:
        single_tables(chosen)
    st.subheader("The plans side by side")
    measured = kept("fairness measures", tuple(compared), lambda: fairness.measures(compared))
    sentence = fairness.measures_in_words(measured, counted)
    st.markdown(escaped(sentence))
    st.dataframe(
        fairness.side_by_side(measured),
        hide_index=True,
        alt=f"Measures of evenness by plan. {sentence}",
        column_config={"measure": "Measure", "meaning": "What it says"},
    )
    download(with_cell(measured, chosen), "evenness.csv")


def single_tables(chosen: Forecast) -> None:
    """Points on demand: every table of one plan, or of those that have some attributes."""
    if not st.toggle("Show single tables", key="single tables"):
        return
    names = chosen.workload.domain.names
    containing = st.multiselect(
        "Only tables with all of these attributes", names, key="single tables with"
    )
    places = chosen.workload.containing(containing)
    if not len(places) or len(places) > MOST_POINTS:
        few = f"at most {MOST_POINTS:,} can be drawn one by one: choose an attribute"
        st.info(f"{plural(len(places), 'table')}{'; ' + few if len(places) else ''}.")
        return
    frame = cell_variances.points([chosen], places)
    exhibit_with_numbers(
        size_figures.single_tables(frame, current().counted),
        f"{plural(len(places), 'table')} of “{chosen.name}”, each a mark; point at it for its "
        "name.",
        frame,
        "single_tables.csv",
        seen=chosen,
        alt="Variance of a cell against the number of cells of single tables",
    )


def distributions(compared: list[Forecast], chosen: Forecast) -> None:
    """Which share of the tables is how accurate: by order, and under each plan."""
    counted = current().counted
    left, right = st.columns(2)
    with left:
        st.subheader("By number of attributes")
        frame = spread.quantiles_by_order(chosen)
        exhibit_with_numbers(
            curves.shares_of_tables(spread.curves_by_order(chosen), counted),
            f"“{chosen.name}”: {spread.by_order_in_words(frame, counted)}",
            frame,
            "standard_errors_by_order.csv",
            seen=chosen,
            more="The further left a curve, the more accurate its tables; the steeper, the more "
            "alike.",
            alt="Share of tables with at most so large a standard error, by number of attributes",
        )
    with right:
        st.subheader("By plan, all tables")
        frame = spread.quantiles_by_plan(compared)
        exhibit_with_numbers(
            curves.shares_of_tables(spread.curves_by_plan(compared), counted),
            spread.by_plan_in_words(frame, counted),
            frame,
            "standard_errors_by_plan.csv",
            seen=chosen,
            alt="Share of tables with at most so large a standard error, by plan",
        )


def by_attribute(chosen: Forecast) -> None:
    """How accurate the tables are that contain each attribute."""
    counted = current().counted
    frame = kept("fairness attributes", (chosen,), lambda: attributes.by_attribute(chosen))
    sentence = attributes.in_words(frame, chosen, counted)
    if frame.empty:
        st.info(escaped(sentence))
        return
    drawn, left_out = attributes.ends(frame, MOST_LINES)
    exhibit_with_numbers(
        attribute_figures.standard_errors_by_attribute(
            drawn, fairness.unevenness(chosen).median, counted
        ),
        sentence,
        frame,
        "standard_errors_by_attribute.csv",
        seen=chosen,
        more="Dots are medians, thick lines hold the middle half of the tables, thin lines reach "
        "the best and the worst."
        + (f" {left_out:,} attributes in between are in the numbers below." if left_out else ""),
        alt="Standard errors of the tables that contain each attribute",
    )
