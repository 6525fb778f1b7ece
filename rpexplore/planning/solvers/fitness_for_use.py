"""Fitness for use: the smallest privacy cost at which each query is as accurate as wanted (FFU).

Minimise max diag(X) over X ⪰ 0 with w_i X⁺ w_iᵀ ≤ target_i² for every query w_i: the best
correlated Gaussian noise for a list of linear queries (docs/mathematics.md §8). For weights λ on
the cells and y on the queries, T² is a lower bound (`query_root`). The steps

    λ_j ← λ_j X_jj / T,   y_i ← y_i q_i / T        (q_i over the squared target)

are extrapolated by SQUAREM; where they crawl, Newton's method follows the central path of
2 log T + ε Σ log λ + η Σ log y. With η far below ε that leads to the optimum which measures as
little of cells without weight as the queries need.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, qr, solve_triangular

from rpexplore.common.concurrency import Progress, no_progress, one_thread
from rpexplore.planning.solvers.query_root import FactoredQueries, QueryRoot
from rpexplore.planning.solvers.solution import report_gap
from rpexplore.planning.solvers.squarem import squarem_step

TOLERANCE = 1e-4

_MULTIPLICATIVE = 24  # eigendecompositions before Newton's method
_NEWTON = 80  # and in it
# At most so many weights are moved together in a step; the others, of least influence on one
# another, each on its own.
_MOST_TOGETHER = 2_500
_LONGEST = 4.0  # the largest change of a weight's logarithm in a step
_SHRINKING = 0.2  # of the barrier
_ENOUGH = 0.05  # of the gain that the slope promises: a step is taken
# The barrier of all queries together over that of all cells.
_QUERY_SHARE = 0.03
# Cells' weights this far below their mean, and queries this much better than wanted, leave
# room.
_LIGHT, _SLACK = 0.01, 0.99
# Steps to settle what is in that room, and the slope, over the barrier, at which it is settled.
_SETTLING, _SETTLED = 25, 0.01


@dataclass(frozen=True, eq=False)
class Fitness:
    """How a list of queries is best measured, and what is proven of that.

    matrix         R, float64[k, n_cells], k the rank of the queries; largest column norm² 1
    variances      of each query if R x is measured at privacy cost 1, float64[n_queries]
    cost           the privacy cost at which all queries meet their targets
    lower_bound    of the cost of any Gaussian mechanism that meets them (rounding is allowed for)
    shadow_prices  float64[n_queries], sum 1: by how many per cent the smallest cost falls if the
                   query's target variance grows by one per cent
    cell_weights   λ, float64[n_cells], sum 1; with the shadow prices they prove the bound
    """

    matrix: np.ndarray
    variances: np.ndarray
    cost: float
    lower_bound: float
    shadow_prices: np.ndarray
    cell_weights: np.ndarray

    @property
    def gap(self) -> float:
        """How far the cost can be above the smallest one, relative, ≥ 0."""
        return max(self.cost / self.lower_bound - 1, 0.0)


@one_thread()
def fitness_for_use(
    coefficients: np.ndarray,
    targets: np.ndarray,
    tolerance: float = TOLERANCE,
    *,
    on_progress: Progress = no_progress,
) -> Fitness:
    """The measurement with the smallest privacy cost at which all queries meet their targets.

    coefficients: float64[n_queries, n_cells], no row zero; targets: standard errors,
    float64[n_queries]. The best solution comes with its true bound, whatever its gap.
    """
    # Cells with the same coefficients are one unknown: T depends on the sum of their weights only.
    kinds, kind_of = kinds_of_cells(coefficients)
    search = _Search(FactoredQueries.of(kinds, targets), tolerance, on_progress)
    search.multiply()
    search.follow_the_central_path()
    search.spare_what_is_not_needed()
    root, n = search.best, kinds.shape[1]
    prices = root.weights[n:]
    # Cells with the same coefficients share their weight; those not touched have none.
    touched = kind_of >= 0
    cell_weights = np.zeros(len(kind_of))
    # Shared out evenly: any division proves the same bound.
    alike = np.bincount(kind_of[touched], minlength=n)
    cell_weights[touched] = (root.weights[:n] / alike)[kind_of[touched]]
    matrix = np.zeros((len(root.strategy), len(kind_of)))
    matrix[:, touched] = root.strategy[:, kind_of[touched]]
    # The largest column norm² is the privacy cost of R x at noise of variance 1 (§8).
    matrix /= np.sqrt(np.max(np.sum(matrix**2, axis=0)))
    variances = np.sum(decoding(matrix, coefficients) ** 2, axis=1)
    return Fitness(
        matrix=matrix,
        variances=variances,
        cost=float(np.max(variances / targets**2)),
        lower_bound=cost_bound(coefficients, targets, prices, cell_weights),
        shadow_prices=prices,
        cell_weights=cell_weights,
    )


@one_thread()
def cost_bound(
    coefficients: np.ndarray,
    targets: np.ndarray,
    shadow_prices: np.ndarray,
    cell_weights: np.ndarray,
) -> float:
    """T², lowered by more than its rounding: no Gaussian mechanism meets all targets for less.

    Any shadow prices and cell weights ≥ 0 give such a bound; they are scaled to sum to 1.
    """
    # T is the sum of the singular values of Y^½ (W over the targets) Λ^½.
    rows = np.sqrt(shadow_prices / np.sum(shadow_prices)) / targets
    columns = np.sqrt(cell_weights / np.sum(cell_weights))
    values = np.linalg.svd(rows[:, None] * coefficients * columns, compute_uv=False)
    # Each singular value is off by at most a small multiple of eps times the largest; this is that
    # for all, with the multiple taken as the number of rows and columns and some more.
    allowance = np.finfo(float).eps * len(values) * (100 + sum(coefficients.shape))
    return float(np.sum(values)) ** 2 * (1 - allowance)


@one_thread()
def decoding(matrix: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """D with W = D R and the shortest rows, float64[n_queries, k], for R of full rank."""
    # Rᵀ = Q U, so D = W Q U^−ᵀ; without R Rᵀ, whose condition is the square of R's.
    orthonormal, upper = qr(matrix.T, mode="economic")  # pyright: ignore[reportAssignmentType]
    return solve_triangular(upper, (coefficients @ orthonormal).T, lower=False).T


def kinds_of_cells(coefficients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The queries over kinds of cells with the same coefficients, and the kind of each cell.

    float64[n_queries, n_kinds] and int64[n_cells], −1 for cells that no query touches.
    """
    kinds, kind_of = np.unique(coefficients, axis=1, return_inverse=True)
    touched = np.any(kinds != 0, axis=0)
    indices = np.where(touched, np.cumsum(touched) - 1, -1)
    return kinds[:, touched], indices[kind_of.ravel()]


class _Search:
    """The weights visited so far: the last ones, and the best."""

    def __init__(self, queries: FactoredQueries, tolerance: float, on_progress: Progress) -> None:
        self._queries, self._tolerance, self._on_progress = queries, tolerance, on_progress
        self.visits = 0
        self.at = self.best = QueryRoot(queries, queries.even_state())

    @property
    def done(self) -> bool:
        return self.best.error <= self._tolerance

    def _visit(self, state: np.ndarray) -> QueryRoot:
        root = QueryRoot(self._queries, state)
        self.visits += 1
        if root.error < self.best.error:
            self.best = root
        report_gap(self._on_progress, self.best.error)
        return root

    def multiply(self) -> None:
        """Multiplicative steps, extrapolated by SQUAREM."""
        while not self.done and self.visits < _MULTIPLICATIVE:
            first = self.at
            second = self._visit(first.following)
            if self.done:
                return
            self.at = squarem_step(self._visit, first.state, first.step, second, first.weights)

    def follow_the_central_path(self) -> None:
        """Newton's steps, with barriers that are made smaller whenever they have come near."""
        if self.done:
            return
        barrier = _SHRINKING * min(self.best.error, 0.3)
        self._enter(barrier)
        for _ in range(_NEWTON):
            if self.done:
                return
            length, slope = self._move(barrier)
            # Near the central path for this barrier: lower it, though not below what the tolerance
            # needs.
            if length > 0.3 and slope < 0.5 * barrier:
                barrier = max(_SHRINKING * barrier, _SHRINKING * self._tolerance)

    def spare_what_is_not_needed(self) -> None:
        """On to the central path, where others than what was found are as good."""
        n, ratios = self._queries.n_cells, self.best.ratios
        is_open = self.best.weights[:n].min() * n < _LIGHT and ratios[n:].min() < _SLACK
        if not (self.done and is_open):
            return
        barrier = _SHRINKING * self._tolerance
        self._enter(barrier)
        for _ in range(_SETTLING):
            length, slope = self._move(barrier)
            if length == 1 and slope < _SETTLED * barrier:
                break
        if self.at.error <= self._tolerance:
            self.best = self.at

    def _barriers(self, barrier: float) -> np.ndarray:
        """The barrier of each weight: `barrier` of all cells together, far less of all queries."""
        n, count = self._queries.n_cells, len(self.best.weights)
        return np.repeat([barrier / n, _QUERY_SHARE * barrier / (count - n)], [n, count - n])

    def _enter(self, barrier: float) -> None:
        """Go to the best weights, none far below what it is on the central path."""
        least = self._barriers(barrier) / 2
        self.at = self._visit(np.log(np.maximum(self.best.weights, least)))

    def _move(self, barrier: float) -> tuple[float, float]:
        """A step towards the central path: the share of Newton's step taken, and its slope."""
        barriers, before = self._barriers(barrier), self.at
        step, slope = self._newton_step(barriers)
        length = min(1.0, _LONGEST / max(float(np.abs(step).max()), 1e-300))
        present = np.log(before.root) * 2 + barriers @ before.state
        while True:
            self.at = self._visit(before.state + length * step)
            reached = np.log(self.at.root) * 2 + barriers @ self.at.state
            # Armijo's rule; 1e-13 lets through what is lost in rounding near the optimum.
            if reached >= present + _ENOUGH * length * slope - 1e-13 or length < 1e-3:
                return length, slope
            length /= 2

    def _newton_step(self, barriers: np.ndarray) -> tuple[np.ndarray, float]:
        """Newton's step in the logarithms of the weights, and how steep it is."""
        at, n = self.at, self._queries.n_cells
        # Lagrange multipliers of the two sums: at the path's point share + barrier = multiplier ·
        # weight.
        sums = np.add.reduceat(barriers, [0, n])
        multipliers = np.repeat(1 + sums, [n, len(barriers) - n]) * at.weights
        gradient = at.shares + barriers - multipliers
        # Kept above 0, so that the system stays positive definite far from the path, too.
        own = np.maximum(multipliers - at.shares, barriers)
        # Weights keep their sums: 1 for the cells, 1 for the queries.
        kept = np.zeros((len(at.weights), 2))
        kept[:n, 0], kept[n:, 1] = at.weights[:n], at.weights[n:]
        wanted = np.column_stack([gradient, kept])
        diagonal = at.curvature_diagonal()
        solved = wanted / (own + diagonal)[:, None]
        # The weights that move one another most are solved for together, the others by the
        # diagonal.
        together = np.sort(np.argsort(-diagonal / own, kind="stable")[:_MOST_TOGETHER])
        curvature = at.curvature(together) + np.diag(own[together])
        solved[together] = cho_solve(cho_factor(curvature), wanted[together])
        # Schur complement of the two conditions on sums.
        multiples = np.linalg.solve(kept.T @ solved[:, 1:], kept.T @ solved[:, 0])
        step = solved[:, 0] - solved[:, 1:] @ multiples
        return step, float(gradient @ step)
