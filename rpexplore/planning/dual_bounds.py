"""Dual bounds: the smallest loss that dual weights leave possible (docs/mathematics.md §6.9).

Whatever the weights d ≥ 0 on the tables' variances are, no plan's Σ d · Var is below the closed
form of RP+ Lemma 2, and a loss bounds itself from below by such a sum (`Loss.minorant`). Together
they bound the loss of every plan. Planner and verification both compute the bound here, from the
dual weights as a plan file holds them, so that the one proves what the other states.
"""

from typing import Any

import numpy as np

from rpexplore.planning.losses.base import Loss
from rpexplore.planning.losses.constrained import SumWithBoundedMax, WithinTargets
from rpexplore.planning.losses.custom import CustomLoss
from rpexplore.planning.mechanism.cell_variances import CellVariances
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.solvers.solution import CellPrices, dual_bound
from rpexplore.workload.workload import Workload


def caps_of(loss: Loss, workload: Workload, limit: float | None) -> np.ndarray | None:
    """The largest variance that a loss allows each table, float64[n_tables]; None: any.

    limit: of a `SumWithBoundedMax`
    """
    if isinstance(loss, WithinTargets):
        return loss.caps(workload)
    if isinstance(loss, SumWithBoundedMax):
        return loss.caps(workload, 0.0 if limit is None else limit)
    return None


def weights_of_sum(loss: Loss, workload: Workload, dual_weights: np.ndarray) -> np.ndarray:
    """The part of dual weights that is on a table's mean variance, float64[n_tables].

    The rest, prices of caps and shares of a largest variance, is on its least accurate cells.
    """
    if not isinstance(loss, WithinTargets | SumWithBoundedMax):
        return dual_weights
    if loss.looks_at_worst_cells:
        return np.zeros(len(workload))
    return loss.table_weights(workload)


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
    of_sum = weights_of_sum(loss, workload, dual_weights)
    prices = dual_weights - of_sum
    if workload.is_marginals or cells is None:
        residual_weights = closure.residual_weights(dual_weights)
    else:
        of_tables = np.bincount(cells.tables, cells.prices, len(workload))
        on_mean = of_sum + np.where(of_tables > 0, 0.0, prices)
        spread = cells.prices * (prices / np.where(of_tables > 0, of_tables, 1.0))[cells.tables]
        of_cells = CellVariances(workload, closure).map(cells.tables, cells.rows)
        residual_weights = of_cells.residual_weights(spread) + closure.residual_weights(on_mean)
    return dual_bound(closure.privacy_cost_factor, residual_weights, cost)


def minorant_of(
    loss: Loss,
    workload: Workload,
    dual_weights: np.ndarray,
    *,
    limit: float | None,
    variances: np.ndarray,
) -> tuple[float, float]:
    """(factor, offset) of `Loss.minorant`, for plans within the limits that the loss sets.

    limit: of a `SumWithBoundedMax`; variances: float64[n_tables], near those of the best plan
    """
    if isinstance(loss, SumWithBoundedMax):
        assert limit is not None
        return loss.minorant_within(limit, dual_weights, workload)
    options: dict[str, Any] = {"near": variances} if isinstance(loss, CustomLoss) else {}
    return loss.minorant(dual_weights, workload, **options)
