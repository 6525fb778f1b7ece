"""The bundle: everything one takes away with a plan, in one zip file. No records, ever."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pandas as pd

from rpexplore.common.file_kinds import zip_of
from rpexplore.common.template_text import text_from_template
from rpexplore.domain.domain import except_from_records
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.domain.expected_counts_file import csv_of_expected_counts, csv_of_public_table
from rpexplore.domain.named_areas import AreaTotals
from rpexplore.domain.smooth_rehearsal import SmoothRehearsal
from rpexplore.planning.approval import Approval
from rpexplore.planning.plan import Plan
from rpexplore.reports.recipe import printable
from rpexplore.reports.report import Report, html, report
from rpexplore.reports.script import (
    AREA_TOTALS,
    command_lines,
    public_files,
    python_script,
    reproductions,
)
from rpexplore.scenarios.board_notes import BoardNotes
from rpexplore.scenarios.codebook_import import survey_named_after
from rpexplore.scenarios.scenario import Scenario

Content = TypeVar("Content", str, bytes)

FILENAME = "plan-bundle.zip"
_PURPOSES = {
    "plan.json": "the plan: tables, noise, what it costs and promises; all a release needs",
    "report.html": "what it means, for whoever has to approve it; opens in a browser, sends "
    "nothing",
    "codebook.json": "the attributes and their values (Frictionless Table Schema)",
    "plan.py": "makes the plan again in Python, checks it, and can run the release",
    "scenario.json": "the choices behind the plan; the app can open it",
    "commands.txt": "this file: the same from a command line, in this folder",
    "expected.csv": "public counts, by which the report says what is publishable",
    AREA_TOTALS: "publicly known totals of areas, on which forecast and errors rest",
    "board.json": "comments, open questions and decision, as they are in the report",
}


def bundle(
    plan: Plan,
    scenario: Scenario,
    rehearsal: SmoothRehearsal | None = None,
    approvals: Sequence[Approval] = (),
    expected: ExpectedCounts | None = None,
    area_guesses: pd.DataFrame | None = None,
    area_totals: AreaTotals | None = None,
) -> bytes:
    """The zip file of a plan and the scenario it was made from; the same bytes every time.

    rehearsal, approvals, expected, area_guesses, area_totals: for the report, as of `contents_of`
    """
    parts, given = reproductions(plan, scenario), approval_files(approvals)
    of_parts = {name: file for part in parts.values() for name, file in part.files.items()}
    tables = "tables.csv" in of_parts
    # Of a plan of tables alone the scenario opens without its areas, which are not in the plan.
    kept = scenario if plan.part("areas") else scenario.replaced(areas=None)
    texts = {
        "plan.json": plan.text,
        "report.html": html(
            contents_of(plan, scenario, rehearsal, approvals, expected, area_guesses, area_totals)
        ),
        **({"tables.csv": of_parts["tables.csv"].text} if tables else {}),
        "codebook.json": plan.domain.text("codebook.json"),
        "plan.py": python_script(plan, scenario),
        "scenario.json": kept.text(),
        "commands.txt": "",  # last, as it names all others
        **_of_the_report(plan, scenario, expected),
        **({} if area_totals is None else {AREA_TOTALS: area_totals.text}),
        **{name: file.text for name, file in of_parts.items() if name != "tables.csv"},
        **given,
    }
    companions = dict(plan.companions)
    purposes = {name: _PURPOSES.get(name, "an approval of the plan, signed") for name in texts}
    purposes |= dict.fromkeys(public_files(plan, scenario), "a public table, as in the report")
    purposes |= {name: file.purpose for name, file in of_parts.items()}
    purposes |= dict.fromkeys(companions, "the areas of the plan; belongs beside plan.json")
    readme = text_from_template(
        "rpexplore.reports",
        "readme.txt.j2",
        title=printable(" ".join(scenario.name.split())),
        files=purposes,
        exception=printable(except_from_records(plan.domain)),
    )
    commands = commands_of(plan, scenario, rehearsal, approvals, expected, area_totals)
    texts["commands.txt"] = readme + commands
    return zip_of({**{name: text.encode() for name, text in texts.items()}, **companions})


def commands_of(
    plan: Plan,
    scenario: Scenario,
    rehearsal: SmoothRehearsal | None = None,
    approvals: Sequence[Approval] = (),
    expected: ExpectedCounts | None = None,
    area_totals: AreaTotals | None = None,
) -> str:
    """The command lines that do the same in the folder of the bundle."""
    return command_lines(
        plan,
        scenario,
        rehearsal is not None,
        list(approval_files(approvals)),
        survey=_survey(plan, scenario),
        expected=expected,
        board=_board(plan, scenario),
        has_area_totals=area_totals is not None,
    )


def approval_files(approvals: Sequence[Approval]) -> dict[str, str]:
    """The texts of approvals by the names of their files in the bundle."""
    return {
        f"approval-{number}.json": approval.text
        for number, approval in enumerate(approvals, start=1)
    }


def _of_the_report(
    plan: Plan, scenario: Scenario, expected: ExpectedCounts | None
) -> dict[str, str]:
    """Files that only the report is made from, as far as the scenario has something for them."""
    files, counts = {}, scenario.expected if expected is None else expected
    if counts is not None and counts.attributes:
        files["expected.csv"] = csv_of_expected_counts(counts)
    for name, table in public_files(plan, scenario).items():
        files[name] = csv_of_public_table(table)
    board = _board(plan, scenario)
    if not board.is_empty:
        files["board.json"] = board.text()
    return files


def _board(plan: Plan, scenario: Scenario) -> BoardNotes:
    """The board's notes; none for a plan without the tables of the scenario that they are on."""
    return scenario.board if plan.part("tables") else BoardNotes()


def _survey(plan: Plan, scenario: Scenario) -> str:
    """What the records are: the scenario's, or of other areas what their file is called."""
    areas = scenario.areas
    if plan.part("tables") or areas is None or not plan.part("areas"):
        return scenario.survey
    if scenario.survey and scenario.domain == areas.domain:
        return scenario.survey
    return survey_named_after(areas.filename, "")


def contents_of(
    plan: Plan,
    scenario: Scenario,
    rehearsal: SmoothRehearsal | None = None,
    approvals: Sequence[Approval] = (),
    expected: ExpectedCounts | None = None,
    area_guesses: pd.DataFrame | None = None,
    area_totals: AreaTotals | None = None,
) -> Report:
    """The contents of the report on a scenario's plan.

    expected: counts for it, if they are not the scenario's. area_guesses: the errors of best
    guesses to expect, of `results.estimates.area_guess_errors`. area_totals: publicly known ones
    """
    return report(
        plan,
        name=scenario.name,
        survey=_survey(plan, scenario),
        note=scenario.note,
        record_noun=scenario.record_noun,
        expected=scenario.expected if expected is None else expected,
        cv_limit=scenario.cv_limit,
        design=scenario.design_in_use if plan.part("tables") else None,
        request=scenario.request if plan.part("tables") else None,
        rehearsal=rehearsal,
        board=_board(plan, scenario),
        approvals=approvals,
        area_guesses=area_guesses,
        area_totals=None if area_totals is None else area_totals.totals,
        public=scenario.public_tables if public_files(plan, scenario) else None,
    )


def report_as(form: Callable[[Report], Content], *contents: Any) -> Content:
    """The report on a scenario's plan by `report.html` or `pdf`; contents: as of `contents_of`."""
    return form(contents_of(*contents))
