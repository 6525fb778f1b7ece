"""What people add to a report for the board: comments, open questions, and the decision."""

from collections.abc import Iterable
from dataclasses import replace

from rpexplore.export.report.section import Facts, Part, Points, Section
from rpexplore.planning.plan import Plan
from rpexplore.scenarios.board_notes import BoardNotes

HEADING = "Questions and decision"
SIGNATURES = 3  # lines for them, where no names are given


def with_comments(sections: Iterable[Section], notes: BoardNotes) -> list[Section]:
    """The sections, each with its comment."""
    return [replace(section, comment=notes.comment(section.heading)) for section in sections]


def board_section(notes: BoardNotes, plan: Plan, headings: Iterable[str]) -> list[Section]:
    """What is open and what was decided, with lines to fill in by hand; nothing without notes.

    headings: of the other sections of the report
    """
    if notes.is_empty:
        return []
    parts: list[Part] = []
    if notes.questions:
        parts.append(Points(notes.questions, "Open questions"))
    known = set(headings)
    elsewhere = [(heading, text) for heading, text in notes.comments if heading not in known]
    if elsewhere:
        parts.append(Facts(elsewhere, "Comments on sections that this report does not have"))
    if notes.decision:
        parts.append(
            Facts([("Decision", *notes.decision.split("\n"), *_plan_decided_on(notes, plan))])
        )
    else:
        parts.append(Facts([("Decision",)]))
    signatures = [(f"Signature of {line}",) for line in notes.decided_by]
    signatures = signatures or [("Name, date, signature",)] * SIGNATURES
    return [Section(HEADING, (), (*parts, Facts(signatures)))]


def _plan_decided_on(notes: BoardNotes, plan: Plan) -> list[str]:
    """Which plan the decision is on, in a sentence, where that is known."""
    if not notes.decided_on:
        return []
    if plan.sha256.startswith(notes.decided_on):
        return ["This is the plan that the decision is on."]
    return [
        f"The decision is on another plan, with the SHA-256 {notes.decided_on[:16]}…, not on the "
        "one of this report."
    ]
