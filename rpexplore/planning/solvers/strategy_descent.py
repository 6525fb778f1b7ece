"""Joint search for an attribute's reference distribution and strategy (docs/mathematics.md §5.2).

To be minimised over z, which sums to 1, is √τ(z) + f(η), η = zᵀHz (or several of them). One
eigendecomposition of Λ^½ (G + p1ᵀ + 1pᵀ + μ11ᵀ) Λ^½ moves λ and z at once: with S its root and
K = Λ^{−½} S Λ^{−½}, z ∝ K^{−1}1. With c = f' zᵀHz / zᵀGz, p = f' Hz / c − Gz, made pᵀz = 0, and μ
is such that 1ᵀK^{−1}1 = 2c; where H is a multiple of G, p is 0.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from rpexplore.planning.solvers.anderson import anderson_acceleration
from rpexplore.planning.solvers.matrix_root import (
    MANY_VALUES,
    MatrixRoot,
    centred_at,
    is_mirrored,
    metric_of,
    mirrored_eigh,
    roots_of,
    weights_of,
)

Total = Callable[[np.ndarray], tuple[float, np.ndarray]]

# The exponent of λ's multiplicative step: z follows λ, so that full steps would swing (for two
# values, for ever).
_POWER = 0.7
# The error swings far on the way to the optimum.
LEEWAY = 1e4
# Added to the gram, so that z stays small in directions that no question asks about.
_RIDGE = 1e-11
_LEAST_SLOPE = 1e-12
_DESCENTS = 2


@dataclass(eq=False)
class Joint:
    """A point of the joint search: λ, z, by how much the sum may be too large (relative)."""

    value_weights: np.ndarray
    reference: np.ndarray
    error: float
    state: np.ndarray
    following: np.ndarray
    metric: np.ndarray


class JointSearch:
    """min over z of √τ(z) + total(η(z)), for a gram whose trace is about n.

    Its state is log λ, the log of μ above the least one possible, and p. Columns of R may be longer
    than 1 by `slack`: `best_matrix` sees to that.
    """

    def __init__(
        self,
        gram: np.ndarray,
        total_grams: Sequence[np.ndarray],
        total: Total,
        *,
        slack: float = 0.0,
    ) -> None:
        self.total_grams, self.total, self.slack = total_grams, total, slack
        self.n = len(gram)
        self.gram = gram + _RIDGE * np.eye(self.n)
        self.mirrored = self.n >= MANY_VALUES and all(map(is_mirrored, (gram, *total_grams)))
        self.factor = cholesky(self.gram, lower=True)
        self.inverse_ones = self._solved(np.ones(self.n))
        self.least = 1 / self.inverse_ones.sum()  # the smallest zᵀGz

    def state(self, value_weights: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """The start of the search, for λ and a z that may be near."""
        _, slope, pull = self._total_at(reference)
        direction = self._direction(reference, slope, pull)
        own = reference @ self.gram @ reference
        # How far μ lies above its least value, by zᵀ(G + p1ᵀ + 1pᵀ + μ11ᵀ)z = 1/(4c²) at an
        # optimum.
        height = 1 / (4 * slope**2) - own + self._least_at(direction)
        height = max(height, 1e-3 * self.least)
        return np.concatenate([np.log(value_weights), [np.log(height)], direction])

    def step(self, state: np.ndarray) -> Joint:
        """One eigendecomposition at a state."""
        n = self.n
        weights, height, direction = weights_of(state[:n]), state[n], state[n + 1 :]
        if self.mirrored:
            weights, direction = (weights + weights[::-1]) / 2, (direction + direction[::-1]) / 2
        halves = np.sqrt(weights)
        # Adds p1ᵀ + 1pᵀ + μ11ᵀ in one outer sum: half of μ in either.
        shift = direction + (np.exp(height) - self._least_at(direction)) / 2
        shifted = self.gram + np.add.outer(shift, shift)
        decompose = mirrored_eigh if self.mirrored else np.linalg.eigh
        squares, vectors = decompose(halves[:, None] * shifted * halves)
        roots = roots_of(squares)
        along = vectors.T @ halves
        inverse_sums = halves * (vectors @ (along / roots))  # K^{−1} 1
        free = 1 / inverse_sums.sum()
        z = inverse_sums * free
        # The root of V(z) itself, without the part that the shift added along z.
        root = max(roots.sum() - free, 1e-30)
        diagonal = np.maximum((vectors**2 @ roots) / weights - free, 1e-12 * root)
        value, slope, pull = self._total_at(z)

        # How much less the sum can be: by another λ, and by another z (whose slope it is).
        # As `MatrixRoot.error`.
        over = diagonal.max() / root - 1
        if over <= self.slack:
            over = 0.0
        uphill = 2 * pull - (vectors @ (roots * along)) / halves
        solved = self._solved(uphill)
        whitened = solved - self.inverse_ones * (solved.sum() * self.least)  # changes of z sum to 0
        lower = max(uphill @ whitened, 0.0) / (4 * slope)
        # 1ᵀK^{−1}1 falls as the root of μ at both ends, so this is nearly Newton's step.
        rise = -2 * np.clip(np.log(2 * slope * free), -3, 3)
        return Joint(
            value_weights=weights,
            reference=z,
            error=float((over * root + lower) / (root + value)),
            state=np.concatenate([np.log(weights), state[n:]]),
            following=np.concatenate(
                [
                    np.log(weights) + _POWER * np.log(diagonal / root),
                    [height + rise],
                    self._direction(z, slope, pull),
                ]
            ),
            metric=np.concatenate([metric_of(weights), [1.0], np.full(n, 1 / np.trace(self.gram))]),
        )

    def descent(
        self,
        value_weights: np.ndarray,
        references: Sequence[np.ndarray],
        tolerance: float,
        on_step: Callable[[], object],
    ) -> tuple[np.ndarray, np.ndarray]:
        """(λ, z) by descent in z alone from the best of some, λ found anew for every z.

        For where λ reaches 0 and the joint search cannot follow. on_step: called now and then; what
        it raises ends the search.
        """
        from scipy.optimize import minimize  # slow to import, and not needed to open the app

        n = self.n
        # Moves of z that keep its sum, whitened by G, so that L-BFGS-B sees a round valley.
        basis = np.linalg.qr(np.column_stack([np.ones(n), np.eye(n)[:, 1:]]))[0][:, 1:]
        factor = cholesky(basis.T @ self.gram @ basis, lower=True)
        weights = value_weights
        best = np.inf, weights, references[0]

        def objective(moves: np.ndarray, origin: np.ndarray) -> tuple[float, np.ndarray]:
            nonlocal weights, best
            on_step()
            z = origin + basis @ solve_triangular(factor, moves, lower=True, trans=1)
            centred = centred_at(z, self.gram)
            inner = anderson_acceleration(
                lambda logs: MatrixRoot(centred, weights_of(logs), z),
                np.log(weights),
                tolerance=tolerance,
                limit=100,
            )
            weights = inner.value_weights
            value, _, pull = self._total_at(z)
            if (upper := inner.root * np.sqrt(1 + inner.error) + value) < best[0]:
                best = upper, weights, z
            uphill = basis.T @ (inner.slope + 2 * pull)
            return inner.root + value, solve_triangular(factor, uphill, lower=True)

        still = np.zeros(n - 1)
        for reference in references:
            objective(still, reference)
        for _ in range(_DESCENTS):  # again from where it ended: inexact λ can end it early
            before = best[0]
            minimize(
                objective,
                still,
                (best[2],),
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": 60, "ftol": 1e-9, "gtol": 1e-9, "maxcor": 20},
            )
            if best[0] > before * (1 - 10 * tolerance):
                break
        return best[1], best[2]

    def _solved(self, vector: np.ndarray) -> np.ndarray:
        return cho_solve((self.factor, True), vector)

    def _least_at(self, direction: np.ndarray) -> float:
        """The smallest zᵀGz + 2pᵀz over z that sum to 1: μ must stay above its negative."""
        solved = self._solved(direction)
        z = (1 + solved.sum()) * self.least * self.inverse_ones - solved
        return z @ self.gram @ z + 2 * direction @ z

    def _total_at(self, z: np.ndarray) -> tuple[float, float, np.ndarray]:
        """(total, c, f' Hz) at z; the slope of the total in z is 2 f' Hz."""
        products = [gram @ z for gram in self.total_grams]
        value, slopes = self.total(np.array([z @ one for one in products]))
        pull = np.asarray(slopes) @ np.array(products)
        return value, max(float(z @ pull / (z @ self.gram @ z)), _LEAST_SLOPE), pull

    def _direction(self, z: np.ndarray, slope: float, pull: np.ndarray) -> np.ndarray:
        """p at z."""
        beyond = pull / slope - self.gram @ z
        return beyond - beyond @ z
