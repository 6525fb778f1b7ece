"""The section that puts a plan's budget beside those of published releases."""

from rpexplore.export.report.section import Numbers, Section
from rpexplore.figures.chart import Column
from rpexplore.planning.part_plan import PartPlan
from rpexplore.planning.plan import Plan
from rpexplore.privacy.deployments import deployments_near, describe_context

COLUMNS = {
    "product": Column("release", "text"),
    "curators": Column("by", "text"),
    "year": Column("year", "text"),
    "stated": Column("stated", "text"),
    "privacy_unit": Column("privacy unit", "text"),
    "neighbours": Column("neighbours", "text"),
    "rho": Column("put at ρ"),
    "derivation": Column("because", "text"),
    "ratio": Column("over this plan's ρ"),
}


def context(plan: Plan | PartPlan) -> Section:
    """The published releases nearest to a plan's budget, and what can be compared."""
    frame = deployments_near(plan.budget).astype({"year": str})
    return Section(
        "Budget in context",
        describe_context(plan.budget),
        (Numbers(frame, COLUMNS, "Published releases with a similar budget"),),
    )
