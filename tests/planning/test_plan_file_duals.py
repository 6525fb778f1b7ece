"""Plan files with required targets, and with losses that dual weights prove."""

import json
from functools import partial

import cvxpy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.errors import PlanError
from rpexplore.planning.losses.custom import UnavailableLoss
from rpexplore.planning.minimum_budget import minimum_budget
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.table_plan import TablePlan
from tests.support.capped_optimum import workloads_with_required
from tests.support.made import Made
from tests.support.plan_schemas import PLAN_SCHEMA, PLAN_VALIDATOR, check_part_is_needed
from tests.support.plan_texts import (
    changed,
    compact,
    content_of,
    laid_out,
    other_layouts,
    unsealed,
)
from tests.support.strategies import budgets


def make_plan(loss, *, with_bases: bool, required: bool = True) -> TablePlan:
    domain = rp.Domain.from_sizes({"age": 4, "sex": 2, "one": 1})
    workload = rp.Workload.of(
        domain,
        [(), ("age", "sex"), ("sex", "one"), "age"],
        weights=[1, 2, 0.5, 1],
        targets=[8, 9, 7, 1.9 if with_bases else 1.15],
        required=[required, False, False, required],
    )
    if with_bases:
        workload = workload.with_bases({"age": rp.Prefix(), "one": rp.Ranges()})
        workload = workload.with_bases({"age": rp.Identity()}, tables=[("age", "sex")])
    return plan_tables(workload, loss=loss, budget=rp.Budget(rho="2/3"))


OWN = rp.CustomLoss(lambda variances: cvxpy.norm(variances, 3), "3-norm, ours")
LOSSES = [
    rp.SumWithinTargets("sqrt"),
    rp.MaxWithinTargets(),
    rp.SumWithBoundedMax("cells", 0.125),
    rp.PNorm(3, "target"),
    OWN,
    rp.SumOfVariances("cells"),
    rp.MaxVariance("target"),
]
LOSS_OF = {
    f"{type(loss).__name__}{suffix}": loss for loss in LOSSES for suffix in ("", " with bases")
}
PLANS = Made(
    {
        name: partial(make_plan, loss, with_bases=name.endswith(" with bases"))
        for name, loss in LOSS_OF.items()
    }
)
AVERAGE, WITH_BASES = "SumWithinTargets", "SumWithinTargets with bases"
BOUNDED, SUM = "SumWithBoundedMax", "SumOfVariances"


@pytest.fixture(params=PLANS)
def plan(request) -> TablePlan:
    return PLANS[request.param]


def test_the_schema_has_every_loss():
    kinds = [
        loss["properties"]["kind"]["const"]
        for loss in PLAN_SCHEMA["$defs"]["tables"]["properties"]["loss"]["oneOf"]
    ]
    written = [json.loads(plan.text)["parts"][0]["loss"]["kind"] for plan in PLANS.values()]
    assert len(kinds) == len(LOSSES)
    assert set(kinds) == set(written)


def test_text_plan_text(plan):
    again = TablePlan.parse(plan.text)
    assert again.text == plan.text
    assert again.sha256 == plan.sha256
    assert again.loss == (UnavailableLoss(OWN.name) if plan.loss == OWN else plan.loss)
    np.testing.assert_array_equal(again.workload.required, plan.workload.required)
    for name in ("dual_weights", "limit", "shadow_prices", "lower_bound"):
        np.testing.assert_array_equal(
            getattr(again.certificate, name), getattr(plan.certificate, name)
        )
    assert rp.verify(again).holds, str(rp.verify(again))


@pytest.mark.by_day(4)
def test_canonical_text(plan):
    PLAN_VALIDATOR.validate(json.loads(plan.text))
    for text in other_layouts(plan.text).values():
        with pytest.raises(PlanError, match="byte for byte"):
            TablePlan.parse(text)
        assert TablePlan.parse(text, canonical=False).sha256 == plan.sha256


def test_whole_options_of_losses_are_written_as_floats():
    """So that 3 and 3.0 are one plan."""
    plan = make_plan(rp.PNorm(3), with_bases=False)
    assert plan.text == make_plan(rp.PNorm(3.0), with_bases=False).text
    assert '"p":3.0,' in plan.text
    with pytest.raises(PlanError, match="byte for byte"):
        TablePlan.parse(plan.text.replace('"p":3.0,', '"p":3,'))


@given(
    workloads_with_required(powers=2.0),
    st.sampled_from(
        [rp.SumWithinTargets(), rp.MaxWithinTargets(), rp.SumWithBoundedMax("cells", 3)]
    ),
    st.sampled_from([None, 7]),
)
@settings(max_examples=30)
def test_round_trip_is_exact_and_valid(workload, loss, persons):
    cost = (
        minimum_budget(workload, required_only=True).record_privacy_cost * 1.3 * (persons or 1) ** 2
    )
    budget = rp.Budget(privacy_cost=repr(cost), max_records_per_person=persons)
    plan = plan_tables(workload, loss=loss, budget=budget)
    again = TablePlan.parse(plan.text)
    assert again.text == plan.text
    PLAN_VALIDATOR.validate(json.loads(plan.text))


@given(workloads_with_required(), budgets(least=1e-3))
@settings(max_examples=20)
def test_required_targets_do_not_change_losses_that_know_of_none(workload, budget):
    none = rp.Workload(workload.domain, workload.members, workload.weights, workload.targets)
    for loss in (rp.SumOfVariances(), rp.MaxVariance("target")):
        plain, required = (
            plan_tables(tables, loss=loss, budget=budget) for tables in (none, workload)
        )
        text = required.text.replace('"required":true', '"required":false')
        assert unsealed(plain.text) == unsealed(text)


def test_truncated_files_are_refused(plan):
    for length in range(0, len(plan.text) - 2, 211):
        with pytest.raises(PlanError, match=r"^p\.json "):
            TablePlan.parse(plan.text[:length], "p.json")


MISSING = [
    ("certificate", "limit"),
    ("tables", 1, "required"),
    ("tables", 1, "dual_weight"),
    ("tables", 1, "basis_index"),
    ("tables", 1, "largest_variance"),
    ("bases",),
    ("strategies",),
    ("cells",),
]


@pytest.mark.parametrize("path", MISSING, ids=lambda path: ".".join(map(str, path)))
def test_missing_parts_are_refused_and_invalid(path):
    check_part_is_needed(PLANS[WITH_BASES].text, path)


# (plan, path, value, what the message says, whether the schema can say so as well)
UNUSABLE = [
    (AVERAGE, ("tables", 0, "required"), 1, "true or false", True),
    (AVERAGE, ("tables", 0, "required"), None, "true or false", True),
    (AVERAGE, ("tables", 0, "required"), "true", "true or false", True),
    (AVERAGE, ("tables", 0, "target"), None, r"\(total\) must meet its target but has none", False),
    (AVERAGE, ("tables", 1, "dual_weight"), -1, "dual_weight must be", True),
    (AVERAGE, ("tables", 1, "dual_weight"), None, "every dual_weight must be a number", False),
    (AVERAGE, ("tables", 1, "dual_weight"), "1", "every dual_weight must be a number", True),
    (AVERAGE, ("tables", 1, "dual_weight"), True, "every dual_weight must be a number", True),
    (AVERAGE, ("certificate", "limit"), 3.5, "limit with a bounded average, and null", False),
    (BOUNDED, ("certificate", "limit"), None, "limit with a bounded average, and null", False),
    (BOUNDED, ("certificate", "limit"), 0, "limit must be above 0", True),
    (BOUNDED, ("certificate", "limit"), -1, "limit must be", True),
    (BOUNDED, ("certificate", "limit"), "3", "limit must be", True),
    (BOUNDED, ("loss", "slack"), 0, "slack must be from", True),
    (BOUNDED, ("loss", "slack"), "0.1", "slack must be a number", True),
    (BOUNDED, ("loss", "weighting"), "rows", "one of equal, cells, sqrt", True),
    (AVERAGE, ("loss", "slack"), 0.1, "slack", True),
    (AVERAGE, ("loss", "kind"), "required", "loss must be one of .*sum_within_targets", True),
    (AVERAGE, ("loss",), {"kind": "sum_of_variances", "weighting": "sqrt"}, "dual_weight", False),
    (SUM, ("loss",), {"kind": "sum_within_targets", "weighting": "cells"}, "dual_weight", False),
    (AVERAGE, ("loss",), {"kind": "custom", "name": " "}, "named by a text", True),
    (AVERAGE, ("loss",), {"kind": "custom", "name": 3}, "named by a text", True),
    ("PNorm", ("loss", "p"), 0.5, "p must be a number from 1", True),
    (AVERAGE, ("tables", 1, "largest_variance"), lambda v: 2 * v, "one variance", False),
    (AVERAGE, ("tables", 1, "smallest_variance"), lambda v: v / 2, "one variance", False),
    (
        AVERAGE,
        ("cells",),
        [{"table": 0, "rows": [], "shadow_price": 1.0}],
        "none of them a shadow price",
        False,
    ),
]


@pytest.mark.parametrize(("name", "path", "value", "message", "in_schema"), UNUSABLE)
def test_unusable_parts_are_refused(name, path, value, message, in_schema):
    content = changed(PLANS[name].text, path, value)
    with pytest.raises(PlanError, match=r"^p\.json cannot be used: .*" + message):
        TablePlan.parse(laid_out(content), "p.json")
    assert PLAN_VALIDATOR.is_valid(compact(content)) != in_schema


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_numbers_json_does_not_know_are_refused(number):
    average, bounded = PLANS[AVERAGE], PLANS[BOUNDED]
    for plan, key, value in (
        (average, "dual_weight", content_of(average.text)["tables"][3]["dual_weight"]),
        (bounded, "limit", bounded.certificate.limit),
    ):
        line = f'"{key}":{value!r}'
        assert line in plan.text
        with pytest.raises(PlanError, match=r"^p\.json "):
            TablePlan.parse(plan.text.replace(line, f'"{key}":{number}'), "p.json")
