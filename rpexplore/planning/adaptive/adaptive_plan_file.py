"""Adaptive rounds in a plan file; the plan of what is measured first is in it, on one line."""

from typing import TYPE_CHECKING, Any

from rpexplore.common.exact_numbers import exact_text, shown_value
from rpexplore.common.json_fields import (
    check_keys,
    dumps,
    list_of,
    loads,
    object_text,
    positive_exact,
    refusing,
)
from rpexplore.domain.domain import Domain
from rpexplore.errors import ContradictionError, PlanError
from rpexplore.planning.adaptive.adaptive_fields import FIELDS, ROUND
from rpexplore.planning.adaptive.schedule import Round
from rpexplore.planning.plan_fields import keys
from rpexplore.planning.table_plan import TablePlan
from rpexplore.planning.tables_in_json import tables_from_json, tables_to_json
from rpexplore.privacy.budget import Budget

if TYPE_CHECKING:
    from rpexplore.planning.adaptive.adaptive_plan import AdaptivePlan

_KEYS, _ROUND_KEYS = keys(FIELDS), keys(ROUND)
_MOST_ROUNDS = 1000  # nobody plans as many; each is a fit of all tables


def text_of_plan(plan: "AdaptivePlan") -> str:
    """The object of a plan file that is this part."""
    head = {
        "kind": plan.kind,
        "domain": plan.domain.to_schema(),
        "budget": plan.budget.to_json(),
        "privacy_cost": exact_text(plan.exact_privacy_cost),
        "expected_records": plan.expected_records,
        "first_plan": loads(plan.first.to_text()),
    }
    rounds = [
        (step.n_tables, exact_text(step.selection_rho), exact_text(step.measurement_rho))
        for step in plan.rounds
    ]
    sections = {
        "rounds": [dumps(dict(zip(_ROUND_KEYS, row, strict=True))) for row in rounds],
        "tables": list(map(dumps, tables_to_json(plan.workload))),
    }
    return object_text(head, sections)


def fields_of_plan(content: dict[str, Any], version: str) -> dict[str, Any]:
    """The fields of the plan that a file holds; raises `RpexploreError` for unusable parts.

    The privacy cost is taken as stated: `adaptive_verification` holds it against a recomputation.
    """
    check_keys(content, _KEYS, "the adaptive rounds")
    domain = Domain.from_schema(content["domain"])
    rounds = list_of(content, "rounds")
    if not 1 <= len(rounds) <= _MOST_ROUNDS:
        raise PlanError(f"there must be 1 to {_MOST_ROUNDS:,} rounds, got {len(rounds):,}.")
    return {
        "workload": tables_from_json(list_of(content, "tables"), domain),
        "budget": Budget.from_json(content["budget"]),
        "first": _first_plan(content["first_plan"], version),
        "rounds": tuple(map(_round, rounds)),
        "expected_records": content["expected_records"],
        "exact_privacy_cost": positive_exact(content, "privacy_cost"),
        "version": version,
    }


def _first_plan(content: Any, version: str) -> TablePlan:
    with refusing(ContradictionError, "its first plan cannot be used"):
        first = TablePlan.of_content(content, version, None)
        if content["kind"] != TablePlan.kind:
            raise PlanError(
                f"its kind must be {TablePlan.kind}, got {shown_value(content['kind'])}."
            )
        return first


def _round(row: Any) -> Round:
    check_keys(row, _ROUND_KEYS, "each of the rounds")
    if type(row["tables"]) is not int:
        raise PlanError("the tables of a round must be a whole number.")
    return Round(
        row["tables"], positive_exact(row, "selection_rho"), positive_exact(row, "measurement_rho")
    )
