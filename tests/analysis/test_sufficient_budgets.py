"""The smallest budgets that are enough: they are, and hardly less is not."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.analysis import sufficient_budgets as budgets
from rpexplore.analysis.sufficient_budgets import (
    smallest_query_budget,
)
from rpexplore.errors import BudgetError, WorkloadError
from rpexplore.planning.counts_planner import query_optimum
from rpexplore.planning.mechanism.accounting import ExactVariances
from rpexplore.planning.minimum_budget import rho_of_unit
from rpexplore.planning.planner import optimum, plan_tables
from rpexplore.privacy.conversions import epsilon_from_rho
from tests.planning.test_counts_plan import query_lists
from tests.support.query_lists import prefix, query_list
from tests.support.strategies import workloads

LOSSES = [rp.SumOfVariances(), rp.MaxVariance(), rp.MaxVariance("target")]
PRESENT = [
    rp.Budget(rho="0.1"),
    rp.Budget(rho="1/3", max_records_per_person=3),
    rp.Budget(epsilon=1, delta="1e-9"),
    rp.Budget(mu="0.5", max_records_per_person=2),
    rp.Budget(privacy_cost=7),
]


@pytest.fixture(scope="module")
def workload():
    domain = rp.Domain.from_sizes({"age": 10, "sex": 2, "region": 5})
    tables = rp.Workload.all_up_to(domain, 2)
    return rp.Workload(domain, tables.members, tables.weights, np.linspace(3, 9, len(tables)))


def meets_exactly(plan):
    """Whether each standard error is at most its target, in integer arithmetic."""
    exact = ExactVariances.of(plan.closure, plan.sigma_squared)
    targets = plan.workload.targets.tolist()
    return all(
        exact.fraction(row) <= Fraction(target) ** 2
        for row, target in enumerate(targets)
        if not math.isnan(target)
    )


@pytest.mark.parametrize("present", PRESENT, ids=repr)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_the_smallest_budget_meets_all_targets_and_less_does_not(workload, loss, present):
    solved = optimum(workload, loss=loss)
    result = budgets.smallest_budget(solved, present)
    for enough in (
        result.budget,
        rp.Budget(rho=result.rho, max_records_per_person=present.max_records_per_person),
    ):
        assert meets_exactly(plan_tables(workload, loss=loss, budget=enough))
    assert result.budget.stated[0][0] in ("rho", present.stated[0][0])
    assert result.budget.stated_delta == present.stated_delta
    assert result.budget.unit == present.unit
    needed = Fraction(result.needed)
    assert needed < Fraction(result.rho) < needed * (1 + Fraction(2, 10**4))
    assert result.budget.rho < needed * (1 + Fraction(1, 10**3))
    less = rp.Budget(
        rho=needed * Fraction(999, 1000), max_records_per_person=present.max_records_per_person
    )
    assert not meets_exactly(plan_tables(workload, loss=loss, budget=less))
    assert result.times == pytest.approx(result.needed / float(present.rho))


def test_an_epsilon_that_is_enough_is_the_one_that_the_noise_proves(workload):
    wide = rp.Workload(workload.domain, workload.members, workload.weights, 20 * workload.targets)
    solved, stated = optimum(wide, loss=LOSSES[0]), rp.Budget(epsilon=1, delta="1e-6")
    enough = budgets.smallest_budget(solved, stated)
    assert enough.budget.stated_epsilon is not None
    epsilon = float(enough.budget.stated_epsilon)
    # By ρ alone some 7 % more.
    assert epsilon < 0.95 * epsilon_from_rho(Fraction(enough.rho), "1e-6")
    plan = plan_tables(wide, loss=LOSSES[0], budget=enough.budget)
    assert meets_exactly(plan)
    assert 0 <= 1 - plan.epsilon("1e-6") / epsilon < 1e-6
    assert not meets_exactly(
        plan_tables(wide, loss=LOSSES[0], budget=rp.Budget(epsilon=0.999 * epsilon, delta="1e-6"))
    )
    # The plan itself keeps it, whose noise is not planned again.
    assert rp.verify(solved.at(enough.budget)).holds


@given(workloads(with_targets=True), st.sampled_from(PRESENT))
@settings(deadline=None, max_examples=40)
def test_aimed_at_the_targets_it_is_the_smallest_of_all(workload, present):
    by_shortfall = optimum(workload, loss=rp.MaxVariance("target"))
    least = budgets.smallest_budget(by_shortfall, present)
    assert meets_exactly(by_shortfall.at(least.budget))
    below = rho_of_unit(by_shortfall.solution.lower_bound, present.max_records_per_person)
    assert below <= least.needed <= below * (1 + 1e-6)
    for loss in LOSSES[:2]:
        other = budgets.smallest_budget(optimum(workload, loss=loss), present)
        assert other.needed >= below


def test_tables_without_a_target_ask_for_nothing(workload):
    some = workload.with_targets(dict.fromkeys(workload.tables[1:]))
    needs = budgets.needed_rho(optimum(some, loss=rp.SumOfVariances()), PRESENT[0])
    assert np.isnan(needs[1:]).all()
    assert needs[0] > 0
    none = workload.with_targets(dict.fromkeys(workload.tables))
    with pytest.raises(WorkloadError, match="No table has a target"):
        budgets.smallest_budget(optimum(none, loss=rp.SumOfVariances()), PRESENT[0])


@pytest.mark.parametrize("present", PRESENT, ids=repr)
@pytest.mark.parametrize("wanted", [0.03, 5.0, 1e4])
def test_a_wanted_standard_error_comes_true(workload, present, wanted):
    solved = optimum(workload, loss=rp.SumOfVariances())
    result = budgets.budget_for_error(float(solved.mean_variances[4]), wanted, present)
    assert solved.at(result.budget).standard_errors[4] <= wanted
    assert solved.at(result.budget).standard_errors[4] > wanted * (1 - 1e-3)


@pytest.mark.parametrize("wanted", [0.0, -1.0, float("nan"), 1e-80, 1e80])
def test_what_cannot_be_had_is_refused(workload, wanted):
    solved = optimum(workload, loss=rp.SumOfVariances())
    with pytest.raises(BudgetError, match=r"above 0|cannot be planned with"):
        budgets.budget_for_error(float(solved.mean_variances[0]), wanted, PRESENT[0])


def test_a_budget_whose_epsilon_would_be_0_is_stated_in_rho():
    present = rp.Budget(epsilon=1, delta="1e-6", max_records_per_person=2)
    result = budgets.budget_for_error(1.0, 1e7, present)
    assert result.budget.stated[0][0] == "rho"
    assert result.budget.unit == present.unit
    assert result.needed <= result.budget.rho <= result.needed * 1.001
    assert f"ρ = {result.rho} (ε = 0 at δ = 1e-6)" == result.text


def test_the_target_that_is_out_of_reach_is_named(workload):
    greedy = workload.with_targets({("age", "sex"): 1e-60})
    with pytest.raises(
        BudgetError,
        match=r"^The target 1e-60 of age × sex would take .* choose a larger standard error",
    ):
        budgets.smallest_budget(optimum(greedy, loss=rp.SumOfVariances()), PRESENT[0])
    with pytest.raises(BudgetError, match="choose a smaller standard error"):
        budgets.budget_for_error(1.0, 1e80, PRESENT[0])


def test_in_words():
    present = rp.Budget(rho="0.1")
    # epsilon(rho = 0.4, delta = 1e-6) = 4.6044, rounded up
    more = budgets.sufficient_budget(0.4 / (1 + 2e-8), present)
    assert more.text == "ρ = 0.4 (ε = 4.61 at δ = 1e-6)"
    assert more.compared == "4 times the current ρ"
    assert budgets.sufficient_budget(0.1, present).compared == "the current budget"
    less = budgets.sufficient_budget(0.025, present)
    assert less.rho == "0.025001"
    assert less.compared == "25 % of the current ρ"


OF_QUERIES = [
    rp.Budget(rho="0.1"),
    rp.Budget(rho="1/3", max_records_per_person=3),
    rp.Budget(epsilon=1, delta="1e-9"),
    rp.Budget(mu="0.5", max_records_per_person=2),
]


@given(query_lists(), st.sampled_from(OF_QUERIES))
@settings(deadline=None, max_examples=21)
def test_all_targets_are_met_and_with_less_they_are_not(queries, present):
    optimum = query_optimum(queries)
    result = smallest_query_budget(optimum, present)
    person = present.max_records_per_person
    for enough in (result.budget, rp.Budget(rho=result.rho, max_records_per_person=person)):
        plan = optimum.at(enough)
        assert plan.met.all()
        assert plan.ratio <= 1
        # Within the digits that people type, and the budget's own rounding.
        assert plan.ratio > 1 - 1e-3
    assert result.budget.unit == present.unit
    less = rp.Budget(
        rho=Fraction(result.needed) * Fraction(9999, 10000), max_records_per_person=person
    )
    assert not optimum.at(less).met.all()
    least = rho_of_unit(optimum.lower_bound, person)
    assert least <= result.needed * (1 + 1e-9)
    assert result.needed <= least * (1 + 1.3e-3)


def test_a_person_with_several_records_needs_as_many_times_more_squared():
    optimum = query_optimum(query_list(prefix(4)))
    one, three = (
        smallest_query_budget(optimum, rp.Budget(rho=1, max_records_per_person=records))
        for records in (None, 3)
    )
    assert three.needed == pytest.approx(9 * one.needed, rel=1e-12)
    assert one.needed == pytest.approx(1.7591 / 2, rel=1e-3), "FFU Table 2"


def test_targets_out_of_reach_are_named():
    queries = query_list(1e6 * np.eye(2), [1e-9, 1])
    optimum = query_optimum(queries)
    present = rp.Budget(rho=1, max_records_per_person=10**40)
    with pytest.raises(BudgetError, match="The target 1e-09 of the own count 'query 1' would take"):
        smallest_query_budget(optimum, present)
