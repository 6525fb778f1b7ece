"""Plan files: what tables have in common, and noise scales, are listed once and named by number."""

import json

import pytest

import rpexplore as rp
from rpexplore.errors import PlanError
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.table_plan import TablePlan
from tests.support.plan_schemas import is_valid
from tests.support.plan_texts import flat, laid_out_compact, sealed_like

PLAN = plan_tables(
    rp.Workload.of(
        rp.Domain.from_sizes({"sex": 2, "age": 5, "income": 3}),
        [(), "sex", ("sex", "age"), ("age", "income")],
        weights=[1, 2, 0.1, 1e-5],
    ),
    loss=rp.MaxVariance(),
    budget=rp.Budget(rho=1),
)


def in_another_order(content, listed, number_of):
    """The last two of the list exchanged, and the numbers that name them as well."""
    last = len(content[listed]) - 1
    content[listed][-2:] = reversed(content[listed][-2:])
    other = {last: last - 1, last - 1: last}
    number_of(content, lambda number: other.get(number, number))


def of_tables(content, change):
    content["tables"] = [[attributes, change(number)] for attributes, number in content["tables"]]


def of_residuals(content, change):
    content["residuals"] = [change(number) for number in content["residuals"]]


# What is done to what the file holds: (how, the message, whether the schema can say so as well)
NUMBERED = {
    "a class nobody has": (
        lambda c: c["classes"].append(c["classes"][0] | {"weight": 7.0}),
        "every class of a table must be used",
        False,
    ),
    "classes in another order": (
        lambda c: in_another_order(c, "classes", of_tables),
        "class of a table .* in the order of first use",
        False,
    ),
    "no classes": (lambda c: c["classes"].clear(), "no class of a table 0", True),
    "a class too high": (lambda c: c["tables"][-1].__setitem__(1, 4), "table 4: .* 0 to 3", False),
    "a class below 0": (lambda c: c["tables"][-1].__setitem__(1, -1), "class of a table -1", True),
    "a class true": (
        lambda c: c["tables"][1].__setitem__(1, True),
        "a whole number, got true",
        True,
    ),
    "a class 1.0": (lambda c: c["tables"][1].__setitem__(1, 1.0), "whole number, got 1.0", False),
    "a table of three": (lambda c: c["tables"][1].append(0), "must be a list of two", True),
    "a table as an object": (
        lambda c: c["tables"].__setitem__(1, {"attributes": [0], "class": 1}),
        "every table must be a list",
        True,
    ),
    "a scale nobody has": (
        lambda c: c["noise_scales"].append("7"),
        "every noise scale of a residual must be used",
        False,
    ),
    "scales in another order": (
        lambda c: in_another_order(c, "noise_scales", of_residuals),
        "noise scale of a residual .* in the order of first use",
        False,
    ),
    "no scales": (lambda c: c["noise_scales"].clear(), "no noise scale of a residual 0", True),
    "a scale too high": (
        lambda c: c["residuals"].__setitem__(-1, 99),
        "no noise scale of a residual 99",
        False,
    ),
    "a scale true": (lambda c: c["residuals"].__setitem__(1, True), "whole number, got true", True),
}


@pytest.mark.parametrize("canonical", [True, False])
@pytest.mark.parametrize(("change", "message", "in_schema"), NUMBERED.values(), ids=NUMBERED)
def test_numbers_without_what_they_name_are_refused(change, message, in_schema, canonical):
    content = flat(json.loads(PLAN.text))
    change(content)
    with pytest.raises(PlanError, match=rf"^p\.json cannot be used: .*{message}"):
        TablePlan.parse(laid_out_compact(content), "p.json", canonical=canonical)
    assert is_valid(content) != in_schema


def test_what_is_alike_is_listed_once():
    workload = rp.Workload.all_up_to(rp.Domain.from_sizes({"a": 2, "b": 2}), 1)
    plan = plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))
    content = flat(json.loads(plan.text))
    assert content["tables"] == [[[], 0], [[0], 1], [[1], 1]]
    assert content["residuals"] == [0, 1, 1]
    class_twice, scale_twice = flat(json.loads(plan.text)), flat(json.loads(plan.text))
    class_twice["classes"].append(content["classes"][1])
    class_twice["tables"][2][1] = 2
    scale_twice["noise_scales"].append(content["noise_scales"][1])
    scale_twice["residuals"][2] = 2
    for twice in map(laid_out_compact, (class_twice, scale_twice)):
        twice = sealed_like(twice, plan.text)
        with pytest.raises(PlanError, match="must be byte for byte"):
            TablePlan.parse(twice)
        assert TablePlan.parse(twice, canonical=False).text == plan.text
