"""What a report tells about an adaptive plan: when to choose it, what is measured when, tables."""

from rpexplore.analysis import forecast
from rpexplore.analysis.adaptive import (
    NOTHING_PROMISED,
    describe_measured,
    measured_when,
    unbiased_alternative,
    when_to_choose,
)
from rpexplore.analysis.usefulness import Usefulness, publishable
from rpexplore.common.csv_text import csv_of_frame
from rpexplore.common.formatting import describe_count, plural
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.errors import WorkloadError
from rpexplore.export.report.board import what_is_released
from rpexplore.export.report.part import Given, PartReport
from rpexplore.export.report.section import Attachment, Numbers, Section
from rpexplore.figures.chart import COLUMNS, Column
from rpexplore.planning.adaptive.adaptive_plan import AdaptivePlan

MOST_SHOWN = 40  # tables
_STEP_COLUMNS = {
    "step": Column("step", "text"),
    "measured": Column("residuals", "count"),
    "selection_rho": Column("selecting, ρ"),
    "measurement_rho": Column("measuring, ρ"),
    "share": Column("share of ρ", "share"),
}


def unbiased_usefulness(
    plan: AdaptivePlan, expected: ExpectedCounts | None, cv_limit: float
) -> Usefulness | None:
    """What unbiased tables at the same budget would be worth; None where that is not known."""
    if expected is None:
        return None
    try:
        return publishable(unbiased_alternative(plan), expected, cv_limit=cv_limit)
    except WorkloadError:  # the counts do not fit the tables
        return None


def rounds_report(plan: AdaptivePlan, given: Given) -> PartReport:
    """When to choose such a plan, what is measured when, and the tables."""
    unbiased = unbiased_usefulness(plan, given.expected, given.cv_limit)
    known = (
        "Not known without expected counts that fit." if unbiased is None else unbiased.describe()
    )
    steps = Numbers(
        measured_when(plan),
        _STEP_COLUMNS,
        "Budget by round",
        f"Each ρ is for {plan.budget.unit}, and for all residuals of the step together.",
    )
    return PartReport(
        front=[
            what_is_released(plan, given.record_noun),
            ("Accuracy", NOTHING_PROMISED),
            ("Publishable, if it were an unbiased plan of this budget", known),
        ],
        sections=[
            Section("When to choose it", when_to_choose(unbiased)),
            Section("What is measured, and when", describe_measured(plan), (steps,)),
            _tables(plan),
        ],
        of_kind=", adaptively,",
    )


def _tables(plan: AdaptivePlan) -> Section:
    totals = forecast.totals(plan.workload)
    frame = plan.accuracy().loc[:, ["item", "cells"]]
    columns = {name: COLUMNS[name] for name in frame}
    parts = [Numbers(frame.head(MOST_SHOWN), columns, "Tables that are estimated")]
    more = []
    if len(frame) > MOST_SHOWN:
        what = f"All {plural(len(frame), 'table')} with their cells"
        more.append(Attachment("estimated_tables.csv", what, csv_of_frame(frame)))
    sentence = (
        f"{plural(totals.tables, 'table')} with {describe_count(totals.cells)} cells in all. The "
        f"largest is {totals.largest_table}, with {describe_count(totals.largest_cells)} cells."
    )
    return Section("Tables", (sentence,), (*parts, *more))
