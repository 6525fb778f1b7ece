"""The best strategy of one attribute, with a certificate (docs/mathematics.md §5.1, §5.2)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from rpexplore.common.processes import Share, no_share, one_thread
from rpexplore.planning.solvers.acceleration import anderson_acceleration
from rpexplore.planning.solvers.coarser_values import COARSEST, extrapolated, halved

# ---- Joint search for an attribute's reference distribution and strategy (docs/mathematics.md
# §5.2).
#
# To be minimised over z, which sums to 1, is √τ(z) + f(η), η = zᵀHz (or several of them). One
# eigendecomposition of Λ^½ (G + p1ᵀ + 1pᵀ + μ11ᵀ) Λ^½ moves λ and z at once: with S its root and
# K = Λ^{−½} S Λ^{−½}, z ∝ K^{−1}1. With c = f' zᵀHz / zᵀGz, p = f' Hz / c − Gz, made pᵀz = 0, and μ
# is such that 1ᵀK^{−1}1 = 2c; where H is a multiple of G, p is 0.


Total = Callable[[np.ndarray], tuple[float, np.ndarray]]

# The exponent of λ's multiplicative step: z follows λ, so that full steps would swing (for two
# values, for ever).
_POWER = 0.7
# The error swings far on the way to the optimum.
LEEWAY = 1e4
# Added to the gram, so that z stays small in directions that no question asks about.
_DESCENT_RIDGE = 1e-11
_LEAST_SLOPE = 1e-12
_DESCENTS = 2


@dataclass(eq=False)
class Joint:
    """A point of the joint search: λ, z, by how much the sum may be too large (relative).

    root: T of V(z), without that of the shift. roots, vectors: of the eigendecomposition, n each.
    """

    value_weights: np.ndarray
    reference: np.ndarray
    error: float
    state: np.ndarray
    following: np.ndarray
    metric: np.ndarray
    root: float
    roots: np.ndarray
    vectors: np.ndarray

    @property
    def matrix(self) -> np.ndarray:
        """R, float64[n − 1, n], before its columns are equalised: RᵀR T = K − 11ᵀ / 1ᵀK^{−1}1.

        It is 0 along z. With K = BᵀB it is Bᵀ(I − vvᵀ)B for a v of length 1: R is B after a
        reflection that makes v a row of its own, without this row.
        """
        halves = np.sqrt(self.value_weights)
        factor = np.sqrt(self.roots / self.root)[:, None] * self.vectors.T / halves
        mirror = (self.vectors.T @ halves) / np.sqrt(self.roots)
        mirror /= np.linalg.norm(mirror)
        row = int(np.argmax(np.abs(mirror)))
        mirror[row] += np.sign(mirror[row])
        factor -= np.outer(mirror * (2 / (mirror @ mirror)), mirror @ factor)
        return np.delete(factor, row, axis=0)


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
        from scipy.linalg import cholesky, get_lapack_funcs  # slow to import

        self.total_grams, self.total, self.slack = total_grams, total, slack
        self.n = len(gram)
        self.gram = gram + _DESCENT_RIDGE * np.eye(self.n)
        self.mirrored = self.n >= MANY_VALUES and all(map(is_mirrored, (gram, *total_grams)))
        self.factor = cholesky(self.gram, lower=True)
        (self._solve,) = get_lapack_funcs(
            ["potrs"]
        )  # cho_solve's checks take longer than the work where values are few
        self.ones, self.trace = np.ones(self.n), float(np.trace(self.gram))
        self.inverse_ones = self._solved(self.ones)
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
        logs, halves = np.log(weights), np.sqrt(weights)
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
        rise = -2 * min(max(np.log(2 * slope * free), -3.0), 3.0)
        return Joint(
            value_weights=weights,
            reference=z,
            error=float((over * root + lower) / (root + value)),
            state=np.concatenate([logs, state[n:]]),
            following=np.concatenate(
                [
                    logs + _POWER * np.log(diagonal / root),
                    [height + rise],
                    self._direction(z, slope, pull),
                ]
            ),
            metric=np.concatenate([metric_of(weights), [1.0], self.ones / self.trace]),
            root=float(root),
            roots=roots,
            vectors=vectors,
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
        from scipy.linalg import cholesky, solve_triangular  # slow to import
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
        return self._solve(self.factor, vector, lower=1)[0]

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


# ---- The best strategy of one attribute, with a certificate (docs/mathematics.md §5.1, §5.2).
#
# An attribute with n values is measured through a matrix R, (n−1) × n, and decoded with a reference
# distribution z: R z = 0, 1ᵀz = 1. Its queries W enter through their gram G = WᵀW only. With
# V(z) = (I − 1zᵀ) G (I − z1ᵀ) and R's largest column norm² at 1, the accuracy depends on R through
# τ = tr(V (RᵀR)⁺) only. For weights λ on the values √τ ≥ T = tr (Λ^½ V Λ^½)^½.


# A joint search that ends further off than this is followed by a descent, which takes too long for
# more values than these.
_SETTLED, _MOST_DESCENDED = 1e-5, 200
# Added to the gram, so that what no question asks about stands out from rounding.
_RIDGE = 1e-14
# Columns may differ by this times the root of the tolerance before they are equalised in so many
# steps, or for few values in fewer. Those whose squared length is below the last number, of values
# without weight, stay short.
_EQUALISED, _EQUALISING, _EQUALISING_FEW, _SHORT = 0.1, 20, 4, 0.9
# Steps for the matrix where the joint search has found λ: a few, unless rounding stops them.
_POLISHING = 20
_BEFORE_MATRIX = 0.9  # share of a search for z after which its matrix is made
# Of problems with fewer values, which tell where to begin.
_FIRST, _COARSE, _MOST_COARSE = 0.01, 1e-5, 30
_GAIN = 1e-9  # relative to a start: what is less is rounding


@dataclass(frozen=True, eq=False)
class StrategySolution:
    """How an attribute is measured, and how good that is for the gram it was made for.

    matrix: R, float64[n − 1, n]; matrix @ reference is 0, its largest column norm² is 1.
    covariance: D Dᵀ, float64[n, n]: of the decoded values, for noise of variance 1 on R x.
    reference: z, float64[n], sums to 1. value_weights: λ, float64[n], sums to 1.
    root: √τ. gram: the one it was made for.
    """

    matrix: np.ndarray
    covariance: np.ndarray
    reference: np.ndarray
    value_weights: np.ndarray
    root: float
    gram: np.ndarray

    @classmethod
    def equalised(
        cls,
        matrix: np.ndarray,
        reference: np.ndarray,
        value_weights: np.ndarray,
        gram: np.ndarray,
        *,
        times: int,
    ) -> "StrategySolution":
        """With columns of a matrix made equally long in so many steps, and R z = 0."""
        scales, squares = np.ones(len(reference)), np.sum(matrix**2, axis=0)
        for _ in range(times):
            shift = matrix @ (scales * reference)
            lengths = scales**2 * squares - 2 * scales * (shift @ matrix) + shift @ shift
            scales = scales / np.sqrt(np.where(lengths > _SHORT, lengths, 1.0))
        matrix = matrix * scales
        matrix -= (matrix @ reference)[:, None]
        matrix = matrix / np.sqrt(np.max(np.sum(matrix**2, axis=0)))
        decoding = np.linalg.inv(np.vstack([np.ones(len(gram)), matrix]))[:, 1:]
        covariance = decoding @ decoding.T
        root = float(np.sqrt(np.sum(gram * covariance)))
        return cls(matrix, covariance, reference, value_weights, root, gram)

    @classmethod
    def of_single_values(cls, gram: np.ndarray) -> "StrategySolution":
        """That with RᵀR = n/(n − 1) (I − 11ᵀ/n): all values measured alike, whatever is asked."""
        n = len(gram)
        even = np.full(n, 1 / n)
        # A reflection that makes the ones a row of its own, without this row.
        mirror = np.full(n, np.sqrt(1 / n))
        mirror[-1] += 1
        matrix = np.eye(n) - np.outer(mirror, mirror * (2 / (mirror @ mirror)))
        covariance = (np.eye(n) - 1 / n) * (1 - 1 / n)
        root = float(np.sqrt(np.sum(gram * covariance)))
        return cls(matrix[:-1] * np.sqrt(n / (n - 1)), covariance, even, even, root, gram)

    @cached_property
    def lower_bound(self) -> float:
        """No R with this reference has a smaller root for the gram (rounding is allowed for)."""
        scale = np.trace(self.gram) / len(self.gram)
        bound = _lower_bound(self.gram / scale, self.reference, self.value_weights)
        return float(bound * np.sqrt(scale))


@one_thread(with_scipy=True)
def best_matrix(
    gram: np.ndarray,
    reference: np.ndarray | None = None,
    *,
    value_weights: np.ndarray | None = None,
    tolerance: float = 1e-7,
    limit: int = 1000,
    ends_early: bool = False,
    on_share: Share = no_share,
) -> StrategySolution:
    """The R with the smallest root for a gram, float64[n, n], n ≥ 2, at a reference distribution.

    reference: z, 1/n each if None. value_weights: λ to begin with, 1/n each if None. The gap comes
    out below about `tolerance` where rounding and `limit`, of steps, allow. ends_early: where R can
    be mended, as with many values. on_share: called with the share that is done; what it raises
    ends the search.
    """
    uniform = np.full(len(gram), 1 / len(gram))
    reference = uniform if reference is None else reference
    # Trace n: constants like the ridge are relative to it.
    own_gram, scale = gram, np.trace(gram) / len(gram)
    gram = gram / scale
    centred = centred_at(reference, gram + _RIDGE * np.eye(len(gram)))
    many = len(gram) >= MANY_VALUES
    mirrored = many and is_mirrored(centred) and is_mirrored(np.diag(reference))
    if mirrored:
        centred = (centred + centred[::-1, ::-1]) / 2
    weights = uniform if value_weights is None else value_weights
    start = np.log(weights)

    def step(logs: np.ndarray) -> MatrixRoot:
        # From the weights themselves, so that a search from where one ended, ends there: plans do
        # not depend on what is known from before.
        at = weights if logs is start else weights_of(logs)
        return MatrixRoot(centred, at, reference, mirrored=mirrored)

    def searched(
        state: np.ndarray, goal: float, times: int, on_share: Share
    ) -> tuple[MatrixRoot, StrategySolution]:
        found = anderson_acceleration(step, state, tolerance=goal, limit=limit, on_share=on_share)
        # R = (S / T)^½ Λ^{−½} in the coordinates of S's eigenvectors; RᵀR has `ratios` as its
        # diagonal.
        matrix = np.sqrt(found.roots / found.root)[:, None] * found.vectors.T / found.halves
        return found, StrategySolution.equalised(
            matrix, reference, found.value_weights, gram, times=times
        )

    # Columns that differ by ε can be made equally long at a cost of ε², so that far fewer steps
    # will do; rarely they do not.
    goal, times = tolerance, 0
    if ends_early or many:
        goal, times = _EQUALISED * np.sqrt(tolerance), _EQUALISING if many else _EQUALISING_FEW
    found, solution = searched(start, goal, times, lambda share: on_share(share / 2))
    if times and not solution.root <= found.root * (1 + tolerance):
        _, solution = searched(found.state, tolerance, 0, lambda share: on_share((1 + share) / 2))
    return replace(solution, root=float(solution.root * np.sqrt(scale)), gram=own_gram)


@one_thread(with_scipy=True)
def best_reference(
    gram: np.ndarray,
    total_grams: Sequence[np.ndarray],
    total: Total,
    *,
    start: StrategySolution | None = None,
    tolerance: float = 1e-7,
    limit: int = 1000,
    from_coarser: bool = False,
    on_share: Share = no_share,
) -> StrategySolution:
    """The R and z with the smallest root + total(η), where η_j = zᵀ total_grams[j] z.

    total: value and gradient at η, float64[k]; nondecreasing, such that total(η(z)) is convex.
    start: a measuring that is near (if None, the best with 1/n each); it is returned if nothing
    better is found. from_coarser: for 1,000 values in order or more, whether to begin where
    problems with fewer of them point to, rather than at `start`. on_share: as of `best_matrix`.
    Slopes steeper than those of √η may need a search in z alone, with λ inside, which takes tens of
    times as long.
    """
    n = len(gram)
    scale = np.trace(gram) / n
    start = best_matrix(gram) if start is None else start
    own, totals = gram / scale, [one / scale for one in total_grams]
    unit_total = partial(_scaled_total, total, scale)

    def objective(measuring: StrategySolution) -> float:
        z = measuring.reference
        return measuring.root + total(np.array([z @ one @ z for one in total_grams]))[0]

    search = _joint_search(own, totals, unit_total, tolerance)
    near = start.value_weights, start.reference
    if from_coarser:
        near = _near(own, totals, unit_total)
    joint = anderson_acceleration(
        search.step,
        search.state(*near),
        tolerance=tolerance,
        leeway=LEEWAY,
        limit=limit,
        on_share=lambda share: on_share(_BEFORE_MATRIX * share),
    )
    if from_coarser and joint.error <= tolerance:
        solution = StrategySolution.equalised(
            joint.matrix, joint.reference, joint.value_weights, own, times=_EQUALISING
        )
        if solution.root <= joint.root * (1 + tolerance):
            solution = replace(solution, root=float(solution.root * np.sqrt(scale)), gram=gram)
            return solution if objective(solution) < objective(start) * (1 - _GAIN) else start
    value_weights, reference = joint.value_weights, joint.reference
    # Only where the joint search swung, and an eigendecomposition for every z can be afforded.
    if joint.error > max(_SETTLED, tolerance) and n <= _MOST_DESCENDED:
        references = [reference, np.full(n, 1 / n), start.reference]
        value_weights, reference = search.descent(
            value_weights, references, tolerance, lambda: on_share(_BEFORE_MATRIX)
        )
    solution = best_matrix(
        gram,
        reference,
        value_weights=value_weights,
        tolerance=tolerance,
        limit=min(limit, _POLISHING) if joint.error <= tolerance else limit,
        on_share=lambda share: on_share(_BEFORE_MATRIX + (1 - _BEFORE_MATRIX) * share),
    )

    return solution if objective(solution) < objective(start) * (1 - _GAIN) else start


def _scaled_total(total: Total, scale: float, etas: np.ndarray) -> tuple[float, np.ndarray]:
    """A total for grams that were divided by a scale, with everything over its root."""
    value, slopes = total(etas * scale)
    return value / np.sqrt(scale), np.asarray(slopes) * np.sqrt(scale)


def _joint_search(
    gram: np.ndarray, total_grams: Sequence[np.ndarray], total: Total, tolerance: float
) -> JointSearch:
    """The one for columns that are equalised later, if there are many."""
    slack = _EQUALISED * np.sqrt(tolerance) if len(gram) >= MANY_VALUES else 0.0
    return JointSearch(gram, total_grams, total, slack=slack)


def _near(
    gram: np.ndarray, total_grams: Sequence[np.ndarray], total: Total
) -> tuple[np.ndarray, np.ndarray]:
    """(λ, z) near the best ones of very many values, from half and a quarter of them."""
    levels = [(gram, total_grams)]
    while len(levels[-1][0]) > COARSEST:
        finer, finer_totals = levels[-1]
        levels.append((halved(finer), [halved(one) for one in finer_totals]))
    solved: list[tuple[np.ndarray, np.ndarray]] = []
    for of_values, of_totals in levels[:0:-1]:
        if len(solved) < 2:
            start = best_matrix(of_values, tolerance=_FIRST)
            near = start.value_weights, start.reference
        else:
            near = extrapolated(solved[-2], solved[-1], len(of_values))
        search = _joint_search(of_values, of_totals, total, _COARSE)
        joint = anderson_acceleration(
            search.step, search.state(*near), tolerance=_COARSE, leeway=LEEWAY, limit=_MOST_COARSE
        )
        solved.append((joint.value_weights, joint.reference))
    return extrapolated(solved[-2], solved[-1], len(gram))


def _lower_bound(gram: np.ndarray, reference: np.ndarray, value_weights: np.ndarray) -> float:
    """tr (Λ^½ V Λ^½)^½, lowered by what rounding can have added: n·eps of the size of V's terms."""
    halves = np.sqrt(value_weights)
    squares = np.linalg.eigvalsh(halves[:, None] * centred_at(reference, gram) * halves)
    products = np.abs(gram) @ np.abs(reference)
    size = value_weights @ np.diag(gram) + np.abs(reference) @ products
    size += 2 * np.sqrt(value_weights @ products**2) + np.abs(squares).max()
    rounding = 2 * len(gram) * np.finfo(float).eps * size
    return float(np.sqrt(np.maximum(squares - rounding, 0)).sum())


# ---- The root S = (Λ^½ V Λ^½)^½ that bounds an attribute's accuracy (docs/mathematics.md §5.1).


# A weight is not taken below this: its certificate would drown in rounding, and G of
# `MatrixRoot` could not be decomposed.
_LEAST_WEIGHT = 1e-10
# Directions that no question asks about are measured nevertheless, so that R can be decoded; they
# take this share of the root between them.
_UNASKED_SHARE = 5e-7
# From so many values on decompositions are done by halves where they can be, and a search ends
# where R can be mended. Fewer take no time, and are spared what that does to last digits.
MANY_VALUES = 64
_MIRRORED = 1e-13  # relative to the largest number: what differs by less does so by rounding


class MatrixRoot:
    """One eigendecomposition at fixed z: S, the bounds on √τ it gives, and the next λ.

    centred: V(z), the same read backwards if `mirrored`; value_weights: λ. root: T = tr S; error:
    √τ ≤ T·(1 + error) for the R of S.
    roots, vectors: eigenvalues and eigenvectors of S, n − 1 of them: without that of z. state,
    following: log λ, and what follows, as `anderson_acceleration` takes them.
    """

    def __init__(
        self,
        centred: np.ndarray,
        value_weights: np.ndarray,
        reference: np.ndarray,
        *,
        mirrored: bool = False,
    ) -> None:
        if mirrored:
            value_weights = (value_weights + value_weights[::-1]) / 2
        self.value_weights, self.reference = value_weights, reference
        self.halves = np.sqrt(value_weights)
        # V's null vector is z. Lifting it above all others tells it from directions that no
        # question asks about, and makes it the last.
        null = reference / self.halves
        null /= np.linalg.norm(null)
        inner = self.halves[:, None] * centred  # in place from here on: it may be large
        inner *= self.halves
        lift = np.outer(null, null)
        lift *= 2 * np.trace(inner)
        inner += lift
        decompose = mirrored_eigh if mirrored else np.linalg.eigh
        squares, vectors = decompose(inner)
        self.vectors = vectors[:, :-1]
        self.roots = roots_of(squares[:-1])
        self.root = float(self.roots.sum())
        # S_jj / (λ_j T), at the optimum at most 1, and 1 where λ_j > 0 (§5.1).
        ratios = (self.vectors**2 @ self.roots) / value_weights / self.root
        self.error = float(ratios.max() - 1)
        self.state = np.log(value_weights)
        # The multiplicative step λ_j ← S_jj / T.
        self.following = self.state + np.log(np.maximum(ratios, 1e-30))
        self.metric = metric_of(value_weights)

    @property
    def slope(self) -> np.ndarray:
        """∂T/∂z, up to a multiple of 1."""
        return -(self.vectors @ (self.roots * (self.vectors.T @ self.halves))) / self.halves


def is_mirrored(matrix: np.ndarray) -> bool:
    """Whether a square matrix is the same read backwards, up to rounding."""
    return bool(np.abs(matrix - matrix[::-1, ::-1]).max() <= _MIRRORED * np.abs(matrix).max())


def mirrored_eigh(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`numpy.linalg.eigh` of a symmetric matrix that is the same read backwards: a quarter of it.

    Its eigenvectors are the same read backwards, up to their sign: two problems of half the size
    (Cantoni and Butler 1976). Those that change their sign come first, each kind ascending.
    """
    n = len(matrix)
    m = n // 2
    # In the bases (e_i ± e_{n+1−i})/√2 the matrix falls apart into the blocks first ± across.
    first, across = matrix[:m, :m], matrix[:m, ::-1][:, :m]
    even = np.empty((n - m, n - m))
    even[:m, :m] = first + across
    if n > 2 * m:
        # The middle value of an odd number is its own mirror image: it belongs to the even ones.
        even[m, :m] = even[:m, m] = np.sqrt(2) * matrix[:m, m]
        even[m, m] = matrix[m, m]
    of_odd, of_even = np.linalg.eigh(first - across), np.linalg.eigh(even)
    vectors = np.zeros((n, n))
    vectors[:m, :m], vectors[:m, m:] = of_odd[1], of_even[1][:m]
    vectors[:m] *= np.sqrt(0.5)
    vectors[n - m :, :m] = -vectors[:m, :m][::-1]
    vectors[n - m :, m:] = vectors[:m, m:][::-1]
    if n > 2 * m:
        vectors[m, m:] = of_even[1][m]
    return np.append(of_odd[0], of_even[0]), vectors


def weights_of(logs: np.ndarray) -> np.ndarray:
    """λ of its logarithms up to a constant: none is too small, they sum to 1."""
    weights = np.exp(logs - logs.max())
    weights = np.maximum(weights / weights.sum(), _LEAST_WEIGHT)
    return weights / weights.sum()


def roots_of(squares: np.ndarray) -> np.ndarray:
    """Roots of eigenvalues, those of directions that no question asks about a little above 0."""
    total = np.sqrt(np.maximum(squares, 0)).sum()
    return np.sqrt(np.maximum(squares, (_UNASKED_SHARE * total / len(squares)) ** 2))


def metric_of(value_weights: np.ndarray) -> np.ndarray:
    """How much each log λ counts when steps are compared: as λ does, which may be 0 in the end."""
    return value_weights**2 * len(value_weights)


def centred_at(reference: np.ndarray, gram: np.ndarray) -> np.ndarray:
    """V(z) = (I − 1zᵀ) G (I − z1ᵀ)."""
    products = gram @ reference
    # (I − 1zᵀ) G (I − z1ᵀ) = G − 1sᵀ − s1ᵀ with s = Gz − (zᵀGz/2) 1: no product of matrices.
    shift = products - (reference @ products) / 2
    return gram - np.add.outer(shift, shift)
