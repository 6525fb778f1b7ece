"""What a report tells of the forecast that a plan keeps, and of what came out."""

from rpexplore.analysis.outcome import (
    Outcome,
    describe_forecast,
    forecast_by_order,
    outcome_columns,
)
from rpexplore.common.text import describe_share
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
