"""The chart of the Plan page: accuracy by number of attributes, and what the plan guarantees."""

from typing import Any

import pandas as pd
import streamlit as st

from pages.components.shared.charts import exhibit, numbers
from pages.components.shared.session import current, escaped
from rpexplore.analysis import accuracy as standard_errors
from rpexplore.common.formatting import column_format
from rpexplore.figures import accuracy as by_order
from rpexplore.planning.mechanism.alike import cells_differ
from rpexplore.planning.plan import Plan
from rpexplore.planning.verification import guarantee


def chart(planned: Plan) -> None:
    """Standard error by number of attributes, with caption, alternative text and numbers."""
    counted = current().counted
    frame = standard_errors.by_order(planned)
    st.subheader("How accurate the tables are")
    differ = cells_differ(planned.table_variances)
    boxes = standard_errors.boxes_in_words(frame, cells_differ=differ)
    exhibit(
        by_order.standard_errors_by_order(frame, counted),
        standard_errors.by_order_in_words(frame, counted, cells_differ=differ),
        "Standard error of a cell by number of attributes",
        f"{boxes} A standard error of 10 means within ±20 {escaped(counted)}, 95 % of the "
        "time.".strip(),
    )
    with st.expander("What this plan guarantees, in full"):
        st.markdown(escaped(guarantee(planned)))
    with st.expander("The numbers of this chart"):
        numbers(
            frame,
            chart_columns(frame),
            "standard_errors_by_order.csv",
            "Standard error by number of attributes",
        )


def chart_columns(frame: pd.DataFrame) -> dict[str, Any]:
    """The columns of the chart's numbers in plain words."""
    digits = column_format(frame["smallest"])
    errors = {
        "smallest": "Best",
        "lower_quartile": "Best quarter up to",
        "median": "Half up to",
        "upper_quartile": "Three quarters up to",
        "largest": "Worst",
    }
    return {
        "order": "Attributes",
        "tables": "Tables",
        **{
            name: st.column_config.NumberColumn(words, format=digits)
            for name, words in errors.items()
        },
        "best_table": "Best table",
        "worst_table": "Worst table",
    }
