"""Plan files with other bases than single values, and the strategies that measure them."""

import json
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings

import rpexplore as rp
from rpexplore.errors import PlanError
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.table_plan import TablePlan
from tests.support.plan_schemas import PLAN_VALIDATOR, check_part_is_needed
from tests.support.plan_texts import changed, compact, content_of, laid_out, other_layouts
from tests.support.strategies import domains, losses, workloads, workloads_with_bases


@cache
def plan_for(loss) -> TablePlan:
    region = rp.Attribute(
        "region", rp.Categories(("a", "b", "c")), groups=(("North",), ("North",), ("South",))
    )
    sizes = rp.Domain.from_sizes({"age": 4, "sex": 2, "one": 1})
    domain = rp.Domain((*sizes.attributes, region))
    workload = rp.Workload.of(
        domain, [(), ("age", "sex"), ("age", "region"), ("sex", "one"), "age"], targets=[5] * 5
    )
    workload = workload.with_bases(
        {"age": rp.Prefix(), "region": rp.Hierarchy(), "one": rp.Ranges()}
    )
    own = rp.CustomBasis([[1, 1, 0, 0], [0.5, 0, 0, 0], [0, 0, 1, 0], [0, 0, 1, -1]], name="mine")
    workload = workload.with_bases({"age": own}, tables=["age"])
    workload = workload.with_bases({"age": rp.Identity()}, tables=[("age", "sex")])
    return plan_tables(workload, loss=loss, budget=rp.Budget(rho="1/3"))


SUM, MAX = rp.SumOfVariances(), rp.MaxVariance("target")


@pytest.fixture(params=[SUM, MAX], ids=["sum", "max"])
def plan(request) -> TablePlan:
    return plan_for(request.param)


@pytest.mark.parametrize("are_weights", [False, True])
@pytest.mark.parametrize("limit", [("minimum", "-0"), ("minimum", "0"), ("maximum", "40.00")])
def test_limits_of_sums_are_written_in_one_way(limit, are_weights):
    amounts = rp.Amounts(0, 40, 1, are_weights=are_weights)
    domain = rp.Domain((rp.Attribute("sex", rp.Integers(0, 1)), rp.Attribute("w", amounts)))
    tables = rp.Workload.of(domain, [("sex", "w")])
    plan = plan_tables(tables, loss=SUM, budget=rp.Budget(rho="1/3"))
    key, text = limit
    content = changed(plan.text, ["bases", 1, "bases", 0, key], text)
    with pytest.raises(PlanError, match="sha256 is that of other contents"):
        TablePlan.parse(laid_out(content))


@given(
    workloads_with_bases(workloads(domains(max_attributes=3, max_size=4), max_tables=3)), losses()
)
@settings(deadline=None, max_examples=30)
def test_round_trip_is_exact_and_valid(workload, loss):
    plan = plan_tables(workload, loss=loss, budget=rp.Budget(rho="0.2"))
    again = TablePlan.parse(plan.text)
    assert again.text == plan.text
    assert again.workload.has_tables_of(plan.workload)
    assert again.closure.strategies.keys() == plan.closure.strategies.keys()
    for index, strategy in plan.closure.strategies.items():
        assert np.array_equal(again.closure.strategies[index].integers, strategy.integers)
    PLAN_VALIDATOR.validate(json.loads(plan.text))


@pytest.mark.by_day(1)
def test_canonical_text(plan):
    content = content_of(plan.text)
    assert plan.text == laid_out(content)
    PLAN_VALIDATOR.validate(compact(content))
    for text in other_layouts(plan.text).values():
        with pytest.raises(PlanError, match="byte for byte"):
            TablePlan.parse(text)
        assert TablePlan.parse(text, canonical=False).sha256 == plan.sha256
    assert rp.verify(TablePlan.parse(plan.text)).holds


def test_truncated_files_are_refused(plan):
    for length in range(0, len(plan.text) - 2, 97):
        with pytest.raises(PlanError, match=r"^p\.json "):
            TablePlan.parse(plan.text[:length], "p.json")


MISSING = [
    ("bases",),
    ("strategies",),
    ("cells",),
    ("bases", 0, "attribute"),
    ("bases", 0, "bases"),
    ("bases", 0, "bases", 0, "kind"),
    ("strategies", 0, "attribute"),
    ("strategies", 0, "bits"),
    ("strategies", 0, "matrix"),
    ("tables", 1, "basis_index"),
    ("tables", 1, "largest_variance"),
    ("tables", 1, "smallest_variance"),
    ("cells", 0, "table"),
    ("cells", 0, "rows"),
    ("cells", 0, "shadow_price"),
]


@pytest.mark.parametrize("path", MISSING, ids=lambda path: ".".join(map(str, path)))
def test_missing_parts_are_refused_and_invalid(path):
    check_part_is_needed(plan_for(MAX).text, path)


# (path, value, what the message says, whether the schema can say so as well)
UNUSABLE = [
    (("bases", 0, "attribute"), "height", "no attribute 'height'", False),
    (("bases", 0, "bases", 1), {"kind": "median"}, "got 'median'", True),
    (("bases", 0, "bases"), lambda bases: [*bases, {"kind": "ranges"}], "each once", False),
    (("bases", 0, "bases"), lambda bases: [*bases, bases[0]], "each once", False),
    (("bases", 0, "bases"), lambda bases: bases[:-1], "not in the list", False),
    (("bases", 0, "bases"), lambda bases: bases[::-1], "single values first", False),
    (("bases",), lambda rows: rows[:-1], "not in the list", False),
    (("bases", 1, "bases", 0), {"kind": "windows", "width": 0}, "at least 1, got 0", True),
    (("bases", 1, "bases", 0), {"kind": "hierarchy", "widths": [2]}, "below the 2 values", False),
    (("tables", 1, "basis_index"), [9], "not in the list", False),
    (("tables", 1, "basis_index"), [-1], "not in the list", True),
    (("tables", 1, "basis_index"), [], "one basis_index for each", False),
    (("tables", 1, "basis_index"), [0, 0], "one basis_index for each", False),
    (("tables", 1, "basis_index"), [0.0], "whole numbers", False),
    (("tables", 1, "basis_index"), [True], "whole numbers", True),
    (("tables", 1, "basis_index"), 0, "basis_index must be a list", True),
    (("tables", 1, "largest_variance"), -1, "largest_variance must be", True),
    (("tables", 1, "smallest_variance"), "3", "smallest_variance must be a number", True),
    (("strategies",), lambda rows: rows[:-1], "one strategy for each", False),
    (("strategies",), lambda rows: rows[::-1], "one strategy for each", False),
    (("strategies",), lambda rows: [*rows, rows[0]], "one strategy for each", False),
    (("strategies", 0, "attribute"), "sex", "one strategy for each", False),
    (("strategies", 0, "attribute"), "height", "no attribute 'height'", False),
    (("strategies", 0, "bits"), 1.0, "whole numbers", False),
    (("strategies", 0, "bits"), -1, "power of two", True),
    (("strategies", 0, "bits"), 21, "power of two", True),
    (("strategies", 0, "matrix", 0, 0), 1.5, "whole numbers", True),
    (("strategies", 0, "matrix", 0, 0), 3.0, "whole numbers", False),
    (("strategies", 0, "matrix", 0, 0), True, "whole numbers", True),
    (("strategies", 0, "matrix", 0, 0), "3", "whole numbers", True),
    (("strategies", 0, "matrix", 0, 0), 2**20 + 1, "within ±2", True),
    (("strategies", 0, "matrix", 0, 0), 2**70, "whole numbers", True),
    (("strategies", 0, "matrix"), lambda rows: rows[:-1], "3 rows of 4", False),
    (("strategies", 0, "matrix", 0), lambda row: row[:-1], "3 rows of 4", False),
    (("strategies", 0, "matrix"), lambda rows: [rows[0]] * 3, "must be invertible", False),
    (("strategies", 0, "matrix"), [[1, 1, 1, 1]] * 3, "must be invertible", False),
    (("strategies", 0, "matrix"), 5, "", True),
    (("cells", 0, "table"), 5, "no table 5", False),
    (("cells", 0, "table"), -1, "no table -1", True),
    (("cells", 0, "table"), True, "every table must be a whole number", True),
    (("cells", -1, "rows"), lambda rows: [99] * len(rows), "has no cell", False),
    (("cells", 0, "rows"), lambda rows: [*rows, 0], "has no cell", False),
    (("cells", 0, "rows"), None, "", True),
    (("cells", -1, "rows", 0), -1, "has no cell", True),
    (("cells", -1, "rows", 0), 0.0, "has no cell", False),
    (("cells", 0, "shadow_price"), -1, "shadow_price must be", True),
    (("cells",), None, "cells must be a list", True),
]


@pytest.mark.parametrize(("path", "value", "message", "in_schema"), UNUSABLE)
def test_unusable_parts_are_refused(path, value, message, in_schema):
    content = changed(plan_for(MAX).text, path, value)
    with pytest.raises(PlanError, match=r"^p\.json cannot be used: .*" + message):
        TablePlan.parse(laid_out(content), "p.json")
    assert PLAN_VALIDATOR.is_valid(compact(content)) != in_schema


SINGLE = plan_tables(
    rp.Workload.all_up_to(rp.Domain.from_sizes({"age": 4, "sex": 2}), 1),
    loss=rp.SumOfVariances(),
    budget=rp.Budget(rho=1),
)


def test_single_values_are_written_in_full():
    content = content_of(SINGLE.text)
    assert content["bases"] == [
        {"attribute": "age", "bases": [{"kind": "identity"}]},
        {"attribute": "sex", "bases": [{"kind": "identity"}]},
    ]
    assert [table["basis_index"] for table in content["tables"]] == [[], [0], [0]]
    assert content["strategies"] == content["cells"] == []
    for table in content["tables"]:
        assert table["largest_variance"] == table["smallest_variance"] == table["variance"]


# What would not be seen in the plan, and so could say anything. (path, value, the message)
SINGLE_UNUSABLE = [
    (("tables", 1, "basis_index"), [1], "bases must be those that some table uses"),
    (("bases",), [], "bases must be those that some table uses"),
    (("bases",), lambda rows: rows[::-1], "bases must be those that some table uses"),
    (("bases", 0, "bases"), [{"kind": "identity"}] * 2, "bases must be those that some table uses"),
    (("tables", 1, "largest_variance"), lambda variance: 2 * variance, "one variance"),
    (("cells",), [{"table": 0, "rows": [], "shadow_price": 1.0}], "shadow price of its own"),
    (("strategies",), [{"attribute": "sex", "bits": 0, "matrix": [[1, -1]]}], "one strategy for"),
]


@pytest.mark.parametrize(("path", "value", "message"), SINGLE_UNUSABLE)
def test_unusable_parts_of_single_values_are_refused(path, value, message):
    with pytest.raises(PlanError, match=rf"^p\.json cannot be used: .*{message}"):
        TablePlan.parse(laid_out(changed(SINGLE.text, path, value)), "p.json")


def test_numbers_json_does_not_know_are_refused(plan):
    for number in ("NaN", "Infinity", "1e999"):
        for key in ("largest_variance", "smallest_variance", "shadow_price"):
            line = f'"{key}":{content_of(plan.text)["tables"][2][key]!r}'
            assert line in plan.text
            with pytest.raises(PlanError, match=r"^p\.json "):
                TablePlan.parse(plan.text.replace(line, f'"{key}":{number}'), "p.json")
