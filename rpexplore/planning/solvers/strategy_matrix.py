"""The best strategy of one attribute, with a certificate (docs/mathematics.md §5.1, §5.2).

An attribute with n values is measured through a matrix R, (n−1) × n, and decoded with a reference
distribution z: R z = 0, 1ᵀz = 1. Its queries W enter through their gram G = WᵀW only. With
V(z) = (I − 1zᵀ) G (I − z1ᵀ) and R's largest column norm² at 1, the accuracy depends on R through
τ = tr(V (RᵀR)⁺) only. For weights λ on the values √τ ≥ T = tr (Λ^½ V Λ^½)^½.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rpexplore.common.concurrency import Share, no_share, one_thread
from rpexplore.planning.solvers.anderson import anderson_acceleration
from rpexplore.planning.solvers.matrix_root import (
    MANY_VALUES,
    MatrixRoot,
    centred_at,
    is_mirrored,
    weights_of,
)
from rpexplore.planning.solvers.strategy_descent import LEEWAY, JointSearch, Total

# A joint search that ends further off than this is followed by a descent, which takes too long for
# more values than these.
_SETTLED, _MOST_DESCENDED = 1e-5, 200
# Added to the gram, so that what no question asks about stands out from rounding.
_RIDGE = 1e-14
# Columns may differ by this times the root of the tolerance before they are equalised in so many
# steps. Those whose squared length is below the last number, of values without weight, stay short.
_EQUALISED, _EQUALISING, _SHORT = 0.1, 20, 0.9
_BEFORE_MATRIX = 0.9  # share of a search for z after which its matrix is made
_GAIN = 1e-9  # relative to a start: what is less is rounding


@dataclass(frozen=True, eq=False)
class StrategySolution:
    """How an attribute is measured, and how good that is for the gram it was made for.

    matrix: R, float64[n − 1, n]; matrix @ reference is 0, its largest column norm² is 1.
    reference: z, float64[n], sums to 1. value_weights: λ, float64[n], sums to 1.
    root: √τ. lower_bound: no R with this reference has a smaller root (rounding is allowed for).
    """

    matrix: np.ndarray
    reference: np.ndarray
    value_weights: np.ndarray
    root: float
    lower_bound: float


@one_thread()
def best_matrix(
    gram: np.ndarray,
    reference: np.ndarray | None = None,
    *,
    value_weights: np.ndarray | None = None,
    tolerance: float = 1e-7,
    on_share: Share = no_share,
) -> StrategySolution:
    """The R with the smallest root for a gram, float64[n, n], n ≥ 2, at a reference distribution.

    reference: z, 1/n each if None. value_weights: λ to begin with, 1/n each if None. The gap comes
    out below about `tolerance` where rounding allows. on_share: called with the share that is done;
    what it raises ends the search.
    """
    uniform = np.full(len(gram), 1 / len(gram))
    reference = uniform if reference is None else reference
    # Trace n: constants like the ridge are relative to it.
    scale = np.trace(gram) / len(gram)
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
    ) -> tuple[MatrixRoot, np.ndarray, float]:
        solution = anderson_acceleration(step, state, tolerance=goal, on_share=on_share)
        # R = (S / T)^½ Λ^{−½} in the coordinates of S's eigenvectors; RᵀR has `ratios` as its
        # diagonal.
        shares = np.sqrt(solution.roots / solution.root)
        matrix = shares[:, None] * solution.vectors.T / solution.halves
        # R z = 0 for the lengths of the columns: scale until all are equally long.
        scales, squares = np.ones(len(reference)), np.sum(matrix**2, axis=0)
        for _ in range(times):
            shift = matrix @ (scales * reference)
            lengths = scales**2 * squares - 2 * scales * (shift @ matrix) + shift @ shift
            scales = scales / np.sqrt(np.where(lengths > _SHORT, lengths, 1.0))
        matrix = matrix * scales
        matrix -= (matrix @ reference)[:, None]
        matrix = matrix / np.sqrt(np.max(np.sum(matrix**2, axis=0)))
        decoding = np.linalg.inv(np.vstack([np.ones(len(gram)), matrix]))[:, 1:]
        return solution, matrix, np.sqrt(np.sum((gram @ decoding) * decoding))

    # Columns that differ by ε can be made equally long at a cost of ε², so that far fewer steps
    # will do; rarely they do not.
    goal, times = (_EQUALISED * np.sqrt(tolerance), _EQUALISING) if many else (tolerance, 0)
    solution, matrix, root = searched(start, goal, times, lambda share: on_share(share / 2))
    if many and not root <= solution.root * (1 + tolerance):
        solution, matrix, root = searched(
            solution.state, tolerance, 0, lambda share: on_share((1 + share) / 2)
        )
    root *= np.sqrt(scale)
    bound = _lower_bound(gram, reference, solution.value_weights) * np.sqrt(scale)
    return StrategySolution(matrix, reference, solution.value_weights, float(root), float(bound))


@one_thread()
def best_reference(
    gram: np.ndarray,
    total_grams: Sequence[np.ndarray],
    total: Total,
    *,
    start: StrategySolution | None = None,
    tolerance: float = 1e-7,
    on_share: Share = no_share,
) -> StrategySolution:
    """The R and z with the smallest root + total(η), where η_j = zᵀ total_grams[j] z.

    total: value and gradient at η, float64[k]; nondecreasing, such that total(η(z)) is convex.
    start: a measuring that is near (if None, the best with 1/n each); it is returned if nothing
    better is found. on_share: as of `best_matrix`. Slopes steeper than those of √η may need a
    search in z alone, with λ inside, which takes tens of times as long.
    """
    n = len(gram)
    scale = np.trace(gram) / n
    unit = np.sqrt(scale)

    def scaled_total(etas: np.ndarray) -> tuple[float, np.ndarray]:
        value, slopes = total(etas * scale)
        return value / unit, np.asarray(slopes) * unit

    search = JointSearch(
        gram / scale,
        [one / scale for one in total_grams],
        scaled_total,
        slack=_EQUALISED * np.sqrt(tolerance) if n >= MANY_VALUES else 0.0,
    )
    start = best_matrix(gram) if start is None else start
    state = search.state(start.value_weights, start.reference)
    joint = anderson_acceleration(
        search.step,
        state,
        tolerance=tolerance,
        leeway=LEEWAY,
        on_share=lambda share: on_share(_BEFORE_MATRIX * share),
    )
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
        on_share=lambda share: on_share(_BEFORE_MATRIX + (1 - _BEFORE_MATRIX) * share),
    )

    def objective(measuring: StrategySolution) -> float:
        z = measuring.reference
        return measuring.root + total(np.array([z @ one @ z for one in total_grams]))[0]

    return solution if objective(solution) < objective(start) * (1 - _GAIN) else start


def _lower_bound(gram: np.ndarray, reference: np.ndarray, value_weights: np.ndarray) -> float:
    """tr (Λ^½ V Λ^½)^½, lowered by what rounding can have added: n·eps of the size of V's terms."""
    halves = np.sqrt(value_weights)
    squares = np.linalg.eigvalsh(halves[:, None] * centred_at(reference, gram) * halves)
    products = np.abs(gram) @ np.abs(reference)
    size = value_weights @ np.diag(gram) + np.abs(reference) @ products
    size += 2 * np.sqrt(value_weights @ products**2) + np.abs(squares).max()
    rounding = 2 * len(gram) * np.finfo(float).eps * size
    return float(np.sqrt(np.maximum(squares - rounding, 0)).sum())
