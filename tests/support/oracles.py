"""Independent ways to the planner's numbers, for small problems: dense matrices and CVXPY.

Written from the definitions of ResidualPlanner (Xiao, He, Zhang, Kifer, NeurIPS 2023): Q_A, R_A,
Σ_A as matrices over all cells, and the variance formula with one factor an attribute.
"""

from functools import reduce
from itertools import combinations

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize

import rpexplore as rp
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.solvers.solution import dual_bound


def sub(n: int) -> np.ndarray:
    """Sub_n, (n−1) × n: first column 1, entries (r, r+1) −1."""
    return np.hstack([np.ones((n - 1, 1)), -np.eye(n - 1)])


def kron(factors) -> np.ndarray:
    return reduce(np.kron, factors, np.ones((1, 1)))


def marginal_matrix(sizes, attributes) -> np.ndarray:
    """Q_A, [cells(A), all cells]."""
    return kron(np.eye(n) if i in attributes else np.ones((1, n)) for i, n in enumerate(sizes))


def residual_matrix(sizes, attributes) -> np.ndarray:
    """R_A, [∏ (n_i − 1), all cells]."""
    return kron(sub(n) if i in attributes else np.ones((1, n)) for i, n in enumerate(sizes))


def residual_covariance(sizes, attributes) -> np.ndarray:
    """Σ_A = ⊗ Sub Subᵀ."""
    return kron(sub(sizes[i]) @ sub(sizes[i]).T for i in attributes)


def precision(plan) -> np.ndarray:
    """Σ_A R_Aᵀ (σ²_A Σ_A)⁻¹ R_A over the plan's residuals; its diagonal is the privacy cost."""
    sizes = plan.workload.domain.sizes.tolist()
    total = np.zeros((np.prod(sizes), np.prod(sizes)))
    for residual, sigma_squared in enumerate(plan.sigma_squared.floats):
        attributes = plan.closure.attributes(residual)
        matrix = residual_matrix(sizes, attributes)
        total += (
            matrix.T
            @ np.linalg.solve(residual_covariance(sizes, attributes), matrix)
            / (sigma_squared)
        )
    return total


def marginal_covariance(plan, attributes) -> np.ndarray:
    """Covariance of the best linear unbiased estimate of a marginal, [cells(A), cells(A)]."""
    query = marginal_matrix(plan.workload.domain.sizes.tolist(), attributes)
    return query @ np.linalg.pinv(precision(plan), hermitian=True, rcond=1e-11) @ query.T


def subsets(attributes) -> list[tuple[int, ...]]:
    attributes = sorted(attributes)
    return [s for k in range(len(attributes) + 1) for s in combinations(attributes, k)]


def closure_of(workload) -> list[tuple[int, ...]]:
    """The closure by its definition: sets of attribute indices, by order, then lexicographic."""
    sizes = workload.domain.sizes
    tables = [[p for p in row if p >= 0 and sizes[p] > 1] for row in workload.members.tolist()]
    closure = {subset for table in tables for subset in subsets(table)}
    return sorted(closure, key=lambda subset: (len(subset), subset))


def variance_matrix(workload) -> tuple[np.ndarray, np.ndarray]:
    """(B [n_tables, n_residuals], p [n_residuals]) by the formulas, one entry at a time."""
    sizes, residuals = workload.domain.sizes.tolist(), closure_of(workload)
    b = np.zeros((len(workload), len(residuals)))
    for row, members in enumerate(workload.members.tolist()):
        table = {attribute for attribute in members if attribute >= 0}
        for column, residual in enumerate(residuals):
            if set(residual) <= table:
                inside = np.prod([(sizes[i] - 1) / sizes[i] for i in residual])
                b[row, column] = inside * np.prod(
                    [1 / sizes[j] ** 2 for j in table - set(residual)]
                )
    p = np.array([np.prod([(sizes[i] - 1) / sizes[i] for i in r]) for r in residuals])
    return b, p


def random_workload(seed: int) -> rp.Workload:
    """3 to 5 attributes, up to 10 tables, weight and targets over two orders of magnitude."""
    pick = np.random.default_rng(seed)
    sizes = pick.integers(1, 12, pick.integers(3, 6))
    domain = rp.Domain.from_sizes({f"a{i}": int(n) for i, n in enumerate(sizes)})
    tables = {
        tuple(pick.choice(domain.names, pick.integers(0, 4), replace=False)) for _ in range(10)
    }
    tables = sorted({tuple(sorted(table)) for table in tables})
    return rp.Workload.of(
        domain,
        tables,
        weights=10 ** pick.uniform(-1, 1, len(tables)),
        targets=(10 ** pick.uniform(-1, 1, len(tables))).tolist(),
    )


def convex_optimum(workload, weights: np.ndarray, privacy_cost: float, *, largest: bool):
    """(optimal loss, optimal variances) by CVXPY: the sum or the largest of weights · Var."""
    b, p = variance_matrix(workload)
    # The variables are σ² in units near the solution, so that the solver works at scale 1.
    unit = np.sqrt(p / (b.T @ weights))
    unit *= np.sum(p / unit) / privacy_cost
    scaled = cp.Variable(len(p), pos=True)
    variances = (b * unit) @ scaled
    weighted = cp.multiply(weights / np.max(weights * (b @ unit)), variances)
    problem = cp.Problem(
        cp.Minimize(cp.max(weighted) if largest else cp.sum(weighted)),
        [(p / unit / privacy_cost) @ cp.inv_pos(scaled) <= 1],
    )
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    assert problem.status == cp.OPTIMAL
    variances = (b * unit) @ scaled.value
    return (np.max if largest else np.sum)(weights * variances), variances


def smallest_loss_by_brute_force(loss, workload, privacy_cost: float) -> float:
    """The smallest loss that Nelder-Mead finds over log σ², from three random starts."""
    b, p = variance_matrix(workload)

    def loss_at(log_sigma_squared: np.ndarray) -> float:
        sigma_squared = np.exp(log_sigma_squared)
        sigma_squared *= np.sum(p / sigma_squared) / privacy_cost
        return loss.value(b @ sigma_squared, workload)

    rng = np.random.default_rng(0)
    options = {"maxiter": 4000, "maxfev": 4000, "xatol": 1e-10, "fatol": 1e-14}
    starts = rng.normal(0, 1, (3, len(p)))
    return min(
        minimize(loss_at, start, method="Nelder-Mead", options=options).fun for start in starts
    )


def check_dual_certificate(solution, loss, workload, closure, privacy_cost, gap=1e-6) -> None:
    """The bound is that of the dual weights, the gap is closed, nothing is overspent."""
    variances = closure.variances(solution.sigma_squared)
    value = loss.value(variances, workload)
    assert 0 < solution.lower_bound <= value <= solution.lower_bound * (1 + gap)
    spent = np.sum(closure.privacy_cost_factor / solution.sigma_squared)
    assert spent == pytest.approx(privacy_cost, rel=1e-12)
    prices = solution.dual_weights * variances
    np.testing.assert_allclose(solution.shadow_prices, prices, atol=1e-12)
    assert np.sum(solution.shadow_prices) == pytest.approx(1, rel=1e-12)
    dual = solution.dual_weights
    factor, offset = loss.minorant_of_plan(dual, workload, None, variances)
    in_sum = closure.residual_weights(solution.dual_weights)
    bound = factor * dual_bound(closure.privacy_cost_factor, in_sum, privacy_cost) - offset
    assert solution.lower_bound == pytest.approx(bound, rel=5e-7)


def noise_of_cost(closure: Closure, privacy_cost: float, seed: int) -> np.ndarray:
    """Random noise scales of this privacy cost, float64[n_residuals]."""
    sigma_squared = np.random.default_rng(seed).lognormal(0, 2, len(closure))
    return sigma_squared * (np.sum(closure.privacy_cost_factor / sigma_squared) / privacy_cost)
