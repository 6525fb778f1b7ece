"""The smallest budget for hard targets: against a conic solver, and against finite differences."""

from dataclasses import replace

import cvxpy
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.errors import OutOfReachError, WorkloadError
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.planner import optimum, plan_tables
from tests.support.strategies import workloads


def with_targets(workload, seed, share):
    """The workload with targets on some tables, of which about half are required."""
    rng = np.random.default_rng(seed)
    count = len(workload)
    targets = np.where(rng.random(count) < share, np.exp(rng.normal(1, 0.7, count)), np.nan)
    targets[rng.integers(count)] = 3.0
    required = ~np.isnan(targets) & (rng.random(count) < 0.5)
    required[np.flatnonzero(~np.isnan(targets))[0]] = True
    return replace(workload, targets=targets, required=required)


def smallest_cost(workload, tables, unit):
    """min Σ p/σ² such that the variances of these tables are within their targets, by Clarabel.

    unit: σ² near the solution, so that the solver works at scale 1; it changes no digit
    """
    closure = Closure.of(workload)
    dense = np.array([closure.variances(row) for row in np.eye(len(closure))]).T[tables]
    used = np.any(dense > 0, axis=0)
    caps = workload.targets[tables] ** 2
    sizes = unit
    x = cvxpy.Variable(int(np.sum(used)), pos=True)
    scaled = dense[:, used] * sizes[used] / caps[:, None]
    cost = cvxpy.sum(cvxpy.multiply((closure.privacy_cost_factor / sizes)[used], cvxpy.inv_pos(x)))
    problem = cvxpy.Problem(cvxpy.Minimize(cost), [scaled @ x <= 1])
    problem.solve(solver=cvxpy.CLARABEL, tol_gap_rel=1e-10, tol_gap_abs=1e-12)
    return problem.value


@settings(max_examples=25, deadline=None)
@given(workloads(), st.integers(0, 2**32 - 1), st.floats(0.1, 1), st.booleans())
def test_the_smallest_budget_is_that_of_a_conic_solver(workload, seed, share, required_only):
    targeted = with_targets(workload, seed, share)
    minimum = rp.minimum_budget(targeted, required_only=required_only)
    tables = np.flatnonzero(targeted.required if required_only else ~np.isnan(targeted.targets))
    np.testing.assert_array_equal(minimum.tables, tables)
    wanted = smallest_cost(
        targeted, tables, minimum.point.solution.sigma_squared / minimum.record_privacy_cost
    )
    # The solver knows its optimum to about 1e-5 only; the certificate is much sharper.
    assert minimum.record_privacy_cost == pytest.approx(wanted, rel=2e-5)
    assert minimum.record_privacy_cost <= minimum.lower_bound * (1 + 1e-6)
    assert minimum.covers_all_tables == (len(tables) == len(targeted))
    assert np.sum(minimum.shares) == pytest.approx(1)
    assert not np.any(np.delete(minimum.shares, tables))


@settings(max_examples=15, deadline=None)
@given(workloads(), st.integers(0, 2**32 - 1))
def test_shares_are_what_a_slightly_wider_target_saves(workload, seed):
    targeted = with_targets(workload, seed, 0.6)
    minimum = rp.minimum_budget(targeted, tolerance=1e-10)
    step = 1e-4
    for table in minimum.tables.tolist()[:6]:
        wider, narrower = (
            rp.minimum_budget(_scaled(targeted, table, factor), tolerance=1e-10).record_privacy_cost
            for factor in (1 + step, 1 / (1 + step))
        )
        # An elasticity in the target's variance; where it has a kink, it lies between both sides.
        down = np.log(minimum.record_privacy_cost / wider) / np.log(1 + step) / 2
        up = np.log(narrower / minimum.record_privacy_cost) / np.log(1 + step) / 2
        assert down - 2e-4 <= minimum.shares[table] <= up + 2e-4
        assert minimum.saving_if_relaxed(step)[table] == pytest.approx(
            1 - wider / minimum.record_privacy_cost, abs=2e-7 + 3 * (up - down) * step
        )


def _scaled(workload, table, factor):
    targets = workload.targets.copy()
    targets[table] *= factor
    return replace(workload, targets=targets)


@settings(max_examples=15, deadline=None)
@given(workloads(), st.integers(0, 2**32 - 1))
def test_the_smallest_budget_meets_the_targets_and_less_does_not(workload, seed):
    targeted = with_targets(workload, seed, 0.7)
    minimum = rp.minimum_budget(targeted, required_only=True)
    assume(1e-6 < minimum.record_privacy_cost < 1e6)
    loss = rp.SumWithinTargets()
    enough = rp.Budget(privacy_cost=repr(minimum.record_privacy_cost * 1.001))
    plan = plan_tables(targeted, loss=loss, budget=enough)
    errors = plan.largest_standard_errors[targeted.required]
    assert np.all(errors <= targeted.targets[targeted.required] * (1 + 1e-9))
    with pytest.raises(OutOfReachError) as refused:
        optimum(
            targeted,
            loss=loss,
            budget=rp.Budget(privacy_cost=repr(minimum.record_privacy_cost * 0.5)),
        )
    assert refused.value.needed == pytest.approx(2, rel=1e-6)


def test_where_cells_differ_the_least_accurate_one_counts():
    domain = rp.Domain.from_sizes({"age": 12, "sex": 2, "region": 4})
    tables = rp.Workload.all_up_to(domain, 2).with_bases({"age": rp.Prefix()})
    targets = np.where(tables.orders == 2, 4.0, np.nan)
    targeted = replace(tables, targets=targets, required=~np.isnan(targets))
    minimum = rp.minimum_budget(targeted, required_only=True)
    plan = plan_tables(
        targeted,
        loss=rp.SumWithinTargets(),
        budget=rp.Budget(privacy_cost=repr(minimum.record_privacy_cost * 1.2)),
    )
    rows = np.flatnonzero(targeted.required).tolist()
    largest = [np.max(plan.cell_standard_errors(targeted.tables[row])) for row in rows]
    np.testing.assert_allclose(largest, 4, rtol=1e-3)  # no must is better than it has to be
    assert max(largest) <= 4 * (1 + 1e-9)
    # A typical cell of a running total is more accurate than that.
    assert np.min(plan.standard_errors[rows]) < 3.999


def test_without_targets_there_is_nothing_to_reach():
    tables = rp.Workload.all_up_to(rp.Domain.from_sizes({"age": 4, "sex": 2}), 1)
    with pytest.raises(WorkloadError, match="No table has a target; set targets"):
        rp.minimum_budget(tables)
    with pytest.raises(WorkloadError, match="No target is marked required"):
        rp.minimum_budget(tables.with_targets({("age",): 3}), required_only=True)


def test_the_budget_is_enough_and_hardly_more():
    domain = rp.Domain.from_sizes({"age": 10, "sex": 2, "region": 4})
    tables = rp.Workload.all_up_to(domain, 2).with_targets({"age": 20, ("age", "sex"): 33})
    tables = tables.with_required({("age",): True, ("age", "sex"): True})
    for unit in (None, 3):
        minimum = rp.minimum_budget(tables, max_records_per_person=unit)
        exact = minimum.record_privacy_cost * (unit or 1) ** 2 / 2
        assert minimum.rho == pytest.approx(exact, rel=1e-14)
        assert exact < minimum.budget.rho < exact * 1.001
        assert minimum.budget.max_records_per_person == unit
        plan = plan_tables(tables, loss=rp.SumWithinTargets(), budget=minimum.budget)
        assert np.nanmax(plan.largest_standard_errors / tables.targets) <= 1
        assert minimum.for_unit_of(rp.Budget(rho=1)).rho == pytest.approx(exact / (unit or 1) ** 2)


@pytest.mark.parametrize("target", [1e-155, 1e155])
def test_targets_that_nobody_could_mean_are_refused(target):
    domain = rp.Domain.from_sizes({"age": 10, "sex": 2})
    workload = rp.Workload.all_up_to(domain, 1).with_targets({"age": target})
    with pytest.raises(WorkloadError, match=r"table \(age\) must be a standard error of 1e-40"):
        rp.minimum_budget(workload)
