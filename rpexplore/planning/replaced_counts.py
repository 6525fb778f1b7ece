"""Own counts where neighbours replace a record: measured by the differences between cells.

Two records in the cells u and v move R x by R e_u − R e_v. So what a replacement costs depends on
R B alone, with a column e_u − e_v of B for each pair of cells: the best R is that of the queries
W B with pairs in the place of cells (docs/mathematics.md §8), of which R = D⁺ W has the answers
D R x. What is left of W is the same in all cells, and so a multiple of the number of records. That
is public: a row of equal, large numbers measures it, without noise.

Around exact totals the columns are of changes that keep them (`counts_moves`) instead of pairs, and
rows of what the totals tell are measured without noise. Where there are many changes, R is planned
for some, and those that cost it more are added until none does by more than `_ENOUGH`. The lower
bound holds with any of them, and all are charged.
"""

from dataclasses import dataclass

import numpy as np

from rpexplore.common.processes import Progress, one_thread
from rpexplore.errors import PlanError
from rpexplore.planning.counts_moves import (
    KeptByCounts,
    Moves,
    are_known,
    changes_of,
    combinations_that_vanish,
    moves_of,
)
from rpexplore.planning.counts_strategy import QueryStrategy
from rpexplore.planning.solvers.queries import (
    Fitness,
    decoding,
    fitness_for_use,
    largest_and_mean,
)
from rpexplore.planning.solvers.query_rounding import MOST_ENTRY_BITS, basis_of_queries
from rpexplore.workload.query_list import QueryList

MOST_KINDS = 64  # of cells that queries tell apart: pairs are half its square

_BITS = (16, 18, 20, 22, 24)  # of the differences, until the cost is so near to the best
_ENOUGH, _MOST = 1e-4, 1e-3
_NOTHING = 1e-9  # of the largest coefficient
_FIRST_CHANGES, _MORE_CHANGES = 500, 200  # that R is planned for
_PLANS = 20
_UNPROTECTED = (
    "The exact totals share attributes, so that no change of records that keeps them changes some "
    "of the own counts, or what they tell together, which would not be protected; leave out one of "
    "these totals, or make one exact that has all of their attributes."
)


@dataclass(frozen=True, eq=False)
class Changes:
    """What one record's change can do to the queries: each pair of cells, by a cell of each kind.

    Around exact totals, what changes that keep them can do.

    cells        int64[n, 2], pairs; around exact totals int64[n, 4], as of `Moves`
    differences  of the queries that are not the same in all cells: float64[n_moved, n]
    is_moved     which queries these are: bool[n_queries]
    """

    cells: np.ndarray
    differences: np.ndarray
    is_moved: np.ndarray

    @classmethod
    def of(cls, queries: QueryList) -> "Changes":
        """Raises `PlanError` if there are too many kinds of cells, or nothing is protected."""
        _, first = np.unique(queries.integers, axis=1, return_index=True)
        first = np.sort(first)
        if len(first) > MOST_KINDS:
            raise PlanError(
                f"Own counts for neighbours that replace a record can tell at most {MOST_KINDS} "
                f"groups of cells apart, as all pairs of them are planned for, got "
                f"{len(first):,}; ask for fewer counts, or plan for people with 2 records "
                "(--records-per-person 2), which covers a replaced record as well."
            )
        if len(first) < 2:
            raise PlanError(
                "All own counts are multiples of the number of records, which is public where "
                "neighbours replace a record; ask for other counts, or publish it without a plan."
            )
        left, right = np.triu_indices(len(first), 1)
        cells = np.column_stack([first[left], first[right]])
        differences = differences_of(queries, cells)
        is_moved = np.any(differences != 0, axis=1)
        return cls(cells, differences[is_moved], is_moved)

    @classmethod
    def of_moves(cls, queries: QueryList, moves: Moves) -> "Changes":
        """Of all changes that keep exact totals, those alike for the queries once."""
        differences = moves.changes(queries.integers)
        differences = differences * np.where(_leads_below(differences), -1, 1)
        _, first = np.unique(differences, axis=1, return_index=True)
        first = np.sort(first[np.any(differences[:, first] != 0, axis=0)])
        cells = moves.cells[first]
        differences = changes_of(queries.coefficients, cells)
        is_moved = np.any(differences != 0, axis=1)
        return cls(cells, differences[is_moved], is_moved)

    def only(self, places: np.ndarray) -> "Changes":
        """Some of them."""
        return Changes(self.cells[places], self.differences[:, places], self.is_moved)


def _leads_below(differences: np.ndarray) -> np.ndarray:
    """Whether the first number of each column that is not 0 is below it."""
    first = np.argmax(differences != 0, axis=0)
    return differences[first, np.arange(differences.shape[1])] < 0


@one_thread(with_scipy=True)
def planned_for_moves(
    queries: QueryList,
    kept: KeptByCounts,
    tolerance: float,
    average: float,
    on_progress: Progress,
) -> tuple[Changes, Fitness, np.ndarray]:
    """The changes that keep exact totals R was planned for, R, and rows that are public.

    The rows are whole numbers over the cells, int64[n, n_cells], independent of one another.

    Raises `PlanError` where nothing is protected, or what neither changes nor is known.
    """
    moves = moves_of(queries, kept, queries.integers)
    every = Changes.of_moves(queries, moves)
    if not len(every.cells) and not np.all(are_known(queries, kept, queries.integers)):
        raise PlanError(_UNPROTECTED)
    if not len(every.cells):
        raise PlanError(
            "The exact totals tell all own counts, so that nothing is left to protect; ask for "
            "other counts, or leave these out."
        )
    rank, order = _spanning(every.differences / queries.targets[every.is_moved, None])
    public = _public_rows(queries, kept, every.cells[order[:rank]])
    chosen = order[: max(rank, _FIRST_CHANGES)]
    tries = 0
    while True:
        tries += 1
        changes = every.only(np.sort(chosen))
        solution = fitness_for_use(
            changes.differences,
            queries.targets[changes.is_moved],
            tolerance,
            average=average,
            on_progress=on_progress,
        )
        if len(chosen) == len(order) or tries == _PLANS:
            return changes, solution, public
        answers = decoding(solution.matrix, changes.differences)
        costs = np.sum((np.linalg.pinv(answers) @ every.differences) ** 2, axis=0)
        dearer = np.argsort(-costs, kind="stable")[:_MORE_CHANGES]
        dearer = dearer[costs[dearer] > 1 + _ENOUGH / 2]
        if not len(dearer):
            return changes, solution, public
        chosen = np.union1d(chosen, dearer)


def _spanning(differences: np.ndarray) -> tuple[int, np.ndarray]:
    """The rank of columns, and their order: first so many that all depend on; then long ones."""
    from scipy.linalg import qr  # slow to import

    triangle, order = qr(differences, mode="r", pivoting=True)  # pyright: ignore[reportAssignmentType]
    diagonal = np.abs(np.diag(triangle))
    rank = int(np.count_nonzero(diagonal > _NOTHING * diagonal[0]))
    others = order[rank:]
    lengths = np.sum(differences[:, others] ** 2, axis=0)
    return rank, np.append(order[:rank], others[np.argsort(-lengths, kind="stable")])


def _public_rows(queries: QueryList, kept: KeptByCounts, cells: np.ndarray) -> np.ndarray:
    """Combinations of queries that no change moves, which exact totals must tell, independent.

    cells: of changes that all others depend on
    """
    from scipy.linalg import qr  # slow to import

    vanishing = combinations_that_vanish(changes_of(queries.integers, cells))
    rows = vanishing @ queries.integers.astype(object)
    rows = rows[np.any(rows != 0, axis=1)] if len(rows) else rows
    if not len(rows):
        return np.zeros((0, queries.n_cells), dtype=np.int64)
    rows = np.array([row // np.gcd.reduce(row) for row in rows])
    if np.max(np.abs(rows)) > 2.0**MOST_ENTRY_BITS:
        raise PlanError(
            "What exact totals tell of these own counts cannot be written in whole numbers; use "
            "coefficients with fewer decimals and of more similar size."
        )
    rows = rows.astype(np.int64)
    lengths = np.linalg.norm(rows.astype(float), axis=1)
    triangle, order = qr((rows / lengths[:, None]).T, mode="r", pivoting=True)  # pyright: ignore[reportAssignmentType]
    rank = np.count_nonzero(np.abs(np.diag(triangle)) > _NOTHING)
    rows = rows[np.sort(order[:rank])]
    if not np.all(are_known(queries, kept, rows)):
        raise PlanError(_UNPROTECTED)
    return rows * (2**MOST_ENTRY_BITS // np.max(np.abs(rows), axis=1, keepdims=True))


def differences_of(queries: QueryList, cells: np.ndarray) -> np.ndarray:
    """What queries count of the records of the first cells more than of those of the last."""
    return changes_of(queries.coefficients, cells)


@one_thread(with_scipy=True)
def replaced_strategy(
    queries: QueryList,
    changes: Changes,
    solution: Fitness,
    average: float,
    kept: KeptByCounts | None = None,
    public: np.ndarray | None = None,
) -> QueryStrategy | None:
    """R in integers for the solution; None where it cannot be without losing accuracy.

    average: as of `fitness_for_use`
    kept, public: what exact totals keep, and rows of what they tell
    """
    coefficients, moved = queries.coefficients, np.flatnonzero(changes.is_moved)
    answered = np.zeros((len(queries), len(solution.matrix)))
    answered[moved] = decoding(solution.matrix, changes.differences)
    matrix = np.linalg.lstsq(answered, coefficients, rcond=None)[0]
    if public is None:
        left = coefficients - answered @ matrix  # the same in all cells
        has_total = bool(np.max(np.abs(left)) > _NOTHING * np.max(np.abs(coefficients)))
        public = np.full((int(has_total), queries.n_cells), 2**MOST_ENTRY_BITS)
    rows = basis_of_queries(queries.integers, len(matrix) + len(public))
    multiples = np.linalg.lstsq(rows.T, matrix.T, rcond=None)[0].T
    best, smallest = None, solution.cost * (1 + _MOST)
    for bits in _BITS:
        integers = np.vstack([np.rint(multiples * 2.0**bits) @ rows, public])
        if np.abs(integers).max() > 2.0**MOST_ENTRY_BITS:
            break
        try:
            strategy = QueryStrategy(queries, integers.astype(np.int64), kept=kept)
        except PlanError:  # which does not determine the counts well enough: finer, it may
            continue
        ratios = strategy.replaced_factors * strategy.squared_diameter / queries.targets**2
        cost = largest_and_mean(ratios[moved], average)
        if cost <= smallest:
            best, smallest = strategy, cost
        if smallest <= solution.cost * (1 + _ENOUGH):
            break
    return best
