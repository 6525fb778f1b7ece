"""The points of NIST SP 800-226 as a checklist for one plan.

NIST Special Publication 800-226, Guidelines for Evaluating Differential Privacy Guarantees (March
2025), orders what a guarantee rests on as a pyramid: the parameters and the unit of privacy on
top, algorithms with their utility and bias in the middle, trust, side channels, access control and
data collection at the bottom. The points in templates/nist_checklist.txt.j2 follow that order in
this project's own words.
"""

from rpexplore.analysis.budget_units import HIGH_EPSILON
from rpexplore.domain.provenance import describe_attributes_from_records, except_from_records
from rpexplore.export.report.kinds import PlanWords
from rpexplore.export.report.section import Checklist, Section, template_blocks
from rpexplore.planning.part_plan import PartPlan
from rpexplore.planning.plan import Plan

SUSPICIOUS_DELTA = "1e-5"


def nist_checklist(plan: Plan | PartPlan, record_noun: str) -> Section:
    """What this plan settles of each point, and what the organisation still has to do."""
    domain = plan.domain
    (heading, introduction), *points = template_blocks(
        "nist_checklist.txt.j2",
        plan=plan,
        budget=plan.budget,
        most=plan.budget.max_records_per_person,
        delta=SUSPICIOUS_DELTA,
        epsilon=plan.epsilon(SUSPICIOUS_DELTA),
        high_epsilon=HIGH_EPSILON,
        kind=PlanWords.of(plan),
        record_noun=record_noun,
        from_records=describe_attributes_from_records(domain),
        exception=except_from_records(domain),
    )
    return Section(heading, (introduction,), (Checklist(points),))
