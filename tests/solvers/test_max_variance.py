"""The largest variance: against CVXPY, with an honest certificate, for wild weights too."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.closure import Closure
from rpexplore.solvers.max_variance import minimise_maximum
from tests.oracles import convex_optimum, random_workload
from tests.strategies import domains, workloads


@pytest.mark.parametrize("relative_to", ["importance", "target"])
@pytest.mark.parametrize("seed", range(12))
def test_equals_convex_optimum_and_certificate_is_honest(seed, relative_to):
    workload, loss = random_workload(seed), rp.MaxVariance(relative_to)
    plan = rp.plan(workload, loss=loss, budget=rp.Budget(privacy_cost=0.3))
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
    needed = rp.plan(workload, loss=loss, budget=rp.Budget(privacy_cost=1)).loss_value
    plan = rp.plan(workload, loss=loss, budget=rp.Budget(privacy_cost=needed))
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
    other = np.random.default_rng(seed).lognormal(0, 2, len(closure))
    other *= np.sum(closure.privacy_cost_factor / other) / 2.0  # at the same privacy cost
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
