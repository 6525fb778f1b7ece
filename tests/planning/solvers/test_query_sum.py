"""Losses between the largest ratio and the mean one: against CVXPY."""

import cvxpy as cp
import numpy as np
import pytest

from rpexplore.planning.solvers.queries import (
    decoding,
    fitness_for_use,
    largest_and_mean,
    least_mean_within_targets,
    mean_bound,
)
from tests.support.query_lists import marginals, prefix, ranges


def least_loss_by_cvxpy(queries, targets, average):
    n = queries.shape[1]
    covered = cp.Variable((n, n), PSD=True)
    ratios = cp.hstack(
        [
            cp.matrix_frac(query / target, covered)
            for query, target in zip(queries, targets, strict=True)
        ]
    )
    loss = (1 - average) * cp.max(ratios) + average * cp.sum(ratios) / len(targets)
    problem = cp.Problem(cp.Minimize(loss), [cp.diag(covered) <= 1])
    problem.solve(solver=cp.CLARABEL)
    return float(problem.value)


def cases():
    rng = np.random.default_rng(0)
    yield "prefix", prefix(6), np.ones(6)
    yield "ranges", ranges(6, 9, rng), rng.uniform(1, 9, 9)
    yield "few ranges", ranges(6, 3, rng), np.ones(3)
    yield "marginals", marginals((2, 3), 1), rng.uniform(1, 9, 6)
    yield "cells not asked", np.kron(prefix(3), [[0, 1]]), np.ones(3)


@pytest.mark.parametrize("average", [0.02, 0.5, 1.0])
@pytest.mark.parametrize(
    ("queries", "targets"), [pytest.param(*each, id=name) for name, *each in cases()]
)
def test_equals_the_convex_optimum(queries, targets, average):
    fitness = fitness_for_use(queries, targets, 1e-6, average=average)
    matrix = fitness.matrix
    assert np.max(np.sum(matrix**2, axis=0)) == pytest.approx(1, rel=1e-12)
    assert not matrix[:, ~queries.any(axis=0)].any()
    ratios = np.sum(decoding(matrix, queries) ** 2, axis=1) / targets**2
    assert fitness.cost == pytest.approx(largest_and_mean(ratios, average), rel=1e-12)
    optimum = least_loss_by_cvxpy(queries, targets, average)
    assert fitness.cost == pytest.approx(optimum, rel=1e-4)
    assert fitness.gap <= 1.1e-6
    assert fitness.lower_bound <= optimum * (1 + 1e-5)
    assert np.all(fitness.shadow_prices >= average / len(queries) * (1 - 1e-12))


def test_the_bound_on_the_mean_holds_for_any_ratios():
    """For prices p and ratios of at most 1, and any least value that Σ p · ratio may have."""
    rng = np.random.default_rng(0)
    for _ in range(1000):
        ratios, prices = rng.uniform(0, 1, 5), rng.dirichlet(np.ones(5))
        assert mean_bound(float(prices @ ratios), prices) <= np.mean(ratios) + 1e-12
    assert mean_bound(0.5, np.array([0.0, 1.0])) == -np.inf


@pytest.mark.parametrize("share", [1.0, 0.9999, 0.999, 0.99])
def test_targets_hold_at_a_little_less_than_the_cost_that_was_solved_for(share):
    """As rounding to whole numbers asks for it; the mean grows by little."""
    rng = np.random.default_rng(2)
    queries, targets = ranges(12, 20, rng), rng.uniform(1, 4, 20)
    largest = fitness_for_use(queries, targets)
    cost = 1.05 * largest.cost
    found = least_mean_within_targets(queries, targets, cost, largest=largest)
    ratios, exactly = (
        np.sum(decoding(found.matrix(aim), queries) ** 2, axis=1) / targets**2
        for aim in (share * cost, cost)
    )
    assert np.max(ratios) <= share * cost * (1 + 1e-12)
    assert np.max(exactly) == pytest.approx(cost, rel=1e-6)
    assert np.mean(ratios) <= np.mean(exactly) * (1 + 10 * (1 - share) + 1e-9)
