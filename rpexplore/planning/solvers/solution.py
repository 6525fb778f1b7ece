"""Solution: what every solver returns, its bound, and the closed form of a weighted sum."""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rpexplore.common.processes import Progress
from rpexplore.common.text import rounded

# Solvers stop when a plan is proven to be this close (relative) to the optimum.
TOLERANCE = 5e-7


class VarianceMap(Protocol):
    """The workload as a solver sees it: p and B of docs/mathematics.md §3.2."""

    @property
    def privacy_cost_factor(self) -> np.ndarray:
        """p: privacy cost of each residual at σ² = 1, float64[n_residuals]."""
        ...

    def variances(self, sigma_squared: np.ndarray, /) -> np.ndarray:
        """B s: variance of each table, float64[n_tables]."""
        ...

    def residual_weights(self, table_weights: np.ndarray, /) -> np.ndarray:
        """Bᵀ w: weight of each σ², float64[n_residuals]."""
        ...


@dataclass(frozen=True, eq=False)
class Solution:
    """Noise scales and the proof of their quality.

    sigma_squared  float64[n_residuals], privacy cost equal to the budget up to rounding
    lower_bound    no plan within the budget has a smaller loss (Lagrangian dual)
    shadow_prices  float64[n_tables], sum 1: elasticity of the optimal loss in a table's weight;
                   they are the dual variables that give the lower bound
    cells          where the loss looks at single cells: how the shadow prices are made up
    dual_weights   of losses other than sums and largest variances, float64[n_tables]: the weight
                   on each table's variance whose smallest weighted sum gives the bound
    limit          of losses that bound it, the largest weighted variance allowed
    """

    sigma_squared: np.ndarray
    lower_bound: float
    shadow_prices: np.ndarray
    cells: "CellPrices | None" = None
    dual_weights: np.ndarray | None = None
    limit: float | None = None


@dataclass(frozen=True, eq=False)
class CellPrices:
    """Shadow prices of single cells, those above 0.

    tables  int64[m]: the table of each cell, ascending
    rows    int64[m, max_order]: the row of each of the table's attributes; 0 behind
    prices  float64[m], sum 1
    """

    tables: np.ndarray
    rows: np.ndarray
    prices: np.ndarray

    def __post_init__(self) -> None:
        for array in (self.tables, self.rows, self.prices):
            array.setflags(write=False)

    @classmethod
    def sorted(cls, tables: np.ndarray, rows: np.ndarray, prices: np.ndarray) -> "CellPrices":
        """By table and row."""
        order = np.lexsort((*rows.T[::-1], tables))
        return cls(tables[order], rows[order], prices[order])


def share_done(gap: float, tolerance: float = TOLERANCE) -> float:
    """How much of a search is done, 0 to 1, by the decades that its gap has still to go."""
    # A gap of 1 is 0 % done, the tolerance 100 %; each decade counts the same.
    return min(max(math.log(max(gap, tolerance)) / math.log(tolerance), 0.0), 1.0)


def report_gap(on_progress: Progress, gap: float) -> None:
    """Report how near to the optimum a search has come."""
    percent = rounded(100 * gap, 2, "up")
    on_progress(f"Planning: within {percent} % of the best possible", share_done(gap))


def rounding_allowance(n_tables: int) -> float:
    """The relative amount by which a bound in floats is lowered, so that it holds exactly.

    More than four times what a sum of n positive terms is off by, n · 2^−53: a quarter covers a
    computation elsewhere (docs/mathematics.md §6.9).
    """
    return 2.0**-50 * (n_tables + 100)


def dual_bound(p: np.ndarray, v: np.ndarray, privacy_cost: float) -> float:
    """(Σ√(v p))² / c: up to rounding, no plan's Σ v σ² is below it.

    p, v: privacy cost of each residual at σ² = 1, and its weight, float64[n_residuals].
    """
    root_sum = float(np.sum(np.sqrt(v * p)))
    return root_sum * root_sum / privacy_cost


def best_response(p: np.ndarray, v: np.ndarray, privacy_cost: float) -> tuple[np.ndarray, float]:
    """The σ² minimising Σ v σ² at this privacy cost, and that minimum (RP+ Lemma 2); v > 0."""
    # By Cauchy–Schwarz, Σ v σ² · Σ p/σ² ≥ (Σ√(v p))², equal for σ² ∝ √(p/v).
    roots = np.sqrt(v * p)
    root_sum = float(np.sum(roots))
    return p / roots * (root_sum / privacy_cost), root_sum * root_sum / privacy_cost


def minimise_sum(
    variance_map: VarianceMap, table_weights: np.ndarray, privacy_cost: float
) -> Solution:
    """The σ² that minimise Σ_A table_weights[A] · Var_A at this privacy cost (RP+ Lemma 2)."""
    weights = variance_map.residual_weights(table_weights)
    costs = variance_map.privacy_cost_factor
    sigma_squared, minimum = best_response(costs, weights, privacy_cost)
    # Elasticity of a sum in each weight: the term's share of it.
    shares = table_weights * variance_map.variances(sigma_squared)
    return Solution(
        sigma_squared=sigma_squared,
        lower_bound=minimum * (1 - rounding_allowance(len(table_weights))),
        shadow_prices=shares / np.sum(shares),
    )
