"""Exact accounting: never below the truth, and within the budget whatever the inputs."""

from fractions import Fraction
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.common.numbers import Decimals
from rpexplore.planning.mechanism.accounting import ExactVariances, privacy_cost_upper_bound
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.planner import optimum, plan_tables
from tests.support.generalised import any_strategies, workloads_with_bases
from tests.support.strategies import budgets, domains, losses, workloads

SCALES = st.tuples(st.integers(1, 10**18 - 1), st.integers(-40, 25))


def noise_scales(closure: Closure) -> st.SearchStrategy[Decimals]:
    """Any σ² of the residuals, over 65 powers of ten."""
    pairs = st.lists(SCALES, min_size=len(closure), max_size=len(closure))
    return pairs.map(lambda listed: Decimals(*np.array(listed, dtype=np.int64).T))


def exact_cost(closure, sigma_squared):
    sizes = closure.sizes.tolist()
    return sum(
        prod((Fraction(sizes[i] - 1, sizes[i]) for i in closure.attributes(index)), start=1)
        / sigma_squared.fraction(index)
        for index in range(len(closure))
    )


def exact_variance(closure, table, attributes, sigma_squared):
    """docs/mathematics.md §3.2, third row, in Fractions."""
    sizes = closure.sizes.tolist()
    total = Fraction(0)
    for residual in closure.subsets(table).tolist():
        inside = closure.attributes(residual)
        factor = prod((Fraction(sizes[i] - 1, sizes[i]) for i in inside), start=Fraction(1))
        factor *= prod(Fraction(1, sizes[j] ** 2) for j in attributes if j not in inside)
        total += sigma_squared.fraction(residual) * factor
    return total


@given(workloads(domains(max_size=10**6)), st.data())
@settings(deadline=None, max_examples=60)
def test_cost_is_the_exact_sum_rounded_up(workload, data):
    closure = Closure.of(workload)
    sigma_squared = data.draw(noise_scales(closure))
    bound, exact = (
        privacy_cost_upper_bound(closure, sigma_squared),
        exact_cost(closure, sigma_squared),
    )
    assert exact <= bound <= exact * (1 + Fraction(1, 10**25))


@given(workloads(domains(max_size=10**6)), st.data())
@settings(deadline=None, max_examples=40)
def test_variances_are_exact(workload, data):
    closure = Closure.of(workload)
    sigma_squared = data.draw(noise_scales(closure))
    recomputed = ExactVariances.of(closure, sigma_squared)
    rows = [[index for index in row if index >= 0] for row in workload.members.tolist()]
    exact = [
        exact_variance(closure, t, attributes, sigma_squared) for t, attributes in enumerate(rows)
    ]
    assert [recomputed.fraction(table) for table in range(len(rows))] == exact
    stated = np.array([float(variance) for variance in exact])
    tight = Fraction(1, 2**52)
    assert recomputed.differing(stated, tight).tolist() == []
    stated[0] *= 1 + 1e-11
    assert recomputed.differing(stated, Fraction(1, 10**12)).tolist() == [0]
    stated[0] *= 1 - 2e-11
    assert recomputed.differing(stated, Fraction(1, 10**12)).tolist() == [0]


@given(
    workloads(domains(max_size=10**6), weights=st.floats(1e-12, 1e12)),
    losses(),
    budgets(),
)
@settings(deadline=None, max_examples=150)
def test_plans_use_the_budget_and_never_more(workload, loss, budget):
    plan = plan_tables(workload, loss=loss, budget=budget)
    # Of an (ε, δ) what its noise proves to be enough.
    budget, most = plan.budget, budget.largest.privacy_cost
    record_cost = exact_cost(plan.closure, plan.sigma_squared)
    assert record_cost <= budget.record_privacy_cost
    assert record_cost * budget.records_factor <= plan.exact_privacy_cost
    assert plan.exact_privacy_cost <= budget.privacy_cost <= most
    assert record_cost >= budget.record_privacy_cost * (1 - Fraction(1, 10**9))


@pytest.mark.parametrize(
    "cost",
    [
        *("1", "3", "0.1", "1/3", "1/7", "1e-90", "1e-30", "1e28", "1e32", "1e90"),
        *("0.9999999999999999999999999999", "1.0000000000000000000001"),
    ],
)
def test_budgets_on_the_edge_of_rounding(cost):
    domain = rp.Domain.from_sizes({"a": 3, "b": 2})
    for tables in ([()], [("a", "b"), ()]):
        plan = plan_tables(
            rp.Workload.of(domain, tables),
            loss=rp.SumOfVariances(),
            budget=rp.Budget(privacy_cost=cost),
        )
        spent, allowed = exact_cost(plan.closure, plan.sigma_squared), plan.budget.privacy_cost
        assert allowed * (1 - Fraction(1, 10**9)) <= spent <= allowed


# ---- attributes in other bases than single values


@given(workloads_with_bases(), budgets(), losses(), st.integers(0, 2**32))
@settings(deadline=None, max_examples=60)
def test_plans_of_any_bases_use_the_budget_and_never_more(workload, budget, loss, seed):
    """p is a product of exact squared column norms, here in Fractions from the integers."""
    strategies = any_strategies(workload, seed)
    plan = optimum(workload, loss=loss, strategies=strategies).at(budget)
    factors = [Fraction(n - 1, n) for n in workload.domain.sizes.tolist()]
    for index, strategy in strategies.items():
        columns = strategy.integers.T.tolist()
        largest = max(sum(entry**2 for entry in column) for column in columns)
        factors[index] = Fraction(largest, 4**strategy.bits)
    cost = Fraction(0)
    for residual in range(len(plan.closure)):
        p = prod((factors[i] for i in plan.closure.attributes(residual)), start=Fraction(1))
        assert plan.closure.privacy_cost_factor[residual] == pytest.approx(float(p), rel=1e-14)
        cost += p / plan.sigma_squared.fraction(residual)
    assert cost <= budget.record_privacy_cost
    assert cost * budget.records_factor <= plan.exact_privacy_cost <= budget.privacy_cost
    assert cost >= budget.record_privacy_cost * (1 - Fraction(1, 10**9))
