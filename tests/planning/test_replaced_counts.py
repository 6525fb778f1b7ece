"""Own counts for neighbours that replace a record: all pairs of cells, and the best plan."""

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest

import rpexplore as rp
from rpexplore.errors import PlanError
from rpexplore.planning.counts_planner import query_optimum
from tests.support.query_lists import query_plan

BUDGET = rp.Budget(rho="0.5", neighbours="replace")


def random_list(seed: int) -> rp.QueryList:
    """One to five counts over three to seven cells; often with that of all records."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 8))
    most = 2 if seed % 2 else 4
    rows = rng.integers(0, most, (int(rng.integers(1, 6)), n))
    rows = (
        rows[np.ptp(rows, axis=1) > 0] if np.any(np.ptp(rows, axis=1)) else np.eye(1, n, dtype=int)
    )
    rows = np.unique(rows, axis=0)
    if seed % 3 == 0:
        rows = np.vstack([rows, np.ones(n, dtype=int)])
    names = tuple(f"q{row}" for row in range(len(rows)))
    targets = np.exp(rng.normal(size=len(rows))).round(3) + 0.1
    return rp.QueryList(rp.Domain.from_sizes({"cell": n}), rows, names, targets)


def dearest_pair(integers: np.ndarray) -> int:
    columns = integers.T.tolist()
    return max(
        sum((a - b) ** 2 for a, b in zip(u, v, strict=True)) for u in columns for v in columns
    )


def best_ratio(queries: rp.QueryList, *, mean: bool) -> float:
    """The smallest largest (or mean) ratio of any Gaussian mechanism, at a cost of 1 for all pairs.

    The number of records is known: only what is beside it has to be measured.
    """
    n = queries.n_cells
    beside = np.linalg.svd(np.eye(n) - 1 / n)[0][:, : n - 1]
    precision = cp.Variable((n - 1, n - 1), PSD=True)
    rows = queries.coefficients @ beside / queries.targets[:, None]
    rows = [row for row in rows if np.any(np.abs(row) > 1e-12)]
    ratios = cp.hstack([cp.matrix_frac(row, precision) for row in rows])
    pairs: list[cp.Constraint] = [
        cp.quad_form(beside[u] - beside[v], precision) <= 1 for u in range(n) for v in range(u)
    ]
    loss = cp.sum(ratios) / len(queries) if mean else cp.max(ratios)
    problem = cp.Problem(cp.Minimize(loss), pairs)
    problem.solve(solver="CLARABEL")
    return float(np.asarray(problem.value, dtype=float))


@pytest.mark.parametrize("objective", ["largest", "sum"])
def test_plans_are_the_best_there_are_and_within_the_budget(objective):
    for seed in range(6):
        queries = random_list(seed)
        plan = rp.Plan.parse(query_plan(queries, budget=BUDGET, objective=objective).text)
        own = plan.part("counts")
        assert rp.verify(plan).holds
        cost = dearest_pair(own.strategy.integers) / own.gamma_squared
        assert own.exact_privacy_cost == cost <= 1
        best = best_ratio(queries, mean=objective == "sum")
        assert own.certificate.loss_value == pytest.approx(best, rel=2e-3)
        assert own.certificate.lower_bound <= best * (1 + 1e-5)
        assert own.certificate.gap < 2e-3


def test_the_number_of_records_costs_nothing():
    domain = rp.Domain.from_sizes({"sex": 2})
    both = rp.QueryList(
        domain, np.array([[1, 1], [0, 1]]), ("everybody", "women"), np.array([1, 1])
    )
    one = rp.QueryList(domain, np.array([[0, 1]]), ("women",), np.array([1]))
    plans = [query_plan(queries, budget=BUDGET) for queries in (both, one)]
    assert plans[0].standard_errors[0] == 0
    assert plans[0].standard_errors[1] == pytest.approx(plans[1].standard_errors[0], rel=1e-4)
    with pytest.raises(PlanError, match="multiples of the number of records"):
        query_plan(
            rp.QueryList(domain, np.array([[1, 1]]), ("everybody",), np.array([1])), budget=BUDGET
        )


def test_an_optimum_for_added_records_plans_for_replaced_ones():
    queries = random_list(4)
    optimum = query_optimum(queries)
    assert optimum.at(BUDGET).text == query_plan(queries, budget=BUDGET).text
    again = query_optimum(queries, replaces=True).at(rp.Budget(rho="0.5"))
    assert again.exact_privacy_cost == optimum.at(rp.Budget(rho="0.5")).exact_privacy_cost


def test_what_cannot_be_planned_is_refused():
    queries = random_list(1)
    with pytest.raises(PlanError, match="neighbours that add or remove a record"):
        query_plan(queries, budget=BUDGET, free=queries.names[:1])
    with pytest.raises(PlanError, match="neighbours that add or remove a record"):
        query_plan(queries, budget=BUDGET, objective="targets-then-sum")
    many = rp.QueryList(
        rp.Domain.from_sizes({"age": 65}), np.arange(65)[None], ("sum of ages",), np.array([1])
    )
    with pytest.raises(PlanError, match="at most 64 groups of cells"):
        query_plan(many, budget=BUDGET)


def test_a_plan_that_charges_too_little_is_noticed():
    plan = rp.Plan.of(query_plan(random_list(2), budget=BUDGET))
    own = plan.part("counts")
    cheaper = replace(plan, parts=(replace(own, gamma_squared=own.gamma_squared / 2),))
    assert not rp.verify(cheaper).holds
