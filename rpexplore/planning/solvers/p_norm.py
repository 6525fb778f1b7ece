"""p-norm of the weighted variances by certified multiplicative steps (docs/mathematics.md §6.7).

It is that of `max_variance` with the u ≥ 0 with Σ u^q ≤ 1, 1/p + 1/q = 1, in place of the simplex.
With x the weighted variances under the best response to u·w, the step is u^(q − 1/2) ∝ √u · x.
"""

from dataclasses import dataclass

import numpy as np

from rpexplore.common.concurrency import Progress, no_progress
from rpexplore.planning.losses.p_norm import p_norm
from rpexplore.planning.solvers.solution import (
    TOLERANCE,
    Solution,
    VarianceMap,
    best_response,
    report_gap,
    rounding_allowance,
)
from rpexplore.planning.solvers.squarem import Point, Search, squarem_step


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
    d · Var are the shadow prices. After max_rounds evaluations the best plan so far is returned
    with its true bound, whatever its gap.
    """
    if p == 1:
        in_sum = variance_map.residual_weights(table_weights)
        costs, dual_weights = variance_map.privacy_cost_factor, table_weights
        sigma_squared, bound = best_response(costs, in_sum, privacy_cost)
        report_gap(on_progress, 0.0)
    else:
        search = _Search(variance_map, table_weights, privacy_cost, p)
        at = search.visit(np.zeros(len(table_weights)))
        while search.gap > tolerance and search.rounds < max_rounds:
            report_gap(on_progress, search.gap)
            plain = search.visit(at.logs + at.step)
            metric = np.exp(2 * plain.logs - np.max(plain.logs))
            at = squarem_step(search.visit, at.logs, plain.logs - at.logs, plain, metric)
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
    """Weights u with Σ u^q = 1."""

    p: float

    def __post_init__(self) -> None:
        super().__post_init__()
        self.q = self.p / (self.p - 1)

    def visit(self, logs: np.ndarray) -> Point:
        logs = self._onto_set(logs)
        u = np.exp(logs)
        in_sum = self.variance_map.residual_weights(u * self.weights)
        sigma_squared, bound = best_response(
            self.variance_map.privacy_cost_factor, in_sum, self.privacy_cost
        )
        weighted = self.weights * self.variance_map.variances(sigma_squared)
        value = p_norm(weighted, self.p)
        self.keep(value, sigma_squared, bound, u)
        following = (logs / 2 + np.log(weighted / value)) / (self.q - 0.5)
        return Point(u, logs, self._onto_set(following) - logs, bound)

    def _onto_set(self, logs: np.ndarray) -> np.ndarray:
        # Less than e^-600 of the largest is nothing to the bound; this keeps every v positive.
        logs = np.maximum(logs - np.max(logs), -600.0)
        return logs - np.log(np.sum(np.exp(self.q * logs))) / self.q
