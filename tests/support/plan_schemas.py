"""The published schemas of plan files, and what they find valid."""

import json
from importlib import resources

import pytest
from jsonschema import Draft202012Validator

from rpexplore.errors import PlanError
from rpexplore.planning.table_plan import TablePlan
from tests.support.plan_texts import changed, compact, laid_out, nested

PLAN_SCHEMA = json.loads(
    resources.files("rpexplore.planning").joinpath("schemas/plan-2.json").read_text()
)
PLAN_VALIDATOR = Draft202012Validator(PLAN_SCHEMA)


def is_valid(content: dict) -> bool:
    """Whether the schema takes what a file of one part would hold, given as one object."""
    return PLAN_VALIDATOR.is_valid(nested(content))


def check_part_is_needed(text: str, path: tuple) -> None:
    """Refuses a plan file without a part, and finds it invalid."""
    content = changed(text, path, ...)
    with pytest.raises(PlanError, match=r"^p\.json cannot be used: "):
        TablePlan.parse(laid_out(content), "p.json")
    assert not PLAN_VALIDATOR.is_valid(compact(content))
