"""What a report tells of own counts: which they are, how accurate, targets, unused budget."""

import numpy as np

from rpexplore.analysis.accuracy import csv_of_accuracy, readable
from rpexplore.analysis.forecast import public_tables_by
from rpexplore.analysis.queries import (
    CountUsefulness,
    budgets_needed,
    describe_budgets,
    describe_free,
    describe_profile,
    optimum_of,
    query_baselines,
    query_headline,
    spare_cells,
    targets_met,
)
from rpexplore.analysis.targets_met import target_counts
from rpexplore.common.text import describe_share, plural, rounded
from rpexplore.errors import WorkloadError
from rpexplore.figures.chart import COLUMNS, Column
from rpexplore.planning.counts import QueryPlan
from rpexplore.planning.counts_objectives import LARGEST
from rpexplore.planning.part_plan import worst_first
from rpexplore.reports.kinds import FrontRow, Given, PartReport
from rpexplore.reports.section import Attachment, Numbers, Section
from rpexplore.workload.query_definitions import StatedQueries

MOST_SHOWN, MOST_CELLS = 40, 10  # rows
_NOTHING = 1e-3  # contributions below it decide nothing
_ACCURACY_COLUMNS = {
    "item": Column("own count", "text"),
    "standard_error": COLUMNS["standard_error"],
    "margin_95": COLUMNS["margin_95"],
    "target": Column("target σ", "rounded"),
    "of_target": Column("of target", "text"),
    "met": Column("met", "text"),
    "shadow_price": Column("contribution", "share", term="Binding targets"),
}
_BASELINE_COLUMNS = {
    "title": Column("mechanism", "text"),
    "measured": Column("numbers measured", "count"),
    "rho": Column("ρ for all targets"),
    "largest_ratio": Column("times the least"),
}
_SPARE_COLUMNS = {
    "cell": Column("cell", "text"),
    "profile": Column("budget in use", "share"),
    "standard_error": Column("σ of a free count"),
    "present_standard_error": Column("σ from the released counts"),
    "combined_standard_error": Column("σ of both together"),
}


def counts_report(plan: QueryPlan, given: Given) -> PartReport:
    """What there is to tell of own counts."""
    useful: CountUsefulness | str = "Not known without expected counts."
    public = given.public
    try:
        if public is None and given.expected is not None:
            public = public_tables_by(plan.domain, given.expected)
        if public is not None:
            useful = CountUsefulness.of(plan, public, given.cv_limit)
    except WorkloadError as error:
        useful = f"Not known, as what is public does not fit the own counts: {error}"
    return PartReport(
        front=_front(plan, given.record_noun, useful),
        sections=[
            _counts(plan),
            _accuracy(plan, given.record_noun),
            *([] if plan.budget.replaces else [_baselines(plan)]),
            *([] if isinstance(useful, str) else [_relative_errors(useful)]),
            _targets(plan),
            _profile(plan, given.record_noun),
        ],
    )


def _front(plan: QueryPlan, record_noun: str, useful: CountUsefulness | str) -> list[FrontRow]:
    top, counts = query_headline(plan), target_counts(plan)
    publishable = (
        ("Publishable", useful)
        if isinstance(useful, str)
        else (
            f"Publishable: {useful.count_text} of {useful.queries:,}",
            f"{useful.describe()} This rests on {useful.rests_on}.",
        )
    )
    return [
        ("What is released", f"{plan.contents}, which count {record_noun} by {_attributes(plan)}."),
        publishable,
        (
            "Margin of error",
            f"±{rounded(top.median_margin, 3)} {record_noun} for {top.median_text}, and "
            f"±{rounded(top.largest_margin, 3)} for {top.largest_text}, "
            f"{top.least_accurate_table}: a noisy count is so near to the true one 95 % of the "
            "time.",
        ),
        ("Targets", counts.text),
    ]


def _attributes(plan: QueryPlan) -> str:
    return ", ".join(plan.domain.names)


def _counts(plan: QueryPlan) -> Section:
    measured = plural(len(plan.strategy.integers), "number")
    return Section(
        "Own counts",
        (
            f"{plural(len(plan.queries), 'own count')} over {plan.queries.cells_text} "
            f"of {_attributes(plan)}. They follow from {measured}, which are measured together, "
            "and so they agree with each other.",
        ),
    )


def _accuracy(plan: QueryPlan, record_noun: str) -> Section:
    top, frame = query_headline(plan), worst_first(plan.accuracy())
    ratios = frame["largest_standard_error"] / frame["target"]
    shown = readable(frame).assign(of_target=[describe_share(ratio, 3) for ratio in ratios])
    total, shown = len(shown), shown.head(MOST_SHOWN)
    what = "All own counts" if len(shown) == total else f"{len(shown)} of {total:,} own counts"
    return Section(
        "Accuracy",
        (
            f"The objective is to {plan.objective.title}. The error is that of the privacy noise, "
            "and does not depend on the counts.",
            f"{top.median_text.capitalize()} is within ±{rounded(top.median_margin, 3)} "
            f"{record_noun} of the count in the records, 95 % of the time (standard error σ = "
            f"{rounded(top.median_error, 3)}); {top.largest_text}, {top.least_accurate_table}, "
            f"within ±{rounded(top.largest_margin, 3)} (σ = {rounded(top.largest_error, 3)}).",
        ),
        (
            Numbers(shown, _ACCURACY_COLUMNS, f"{what}, the furthest off its target first"),
            Attachment(
                "own-counts-accuracy.csv",
                f"All {plural(total, 'own count')} with standard error, target and shadow price",
                csv_of_accuracy(plan),
            ),
        ),
    )


def _baselines(plan: QueryPlan) -> Section:
    needed = budgets_needed(query_baselines(optimum_of(plan)), plan.budget)
    return Section(
        "Baselines",
        (
            "Plainer mechanisms for the same counts and targets. All figures are computed; none "
            "of them was run.",
            describe_budgets(needed),
        ),
        (Numbers(needed, _BASELINE_COLUMNS, "Smallest budgets that meet all targets"),),
    )


def _relative_errors(useful: CountUsefulness) -> Section:
    return Section(
        "Relative errors",
        (
            useful.describe(),
            f"This rests on {useful.rests_on}. No record was looked at for it, and the plan does "
            "not depend on it. What is not public was drawn again and again: a figure is the "
            "median, with the range that 90 % of the draws are in.",
        ),
    )


def _targets(plan: QueryPlan) -> Section:
    _, sentence = targets_met(plan, StatedQueries.of(plan.queries))
    texts = [sentence]
    if plan.objective is LARGEST:
        binding = int(np.count_nonzero(plan.certificate.shadow_prices > _NOTHING))
        texts.append(
            f"{plural(binding, 'own count')} {'decides' if binding == 1 else 'decide'} how large "
            "the smallest sufficient budget is: only wider targets of these would make it smaller. "
            "Their contributions are in the table above."
        )
    if plan.free_counts:
        texts.append(describe_free(plan))
    return Section("Targets", tuple(texts))


def _profile(plan: QueryPlan, record_noun: str) -> Section:
    """The privacy profile: cells whose records use less of the budget than others."""
    rows = spare_cells(plan).sort_values("profile", kind="stable")
    parts = []
    if len(rows):
        shown = rows.head(MOST_CELLS).dropna(axis="columns", how="all")
        columns = {name: column for name, column in _SPARE_COLUMNS.items() if name in shown}
        title = "Cells with unused budget, most of it first"
        note = f"And {len(rows) - MOST_CELLS:,} more." if len(rows) > MOST_CELLS else ""
        parts.append(Numbers(shown, columns, title, note))
    return Section("Unused budget", (describe_profile(plan, record_noun),), parts)
