"""Views of the Fairness page: accuracy by size, its distribution, and by attribute."""

import streamlit as st

from pages.components.fairness.cell_note import chart_at_cell, with_cell
from pages.components.fairness.forecasts import own_scheme
from pages.components.shared.charts import download
from pages.components.shared.session import current, escaped, kept
from rpexplore.analysis import accuracy_by_attribute as attributes
from rpexplore.analysis import fairness
from rpexplore.analysis import variance_by_size as cell_variances
from rpexplore.analysis.forecast import Forecast
from rpexplore.common.formatting import plural
from rpexplore.figures import accuracy_by_attribute as attribute_figures
from rpexplore.figures import distributions as curves
from rpexplore.figures import variance_by_size as size_figures
from rpexplore.figures.chart import Chart
from rpexplore.figures.columns import columns_of

MOST_POINTS = 20_000  # drawn one by one


def accuracy_by_size(compared: list[Forecast], chosen: Forecast) -> None:
    """Cell variance against cell count for all plans, and the measures beside each other."""
    record_noun, own = current().record_noun, own_scheme()
    chart = kept(
        "fairness sizes",
        (*compared, record_noun, own),
        lambda: size_figures.chart_by_plan(compared, record_noun, own),
    )
    if "table" in chart.frame:
        chart_at_cell(chart, chosen, "Point at a mark for the name of its table.")
    else:
        chart_at_cell(chart, chosen)
        _single_tables(chosen)
    st.subheader("The plans side by side")
    measures = kept("fairness measures", tuple(compared), lambda: fairness.measures(compared))
    sentence = fairness.describe_measures(measures, record_noun)
    st.markdown(escaped(sentence))
    st.dataframe(
        fairness.side_by_side(measures),
        hide_index=True,
        alt=f"Measures of evenness by plan. {sentence}",
        column_config={"measure": "Measure", "meaning": "What it says"},
    )
    download(with_cell(measures, chosen), "evenness.csv")


def _single_tables(chosen: Forecast) -> None:
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
        frame = cell_variances.points([chosen], tables)
        chart = Chart(
            size_figures.single_tables(frame, current().record_noun),
            subject="Variance of a cell against the number of cells of single tables",
            sentence=f"{count} of “{chosen.name}”, each a mark; point at it for its name.",
            frame=frame,
            columns=columns_of(frame),
            file="single_tables.csv",
        )
        chart_at_cell(chart, chosen)


def distributions(compared: list[Forecast], chosen: Forecast) -> None:
    """Which share of the tables is how accurate: by order, and under each plan."""
    record_noun = current().record_noun
    left, right = st.columns(2)
    with left:
        st.subheader("By number of attributes")
        chart = curves.chart_by_order(chosen, record_noun)
        chart_at_cell(chart, chosen, f"Under “{escaped(chosen.name)}”.")
    with right:
        st.subheader("By plan, all tables")
        chart_at_cell(curves.chart_by_plan(compared, record_noun), chosen)


def accuracy_by_attribute(chosen: Forecast) -> None:
    """How accurate the tables are that contain each attribute."""
    record_noun = current().record_noun
    frame = kept("fairness attributes", (chosen,), lambda: attributes.by_attribute(chosen))
    if frame.empty:
        st.info(escaped(attributes.describe(frame, chosen, record_noun)))
    else:
        chart_at_cell(attribute_figures.chart(frame, chosen, record_noun), chosen)
