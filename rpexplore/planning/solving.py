"""Solutions: the noise that is best for a loss, by the solver that the loss takes.

Sums, largest variances and p-norms have solvers of their own; losses within limits take the capped
one, and custom losses a conic one (docs/mathematics.md §6). Where attributes are measured through
strategies and a loss has no search for them of its own, they are the best for a weighted sum, first
with the loss's own weights and then with the dual weights of what came of it.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from rpexplore.common.concurrency import one_thread
from rpexplore.common.formatting import rounded
from rpexplore.errors import OutOfReachError
from rpexplore.planning.dual_bounds import minorant_of, smallest_weighted_sum, weights_of_sum
from rpexplore.planning.losses.base import Loss, MaxVariance, SumOfVariances
from rpexplore.planning.losses.constrained import (
    MaxWithinTargets,
    SumWithBoundedMax,
    SumWithinTargets,
    WithinTargets,
)
from rpexplore.planning.losses.custom import CustomLoss
from rpexplore.planning.losses.p_norm import PNorm
from rpexplore.planning.mechanism.cell_variances import CellVariances
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.strategy import Strategy
from rpexplore.planning.mechanism.table_variances import TableVariances
from rpexplore.planning.optimal_strategies import best_strategies
from rpexplore.planning.solvers.capped_max import minimise_factor
from rpexplore.planning.solvers.capped_sum import FeasiblePoint, minimise_capped, within
from rpexplore.planning.solvers.conic_program import minimise_conic
from rpexplore.planning.solvers.max_cell_variance import minimise_worst_cell, worst_of
from rpexplore.planning.solvers.p_norm import minimise_p_norm
from rpexplore.planning.solvers.solution import Solution, rounding_allowance
from rpexplore.planning.solvers.weighted_sum import minimise_sum
from rpexplore.workload.workload import Workload

Note = Callable[[float], None]

# The limit of a bounded average is right up to this, relative, however coarse the plan may be.
LIMIT_TOLERANCE = 1e-4
_MOST_NAMED = 3
_LEAST_WEIGHT = 1e-9  # relative to the largest, of a table in the search for strategies
_NO_PRICE = 1e-9  # relative to the largest: rounding


def with_optimal_strategies(
    workload: Workload,
    closure: Closure,
    loss: Loss,
    *,
    even: bool,
    note: Note,
    table_weights: np.ndarray | None = None,
) -> Closure:
    """The closure, measured by strategies that suit the loss; itself if none are needed.

    table_weights: float64[n_tables], instead of the loss's own
    """
    if workload.is_marginals:
        return closure
    largest = loss.looks_at_worst_cells
    weights = loss.table_weights(workload) if table_weights is None else table_weights
    if isinstance(loss, WithinTargets):
        # What a cap is worth is not known yet: as much as all other tables together, at first.
        inverse = 1 / loss.caps(workload)
        largest = False
        weights = weights / np.sum(weights) + inverse / np.sum(inverse)
    return _by_strategies(workload, closure, weights, largest=largest, even=even, note=note)


def solution(
    workload: Workload,
    closure: Closure,
    loss: Loss,
    cost: float,
    tolerance: float,
    *,
    note: Note = lambda gap: None,
) -> tuple[Solution, float | None]:
    """The best noise at a privacy cost of one record, and the limit of a `SumWithBoundedMax`.

    closure: of the workload, measured by its strategies

    Raises `OutOfReachError` if targets that must be met cannot be.
    """
    weights = loss.table_weights(workload)
    with one_thread():
        if isinstance(loss, SumOfVariances):
            return minimise_sum(closure, weights, cost, tolerance, note=note), None
        if isinstance(loss, MaxVariance):
            cells = CellVariances(workload, closure)
            return minimise_worst_cell(cells, weights, cost, tolerance, note=note), None
        if isinstance(loss, SumWithinTargets | MaxWithinTargets):
            return _within_targets(
                CellVariances(workload, closure), loss, cost, tolerance, note
            ), None
        if isinstance(loss, SumWithBoundedMax):
            return _bounded(CellVariances(workload, closure), loss, cost, tolerance, note)
        if isinstance(loss, PNorm):
            return minimise_p_norm(closure, weights, loss.p, cost, tolerance, note=note), None
        assert isinstance(loss, CustomLoss)
        return minimise_conic(closure, workload, loss, cost, tolerance, note=note), None


def solve_with_optimal_strategies(
    workload: Workload,
    closure: Closure,
    loss: Loss,
    cost: float,
    tolerance: float,
    *,
    even: bool,
    note: Note,
    note_strategies: Note,
) -> tuple[Closure, tuple[Solution, float | None]]:
    """The closure, measured by strategies that suit the loss, and what `solution` has for it.

    Where these leave targets out of reach, those that come furthest inside the targets are taken;
    and in the end those that the dual weights of what was found ask for, if they are better. Losses
    with a search for strategies of their own stay with what that found.

    Raises `OutOfReachError` if targets that must be met cannot be.
    """
    measured = with_optimal_strategies(workload, closure, loss, even=even, note=note_strategies)
    try:
        found = solution(workload, measured, loss, cost, tolerance, note=note)
    except OutOfReachError:
        if not measured.strategies:
            raise
        assert isinstance(loss, WithinTargets)
        measured = find_feasible_with_optimal_strategies(
            workload, closure, loss.caps(workload), even=even, note=note_strategies
        )
        found = solution(workload, measured, loss, cost, tolerance, note=note)
    return _improved(workload, measured, found, loss, cost, tolerance, even=even, note=note)


def find_feasible_with_optimal_strategies(
    workload: Workload, closure: Closure, caps: np.ndarray, *, even: bool, note: Note
) -> Closure:
    """The closure, measured by strategies that come as far inside caps as can be.

    caps: float64[n_tables], inf for tables without one
    """
    if workload.is_marginals:
        return closure
    # Tables without a cap count a little, so that all attributes are measured.
    inverse = np.where(np.isfinite(caps), 1 / caps, 1e-3 / np.max(caps[np.isfinite(caps)]))
    return _by_strategies(workload, closure, inverse, largest=True, even=even, note=note)


def _improved(
    workload: Workload,
    closure: Closure,
    found: tuple[Solution, float | None],
    loss: Loss,
    cost: float,
    tolerance: float,
    *,
    even: bool,
    note: Note,
) -> tuple[Closure, tuple[Solution, float | None]]:
    """The better of a solution and the one with the strategies that its dual weights ask for.

    Of a `SumWithBoundedMax` each has a limit of its own; the better one is no worse in that either.
    """
    dual = found[0].dual_weights
    if dual is None or not closure.strategies:
        return closure, found
    weights = np.maximum(dual, np.max(dual) * _LEAST_WEIGHT)
    other = _by_strategies(
        workload, closure, weights, largest=False, even=even, note=lambda share: None
    )
    try:
        again = solution(workload, other, loss, cost, tolerance, note=note)
    except OutOfReachError:
        return closure, found
    values = [
        loss.value(TableVariances.of(workload, of, each.sigma_squared).of_loss(loss), workload)
        for of, each in ((closure, found[0]), (other, again[0]))
    ]
    limits = [each[1] or 0.0 for each in (found, again)]
    is_better = values[1] < values[0] and limits[1] <= limits[0]
    return (other, again) if is_better else (closure, found)


def _by_strategies(
    workload: Workload,
    closure: Closure,
    weights: np.ndarray,
    *,
    largest: bool,
    even: bool,
    note: Note,
) -> Closure:
    found: Mapping[int, Strategy] = best_strategies(
        workload, closure, weights, largest=largest, even=even, note=note
    )
    return replace(closure, strategies={}, moments=()).with_strategies(workload, found)


def _within_targets(
    cells: CellVariances,
    loss: SumWithinTargets | MaxWithinTargets,
    cost: float,
    tolerance: float,
    note: Note,
) -> Solution:
    workload = cells.workload
    weights, caps = loss.table_weights(workload), loss.caps(workload)
    inside = within(cells, caps, cost, tolerance, note=note)
    if not inside.is_feasible:
        raise _out_of_reach(workload, inside)
    options: dict[str, Any] = {
        "table_weights": weights,
        "privacy_cost": cost,
        "tolerance": tolerance,
        "note": note,
    }
    if isinstance(loss, SumWithinTargets):
        found = minimise_capped(cells, inside, caps=caps, **options)
        return _certified(cells, loss, found, cost)
    if np.all(workload.required):  # they all count, and are met anyway
        found = minimise_worst_cell(cells, weights, cost, tolerance, note=note)
        found = replace(found, dual_weights=found.shadow_prices * weights)
    else:
        found = minimise_factor(cells, inside, caps=caps, **options)
    return _certified(cells, loss, found, cost)


def _bounded(
    cells: CellVariances, loss: SumWithBoundedMax, cost: float, tolerance: float, note: Note
) -> tuple[Solution, float]:
    workload = cells.workload
    fine = min(tolerance, LIMIT_TOLERANCE)
    smallest = minimise_worst_cell(cells, workload.weights, cost, fine, note=note)
    worst = worst_of(cells, smallest.sigma_squared).variances
    limit = loss.limit(float(np.max(workload.weights * worst)))
    caps, weights = loss.caps(workload, limit), loss.table_weights(workload)
    inside = FeasiblePoint(
        smallest.sigma_squared,
        float(np.max(worst / caps)),
        smallest.lower_bound / limit,
        smallest.shadow_prices,
        smallest.cells,
    )
    found = minimise_capped(
        cells,
        inside,
        table_weights=weights,
        caps=caps,
        privacy_cost=cost,
        tolerance=tolerance,
        note=note,
    )
    return _certified(cells, loss, found, cost, limit), limit


def _certified(
    cells: CellVariances,
    loss: SumWithinTargets | MaxWithinTargets | SumWithBoundedMax,
    found: Solution,
    cost: float,
    limit: float | None = None,
) -> Solution:
    """With the bound that its dual weights prove as they are, rounded to floats.

    Its shadow prices are each table's share of all dual weights times variances.
    """
    workload, closure, dual = cells.workload, cells.closure, found.dual_weights
    assert dual is not None
    variances = TableVariances.of(workload, closure, found.sigma_squared)
    of_mean = weights_of_sum(loss, workload, dual)
    parts = of_mean * variances.mean + (dual - of_mean) * variances.worst
    smallest = smallest_weighted_sum(workload, closure, loss, dual, found.cells, cost)
    factor, offset = minorant_of(loss, workload, dual, limit=limit, variances=variances.mean)
    rounding = rounding_allowance(len(workload)) * (factor * smallest + offset)
    return replace(
        found,
        lower_bound=min(found.lower_bound, float(factor * smallest - offset - rounding)),
        shadow_prices=parts / np.sum(parts),
    )


def _out_of_reach(workload: Workload, inside: FeasiblePoint) -> OutOfReachError:
    """Which targets conflict, and what budget would do."""
    order = np.argsort(-inside.prices, kind="stable")
    held = [at for at in order.tolist() if inside.prices[at] > _NO_PRICE * inside.prices[order[0]]]
    names = ", ".join(workload.describe(at) for at in held[:_MOST_NAMED])
    more = f" and {len(held) - _MOST_NAMED:,} more" if len(held) > _MOST_NAMED else ""
    which = "that of table" if len(held) == 1 else "those of tables"
    together = "" if len(held) == 1 else " together"
    return OutOfReachError(
        "The targets that must be met cannot all be met at this budget. What stands in the way "
        f"{'is' if len(held) == 1 else 'are'} {which} {names}{more}{together}. Give "
        f"{rounded(inside.largest, 4, 'up')} times the budget and a little more (the Plan page, or "
        "--enough-for required, finds it), make some of these targets wider, or let some be met in "
        "proportion only.",
        needed=inside.largest,
    )
