"""The forecast on the Plan page, and its figures by number of attributes and by group."""

import streamlit as st

from pages.components.shared.background import worked_out
from pages.components.shared.session import attempt, current, kept
from rpexplore.analysis.drawn_counts import DrawnCounts
from rpexplore.analysis.forecast import Forecast, range_columns
from rpexplore.domain.public_tables import PublicTable, PublicTables
from rpexplore.domain.survey import SurveyDesign
from rpexplore.planning.table_plan import TablePlan

_NOT_BY_GROUP = "of all"


def forecast(planned: TablePlan) -> Forecast | None:
    """The forecast of the plan's tables; None without expected counts, and while it is made."""
    scenario = current()
    expected = scenario.expected
    if expected is None:
        return None
    tables = (PublicTable(expected),) if expected.attributes else ()
    total = None if tables else expected.total
    public = attempt(lambda: PublicTables(scenario.domain, tables, total))
    if public is None:
        return None
    drawn = worked_out(DrawnCounts.of, planned.workload, public, by=(planned.workload, expected))
    if drawn is None:
        return None
    design = scenario.design and scenario.design.among(planned.workload.tables)
    return kept(_forecast, planned, drawn, scenario.cv_limit, design)


def _forecast(
    planned: TablePlan, drawn: DrawnCounts, limit: float, design: SurveyDesign | None
) -> Forecast:
    return Forecast(planned, limit=limit, drawn=drawn, survey=design)


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
