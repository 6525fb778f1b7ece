"""The forecast on the Plan page, and its figures by number of attributes and by group."""

import streamlit as st

from pages.components.shared.background import worked_out
from pages.components.shared.session import attempt, current, kept
from rpexplore.analysis.drawn_counts import DrawnCounts
from rpexplore.analysis.forecast import Forecast, range_columns
from rpexplore.analysis.published_lines import forecast_of_scenario
from rpexplore.planning.table_plan import TablePlan

_NOT_BY_GROUP = "of all"


def forecast(planned: TablePlan) -> Forecast | None:
    """The forecast of the plan's tables; None without expected counts, and while it is made."""
    scenario = current()
    public = attempt(lambda: scenario.public_tables)
    if public is None:
        return None
    by = (planned.workload, scenario.public, scenario.expected)
    drawn = worked_out(DrawnCounts.of, planned.workload, public, by=by)
    return drawn and kept(forecast_of_scenario, planned, drawn, scenario)


def by_size_and_group(made: Forecast) -> None:
    """The figures by number of attributes, and by the values of an attribute."""
    st.dataframe(
        range_columns(kept(made.by_order), "attributes", "meeting"),
        hide_index=True,
        alt="Forecast by number of attributes",
    )
    planned = made.tables_of_plan
    names = [_NOT_BY_GROUP, *(planned.domain.names[index] for index in planned.workload.used)]
    chosen = st.selectbox("Who loses most: by the values of", names, key="forecast by")
    if chosen != _NOT_BY_GROUP:
        frame = attempt(lambda: kept(made.by_group, chosen))
        if frame is not None:
            shown = range_columns(frame, "value", "count")
            st.dataframe(shown, hide_index=True, alt=f"Forecast by {chosen}")
