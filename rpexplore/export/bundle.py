"""The bundle: everything one takes away with a plan, in one zip file. No records, ever."""

from collections.abc import Sequence

from rpexplore.analysis.accuracy import csv_of_accuracy
from rpexplore.common.template_text import text_from_template
from rpexplore.common.zip_file import zip_of
from rpexplore.domain.expected_counts_file import csv_of_expected_counts
from rpexplore.domain.provenance import except_from_records
from rpexplore.domain.smooth_rehearsal import SmoothRehearsal
from rpexplore.export.report.pdf import pdf
from rpexplore.export.report.report import Report, html, report
from rpexplore.export.reproduction.command_line import command_lines
from rpexplore.export.reproduction.recipe import custom_basis_files
from rpexplore.export.reproduction.script import printable, python_script
from rpexplore.planning.approval import Approval
from rpexplore.planning.table_plan import TablePlan
from rpexplore.scenarios.scenario import Scenario

FILENAME = "plan-bundle.zip"


def bundle(
    plan: TablePlan,
    scenario: Scenario,
    rehearsal: SmoothRehearsal | None = None,
    approvals: Sequence[Approval] = (),
) -> bytes:
    """The zip file of a plan and the scenario it was made from; the same bytes every time.

    rehearsal, approvals: of the plan, for the report
    """
    given = approval_files(approvals)
    basis_files = dict(custom_basis_files(plan.workload).values())
    readme = text_from_template(
        "rpexplore.export.reproduction",
        "readme.txt.j2",
        title=printable(" ".join(scenario.name.split())),
        custom_basis_files=basis_files,
        approval_files=list(given),
        of_the_report=_of_the_report(scenario),
        exception=printable(except_from_records(scenario.domain)),
    )
    texts = {
        "plan.json": plan.text,
        "report.html": report_html(plan, scenario, rehearsal, approvals),
        "tables.csv": csv_of_accuracy(plan),
        "codebook.json": plan.workload.domain.text("codebook.json"),
        "plan.py": python_script(plan, scenario),
        "scenario.json": scenario.replaced(areas=None).text(),  # they are not in this plan
        "commands.txt": readme + command_lines(plan, scenario, rehearsal is not None, list(given)),
        **_of_the_report(scenario),
        **basis_files,
        **given,
    }
    return zip_of({name: text.encode() for name, text in texts.items()})


def approval_files(approvals: Sequence[Approval]) -> dict[str, str]:
    """The texts of approvals by the names of their files in the bundle."""
    return {
        f"approval-{number}.json": approval.text
        for number, approval in enumerate(approvals, start=1)
    }


def _of_the_report(scenario: Scenario) -> dict[str, str]:
    """Files that only the report is made from, as far as the scenario has something for them."""
    files, expected = {}, scenario.expected
    if expected is not None and expected.attributes:
        files["expected.csv"] = csv_of_expected_counts(expected)
    if not scenario.board.is_empty:
        files["board.json"] = scenario.board.text()
    return files


def contents_of(
    plan: TablePlan,
    scenario: Scenario,
    rehearsal: SmoothRehearsal | None = None,
    approvals: Sequence[Approval] = (),
) -> Report:
    """The contents of the report on a scenario's plan."""
    return report(
        plan,
        name=scenario.name,
        survey=scenario.survey,
        note=scenario.note,
        record_noun=scenario.record_noun,
        expected=scenario.expected,
        cv_limit=scenario.cv_limit,
        request=scenario.request,
        rehearsal=rehearsal,
        board=scenario.board,
        approvals=approvals,
    )


def report_html(
    plan: TablePlan,
    scenario: Scenario,
    rehearsal: SmoothRehearsal | None = None,
    approvals: Sequence[Approval] = (),
) -> str:
    """The report on a scenario's plan as HTML."""
    return html(contents_of(plan, scenario, rehearsal, approvals))


def report_pdf(
    plan: TablePlan,
    scenario: Scenario,
    rehearsal: SmoothRehearsal | None = None,
    approvals: Sequence[Approval] = (),
) -> bytes:
    """The report on a scenario's plan as PDF."""
    return pdf(contents_of(plan, scenario, rehearsal, approvals))
