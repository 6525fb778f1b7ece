"""Own counts where neighbours replace a record: measured by the differences between cells.

Two records in the cells u and v move R x by R e_u − R e_v. So what a replacement costs depends on
R B alone, with a column e_u − e_v of B for each pair of cells: the best R is that of the queries
W B with pairs in the place of cells (docs/mathematics.md §8), of which R = D⁺ W has the answers
D R x. What is left of W is the same in all cells, and so a multiple of the number of records. That
is public: a row of equal, large numbers measures it, without noise.
"""

from dataclasses import dataclass

import numpy as np

from rpexplore.common.processes import one_thread
from rpexplore.errors import PlanError
from rpexplore.planning.counts_strategy import QueryStrategy
from rpexplore.planning.solvers.queries import Fitness, decoding, largest_and_mean
from rpexplore.planning.solvers.query_rounding import MOST_ENTRY_BITS, basis_of_queries
from rpexplore.workload.query_list import QueryList

MOST_KINDS = 64  # of cells that queries tell apart: pairs are half its square

_BITS = (16, 18, 20, 22, 24)  # of the differences, until the cost is so near to the best
_ENOUGH, _MOST = 1e-4, 1e-3
_NOTHING = 1e-9  # of the largest coefficient


@dataclass(frozen=True, eq=False)
class CellPairs:
    """All pairs of cells that some query tells apart, by a cell of each kind.

    cells        int64[n_pairs, 2]
    differences  of the queries that are not the same in all cells: float64[n_moved, n_pairs]
    is_moved     which queries these are: bool[n_queries]
    """

    cells: np.ndarray
    differences: np.ndarray
    is_moved: np.ndarray

    @classmethod
    def of(cls, queries: QueryList) -> "CellPairs":
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


def differences_of(queries: QueryList, cells: np.ndarray) -> np.ndarray:
    """What queries count of a record in the first cell of each pair more than in the second."""
    return queries.coefficients[:, cells[:, 0]] - queries.coefficients[:, cells[:, 1]]


@one_thread(with_scipy=True)
def replaced_strategy(
    queries: QueryList, pairs: CellPairs, solution: Fitness, average: float
) -> QueryStrategy | None:
    """R in integers for what was found for pairs; None where it cannot be without losing accuracy.

    average: as of `fitness_for_use`
    """
    coefficients, moved = queries.coefficients, np.flatnonzero(pairs.is_moved)
    answered = np.zeros((len(queries), len(solution.matrix)))
    answered[moved] = decoding(solution.matrix, pairs.differences)
    matrix = np.linalg.lstsq(answered, coefficients, rcond=None)[0]
    left = coefficients - answered @ matrix  # the same in all cells
    has_total = bool(np.max(np.abs(left)) > _NOTHING * np.max(np.abs(coefficients)))
    rows = basis_of_queries(queries.integers, len(matrix) + has_total)
    multiples = np.linalg.lstsq(rows.T, matrix.T, rcond=None)[0].T
    best, smallest = None, solution.cost * (1 + _MOST)
    for bits in _BITS:
        integers = np.rint(multiples * 2.0**bits) @ rows
        if has_total:
            integers = np.vstack([integers, np.full(queries.n_cells, 2.0**MOST_ENTRY_BITS)])
        if np.abs(integers).max() > 2.0**MOST_ENTRY_BITS:
            break
        try:
            strategy = QueryStrategy(queries, integers.astype(np.int64))
        except PlanError:  # which does not determine the counts well enough: finer, it may
            continue
        ratios = strategy.replaced_factors * strategy.squared_diameter / queries.targets**2
        cost = largest_and_mean(ratios[moved], average)
        if cost <= smallest:
            best, smallest = strategy, cost
        if smallest <= solution.cost * (1 + _ENOUGH):
            break
    return best
