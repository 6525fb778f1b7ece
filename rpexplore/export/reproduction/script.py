"""A Python script that makes a plan again outside the app, checks it, and can run the release."""

from collections.abc import Callable
from typing import Any

from rpexplore.common.formatting import joined
from rpexplore.common.template_text import text_from_template
from rpexplore.domain.provenance import except_from_records
from rpexplore.export.reproduction.areas import areas_again
from rpexplore.export.reproduction.counts import counts_again
from rpexplore.export.reproduction.part import Reproduction
from rpexplore.export.reproduction.python_source import (
    lines_of_call,
    literal,
    printable,
    source_of_budget,
)
from rpexplore.export.reproduction.tables import rounds_again, tables_again
from rpexplore.planning.plan import Plan
from rpexplore.privacy.conversions import rho_text
from rpexplore.scenarios.scenario import Scenario

FILENAME = "plan.py"

# How each kind of part is made again: a new kind needs a line here.
_AGAIN: dict[str, Callable[[Any, Scenario, Plan], Reproduction]] = {
    "tables": lambda part, scenario, plan: tables_again(part, scenario),
    "areas": lambda part, scenario, plan: areas_again(part, scenario),
    "counts": lambda part, scenario, plan: counts_again(part, scenario, plan.domain),
    "rounds": lambda part, scenario, plan: rounds_again(
        part, scenario, prefix="" if plan.part("tables") is None else "estimated_"
    ),
}
_ANSWERS = {"tables": "tables", "areas": "tables", "counts": "answers", "rounds": "tables"}


def reproductions(plan: Plan, scenario: Scenario) -> dict[str, Reproduction]:
    """How each part of a scenario's plan is made again, by kind."""
    return {part.kind: _AGAIN[part.kind](part, scenario, plan) for part in plan.parts}


def answers_of(plan: Plan) -> str:
    """What a release by the plan has: "tables", "tables and answers"."""
    return joined(list(dict.fromkeys(_ANSWERS[part.kind] for part in plan.parts)))


def shares_of(plan: Plan) -> dict[str, str]:
    """The share of the budget of each part, exact, by kind."""
    costs = {part.kind: part.budget.privacy_cost for part in plan.parts}
    return {kind: str(cost / sum(costs.values())) for kind, cost in costs.items()}


def python_script(plan: Plan, scenario: Scenario) -> str:
    """A runnable script for a scenario's plan, in the folder of the bundle.

    It reads the files of `reproductions`, and of areas their codebook.
    """
    parts = reproductions(plan, scenario)
    settings = {name: text for part in parts.values() for name, text in part.settings.items()}
    asked = {kind: part.asked for kind, part in parts.items()}
    arguments = [f"{name}={text}" for name, text in {**asked, **settings}.items()]
    arguments.append(f"budget={source_of_budget(plan.budget)}")
    if len(parts) > 1:
        arguments.append(f"shares={shares_of(plan)}")
    request = lines_of_call("rp.Request", arguments).replace("\n", "\n    ")
    exception = except_from_records(plan.domain)
    remark = f"Nothing here was made from records{exception}." if exception else ""
    definitions = dict.fromkeys(part.definitions for part in parts.values())
    return text_from_template(
        "rpexplore.export.reproduction",
        "plan.py.j2",
        plan=plan,
        made=f"rp.plan(\n    {request}\n)",
        purpose=f"The {answers_of(plan)}",
        answers=answers_of(plan),
        definitions="\n\n".join(definitions),
        imports=sorted({line for part in parts.values() for line in part.imports}),
        needs_path=any(part.needs_path for part in parts.values()),
        cost=rho_text(plan.rho),
        remark=_comment(scenario.name, scenario.note, remark),
        literal=literal,
    )


def _comment(*texts: str) -> str:
    """Texts of a user as comment lines."""
    lines = [line for text in texts for line in text.splitlines() if line.strip()]
    return "".join(f"\n# {printable(line)}" for line in lines) + ("\n" if lines else "")
