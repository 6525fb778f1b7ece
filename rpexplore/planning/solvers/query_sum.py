"""The least sum of query variances over squared targets: the classical objective."""

from collections.abc import Callable

import numpy as np

from rpexplore.common.concurrency import one_thread
from rpexplore.planning.solvers.anderson import anderson_acceleration
from rpexplore.planning.solvers.query_root import FactoredQueries, QueryRoot


class _CellStep:
    """A step of the cells' weights λ alone, as `anderson_acceleration` takes it."""

    def __init__(self, queries: FactoredQueries, logs: np.ndarray, query_logs: np.ndarray) -> None:
        root, n = QueryRoot(queries, np.concatenate([logs, query_logs])), queries.n_cells
        self.strategy = root.strategy
        self.state, self.following = root.state[:n], root.following[:n]
        self.metric = root.weights[:n] ** 2 * n
        self.error = float(root.ratios[:n].max() - 1)


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
    (docs/mathematics.md §8 with y even), to about `tolerance` (relative).
    """
    touched = np.any(coefficients != 0, axis=0)
    queries = FactoredQueries.of(coefficients[:, touched], targets)
    even, n = queries.even_state(), queries.n_cells

    solution = anderson_acceleration(
        lambda logs: _CellStep(queries, logs, even[n:]),
        even[:n],
        tolerance=tolerance,
        limit=300,
        on_share=on_share,
    )
    matrix = np.zeros((len(solution.strategy), len(touched)))
    matrix[:, touched] = solution.strategy
    return matrix / np.sqrt(np.max(np.sum(matrix**2, axis=0)))
