"""The figures of the forecast by number of attributes and by group, on the Plan page."""

import streamlit as st

from pages.components.shared.session import attempt, kept
from rpexplore.analysis.forecast import Forecast
from rpexplore.analysis.ranges import range_columns

_NOT_BY_GROUP = "of all"


def by_size_and_group(made: Forecast) -> None:
    """The figures by number of attributes, and by the values of an attribute."""
    st.dataframe(
        range_columns(kept(made.by_order), "attributes", "meeting", made.whom),
        hide_index=True,
        alt="Forecast by number of attributes",
    )
    planned = made.tables_of_plan
    names = [_NOT_BY_GROUP, *(planned.domain.names[index] for index in planned.workload.used)]
    chosen = st.selectbox("Who loses most: by the values of", names, key="forecast by")
    if chosen != _NOT_BY_GROUP:
        frame = attempt(lambda: kept(made.by_group, chosen))
        if frame is not None:
            shown = range_columns(frame, "value", "count", made.whom)
            st.dataframe(shown, hide_index=True, alt=f"Forecast by {chosen}")
