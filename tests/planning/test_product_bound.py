"""The bound on replaced records where amounts are nearly products: against all differences."""

import itertools

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.planning.mechanism.accounting import replacement_cost
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.product_bound import product_bound


def dearest(closure: Closure, amounts: np.ndarray) -> float:
    """The largest Σ a (1 − ∏ y) of all D, one by one."""
    n, found = len(closure.sizes), 0.0
    for inside in itertools.product([False, True], repeat=n):
        y = np.where(inside, -1 / np.maximum(closure.sizes - 1.0, 1.0), 1.0)
        found = max(
            found, np.sum(amounts * (1 - np.prod(np.append(y, 1.0)[closure.members], axis=1)))
        )
    return float(found)


def closure_of(rng: np.random.Generator, order: int) -> Closure:
    sizes = {f"a{index}": int(rng.integers(2, 9)) for index in range(int(rng.integers(order, 8)))}
    return Closure.of(rp.Workload.all_up_to(rp.Domain.from_sizes(sizes), order))


@pytest.mark.parametrize("order", [2, 3])
def test_no_difference_costs_more_whatever_the_amounts(order):
    rng, ratios = np.random.default_rng(order), []
    for _ in range(15):
        closure = closure_of(rng, order)
        amounts = np.exp(2 * rng.normal(size=len(closure)))
        amounts[rng.random(len(closure)) < 0.3] = 0.0
        bound = product_bound(closure.members, closure.sizes, amounts)
        ratios.append(bound / dearest(closure, amounts))
    assert min(ratios) >= 1
    assert np.median(ratios) < 1.3


@pytest.mark.parametrize("order", [2, 3])
def test_of_products_the_bound_is_nearly_the_cost_of_the_dearest(order):
    rng = np.random.default_rng(10 + order)
    for _ in range(15):
        closure = closure_of(rng, order)
        factors = np.append(np.exp(rng.normal(size=len(closure.sizes)) / 2), 1.0)
        amounts = np.prod(factors[closure.members], axis=1)
        bound = product_bound(closure.members, closure.sizes, amounts)
        assert 1 <= bound / dearest(closure, amounts) < 1.1


def test_what_is_left_of_amounts_counts_as_where_all_attributes_differ(monkeypatch):
    """Of amounts that are products but for a part of either sign: closer, and never below."""
    rng, closer = np.random.default_rng(5), 0
    for _ in range(25):
        closure = closure_of(rng, 3)
        factors = np.append(np.exp(rng.normal(size=len(closure.sizes)) / 8), 1.0)
        amounts = np.prod(factors[closure.members], axis=1)
        amounts *= 1 + 0.2 * rng.uniform(-1, 1, len(amounts))
        cost = dearest(closure, amounts)
        bound = product_bound(closure.members, closure.sizes, amounts)
        assert bound >= cost
        with monkeypatch.context() as patch:
            patch.setattr(f"{product_bound.__module__}._near_all", lambda *_: np.inf)
            without = product_bound(closure.members, closure.sizes, amounts)
        assert bound <= without
        closer += bound < without * (1 - 1e-3)
    assert closer >= 5


def test_residuals_of_four_attributes_have_no_such_bound():
    closure = Closure.of(rp.Workload.all_up_to(rp.Domain.from_sizes(dict.fromkeys("abcd", 3)), 4))
    assert product_bound(closure.members, closure.sizes, np.ones(len(closure))) == np.inf


def test_a_plan_for_attributes_of_many_sizes_is_charged_what_a_replacement_costs():
    sizes = {f"a{index}": 2 + index % 28 for index in range(40)}
    workload = rp.Workload.all_up_to(rp.Domain.from_sizes(sizes), 3)
    budget = rp.Budget(rho="0.5", neighbours="replace")
    plan = rp.plan(workload, loss=rp.SumOfVariances(), budget=budget).part("tables")
    most, found = replacement_cost(plan.closure, plan.sigma_squared)
    assert found <= most < found * (1 + 2e-3)  # 24 % by the groups alone
    assert plan.certificate.gap < 3e-3
    assert rp.verify(plan).holds


def test_amounts_far_apart_have_a_bound_or_none():
    """Many orders of magnitude apart, in few tables, the bound was no number."""
    rng = np.random.default_rng(1)
    closure = Closure.of(
        rp.Workload.of(rp.Domain.from_sizes(dict.fromkeys("abc", 3)), [("a", "b", "c")])
    )
    for span in (3, 12, 200):
        for _ in range(6):
            amounts = 10 ** rng.uniform(0, span, len(closure))
            amounts[rng.random(len(closure)) < 0.3] = 0.0
            bound = product_bound(closure.members, closure.sizes, amounts)
            assert bound >= dearest(closure, amounts)
