"""A plan made again outside the app: a Python script and command lines."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from rpexplore.analysis.budget_units import typed_text
from rpexplore.common.template_text import text_from_template
from rpexplore.common.text import joined
from rpexplore.domain.domain import Domain, except_from_records
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.domain.public_tables import PublicTable
from rpexplore.domain.survey import SurveyDesign
from rpexplore.planning.plan import Plan
from rpexplore.privacy.budget import Budget
from rpexplore.privacy.conversions import rho_text
from rpexplore.reports.again import areas_again, counts_again, rounds_again, tables_again
from rpexplore.reports.recipe import (
    Reproduction,
    lines_of_call,
    literal,
    printable,
    source_of_budget,
)
from rpexplore.scenarios.board_notes import BoardNotes
from rpexplore.scenarios.scenario import Scenario
from rpexplore.workload.survey_text import effect_texts

# ---- A Python script that makes a plan again outside the app, checks it, and can run the release.


# How each kind of part is made again: a new kind needs a line here.
_AGAIN: dict[str, Callable[[Any, Scenario, Plan], Reproduction]] = {
    "tables": lambda part, scenario, plan: tables_again(part, scenario),
    "areas": lambda part, scenario, plan: areas_again(part, scenario),
    "counts": lambda part, scenario, plan: counts_again(part, scenario, plan.domain),
    "rounds": lambda part, scenario, plan: rounds_again(
        part, scenario, prefix="" if plan.part("tables") is None else "estimated_"
    ),
}
_ANSWERS = {"tables": "tables", "areas": "tables", "counts": "own counts", "rounds": "tables"}


def reproductions(plan: Plan, scenario: Scenario) -> dict[str, Reproduction]:
    """How each part of a scenario's plan is made again, by kind."""
    return {part.kind: _AGAIN[part.kind](part, scenario, plan) for part in plan.parts}


def answers_of(plan: Plan) -> str:
    """What a release by the plan has: "tables", "tables and own counts"."""
    return joined(list(dict.fromkeys(_ANSWERS[part.kind] for part in plan.parts)))


def shares_of(plan: Plan) -> dict[str, str]:
    """The share of the budget of each part, exact, by kind."""
    costs = {part.kind: part.budget.privacy_cost for part in plan.parts}
    return {kind: str(cost / sum(costs.values())) for kind, cost in costs.items()}


def python_script(plan: Plan, scenario: Scenario) -> str:
    """A runnable script for a scenario's plan, in the folder of the bundle.

    It reads the files of `reproductions`, and of areas their codebook.
    """
    whole = Plan.of(plan)
    parts = reproductions(plan, scenario)
    settings = {name: text for part in parts.values() for name, text in part.settings.items()}
    asked = {kind: part.asked for kind, part in parts.items()}
    arguments = [f"{name}={text}" for name, text in {**asked, **settings}.items()]
    arguments.append(f"budget={source_of_budget(plan.budget)}")
    if len(parts) > 1:
        arguments.append(f"shares={shares_of(plan)}")
    if (universe := whole.universe) is not None:
        arguments.append(f"universe={literal(universe.text)}")
    request = lines_of_call("rp.Request", arguments).replace("\n", "\n    ")
    exception = except_from_records(plan.domain)
    remark = f"Nothing here was made from records{exception}." if exception else ""
    definitions = dict.fromkeys(part.definitions for part in parts.values())
    return text_from_template(
        "rpexplore.reports",
        "plan.py.j2",
        plan=replace(whole, forecast=None),
        keeps_forecast=whole.forecast is not None,
        made=f"rp.plan(\n    {request}\n)",
        purpose=f"The {answers_of(plan)}",
        answers=answers_of(plan),
        has_rest=has_rest(whole),
        definitions="\n\n".join(definitions),
        imports=sorted({line for part in parts.values() for line in part.imports}),
        needs_path=any(part.needs_path for part in parts.values()),
        cost=rho_text(plan.rho),
        # In comments, which no name of an attribute can end.
        remark=_comment(
            scenario.name,
            scenario.note,
            f"What it costs is for {plan.budget.full_unit}.",
            remark,
        ),
        literal=literal,
    )


def _comment(*texts: str) -> str:
    """Texts of a user as comment lines."""
    lines = [line for text in texts for line in text.splitlines() if line.strip()]
    return "".join(f"\n# {printable(line)}" for line in lines) + ("\n" if lines else "")


# ---- The command lines that make a plan again, check it, report on it, and run it.


_RECORD_NOUN = "records"
AREA_TOTALS = "area-totals.csv"
"""The file of a bundle with publicly known totals of areas."""


_EACH = {
    "tables": "each table",
    "areas": "each level and table in areas",
    "counts": "each own count",
    "rounds": "each adaptive table",
}


def parts_with_accuracy(plan: Plan) -> str:
    """What of a plan has an accuracy of its own: "each table and each own count"."""
    return joined([_EACH[part.kind] for part in plan.parts])


def has_rest(plan: Plan) -> bool:
    """Whether a plan measures its pilot alone, and the rest is planned from the figures."""
    tables = plan.part("tables")
    return tables is not None and tables.then is not None


def run_commands(plan: Plan) -> str:
    """How those who keep the records check a plan and run it."""
    return _CHECK_COMMANDS + (_RUN_PILOT if has_rest(plan) else _RUN)


_CHECK_COMMANDS = """\
# Check what the plan claims: privacy cost, variances, and how close it is to the best one.
rpexplore verify plan.json

# Where approvals are wanted: sign it with an SSH key, and hand the file on.
rpexplore approve plan.json --key KEY

# Check everything, the records too, and spend nothing.
rpexplore release plan.json data.csv --out folder --dry-run

"""
_RUN = """\
# Run it, once. Its cost is booked in the ledger beside the records before noise is drawn.
rpexplore release plan.json data.csv --out folder
"""
_RUN_PILOT = """\
# Measure its pilot. The whole cost is booked in the ledger before noise is drawn.
rpexplore release plan.json data.csv --out folder --pilot-only

# Plan the rest from the pilot's figures, and measure it, at no further cost.
rpexplore forecast folder --rest rest.json
rpexplore release rest.json data.csv --out folder --resume
"""


def command_lines(
    plan: Plan,
    scenario: Scenario,
    rehearsed: bool = False,
    approvals: Sequence[str] = (),
    *,
    survey: str | None = None,
    expected: ExpectedCounts | None = None,
    board: BoardNotes | None = None,
    has_area_totals: bool = False,
) -> str:
    """The verbs for a scenario's plan, ready for a shell in the folder of the bundle.

    rehearsed: whether the report has a rehearsal of smooth tables. approvals: files of those that
    it names. survey, expected, board: of the report, if they are not the scenario's.
    has_area_totals: whether it rests on publicly known totals of areas
    """
    parts, whole = reproductions(plan, scenario), Plan.of(plan)
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
    report += _expected_counts(counts, scenario.cv_limit)
    report += ["--expected-areas", AREA_TOTALS] if has_area_totals else []
    for name in public_files(plan, scenario):
        report += ["--public", name]
    design = scenario.design_in_use if plan.part("tables") else None
    if counts is not None and design is not None:
        report += design_options(scenario.domain, design)
    report += ["--simulate"] if rehearsed else []
    if not (scenario.board if board is None else board).is_empty:
        report += ["--board", "board.json"]
    for name in approvals:
        report += ["--approval", name]
    return text_from_template(
        "rpexplore.reports",
        "commands.txt.j2",
        plan=replace(whole, forecast=None),
        keeps_forecast=whole.forecast is not None,
        answers=answers_of(plan),
        has_rest=has_rest(whole),
        make=make_command(plan, scenario),
        report=shlex.join(report),
        after=[part.after.rstrip() for part in parts.values() if part.after],
    )


def public_files(plan: Plan, scenario: Scenario) -> dict[str, PublicTable]:
    """The public tables that a report on a scenario's plan names, by their files in the bundle."""
    if plan.part("tables") is None:
        return {}
    tables = enumerate(scenario.stated_public, start=1)
    return {f"public-{number}.csv": table for number, table in tables}


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
    universe = Plan.of(plan).universe
    where = [] if universe is None else [["--where", universe.text]]
    lines = [verb, *options, *_budget(plan.budget), *shares, *where, ["--out", "made.json"]]
    return " \\\n    ".join(map(shlex.join, lines))


def _budget(budget: Budget) -> list[list[str]]:
    options = [[f"--{name.replace('_', '-')}", typed_text(value)] for name, value in budget.stated]
    if budget.period is not None:
        options.append(["--period", budget.period])
        options.append(["--max-periods", str(budget.max_records_per_person)])
    elif budget.distinct is not None:
        options.append(["--count-distinct", budget.distinct])
    elif budget.max_records_per_person is not None:
        options.append(["--records-per-person", str(budget.max_records_per_person)])
    if budget.unit_noun is not None:
        options.append(["--unit", budget.unit_noun])
    for total in budget.exact:
        options.append(["--exact", ",".join(total)])
    if budget.replaces and not budget.exact:
        options.append(["--neighbours", budget.neighbours])
    return options


def design_options(domain: Domain, design: SurveyDesign) -> list[str]:
    """Options that state the design of a survey."""
    effects = [["--design-effect", text] for text in effect_texts(domain, design)]
    fraction = ["--sampling-fraction", repr(design.sampling_fraction)]
    return [option for options in [*effects, fraction] for option in options]


def _expected_counts(expected: ExpectedCounts | None, cv_limit: float) -> list[str]:
    """Options that say the expected counts, and the limit of publishable cells."""
    if expected is None:
        return []
    limit = ["--cv-limit", repr(cv_limit)]
    if expected.attributes:
        return ["--expected", "expected.csv", *limit]
    return ["--expected-count", repr(expected.total).removesuffix(".0"), *limit]
