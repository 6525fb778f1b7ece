"""Weighted sum of variances: a closed form (RP+ Lemma 2)."""

import numpy as np

from rpexplore.planning.solvers.solution import (
    Solution,
    VarianceMap,
    best_response,
    rounding_allowance,
)


def minimise_sum(
    variance_map: VarianceMap,
    table_weights: np.ndarray,
    privacy_cost: float,
) -> Solution:
    """The σ² that minimise Σ_A table_weights[A] · Var_A at this privacy cost.

    The bound is Cauchy–Schwarz: (Σ v σ²)(Σ p/σ²) ≥ (Σ√(v p))² for all σ².
    """
    weights = variance_map.residual_weights(table_weights)
    costs = variance_map.privacy_cost_factor
    sigma_squared, minimum = best_response(costs, weights, privacy_cost)
    shares = table_weights * variance_map.variances(sigma_squared)
    return Solution(
        sigma_squared=sigma_squared,
        lower_bound=minimum * (1 - rounding_allowance(len(table_weights))),
        shadow_prices=shares / np.sum(shares),
    )
