"""The largest variance: against CVXPY, with an honest certificate, for wild weights too."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.solvers.largest_variance import minimise_maximum
from rpexplore.planning.solvers.solution import minimise_sum
from tests.support.oracles import convex_optimum, noise_of_cost, random_workload, variance_matrix
from tests.support.strategies import domains, workloads


@pytest.mark.by_day(6)
@pytest.mark.parametrize("relative_to", ["weight", "target"])
@pytest.mark.parametrize("seed", range(12))
def test_equals_convex_optimum_and_certificate_is_honest(seed, relative_to):
    workload, loss = random_workload(seed), rp.MaxVariance(relative_to)
    plan = plan_tables(workload, loss=loss, budget=rp.Budget(privacy_cost=0.3))
    optimum, _ = convex_optimum(workload, loss.table_weights(workload), 0.3, largest=True)
    solver = 1e-7  # how well CVXPY knows its own optimum
    assert plan.loss_value == pytest.approx(optimum, rel=1e-5)
    assert plan.certificate.lower_bound * (1 - solver) <= optimum
    assert optimum <= plan.loss_value * (1 + solver)
    assert plan.certificate.gap <= 1e-6


def test_targets_are_met_exactly_when_the_loss_is_at_most_one():
    domain = rp.Domain.from_sizes({"a": 4, "b": 5})
    workload = rp.Workload.of(domain, ["a", ("a", "b")], targets=[2, 3])
    loss = rp.MaxVariance("target")
    needed = plan_tables(workload, loss=loss, budget=rp.Budget(privacy_cost=1)).loss_value
    plan = plan_tables(workload, loss=loss, budget=rp.Budget(privacy_cost=needed))
    assert plan.loss_value == pytest.approx(1, rel=1e-6), "the loss scales as 1 / budget"
    assert np.all(plan.standard_errors <= workload.targets * (1 + 1e-6))


@pytest.mark.parametrize("seed", range(4))
def test_shadow_prices_are_elasticities(seed):
    workload = random_workload(seed)
    closure, weights, step = Closure.of(workload), workload.weights, 1e-3

    def best(weights):
        return minimise_maximum(closure, weights, 1.0, tolerance=1e-11, max_rounds=50_000)

    prices = best(weights).shadow_prices
    assert np.sum(prices) == pytest.approx(1, rel=1e-12)
    assert np.all(prices >= 0)
    for table in range(len(workload)):
        moved = np.exp([[step], [-step]] * np.eye(len(workload))[table])
        bounds = [best(weights * factor).lower_bound for factor in moved]
        slope = np.log(bounds[0] / bounds[1]) / (2 * step)
        assert slope == pytest.approx(prices[table], abs=2e-3)


@given(workloads(), st.integers(0, 2**32))
@settings(deadline=None, max_examples=40)
def test_bound_holds_for_any_noise_scales(workload, seed):
    closure = Closure.of(workload)
    solution = minimise_maximum(closure, workload.weights, 2.0)
    other = noise_of_cost(closure, 2.0, seed)
    assert solution.lower_bound <= np.max(workload.weights * closure.variances(other))


wild_weights = st.floats(-12, 12).map(lambda power: 10**power)


@given(workloads(domains(max_size=10**6), weights=wild_weights, max_tables=10))
@settings(deadline=None, max_examples=100)
def test_gap_is_closed_for_wild_weights_and_sizes(workload):
    solution = minimise_maximum(Closure.of(workload), workload.weights, 1.0)
    closure = Closure.of(workload)
    value = np.max(workload.weights * closure.variances(solution.sigma_squared))
    assert 0 < solution.lower_bound <= value <= solution.lower_bound * (1 + 1e-6)
    cost = np.sum(closure.privacy_cost_factor / solution.sigma_squared)
    assert cost == pytest.approx(1, rel=1e-10)


# ---- the same with a sum of fixed weights added


def mixed_value(workload, variances, fixed, weights):
    return np.sum(fixed * variances) + np.max(weights * variances)


def convex_optimum_of_mix(workload, fixed, weights, privacy_cost):
    """The smallest Σ fixed · Var + max weights · Var, by CVXPY."""
    b, p = variance_matrix(workload)
    unit = np.sqrt(p / (b.T @ (fixed + weights)))
    unit *= np.sum(p / unit) / privacy_cost
    scaled = cp.Variable(len(p), pos=True)
    variances = (b * unit) @ scaled
    scale = 1 / mixed_value(workload, b @ unit, fixed, weights)
    problem = cp.Problem(
        cp.Minimize(
            cp.sum(cp.multiply(scale * fixed, variances))
            + cp.max(cp.multiply(scale * weights, variances))
        ),
        [(p / unit / privacy_cost) @ cp.inv_pos(scaled) <= 1],
    )
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    assert problem.status == cp.OPTIMAL
    return problem.value / scale


@pytest.mark.parametrize("share", [0.003, 0.1, 0.5, 0.97])
@pytest.mark.parametrize("seed", range(6))
def test_with_fixed_weights_it_equals_the_convex_optimum(seed, share):
    workload = random_workload(seed)
    closure = Closure.of(workload)
    fixed = (1 - share) * workload.cells / np.sum(workload.cells)
    weights = share * workload.weights
    held = closure.residual_weights(fixed)
    solution = minimise_maximum(closure, weights, 0.3, fixed_weights=held)
    reached = mixed_value(workload, closure.variances(solution.sigma_squared), fixed, weights)
    optimum = convex_optimum_of_mix(workload, fixed, weights, 0.3)
    solver = 1e-7  # how well CVXPY knows its own optimum
    assert solution.lower_bound <= optimum * (1 + solver)
    assert optimum <= reached * (1 + solver)
    assert reached <= solution.lower_bound * (1 + 1e-6)
    assert np.sum(solution.shadow_prices) == pytest.approx(1, rel=1e-12)


@given(workloads(), st.floats(0, 1), st.integers(0, 2**32))
@settings(deadline=None, max_examples=40)
def test_the_bound_with_fixed_weights_holds_for_any_noise_scales(workload, share, seed):
    closure = Closure.of(workload)
    fixed, weights = (1 - share) * workload.cells, share * workload.weights + 1e-9
    held = closure.residual_weights(fixed)
    solution = minimise_maximum(closure, weights, 2.0, fixed_weights=held)
    other = np.random.default_rng(seed).lognormal(0, 2, len(closure))
    other *= np.sum(closure.privacy_cost_factor / other) / 2.0  # at the same privacy cost
    value = mixed_value(workload, closure.variances(other), fixed, weights)
    assert solution.lower_bound <= value
    reached = mixed_value(workload, closure.variances(solution.sigma_squared), fixed, weights)
    assert solution.lower_bound <= reached <= solution.lower_bound * (1 + 1e-6)


def test_fixed_weights_of_nothing_change_nothing():
    workload = random_workload(3)
    closure = Closure.of(workload)
    alone = minimise_maximum(closure, workload.weights, 1.0)
    beside = minimise_maximum(closure, workload.weights, 1.0, fixed_weights=np.zeros(len(closure)))
    np.testing.assert_allclose(alone.sigma_squared, beside.sigma_squared, rtol=1e-6)
    assert beside.lower_bound == pytest.approx(alone.lower_bound, rel=1e-6)
    held = closure.residual_weights(workload.weights)
    both = minimise_maximum(closure, 1e-9 * workload.weights, 1.0, fixed_weights=held)
    assert both.lower_bound == pytest.approx(
        minimise_sum(closure, workload.weights, 1.0).lower_bound, rel=1e-6
    )
