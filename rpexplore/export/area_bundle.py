"""What one takes along of a plan for areas: its files and how they are made again; its report."""

from collections.abc import Sequence

from rpexplore.common.zip_file import zip_of
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.export.report.pdf import pdf
from rpexplore.export.report.report import Report, html, report
from rpexplore.export.reproduction.area_script import PLAN, RUN, area_command, area_script
from rpexplore.planning.approval import Approval
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.scenarios.area_study import AreaStudy
from rpexplore.scenarios.codebook_import import survey_named_after
from rpexplore.scenarios.scenario import Scenario

FILENAME = "area-plan.zip"


def area_bundle(plan: AreaPlan, study: AreaStudy) -> bytes:
    """The plan file, the Parquet files that belong beside it, and how they are made again."""
    files = {PLAN: plan.text.encode(), **plan.files.by_name}
    files["plan.py"] = area_script(study, plan.budget).encode()
    make = area_command(study, plan.budget)
    files["commands.txt"] = (f"{make}\n\n{RUN}" if make else RUN).encode()
    return zip_of(files)


def area_report_html(
    plan: AreaPlan,
    scenario: Scenario,
    expected: ExpectedCounts | None = None,
    approvals: Sequence[Approval] = (),
) -> str:
    """The report on the plan for a scenario's areas as HTML."""
    return html(_contents_of(plan, scenario, expected, approvals))


def area_report_pdf(
    plan: AreaPlan,
    scenario: Scenario,
    expected: ExpectedCounts | None = None,
    approvals: Sequence[Approval] = (),
) -> bytes:
    """The report on the plan for a scenario's areas as PDF."""
    return pdf(_contents_of(plan, scenario, expected, approvals))


def _contents_of(
    plan: AreaPlan,
    scenario: Scenario,
    expected: ExpectedCounts | None,
    approvals: Sequence[Approval],
) -> Report:
    # Not with the board's notes and survey, which are of the scenario's plan of tables.
    return report(
        plan,
        name=scenario.name,
        survey=_register_of(scenario),
        note=scenario.note,
        record_noun=scenario.record_noun,
        expected=expected,
        cv_limit=scenario.cv_limit,
        approvals=approvals,
    )


def _register_of(scenario: Scenario) -> str:
    """What records the areas are of: the scenario's, if they have one codebook, or what the file
    of theirs is called, as far as that tells it.
    """
    if scenario.areas is None:
        return ""
    if scenario.survey and scenario.domain == scenario.areas.domain:
        return scenario.survey
    return survey_named_after(scenario.areas.filename, "")
