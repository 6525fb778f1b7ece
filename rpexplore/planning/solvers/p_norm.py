"""Largest weighted variance, or their p-norm, by certified steps (docs/mathematics.md §6.3, §6.7).

With 1/p + 1/q = 1, the best response to the weights u·w, for any u ≥ 0 with Σ u^q = 1, is a
feasible plan, and its weighted value a lower bound on the smallest possible norm. With x the
weighted variances under it, the plain step u^(q − 1/2) ∝ √u · x raises the bound every time. For
the largest variance p is infinite, and the u are on the simplex; with a weighted sum of variances
added to it, the best response is to v₀ + Bᵀ(u·w).
"""

from dataclasses import dataclass

import numpy as np

from rpexplore.common.concurrency import Progress, no_progress
from rpexplore.planning.losses.base import conjugate, p_norm
from rpexplore.planning.solvers.solution import (
    TOLERANCE,
    Solution,
    VarianceMap,
    best_response,
    report_gap,
    rounding_allowance,
)
from rpexplore.planning.solvers.squarem import Point, Search


def minimise_maximum(
    variance_map: VarianceMap,
    table_weights: np.ndarray,
    privacy_cost: float,
    tolerance: float = TOLERANCE,
    *,
    fixed_weights: np.ndarray | None = None,
    start: np.ndarray | None = None,
    max_rounds: int = 5000,
    on_progress: Progress = no_progress,
) -> Solution:
    """The σ² that minimise max_A table_weights[A] · Var_A at this privacy cost.

    With fixed_weights, float64[n_residuals] ≥ 0, what is minimised is that maximum plus
    Σ fixed_weights · σ²; the shadow prices are then the shares of the maximum alone. The rows of
    the map may also be single cells. start: shadow prices to begin with. After max_rounds
    evaluations the best plan so far comes with its true bound, whatever its gap.
    """
    search = _Search(variance_map, table_weights, privacy_cost, np.inf, fixed_weights)
    start = np.ones(len(table_weights)) if start is None else start
    search.run(start, tolerance, max_rounds, on_progress)
    return Solution(
        sigma_squared=search.best_sigma_squared,
        lower_bound=search.best_bound * (1 - rounding_allowance(len(table_weights))),
        shadow_prices=search.best_weights,
    )


def minimise_p_norm(
    variance_map: VarianceMap,
    table_weights: np.ndarray,
    p: float,
    privacy_cost: float,
    tolerance: float = TOLERANCE,
    *,
    max_rounds: int = 5000,
    on_progress: Progress = no_progress,
) -> Solution:
    """The σ² that minimise the p-norm of table_weights · Var at this privacy cost, for p ≥ 1.

    The dual weights d, float64[n_tables] ≥ 0, are scaled so that Σ d · Var = 1 for this solution;
    d · Var are the shadow prices. max_rounds: as of `minimise_maximum`.
    """
    # The closed form: nothing to search for.
    if p == 1:
        in_sum = variance_map.residual_weights(table_weights)
        costs, dual_weights = variance_map.privacy_cost_factor, table_weights
        sigma_squared, bound = best_response(costs, in_sum, privacy_cost)
        report_gap(on_progress, 0.0)
    else:
        search = _Search(variance_map, table_weights, privacy_cost, p)
        search.run(np.ones(len(table_weights)), tolerance, max_rounds, on_progress)
        dual_weights = search.best_weights * table_weights
        sigma_squared, bound = search.best_sigma_squared, search.best_bound
    prices = dual_weights * variance_map.variances(sigma_squared)
    total = float(np.sum(prices))
    return Solution(
        sigma_squared=sigma_squared,
        lower_bound=bound * (1 - rounding_allowance(len(dual_weights))),
        shadow_prices=prices / total,
        dual_weights=dual_weights / total,
    )


@dataclass(eq=False)
class _Search(Search):
    """Weights u on the tables with Σ u^q = 1."""

    p: float
    fixed: np.ndarray | None = None

    def visit(self, logs: np.ndarray) -> Point:
        # 1/p + 1/q = 1; q = 1 for the largest variance.
        q = conjugate(self.p)
        # Below e^-600 a weight is nothing to the bound; keeping it there keeps every v positive.
        logs = np.maximum(logs - np.max(logs), -600.0)
        # Σ u^q = 1 makes Σ u·x ≤ ‖x‖_p for all x (Hölder), so that the best response proves a
        # bound.
        u = np.exp(logs)
        length = np.sum(u**q) ** (1 / q)
        u /= length
        in_sum = self.variance_map.residual_weights(u * self.weights)
        if self.fixed is not None:
            in_sum = in_sum + self.fixed
        costs = self.variance_map.privacy_cost_factor
        sigma_squared, bound = best_response(costs, in_sum, self.privacy_cost)
        weighted = self.weights * self.variance_map.variances(sigma_squared)
        fixed = 0.0 if self.fixed is None else float(np.sum(self.fixed * sigma_squared))
        # Σ u·x; without a fixed part that is the bound itself.
        mean = bound if self.fixed is None else float(np.sum(u * weighted))
        self.keep(fixed + p_norm(weighted, self.p), sigma_squared, bound, u)
        logs -= np.log(length)
        step = np.log(weighted / mean)
        # The plain step u^(q − 1/2) ∝ √u · x, written as what it adds to log u.
        if q > 1:
            step -= (q - 1) * logs
        step *= 2 / (2 * q - 1)
        return Point(u, logs, step, bound)
