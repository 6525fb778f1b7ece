"""Free counts: further own counts, planned into the budget that a list leaves unused.

A record of cell j costs Σ_i R_ij² / γ², at most the same sum of the costliest cell. What cell j
leaves of it measures further counts with the same noise, independent of what is measured for the
list: with rows B below R and, in whole numbers,

    Σ_i R_ij² + Σ_i B_ij² ≤ max_j Σ_i R_ij²     for every cell j,

no record costs more than before, and the precisions add up (docs/mathematics.md §8).
"""

from collections.abc import Collection, Sequence

import numpy as np

from rpexplore.common.numbers import shown
from rpexplore.common.processes import Progress, no_progress, one_thread
from rpexplore.errors import PlanError, WorkloadError
from rpexplore.planning.counts_strategy import DECODING_TOLERANCE, QueryStrategy
from rpexplore.planning.solvers.queries import TOLERANCE, fitness_for_use, kinds_of_cells
from rpexplore.workload.query_list import QueryList

_MOST_KINDS = 1_024  # of cells that differ in the counts, all of which are measured
_FAINT = 4.0  # the length of faint rows over the root of the longest column's
_MOST_REFINED = 200  # kinds of cells; their square is the number of variables
_POWERS, _STEPS = (8.0, 32.0, 128.0, 512.0), 150  # steps for each
# What is left for rounding, relative to what a cell has to spare; the first that is enough.
_LEFT = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1)


def indices_of_free(queries: QueryList, names: Collection[str]) -> tuple[int, ...]:
    """The places of the counts that are to be free, ascending.

    Raises `WorkloadError` for a name that no count has, and where all are to be free.
    """
    for name in names:
        if name not in queries.names:
            raise WorkloadError(
                f"There is no own count {shown(name)!r} that could be free; name counts of the "
                "list."
            )
    free = tuple(index for index, name in enumerate(queries.names) if name in names)
    if len(free) == len(queries):
        raise WorkloadError(
            "All own counts are to be free, and there is no budget in use of which they could "
            "take the rest; leave one out."
        )
    return free


@one_thread(with_scipy=True)
def with_free_counts(
    charged: QueryStrategy,
    queries: QueryList,
    free: Sequence[int],
    *,
    tolerance: float = TOLERANCE,
    on_progress: Progress = no_progress,
) -> QueryStrategy:
    """The strategy of a list with rows for its free counts, which costs no record more.

    They have about the smallest largest ratio of variance to squared target that the unused budget
    allows beside what is measured anyway; of more than `_MOST_REFINED` kinds of cells, by itself.

    Args:
        charged: What is measured for the other counts.
        queries: All counts.
        free: The places of free counts, ascending.

    Raises:
        PlanError: For a free count of which a part is in cells that leave nothing, and does not
            follow from what is measured anyway.
    """
    from scipy.linalg import null_space  # slow to import

    # Cells that no count tells apart are measured together; a cell of each kind stands for them.
    kinds, kind_of = kinds_of_cells(queries.integers)
    cells = np.array([np.argmax(kind_of == kind) for kind in range(kinds.shape[1])])
    most = charged.squared_sensitivity
    room = most - charged.column_squares[cells]
    spare = charged.spare[cells]
    rows = charged.integers[:, cells].astype(float)
    wanted = queries.coefficients[list(free)][:, cells]
    # In full cells a free count must follow from what is measured anyway: V R there.
    parts = np.linalg.lstsq(rows[:, ~spare].T, wanted[:, ~spare].T, rcond=None)[0].T  # V
    followed = parts @ rows
    off = np.abs(wanted - followed)
    largest = np.max(np.abs(wanted), axis=1, keepdims=True)
    unknown = (off > DECODING_TOLERANCE * largest) & ~spare
    if np.any(unknown):
        query, kind = np.argwhere(unknown)[0].tolist()
        raise PlanError(
            f"The count {shown(queries.names[free[query]])!r} cannot be free: records in "
            f"{queries.cell_labels[cells[kind]]} leave nothing of the budget, and the count does "
            "not follow from the others there. Plan it with the others, or count other cells."
        )
    rest = np.where(spare & (off > DECODING_TOLERANCE * largest), wanted - followed, 0.0)
    asked, measured = np.any(rest != 0, axis=1), np.any(rest != 0, axis=0)
    added = np.zeros((0, queries.n_cells), dtype=np.int64)
    if np.any(asked):
        if np.count_nonzero(measured) > _MOST_KINDS:
            raise PlanError(
                f"Free counts can tell at most {_MOST_KINDS:,} groups of cells apart, got "
                f"{np.count_nonzero(measured):,}; ask for fewer."
            )
        # X_jj ≤ s_j is, with each column over √s_j, the largest cost of 1 of fitness for use.
        scales = np.sqrt(room[measured].astype(float))
        of_scales = np.sqrt(most) / scales
        open_rows = rest[asked][:, measured] * of_scales
        targets = queries.targets[list(free)][asked]
        fitness = fitness_for_use(open_rows, targets, tolerance, on_progress=on_progress)
        faint = _FAINT / np.sqrt(np.max(scales))
        matrix = _regular(fitness.matrix, faint)
        # What the rows below R tell of the measured kinds where they agree with all others.
        known = null_space(rows[:, ~measured].T).T @ rows[:, measured] / scales
        if len(scales) <= _MOST_REFINED and np.any(known):
            offsets = most * np.sum(parts[asked] ** 2, axis=1)
            matrix = _refined(matrix, known.T @ known, open_rows, offsets, targets, faint)
        of_kinds = _within_room(matrix, scales, room[measured])
        added = np.zeros((len(of_kinds), queries.n_cells), dtype=np.int64)
        places = np.full(kinds.shape[1] + 1, -1)  # the last for cells that no count touches
        places[np.flatnonzero(measured)] = np.arange(len(scales))
        place_of = places[kind_of]
        added[:, place_of >= 0] = of_kinds[:, place_of[place_of >= 0]]
    return QueryStrategy(
        queries, np.vstack([charged.integers, added]), free=tuple(free), free_rows=len(added)
    )


def _regular(matrix: np.ndarray, faint: float) -> np.ndarray:
    """A square matrix with the same Gram matrix, but for singular values below `faint`: these are.

    So integers decode as exactly as the numbers that they were rounded from.
    """
    _, values, right = np.linalg.svd(matrix)
    lengths = np.zeros(len(right))
    lengths[: len(values)] = values
    return np.maximum(lengths, faint)[:, None] * right


def _refined(
    start: np.ndarray,
    known: np.ndarray,
    rows: np.ndarray,
    offsets: np.ndarray,
    targets: np.ndarray,
    faint: float,
) -> np.ndarray:
    """B with columns of length 1, at least as good as the one to start from.

    With G known of the cells anyway, the variance of row u is offset + u (BᵀB + G)⁻¹ uᵀ: the
    largest ratio is minimised through p-norms of growing p, by L-BFGS.

    start: float64[n, n], regular; known: G, float64[n, n]; rows: float64[m, n]
    """

    def ratios(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        solved = np.linalg.solve(matrix.T @ matrix + known, rows.T)
        return (offsets + np.sum(rows * solved.T, axis=1)) / targets**2, solved

    def loss(flat: np.ndarray, power: float) -> tuple[float, np.ndarray]:
        free = flat.reshape(start.shape)
        lengths = np.linalg.norm(free, axis=0)
        matrix = free / lengths
        values, solved = ratios(matrix)
        shares = (values / np.max(values)) ** power
        total = float(np.sum(shares))
        # d(u X⁻¹ uᵀ) = −(X⁻¹u)ᵀ dX (X⁻¹u), and dX = dBᵀ B + Bᵀ dB.
        slopes = solved * (shares / total / values / targets**2)
        gradient = -2 * (matrix @ slopes) @ solved.T
        # Along the columns, whose lengths stay 1.
        gradient = (gradient - matrix * np.sum(matrix * gradient, axis=0)) / lengths
        return float(np.log(np.max(values)) + np.log(total) / power), gradient.ravel()

    from scipy.optimize import minimize  # whoever plans no free counts would wait for it

    flat = start.ravel()
    for power in _POWERS:
        flat = minimize(
            loss, flat, (power,), jac=True, method="L-BFGS-B", options={"maxiter": _STEPS}
        ).x
    found = flat.reshape(start.shape)
    candidates = start, _regular(found / np.linalg.norm(found, axis=0), faint)
    return min(candidates, key=lambda matrix: float(np.max(ratios(matrix)[0])))


def _within_room(matrix: np.ndarray, scales: np.ndarray, room: np.ndarray) -> np.ndarray:
    """B in integers, each of whose columns has a squared norm within its room.

    matrix: B over `scales`, the roots of the room
    """
    for left in _LEFT:
        rounded = np.rint(matrix * (1 - left) * scales).astype(np.int64)
        if np.all(np.sum(rounded * rounded, axis=0) <= room):
            return rounded
    raise PlanError(
        "The unused budget is too little to be measured with in whole numbers; plan the free "
        "counts with the others."
    )
