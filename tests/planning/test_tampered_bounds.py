"""Plan files that claim more than is true are not believed."""

import os

import cvxpy
import numpy as np
import pytest

import rpexplore as rp
from rpexplore.errors import PlanError, ReleaseError
from rpexplore.planning.counts_strategy import QueryStrategy
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.table_plan import TablePlan
from rpexplore.releases.atomic_folder import new_folder
from tests.support.plan_texts import content_of, laid_out

DOMAIN = rp.Domain.from_sizes({"a": 3, "b": 4, "c": 2})
TABLES = rp.Workload.of(DOMAIN, [("a",), ("b", "c"), ("a", "b"), ()])
COST_1 = rp.Budget(privacy_cost=1)


def tampered(plan, change):
    """The plan of the file with a change, whose certificate then claims that nothing is better."""
    content = content_of(plan.text)
    change(content)
    content["certificate"]["lower_bound"] = content["certificate"]["loss"]
    content["certificate"]["gap"] = 0.0
    return TablePlan.parse(laid_out(content), canonical=False)


@pytest.mark.parametrize("loss", [rp.PNorm(1), rp.PNorm(2)])
@pytest.mark.parametrize("weight", [1e-320, 1e-250, 1e250])
def test_weights_that_cannot_be_computed_with_prove_nothing(loss, weight):
    def change(content):
        for table in content["tables"]:
            table["dual_weight"] = weight

    plan = tampered(plan_tables(TABLES, loss=loss, budget=COST_1), change)
    verification = rp.verify(plan)
    assert [check.name for check in verification.checks if not check.holds] == ["optimality"]


@pytest.mark.parametrize("bases", [{}, {"b": rp.Prefix()}])
@pytest.mark.parametrize("loss", [rp.SumOfVariances(), rp.MaxVariance()])
@pytest.mark.parametrize("n_weights", [1, len(TABLES)])
def test_weight_beyond_numbers_proves_nothing(loss, bases, n_weights):
    def change(content):
        for table in content["tables"][-n_weights:]:
            table["weight"] = 1.7e308

    budget = rp.Budget(rho="1e9")
    plan = tampered(plan_tables(TABLES.with_bases(bases), loss=loss, budget=budget), change)
    assert not rp.verify(plan).holds


def test_required_targets_without_weight_on_the_others_are_refused_without_a_crash():
    targeted = TABLES.with_targets(dict.fromkeys([("a",), ("b", "c"), ("a", "b")], 9.0))
    targeted = targeted.with_targets({(): rp.Target("5", required=True)})
    plan = plan_tables(targeted, loss=rp.MaxWithinTargets(), budget=COST_1)

    def change(content):
        for table in content["tables"]:
            if not table["required"]:
                table["dual_weight"] = 0.0

    assert not rp.verify(tampered(plan, change)).holds


def test_what_an_own_loss_proves_is_not_claimed_by_its_file():
    loss = rp.CustomLoss(lambda variances: cvxpy.norm(variances, 3), "norm3")
    plan = plan_tables(TABLES, loss=loss, budget=COST_1)
    assert rp.verify(plan).holds
    again = TablePlan.parse(plan.text)
    assert rp.verify(again).holds
    assert "this file cannot prove it" in str(again)
    assert "smallest possible" not in str(again)


def test_a_loss_without_a_value_for_these_variances_is_refused():
    domain = rp.Domain.from_sizes({"a": 3, "b": 4})
    tables = rp.Workload.all_up_to(domain, 2)
    for expression in (
        lambda v: 10 - cvxpy.sum(cvxpy.log(3 - v)),
        lambda v: cvxpy.sum(cvxpy.inv_pos(3 - v)),
    ):
        loss = rp.CustomLoss(expression, "barrier")
        with pytest.raises(
            rp.errors.RpexploreError, match="There must be a value of the loss “barrier”"
        ):
            plan_tables(tables, loss=loss, budget=rp.Budget(privacy_cost="0.5"))


def test_a_strategy_that_leaves_a_small_coefficient_out_is_refused():
    domain = rp.Domain.from_sizes({"x": 2})
    targeted = rp.QueryList(domain, np.array([[1e6, 0.01]]), ("q",), np.ones(1))
    with pytest.raises(PlanError, match="must determine all own counts"):
        _ = QueryStrategy(targeted, np.array([[1, 0]])).decoding


def test_a_link_is_not_emptied(tmp_path):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.txt").write_text("years of work")
    os.symlink(precious, tmp_path / ".out.unfinished")
    with pytest.raises(ReleaseError, match="cannot be written"), new_folder(tmp_path / "out"):
        pass
    assert (precious / "thesis.txt").exists()
