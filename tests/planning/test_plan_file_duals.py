"""Plan files of version 3: targets that must be met, and losses that dual weights prove."""

import json
from importlib import resources

import cvxpy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import rpexplore as rp
from rpexplore.errors import PlanError
from rpexplore.planning.losses.custom import UnavailableLoss
from rpexplore.planning.minimum_budget import minimum_budget
from tests.planning.test_plan_file_asked import changed
from tests.support.capped_optimum import workloads_with_musts
from tests.support.strategies import budgets

SECOND, THIRD = (
    json.loads(
        resources.files("rpexplore.planning").joinpath(f"schemas/plan-{version}.json").read_text()
    )
    for version in (2, 3)
)
VALIDATOR = Draft202012Validator(THIRD)


def make_plan(loss, *, asked: bool, required: bool = True) -> rp.Plan:
    domain = rp.Domain.from_sizes({"age": 4, "sex": 2, "one": 1})
    workload = rp.Workload.of(
        domain,
        [(), ("age", "sex"), ("sex", "one"), "age"],
        weights=[1, 2, 0.5, 1],
        targets=[8, 9, 7, 1.9 if asked else 1.15],
        required=[required, False, False, required],
    )
    if asked:
        workload = workload.with_bases({"age": rp.Prefix(), "one": rp.Ranges()})
        workload = workload.with_bases({"age": rp.Identity()}, tables=[("age", "sex")])
    return rp.plan(workload, loss=loss, budget=rp.Budget(rho="2/3"))


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
PLANS = {
    f"{type(loss).__name__}{' asked' if asked else ''}": make_plan(loss, asked=asked)
    for loss in LOSSES
    for asked in (False, True)
}
AVERAGE, ASKED = PLANS["SumWithinTargets"], PLANS["SumWithinTargets asked"]
BOUNDED, SUM = PLANS["SumWithBoundedMax"], PLANS["SumOfVariances"]


@pytest.fixture(params=PLANS)
def plan(request) -> rp.Plan:
    return PLANS[request.param]


def test_the_schema_is_a_schema_with_the_parts_of_the_second():
    Draft202012Validator.check_schema(THIRD)
    same = SECOND["$defs"].keys() - {"table"}
    assert THIRD["$defs"].keys() - {"table"} == same
    for name in same:
        assert THIRD["$defs"][name] == SECOND["$defs"][name]
    kinds = [each["properties"]["kind"]["const"] for each in THIRD["properties"]["loss"]["oneOf"]]
    assert len(set(kinds)) == len(kinds) == len(LOSSES)


def test_text_plan_text(plan):
    again = rp.Plan.parse(plan.text)
    assert again.text == plan.text
    assert again.sha256 == plan.sha256
    assert again.loss == (UnavailableLoss(OWN.name) if plan.loss == OWN else plan.loss)
    np.testing.assert_array_equal(again.workload.required, plan.workload.required)
    for name in ("dual_weights", "limit", "shadow_prices", "lower_bound"):
        np.testing.assert_array_equal(
            getattr(again.certificate, name), getattr(plan.certificate, name)
        )
    assert rp.verify(again).holds, str(rp.verify(again))


def test_canonical_text(plan):
    content = json.loads(plan.text)
    assert content["format_version"] == 3
    assert list(content) == THIRD["required"], "the schema lists the keys in order"
    assert list(content["tables"][0]) == THIRD["$defs"]["table"]["required"]
    assert list(content["certificate"]) == THIRD["properties"]["certificate"]["required"]
    VALIDATOR.validate(content)
    for text in (json.dumps(content, indent=4), json.dumps(dict(reversed(content.items())))):
        assert rp.Plan.parse(text).sha256 == plan.sha256


@given(
    workloads_with_musts(powers=2.0),
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
    plan = rp.plan(workload, loss=loss, budget=budget)
    again = rp.Plan.parse(plan.text)
    assert again.text == plan.text
    VALIDATOR.validate(json.loads(plan.text))


@given(workloads_with_musts(), budgets(least=1e-3))
@settings(max_examples=20)
def test_without_musts_and_duals_a_plan_has_the_versions_that_it_had(workload, budget):
    none = rp.Workload(workload.domain, workload.members, workload.weights, workload.targets)
    for loss in (rp.SumOfVariances(), rp.MaxVariance("target")):
        plain, held = (rp.plan(each, loss=loss, budget=budget) for each in (none, workload))
        assert json.loads(plain.text)["format_version"] == 1
        assert json.loads(held.text)["format_version"] == 3
        np.testing.assert_array_equal(plain.sigma_squared.digits, held.sigma_squared.digits)


def test_truncated_files_are_refused(plan):
    for length in range(0, len(plan.text) - 2, 211):
        with pytest.raises(PlanError, match=r"^p\.json "):
            rp.Plan.parse(plan.text[:length], "p.json")


MISSING = [
    ("certificate", "limit"),
    ("tables", 1, "required"),
    ("tables", 1, "dual_weight"),
    ("tables", 1, "ways"),
    ("tables", 1, "worst_variance"),
    ("bases",),
    ("strategies",),
    ("cells",),
]


@pytest.mark.parametrize("path", MISSING, ids=lambda path: ".".join(map(str, path)))
def test_missing_parts_are_refused_and_invalid(path):
    content = changed(ASKED, path, ...)
    with pytest.raises(PlanError, match=r"^p\.json cannot be used: "):
        rp.Plan.parse(json.dumps(content), "p.json")
    assert not VALIDATOR.is_valid(content)


# (plan, path, value, what the message says, whether the schema can say so as well)
UNUSABLE = [
    (AVERAGE, ("format_version",), 2, "certificate must hold exactly", True),
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
    (PLANS["PNorm"], ("loss", "p"), 0.5, "p must be a number from 1", True),
    (AVERAGE, ("tables", 1, "worst_variance"), lambda v: 2 * v, "one variance", False),
    (AVERAGE, ("tables", 1, "best_variance"), lambda v: v / 2, "one variance", False),
    (
        AVERAGE,
        ("cells",),
        [{"table": 0, "rows": [], "shadow_price": 1.0}],
        "none of them a shadow price",
        False,
    ),
]


@pytest.mark.parametrize(("plan", "path", "value", "message", "in_schema"), UNUSABLE)
def test_unusable_parts_are_refused(plan, path, value, message, in_schema):
    content = changed(plan, path, value)
    with pytest.raises(PlanError, match=r"^p\.json cannot be used: .*" + message):
        rp.Plan.parse(json.dumps(content), "p.json")
    assert VALIDATOR.is_valid(content) != in_schema


def test_what_another_version_holds_has_no_third():
    """The same plan would have two texts, and two names."""
    content = json.loads(SUM.text)
    for row in content["tables"]:
        row["required"] = False
    with pytest.raises(PlanError, match="no target must be met the format version is 1"):
        rp.Plan.parse(json.dumps(content))


def test_other_losses_have_no_first_or_second_version():
    for asked in (False, True):
        plain = make_plan(rp.SumOfVariances("sqrt"), asked=asked, required=False)
        content = changed(plain, ("loss",), {"kind": "sum_within_targets", "weighting": "sqrt"})
        assert content["format_version"] == 1 + asked
        with pytest.raises(PlanError, match="sum_within_targets the format version is 3"):
            rp.Plan.parse(json.dumps(content))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_numbers_json_does_not_know_are_refused(number):
    for plan, key, found in (
        (AVERAGE, "dual_weight", json.loads(AVERAGE.text)["tables"][3]["dual_weight"]),
        (BOUNDED, "limit", BOUNDED.certificate.limit),
    ):
        line = f'"{key}":{found!r}'
        assert line in plan.text
        with pytest.raises(PlanError, match=r"^p\.json "):
            rp.Plan.parse(plan.text.replace(line, f'"{key}":{number}'), "p.json")
