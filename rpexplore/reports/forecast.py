"""What a report tells of public tables, of the forecast of a plan, and of its outcome."""

import pandas as pd

from rpexplore.analysis.drawn_counts import LEFT_OUT
from rpexplore.analysis.forecast import Forecast, forecast_by, public_frame
from rpexplore.analysis.outcome import (
    Outcome,
    describe_forecast,
    forecast_by_order,
    outcome_columns,
)
from rpexplore.analysis.ranges import Range, range_columns
from rpexplore.common.text import describe_share, rounded
from rpexplore.domain.public_tables import PublicTables
from rpexplore.errors import WorkloadError
from rpexplore.planning.plan import Plan
from rpexplore.planning.table_plan import TablePlan
from rpexplore.reports.kinds import FrontRow, Given
from rpexplore.reports.section import Numbers, Section

_MOST_TABLES = 20


def forecast_of(plan: TablePlan, given: Given) -> tuple[FrontRow, list[Section]]:
    """The forecast on the first page, and in sections of its own if it is made for the report.

    By the forecast that the plan keeps, where there is one, else by what is public. Where that says
    nothing, the first page says why.
    """
    limit, design = given.cv_limit, given.design
    whom = plan.budget.counted_as(given.record_noun)
    if given.kept is not None:
        people = Range(*given.kept.all.people).text(describe_share)
        row = f"Forecast: {people} of {whom} in good cells", describe_forecast(given.kept)
        return row, []
    try:
        if given.public is not None:
            tables, number = given.public.tables, given.public.expected
            made = Forecast(plan, tables, number, limit, survey=design, noun=whom)
        elif given.expected is not None:
            made = forecast_by(plan, given.expected, limit, design, whom)
        else:
            return ("Forecast", "Not known without expected counts."), []
    except WorkloadError as error:
        said = f"Not known, as what is public does not fit the tables: {error}"
        return ("Forecast", said), []
    if not made.n_tables:
        return ("Forecast", f"Not known: left out are {LEFT_OUT}."), []
    people = made.people.text(describe_share)
    row = f"Forecast: {people} of {made.whom} in good cells", f"{made.describe()} {made.rests_on}"
    return row, [_forecast(made)]


def _forecast(made: Forecast) -> Section:
    """How good tables will be: by number of attributes, and the worst ones."""
    worst = made.tables().head(_MOST_TABLES)
    return Section(
        "Forecast",
        (
            made.describe(),
            f"{made.rests_on} No record was looked at for it, and the plan does not depend on it. "
            "What is not public was drawn again and again: each figure is a median, with the range "
            "that 90 % of the draws are in.",
            *filter(None, [made.survey_text, made.left_out_text]),
        ),
        (
            Numbers(range_columns(made.by_order(), "attributes", "meeting", made.whom)),
            Numbers(
                range_columns(worst, "table", "meets", made.whom),
                title=f"Tables with the fewest {made.whom} in good cells",
            ),
        ),
    )


def forecast_sections(plan: Plan, outcome: Outcome | None, record_noun: str) -> list[Section]:
    """The forecast of a plan that keeps one, with the outcome of a release beside it."""
    forecast, tables = plan.forecast, plan.part("tables")
    if forecast is None or tables is None:
        return []
    whom = plan.budget.counted_as(record_noun)
    rule = (
        f"A cell is good if its coefficient of variation is at most {100 * forecast.limit:g} %; a "
        f"table meets the rule if {describe_share(forecast.share)} of its {whom} are in "
        "good cells."
    )
    if outcome is None:
        frame = forecast_by_order(forecast, tables.workload)
        said = f"{describe_forecast(forecast)} No record was looked at for it."
        return [
            Section(
                "Forecast", (said, rule), (Numbers(outcome_columns(frame, "attributes", whom)),)
            )
        ]
    numbers = [Numbers(outcome_columns(outcome.by_order(), "attributes", whom))]
    by_table = outcome.tables().head(_MOST_TABLES)
    if len(by_table):
        title = f"Tables with the fewest {whom} in good cells beside their forecast"
        numbers.append(Numbers(outcome_columns(by_table, "table", whom), title=title))
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
