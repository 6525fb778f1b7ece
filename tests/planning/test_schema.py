"""The published schema of plan files: made of the declared fields, and of nothing else."""

from importlib import resources

import pytest
from jsonschema import Draft202012Validator

from rpexplore.planning.plan import PARTS, part_class
from rpexplore.planning.schema import FILE, schema_text
from tests.support.plan_schemas import PLAN_SCHEMA


def test_the_stored_schema_is_the_one_that_is_made():
    stored = resources.files("rpexplore.planning").joinpath(FILE).read_text("utf-8")
    assert stored == schema_text(), "run: python -m rpexplore.planning.schema"


def test_it_is_a_schema():
    Draft202012Validator.check_schema(PLAN_SCHEMA)


@pytest.mark.parametrize("kind", PARTS)
def test_every_kind_of_part_has_its_fields(kind):
    assert part_class(kind).kind == kind
    assert PLAN_SCHEMA["$defs"][kind]["properties"]["kind"] == {"const": kind}
    assert PLAN_SCHEMA["properties"]["parts"]["items"]["oneOf"][list(PARTS).index(kind)] == {
        "$ref": f"#/$defs/{kind}"
    }


def test_every_definition_is_used_and_there():
    """Else a field would allow anything, or a reader would look for what no file has."""
    text = schema_text()
    used = {part.split('"')[0] for part in text.split('"#/$defs/')[1:]}
    assert used == set(PLAN_SCHEMA["$defs"])
