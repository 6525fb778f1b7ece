"""What a report tells of tables: how many, how accurate, how fair, targets, readings."""

from rpexplore.analysis.accuracy import headline
from rpexplore.analysis.targets_met import target_counts
from rpexplore.analysis.usefulness import publishable
from rpexplore.common.formatting import rounded
from rpexplore.errors import WorkloadError
from rpexplore.export.report.accuracy import accuracy, relative_errors_section, tables_section
from rpexplore.export.report.baselines import baselines_section
from rpexplore.export.report.board import what_is_released
from rpexplore.export.report.codebook import aggregations
from rpexplore.export.report.fairness import fairness_section
from rpexplore.export.report.part import FrontRow, Given, PartReport
from rpexplore.export.report.readings import readings
from rpexplore.export.report.targets import targets
from rpexplore.planning.table_plan import TablePlan


def tables_report(plan: TablePlan, given: Given) -> PartReport:
    """What there is to tell of tables."""
    noun, expected = given.record_noun, given.expected
    sections = [
        *aggregations(plan.workload, plan.closure.strategies),
        tables_section(plan),
        accuracy(plan, noun),
        fairness_section(plan, noun),
    ]
    if plan.loss.is_available:
        sections.append(baselines_section(plan))
    if expected is not None:
        sections.append(relative_errors_section(plan, expected, given.cv_limit))
    sections += [targets(plan, given.request), readings(given.request, given.rehearsal, noun)]
    return PartReport(_front(plan, given), sections)


def _front(plan: TablePlan, given: Given) -> list[FrontRow]:
    top, counts, noun = headline(plan), target_counts(plan), given.record_noun
    rows: list[FrontRow] = [
        what_is_released(plan, noun),
        _publishable(plan, given),
        (
            "Margin of error",
            f"±{rounded(top.median_margin, 3)} {noun} for {top.median_text}, and "
            f"±{rounded(top.largest_margin, 3)} for {top.largest_text}, "
            f"{top.least_accurate_table}: a noisy count is so near to the true one 95 % of the "
            "time.",
        ),
    ]
    return [*rows, ("Targets", counts.text)] if counts.targets else rows


def _publishable(plan: TablePlan, given: Given) -> FrontRow:
    """The share of the cells that are publishable, with what is said of it."""
    if given.expected is None:
        return "Publishable", "Not known without expected counts."
    try:
        useful = publishable(plan, given.expected, cv_limit=given.cv_limit)
    except WorkloadError:
        return "Publishable", "Not known, as the expected counts do not fit the tables."
    if not useful.cells.held.any():
        return "Publishable", useful.cells.left_out_text
    text = f"{useful.describe()} Expected counts: {given.expected.text}."
    return f"Publishable: {useful.share_text}", text
