"""Solution: what every solver returns, and the bound that certifies it."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

# Floating-point sums of positive terms are off by less than this (relative), so a lower bound
# lowered by it holds.
ROUNDING = 1e-12

# Solvers stop when a plan is proven to be this close (relative) to the optimum.
TOLERANCE = 5e-7


class VarianceMap(Protocol):
    """What a solver needs to know of a workload: math.md's p and B."""

    @property
    def privacy_cost_factor(self) -> np.ndarray:
        """p: privacy cost of each residual at σ² = 1, float64[n_residuals]."""
        ...

    def variances(self, sigma_squared: np.ndarray) -> np.ndarray:
        """B s: variance of each table, float64[n_tables]."""
        ...

    def residual_weights(self, table_weights: np.ndarray) -> np.ndarray:
        """Bᵀ w: weight of each σ², float64[n_residuals]."""
        ...


@dataclass(frozen=True, eq=False)
class Solution:
    """Noise scales and the proof of their quality.

    sigma_squared  float64[n_residuals], privacy cost equal to the budget up to rounding
    lower_bound    no plan within the budget has a smaller loss (Lagrangian dual)
    shadow_prices  float64[n_tables], sum 1: elasticity of the optimal loss in a table's weight;
                   they are the dual variables that give the lower bound
    """

    sigma_squared: np.ndarray
    lower_bound: float
    shadow_prices: np.ndarray


def dual_bound(variance_map: VarianceMap, table_weights: np.ndarray, privacy_cost: float) -> float:
    """(Σ√(v p))² / c with v = Bᵀ w: below every plan's Σ_A w_A Var_A at this privacy cost."""
    v = variance_map.residual_weights(table_weights)
    root_sum = float(np.sum(np.sqrt(v * variance_map.privacy_cost_factor)))
    return root_sum * root_sum / privacy_cost * (1 - ROUNDING)


def best_response(
    variance_map: VarianceMap, table_weights: np.ndarray, privacy_cost: float
) -> tuple[np.ndarray, float]:
    """The σ² minimising Σ_A w_A Var_A at this privacy cost, and that minimum (RP+ Lemma 2).

    σ² = √(p/v) · Σ√(v p) / c and minimum (Σ√(v p))² / c, with v = Bᵀ w > 0.
    """
    p = variance_map.privacy_cost_factor
    v = variance_map.residual_weights(table_weights)
    roots = np.sqrt(v * p)
    root_sum = float(np.sum(roots))
    return p / roots * (root_sum / privacy_cost), root_sum * root_sum / privacy_cost
