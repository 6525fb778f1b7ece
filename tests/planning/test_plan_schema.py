"""The published schema of plan files against the reader, for parts changed at random."""

import json
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.errors import PlanError
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.table_plan import TablePlan
from rpexplore.workload.rules import rules_of
from tests.support.plan_schemas import PLAN_VALIDATOR
from tests.support.plan_texts import laid_out_compact, replaced


def plan_text(loss, bases, budget, rules=()) -> str:
    region = rp.Attribute(
        "region", rp.Categories(("a", "b", "c"), ("A", "B", "C")), "Region", (("N",), ("N",), ())
    )
    sizes = rp.Domain.from_sizes({"age": 4, "sex": 2})
    income = rp.Attribute("income", rp.Bins((0, 0.5, 10)))
    wage = rp.Attribute("wage", rp.Amounts("-0.5", 9, 1, "EUR", (("", "not stated"),)))
    workload = rp.Workload.of(
        rp.Domain((*sizes.attributes, region, income, wage), [{"age": "0..1", "region": "N"}]),
        [(), ("age", "sex"), ("age", "region"), "income", ("sex", "wage")],
        targets=[20, 30, 40, None, 200],
        required=[False, True, False, False, False],
    )
    planned = plan_tables(workload.with_bases(bases), loss=loss, budget=budget)
    return replace(planned, rules=rules_of(planned.workload, rules)).text


OWN = rp.CustomBasis([[1, 1, 0, 0], [0.5, 0, 0, 0], [0, 0, 1, 0], [0, 0, 1, -1]], name="mine")
RULES = ["CV<=20% for 90% of people in each table", "CV<=2.5% for 9% of cells in income, surely"]
BASES = {"age": OWN, "region": rp.Hierarchy(), "income": rp.Windows(2)}
PLANS = {
    "bounded": (rp.SumWithBoundedMax("cells", 0.125), {}, rp.Budget(privacy_cost=2)),
    "sum": (rp.SumOfVariances("sqrt"), {}, rp.Budget(rho="1/3"), RULES),
    "largest": (rp.MaxVariance(), BASES, rp.Budget(epsilon=1, delta="1e-9")),
    "required": (rp.SumWithinTargets(), BASES, rp.Budget(mu=3, max_records_per_person=3)),
}


@cache
def text_of(name: str) -> str:
    return plan_text(*PLANS[name])


SCALARS = [None, True, False, -1, 0, 1, 2, 0.0, 0.5, 1.0, 3.0, 2**70, 1e300, -0.5]
TEXTS_OF_PARTS = ["", " ", "x", "1", "0.5", "1/3", "2/6", "-1", "1e3", "sex", "age", "equal"]
CONTAINERS = [[], {}, [0], ["x"], ["age"], [[1]], {"kind": "identity"}, {"kind": "p_norm", "p": 2}]
VALUES = st.sampled_from([*SCALARS, *TEXTS_OF_PARTS, *CONTAINERS])
KINDS = {bool: "truth", int: "number", float: "number", type(None): "null"}


def kind(value) -> object:
    return KINDS.get(type(value), type(value))


def paths(content, above=()):
    """The paths of all parts below the content."""
    keys = content if isinstance(content, dict) else range(len(content))
    for key in keys:
        yield (*above, key)
        if isinstance(content[key], dict | list):
            yield from paths(content[key], (*above, key))


def one_of_each(content):
    """The paths of which none differs from another only in places within lists."""
    named = {
        tuple("any" if type(key) is int else key for key in one): one for one in paths(content)
    }
    return named.values()


def part_at(content, path):
    for key in path:
        content = content[key]
    return content


def is_read(content) -> bool:
    try:
        TablePlan.parse(laid_out_compact(content))
    except PlanError:
        return False
    return True


@given(st.sampled_from([*PLANS]).map(text_of), st.data())
@settings(deadline=None, max_examples=200)
def test_the_reader_refuses_what_the_schema_refuses(text, data):
    content = json.loads(text)
    # The seal is made anew of what was changed; a wrong one has its own test.
    path = data.draw(st.sampled_from([path for path in paths(content) if path != ("sha256",)]))
    before = part_at(content, path)
    value = data.draw(VALUES | st.just(...))
    after = replaced(json.loads(text), path, value)
    valid, read = PLAN_VALIDATOR.is_valid(after), is_read(after)
    assert valid or not read
    # The schema tells kinds of JSON apart, but where null may stand as well.
    kinds = {kind(before), kind(value)} if value is not ... else set()
    if len(kinds - {"null"}) == 2:
        assert valid == read


@pytest.mark.parametrize(
    "name", [*(pytest.param(name, marks=pytest.mark.nightly) for name in [*PLANS][:3]), "required"]
)
def test_the_schema_knows_every_key_that_the_reader_needs(name):
    text = text_of(name)
    for path in one_of_each(json.loads(text)):
        # Groups and missing values may be left out where no hierarchy, and no strategy, has them.
        if not isinstance(path[-1], str) or path[-1] in ("sha256", "groups", "missingValues"):
            continue
        after = replaced(json.loads(text), path, ...)
        assert PLAN_VALIDATOR.is_valid(after) == is_read(after), path


@pytest.mark.by_day(2)
@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("number", [0, 0.0, -0.5, -1])
def test_the_reader_refuses_every_number_that_the_schema_refuses(name, number):
    """One of each kind of numbers in a file: zero where it must be positive, and below zero."""
    text = text_of(name)
    content = json.loads(text)
    numbers = [path for path in one_of_each(content) if kind(part_at(content, path)) == "number"]
    refused = [replaced(json.loads(text), path, number) for path in numbers]
    refused = [changed for changed in refused if not PLAN_VALIDATOR.is_valid(changed)]
    assert refused
    assert not any(map(is_read, refused))


@given(st.sampled_from([*PLANS]).map(text_of), st.data())
@settings(deadline=None, max_examples=100)
def test_no_object_has_a_further_key(text, data):
    content = json.loads(text)
    objects = [()]
    for path in paths(content):
        # (The keys of an impossible combination are names of attributes, which no schema knows.)
        if isinstance(part_at(content, path), dict) and path[2:4] != ("domain", "impossible"):
            objects.append(path)
    path = data.draw(st.sampled_from(objects))
    after = replaced(json.loads(text), (*path, "more"), data.draw(VALUES))
    assert not PLAN_VALIDATOR.is_valid(after)
    assert not is_read(after)
