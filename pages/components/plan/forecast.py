"""The forecast on the Plan page: how many people, cells and tables will be good enough."""

import streamlit as st

from pages.components.plan.rule import budget_for_rule
from pages.components.shared.background import worked_out
from pages.components.shared.session import attempt, current, escaped, kept
from rpexplore.analysis.drawn_counts import DrawnCounts
from rpexplore.analysis.forecast import Forecast, range_columns
from rpexplore.analysis.glossary import meaning
from rpexplore.common.text import capitalised, describe_share, plural, rounded
from rpexplore.domain.public_tables import PublicTable, PublicTables
from rpexplore.domain.survey import SurveyDesign
from rpexplore.planning.table_plan import TablePlan

_NOT_BY_GROUP = "of all"


def forecast(planned: TablePlan) -> DrawnCounts | None:
    """People, cells and tables with their ranges; nothing without expected counts.

    Returns the counts that were drawn for it, when they are.
    """
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
    made = kept(_forecast, planned, drawn, scenario.cv_limit, design)
    n_judged = int(made.judged.sum())
    noun = escaped(scenario.record_noun)
    figures = {
        f"{capitalised(noun)} in good cells": made.people.texts(describe_share),
        "Good cells": made.cells.texts(describe_share),
        f"Of {plural(n_judged, 'table')}, good enough": made.meeting.texts(
            lambda value: rounded(round(value), 6)
        ),
    }
    with st.container(key="forecast", horizontal=True):
        for (label, (low, median, high)), word in zip(
            figures.items(), ("Good cell", "Good cell", "Rule"), strict=True
        ):
            with st.container(border=True, gap="xxsmall"):
                st.metric(label, median, help=meaning(word))
                st.caption(f"{low} to {high}" if low != high else "for certain")
    st.caption(
        f"Forecast from {escaped(public.text)}: the median, and where 90 % of the populations lie "
        f"that may be behind it. Good: a coefficient of variation of at most "
        f"{100 * made.limit:g} %. A table is good enough with {escaped(made.criterion)}. "
        f"{escaped(made.survey_text)}"
    )
    if made.rules:
        budget_for_rule(made, drawn)
    with st.expander("Forecast by number of attributes, by table, by group"):
        _details(planned, made)
    return drawn


def _forecast(
    planned: TablePlan, drawn: DrawnCounts, limit: float, design: SurveyDesign | None
) -> Forecast:
    return Forecast(planned, limit=limit, drawn=drawn, survey=design)


def _details(planned: TablePlan, made: Forecast) -> None:
    st.dataframe(
        range_columns(made.by_order(), "attributes", "meeting"),
        hide_index=True,
        alt="Forecast by number of attributes",
    )
    st.dataframe(
        range_columns(kept(made.tables), "table", "meets"),
        hide_index=True,
        height=260,
        alt="Forecast of every table, that with fewest people in good cells first",
    )
    names = [_NOT_BY_GROUP, *(planned.domain.names[index] for index in planned.workload.used)]
    chosen = st.selectbox("Who loses most: by the values of", names, key="forecast by group")
    if chosen != _NOT_BY_GROUP:
        frame = attempt(lambda: kept(made.by_group, chosen))
        if frame is not None:
            st.dataframe(
                range_columns(frame, "value", "count"),
                hide_index=True,
                alt=f"Forecast by {chosen}",
            )
