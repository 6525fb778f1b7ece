"""p-norms by multiplicative steps: certificates, brute force, wild weights, both ends."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.planning.losses.custom import CustomLoss
from rpexplore.planning.losses.losses import PNorm, p_norm
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.solvers.conic_program import minimise_conic
from rpexplore.planning.solvers.largest_variance import minimise_maximum, minimise_p_norm
from rpexplore.planning.solvers.solution import minimise_sum
from tests.support.generalised import any_strategies
from tests.support.oracles import (
    check_dual_certificate,
    random_workload,
    smallest_loss_by_brute_force,
)
from tests.support.strategies import domains, workloads, workloads_with_bases

LOSSES = [PNorm(1), PNorm(2), PNorm(3.3, "target"), PNorm(20)]
COST = 0.3
powers = st.sampled_from([1, 1.001, 1.5, 2, 3.3, 20, 1000])


def minimised(loss, workload, closure):
    return minimise_p_norm(closure, loss.table_weights(workload), loss.p, COST)


@given(workloads(with_targets=True, max_tables=10), st.sampled_from(LOSSES))
@settings(deadline=None, max_examples=20)
def test_it_agrees_with_the_conic_solver(workload, loss):
    closure, weights = Closure.of(workload), loss.table_weights(workload)
    special = minimised(loss, workload, closure)
    check_dual_certificate(special, loss, workload, closure, COST)
    # Weights near 1 for the solver; the norm is homogeneous.
    unit = float(np.max(weights))
    custom = CustomLoss(
        lambda V: cp.pnorm(cp.multiply(weights / unit, V), loss.p, approx=loss.p == 2), "p-norm"
    )
    conic = minimise_conic(closure, workload, custom, COST)
    values = [loss.value(closure.variances(s.sigma_squared), workload) for s in (special, conic)]
    assert values[0] == pytest.approx(values[1], rel=1e-6)


@given(
    workloads_with_bases(workloads(with_targets=True)), st.sampled_from(LOSSES), st.integers(0, 3)
)
@settings(deadline=None, max_examples=10)
def test_it_holds_for_any_query_basis(workload, loss, seed):
    closure = Closure.of(workload).with_strategies(workload, any_strategies(workload, seed))
    check_dual_certificate(minimised(loss, workload, closure), loss, workload, closure, COST)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_no_plan_found_by_brute_force_is_better(loss):
    domain = rp.Domain.from_sizes({"a": 2, "b": 4})
    workload = rp.Workload.of(
        domain, [(), "a", ("a", "b")], weights=[1, 3, 0.5], targets=[0.5, 2, 1]
    )
    closure = Closure.of(workload)
    least = smallest_loss_by_brute_force(loss, workload, COST)
    solution = minimised(loss, workload, closure)
    value = loss.value(closure.variances(solution.sigma_squared), workload)
    assert solution.lower_bound <= least
    assert value <= least * (1 + 1e-6)
    assert least <= solution.lower_bound * (1 + 1e-3), "brute force comes near"


wild_weights = st.floats(-8, 8).map(lambda power: 10**power)


@given(workloads(domains(max_size=10**6), weights=wild_weights, max_tables=10), powers)
@settings(deadline=None, max_examples=35)
def test_gap_is_closed_for_wild_weights_and_sizes(workload, p):
    closure = Closure.of(workload)
    solution = minimise_p_norm(closure, workload.weights, p, 2.0)
    variances = closure.variances(solution.sigma_squared)
    value = p_norm(workload.weights * variances, p)
    assert 0 < solution.lower_bound <= value <= solution.lower_bound * (1 + 1e-6)
    cost = np.sum(closure.privacy_cost_factor / solution.sigma_squared)
    assert cost == pytest.approx(2, rel=1e-10)
    np.testing.assert_allclose(solution.shadow_prices, solution.dual_weights * variances)
    assert np.sum(solution.shadow_prices) == pytest.approx(1)


@given(workloads(), powers, st.integers(0, 2**32))
@settings(deadline=None, max_examples=21)
def test_bound_holds_for_any_noise_scales(workload, p, seed):
    closure = Closure.of(workload)
    solution = minimise_p_norm(closure, workload.weights, p, 2.0)
    other = np.random.default_rng(seed).lognormal(0, 2, len(closure))
    other *= np.sum(closure.privacy_cost_factor / other) / 2.0  # at the same privacy cost
    assert solution.lower_bound <= p_norm(workload.weights * closure.variances(other), p)


@pytest.mark.parametrize("seed", range(6))
def test_the_ends_are_the_sum_and_the_largest(seed):
    workload = random_workload(seed)
    closure, weights = Closure.of(workload), workload.weights
    total = minimise_sum(closure, weights, COST).lower_bound
    largest = minimise_maximum(closure, weights, COST).lower_bound
    assert minimise_p_norm(closure, weights, 1, COST).lower_bound == pytest.approx(total, rel=1e-12)
    near = minimise_p_norm(closure, weights, 1.0001, COST).lower_bound
    assert near == pytest.approx(total, rel=1e-3)
    high = minimise_p_norm(closure, weights, 1000, COST).lower_bound
    assert largest * (1 - 1e-6) <= high <= largest * len(workload) ** 1e-3


@pytest.mark.parametrize("p", [1, 30])
def test_progress_is_reported(p):
    workload, shares = random_workload(2), []
    minimise_p_norm(
        Closure.of(workload),
        workload.weights,
        p,
        COST,
        1e-9,
        on_progress=lambda _, share: shares.append(share),
    )
    assert shares
