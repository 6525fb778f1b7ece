"""What a report tells of plainer mechanisms: what they would need for the errors of the plan."""

from rpexplore.analysis.baselines import BASELINE_HEADINGS, compare, describe_missing
from rpexplore.export.report.section import Numbers, Points, Section
from rpexplore.figures.chart import Column
from rpexplore.planning.table_plan import TablePlan


def baselines_section(plan: TablePlan) -> Section:
    """Sentences, and one row a mechanism that there is for the plan's tables."""
    comparison = compare(plan)
    columns = {name: Column(heading, "text") for name, heading in BASELINE_HEADINGS.items()}
    return Section(
        "Baselines",
        (
            "Other mechanisms for the same tables, compared with this plan by its objective. All "
            "figures are computed; none of them was run.",
        ),
        (
            Points(comparison.sentences),
            Numbers(
                comparison.frame(missing=False),
                columns,
                "Privacy cost for the same errors",
                describe_missing(comparison),
            ),
        ),
    )
