"""Largest variances and caps where records of different kinds cost different things.

Where tables have an attribute at several levels, a plan must be within the budget for every kind of
record (docs/mathematics.md §5.5). A loss or a cap that looks at single cells has prices of cells as
well as of records, many of which are 0, so that a conic program finds them together:

    minimise Σ held · σ² + τ   with  Σ_l C_kl / σ²_l ≤ c  for every kind k of records,
                                     Var ≤ τ / weight, or Var ≤ cap, for cells of tables.

What the solver returns is a proposal: its noise is brought to exactly the budget, and its prices
give a bound that holds however near to the best ones they are. Cells are taken in as they turn out
to be the least accurate ones.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from rpexplore.common.installation import require
from rpexplore.common.numbers import smallest_value
from rpexplore.common.processes import Progress, no_progress
from rpexplore.errors import PlanError
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.variances import CellVariances
from rpexplore.planning.solvers.caps import CAP_ROUNDING, FeasiblePoint
from rpexplore.planning.solvers.largest_variance import are_in
from rpexplore.planning.solvers.solution import (
    CellPrices,
    Solution,
    best_response,
    dual_bound,
    report_gap,
    rounding_allowance,
)

_PASSES = 20  # in which cells are taken in
_BROKEN = 1e-7  # by how much, relative, cells may be above the largest variance that was found
_LARGEST = 5_000_000  # numbers of kinds of records by residuals
_LEAST_WANTED = 1e-3  # of what counts most, for what does not count
_FARTHEST, _FARTHEST_WITHIN_CAPS = 30.0, 1e5  # that σ² may be from where they begin, as a factor
_ACCURACY = 1e-7  # of the conic solver, at least; what it gives is judged by its bound
_NOTHING = 1e-10  # of the prices: less is noise of the solver
_ROOMS = (1e-7, 1e-6, 1e-5)  # by how much caps are lowered, so that they are kept at the budget


@dataclass(frozen=True, eq=False)
class Limits:
    """What a loss asks of tables, by table: float64[n_tables] each, or 0; 0: nothing.

    held    weight of the mean variance in a sum
    largest weight of the least accurate cell in a largest variance
    caps    1 over what the least accurate cell may have
    """

    held: np.ndarray | float = 0.0
    largest: np.ndarray | float = 0.0
    caps: np.ndarray | float = 0.0


def minimise_with_kinds(
    cells: CellVariances,
    limits: Limits,
    privacy_cost: float,
    *,
    on_progress: Progress = no_progress,
) -> tuple[Closure, Solution]:
    """The noise with the smallest sum and largest variance, within caps that can be kept.

    Returns the closure with the prices of kinds of records, and the solution. Its bound is that of
    a largest variance without caps, else infinite, and to be found from the dual weights.
    Raises `PlanError` if there are too many kinds of records, or the solver fails, and
    `MissingExtraError` without CVXPY.
    """
    require("cvxpy", "custom", "targets and largest errors of tables at several levels")
    closure = cells.closure
    if closure.n_kinds * len(closure) > _LARGEST:
        raise PlanError(
            "The levels of the tables tell too many kinds of records apart for this objective; "
            "minimise the average error, or ask for fewer levels or groups."
        )
    for room in _ROOMS if np.any(limits.caps) else (0.0,):
        found = _minimised(cells, limits, privacy_cost, room, on_progress)
        if found is None:
            continue
        priced, solution = found
        largest = cells.least_accurate(solution.sigma_squared).variances
        if np.all(largest * limits.caps <= 1 - CAP_ROUNDING):
            return priced, solution
    raise PlanError(
        "No plan could be found for tables at these levels within these limits; make targets "
        "wider, or ask for fewer levels."
    )


def find_feasible_with_kinds(
    cells: CellVariances,
    caps: np.ndarray,
    privacy_cost: float,
    *,
    on_progress: Progress = no_progress,
) -> tuple[Closure, FeasiblePoint]:
    """The plan with the smallest max Var/cap, as `find_feasible`, and the closure with its prices.

    caps: float64[n_tables], inf for tables without one
    """
    inverse = 1 / caps
    closure, solution = minimise_with_kinds(
        cells, Limits(largest=inverse), privacy_cost, on_progress=on_progress
    )
    largest = cells.least_accurate(solution.sigma_squared).variances * inverse
    return closure, FeasiblePoint(solution, float(np.max(largest)))


def _minimised(
    cells: CellVariances, limits: Limits, privacy_cost: float, room: float, on_progress: Progress
) -> tuple[Closure, Solution] | None:
    """`minimise_with_kinds` within caps that are lower by `room`; None if the solver fails."""
    import cvxpy

    closure, none = cells.closure, np.zeros(len(cells.workload))
    assert closure.classes is not None
    caps, of_largest = none + limits.caps / (1 - room), none + limits.largest
    inverse, in_sum = caps + of_largest, none + limits.held
    held = closure.residual_weights(in_sum)
    # All unknowns near 1: noise in units of what is best for all tables alike, a largest variance
    # in units of the loss there, caps in units of themselves.
    wanted = sum(part / np.sum(part) for part in (in_sum, inverse) if np.any(part))
    wanted = np.maximum(wanted, np.max(wanted) * _LEAST_WANTED)
    unit, _ = best_response(
        closure.privacy_cost_factor, closure.residual_weights(wanted), privacy_cost
    )
    size = float(held @ unit) + float(np.max(cells.least_accurate(unit).variances * of_largest))
    scaled = sparse.diags_array(closure.full_cost_factor / (privacy_cost * unit))
    costs = sparse.csr_array(closure.classes @ scaled)
    tables = np.flatnonzero(inverse > 0)
    # All cells that differ, if they are few; or those that turn out to be the least accurate ones.
    at, rows = cells.distinct_cells(tables) or (tables, cells.least_accurate(unit).rows[tables])
    farthest = _FARTHEST_WITHIN_CAPS if np.any(caps) else _FARTHEST
    passes = 0
    while True:
        passes += 1
        noise, largest = cvxpy.Variable(len(unit)), cvxpy.Variable(nonneg=True)
        is_capped = (caps[at] > 0).astype(float)
        weights = inverse[at] / np.where(is_capped, 1.0, size)
        weighted = sparse.diags_array(weights) @ cells.map(at, rows).matrix
        reached: Any = sparse.csr_array(weighted @ sparse.diags_array(unit)) @ noise
        kept: Any = reached <= (1 - is_capped) * largest + is_capped
        within: Any = costs @ cvxpy.inv_pos(noise) <= 1
        loss = (held * unit / size) @ noise + largest
        problem = cvxpy.Problem(cvxpy.Minimize(loss), [within, kept, noise <= farthest])
        if smallest_value(problem, within=_ACCURACY) is None:
            return None
        sigma_squared = np.asarray(noise.value) * unit
        if not np.all(sigma_squared > 0):
            return None
        sigma_squared *= closure.largest_cost(sigma_squared) / privacy_cost
        least_accurate = cells.least_accurate(sigma_squared)
        relative = (least_accurate.variances * inverse)[tables]
        limit = np.where(caps[tables] > 0, 1.0, np.asarray(largest.value, dtype=float) * size)
        new = tables[relative > limit * (1 + (room / 2 or _BROKEN))]
        new = new[~are_in(at, rows, new, least_accurate.rows[new])]
        if len(new) == 0 or passes == _PASSES:
            break
        at, rows = np.append(at, new), np.concatenate([rows, least_accurate.rows[new]])
    of_records = _without_noise(within.dual_value)
    of_cells = _without_noise(kept.dual_value) * weights * size  # of their variances
    if not np.any(of_records):
        return None
    closure = closure.with_prices(of_records / np.sum(of_records))
    if not np.any(in_sum) and not np.any(caps):
        # A largest variance alone: its prices sum to 1, and prove a bound.
        of_cells /= np.sum(of_cells / of_largest[at])
    bound = np.inf
    if not np.any(caps):
        of_residuals = held + cells.map(at, rows).residual_weights(of_cells)
        bound = dual_bound(closure.privacy_cost_factor, of_residuals, privacy_cost)
        bound *= 1 - rounding_allowance(len(none))
        report_gap(on_progress, float(np.max(relative, initial=0.0)) / bound - 1)
    prices = of_cells / inverse[at]
    prices /= np.sum(prices) or 1.0  # no cap may be reached
    has_price = prices > 0
    return closure, Solution(
        sigma_squared=sigma_squared,
        lower_bound=bound,
        shadow_prices=np.bincount(at, prices, len(none)),
        cells=CellPrices.sorted(at[has_price], rows[has_price], prices[has_price]),
        dual_weights=in_sum + np.bincount(at, of_cells, len(none)),
    )


def _without_noise(dual: Any) -> np.ndarray:
    prices = np.maximum(np.asarray(dual, dtype=float).ravel(), 0.0)
    return np.where(prices > _NOTHING * np.max(prices, initial=0.0), prices, 0.0)
