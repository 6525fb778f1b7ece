"""The command lines that make a plan again, check it, report on it, and run it."""

import shlex
from collections.abc import Sequence

from rpexplore.analysis.budget_units import typed_text
from rpexplore.common.template_text import text_from_template
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.export.reproduction.script import answers_of, reproductions, shares_of
from rpexplore.planning.plan import Plan
from rpexplore.privacy.budget import Budget
from rpexplore.scenarios.board_notes import BoardNotes
from rpexplore.scenarios.scenario import Scenario

_RECORD_NOUN = "records"


def command_lines(
    plan: Plan,
    scenario: Scenario,
    rehearsed: bool = False,
    approvals: Sequence[str] = (),
    *,
    survey: str | None = None,
    expected: ExpectedCounts | None = None,
    board: BoardNotes | None = None,
) -> str:
    """The verbs for a scenario's plan, ready for a shell in the folder of the bundle.

    rehearsed: whether the report has a rehearsal of smooth tables. approvals: files of those that
    it names. survey, expected, board: of the report, if they are not the scenario's
    """
    parts = reproductions(plan, scenario)
    report = ["rpexplore", "report", "plan.json", "--out", "made.html"]
    for option, text in (
        ("--survey", scenario.survey if survey is None else survey),
        ("--name", scenario.name),
        ("--note", scenario.note),
    ):
        report += [option, text] if text.strip() else []
    if scenario.record_noun != _RECORD_NOUN:
        report += ["--record-noun", scenario.record_noun]
    counts = scenario.expected if expected is None else expected
    report += [*_expected_counts(counts, scenario.cv_limit), *(["--rehearse"] if rehearsed else [])]
    if not (scenario.board if board is None else board).is_empty:
        report += ["--board", "board.json"]
    for name in approvals:
        report += ["--approval", name]
    return text_from_template(
        "rpexplore.export.reproduction",
        "commands.txt.j2",
        plan=plan,
        answers=answers_of(plan),
        make=make_command(plan, scenario),
        report=shlex.join(report),
        after=[part.after.rstrip() for part in parts.values() if part.after],
    )


def make_command(plan: Plan, scenario: Scenario) -> str:
    """The command line that makes the plan of a scenario; "" where options cannot say it.

    Of several parts they can where all are about one codebook, and one of them has tables.
    """
    parts = reproductions(plan, scenario)
    (verb, *others), shares = [part.verb for part in parts.values()], []
    if not verb or any(other != verb for other in others):
        return ""
    if others:
        shares = [["--share", f"{kind}={share}"] for kind, share in shares_of(plan).items()]
    options = [option for part in parts.values() for option in part.options]
    lines = [verb, *options, *_budget(plan.budget), *shares, ["--out", "made.json"]]
    return " \\\n    ".join(map(shlex.join, lines))


def _budget(budget: Budget) -> list[list[str]]:
    options = [[f"--{name.replace('_', '-')}", typed_text(value)] for name, value in budget.stated]
    if budget.max_records_per_person is not None:
        options.append(["--records-per-person", str(budget.max_records_per_person)])
    return options


def _expected_counts(expected: ExpectedCounts | None, cv_limit: float) -> list[str]:
    """Options that say the expected counts, and the limit of publishable cells."""
    if expected is None:
        return []
    limit = ["--cv-limit", repr(cv_limit)]
    if expected.attributes:
        return ["--expected", "expected.csv", *limit]
    return ["--expected-count", repr(expected.total).removesuffix(".0"), *limit]
