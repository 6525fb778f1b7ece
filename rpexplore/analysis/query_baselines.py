"""What the same targets cost by plainer means: how much an optimal query plan saves.

input perturbation   every cell that some query touches is counted, and the answers added up
hierarchy            a binary tree over these cells in their order (the last attribute's values
                     change fastest, so that the tree's upper nodes split the first attribute's):
                     every node is counted, answers by least squares
sum of variances     the measurement with the least sum of variances, each over its squared target

All of them add independent noise of one size to what they measure; each is scaled until its worst
query meets its target.
"""

from functools import partial

import numpy as np
import pandas as pd

from rpexplore.common.concurrency import Progress, no_progress
from rpexplore.common.formatting import joined, rounded
from rpexplore.planning.minimum_budget import rho_of_unit
from rpexplore.planning.solvers.fitness_for_use import decoding
from rpexplore.planning.solvers.query_sum import least_sum
from rpexplore.privacy.budget import Budget
from rpexplore.queries.planner import QueryOptimum
from rpexplore.queries.query_list import QueryList

OPTIMUM = "optimal plan"
TITLES = {
    OPTIMUM: "this plan",
    "input perturbation": "noise on every cell",
    "hierarchy": "a tree of subtotals",
    "sum of variances": "the best on average",
}


def query_baselines(optimum: QueryOptimum, *, on_progress: Progress = no_progress) -> pd.DataFrame:
    """One row a method to measure the queries, the optimal plan first.

    Columns: baseline, measured (how many numbers), privacy_cost (of one record, at which all
    targets are met), largest_ratio and mean_ratio (of variance to squared target, at the optimal
    plan's cost) and saved (share of the baseline's privacy cost that the optimal plan does
    without). on_progress may raise.
    """
    queries = optimum.queries
    on_share = partial(on_progress, "Comparing with baselines")
    matrices = {
        "input perturbation": _cells(queries),
        "hierarchy": _tree(queries),
        "sum of variances": least_sum(queries.coefficients, queries.targets, on_share=on_share),
    }
    measured = {OPTIMUM: len(optimum.strategy.integers)} | {
        name: len(matrix) for name, matrix in matrices.items()
    }
    needed = {OPTIMUM: optimum.needed_costs} | {
        name: _needed_costs(matrix, queries) for name, matrix in matrices.items()
    }
    costs = np.array([np.max(of_queries) for of_queries in needed.values()])
    means = np.array([np.mean(of_queries) for of_queries in needed.values()])
    return pd.DataFrame(
        {
            "baseline": list(needed),
            "measured": list(measured.values()),
            "privacy_cost": costs,
            "largest_ratio": costs / optimum.cost,
            "mean_ratio": means / optimum.cost,
            "saved": 1 - optimum.cost / costs,
        }
    )


def _needed_costs(matrix: np.ndarray, queries: QueryList) -> np.ndarray:
    """Privacy cost at which each query meets its target, float64[n_queries].

    matrix: what is measured, float64[n_measured, n_cells], of full rank on the touched cells.
    """
    largest = np.max(np.sum(matrix**2, axis=0))
    if len(matrix) > np.count_nonzero(queries.counted_cells):
        # A triangle with the same least-squares answers.
        triangle = np.linalg.qr(matrix[:, queries.counted_cells], mode="r")
        matrix = np.zeros((len(triangle), queries.n_cells))
        matrix[:, queries.counted_cells] = triangle
    decoded = decoding(matrix, queries.coefficients)
    return np.sum(decoded**2, axis=1) / queries.targets**2 * largest


def _cells(queries: QueryList) -> np.ndarray:
    """A row for each touched cell, float64[n_touched, n_cells]."""
    return np.eye(queries.n_cells)[queries.counted_cells]


def _tree(queries: QueryList) -> np.ndarray:
    """A row for each node of a binary tree over the touched cells, float64[n_nodes, n_cells]."""
    rows, nodes = [], [np.flatnonzero(queries.counted_cells)]
    while nodes:
        node = nodes.pop()
        rows.append(np.isin(np.arange(queries.n_cells), node))
        if len(node) > 1:
            half = (len(node) + 1) // 2
            nodes += [node[:half], node[half:]]
    return np.array(rows, dtype=float)


def budgets_needed(baselines: pd.DataFrame, reference_budget: Budget) -> pd.DataFrame:
    """The rows of `query_baselines`, the cheapest first, with title and rho.

    rho: the budget at which all targets are met, for the privacy unit of `reference_budget`
    """
    needed = baselines.copy()
    needed["title"] = [TITLES[baseline] for baseline in baselines["baseline"]]
    costs = baselines["privacy_cost"].to_numpy()
    needed["rho"] = rho_of_unit(costs, reference_budget.max_records_per_person)
    # Stable: a baseline that happens to be as good as the plan stays behind it.
    return needed.sort_values(by="rho", kind="stable", ignore_index=True)


def describe_budgets(needed: pd.DataFrame) -> str:
    """How much more budget each baseline takes, in a sentence or two."""
    rows = needed.to_dict("records")
    others = [
        f"{row['title']} {_times(row['largest_ratio'])}"
        for row in reversed(rows)
        if row["baseline"] != OPTIMUM
    ]
    mine = next(row["rho"] for row in rows if row["baseline"] == OPTIMUM)
    return f"To meet all targets this plan needs ρ = {rounded(mine, 3, 'up')}; {joined(others)}."


def _times(times: float) -> str:
    text = rounded(times, 3)
    return "needs as much" if text == "1" else f"needs {text} times as much"
