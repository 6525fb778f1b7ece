"""Objectives of own counts: the sum of ratios, and the sum once all targets are met."""

import json

import cvxpy as cp
import numpy as np
import pytest

import rpexplore as rp
from rpexplore.errors import OutOfReachError, PlanError, WorkloadError
from rpexplore.planning.counts import QueryPlan
from rpexplore.planning.counts_planner import query_optimum
from tests.planning.solvers.test_fitness_for_use import random_queries
from tests.support.plan_schemas import is_valid
from tests.support.plan_texts import flat, laid_out
from tests.support.query_lists import (
    identity_and_sum,
    marginals,
    prefix,
    query_list,
    query_plan,
    ranges,
)

COST_1 = rp.Budget(privacy_cost=1)


def least_mean_by_cvxpy(queries, cost, *, within_targets):
    """The mean ratio of the best of all Gaussian mechanisms."""
    n = queries.n_cells
    covered = cp.Variable((n, n), PSD=True)
    ratios = [
        cp.matrix_frac(row / target, covered)
        for row, target in zip(queries.coefficients, queries.targets, strict=True)
    ]
    constraints = [cp.diag(covered) <= cost]
    if within_targets:
        constraints += [ratio <= 1 for ratio in ratios]
    problem = cp.Problem(cp.Minimize(sum(ratios) / len(ratios)), constraints)
    problem.solve(solver=cp.CLARABEL)
    return float(problem.value)


def random_list(seed):
    rows, targets = random_queries(seed)
    return query_list(np.round(rows, 6), targets)


@pytest.mark.parametrize("seed", range(8))
def test_the_least_sum_is_that_of_all_gaussian_mechanisms(seed):
    queries = random_list(seed)
    plan = query_plan(queries, budget=COST_1, objective="sum")
    optimum = least_mean_by_cvxpy(queries, 1.0, within_targets=False)
    assert plan.certificate.loss_value == pytest.approx(np.mean(plan.variance_ratios), rel=1e-12)
    assert plan.certificate.loss_value == pytest.approx(optimum, rel=1e-3)
    assert plan.certificate.lower_bound <= optimum * (1 + 1e-5)
    assert plan.certificate.gap <= 1.3e-3
    assert rp.verify(plan).holds


@pytest.mark.parametrize("times", [1.02, 1.1, 1.5])
@pytest.mark.parametrize("seed", range(5))
def test_targets_first_and_then_the_least_sum(seed, times):
    queries = random_list(seed)
    cost = query_optimum(queries).cost * times
    budget = rp.Budget(privacy_cost=repr(cost))
    plan = query_plan(queries, budget=budget, objective="targets-then-sum")
    optimum = least_mean_by_cvxpy(queries, cost, within_targets=True)
    assert np.all(plan.met)
    # Nearer to the smallest sufficient budget the bound is the less sharp.
    near = 2e-3 if times > 1.05 else 1e-2
    assert optimum * (1 - 1e-5) <= plan.certificate.loss_value <= optimum * (1 + near)
    assert plan.certificate.lower_bound <= optimum * (1 + 1e-5)
    assert plan.certificate.gap <= near
    assert rp.verify(QueryPlan.parse(plan.text)).holds


def test_each_objective_is_best_at_its_own():
    """32 ranges with a total ten times as exact: the largest ratio alone leaves the others far."""
    rng = np.random.default_rng(3)
    rows = np.vstack([ranges(24, 32, rng), np.ones(24)])
    queries = query_list(rows, np.append(np.full(32, 10.0), 1.0))
    needed = query_optimum(queries).cost
    budget = rp.Budget(privacy_cost=repr(1.05 * needed))
    plans = {
        objective: query_plan(queries, budget=budget, objective=objective)
        for objective in ("largest", "sum", "targets-then-sum")
    }
    largest = {objective: plan.ratio for objective, plan in plans.items()}
    mean = {objective: np.mean(plan.variance_ratios) for objective, plan in plans.items()}
    assert largest["largest"] < largest["targets-then-sum"] <= 1 < largest["sum"]
    assert mean["sum"] < mean["targets-then-sum"] < 0.9 * mean["largest"]
    assert mean["sum"] == pytest.approx(plans["sum"].certificate.loss_value)


def test_targets_met_by_the_least_sum_cost_it_nothing():
    queries = query_list(marginals((2, 3), 1), 1.0, (2, 3))
    budget = rp.Budget(privacy_cost=100)
    first, alone = (
        query_plan(queries, budget=budget, objective=objective)
        for objective in ("targets-then-sum", "sum")
    )
    assert first.certificate.loss_value == pytest.approx(alone.certificate.loss_value, rel=2e-4)
    assert first.certificate.gap <= 2e-4


def test_at_the_smallest_budget_there_is_no_choice():
    queries = query_list(identity_and_sum(4), [1.0, 1, 1, 1, 2])
    needed = query_optimum(queries).cost
    budget = rp.Budget(privacy_cost=repr(needed * (1 + 1e-9)))
    plan = query_plan(queries, budget=budget, objective="targets-then-sum")
    assert np.all(plan.met)
    assert rp.verify(plan).holds


def test_targets_out_of_reach_are_told_with_what_they_need():
    queries = query_list(prefix(8))
    needed = query_optimum(queries).cost
    with pytest.raises(OutOfReachError, match=r"cannot all be met .* Use 2\.282 times") as refused:
        query_plan(queries, budget=COST_1, objective="targets-then-sum")
    assert refused.value.needed == pytest.approx(needed)
    budget = rp.Budget(privacy_cost=repr(refused.value.needed * (1 + 1e-9)))
    assert np.all(query_plan(queries, budget=budget, objective="targets-then-sum").met)


@pytest.fixture(scope="module")
def by_objective():
    queries = query_list(identity_and_sum(5), [2.0] * 5 + [1.5])
    return {
        objective: query_plan(queries, budget=rp.Budget(rho=1), objective=objective)
        for objective in ("sum", "targets-then-sum")
    }


@pytest.mark.parametrize("objective", ["sum", "targets-then-sum"])
def test_the_file_has_the_objective_and_its_proof(by_objective, objective):
    plan = by_objective[objective]
    content = flat(json.loads(plan.text))
    assert content["objective"] == objective
    assert "mean_ratio" in content["certificate"]
    assert is_valid(content)
    again = QueryPlan.parse(plan.text)
    assert (again.text, again.objective) == (plan.text, plan.objective)
    assert again.objective.title in str(again)


@pytest.mark.parametrize(
    ("objective", "change", "refused"),
    [
        ("sum", lambda content: content.update(objective="largest"), True),
        ("sum", lambda content: content.update(objective="mean"), True),
        ("sum", lambda content: content.pop("objective"), True),
        ("sum", lambda content: content["queries"][0].update(shadow_price=0.9), False),
        ("targets-then-sum", lambda content: content.update(objective="sum"), False),
        # A price of 0 would allow any bound, as a multiple of the prices has none.
        ("targets-then-sum", lambda content: content["queries"][0].update(shadow_price=0.0), False),
    ],
)
def test_a_file_that_claims_another_objective_is_not_believed(
    by_objective, objective, change, refused
):
    content = flat(json.loads(by_objective[objective].text))
    prices = [query["shadow_price"] for query in content["queries"]]
    change(content)
    rest = sum(query["shadow_price"] for query in content["queries"][1:])
    if content["queries"][0]["shadow_price"] != prices[0]:
        for query in content["queries"][1:]:
            query["shadow_price"] *= (1 - content["queries"][0]["shadow_price"]) / rest
    certificate = content["certificate"]
    certificate["lower_bound"] = certificate["mean_ratio"]
    certificate["gap"] = 0.0
    if refused:
        with pytest.raises(PlanError):
            QueryPlan.parse(laid_out(content), canonical=False)
        assert not is_valid(content) or "objective" not in content
    else:
        verification = rp.verify(QueryPlan.parse(laid_out(content), canonical=False))
        assert [each.name for each in verification.checks if not each.holds] == ["optimality"]


def test_a_file_whose_targets_come_first_must_meet_them(by_objective):
    content = flat(json.loads(by_objective["sum"].text)) | {"objective": "targets-then-sum"}
    for query in content["queries"]:
        query["target"] /= 4
    certificate = content["certificate"]
    certificate["mean_ratio"] *= 16
    certificate["gap"] = max(certificate["mean_ratio"] / certificate["lower_bound"] - 1, 0.0)
    verification = rp.verify(QueryPlan.parse(laid_out(content), canonical=False))
    assert "targets come first" in str(verification)


def test_the_sum_of_tables_and_counts_is_proven_for_all_mechanisms():
    """Own counts by the sum, beside tables by the sum: their own bound is that of the whole."""
    domain = rp.Domain.from_sizes({"a": 3, "b": 2})
    counts = query_list(identity_and_sum(6), 2.0, (3, 2))
    counts = rp.QueryList(domain, counts.coefficients, counts.names, counts.targets)
    tables = rp.Workload.all_up_to(domain, 2)
    plan = rp.plan(
        rp.Request(tables=tables, counts=counts, counts_objective="sum", budget=rp.Budget(rho=1))
    )
    assert "measured as here" not in plan.proven
    assert plan.certificate.gap <= 1e-3
    alike = rp.plan(rp.Request(tables=tables, counts=counts, budget=rp.Budget(rho=1)))
    assert "own counts measured as here, to minimise the largest shortfall" in alike.proven
    assert plan.loss_value < alike.loss_value


def test_parts_of_which_one_depends_on_its_budget_need_shares():
    domain = rp.Domain.from_sizes({"a": 3})
    counts = rp.QueryList(domain, [[1, 1, 0]], ("two",), [5])
    asked = {
        "tables": rp.Workload.all_up_to(domain, 1),
        "counts": counts,
        "counts_objective": "targets-then-sum",
        "budget": rp.Budget(rho=1),
    }
    with pytest.raises(PlanError, match=r"targets come first .* --share counts=1/2"):
        rp.plan(rp.Request(**asked))
    plan = rp.plan(rp.Request(**asked, shares={"tables": "1/3", "counts": "2/3"}))
    assert rp.verify(plan).holds
    assert plan.certificate is not None


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda queries: rp.Request(counts=queries, counts_objective="max", budget=COST_1),
            WorkloadError,
            "must be one of largest, sum, targets-then-sum, got 'max'",
        ),
        (
            lambda queries: query_optimum(queries, objective="targets-then-sum"),
            PlanError,
            "planned for one budget; name it",
        ),
        (
            lambda queries: query_optimum(
                queries, objective="targets-then-sum", budget=rp.Budget(rho=9)
            ).at(COST_1),
            PlanError,
            "plan again for this one",
        ),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call(query_list(prefix(3)))
