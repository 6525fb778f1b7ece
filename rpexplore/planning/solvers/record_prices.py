"""Prices of kinds of records: where records of different kinds cost in different residuals.

A plan within a budget costs no kind of record more than that. For prices π ≥ 0 of sum 1 on the
kinds, the best noise for Σ_k π_k cost_k ≤ c is a closed form, or a search, as where all records are
alike, and bounds the loss of every plan from below; at the best prices it costs every kind that has
a price the same, c, and no kind more (docs/mathematics.md §5.5).

For a given weight v of each σ² in the loss the best π maximise Σ √(v_l · Σ_k π_k C_kl): the same
problem as the largest variance of some cells, with costs and weights exchanged. The v of a loss
that is no sum are those that its solution is the best response to, p/σ⁴; both are found in turn.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from rpexplore.errors import PlanError
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.variances import CellVarianceMap
from rpexplore.planning.solvers.largest_variance import minimise_over_cells
from rpexplore.planning.solvers.solution import Solution

_ROUNDS = 40
_PRECISE = 1e-8  # of the prices for given weights, relative
_LEAST_LEFT = 1e-9  # of the cost, for what is not at its floor


def best_prices(closure: Closure, weights: np.ndarray, tolerance: float = _PRECISE) -> np.ndarray:
    """The prices of kinds of records that bound Σ weights · σ² best, float64[n_kinds], sum 1.

    weights: float64[n_residuals], above 0
    """
    assert closure.classes is not None
    assert closure.prices is not None
    costs = sparse.csr_array(closure.classes.multiply(closure.full_cost_factor[None, :]))
    shape: Any = costs.shape
    n_kinds, n_residuals = shape
    start = np.maximum(closure.prices, 1e-6 / n_kinds)
    solution = minimise_over_cells(
        CellVarianceMap(costs, weights),
        np.ones(n_kinds),
        1.0,
        tolerance,
        np.zeros(n_residuals),
        start,
    )
    return solution.shadow_prices / np.sum(solution.shadow_prices)


def best_above(
    closure: Closure, weights: np.ndarray, floor: np.ndarray, privacy_cost: float
) -> np.ndarray:
    """The precisions τ ≥ floor that make Σ weights / τ smallest within a cost for every kind.

    Which residuals stay at the floor is found in turn: the others share what these leave of the
    cost, for each kind of record another part (docs/mathematics.md §21).

    weights, floor: float64[n_residuals], weights above 0, the floor within the cost

    Returns float64[n_residuals]; of residuals at the floor it may be less than that.
    """
    assert closure.classes is not None
    costs = sparse.csr_array(closure.classes.multiply(closure.full_cost_factor[None, :]))
    # What costs nothing, as a total that neighbours keep, is left alone from the start.
    precisions, at_floor = floor.copy(), costs.sum(axis=0) == 0
    while True:
        left = privacy_cost - costs[:, at_floor] @ floor[at_floor]
        of_free = sparse.csr_array(costs[:, ~at_floor])
        own = of_free.sum(axis=1) > 0
        rows = np.flatnonzero(own)
        left = np.maximum(left[rows], _LEAST_LEFT * privacy_cost)
        of_free = sparse.csr_array(sparse.diags_array(1 / left) @ of_free[rows])
        # The precisions of the smallest largest cost at a given loss: costs and weights exchanged.
        solution = minimise_over_cells(
            CellVarianceMap(of_free, weights[~at_floor] / np.max(weights)),
            np.ones(len(rows)),
            1.0,
            _PRECISE,
            np.zeros(np.count_nonzero(~at_floor)),
            np.full(len(rows), 1 / len(rows)),
        )
        wanted = solution.sigma_squared
        precisions[~at_floor] = wanted / np.max(of_free @ wanted)
        below = ~at_floor & (precisions < floor)
        if not np.any(below) or np.all(at_floor | below):
            return precisions
        at_floor |= below


def with_best_prices(
    closure: Closure,
    privacy_cost: float,
    solve: Callable[[Closure], Solution],
    tolerance: float,
) -> tuple[Closure, Solution]:
    """The closure at the best prices, and the solution, within the budget for every kind of record.

    solve: the best noise at the prices of a closure, within this privacy cost at them
    """
    best: tuple[float, Closure, Solution] | None = None
    for _ in range(_ROUNDS):
        solution = solve(closure)
        over = closure.largest_cost(solution.sigma_squared) / privacy_cost
        if best is None or over < best[0]:
            best = over, closure, solution
        if over <= 1 + tolerance:
            break
        weights = closure.privacy_cost_factor / solution.sigma_squared**2
        closure = closure.with_prices(best_prices(closure, weights / np.max(weights)))
    assert best is not None
    over, closure, solution = best
    if not np.isfinite(over):
        raise PlanError("The levels of the tables could not be planned; ask for fewer of them.")
    return closure, replace(solution, sigma_squared=solution.sigma_squared * max(over, 1.0))
