"""One table on the Plan page: how it would look, and why its error is as large as it is."""

import streamlit as st

from pages.components.shared.charts import chart_with_numbers, listing
from pages.components.shared.session import attempt, current, escaped, kept
from pages.components.shared.table_choice import table_input
from rpexplore.analysis.cell_accuracy import table_to_see
from rpexplore.analysis.explanation import describe_former, explanation
from rpexplore.analysis.results.released_cells import ReleasedCells
from rpexplore.analysis.results.released_grid import released_grid
from rpexplore.domain.result_schema import Schema
from rpexplore.figures.chart import Chart, Column, columns_of
from rpexplore.figures.released_cells import (
    MOST_BARS,
    MOST_CELLS,
    MOST_GROUPS,
    bars_with_intervals,
    heat_map,
)
from rpexplore.planning.table_plan import TablePlan
from rpexplore.releases.rehearsal import MadeUpTable, rehearse

SEE, EXPLAIN = "See it", "Explain this number"
GRID, BARS, HEAT_MAP = "Grid", "Bars", "Heat map"


def one_table(planned: TablePlan, former: TablePlan | None) -> None:
    """A table of the curator's choice. former: the plan before the last change"""
    view = st.segmented_control(
        "One table", [SEE, EXPLAIN], default=SEE, required=True, key="view of one table"
    )
    table = table_input(planned.workload, kept(table_to_see, planned.workload), "table to look at")
    if table is None:
        return
    if view == EXPLAIN:
        explained(planned, table, former)
    else:
        if change := describe_former(planned, former, table):
            st.caption(change)
        _seen(planned, table)


def explained(planned: TablePlan, table: int, former: TablePlan | None) -> None:
    """Why the error of a table is as large as it is, in sentences and part by part."""
    reasons = kept(explanation, planned, table)
    st.markdown(
        "\n".join(
            f"- {escaped(sentence)}"
            for sentence in reasons.describe(current().record_noun, current().request, former)
        )
    )
    frame = reasons.frame()
    listing(
        frame,
        columns_of(frame.filter(["measured", "sigma", "share", "tables", "budget_share"])),
        "The parts of the variance of the table",
    )


def _seen(planned: TablePlan, table: int) -> None:
    """The table as it would look: made up, and drawn again on demand."""
    expected = current().expected
    if expected is None:
        st.caption("With expected counts, the table is shown here as it would look.")
        return
    draw_again = st.button(
        "Draw again", icon=":material/refresh:", type="tertiary", key="draw again"
    )
    key = planned, expected, table, current().cv_limit
    held = st.session_state.get("made up")
    if draw_again or held is None or held[0] != key:
        attributes = planned.workload.tables[table]
        made_up = attempt(
            lambda: rehearse(planned, expected, attributes, cv_limit=current().cv_limit),
            show=st.info,
        )
        if made_up is None:
            return
        held = st.session_state["made up"] = (key, made_up)
    _draw(held[1])


def _draw(made_up: MadeUpTable) -> None:
    shown, alt = made_up.shown, "A made-up table, as a release of this plan would look"
    heads = {"value": "value", "lower": "from", "upper": "to (95 %)"}
    columns = {
        column.name: Column(heads[column.role], "estimate")
        if column.role in heads
        else Column(column.name, "name")
        for column in Schema.of(shown).columns
        if column.names_cells or column.role in heads
    }
    order = sorted(range(len(made_up.attributes)), key=lambda axis: -made_up.expected.shape[axis])
    if 1 <= len(order) <= 2:
        names = [made_up.attributes[axis] for axis in order]
        cells = ReleasedCells.of(shown, made_up.attributes).along(names)
        views = [GRID, BARS, HEAT_MAP] if len(order) == 2 else [GRID, BARS]
        view = st.segmented_control(
            "Shown as", views, default=GRID, required=True, key="made up as",
            label_visibility="collapsed",
        )  # fmt: skip
        drawn = cells.first([MOST_BARS, MOST_GROUPS][: len(order)])
        record_noun = current().record_noun
        if view != GRID:
            if view == BARS:
                figure = bars_with_intervals(drawn, record_noun)
            else:
                within = cells.first([MOST_CELLS, MOST_CELLS])
                figure = heat_map(within, record_noun, by_margin=False)
            chart = Chart(figure, alt, made_up.text, shown, columns, "made_up_table.csv")
            chart_with_numbers(chart)
            return
        frame = released_grid(cells)
        listing(frame, {name: Column(name, "name") for name in frame.columns}, alt)
    else:
        listing(shown, columns, alt)
    st.caption(escaped(made_up.text))
