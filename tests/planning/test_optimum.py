"""Optimum: solved once, good for every budget."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.errors import BudgetError, PlanError
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.planner import optimum, plan_tables
from rpexplore.planning.solvers.solution import share_done
from tests.support.strategies import workloads

LOSSES = [rp.SumOfVariances(), rp.SumOfVariances("cells"), rp.MaxVariance()]
BUDGETS = ["0.001", "0.1", "1/3", "7"]


@pytest.mark.by_day(1)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@given(workload=workloads(), rho=st.sampled_from(BUDGETS), person=st.sampled_from([None, 3]))
def test_the_plan_at_a_budget_is_the_plan_of_that_budget(loss, workload, rho, person):
    budget = rp.Budget(rho=rho, max_records_per_person=person)
    solved = optimum(workload, loss=loss)
    plan = solved.at(budget)
    assert plan.text == plan_tables(workload, loss=loss, budget=budget).text
    assert rp.verify(plan).holds
    # Rounding of the noise scales to 12 digits is all that lies between them.
    np.testing.assert_allclose(solved.standard_errors(budget), plan.standard_errors, rtol=1e-11)


def test_a_closure_of_the_same_tables_can_be_shared():
    domain = rp.Domain.from_sizes({"age": 10, "sex": 2, "region": 5})
    workload = rp.Workload.all_up_to(domain, 2)
    weighted = workload.with_weights({("age", "sex"): 3})
    closure = Closure.of(workload)
    shared = optimum(weighted, loss=rp.MaxVariance(), closure=closure)
    assert shared.closure is closure
    own = optimum(weighted, loss=rp.MaxVariance())
    np.testing.assert_array_equal(shared.mean_variances, own.mean_variances)


def test_the_solver_tells_how_far_it_is_and_can_be_stopped():
    domain = rp.Domain.from_sizes({f"a{i}": i + 2 for i in range(6)})
    workload = rp.Workload.all_up_to(domain, 3).with_weights({("a0", "a1"): 50})
    shares = []
    solved = optimum(
        workload, loss=rp.MaxVariance(), on_progress=lambda _, share: shares.append(share)
    )
    assert len(shares) > 1
    assert shares == sorted(shares)
    assert share_done(solved.at(rp.Budget(rho=1)).certificate.gap) > shares[-1]

    class Stopped(Exception):
        pass

    def stop(doing, share):
        raise Stopped

    with pytest.raises(Stopped):
        optimum(workload, loss=rp.MaxVariance(), on_progress=stop)


@pytest.mark.parametrize("rho", ["1e-130", "1e-125"])
def test_a_budget_out_of_range_is_refused(rho):
    with pytest.raises(BudgetError, match="cannot be planned with"):
        rp.Budget(rho=rho)


# ---- losses whose best noise differs from budget to budget


def held_to_targets() -> rp.Workload:
    domain = rp.Domain.from_sizes({"a": 4, "b": 9})
    return rp.Workload.of(
        domain, ["a", "b", ("a", "b")], targets=[2, 3, 5], required=[True, False, False]
    )


UNLIKE = [rp.SumWithinTargets(), rp.MaxWithinTargets()]


@pytest.mark.parametrize("loss", UNLIKE, ids=repr)
def test_a_loss_that_is_not_homogeneous_needs_a_budget(loss):
    workload = held_to_targets()
    with pytest.raises(PlanError, match=r"best plan of one budget .*say which budget it is for"):
        optimum(workload, loss=loss)
    assert not loss.is_homogeneous


@pytest.mark.parametrize("loss", UNLIKE, ids=repr)
@pytest.mark.parametrize("person", [None, 3])
def test_it_is_solved_for_one_budget_and_planned_for_that_alone(loss, person):
    workload = held_to_targets()
    budget = rp.Budget(rho=2, max_records_per_person=person)
    solved = optimum(workload, loss=loss, budget=budget)
    plan = solved.at(budget)
    assert plan.text == plan_tables(workload, loss=loss, budget=budget).text
    np.testing.assert_allclose(solved.standard_errors(budget), plan.standard_errors, rtol=1e-11)
    cost = float(budget.record_privacy_cost)
    np.testing.assert_allclose(solved.mean_variances / cost, plan.mean_variances, rtol=1e-11)
    with pytest.raises(PlanError, match=r"best plan of one budget .*; plan again for this one"):
        solved.at(rp.Budget(rho=3, max_records_per_person=person))
    # Another way to say the same is the same budget.
    same = rp.Budget(privacy_cost=4, max_records_per_person=person)
    assert same.record_privacy_cost == budget.record_privacy_cost
    np.testing.assert_array_equal(solved.at(same).mean_variances, plan.mean_variances)


def test_scaled_to_another_budget_its_errors_are_those_of_a_plan_that_is_not_the_best():
    workload, loss = held_to_targets(), rp.SumWithinTargets()
    solved = optimum(workload, loss=loss, budget=rp.Budget(rho="0.2"))
    more = rp.Budget(rho=2)
    scaled, best = solved.standard_errors(more), plan_tables(workload, loss=loss, budget=more)
    assert best.loss_value < np.sum(loss.table_weights(workload) * scaled**2) * 0.99
