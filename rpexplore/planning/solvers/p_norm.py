"""p-norm of the weighted variances: a certified multiplicative algorithm.

It is that of `max_variance` with another set of table weights in place of the simplex. By Hölder's
inequality the p-norm is the largest Σ u · x over the u ≥ 0 with Σ u^q ≤ 1, 1/p + 1/q = 1. For any u
in this set, the best response s(u) to the weights u·w is a feasible plan, and its weighted value
f(u) is a lower bound. With x the weighted variances under s(u), f's root is minorised, with
equality at present, by const + Σ_A √u_A · √(u_A at present) · x_A / 2 (Cauchy and Schwarz). That is
largest on the set at u^(q − 1/2) ∝ √(u at present) · x, so that step never lowers f. It is
extrapolated by SQUAREM (Varadhan and Roland 2008, scheme S3), and taken back towards the plain step
while it does not raise f.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rpexplore.planning.losses.p_norm import p_norm
from rpexplore.planning.solvers.solution import (
    TOLERANCE,
    Solution,
    VarianceMap,
    best_response,
    rounding_allowance,
)


@dataclass(frozen=True, eq=False)
class _Point:
    """A log u on the set, its best response, that one's loss and bound, and the plain step."""

    log_u: np.ndarray
    sigma_squared: np.ndarray
    value: float
    bound: float
    step: np.ndarray


def minimise_p_norm(
    variance_map: VarianceMap,
    table_weights: np.ndarray,
    p: float,
    privacy_cost: float,
    tolerance: float = TOLERANCE,
    *,
    max_rounds: int = 5000,
    note: Callable[[float], None] = lambda gap: None,
) -> Solution:
    """The σ² that minimise the p-norm of table_weights · Var at this privacy cost.

    The dual weights d, float64[n_tables] ≥ 0, are scaled so that Σ d · Var = 1 for this solution;
    d · Var are the shadow prices.

    Args:
        table_weights: float64[n_tables], above 0
        p: from 1; at 1, where the norm is the sum, the solution is that of the closed form
        max_rounds: evaluations, after which the best plan so far is returned with its true bound,
            whether or not value/lower bound − 1 ≤ tolerance
        note: called with the gap after every few evaluations
    """
    costs = variance_map.privacy_cost_factor
    if p == 1:
        in_sum = variance_map.residual_weights(table_weights)
        sigma_squared, bound = best_response(costs, in_sum, privacy_cost)
        note(0.0)
        return _solution(variance_map, sigma_squared, bound, table_weights)
    q = p / (p - 1)

    def onto_set(log_u: np.ndarray) -> np.ndarray:
        # Less than e^-600 of the largest is nothing to the bound; this keeps every v positive.
        log_u = np.maximum(log_u - np.max(log_u), -600.0)
        return log_u - np.log(np.sum(np.exp(q * log_u))) / q

    def visit(log_u: np.ndarray) -> _Point:
        log_u = onto_set(log_u)
        in_sum = variance_map.residual_weights(np.exp(log_u) * table_weights)
        sigma_squared, bound = best_response(costs, in_sum, privacy_cost)
        weighted = table_weights * variance_map.variances(sigma_squared)
        value = p_norm(weighted, p)
        step = onto_set((log_u / 2 + np.log(weighted / value)) / (q - 0.5)) - log_u
        return _Point(log_u, sigma_squared, value, bound, step)

    at = best_plan = best_bound = visit(np.zeros(len(table_weights)))
    rounds = 1
    while best_plan.value > best_bound.bound * (1 + tolerance) and rounds < max_rounds:
        note(best_plan.value / best_bound.bound - 1)
        plain = visit(at.log_u + at.step)
        move = plain.log_u - at.log_u
        slowing = plain.step - move
        # Tables without influence may drift however they like.
        influence = np.exp(2 * plain.log_u - np.max(plain.log_u))
        ratio = np.sum(influence * move**2) / max(float(np.sum(influence * slowing**2)), 1e-300)
        length = max(float(np.sqrt(ratio)), 1.0)  # 1 is exactly two plain steps
        visited = [plain]
        while True:
            visited.append(visit(at.log_u + 2 * length * move + length**2 * slowing))
            if visited[-1].bound >= plain.bound or length == 1:
                break
            length = (length + 1) / 2 if length > 1.02 else 1.0
        at = visited[-1]
        rounds += len(visited)
        best_plan = min(best_plan, *visited, key=lambda point: point.value)
        best_bound = max(best_bound, *visited, key=lambda point: point.bound)
    dual_weights = np.exp(best_bound.log_u) * table_weights
    return _solution(variance_map, best_plan.sigma_squared, best_bound.bound, dual_weights)


def _solution(
    variance_map: VarianceMap, sigma_squared: np.ndarray, bound: float, dual_weights: np.ndarray
) -> Solution:
    """The solution with these dual weights, scaled, and the shadow prices that they make."""
    prices = dual_weights * variance_map.variances(sigma_squared)
    total = float(np.sum(prices))
    return Solution(
        sigma_squared=sigma_squared,
        lower_bound=bound * (1 - rounding_allowance(len(dual_weights))),
        shadow_prices=prices / total,
        dual_weights=dual_weights / total,
    )
