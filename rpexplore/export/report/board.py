"""The first page, on which a board decides: the plan in short, open questions, the decision.

And comments, which people have added to other sections.
"""

from collections.abc import Iterable
from dataclasses import replace

from rpexplore.common.formatting import plural
from rpexplore.export.report.section import Facts, Part, Section
from rpexplore.planning.adaptive.adaptive_plan import AdaptivePlan
from rpexplore.planning.part_plan import PartPlan
from rpexplore.planning.plan import Plan
from rpexplore.planning.table_plan import TablePlan
from rpexplore.scenarios.board_notes import BoardNotes

HEADING = "Questions and decision"
SIGNATURES = 3  # lines for them, where no names are given
MOST_NAMES = 12  # of attributes


def with_comments(sections: Iterable[Section], notes: BoardNotes) -> list[Section]:
    """The sections, each with its comment."""
    return [replace(section, comment=notes.comment(section.heading)) for section in sections]


def what_is_released(plan: TablePlan | AdaptivePlan, record_noun: str) -> tuple[str, str]:
    """How many tables with how many cells, and which attributes they have."""
    workload = plan.workload
    names = ", ".join(workload.domain.names[index] for index in workload.used[:MOST_NAMES])
    others = len(workload.used) - MOST_NAMES
    more = f" and {others:,} more" if others > 0 else ""
    attributes = f" {plural(len(workload.used), 'attribute')}: {names}{more}." if names else ""
    text = f"{plan.full_contents}, which count {record_noun}.{attributes}"
    return "What is released", text


def board_section(notes: BoardNotes, plan: Plan | PartPlan, headings: Iterable[str]) -> Section:
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


def _plan_decided_on(notes: BoardNotes, plan: Plan | PartPlan) -> list[str]:
    """Which plan the decision is on, in a sentence, where that is known."""
    if not notes.decided_on:
        return []
    return [other_plan_text(notes, plan) or "This is the plan that the decision is on."]


def other_plan_text(notes: BoardNotes, plan: Plan | PartPlan) -> str:
    """Which other plan than this one the decision is on, in a sentence; "" if it is not."""
    if plan.sha256.startswith(notes.decided_on):
        return ""
    return (
        f"The decision is on another plan, with the SHA-256 {notes.decided_on[:16]}…, not on the "
        "one of this report."
    )
