"""The first pages of a report: privacy label, questions and decision of a board, approvals."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

import pandas as pd

from rpexplore.analysis.budget_units import USUAL_DELTA, delta_warning, typed_text
from rpexplore.common.text import joined, plural, rounded, small
from rpexplore.domain.domain import describe_attributes_from_records
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.planning.adaptive import AdaptivePlan
from rpexplore.planning.approval import Approval, describe_checks
from rpexplore.planning.part_plan import PartPlan
from rpexplore.planning.plan import Plan
from rpexplore.planning.table_plan import TablePlan
from rpexplore.privacy.conversions import USUAL_DELTAS, max_true_positive_rate
from rpexplore.reports.kinds import COARSE, PlanWords
from rpexplore.reports.section import Beside, Facts, Numbers, Part, Points, Section, template_blocks
from rpexplore.scenarios.board_notes import BoardNotes

# ---- The privacy label: the first page of a report, what is promised to whom and what is not.


DELTAS = tuple(map(Fraction, ("1e-5", *USUAL_DELTAS)))
FALSE_ALARMS = Fraction(1, 20)


def label(plan: Plan | PartPlan, expected: ExpectedCounts | None = None) -> Section:
    """The privacy label of a plan; expected: public counts that its δ is judged by."""
    most = plan.budget.max_records_per_person
    delta = plan.budget.stated_delta or Fraction(USUAL_DELTA)
    universe = Plan.of(plan).universe
    counted = "" if universe is None else universe.sentence
    blocks = template_blocks(
        "privacy_label.txt.j2",
        plan=plan,
        counted=counted,
        budget=plan.budget,
        most=most,
        stated=_stated(plan),
        delta_warning=delta_warning(plan.budget, expected) or "",
        kind=PlanWords.of(plan),
        one=f"one {plan.budget.noun}",
        delta=delta,
        factor=_factor(plan.epsilon(delta)),
        false_alarms=FALSE_ALARMS,
        detected=max_true_positive_rate(plan.rho, float(FALSE_ALARMS)),
        coarse=COARSE,
        from_records=describe_attributes_from_records(plan.domain),
    )
    meaning, *limits = (Points(sentences, title) for title, *sentences in blocks[-4:])
    return Section(
        "Privacy label", (), (Facts(blocks[:-4]), epsilons(plan), meaning, Beside(limits))
    )


def epsilons(plan: Plan | PartPlan) -> Numbers:
    """ε at several δ, with what it means."""
    stated = plan.budget.stated_delta
    deltas = sorted({*DELTAS, stated or DELTAS[0]}, reverse=True)
    rows = [
        {
            "δ": small(delta),
            "ε, proven": rounded(plan.epsilon(delta), 4, "up", zeros=True),
            "a result is at most … times as likely, plus δ": _factor(plan.epsilon(delta)),
        }
        for delta in deltas
    ]
    claim = Plan.of(plan).gaussian_claim
    how = "" if claim is None else f": {claim.text}, where δ_Gauss is that of continuous noise"
    return Numbers(
        pd.DataFrame(rows),
        title="The promise as (ε, δ)",
        note=(
            "Every ε is rounded up and is the better of two proven ones: of all mechanisms with "
            "this ρ, and of the noise as it is drawn, which is discrete and nearly as private as "
            f"continuous Gaussian noise{how}. For several runs together the ledger states the "
            "better of both proofs."
        ),
    )


def _stated(plan: Plan | PartPlan) -> str:
    """The budget as it was stated: "ε = 1 at δ = 1e-9"."""
    stated = dict(plan.budget.stated)
    if "epsilon" in stated:
        return f"ε = {typed_text(stated['epsilon'])} at δ = {typed_text(stated['delta'])}"
    letters = {"rho": "ρ", "mu": "μ", "privacy_cost": "2ρ"}
    ((name, value),) = stated.items()
    return f"{letters[name]} = {typed_text(value)}"


def _factor(epsilon: float) -> str:
    """e^ε, rounded up."""
    return "over 10^300" if epsilon > 690 else rounded(math.exp(epsilon), 3, "up", zeros=True)


# ---- The first page, on which a board decides: the plan in short, open questions, the decision.
#
# And comments, which people have added to other sections.


BOARD_HEADING = "Questions and decision"
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
    kinds = [] if workload.has_amounts.all() else [f"count {record_noun}"]
    kinds += [f"have {workload.sums_noun} of {record_noun}"] if workload.sums_noun else []
    text = f"{plan.full_contents}, which {joined(kinds, ' or ')}.{attributes}"
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
    return Section(BOARD_HEADING, (), parts)


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


# ---- The section that names who has approved the plan.


HEADING = "Approvals"


def approvals_section(plan: Plan | PartPlan, approvals: Sequence[Approval]) -> Section:
    """Who approved, when, with which key, and the remarks.

    Raises `ApprovalError` for an approval of another plan, or one that is not signed by its key.
    """
    rows = []
    for approval in approvals:
        approval.check(plan.booked_sha256)
        when = f"{approval.approved.replace('T', ' ')[:16]} UTC, with the key {approval.key}."
        rows.append((approval.name, when, *filter(None, [approval.remarks])))
    return Section(HEADING, (describe_checks(0),), (Facts(rows),))
