"""The query plan file: exact round trips, the published schema, and refusals of what is no plan."""

import hashlib
import json

import numpy as np
import pytest
from hypothesis import given, settings

import rpexplore as rp
from rpexplore.errors import PlanError
from rpexplore.planning.counts import QueryPlan
from rpexplore.workload.query_list import QueryList
from tests.support.plan_schemas import PLAN_SCHEMA, PLAN_VALIDATOR, is_valid
from tests.support.plan_texts import changed, flat, laid_out, other_layouts
from tests.support.query_lists import identity_and_sum, query_plan
from tests.support.strategies import budgets
from tests.workload.test_query_list import lists

PART = PLAN_SCHEMA["$defs"]["counts"]


@pytest.fixture(scope="module")
def plan():
    domain = rp.Domain(
        (
            rp.Attribute("sex", rp.Categories(("1", "2"), ("women", "men")), "Sex"),
            rp.Attribute("age", rp.Integers(0, 29, 10)),
        )
    )
    queries = QueryList(
        domain,
        np.vstack([identity_and_sum(6), [[0.25, -1, 0, 0, 0, 0.000001]]]),
        (*"abcdef", "all", 'größer, "odd"'),
        np.array([2.0] * 6 + [3, 0.1]),
    )
    budget = rp.Budget(epsilon=1, delta="1e-9", max_records_per_person=3)
    return query_plan(queries, budget=budget)


@given(lists().filter(lambda queries: queries.n_cells <= 60), budgets(least=1e-9, most=1e6))
@settings(deadline=None, max_examples=40)
def test_round_trip_is_exact_and_valid(queries, budget):
    plan = query_plan(queries, budget=budget)
    again = QueryPlan.parse(plan.text)
    for ours, theirs in [
        (plan.queries.coefficients, again.queries.coefficients),
        (plan.targets, again.targets),
        (plan.strategy.integers, again.strategy.integers),
        (plan.variances, again.variances),
        (plan.cell_weights, again.cell_weights),
        (plan.certificate.shadow_prices, again.certificate.shadow_prices),
    ]:
        np.testing.assert_array_equal(ours, theirs)
    for name in ("budget", "gamma_squared", "exact_privacy_cost", "version", "text", "sha256"):
        assert getattr(again, name) == getattr(plan, name)
    assert again.queries.domain == plan.queries.domain
    assert again.queries.names == plan.queries.names
    assert again.certificate.lower_bound == plan.certificate.lower_bound
    PLAN_VALIDATOR.validate(json.loads(plan.text))


def test_canonical_text(plan):
    text = plan.text
    assert text.endswith("}\n")
    assert "\r" not in text
    assert hashlib.sha256(text.encode()).hexdigest() == plan.sha256
    (part,) = json.loads(text)["parts"]
    assert list(part) == PART["required"], "the schema lists the keys in order"
    assert text == laid_out(json.loads(text)), "one query or row a line"


def test_a_file_that_is_not_byte_for_byte_canonical_is_refused(plan, tmp_path):
    path = tmp_path / "p.json"
    for layout, text in other_layouts(plan.text).items():
        path.write_bytes(text.encode())
        with pytest.raises(PlanError, match=r"^p\.json must be byte for byte .*rpexplore rewrite"):
            QueryPlan.load(path)
        assert QueryPlan.parse(text, canonical=False).text == plan.text, layout


def test_a_number_that_is_spelled_otherwise_is_refused(plan):
    for right, spelling in (('"target":2.0', '"target":2'), ("[0,0,0.25]", "[0,0,25e-2]")):
        text = plan.text.replace(right, spelling, 1)
        assert text != plan.text
        with pytest.raises(PlanError, match="must be byte for byte"):
            QueryPlan.parse(text)
        assert QueryPlan.parse(text, canonical=False).text == plan.text


def test_a_key_that_stands_twice_is_refused(plan):
    text = plan.text.replace('"target":2.0', '"target":9.0,"target":2.0', 1)
    for canonical in (True, False):
        with pytest.raises(PlanError, match="the key target stands twice in an object"):
            QueryPlan.parse(text, canonical=canonical)


def test_files(plan, tmp_path):
    path = tmp_path / "plan.json"
    plan.save(path)
    assert path.read_bytes() == plan.text.encode()
    assert QueryPlan.load(path).text == plan.text
    with pytest.raises(PlanError, match=r"cannot be written .* choose a file"):
        plan.save(tmp_path / "no" / "plan.json")
    with pytest.raises(PlanError, match=r"cannot be read .* check the path"):
        QueryPlan.load(tmp_path / "other.json")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(PlanError, match="not UTF-8"):
        QueryPlan.load(path)


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("[]", '"format" must be'),
        ('{"format": NaN}', "NaN is not a number JSON knows"),
        ('{"format": "rpexplore-plan"}', '"format_version"|format version'),
    ],
)
def test_what_is_no_plan_is_refused(text, refusal):
    with pytest.raises(PlanError, match=refusal):
        QueryPlan.parse(text, "p.json")


def test_noise_that_cannot_be_drawn_is_refused(plan):
    content = flat(json.loads(plan.text)) | {"gamma_squared": str(2**104)}
    with pytest.raises(PlanError, match="too large for 64-bit integers"):
        QueryPlan.parse(laid_out(content))


MISSING = [
    *((key,) for key in PART["required"]),
    *(("certificate", key) for key in ("largest_ratio", "lower_bound", "gap", "cell_weights")),
    *(("queries", 1, key) for key in ("name", "target", "terms", "variance", "shadow_price")),
    ("domain", "fields"),
    ("budget", "stated"),
]


@pytest.mark.parametrize("path", MISSING, ids=lambda path: ".".join(map(str, path)))
def test_missing_parts_are_refused_and_invalid(plan, path):
    content = changed(plan.text, path, ...)
    with pytest.raises(PlanError):
        QueryPlan.parse(laid_out(content), "p.json")
    assert not is_valid(content)


# (path, value, what the message says beyond the file's name)
UNUSABLE = [
    (("format_version",), 3, "format version 3, .* reads version 2"),
    (("format_version",), True, "format version true"),
    (("library_version",), 3, "must be a text"),
    (("extra",), 1, "must hold exactly"),
    (("domain", "fields"), [], "fields"),
    (("budget", "stated", "epsilon"), "-1", "epsilon must be positive"),
    (("privacy_cost",), 0.5, "must be a text"),
    (("privacy_cost",), "0", "must be positive, got 0"),
    (("gamma_squared",), "-1", "must be positive, got -1"),
    (("gamma_squared",), "x", "must be a finite number"),
    (("certificate",), [], "must hold exactly"),
    (("certificate", "lower_bound"), 0, "lower_bound must be above 0"),
    (("certificate", "largest_ratio"), "1", "must be a number"),
    (("certificate", "gap"), 0.5, "does not follow"),
    (("certificate", "cell_weights"), [1.0], "each of the 6 cells, got 1"),
    (("certificate", "cell_weights"), None, "cell_weights must be a list"),
    (("certificate", "cell_weights", 0), -1.0, "cell_weight must be a finite number"),
    (("queries",), {}, "queries must be a list"),
    (("queries",), [], "at least one, got none"),
    (("queries", 0), [], "must hold exactly"),
    (("queries", 0, "extra"), 1, "must hold exactly"),
    (("queries", 0, "name"), "b", "'b' stands for two counts"),
    (("queries", 0, "name"), 1, "must be a text"),
    (("queries", 0, "target"), 0, "target of count 'a'"),
    (("queries", 0, "target"), "1", "must be numbers"),
    (("queries", 0, "target"), 10**400, "must be numbers"),
    (("queries", 0, "terms"), [], "counts no cell"),
    (("queries", 0, "terms"), None, "terms of count 'a'"),
    (("queries", 0, "terms"), [[0, 1]], "must be .first cell"),
    (("queries", 0, "terms"), [[0, 6, 1]], "cells from 0 to 5"),
    (("queries", 0, "terms"), [[-1, 2, 1]], "ascending cells"),
    (("queries", 0, "terms"), [[2, 1, 1]], "ascending cells"),
    (("queries", 0, "terms"), [[0, 1, 1], [1, 2, 1]], "ascending cells"),
    (("queries", 0, "terms"), [[0, 1.0, 1]], "ascending cells"),
    (("queries", 0, "terms"), [[False, 1, 1]], "ascending cells"),
    (("queries", 0, "terms"), [[0, 1, True]], "ascending cells"),
    (("queries", 0, "terms"), [[0, 1, "1"]], "ascending cells"),
    (("queries", 0, "terms"), [[0, 1, 10**400]], "within ±1,000,000"),
    (("queries", 0, "variance"), -1, "variance must be a finite number"),
    (("queries", 0, "variance"), True, "variance must be a number"),
    (("queries", 0, "shadow_price"), None, "shadow_price must be a number"),
    (("strategy",), [], "at least one"),
    (("strategy",), 3, "list of rows"),
    (("strategy", 0), [1, 2], "of one length"),
    (("strategy", 0, 0), 1.5, "whole numbers"),
    (("strategy", 0, 0), True, "whole numbers"),
    (("strategy", 0, 0), 2**80, "whole numbers"),
    (("strategy", 0, 0), 2**30, "within"),
]


@pytest.mark.parametrize(
    ("path", "value", "refusal"), UNUSABLE, ids=lambda value: str(value)[:40].replace("/", "")
)
def test_unusable_parts_are_refused(plan, path, value, refusal):
    with pytest.raises(PlanError, match=rf"p\.json .*{refusal}"):
        QueryPlan.parse(laid_out(changed(plan.text, path, value)), "p.json")
