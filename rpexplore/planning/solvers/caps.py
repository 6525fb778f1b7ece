"""Sums and largest ratios as small as caps on variances allow; whether caps can be kept."""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from rpexplore.common.processes import Progress, no_progress
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.variances import CellVariances
from rpexplore.planning.solvers.acceleration import MOST_CELLS, Point, Search, central_cap_prices
from rpexplore.planning.solvers.largest_variance import are_in, minimise_max_cell_variance
from rpexplore.planning.solvers.solution import (
    TOLERANCE,
    CellPrices,
    Solution,
    best_response,
    dual_bound,
    report_gap,
    rounding_allowance,
)

# ---- Whether all variances can be kept within caps, and a plan that comes as far inside as can
# be.


# Plans keep caps that are lower by this much, so that they keep the caps themselves when their
# noise scales have been rounded up to 12 digits.
CAP_ROUNDING = 1.1e-11
_TRACE = 1e-24  # weight that leaves tables without caps out of sight; the bound holds its root
_ROOM = 0.5  # share of what the caps leave that other tables get in a plan to mix with
_FINEST = 1e-11  # gap of a plan inside caps that leave next to no room


@dataclass(frozen=True, eq=False)
class FeasiblePoint:
    """A plan that comes as far inside all caps as can be.

    solution  residuals in no capped table cost next to nothing; its shadow prices: elasticity of
              `largest` in 1/cap
    largest   its largest Var/cap: caps can be met if it is at most 1, and not if the solution's
              lower bound is above 1; both fall as 1/budget
    """

    solution: Solution
    largest: float

    @property
    def is_feasible(self) -> bool:
        """Whether the caps are kept, and would be if they were lower by what rounding takes."""
        return self.largest < 1 - CAP_ROUNDING


def find_feasible(
    cells: CellVariances,
    caps: np.ndarray,
    privacy_cost: float,
    tolerance: float = TOLERANCE,
    *,
    on_progress: Progress = no_progress,
) -> FeasiblePoint:
    """The plan with the smallest max Var/cap over the tables with a cap, at this privacy cost.

    caps: float64[n_tables], inf for tables without one. It is found to the tolerance, or better
    where it takes that to tell whether there is room.
    """
    capped = np.flatnonzero(np.isfinite(caps))
    # Tables without a cap only need some scale for their trace: that of a typical cap.
    inverse = np.where(np.isfinite(caps), 1 / caps, np.exp(-np.mean(np.log(caps[capped]))))
    trace = cells.closure.residual_weights(inverse) * (_TRACE / len(caps))
    solution, gap = None, tolerance
    while True:
        solution = minimise_max_cell_variance(
            cells,
            inverse,
            privacy_cost,
            gap,
            tables=capped,
            fixed_weights=trace,
            start=solution,
            on_progress=on_progress,
        )
        least_accurate = cells.least_accurate(solution.sigma_squared).variances
        largest = float(np.max((least_accurate / caps)[capped]))
        # Settled: provably infeasible, clearly feasible, or so near to 1 that rounding decides.
        if solution.lower_bound >= 1 or largest <= 1 - 10 * gap or gap <= _FINEST:
            break
        gap = max(gap / 30, _FINEST)
    return FeasiblePoint(solution, largest)


def with_room(
    closure: Closure, inside: FeasiblePoint, table_weights: np.ndarray, privacy_cost: float
) -> np.ndarray:
    """A plan inside the caps that measures all residuals in earnest, float64[n_residuals].

    table_weights: float64[n_tables], such that every residual lies in a table with a weight
    """
    share = _ROOM * (1 - CAP_ROUNDING - inside.largest)
    weights = closure.residual_weights(table_weights)
    others, _ = best_response(closure.privacy_cost_factor, weights, privacy_cost)
    # Mixed by precisions: their costs p/σ² add up, so the mix costs what both cost; Var is convex
    # in them.
    return 1 / ((1 - share) / inside.solution.sigma_squared + share / others)


# ---- A weighted sum of variances as small as caps on variances allow (docs/mathematics.md §6.5).
#
# Minimised is Σ v₀ σ², with Var_B ≤ u_B for some tables, at a privacy cost c. For prices z ≥ 0 on
# the caps, F(z) = (Σ_j √(p_j v_j))² / c − Σ_B z_B with v = v₀ + Bᵀ(z/u) is a lower bound. The step
# z ← z·g², with g = Var/u under the best response to v, raises it, and SQUAREM accelerates that; at
# every visit the best common multiple of the prices is taken. The best response breaks caps a
# little until the prices are right, and is mixed with a plan inside all caps.
#
# Where the cells of a table differ, cells are taken in as in `largest_variance`.


_MOST_PASSES = 100
_ROUNDS, _ROUNDS_OF_MANY = 150, 5000  # of multiplicative steps
_NOTHING = 1e-12
_FARTHEST = 14.0  # that the logarithm of all prices moves at once
_MOST_NEWTON, _CLOSE = 60, 1e-5


def minimise_capped(
    cells: CellVariances,
    inside: FeasiblePoint,
    *,
    table_weights: np.ndarray,
    caps: np.ndarray,
    privacy_cost: float,
    tolerance: float = TOLERANCE,
    on_progress: Progress = no_progress,
) -> Solution:
    """The σ² that minimise Σ_A table_weights[A] · (mean variance of A), while all Var ≤ caps.

    inside: of `find_feasible` for the same caps and cost, with room. table_weights, caps:
    float64[n_tables], u is inf for tables without a cap, which need a weight. The dual_weights
    hold the weights plus z/u of each table, and the shadow prices each table's share of z.
    """
    closure, pure = cells.closure, cells.workload.is_marginals
    held = closure.residual_weights(table_weights)
    capped = np.flatnonzero(np.isfinite(caps))
    inverse = 1 / (caps * (1 - CAP_ROUNDING))
    # Loss and caps alike, so that no residual of either is left without noise in the mix.
    everywhere = table_weights / np.sum(table_weights) + inverse / np.sum(inverse)
    room = with_room(closure, inside, everywhere, privacy_cost)
    least_accurate = cells.least_accurate(room)
    inner = float(np.max(least_accurate.variances[capped] * inverse[capped]))
    best_value, best_sigma_squared = float(held @ room), room
    at, rows = _first_cells(cells, capped, least_accurate.rows[capped])
    start = (inside.solution.shadow_prices[at] + 1e-6 / len(at)) * best_value
    best_bound, gap, kept, kept_at, kept_rows = 0.0, 1.0, start, at, rows
    for _ in range(_MOST_PASSES):
        # Exactly only when the cells are the right ones: until then a thirtieth of the present gap.
        gap_wanted = tolerance if pure else max(tolerance / 2, min(gap, 0.1) / 30)
        of_cells = cells.map(at, rows)
        search = _Search(of_cells, inverse[at], privacy_cost, held, room)
        # Few cells: soon handed over to Newton's method, which solves a dense system of that size.
        rounds = _ROUNDS if len(start) <= MOST_CELLS else _ROUNDS_OF_MANY
        prices = search.run(start, gap_wanted, rounds, on_progress).weights
        if search.gap > gap_wanted and len(at) <= MOST_CELLS:
            prices = search.centred(of_cells.matrix, prices, gap_wanted)
        if search.best_bound > best_bound:
            best_bound, kept, kept_at, kept_rows = search.best_bound, search.best_weights, at, rows
        # The search knows of some cells only; others may be above their caps.
        sigma_squared = search.best_sigma_squared
        least_accurate = cells.least_accurate(sigma_squared)
        relative = least_accurate.variances[capped] * inverse[capped]
        if np.max(relative) > 1:
            sigma_squared = search.mixed(sigma_squared, float(np.max(relative)), inner)
        value = float(held @ sigma_squared)
        if value < best_value:
            best_value, best_sigma_squared = value, sigma_squared
        before, gap = gap, best_value / best_bound - 1 if best_bound > 0 else np.inf
        report_gap(on_progress, gap)
        if pure or gap <= tolerance:
            break
        # Cutting planes: cells that break their caps by more than the tolerance leaves room for.
        new = capped[relative > 1 + tolerance / 8]
        new = new[~are_in(at, rows, new, least_accurate.rows[new])]
        if len(new) == 0 and gap >= before:
            break
        at, rows = np.append(at, new), np.concatenate([rows, least_accurate.rows[new]])
        # Above 0, because multiplicative steps never leave 0.
        start = np.append(prices, np.full(len(new), 1e-3 * float(np.mean(prices))))
    per_table = np.bincount(kept_at, kept * inverse[kept_at], len(caps))
    # A price that is nothing beside the weight could not be told from rounding.
    dual_weights = table_weights + np.where(per_table > _NOTHING * table_weights, per_table, 0.0)
    total = float(np.sum(kept))
    return Solution(
        sigma_squared=best_sigma_squared,
        # F is a difference of two sums, so both are allowed for: the root, which is bound + Σ z,
        # and Σ z.
        lower_bound=best_bound - rounding_allowance(len(caps)) * (best_bound + 2 * total),
        shadow_prices=np.bincount(kept_at, kept, len(caps)) / total,
        cells=None if pure else CellPrices.sorted(kept_at, kept_rows, kept / total),
        dual_weights=dual_weights,
    )


def _first_cells(
    cells: CellVariances, capped: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(tables, rows) of the cells to begin with: those in `rows`, and one that all noise reaches.

    The former may be cells that some residual does not reach, which they leave without weight.
    """
    if cells.workload.is_marginals:
        return capped, rows
    widest = np.array([int(np.argmax(basis.spread)) for basis in cells.moments] + [0])
    reached = widest[cells.workload.attribute_basis_index[capped]]
    differ = np.any(reached != rows, axis=1)
    return np.append(capped, capped[differ]), np.concatenate([rows, reached[differ]])


@dataclass(eq=False)
class _Search(Search):
    """Prices z of caps."""

    held: np.ndarray
    room: np.ndarray

    def __post_init__(self) -> None:
        super().__post_init__()
        self._inner = float(np.max(self.weights * self.variance_map.variances(self.room)))

    def centred(self, matrix: sparse.csr_array, start: np.ndarray, tolerance: float) -> np.ndarray:
        """Visit the prices that Newton's method finds from `start`; returns them.

        matrix: that of the map of variances
        """
        prices = central_cap_prices(
            sparse.csr_array(matrix.multiply(self.weights[:, None])),
            self.variance_map.privacy_cost_factor,
            self.held,
            start,
            privacy_cost=self.privacy_cost,
            value=self.best_value,
            gap=self.gap,
            tolerance=tolerance,
        )
        # A multiple of them would leave the caps that their response keeps.
        self._evaluate(prices, self.variance_map.residual_weights(prices * self.weights))
        return prices

    def visit(self, logs: np.ndarray) -> Point:
        """Evaluate the best multiple of these prices."""
        # Extrapolation can go astray; far off, the bound is lower and the step is taken back. That
        # all prices are small is for the multiple to say.
        logs = logs - min(np.max(logs) + 100.0, 0.0)
        logs = np.minimum(logs, 300.0)
        logs = np.maximum(logs, np.max(logs) - 600.0)
        prices = np.exp(logs)
        priced = self.variance_map.residual_weights(prices * self.weights)
        log_k = self._best_multiple(priced, float(np.sum(prices)))
        prices = prices * np.exp(log_k)
        step, bound = self._evaluate(prices, np.exp(log_k) * priced)
        return Point(prices, logs + log_k, step, bound)

    def _evaluate(self, prices: np.ndarray, priced: np.ndarray) -> tuple[np.ndarray, float]:
        """The plain step from these prices, and their bound.

        priced: their part of the weights of σ²
        """
        costs = self.variance_map.privacy_cost_factor
        sigma_squared, minimum = best_response(costs, self.held + priced, self.privacy_cost)
        # The prices pay for the caps themselves, not for what is left of them for rounding.
        bound = minimum - float(np.sum(prices)) / (1 - CAP_ROUNDING)
        relative = self.weights * self.variance_map.variances(sigma_squared)
        broken = float(np.max(relative))
        if broken > 1:
            sigma_squared = self.mixed(sigma_squared, broken, self._inner)
        value = float(self.held @ sigma_squared)
        self.keep(value, sigma_squared, bound, prices)
        # The step z ← z·g² in logarithms (§6.5).
        return 2 * np.log(relative), bound

    def mixed(self, sigma_squared: np.ndarray, broken: float, inner: float) -> np.ndarray:
        """With just enough of the plan inside the caps, all of the budget used.

        broken, inner: the largest Var/cap of either
        """
        # Variances are linear in σ²: with this share the largest Var/cap is at most 1.
        share = (broken - 1) / (broken - inner)
        mixed = (1 - share) * sigma_squared + share * self.room
        return mixed * (
            float(np.sum(self.variance_map.privacy_cost_factor / mixed)) / self.privacy_cost
        )

    def _best_multiple(self, priced: np.ndarray, total: float) -> float:
        """log k, such that (Σ√(p (held + k·priced)))² / c − k·total is largest.

        Concave in k: Newton's method on the logarithm of the ratio of the slopes, between bounds.
        """
        low, high, log_k = -_FARTHEST, _FARTHEST, 0.0
        for _ in range(_MOST_NEWTON):
            weights = self.held + np.exp(log_k) * priced
            roots = np.sqrt(self.variance_map.privacy_cost_factor * weights)
            share = np.exp(log_k) * priced / weights
            root_sum, slope = float(np.sum(roots)), float(roots @ share) / 2
            ratio = np.log(2 * root_sum * slope / self.privacy_cost / total) - log_k
            bend = float(roots @ (share * (1 - share / 2))) / 2
            # Derivative of `ratio` in log k; below 0 as F is concave, up to rounding.
            fall = slope / root_sum + bend / slope - 1
            low, high = (log_k, high) if ratio > 0 else (low, log_k)
            if abs(ratio) <= _CLOSE or high - low <= _CLOSE:
                break
            # Bisection where Newton's step would leave the interval.
            following = log_k - ratio / fall if fall < 0 else np.inf
            log_k = following if low < following < high else (low + high) / 2
        return log_k


# ---- The smallest largest ratio to targets, while other tables keep caps (docs/mathematics.md
# §6.6).
#
# Minimised is max_A t_A · Var_A over some tables, with Var_B ≤ u_B for the others. For a factor τ
# `largest_variance` finds h(τ), the smallest possible maximum of all t_A · Var_A / τ and Var_B /
# u_B together; the optimum is the τ at which h is 1, found by Newton's method in 1/τ. If the prices
# y and z of the two kinds of tables prove h(τ) ≥ f, the optimum is at least τ · (f − Σ z) / Σ y.


_MOST_STEPS = 40
_MOST_IDLE = 3  # steps in a row that better neither the plan nor the bound
_MAX_FARTHEST = 100.0  # that a step takes τ, as a factor
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
        low, high = max(bound, lowest, factor / _MAX_FARTHEST), min(value, factor * _MAX_FARTHEST)
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
