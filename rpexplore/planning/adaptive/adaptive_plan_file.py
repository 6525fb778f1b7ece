"""The adaptive plan file: one JSON text, canonical, so that its SHA-256 is the plan's name.

Described in `schemas/adaptive-plan-1.json`, and laid out as the plan file of tables is. The first
plan is in it as a whole, on one line; `rpexplore rewrite` makes the file of it that its SHA-256
belongs to.
"""

from typing import TYPE_CHECKING, Any

from rpexplore.common.exact_numbers import exact_text
from rpexplore.common.json_fields import (
    SEAL,
    canonical_text,
    check_keys,
    dumps,
    list_of,
    loads,
    positive_exact,
    text_of,
)
from rpexplore.domain.domain import Domain
from rpexplore.errors import PlanError
from rpexplore.planning.adaptive.schedule import Round
from rpexplore.planning.table_plan import TablePlan
from rpexplore.planning.tables_in_json import tables_from_json, tables_to_json
from rpexplore.privacy.budget import Budget

if TYPE_CHECKING:
    from rpexplore.planning.adaptive.adaptive_plan import AdaptivePlan

_KEYS = (
    "format", "format_version", "library_version", "domain", "budget", "privacy_cost",
    "expected_records", "first_plan", "rounds", "tables", SEAL,
)  # fmt: skip
_ROUND_KEYS = ("tables", "selection_rho", "measurement_rho")
_MOST_ROUNDS = 1000  # nobody plans as many; each is a fit of all tables


def text_of_plan(plan: "AdaptivePlan") -> str:
    """The canonical text of an adaptive plan."""
    head = {
        **plan.file_head,
        "budget": plan.budget.to_json(),
        "privacy_cost": exact_text(plan.exact_privacy_cost),
        "expected_records": plan.expected_records,
        "first_plan": loads(plan.first.text),
    }
    rounds = [
        (step.n_tables, exact_text(step.selection_rho), exact_text(step.measurement_rho))
        for step in plan.rounds
    ]
    sections = {
        "rounds": [dumps(dict(zip(_ROUND_KEYS, row, strict=True))) for row in rounds],
        "tables": list(map(dumps, tables_to_json(plan.workload))),
    }
    return canonical_text(head, sections)


def fields_of_plan(content: dict[str, Any]) -> dict[str, Any]:
    """The fields of the plan that a file holds; raises `RpexploreError` for unusable parts.

    The privacy cost is taken as stated: `adaptive_verification` holds it against a recomputation.
    """
    check_keys(content, _KEYS, "the adaptive plan")
    domain = Domain.from_schema(content["domain"])
    return {
        "workload": tables_from_json(list_of(content, "tables"), domain),
        "budget": Budget.from_json(content["budget"]),
        "first": TablePlan.parse(dumps(content["first_plan"]), "its first plan", canonical=False),
        "rounds": tuple(map(_round, _rounds(content))),
        "expected_records": content["expected_records"],
        "exact_privacy_cost": positive_exact(content, "privacy_cost"),
        "version": text_of(content, "library_version"),
    }


def _rounds(content: dict[str, Any]) -> list[Any]:
    rounds = list_of(content, "rounds")
    if not 1 <= len(rounds) <= _MOST_ROUNDS:
        raise PlanError(f"there must be 1 to {_MOST_ROUNDS:,} rounds, got {len(rounds):,}.")
    return rounds


def _round(row: Any) -> Round:
    check_keys(row, _ROUND_KEYS, "each of the rounds")
    if type(row["tables"]) is not int:
        raise PlanError("the tables of a round must be a whole number.")
    return Round(
        row["tables"], positive_exact(row, "selection_rho"), positive_exact(row, "measurement_rho")
    )
