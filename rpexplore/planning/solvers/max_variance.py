"""Largest weighted variance by certified multiplicative steps (docs/mathematics.md §6.3).

For any y on the simplex over tables, the best response s(y) to the weights y·w is a feasible plan,
and its weighted value f(y) a lower bound on the smallest possible maximum. The plain step
y ← y·(g/f)², with g the weighted variances under s(y), raises f every time; extrapolated by
SQUAREM, it needs about half the rounds on 166,751 tables. With a weighted sum of variances, of
fixed weights v₀ on the noise scales, added to the maximum, the best response is to v₀ + Bᵀ(y·w) and
the step y ← y·g², scaled to sum to 1.
"""

from dataclasses import dataclass

import numpy as np

from rpexplore.common.concurrency import Progress, no_progress
from rpexplore.planning.solvers.solution import (
    TOLERANCE,
    Solution,
    VarianceMap,
    best_response,
    report_gap,
    rounding_allowance,
)
from rpexplore.planning.solvers.squarem import squarem_step


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
    the map may also be single cells instead of tables. start: shadow prices to begin with.

    Stops when value/lower bound − 1 ≤ tolerance, or after max_rounds evaluations (never seen in
    tests up to weight ratios of 1e12); either way the best plan found comes with its true bound.
    The gap is reported after every few evaluations.
    """
    search = _Search(variance_map, table_weights, privacy_cost, fixed_weights)
    begin = np.ones(len(table_weights)) if start is None else start
    at = search.visit(np.log(np.maximum(begin, 1e-250)))
    while search.gap > tolerance and search.rounds < max_rounds:
        report_gap(on_progress, search.gap)
        plain = search.visit(at.log_y + at.step)
        if search.gap <= tolerance:
            break
        steps = plain.log_y - at.log_y, plain.step
        at = squarem_step(search.visit, at.log_y, steps, metric=at.y, least_bound=plain.bound)
    return Solution(
        sigma_squared=search.best_sigma_squared,
        lower_bound=search.best_bound * (1 - rounding_allowance(len(table_weights))),
        shadow_prices=search.best_y,
    )


@dataclass(frozen=True, eq=False)
class _Point:
    """Weights y that sum to 1, their logarithms, the plain step in these, and the bound of y."""

    y: np.ndarray
    log_y: np.ndarray
    step: np.ndarray
    bound: float


class _Search:
    """The best plan and the best bound among all points visited so far."""

    def __init__(
        self,
        variance_map: VarianceMap,
        table_weights: np.ndarray,
        privacy_cost: float,
        fixed_weights: np.ndarray | None,
    ) -> None:
        self._map, self._weights, self._cost = variance_map, table_weights, privacy_cost
        self._fixed = fixed_weights
        self.rounds = 0
        self.best_value, self.best_bound = np.inf, 0.0

    def visit(self, log_y: np.ndarray) -> _Point:
        """Evaluate the best response to y, scaled to sum to 1."""
        # Below e^-600 a weight is nothing to the bound; keeping it there keeps every v positive.
        log_y = np.maximum(log_y - np.max(log_y), -600.0)
        y = np.exp(log_y)
        total = np.sum(y)
        y /= total
        in_sum = self._map.residual_weights(y * self._weights)
        if self._fixed is not None:
            in_sum = in_sum + self._fixed
        costs = self._map.privacy_cost_factor
        sigma_squared, bound = best_response(costs, in_sum, self._cost)
        weighted = self._weights * self._map.variances(sigma_squared)
        fixed = 0.0 if self._fixed is None else float(np.sum(self._fixed * sigma_squared))
        value = fixed + float(np.max(weighted))
        # The mean of `weighted` by y; without a fixed part that is the bound itself.
        mean = bound if self._fixed is None else float(np.sum(y * weighted))
        self.rounds += 1
        if bound > self.best_bound:
            self.best_bound, self.best_y = bound, y
        if value < self.best_value:
            self.best_value, self.best_sigma_squared = value, sigma_squared
        return _Point(y, log_y - np.log(total), 2 * np.log(weighted / mean), bound)

    @property
    def gap(self) -> float:
        """How far the best plan found can be from the optimum, relative."""
        return self.best_value / self.best_bound - 1
