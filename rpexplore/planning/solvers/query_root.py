"""The root that bounds the cost of a query list, for given weights (docs/mathematics.md §8).

Queries W, each over its target, are written as W = A F, with the k rows of F orthonormal. For
weights λ on the cells and y on the queries, both summing to 1, G = F Λ Fᵀ = E Eᵀ and H = Aᵀ Y A =
E^{−ᵀ} S² E^{−1}, S diagonal,

    T = tr S,   X_jj = Σ_r s_r v_jr²,   q_i = w_i X⁺ w_iᵀ = Σ_r s_r u_ir²

with v_j = E^{−1} f_j for the cells and u_i = S^{−1} Eᵀ a_i for the queries. Cells and queries are
alike in all this, and so they are in the code: one list of weights, first the cells'.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from rpexplore.planning.solvers.matrix_root import weights_of

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
