"""Solvers for lists of queries: fitness for use, the sum of variances, and both (§8)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rpexplore.common.processes import Progress, no_progress, one_thread
from rpexplore.planning.solvers.acceleration import squarem_step
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
#
# The loss is (1 − a) · max_i q_i + a · mean_i q_i: a = 0 is the largest, a = 1 the mean. Then y =
# (1 − a) z + a/m with z free, sum 1; all that is said of queries' weights below is said of z.


# Directions that next to no query touches are measured nevertheless, so that all answers can be
# decoded; they take this share of the root between them.
_UNASKED_SHARE = 5e-9
# Below this, relative, eigenvalues are computed as squares of singular values, which takes longer.
_COARSE = 1e-11
# Singular values of the queries, each scaled to length 1, that are rounding; relative.
_RANK_TOLERANCE = 1e-11
# Operations of a product with the curvature from which single precision is enough.
_MANY = 200_000_000


@dataclass(frozen=True, eq=False)
class FactoredQueries:
    """Queries over their targets as W = A F.

    answers: A, float64[n_queries, k]; cells: F, float64[k, n_cells], orthonormal rows
    average: a, the weight of the mean in the loss, 0 to 1
    """

    answers: np.ndarray
    cells: np.ndarray
    average: float = 0.0

    @classmethod
    def of(
        cls, coefficients: np.ndarray, targets: np.ndarray, average: float = 0.0
    ) -> "FactoredQueries":
        """From queries, float64[n_queries, n_cells], no row zero, and their targets."""
        lengths = np.linalg.norm(coefficients, axis=1)
        left, values, right = np.linalg.svd(coefficients / lengths[:, None], full_matrices=False)
        # Rows scaled to length 1 first: a query of tiny coefficients is not to be taken for
        # rounding.
        k = int(np.count_nonzero(values > values[0] * _RANK_TOLERANCE))
        scales = lengths / targets
        return cls(scales[:, None] * left[:, :k] * values[:k], right[:k], average)

    @property
    def n_cells(self) -> int:
        return self.cells.shape[1]

    def even_state(self) -> np.ndarray:
        """Logarithms of weights that are the same for all cells, and for all queries."""
        counts = (self.n_cells, len(self.answers))
        return np.concatenate([np.full(count, -np.log(count)) for count in counts])


class QueryRoot:
    """One eigendecomposition: the root T for some weights, and the plan that it suggests.

    weights: float64[n_cells + n_queries], λ and then z; state: their logarithms
    query_weights: y, which is z where the loss is the largest ratio
    ratios: X_jj / T and q_i / T; at the optimum at most 1 for cells, and 1 where there is weight;
        as large as any where z has weight for queries
    error: the plan's loss is T²·(1 + error), and none is below T²
    following: logarithms of λ_j X_jj / T and of z_i q_i / Σ z q, the weights that follow
    roots: s, ascending
    shares: of the root, their squares
    are_coarse: whether squares of the roots lose the smallest ones; where weights nearby had it so,
        squares are not tried
    """

    def __init__(
        self, queries: FactoredQueries, state: np.ndarray, *, are_coarse: bool = False
    ) -> None:
        from scipy.linalg import solve_triangular  # slow to import

        self._queries, n = queries, queries.n_cells
        self.weights = np.concatenate([weights_of(state[:n]), weights_of(state[n:])])
        self.state = np.log(self.weights)
        cell_weights, average = self.weights[:n], queries.average
        moved = (1 - average) * self.weights[n:]
        query_weights = self.query_weights = moved + average / len(moved)
        halves = queries.cells * np.sqrt(cell_weights)
        factor = np.linalg.cholesky(halves @ halves.T)  # G = E Eᵀ
        # Its square is Eᵀ H E, with the eigenvalues S² (top of this file).
        halves = np.sqrt(query_weights)[:, None] * (queries.answers @ factor)
        roots, turned = _singular(halves, are_coarse)
        self.are_coarse = bool(roots[0] ** 2 < _COARSE * roots[-1] ** 2)
        self.root = float(roots.sum())  # T
        self.roots = np.maximum(roots, _UNASKED_SHARE * self.root / len(roots))
        # v, by one product of that size: E⁻ᵀ · turned has k columns only.
        at_cells = solve_triangular(factor.T, turned).T @ queries.cells
        at_queries = queries.answers @ (factor @ turned) / self.roots  # u
        # Of several visits these are kept, and nothing else as large.
        self._at_weights = np.vstack([at_cells.T, at_queries])
        # T as a function of ln z is that of ln y, each direction scaled by (1 − a) z / y.
        self._scales = np.concatenate([cell_weights, moved])
        self.ratios = self._at_weights**2 @ self.roots / self.root
        self.shares = self._scales * self.ratios
        of_queries = self.ratios[n:]
        self.loss = (1 - average) * of_queries.max() + average * of_queries.mean()  # over T
        self.error = float(self.ratios[:n].max() * self.loss - 1)
        self.step = np.log(self.ratios)
        self.step[n:] -= np.log(self.weights[n:] @ of_queries)  # of which the sum stays 1
        if average == 1:
            self.step[n:] = 0  # no z matters
        self.following = self.state + self.step
        self.bound = self.root  # which multiplicative steps never lower

    @property
    def strategy(self) -> np.ndarray:
        """√s_r v_jr: X = strategyᵀ · strategy, float64[k, n_cells]."""
        return np.sqrt(self.roots)[:, None] * self._at_weights[: self._queries.n_cells].T

    def vectors(self, indices: np.ndarray) -> np.ndarray:
        """v_j √λ_j and u_i √((1 − a) z_i) of the weights at these indices, float64[·, k]."""
        return self._at_weights[indices] * np.sqrt(self._scales[indices])[:, None]

    def curvature(self, indices: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """−2/T ∂²T in the logarithms of the weights at these indices, plus its shares: products.

        Positive semidefinite: with z the vectors, it is ± Σ_ab s_a s_b / (s_a + s_b) z_pa z_qa z_pb
        z_qb, − between a cell and a query. It is never written out, but multiplied with numbers for
        these weights, float64[·].
        """
        vectors = self.vectors(indices)
        kernel = self._kernel
        if vectors.size * len(kernel) > _MANY:  # twice as fast
            vectors, kernel = vectors.astype(np.float32), kernel.astype(np.float32)
        signs = np.where(indices < self._queries.n_cells, 1, -1).astype(vectors.dtype)

        def product(numbers: np.ndarray) -> np.ndarray:
            scales = signs * numbers.astype(signs.dtype)
            inner = kernel * ((vectors * scales[:, None]).T @ vectors)
            return (signs * np.einsum("pa,pa->p", vectors @ inner, vectors)).astype(float)

        return product

    def curvature_diagonal(self) -> np.ndarray:
        """The diagonal of `curvature` for all weights, float64[n_cells + n_queries]."""
        squares = self._at_weights**2 * self._scales[:, None]
        return np.einsum("pa,pa->p", squares @ self._kernel, squares)

    @property
    def _kernel(self) -> np.ndarray:
        roots = self.roots / self.root
        return np.outer(roots, roots) / np.add.outer(roots, roots)


def _singular(matrix: np.ndarray, are_coarse: bool) -> tuple[np.ndarray, np.ndarray]:
    """Singular values, ascending, and the right singular vectors, as columns; m ≥ k.

    are_coarse: whether the smallest are known to be lost in the eigenvalues of a square
    """
    if not are_coarse:
        squares, vectors = np.linalg.eigh(matrix.T @ matrix)
        if squares[0] >= _COARSE * squares[-1]:
            return np.sqrt(squares), vectors
    _, values, rows = np.linalg.svd(np.linalg.qr(matrix, mode="r"))
    return values[::-1], rows[::-1].T


# ---- Fitness for use: the smallest privacy cost at which each query is as accurate as wanted
# (FFU).
#
# Minimise max diag(X) over X ⪰ 0 with w_i X⁺ w_iᵀ ≤ target_i² for every query w_i: the best
# correlated Gaussian noise for a list of linear queries (docs/mathematics.md §8). For weights λ on
# the cells and y on the queries, T² is a lower bound (`QueryRoot`). The steps
#
#     λ_j ← λ_j X_jj / T,   z_i ← z_i q_i / Σ z q    (q_i over the squared target)
#
# are extrapolated by SQUAREM; where they crawl, Newton's method follows the central path of
# 2 log T + ε Σ log λ + η Σ log z. With η far below ε that leads to the optimum which measures as
# little of cells without weight as the queries need.


TOLERANCE = 1e-4

_MULTIPLICATIVE = 24  # eigendecompositions before Newton's method
_NEWTON = 80  # and in it
# Conjugate gradients end at this share of the residual they began with, or after so many products.
_NEARLY, _PRODUCTS = 0.1, 100
_COUPLED = 1e-3  # curvature of a weight, over what else holds it, below which it moves no other
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
    cost           the loss of these: where it is the largest ratio of one to its squared target,
                   the privacy cost at which all queries meet their targets
    lower_bound    of the cost of any Gaussian mechanism (rounding is allowed for)
    shadow_prices  y, float64[n_queries], sum 1; where the loss is the largest ratio: by how many
                   per cent the smallest cost falls if the query's target variance grows by one per
                   cent
    cell_weights   λ, float64[n_cells], sum 1; with the shadow prices they prove the bound
    state          logarithms of the weights, where a search for a similar loss may begin
    """

    matrix: np.ndarray
    variances: np.ndarray
    cost: float
    lower_bound: float
    shadow_prices: np.ndarray
    cell_weights: np.ndarray
    state: np.ndarray

    @property
    def gap(self) -> float:
        """How far the cost can be above the smallest one, relative, ≥ 0."""
        return max(self.cost / self.lower_bound - 1, 0.0)


@one_thread(with_scipy=True)
def fitness_for_use(
    coefficients: np.ndarray,
    targets: np.ndarray,
    tolerance: float = TOLERANCE,
    *,
    average: float = 0.0,
    state: np.ndarray | None = None,
    on_progress: Progress = no_progress,
) -> Fitness:
    """The measurement with the smallest privacy cost at which all queries meet their targets.

    Args:
        coefficients: float64[n_queries, n_cells], no row zero.
        targets: Standard errors, float64[n_queries].
        average: a; the loss is (1 − a) · the largest ratio of a variance to its squared target + a
            · the mean one, and the cost that at which it is 1.
        state: Where the search begins; that of a solution for another `average`.

    The best solution comes with its true bound, whatever its gap.
    """
    # Cells with the same coefficients are one unknown: T depends on the sum of their weights only.
    kinds, kind_of = kinds_of_cells(coefficients)
    factored = FactoredQueries.of(kinds, targets, average)
    search = _Search(factored, tolerance, on_progress, state)
    search.multiply()
    search.follow_the_central_path()
    search.spare_what_is_not_needed()
    root, n = search.best, kinds.shape[1]
    prices = root.query_weights
    # Cells with the same coefficients share their weight; those not touched have none.
    touched = kind_of >= 0
    cell_weights = np.zeros(len(kind_of))
    # Shared out evenly: any division proves the same bound.
    alike = np.bincount(kind_of[touched], minlength=n)
    cell_weights[touched] = (root.weights[:n] / alike)[kind_of[touched]]
    strategy = root.strategy
    matrix = np.zeros((len(strategy), len(kind_of)))
    matrix[:, touched] = strategy[:, kind_of[touched]]
    # The largest column norm² is the privacy cost of R x at noise of variance 1 (§8).
    matrix /= np.sqrt(np.max(np.sum(matrix**2, axis=0)))
    variances = np.sum(decoding(matrix, coefficients) ** 2, axis=1)
    return Fitness(
        matrix=matrix,
        variances=variances,
        cost=largest_and_mean(variances / targets**2, average),
        lower_bound=cost_bound(coefficients, targets, prices, cell_weights),
        shadow_prices=prices,
        cell_weights=cell_weights,
        state=root.state,
    )


def largest_and_mean(ratios: np.ndarray, average: float) -> float:
    """(1 − average) · the largest ratio + average · the mean one."""
    return float((1 - average) * np.max(ratios) + average * np.mean(ratios))


@one_thread(with_scipy=True)
def cost_bound(
    coefficients: np.ndarray,
    targets: np.ndarray,
    shadow_prices: np.ndarray,
    cell_weights: np.ndarray,
) -> float:
    """T², lowered by more than its rounding: no Gaussian mechanism meets all targets for less.

    At privacy cost 1 none has a smaller Σ shadow price · variance / target². Any shadow prices and
    cell weights ≥ 0 give such a bound; they are scaled to sum to 1.
    """
    # T is the sum of the singular values of Y^½ (W over the targets) Λ^½.
    rows = np.sqrt(shadow_prices / np.sum(shadow_prices)) / targets
    columns = np.sqrt(cell_weights / np.sum(cell_weights))
    values = np.linalg.svd(rows[:, None] * coefficients * columns, compute_uv=False)
    # Each singular value is off by at most a small multiple of eps times the largest; this is that
    # for all, with the multiple taken as the number of rows and columns and some more.
    allowance = np.finfo(float).eps * len(values) * (100 + sum(coefficients.shape))
    return float(np.sum(values)) ** 2 * (1 - allowance)


@one_thread(with_scipy=True)
def decoding(matrix: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """D with W = D R and the shortest rows, float64[n_queries, k], for R of full rank."""
    from scipy.linalg import qr, solve_triangular  # slow to import

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

    def __init__(
        self,
        queries: FactoredQueries,
        tolerance: float,
        on_progress: Progress,
        state: np.ndarray | None,
    ) -> None:
        self._queries, self._tolerance, self._on_progress = queries, tolerance, on_progress
        self.visits = 0
        state = queries.even_state() if state is None else state
        self.at = self.best = QueryRoot(queries, state)

    @property
    def done(self) -> bool:
        return self.best.error <= self._tolerance

    def _visit(self, state: np.ndarray) -> QueryRoot:
        root = QueryRoot(self._queries, state, are_coarse=self.best.are_coarse)
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
        if self._queries.average > 0:
            return  # the mean has one best solution
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
        """Newton's step in the logarithms of the weights, nearly, and how steep it is."""
        at, n = self.at, self._queries.n_cells
        # Lagrange multipliers of the two sums: at the path's point share + barrier = multiplier ·
        # weight.
        sums = np.add.reduceat(at.shares + barriers, [0, n])
        multipliers = np.repeat(sums, [n, len(barriers) - n]) * at.weights
        gradient = at.shares + barriers - multipliers
        # Kept above 0, so that the system stays positive definite far from the path, too.
        own = np.maximum(multipliers - at.shares, barriers)
        diagonal = at.curvature_diagonal()
        # Of weights that hardly move others the diagonal is enough.
        coupled = np.flatnonzero(diagonal > _COUPLED * own)
        curvature = at.curvature(coupled)

        def product(step: np.ndarray) -> np.ndarray:
            image = (own + diagonal) * step
            image[coupled] = own[coupled] * step[coupled] + curvature(step[coupled])
            return image

        # Weights keep their sums: 1 for the cells, 1 for the queries.
        kept = np.zeros((len(at.weights), 2))
        kept[:n, 0], kept[n:, 1] = at.weights[:n], at.weights[n:]
        step = _conjugate_gradients(product, own + diagonal, gradient, kept)
        return step, float(gradient @ step)


def _conjugate_gradients(
    product: Callable[[np.ndarray], np.ndarray],
    diagonal: np.ndarray,
    wanted: np.ndarray,
    kept: np.ndarray,
) -> np.ndarray:
    """About the x with A x = wanted + kept · multiples and keptᵀ x = 0, float64[n].

    product: A x for x, A positive definite; diagonal: A's; kept: float64[n, 2]
    """
    divided = kept / diagonal[:, None]
    schur = kept.T @ divided

    def preconditioned(residual: np.ndarray) -> np.ndarray:
        nearly = residual / diagonal
        return nearly - divided @ np.linalg.solve(schur, kept.T @ nearly)

    step, residual = np.zeros(len(wanted)), wanted
    direction = preconditioned(residual)
    first = norm = float(residual @ direction)
    for _ in range(_PRODUCTS):
        image = product(direction)
        curved = float(direction @ image)
        if not curved > 0:  # by rounding
            break
        step = step + norm / curved * direction
        residual = residual - norm / curved * image
        following = preconditioned(residual)
        before, norm = norm, float(residual @ following)
        if norm <= _NEARLY**2 * first:
            break
        direction = following + norm / before * direction
    return step


# ---- Targets first, then the mean: the least mean of all ratios of which none is above 1.
#
# With a multiplier for each target, the Lagrangian is a sum of ratios with weights y of at least
# 1/m each: the same loss (1 − a) · max + a · mean, for the a at which the largest ratio is just 1.
# The larger a, the larger it is. Between two solutions X, one within the targets and one beyond,
# ratios are convex along the line, so that its points are better than the chord says.


_SEARCHES = 12  # for a, each of them a search for weights
_ROUGH_SEARCHES = 8  # before them, each so many times less exact, but no less than _COARSEST
_LOOSER, _COARSEST = 30.0, 3e-3
_NEAR = 0.01  # relative, of the largest ratio to the budget, at which rough searches end
_NEAR_END = 0.1  # share of a bracket
_EDGE = 7.0  # |logit a| beyond which a is as good as 0 or 1
_BEYOND_ROOT = 1.5  # times the secant's step, so that the root is between the last two points
_LEAST_TOLERANCE = 0.02  # of a search, over the one wanted
_CHORDS = 6  # steps along the line between two solutions


@dataclass(frozen=True, eq=False)
class WithinTargets:
    """Solutions for several a, ascending: the largest ratio grows along them, the mean one falls.

    proof: the one whose weights give the best bound on the mean
    """

    coefficients: np.ndarray
    targets: np.ndarray
    solutions: tuple[Fitness, ...]
    proof: Fitness

    def matrix(self, cost: float) -> np.ndarray:
        """R as of `Fitness`, with a largest ratio of at most 1 at this privacy cost.

        As far towards the smaller mean as that allows; that of the first solution where none is.
        """
        squares = self.targets**2
        excess = [float(np.max(each.variances / squares)) - cost for each in self.solutions]
        last = max((place for place, each in enumerate(excess) if each <= 0), default=0)
        best, slack, share = self.solutions[last].matrix, excess[last], 0.0
        if last + 1 == len(self.solutions) or slack > 0:
            return best
        for _ in range(_CHORDS):
            # Where the chord from the point reached to the far end crosses the limit.
            share += (1 - share) * slack / (slack - excess[last + 1])
            matrix = _mixed(self.solutions[last].matrix, self.solutions[last + 1].matrix, share)
            variances = np.sum(decoding(matrix, self.coefficients) ** 2, axis=1)
            reached = float(np.max(variances / squares)) - cost
            if reached > 0:  # by rounding
                break
            best, slack = matrix, reached
        return best


@one_thread(with_scipy=True)
def least_mean_within_targets(
    coefficients: np.ndarray,
    targets: np.ndarray,
    cost: float,
    tolerance: float = TOLERANCE,
    *,
    largest: Fitness,
    on_progress: Progress = no_progress,
) -> WithinTargets:
    """How to measure with the smallest mean ratio while no query misses its target.

    Args:
        coefficients, targets: As of `fitness_for_use`.
        cost: The privacy cost of one record, at which the targets can be met.
        largest: The solution for the largest ratio, which meets them.
    """
    squares = targets**2

    def solved(average: float, state: np.ndarray, looser: float = 1.0) -> Fitness:
        # What is left of the gap counts 1/a times in the bound on the mean.
        within = tolerance * max(average, _LEAST_TOLERANCE) * looser
        return fitness_for_use(
            coefficients, targets, min(within, max(tolerance, _COARSEST)),
            average=average, state=state, on_progress=on_progress,
        )  # fmt: skip

    def excess(solution: Fitness) -> float:
        return float(np.log(np.max(solution.variances / squares) / cost))

    def bound(solution: Fitness) -> float:
        return mean_bound(solution.lower_bound / cost, solution.shadow_prices)

    solutions = [largest, solved(1.0, largest.state)]
    proof = solutions[-1]
    if excess(proof) <= 0:
        return WithinTargets(coefficients, targets, (proof,), proof)
    # Roughly first, where about the targets are just met: a search costs as much as it is exact.
    bracket = _Bracket(-_EDGE, _EDGE, excess(largest), excess(proof))
    state = largest.state
    for _ in range(_ROUGH_SEARCHES):
        middle = bracket.middle
        rough = solved(_logistic(middle), state, _LOOSER)
        state = rough.state
        bracket = bracket.with_point(middle, excess(rough))
        if abs(excess(rough)) <= _NEAR:
            break
    # Then as exactly as wanted, on both sides of it: between two such solutions lies the best.
    place, middle = 0, bracket.root  # place: of the last solution that is within the targets
    exact = _Bracket(-_EDGE, _EDGE, excess(largest), excess(proof))
    for number in range(_SEARCHES):
        found = WithinTargets(coefficients, targets, tuple(solutions), proof)
        variances = np.sum(decoding(found.matrix(cost), coefficients) ** 2, axis=1)
        if np.mean(variances / squares) / cost <= bound(proof) * (1 + tolerance):
            break
        if number:
            middle = exact.beyond(middle, bracket.slope)
        solution = solved(_logistic(middle), state)
        state = solution.state
        solutions.insert(place + 1, solution)
        exact = exact.with_point(middle, excess(solution))
        place += excess(solution) <= 0
        proof = max(proof, solution, key=bound)
    return WithinTargets(coefficients, targets, tuple(solutions), proof)


@dataclass(frozen=True)
class _Bracket:
    """Two a by their logits, with the targets met at one and missed at the other.

    low, high     the logits
    below, above  the logarithm of the largest ratio over the budget there: at most 0, and above 0
    """

    low: float
    high: float
    below: float
    above: float

    @property
    def slope(self) -> float:
        return (self.above - self.below) / (self.high - self.low)

    @property
    def root(self) -> float:
        """The secant's root."""
        return self.low - self.below / self.slope

    @property
    def middle(self) -> float:
        """The secant's root, kept away from the ends; between the first ends a of one half.

        The largest ratio is flat at both of them, so that their secant says little.
        """
        if self.high - self.low >= 2 * _EDGE:
            return 0.0
        step = min(max((self.root - self.low) / (self.high - self.low), _NEAR_END), 1 - _NEAR_END)
        return self.low + step * (self.high - self.low)

    def with_point(self, at: float, excess: float) -> "_Bracket":
        if excess <= 0:
            return _Bracket(at, self.high, excess, self.above)
        return _Bracket(self.low, at, self.below, excess)

    def beyond(self, last: float, slope: float) -> float:
        """A point on the other side of the root than the last one, which is an end, and near it.

        slope: of the logarithm, as far as it is known; a bracket that is as narrow is divided
        """
        step = _BEYOND_ROOT * (self.below if last == self.low else self.above) / slope
        if abs(step) < (self.high - self.low) / 2:
            return last - step
        return self.middle


def _logistic(logit: float) -> float:
    return float(1 / (1 + np.exp(-logit)))


def mean_bound(least: float, prices: np.ndarray) -> float:
    """What the mean ratio cannot be below if none is above 1; −∞ if the prices prove nothing.

    least: what Σ price · ratio cannot be below, for prices that sum to 1. For any multiple s of
    them with s · price ≥ 1/m, mean ≥ Σ s price ratio − Σ (s price − 1/m) ≥ s · least − s + 1.
    """
    smallest = float(np.min(prices)) * len(prices)
    return 1 - (1 - least) / smallest if smallest > 0 else -np.inf


@one_thread()
def _mixed(first: np.ndarray, second: np.ndarray, share: float) -> np.ndarray:
    """R with RᵀR between those of two matrices with the same row space; largest column norm 1."""
    basis = np.linalg.qr(first.T)[0]
    parts = np.sqrt(1 - share) * (first @ basis), np.sqrt(share) * (second @ basis)
    matrix = np.linalg.qr(np.vstack(parts), mode="r") @ basis.T
    return matrix / np.sqrt(np.max(np.sum(matrix**2, axis=0)))
