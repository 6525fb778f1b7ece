"""Solvers for lists of queries: fitness for use, the classical sum, and rounding (§7.5, §8)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
from scipy.linalg import cho_factor, cho_solve, null_space, qr, solve_triangular

from rpexplore.common.processes import Progress, no_progress, one_thread
from rpexplore.planning.solvers.acceleration import anderson_acceleration, squarem_step
from rpexplore.planning.solvers.solution import report_gap
from rpexplore.planning.solvers.strategy_matrix import weights_of

# ---- The root that bounds the cost of a query list, for given weights (docs/mathematics.md §8).
#
# Queries W, each over its target, are written as W = A F, with the k rows of F orthonormal. For
# weights λ on the cells and y on the queries, both summing to 1, G = F Λ Fᵀ = E Eᵀ and H = Aᵀ Y A =
# E^{−ᵀ} S² E^{−1}, S diagonal,
#
#     T = tr S,   X_jj = Σ_r s_r v_jr²,   q_i = w_i X⁺ w_iᵀ = Σ_r s_r u_ir²
#
# with v_j = E^{−1} f_j for the cells and u_i = S^{−1} Eᵀ a_i for the queries. Cells and queries are
# alike in all this, and so they are in the code: one list of weights, first the cells'.


# Directions that next to no query touches are measured nevertheless, so that all answers can be
# decoded; they take this share of the root between them.
_UNASKED_SHARE = 5e-9
# Below this, relative, eigenvalues are computed as squares of singular values, which takes longer.
_COARSE = 1e-11
# Singular values of the queries, each scaled to length 1, that are rounding; relative.
_RANK_TOLERANCE = 1e-11
# The step and the ends of the sum that replaces an integral, in logarithms: off by about 1 %.
_NODE_STEP, _BEFORE, _BEYOND = 1.5, 4.0, 2.5


@dataclass(frozen=True, eq=False)
class FactoredQueries:
    """Queries over their targets as W = A F.

    answers: A, float64[n_queries, k]; cells: F, float64[k, n_cells], orthonormal rows
    """

    answers: np.ndarray
    cells: np.ndarray

    @classmethod
    def of(cls, coefficients: np.ndarray, targets: np.ndarray) -> "FactoredQueries":
        """From queries, float64[n_queries, n_cells], no row zero, and their targets."""
        lengths = np.linalg.norm(coefficients, axis=1)
        left, values, right = np.linalg.svd(coefficients / lengths[:, None], full_matrices=False)
        # Rows scaled to length 1 first: a query of tiny coefficients is not to be taken for
        # rounding.
        k = int(np.count_nonzero(values > values[0] * _RANK_TOLERANCE))
        scales = lengths / targets
        return cls(scales[:, None] * left[:, :k] * values[:k], right[:k])

    @property
    def n_cells(self) -> int:
        return self.cells.shape[1]

    def even_state(self) -> np.ndarray:
        """Logarithms of weights that are the same for all cells, and for all queries."""
        counts = (self.n_cells, len(self.answers))
        return np.concatenate([np.full(count, -np.log(count)) for count in counts])


class QueryRoot:
    """One eigendecomposition: the root T for some weights, and the plan that it suggests.

    weights: float64[n_cells + n_queries], λ and then y; state: their logarithms
    ratios: X_jj / T and q_i / T; at the optimum at most 1, and 1 where there is weight
    error: the plan's cost is T²·(1 + error), and none is below T²
    following: logarithms of λ_j X_jj / T and y_i q_i / T, the weights that follow
    vectors: v_j √λ_j and then u_i √y_i, float64[n_cells + n_queries, k]; roots: s
    """

    def __init__(self, queries: FactoredQueries, state: np.ndarray) -> None:
        self._queries, n = queries, queries.n_cells
        self.weights = np.concatenate([weights_of(state[:n]), weights_of(state[n:])])
        self.state = np.log(self.weights)
        cell_weights, query_weights = self.weights[:n], self.weights[n:]
        of_cells = (queries.cells * cell_weights) @ queries.cells.T  # G
        of_queries = (queries.answers.T * query_weights) @ queries.answers  # H
        # G = E Eᵀ; S² are the eigenvalues of Eᵀ H E (top of this file).
        factor = np.linalg.cholesky(of_cells)
        squares, turned = np.linalg.eigh(factor.T @ of_queries @ factor)
        roots = np.sqrt(np.maximum(squares, 0))
        if squares[0] < _COARSE * squares[-1]:
            # In a square the smallest roots are lost in rounding.
            halves = np.sqrt(query_weights)[:, None] * (queries.answers @ factor)
            _, roots, rows = np.linalg.svd(np.linalg.qr(halves, mode="r"))
            turned = rows.T
        self.root = float(roots.sum())  # T
        self.roots = np.maximum(roots, _UNASKED_SHARE * self.root / len(roots))
        at_cells = turned.T @ solve_triangular(factor, queries.cells, lower=True)  # vᵀ
        at_queries = queries.answers @ (factor @ turned) / self.roots  # u
        self.strategy = np.sqrt(self.roots)[:, None] * at_cells  # X = strategyᵀ · strategy
        self.vectors = np.vstack([at_cells.T, at_queries]) * np.sqrt(self.weights)[:, None]
        self.shares = self.vectors**2 @ self.roots / self.root  # of the root; λ's sum to 1, so y's
        self.ratios = self.shares / self.weights
        self.error = float(self.ratios[:n].max() * self.ratios[n:].max() - 1)
        self.following = self.state + np.log(self.ratios)
        self.step = self.following - self.state
        self.bound = self.root  # which multiplicative steps never lower

    def curvature(self, indices: np.ndarray) -> np.ndarray:
        """−2/T ∂²T in the logarithms of the weights at these indices, plus its shares, square.

        Positive semidefinite: with z the vectors, it is ± Σ_ab s_a s_b / (s_a + s_b) z_pa z_qa z_pb
        z_qb, − between a cell and a query; the quotient is ∫ e^{−t/s_a} e^{−t/s_b} dt, over ln t.
        """
        vectors, roots = self.vectors[indices], self.roots / self.root
        total = np.zeros((len(indices), len(indices)))
        for time in self._times():
            # One node: the sum over a and b is then the square of a Gram matrix, entry by entry.
            part = vectors * np.exp(-time / 2 / roots)
            total += _NODE_STEP * time * (part @ part.T) ** 2
        signs = np.where(indices < self._queries.n_cells, 1.0, -1.0)
        return total * signs[:, None] * signs

    def curvature_diagonal(self) -> np.ndarray:
        """The diagonal of `curvature` for all weights, float64[n_cells + n_queries]."""
        squares, roots = self.vectors**2, self.roots / self.root
        return sum(
            (_NODE_STEP * time * (squares @ np.exp(-time / roots)) ** 2 for time in self._times()),
            start=np.zeros(len(squares)),
        )

    def _times(self) -> np.ndarray:
        roots = self.roots / self.root
        # The integrand is negligible well before the smallest root and beyond the largest.
        ends = np.log(roots.min()) - _BEFORE, np.log(roots.max()) + _BEYOND
        return np.exp(np.arange(*ends, _NODE_STEP))


# ---- Fitness for use: the smallest privacy cost at which each query is as accurate as wanted
# (FFU).
#
# Minimise max diag(X) over X ⪰ 0 with w_i X⁺ w_iᵀ ≤ target_i² for every query w_i: the best
# correlated Gaussian noise for a list of linear queries (docs/mathematics.md §8). For weights λ on
# the cells and y on the queries, T² is a lower bound (`QueryRoot`). The steps
#
#     λ_j ← λ_j X_jj / T,   y_i ← y_i q_i / T        (q_i over the squared target)
#
# are extrapolated by SQUAREM; where they crawl, Newton's method follows the central path of
# 2 log T + ε Σ log λ + η Σ log y. With η far below ε that leads to the optimum which measures as
# little of cells without weight as the queries need.


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


# ---- The least sum of query variances over squared targets: the classical objective.


class _CellStep:
    """A step of the cells' weights λ alone, as `anderson_acceleration` takes it."""

    def __init__(self, queries: FactoredQueries, logs: np.ndarray, query_logs: np.ndarray) -> None:
        root, n = QueryRoot(queries, np.concatenate([logs, query_logs])), queries.n_cells
        self.strategy = root.strategy
        self.state, self.following = root.state[:n], root.following[:n]
        self.metric = root.weights[:n] ** 2 * n
        self.error = float(root.ratios[:n].max() - 1)


@one_thread()
def least_sum(
    coefficients: np.ndarray,
    targets: np.ndarray,
    tolerance: float = 1e-6,
    *,
    on_share: Callable[[float], object] = lambda share: None,
) -> np.ndarray:
    """R with the least Σ Var_i / target_i², float64[k, n_cells], largest column norm² 1.

    coefficients: float64[n_queries, n_cells], no row zero. By λ ← λ · diag(X) / T
    (docs/mathematics.md §8 with y even), to about `tolerance` (relative).
    """
    touched = np.any(coefficients != 0, axis=0)
    queries = FactoredQueries.of(coefficients[:, touched], targets)
    even, n = queries.even_state(), queries.n_cells

    solution = anderson_acceleration(
        lambda logs: _CellStep(queries, logs, even[n:]),
        even[:n],
        tolerance=tolerance,
        limit=300,
        on_share=on_share,
    )
    matrix = np.zeros((len(solution.strategy), len(touched)))
    matrix[:, touched] = solution.strategy
    return matrix / np.sqrt(np.max(np.sum(matrix**2, axis=0)))


# ---- Measurements of query lists in integers, at almost no loss (docs/mathematics.md §7.5).
#
# An integer matrix answers all queries without bias as long as they are combinations of its rows:
# what is decoded starts from the integers as they are.


# Bits that are tried for the columns, until the privacy cost is so near to that of R.
_BITS = (16, 20, 23, 25)
_ROUNDED_ENOUGH, _MOST = 1e-4, 1e-3
# No entry is larger, so that sums of the squares of a column, of as many rows, fit into 64 bits.
MOST_ENTRY_BITS, MOST_ROWS = 26, 2_047
_MOST_FAINT = 1_024  # kinds of cells of which all are measured, however faintly
_OFF = 1e-6  # what decodes the queries off by so much, relative, is no measurement of them
_FAINT = 4.0  # the length of faint rows over the root of the longest column's


def integer_measurement(
    matrix: np.ndarray, coefficients: np.ndarray, integers: np.ndarray, targets: np.ndarray
) -> np.ndarray | None:
    """An integer matrix, int64[·, n_cells], that is nearly as good a measurement of queries as R.

    matrix: R, float64[k, n_cells], largest column norm 1. coefficients: the queries,
    float64[n_queries, n_cells]; integers: each of them times some whole number, int64. None if the
    privacy cost at which the targets are met would be more than 0.1 % above that of R.
    """
    wanted = _cost(matrix, coefficients, targets)
    best, smallest = None, wanted * (1 + _MOST)
    distinct, kind_of = kinds_of_cells(integers)
    kinds = None
    if distinct.shape[1] <= _MOST_FAINT:
        # A row for each kind of cells, with 1 for its cells.
        kinds = (kind_of == np.arange(distinct.shape[1])[:, None]).astype(float)
    is_basis = kinds is not None and len(kinds) == len(matrix)
    basis = kinds if kinds is not None and is_basis else _basis(integers, matrix)
    tried = _multiples(matrix, basis)
    if kinds is not None and not is_basis:
        tried = chain(tried, _with_faint_rows(matrix, kinds))
    for rounded in tried:
        if np.abs(rounded).max() > 2.0**MOST_ENTRY_BITS:
            continue
        cost = _cost(rounded, coefficients, targets)
        if cost <= smallest:
            best, smallest = rounded.astype(np.int64), cost
        if smallest <= wanted * (1 + _ROUNDED_ENOUGH):
            break
    return best


def _multiples(matrix: np.ndarray, basis: np.ndarray) -> Iterator[np.ndarray]:
    """R with more and more bits, its rows whole multiples of those of a basis of integers."""
    multiples = np.linalg.lstsq(basis.T, matrix.T, rcond=None)[0].T
    for bits in _BITS:
        yield np.rint(multiples * 2.0**bits) @ basis


def _with_faint_rows(matrix: np.ndarray, kinds: np.ndarray) -> Iterator[np.ndarray]:
    """R with more and more bits, and faintly all directions that it leaves out, for kinds of cells.

    What rounding leaves out of R is taken out with the noise of the faint rows; both are least at
    about the root of R's length.
    """
    first = kinds.argmax(axis=1)  # a cell of each kind
    within = matrix[:, first]
    others = null_space(within).T
    for bits in _BITS:
        faint = others * (_FAINT * 2.0 ** (bits / 2))
        yield np.rint(np.vstack([within * 2.0**bits, faint])) @ kinds


def _basis(integers: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """As many of the queries as R has rows, far from depending on one another, in whole numbers."""
    rows = integers // np.gcd.reduce(integers, axis=1, keepdims=True)
    lengths = np.linalg.norm(rows.astype(float), axis=1, keepdims=True)
    _, order = qr((rows / lengths).T, mode="r", pivoting=True)  # pyright: ignore[reportAssignmentType]
    return rows[np.sort(order[: len(matrix)])].astype(float)


def _cost(matrix: np.ndarray, coefficients: np.ndarray, targets: np.ndarray) -> float:
    """The privacy cost at which a measurement meets all targets; infinite if it meets none."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        try:
            decoded = decoding(matrix, coefficients)
        except np.linalg.LinAlgError:
            return np.inf
        off = np.abs(decoded @ matrix - coefficients).max(axis=1)
        ratio = np.max(np.sum(decoded**2, axis=1) / targets**2)
        if not np.all(off <= _OFF * np.abs(coefficients).max(axis=1)):
            return np.inf
        return float(ratio * np.max(np.sum(matrix**2, axis=0)))
