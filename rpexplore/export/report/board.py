"""The first page, on which a board decides: the plan in short, open questions, the decision.

And comments, which people have added to other sections.
"""

from collections.abc import Iterable
from dataclasses import replace

from rpexplore.analysis.accuracy import headline
from rpexplore.analysis.budget_units import right_guesses
from rpexplore.analysis.targets_met import target_counts
from rpexplore.analysis.usefulness import publishable
from rpexplore.common.formatting import plural, rounded
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.errors import WorkloadError
from rpexplore.export.report.section import Facts, Part, Section
from rpexplore.planning.adaptive.adaptive_plan import AdaptivePlan
from rpexplore.planning.part_plan import PartPlan
from rpexplore.planning.table_plan import TablePlan
from rpexplore.scenarios.board_notes import BoardNotes

HEADING = "Questions and decision"
SIGNATURES = 3  # lines for them, where no names are given
MOST_NAMES = 12  # of attributes


def with_comments(sections: Iterable[Section], notes: BoardNotes) -> list[Section]:
    """The sections, each with its comment."""
    return [replace(section, comment=notes.comment(section.heading)) for section in sections]


def in_short(
    plan: TablePlan, record_noun: str, expected: ExpectedCounts | None, cv_limit: float
) -> Section:
    """What is released, how good it is, and what it costs, for who has a minute."""
    top, counts = headline(plan), target_counts(plan)
    rows = [
        what_is_released(plan, record_noun),
        _publishable(plan, expected, cv_limit),
        (
            "Margin of error",
            f"±{rounded(top.median_margin, 3)} {record_noun} for {top.median_text}, and "
            f"±{rounded(top.largest_margin, 3)} for {top.largest_text}, "
            f"{top.least_accurate_table}: a noisy count is so near to the true one 95 % of the "
            "time.",
        ),
        (
            "Privacy",
            f"{plan.budget.epsilon_text(plan.rho)}, for {plan.budget.unit}.",
            right_guesses(plan.budget),
        ),
    ]
    if counts.targets:
        rows.insert(3, ("Targets", counts.text))
    return Section("In short", (), (Facts(rows),))


def what_is_released(plan: TablePlan | AdaptivePlan, record_noun: str) -> tuple[str, str]:
    """How many tables with how many cells, and which attributes they have."""
    workload = plan.workload
    names = ", ".join(workload.domain.names[index] for index in workload.used[:MOST_NAMES])
    others = len(workload.used) - MOST_NAMES
    more = f" and {others:,} more" if others > 0 else ""
    attributes = f" {plural(len(workload.used), 'attribute')}: {names}{more}." if names else ""
    text = f"{plan.full_contents}, which count {record_noun}.{attributes}"
    return "What is released", text


def _publishable(
    plan: TablePlan, expected: ExpectedCounts | None, cv_limit: float
) -> tuple[str, str]:
    """The share of the cells that are publishable, with what is said of it."""
    if expected is None:
        return "Publishable", "Not known without expected counts."
    try:
        useful = publishable(plan, expected, cv_limit=cv_limit)
    except WorkloadError:
        return "Publishable", "Not known, as the expected counts do not fit the tables."
    if not useful.cells.held.any():
        return "Publishable", useful.cells.left_out_text
    text = f"{useful.describe()} Expected counts: {expected.text}."
    return f"Publishable: {useful.share_text}", text


def board_section(notes: BoardNotes, plan: PartPlan, headings: Iterable[str]) -> Section:
    """What is open and what was decided; lines to fill in by hand where nothing was typed.

    headings: of the other sections of the report
    """
    rows: list[tuple[str, ...]] = [("Open questions", *notes.questions)]
    decision = notes.decision.split("\n") if notes.decision else []
    rows.append(("Decision", *decision, *_plan_decided_on(notes, plan)))
    rows += [(f"Signature of {line}",) for line in notes.decided_by] or (
        [("Name, date, signature",)] * SIGNATURES
    )
    parts: list[Part] = [Facts(rows)]
    known = set(headings)
    elsewhere = [(heading, text) for heading, text in notes.comments if heading not in known]
    if elsewhere:
        parts.append(Facts(elsewhere, "Comments on sections that this report does not have"))
    return Section(HEADING, (), parts)


def _plan_decided_on(notes: BoardNotes, plan: PartPlan) -> list[str]:
    """Which plan the decision is on, in a sentence, where that is known."""
    if not notes.decided_on:
        return []
    return [other_plan_text(notes, plan) or "This is the plan that the decision is on."]


def other_plan_text(notes: BoardNotes, plan: PartPlan) -> str:
    """Which other plan than this one the decision is on, in a sentence; "" if it is not."""
    if plan.sha256.startswith(notes.decided_on):
        return ""
    return (
        f"The decision is on another plan, with the SHA-256 {notes.decided_on[:16]}…, not on the "
        "one of this report."
    )
