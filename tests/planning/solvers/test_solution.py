"""The closed form for sums of variances, against CVXPY and finite differences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.solvers.solution import minimise_sum
from tests.support.oracles import convex_optimum, noise_of_cost, random_workload
from tests.support.strategies import workloads


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("weighting", ["equal", "cells", "sqrt"])
def test_equals_convex_optimum(seed, weighting):
    workload, loss = random_workload(seed), rp.SumOfVariances(weighting)
    plan = plan_tables(workload, loss=loss, budget=rp.Budget(privacy_cost=0.3))
    optimum, variances = convex_optimum(workload, loss.table_weights(workload), 0.3, largest=False)
    assert plan.loss_value == pytest.approx(optimum, rel=1e-7)
    assert plan.certificate.lower_bound <= optimum * (1 + 1e-9)
    assert plan.certificate.gap <= 1e-9
    np.testing.assert_allclose(plan.mean_variances, variances, rtol=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_shadow_prices_are_elasticities(seed):
    workload = random_workload(seed)
    closure, weights = Closure.of(workload), workload.weights
    prices = minimise_sum(closure, weights, 1.0).shadow_prices
    assert np.sum(prices) == pytest.approx(1, rel=1e-12)
    step = 1e-5
    for table in range(len(workload)):
        bounds = [
            minimise_sum(closure, weights * factor, 1.0).lower_bound
            for factor in np.exp([[step], [-step]] * np.eye(len(workload))[table])
        ]
        assert np.log(bounds[0] / bounds[1]) / (2 * step) == pytest.approx(prices[table], abs=1e-6)


@given(workloads(), st.integers(0, 2**32))
@settings(deadline=None, max_examples=40)
def test_bound_holds_for_any_noise_scales(workload, seed):
    closure = Closure.of(workload)
    solution = minimise_sum(closure, workload.weights, 2.0)
    other = noise_of_cost(closure, 2.0, seed)
    assert solution.lower_bound <= np.sum(workload.weights * closure.variances(other))
