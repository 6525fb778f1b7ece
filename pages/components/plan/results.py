"""The results on the Plan page: what a plan guarantees and how accurate its tables are."""

from typing import Any

import streamlit as st

from pages.components.fairness.cells import CELLS_VIEW
from pages.components.plan.one_table import EXPLAIN, explained
from pages.components.shared.charts import MOST_ROWS, chart_with_numbers, chosen_row, listing
from pages.components.shared.expected_counts import usefulness_of
from pages.components.shared.files import download
from pages.components.shared.session import current, escaped, kept
from pages.components.shared.table_choice import attributes_filter
from rpexplore.analysis import accuracy, targets_met
from rpexplore.analysis.glossary import meaning
from rpexplore.figures.accuracy import accuracy_by_order_chart
from rpexplore.figures.chart import COLUMNS, Column
from rpexplore.planning.mechanism.table_variances import cells_differ
from rpexplore.planning.table_plan import TablePlan


def chart(planned: TablePlan) -> None:
    """Standard error by number of attributes, and what the plan guarantees."""
    record_noun, differ = current().record_noun, cells_differ(planned.table_variances)
    st.subheader("How accurate the tables are")
    chart_with_numbers(
        accuracy_by_order_chart(accuracy.by_order(planned), record_noun, cells_differ=differ),
        f"A standard error of 10 means within ±20 {escaped(record_noun)}, 95 % of the time.",
    )
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
