"""Largest weighted variance by certified multiplicative steps (docs/mathematics.md §6.3).

For any y on the simplex over tables, the best response s(y) to the weights y·w is a feasible plan,
and its weighted value f(y) a lower bound on the smallest possible maximum. The plain step
y ← y·(g/f)², with g the weighted variances under s(y), raises f every time. With a weighted sum of
variances added to the maximum, the best response is to v₀ + Bᵀ(y·w) and the step y ← y·g².
"""

from dataclasses import dataclass

import numpy as np

from rpexplore.common.concurrency import Progress, no_progress
from rpexplore.planning.solvers.solution import (
    TOLERANCE,
    Solution,
    VarianceMap,
    best_response,
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
    search = _Search(variance_map, table_weights, privacy_cost, fixed_weights)
    start = np.ones(len(table_weights)) if start is None else start
    search.run(start, tolerance, max_rounds, on_progress)
    return Solution(
        sigma_squared=search.best_sigma_squared,
        lower_bound=search.best_bound * (1 - rounding_allowance(len(table_weights))),
        shadow_prices=search.best_weights,
    )


@dataclass(eq=False)
class _Search(Search):
    """Weights y on the tables, of sum 1."""

    fixed: np.ndarray | None

    def visit(self, logs: np.ndarray) -> Point:
        # Below e^-600 a weight is nothing to the bound; keeping it there keeps every v positive.
        logs = np.maximum(logs - np.max(logs), -600.0)
        y = np.exp(logs)
        total = np.sum(y)
        y /= total
        in_sum = self.variance_map.residual_weights(y * self.weights)
        if self.fixed is not None:
            in_sum = in_sum + self.fixed
        costs = self.variance_map.privacy_cost_factor
        sigma_squared, bound = best_response(costs, in_sum, self.privacy_cost)
        weighted = self.weights * self.variance_map.variances(sigma_squared)
        fixed = 0.0 if self.fixed is None else float(np.sum(self.fixed * sigma_squared))
        # The mean of `weighted` by y; without a fixed part that is the bound itself.
        mean = bound if self.fixed is None else float(np.sum(y * weighted))
        self.keep(fixed + float(np.max(weighted)), sigma_squared, bound, y)
        return Point(y, logs - np.log(total), 2 * np.log(weighted / mean), bound)
