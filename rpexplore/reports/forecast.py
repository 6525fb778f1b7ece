"""What a report tells of public tables, of the forecast that a plan keeps, and of its outcome."""

import pandas as pd

from rpexplore.analysis.forecast import public_frame
from rpexplore.analysis.outcome import (
    Outcome,
    describe_forecast,
    forecast_by_order,
    outcome_columns,
)
from rpexplore.common.text import describe_share, rounded
from rpexplore.domain.public_tables import PublicTables
from rpexplore.planning.plan import Plan
from rpexplore.reports.section import Numbers, Section

_MOST_TABLES = 20


def forecast_sections(plan: Plan, outcome: Outcome | None) -> list[Section]:
    """The forecast of a plan that keeps one, with the outcome of a release beside it."""
    forecast, tables = plan.forecast, plan.part("tables")
    if forecast is None or tables is None:
        return []
    rule = (
        f"A cell is good if its coefficient of variation is at most {100 * forecast.limit:g} %; a "
        f"table meets the rule if {describe_share(forecast.share)} of its people are in good cells."
    )
    if outcome is None:
        frame = forecast_by_order(forecast, tables.workload)
        said = f"{describe_forecast(forecast)} No record was looked at for it."
        return [Section("Forecast", (said, rule), (Numbers(outcome_columns(frame, "attributes")),))]
    numbers = [Numbers(outcome_columns(outcome.by_order(), "attributes"))]
    by_table = outcome.tables().head(_MOST_TABLES)
    if len(by_table):
        title = "Tables with the fewest people in good cells beside their forecast"
        numbers.append(Numbers(outcome_columns(by_table, "table"), title=title))
    return [Section("Forecast and outcome", (*outcome.sentences, rule), numbers)]


def public_section(public: PublicTables | None) -> list[Section]:
    """The public tables that figures about counts rest on, and where they contradict each other."""
    if public is None or not public.tables:
        return []
    frame = public_frame(public)
    shown = frame.assign(
        records=[
            "shares" if pd.isna(records) else rounded(records, 6) for records in frame["records"]
        ]
    )
    said = (
        f"{rounded(public.n_records, 6)} records are expected. Forecasts of counts rest on these "
        "tables, which were published elsewhere; none was made from the confidential records.",
        *public.contradictions,
    )
    return [Section("Public tables", said, (Numbers(shown),))]
