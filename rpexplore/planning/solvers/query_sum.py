"""The least sum of query variances over squared targets: the classical objective."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rpexplore.common.concurrency import one_thread
from rpexplore.planning.solvers.anderson import anderson_acceleration
from rpexplore.planning.solvers.query_root import FactoredQueries, QueryRoot


@dataclass(frozen=True, eq=False)
class _Step:
    """A step of the cells' weights λ alone, as `anderson_acceleration` takes it."""

    strategy: np.ndarray
    state: np.ndarray
    following: np.ndarray
    metric: np.ndarray
    error: float


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
    (docs/mathematics.md §8 with y even); the sum is within about `tolerance` (relative) of the
    least.
    """
    asked = np.any(coefficients != 0, axis=0)
    queries = FactoredQueries.of(coefficients[:, asked], targets)
    even, n = queries.even_state(), queries.n_cells

    def step(logs: np.ndarray) -> _Step:
        at = QueryRoot(queries, np.concatenate([logs, even[n:]]))
        return _Step(
            strategy=at.strategy,
            state=at.state[:n],
            following=at.following[:n],
            metric=at.weights[:n] ** 2 * n,
            error=float(at.ratios[:n].max() - 1),
        )

    found = anderson_acceleration(step, even[:n], tolerance=tolerance, limit=300, on_share=on_share)
    matrix = np.zeros((len(found.strategy), len(asked)))
    matrix[:, asked] = found.strategy
    return matrix / np.sqrt(np.max(np.sum(matrix**2, axis=0)))
