"""The chart of the Plan page: accuracy by number of attributes, and what the plan guarantees."""

import streamlit as st

from pages.components.shared.charts import chart_with_numbers
from pages.components.shared.session import current, escaped
from rpexplore.analysis import accuracy
from rpexplore.figures.accuracy import chart_by_order
from rpexplore.planning.mechanism.table_variances import cells_differ
from rpexplore.planning.plan import Plan


def chart(planned: Plan) -> None:
    """Standard error by number of attributes, with caption, alternative text and numbers."""
    record_noun, differ = current().record_noun, cells_differ(planned.table_variances)
    st.subheader("How accurate the tables are")
    chart_with_numbers(
        chart_by_order(accuracy.by_order(planned), record_noun, cells_differ=differ),
        f"A standard error of 10 means within ±20 {escaped(record_noun)}, 95 % of the time.",
    )
    with st.expander("What this plan guarantees, in full"):
        st.markdown(escaped(planned.guarantee))
