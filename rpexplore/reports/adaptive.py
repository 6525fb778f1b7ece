"""What a report tells of an adaptive plan, and of what can be made of a release later."""

from rpexplore.analysis import measures
from rpexplore.analysis.adaptive import (
    NOTHING_PROMISED,
    RoundsForecast,
    describe_measured,
    measured_when,
    when_to_choose,
)
from rpexplore.analysis.forecast import public_tables_among, public_tables_of
from rpexplore.common.text import capitalised, csv_of_frame, describe_count, describe_share, plural
from rpexplore.domain.readings import READINGS, SMOOTH_COVERAGE
from rpexplore.domain.smooth_rehearsal import WITHOUT_SIGNS, SmoothRehearsal
from rpexplore.errors import WorkloadError
from rpexplore.figures.chart import COLUMNS, Column
from rpexplore.planning.adaptive import AdaptivePlan
from rpexplore.reports.first_pages import what_is_released
from rpexplore.reports.kinds import Given, PartReport
from rpexplore.reports.section import Attachment, Facts, Numbers, Section
from rpexplore.scenarios.workload_request import WorkloadRequest

# ---- What a report tells about an adaptive plan: when to choose it, what is measured when,
# tables.


MOST_SHOWN = 40  # tables
_STEP_COLUMNS = {
    "step": Column("step", "text"),
    "measured": Column("residuals", "count"),
    "selection_rho": Column("selecting, ρ"),
    "measurement_rho": Column("measuring, ρ"),
    "share": Column("share of ρ", "share"),
}


def rounds_report(plan: AdaptivePlan, given: Given) -> PartReport:
    """When to choose such a plan, what is measured when, and the tables."""
    made = _known_of(plan, given)
    known = made if isinstance(made, str) else made.describe()
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
            ("Forecast", known),
        ],
        sections=[
            Section("When to choose it", when_to_choose(None if isinstance(made, str) else made)),
            Section("What is measured, and when", describe_measured(plan), (steps,)),
            _tables(plan),
        ],
        of_kind=", adaptively,",
    )


def _known_of(plan: AdaptivePlan, given: Given) -> RoundsForecast | str:
    """What is known before the run; or why nothing is, in a sentence."""
    public = given.public
    try:
        if public is None and given.expected is not None:
            public = public_tables_of(plan.domain, [given.expected], None)
        if public is None:
            return "Not known without expected counts."
        own = public_tables_among(plan.domain, public)
        return RoundsForecast.of(plan, own, given.cv_limit, given.design)
    except WorkloadError as error:
        return f"Not known, as what is public does not fit the tables: {error}"


def _tables(plan: AdaptivePlan) -> Section:
    totals = measures.totals(plan.workload)
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


# ---- What can be made of the release later, at no further cost: three readings, and records.


def readings(
    request: WorkloadRequest | None, rehearsal: SmoothRehearsal | None, record_noun: str
) -> Section:
    """Which of unbiased, nonnegative and smooth tables to publish for which use, as simulated."""
    rows = [
        (
            reading.name,
            f"{capitalised(reading.what)}.",
            f"{capitalised(reading.trust)}.",
            f"Publish them {reading.use}.",
        )
        for reading in READINGS.values()
    ]
    rows.append(
        (
            "Synthetic records",
            "Made-up records whose tables of one and two attributes agree with smooth ones.",
            "No row is a person, and nothing that only three attributes together show is in them.",
            "Publish them to try out programs and to teach, never for figures: those are in the "
            "tables.",
        )
    )
    return Section(
        "Readings of the release",
        (
            "Tables can be read from what was measured in three ways, and synthetic records can be "
            "drawn from it, all at no further cost in privacy. Errors elsewhere in this report are "
            "those of the unbiased counts.",
            *_weights(request),
        ),
        (Facts(rows), *_rehearsed(rehearsal, record_noun)),
    )


def _weights(request: WorkloadRequest | None) -> list[str]:
    """That the plan's weights are those for smooth tables, where they are, and what that does."""
    if request is None or request.smooth_weights is None:
        return []
    weights = request.smooth_weights
    texts = [
        f"{weights.text}, are in effect: tables of few cells have more of the "
        "budget than with equal weights, since smooth tables are estimated from them, and the "
        "unbiased counts of larger tables are noisier for it."
    ]
    if weights.pairs is not None:
        texts.append(
            "Pairs of attributes that depend more on each other in that first release have more of "
            "the budget. Only its noisy figures were looked at, and no record; what both releases "
            "spend adds up. Both are meant to be combined and smoothed. Since the second plan "
            "depends on the noise of the first release, intervals of the combined unbiased counts "
            "hold nearly, those of each release exactly."
        )
    return texts


def _rehearsed(rehearsal: SmoothRehearsal | None, record_noun: str) -> list[Facts | Numbers]:
    """How far the intervals of smooth counts held in trials, and what a rehearsal found."""
    rows = [
        (
            "Model-based intervals",
            "Beside each smooth count stands a model-based error, which nothing guarantees. "
            f"{SMOOTH_COVERAGE}",
            "Differences of small groups are the first to be smoothed away. The unbiased counts "
            "stand beside the smooth ones, and a file says how far each group was moved.",
        )
    ]
    if rehearsal is None:
        text = "Not made. With expected counts, “rpexplore simulate plan.json” makes one."
        return [Facts([*rows, ("Simulation", text)])]
    columns = {name: COLUMNS[name] for name in ("order", "tables")}
    shown = [name for name in READINGS if name != "nonnegative" or rehearsal.has_nonnegative]
    columns |= {name: Column(name) for name in shown}
    return [
        Facts([*rows, ("Simulation", rehearsal.describe(record_noun))]),
        Numbers(
            rehearsal.frame.assign(**rehearsal.frame[shown].map(describe_share)),
            columns,
            f"Simulated errors of all cells of a table, {WITHOUT_SIGNS}, as a share of the "
            f"{record_noun}, mean over tables",
            rehearsal.caution,
        ),
    ]
