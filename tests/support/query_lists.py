"""Lists of linear queries that tests and benchmarks share, as matrices over the cells."""

from collections.abc import Collection, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

import rpexplore as rp
from rpexplore.planning.counts import QueryPlan
from rpexplore.planning.counts_planner import query_optimum
from rpexplore.planning.part_plan import keeping
from rpexplore.planning.solvers.queries import TOLERANCE
from rpexplore.workload.query_list import QueryList
from tests.support.oracles import marginal_matrix


def query_list(
    coefficients: ArrayLike, targets: ArrayLike = 1.0, sizes: Sequence[int] | None = None
) -> QueryList:
    """The rows as queries over one attribute, or over several of these sizes."""
    coefficients = np.asarray(coefficients)
    sizes = [coefficients.shape[1]] if sizes is None else sizes
    return QueryList(
        rp.Domain.from_sizes({f"a{index}": size for index, size in enumerate(sizes)}),
        coefficients,
        tuple(f"query {row + 1}" for row in range(len(coefficients))),
        np.broadcast_to(targets, len(coefficients)).astype(float),
    )


def prefix(n: int) -> np.ndarray:
    return np.tril(np.ones((n, n)))


def identity_and_sum(n: int) -> np.ndarray:
    return np.vstack([np.eye(n), np.ones((1, n))])


def ranges(n: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Sums over random runs of cells."""
    ends = np.sort(rng.integers(0, n, (count, 2)), axis=1)
    cells = np.arange(n)
    return ((ends[:, :1] <= cells) & (cells <= ends[:, 1:])).astype(float)


def binary_hierarchy(n: int) -> np.ndarray:
    """All 2n − 1 nodes of a binary tree over n cells, n a power of two."""
    widths = [2**level for level in range(n.bit_length())]
    return np.vstack([np.kron(np.eye(n // width), np.ones((1, width))) for width in widths])


def marginals(sizes, order: int) -> np.ndarray:
    """All cells of all marginals of up to so many attributes."""
    attributes = range(len(sizes))
    tables = [kept for count in range(order + 1) for kept in combinations(attributes, count)]
    return np.vstack([marginal_matrix(sizes, kept) for kept in tables])


def age_pyramid(n_ages: int = 116) -> tuple[np.ndarray, np.ndarray]:
    """(queries, targets) over 2 × ages: ages, cumulative ages and five-year groups by sex."""
    groups = np.arange(n_ages) // 5 == np.arange(-(-n_ages // 5))[:, None]
    of_one_sex = [np.eye(n_ages), prefix(n_ages), groups]
    queries = np.vstack([np.kron(np.eye(2), each) for each in of_one_sex])
    return queries, np.repeat([5.0, 20.0, 8.0], [2 * len(each) for each in of_one_sex])


def query_plan(
    queries: QueryList,
    *,
    budget: rp.Budget,
    objective: str = "largest",
    free: Collection[str] = (),
    tolerance: float = TOLERANCE,
) -> QueryPlan:
    """The plan for these counts alone; `rp.plan` makes the same as a part."""

    def solve(within: rp.Budget):
        return query_optimum(
            queries,
            objective=objective,
            free=free,
            budget=within,
            tolerance=tolerance,
            replaces=within.replaces,
            exact=within.exact,
        )

    known = solve(budget.largest)
    return keeping(budget, known.at if known.budget is None else lambda of: solve(of).at(of))
