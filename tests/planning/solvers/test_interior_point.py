"""Newton's method for shadow prices, against CVXPY and where plain steps crawl."""

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse

from rpexplore.planning.solvers.acceleration import central_prices


def problem(seed, cells=12, residuals=9):
    rng = np.random.default_rng(seed)
    rows = rng.uniform(0, 1, (cells, residuals)) * (rng.uniform(0, 1, (cells, residuals)) < 0.6)
    rows[:, 0] = rng.uniform(0.5, 1, cells)
    rows[1] = rows[0] * (1 + 1e-6)  # nearly equal cells: flat directions
    return sparse.csr_array(rows), rng.uniform(0.1, 1, residuals)


def value(weighted, costs, fixed, y):
    return np.sum(np.sqrt(costs * (fixed + weighted.T @ y)))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("level", [0.0, 0.2])
def test_it_equals_the_convex_optimum(seed, level):
    weighted, costs = problem(seed)
    fixed = np.full(len(costs), max(level, 1e-24))
    start = np.full(12, 1 / 12)
    y = central_prices(weighted, costs, fixed, start, gap=1.0, tolerance=1e-7)
    assert np.all(y > 0)
    assert np.sum(y) == pytest.approx(1)
    best = cp.Variable(12, nonneg=True)
    inside = fixed + weighted.T.toarray() @ best
    objective = cp.sum(cp.multiply(np.sqrt(costs), cp.sqrt(inside)))
    cp.Problem(cp.Maximize(objective), [cp.sum(best) == 1]).solve(solver=cp.CLARABEL)
    optimum = value(weighted, costs, fixed, np.maximum(best.value, 0) / np.sum(best.value))
    assert value(weighted, costs, fixed, y) >= optimum * (1 - 1e-7)


def test_a_start_at_a_corner_is_left():
    weighted, costs = problem(3)
    fixed = np.full(len(costs), 1e-24)
    corner = np.eye(12)[5]
    y = central_prices(weighted, costs, fixed, corner, gap=0.5, tolerance=1e-6)
    even = central_prices(weighted, costs, fixed, np.full(12, 1 / 12), gap=0.5, tolerance=1e-6)
    value_found, wanted = (value(weighted, costs, fixed, each) for each in (y, even))
    assert value_found == pytest.approx(wanted, rel=1e-6)
