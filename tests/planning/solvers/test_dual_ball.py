"""p-norms and tail means by multiplicative steps: sets, certificates, wild weights."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.solvers.dual_ball import CappedSimplex, ConjugateBall, minimise_largest_mean
from rpexplore.planning.solvers.max_variance import minimise_maximum
from tests.support.oracles import random_workload
from tests.support.strategies import domains, workloads

balls = st.builds(ConjugateBall, st.sampled_from([1.001, 1.5, 2, 3.3, 20, 1000])) | st.builds(
    CappedSimplex, st.sampled_from([1.0, 1.3, 2.0, 2.5, 4.0])
)


def within(ball, count):
    """The ball, with a tail that is not longer than there are tables."""
    return CappedSimplex(min(ball.tail, count)) if isinstance(ball, CappedSimplex) else ball


@given(balls, st.lists(st.floats(-800, 800), min_size=1, max_size=8))
@settings(deadline=None)
def test_weights_are_brought_onto_the_set(ball, listed):
    ball = within(ball, len(listed))
    log_u = ball.onto(np.array(listed))
    u = np.exp(log_u)
    if isinstance(ball, ConjugateBall):
        assert np.sum(np.exp(ball.q * log_u)) == pytest.approx(1)
        return
    assert np.sum(u) == pytest.approx(1)
    assert np.max(u) <= (1 + 1e-9) / ball.tail
    # Below the cap all were multiplied alike.
    moved = (log_u - listed)[(u < 0.999 / ball.tail) & (np.array(listed) > max(listed) - 600)]
    assert np.ptp(moved) <= 1e-9 if len(moved) else True


@given(balls, st.lists(st.floats(0.01, 100), min_size=1, max_size=8), st.integers(0, 99))
@settings(deadline=None)
def test_the_loss_is_the_largest_weighted_sum(ball, listed, seed):
    ball, x = within(ball, len(listed)), np.array(listed)
    some = np.random.default_rng(seed).normal(0, 3, (20, len(x)))
    for log_u in some:
        assert np.exp(ball.onto(log_u)) @ x <= ball.loss(x) * (1 + 1e-9)
    # u ∝ x^(p − 1), or so steep that as much as may be is on the largest.
    if isinstance(ball, ConjugateBall):
        best = (ball.p - 1) * np.log(x)
    else:
        best = 50.0 * np.argsort(np.argsort(x))
    reached = np.exp(ball.onto(best)) @ x
    assert reached == pytest.approx(ball.loss(x), rel=1e-5)


wild_weights = st.floats(-8, 8).map(lambda power: 10**power)


@given(workloads(domains(max_size=10**6), weights=wild_weights, max_tables=10), balls)
@settings(deadline=None, max_examples=35)
def test_gap_is_closed_for_wild_weights_and_sizes(workload, ball):
    closure, ball = Closure.of(workload), within(ball, len(workload))
    found = minimise_largest_mean(closure, workload.weights, ball, 2.0)
    variances = closure.variances(found.sigma_squared)
    value = ball.loss(workload.weights * variances)
    assert 0 < found.lower_bound <= value <= found.lower_bound * (1 + 1e-6)
    cost = np.sum(closure.privacy_cost_factor / found.sigma_squared)
    assert cost == pytest.approx(2, rel=1e-10)
    np.testing.assert_allclose(found.shadow_prices, found.dual_weights * variances)
    assert np.sum(found.shadow_prices) == pytest.approx(1)


@given(workloads(), balls, st.integers(0, 2**32))
@settings(deadline=None, max_examples=21)
def test_bound_holds_for_any_noise_scales(workload, ball, seed):
    closure, ball = Closure.of(workload), within(ball, len(workload))
    found = minimise_largest_mean(closure, workload.weights, ball, 2.0)
    other = np.random.default_rng(seed).lognormal(0, 2, len(closure))
    other *= np.sum(closure.privacy_cost_factor / other) / 2.0  # at the same privacy cost
    assert found.lower_bound <= ball.loss(workload.weights * closure.variances(other))


@pytest.mark.parametrize("seed", range(6))
def test_the_ends_are_the_sum_and_the_largest(seed):
    workload = random_workload(seed)
    closure, weights = Closure.of(workload), workload.weights
    largest = minimise_maximum(closure, weights, 1.0).lower_bound
    worst = minimise_largest_mean(closure, weights, CappedSimplex(1.0), 1.0).lower_bound
    assert worst == pytest.approx(largest, rel=1e-6)
    high = minimise_largest_mean(closure, weights, ConjugateBall(1000), 1.0).lower_bound
    assert largest * (1 - 1e-6) <= high <= largest * len(workload) ** 1e-3
