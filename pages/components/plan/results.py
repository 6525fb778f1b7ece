"""The results on the Plan page: guarantee, accuracy of tables, one table, a rehearsal."""

from typing import Any

import streamlit as st

from pages.components.fairness.cells import CELLS_VIEW
from pages.components.plan.suggestions import suggested
from pages.components.results.crosstab import show
from pages.components.shared.background import worked_out
from pages.components.shared.charts import MOST_ROWS, chart_with_numbers, chosen_row, listing
from pages.components.shared.expected_counts import usefulness_of
from pages.components.shared.files import download
from pages.components.shared.inputs import attributes_filter, table_input
from pages.components.shared.serving import last_step
from pages.components.shared.session import attempt, current, escaped, kept
from rpexplore.analysis import accuracy, targets_met
from rpexplore.analysis.cell_accuracy import table_to_see
from rpexplore.analysis.drawn_counts import DrawnCounts
from rpexplore.analysis.explanation import describe_former, explanation
from rpexplore.analysis.glossary import meaning
from rpexplore.analysis.released_cells import ReleasedCells
from rpexplore.common.text import describe_share, joined
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.domain.readings import READINGS
from rpexplore.domain.result_schema import Schema
from rpexplore.domain.smooth_rehearsal import WITHOUT_SIGNS, SmoothRehearsal
from rpexplore.figures.cells import (
    MOST_BARS,
    MOST_CELLS,
    MOST_GROUPS,
    bars_with_intervals,
    heat_map,
)
from rpexplore.figures.chart import COLUMNS, Chart, Column, columns_of
from rpexplore.planning.plan import Plan
from rpexplore.planning.table_plan import TablePlan
from rpexplore.releases.rehearsal import MadeUpTable, rehearse
from rpexplore.results.formats.crosstab import crosstab_of_cells
from rpexplore.results.publication import Publication
from rpexplore.results.rehearsal import rehearse_smooth_tables

# ---- The results on the Plan page: what a plan guarantees and how accurate its tables are.


def guarantee(planned: TablePlan) -> None:
    """What the plan guarantees, for whoever asks."""
    with st.expander("What this plan guarantees, in full"):
        st.markdown(escaped(planned.guarantee))


def table_list(planned: TablePlan, former: TablePlan | None) -> None:
    """All tables, the least accurate first. former: the plan before the last change"""
    st.subheader("All tables, the least accurate first")
    containing = attributes_filter(planned.workload, "tables containing")
    useful = usefulness_of(planned)
    shares = None if useful is None else useful.shares
    request = current().request
    by = (planned, containing, request, useful)
    frame = kept(targets_met.of_tables, planned, containing, request, shares, by=by)
    if frame.empty:
        st.info("No table has all of these attributes.")
        return
    columns: dict[str, Any] = {name: COLUMNS[name] for name in frame.columns if name in COLUMNS}
    columns["weight"] = st.column_config.NumberColumn("Weight", help=meaning("Weight"))
    if not frame[frame["outcome"] != ""].empty:
        columns |= {
            "wanted": Column("target", "text", term="Target"),
            "required": Column("required", "text", term="Required"),
            "outcome": Column("met or short by", "text"),
        }
    alt = "All tables with their standard errors"
    if len(frame) > MOST_ROWS:
        listing(frame, columns, alt)
        st.caption(
            f"Where at most {MOST_ROWS:,} tables are listed, a click on one explains its standard "
            "error."
        )
    else:
        order = accuracy.least_accurate_first(planned, containing)
        row = chosen_row(frame, columns, alt, f"tables {hash(order.tobytes())}")
        if row is None:
            st.caption(
                "Click a table, or go to it by the arrow keys, to have its standard error "
                "explained."
            )
        else:
            with st.container(border=True):
                st.markdown(f"**{EXPLAIN}: {escaped(str(frame['item'].iloc[row]))}**")
                explained(planned, int(order[row]), former)
    if "largest_standard_error" in columns:
        st.caption(
            "Standard error σ and margin of error are root mean squares over the cells of a table. "
            "A target is met when the least accurate cell meets it."
        )
        st.page_link(
            "pages/fairness.py",
            label="Which cells of a table are the accurate ones",
            icon=":material/grid_on:",
            query_params={"fairness": CELLS_VIEW},
        )


def downloads(planned: TablePlan) -> None:
    """The plan file and the tables, made when they are downloaded."""
    with st.container(horizontal=True):
        download("plan.json", lambda: planned.text, type="primary")
        download("tables.csv", lambda: accuracy.csv_of_accuracy(planned))
    st.caption(
        "The plan file holds everything a release needs, and no records: `rpexplore verify "
        "plan.json` checks it, `rpexplore release` runs it where the data lives."
    )


# ---- One table on the Plan page: how it would look, and why its error is as large as it is.


SEE, EXPLAIN, IMPROVE = "See it", "Explain this number", "What would make it good"
GRID, BARS, HEAT_MAP = "Grid", "Bars", "Heat map"


def one_table(planned: TablePlan, former: TablePlan | None, drawn: DrawnCounts | None) -> None:
    """A table of the curator's choice.

    former: the plan before the last change; drawn: what forecasts of its tables are made from
    """
    view = st.segmented_control(
        "One table", [SEE, EXPLAIN, IMPROVE], default=SEE, required=True, key="view of one table"
    )
    table = table_input(planned.workload, kept(table_to_see, planned.workload), "table to look at")
    if table is None:
        return
    if view == EXPLAIN:
        explained(planned, table, former)
    elif view == IMPROVE:
        suggested(planned, table, drawn)
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
        "Another example", icon=":material/refresh:", type="tertiary", key="draw again"
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
        crosstab = crosstab_of_cells(cells, has_columns=len(order) == 2)
        caption = f"Example of {record_noun} by {joined(names)}"
        show(crosstab, Publication(current().cv_limit), caption)
    else:
        listing(shown, columns, alt)
    st.caption(escaped(made_up.text))


# ---- What smooth tables of a plan would be like, rehearsed on made-up records when asked for.


WANTED, FOUND = "plan of the smooth rehearsal", "the smooth rehearsal"


def smooth_rehearsal(planned: TablePlan) -> None:
    """A button that rehearses the plan, and how near each reading of the tables comes."""
    st.subheader("Simulated errors of model-based estimates", help=meaning("Smooth tables"))
    expected = current().expected
    if expected is None:
        st.caption("Give expected counts, and you can simulate these errors here before the run.")
        return
    key = planned, expected
    if st.session_state.get(WANTED) != key:
        st.caption(
            "The simulation measures made-up records, from the expected counts, as this plan would "
            "measure yours, and compares unbiased, nonnegative and smooth tables with them. It "
            "reads no record and spends nothing."
        )
        st.button("Simulate them", on_click=_rehearse, args=key, help=meaning("Rehearsal"))
        return
    rehearsal = worked_out(rehearse_smooth_tables, planned, expected)
    if rehearsal is not None:
        st.session_state[FOUND] = key, rehearsal
        _show(rehearsal)


def last_rehearsal(planned: Plan, expected: ExpectedCounts | None) -> SmoothRehearsal | None:
    """The rehearsal of a plan, if this session has made it."""
    key, rehearsal = st.session_state.get(FOUND, (None, None))
    return rehearsal if key == (planned, expected) else None


def _show(rehearsal: SmoothRehearsal) -> None:
    record_noun = current().record_noun
    columns = {name: COLUMNS[name] for name in ("order", "tables")}
    columns["unbiased"] = Column("unbiased", "text")
    if rehearsal.has_nonnegative:
        columns["nonnegative"] = Column("nonnegative", "text")
    columns["smooth"] = Column("smooth", "text", term="Smooth tables")
    # As the sentence above them has them.
    shares = [name for name in READINGS if name in columns]
    frame = rehearsal.frame.assign(**rehearsal.frame[shares].map(describe_share))
    st.markdown(escaped(rehearsal.describe(record_noun)))
    listing(frame, columns, "Rehearsed errors of unbiased, nonnegative and smooth tables")
    left_out = ""
    if not rehearsal.has_nonnegative:
        left_out = " Nonnegative tables are left out for time."
    st.caption(
        escaped(
            f"Errors of all cells of a table, {WITHOUT_SIGNS}, as a share of the {record_noun}; "
            f"mean over tables, rehearsed on made-up records. {rehearsal.caution}{left_out} The "
            f"report on the page {last_step().title} has these figures too."
        )
    )
    if current().request.smooth_weights is None:
        st.page_link(
            "pages/workload.py",
            label="Set weights for smooth tables",
            icon=":material/arrow_forward:",
            query_params={"part": "weights"},
        )


def _rehearse(*key: object) -> None:
    st.session_state[WANTED] = key
