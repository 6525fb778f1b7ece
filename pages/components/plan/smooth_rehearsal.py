"""What smooth tables of a plan would be like, rehearsed on made-up records when asked for."""

import streamlit as st

from pages.components.shared.background import worked_out
from pages.components.shared.charts import listing
from pages.components.shared.serving import last_step
from pages.components.shared.session import current, escaped
from rpexplore.analysis.glossary import meaning
from rpexplore.common.formatting import describe_share
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.domain.readings import READINGS
from rpexplore.domain.smooth_rehearsal import WITHOUT_SIGNS, SmoothRehearsal
from rpexplore.figures.chart import COLUMNS, Column
from rpexplore.planning.plan import Plan
from rpexplore.planning.table_plan import TablePlan
from rpexplore.postprocessing.rehearsal.smooth_rehearsal import rehearse_smooth_tables

WANTED, FOUND = "plan of the smooth rehearsal", "the smooth rehearsal"


def smooth_rehearsal(planned: TablePlan) -> None:
    """A button that rehearses the plan, and how near each reading of the tables comes."""
    st.subheader("How near smooth tables would come", help=meaning("Smooth tables"))
    expected = current().expected
    if expected is None:
        st.caption("With expected counts, smooth tables can be rehearsed here before the run.")
        return
    key = planned, expected
    if st.session_state.get(WANTED) != key:
        st.caption(
            "A rehearsal is a simulation: made-up records from the expected counts are measured as "
            "this plan would measure yours, and unbiased, nonnegative and smooth tables compared "
            "with them. No record is read, and nothing is spent."
        )
        st.button("Rehearse smooth tables", on_click=_rehearse, args=key, help=meaning("Rehearsal"))
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
