"""Any convex, nondecreasing loss: by its own algorithm where there is one, or by a conic solver."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from rpexplore.planning.losses.custom import ConvexLoss
from rpexplore.planning.losses.p_norm import MeanAndMax, PNorm, SymmetricLoss, TailMean
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.solvers.conic_program import minimise_conic
from rpexplore.planning.solvers.dual_ball import CappedSimplex, ConjugateBall, minimise_largest_mean
from rpexplore.planning.solvers.max_variance import minimise_maximum
from rpexplore.planning.solvers.solution import TOLERANCE, Solution
from rpexplore.planning.solvers.weighted_sum import minimise_sum
from rpexplore.workload.workload import Workload

AnyConvexLoss = SymmetricLoss | ConvexLoss


def minimise_convex(
    closure: Closure,
    workload: Workload,
    loss: AnyConvexLoss,
    privacy_cost: float,
    tolerance: float = TOLERANCE,
    *,
    note: Callable[[float], None] = lambda gap: None,
) -> Solution:
    """The σ² with the smallest loss at this privacy cost, and the dual weights that prove it.

    The dual weights d, float64[n_tables] ≥ 0, are scaled so that Σ d · Var = 1 for this solution;
    d · Var are the shadow prices. With (f, o) = loss.minorant(d, workload) the lower bound is
    f · (Σ√(p Bᵀd))²/c − o, less an allowance for rounding.

    Raises `WorkloadError` if the loss cannot be used with the workload, and `PlanError` if no plan
    can be proven good (`minimise_conic`). `note` is told the gap after every few steps.
    """
    weights = loss.table_weights(workload)
    if isinstance(loss, PNorm) and loss.p > 1:
        ball = ConjugateBall(loss.p)
        return minimise_largest_mean(closure, weights, ball, privacy_cost, tolerance, note=note)
    if isinstance(loss, TailMean):
        ball = CappedSimplex(loss.tail(len(workload)))
        return minimise_largest_mean(closure, weights, ball, privacy_cost, tolerance, note=note)
    if isinstance(loss, PNorm):
        found = minimise_sum(closure, weights, privacy_cost, note=note)
        return _with_dual_weights(found, closure, weights)
    if isinstance(loss, MeanAndMax):
        in_mean = (1 - loss.share) / len(workload) * weights
        in_largest = loss.share * weights
        found = minimise_maximum(
            closure,
            in_largest,
            privacy_cost,
            tolerance,
            fixed_weights=closure.residual_weights(in_mean),
            note=note,
        )
        dual_weights = in_mean + found.shadow_prices * in_largest
        return _with_dual_weights(found, closure, dual_weights)
    return minimise_conic(closure, workload, loss, privacy_cost, tolerance, note=note)


def _with_dual_weights(found: Solution, closure: Closure, dual_weights: np.ndarray) -> Solution:
    """The solution with these dual weights, scaled, and the shadow prices that they make."""
    prices = dual_weights * closure.variances(found.sigma_squared)
    total = float(np.sum(prices))
    return replace(found, shadow_prices=prices / total, dual_weights=dual_weights / total)
