"""The smallest largest ratio to targets, while other tables keep caps (docs/mathematics.md §6.6).

Minimised is max_A t_A · Var_A over some tables, with Var_B ≤ u_B for the others. For a factor τ
`max_cell_variance` finds h(τ), the smallest possible maximum of all t_A · Var_A / τ and Var_B / u_B
together; the optimum is the τ at which h is 1, found by Newton's method in 1/τ. If the prices y and
z of the two kinds of tables prove h(τ) ≥ f, the optimum is at least τ · (f − Σ z) / Σ y.
"""

from dataclasses import dataclass, replace

import numpy as np

from rpexplore.common.concurrency import Progress, no_progress
from rpexplore.planning.mechanism.cell_variances import CellVariances
from rpexplore.planning.solvers.feasibility import CAP_ROUNDING, FeasiblePoint, with_room
from rpexplore.planning.solvers.max_cell_variance import minimise_max_cell_variance
from rpexplore.planning.solvers.solution import (
    TOLERANCE,
    Solution,
    dual_bound,
    report_gap,
    rounding_allowance,
)

_MOST_STEPS = 40
_MOST_IDLE = 3  # steps in a row that better neither the plan nor the bound
_FARTHEST = 100.0  # that a step takes τ, as a factor
_FIRST_GAP = 1e-3
_LEAST_GAP = 5e-12  # of h: less is lost in rounding


def minimise_capped_max(
    cells: CellVariances,
    inside: FeasiblePoint,
    *,
    table_weights: np.ndarray,
    caps: np.ndarray,
    privacy_cost: float,
    tolerance: float = TOLERANCE,
    on_progress: Progress = no_progress,
) -> Solution:
    """The σ² that minimise max_A table_weights[A] · Var_A, while all Var ≤ caps.

    inside: of `find_feasible` for the same caps and cost, with room. table_weights, caps:
    float64[n_tables], t is 0 for tables with a cap, u is inf for tables with a weight. Of a
    table's cells the least accurate one counts. The dual_weights hold t·y/Σy of each table in the
    maximum and (τ/u)·z/Σy of each with a cap; the shadow prices are y and z.
    """
    counted = table_weights > 0
    # One common scale: t of a table in the maximum, 1/u of one with a cap.
    inverse = np.where(counted, table_weights, 1 / (caps * (1 - CAP_ROUNDING)))

    def of_factor(sigma_squared: np.ndarray) -> tuple[float, float]:
        """(largest t · Var, largest Var/u)."""
        relative = cells.least_accurate(sigma_squared).variances * inverse
        return float(np.max(relative[counted])), float(np.max(relative[~counted]))

    sigma_squared = with_room(cells.closure, inside, inverse, privacy_cost)
    value, _ = of_factor(sigma_squared)
    # Below it is no maximum, because it is at least the mean, whatever the caps are.
    alone = cells.closure.residual_weights(table_weights / np.count_nonzero(counted))
    lowest = dual_bound(cells.closure.privacy_cost_factor, alone, privacy_cost)
    # τ begins in the middle, by logarithm, of what is known of the optimum.
    factor, bound, gap_wanted, idle = float(np.sqrt(lowest * value)), 0.0, _FIRST_GAP, 0
    solution, best, gap = None, None, np.inf
    for _ in range(_MOST_STEPS):
        solution = minimise_max_cell_variance(
            cells,
            np.where(counted, inverse / factor, inverse),
            privacy_cost,
            gap_wanted,
            start=solution,
            on_progress=lambda doing, share, gap=gap: report_gap(on_progress, gap),
        )
        step = _Step(solution, factor, counted)
        largest, relative = of_factor(solution.sigma_squared)
        idle += 1
        # Only what keeps all caps is a plan; its largest t · Var is then a value of the problem.
        if relative <= 1 and largest < value:
            value, sigma_squared, idle = largest, solution.sigma_squared, 0
        if step.bound > bound:
            bound, best, idle = step.bound, step, 0
        gap = value / bound - 1 if bound > 0 else np.inf
        report_gap(on_progress, gap)
        if gap <= tolerance or (best is not None and idle >= _MOST_IDLE):
            break
        low, high = max(bound, lowest, factor / _FARTHEST), min(value, factor * _FARTHEST)
        moved = abs(float(np.log(np.clip(step.factor_where(1.0), low, high) / factor)))
        # By so much, or by so much of what is missing, the next h is likely to be off 1 anyway.
        off = step.of_counted * moved**2 if moved < 0.3 else abs(1 - solution.lower_bound)
        gap_wanted = np.clip(off / 10, step.of_counted * tolerance / 3, _FIRST_GAP)
        gap_wanted = max(float(gap_wanted), _LEAST_GAP)
        # So far below 1 that the next plan keeps the caps, whatever its gap is.
        following = step.factor_where(1 / (1 + gap_wanted))
        factor = following if low <= following <= high else float(np.sqrt(low * high))
    assert best is not None  # at the lowest factor h is above 1, and so is its bound above 0
    return replace(
        best.solution,
        sigma_squared=sigma_squared,
        lower_bound=bound,
        dual_weights=best.dual_weights(inverse),
    )


@dataclass(frozen=True, eq=False)
class _Step:
    """The solution for one factor, and what it proves."""

    solution: Solution
    factor: float
    counted: np.ndarray

    @property
    def of_counted(self) -> float:
        """Σ y, above 0."""
        return max(float(np.sum(self.solution.shadow_prices[self.counted])), 1e-300)

    @property
    def bound(self) -> float:
        """Below it is no plan that keeps the caps."""
        prices, least = self.solution.shadow_prices, self.solution.lower_bound
        # The prices pay for the caps themselves, not for what is left of them for rounding.
        of_caps = float(np.sum(prices[~self.counted])) / (1 - CAP_ROUNDING)
        rounding = rounding_allowance(len(prices)) * (least + of_caps)
        return self.factor * (least - of_caps - rounding) / self.of_counted

    def factor_where(self, wanted: float) -> float:
        """About the factor at which h is as wanted, by the slope of h in 1/factor; 0: none is."""
        least = self.solution.lower_bound
        # h is nearly linear in 1/τ: d log h / d log(1/τ) = Σ y (§6.6), here around the present
        # factor.
        inverse = 1 + (wanted - least) / (least * self.of_counted)
        return self.factor / inverse if inverse > 0 else 0.0

    def dual_weights(self, inverse: np.ndarray) -> np.ndarray:
        """Of each table, float64[n_tables]; inverse: t or 1/u."""
        per_price = inverse * np.where(self.counted, 1.0, self.factor)
        return self.solution.shadow_prices * per_price / self.of_counted
