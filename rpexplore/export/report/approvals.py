"""The section that names who has approved the plan."""

from collections.abc import Sequence

from rpexplore.export.report.section import Facts, Section
from rpexplore.planning.approval import Approval, describe_checks
from rpexplore.planning.part_plan import PartPlan
from rpexplore.planning.plan import Plan

HEADING = "Approvals"


def approvals_section(plan: Plan | PartPlan, approvals: Sequence[Approval]) -> Section:
    """Who approved, when, with which key, and the remarks.

    Raises `ApprovalError` for an approval of another plan, or one that is not signed by its key.
    """
    rows = []
    for approval in approvals:
        approval.check(plan.sha256)
        when = f"{approval.approved.replace('T', ' ')[:16]} UTC, with the key {approval.key}."
        rows.append((approval.name, when, *filter(None, [approval.remarks])))
    return Section(HEADING, (describe_checks(0),), (Facts(rows),))
