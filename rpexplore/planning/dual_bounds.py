"""Dual bounds: the smallest loss that dual weights leave possible (docs/mathematics.md §6.9).

Whatever the weights d ≥ 0 on the tables' variances are, no plan's Σ d · Var is below the closed
form of RP+ Lemma 2, and a loss bounds itself from below by such a sum (`Loss.minorant`). Together
they bound the loss of every plan. Planner and verification both compute the bound here, from the
dual weights as a plan file holds them, so that the one proves what the other states.
"""

import numpy as np

from rpexplore.planning.losses.base import Loss
from rpexplore.planning.mechanism.cell_variances import CellVariances
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.solvers.solution import CellPrices, dual_bound
from rpexplore.workload.workload import Workload


def smallest_weighted_sum(
    workload: Workload,
    closure: Closure,
    loss: Loss,
    dual_weights: np.ndarray,
    cells: CellPrices | None,
    cost: float,
) -> float:
    """Up to rounding, no plan's Σ dual_weights · Var is below it at this privacy cost.

    cells: how the part on least accurate cells is spread over them; what is stated of no cell
    counts for the table's mean, which is never above its least accurate cell
    """
    on_means = loss.weights_on_means(workload, dual_weights)
    prices = dual_weights - on_means
    if workload.is_marginals or cells is None:
        residual_weights = closure.residual_weights(dual_weights)
    else:
        of_tables = np.bincount(cells.tables, cells.prices, len(workload))
        on_mean = on_means + np.where(of_tables > 0, 0.0, prices)
        spread = cells.prices * (prices / np.where(of_tables > 0, of_tables, 1.0))[cells.tables]
        of_cells = CellVariances(workload, closure).map(cells.tables, cells.rows)
        residual_weights = of_cells.residual_weights(spread) + closure.residual_weights(on_mean)
    return dual_bound(closure.privacy_cost_factor, residual_weights, cost)
