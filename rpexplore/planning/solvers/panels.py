"""The best noise where a person has at most one record a period: by prices, as for replacements."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from rpexplore.errors import PlanError
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.panel import dearest_person
from rpexplore.planning.solvers.solution import Solution

_ROUNDS = 60
_ROOM = 1e-11  # of the budget, where noise is not scaled: for its rounding
_LEAST_COST = 1e-15  # of what a residual costs a record, in the search


def minimise_in_panel(
    closure: Closure,
    privacy_cost: float,
    solve: Callable[[Closure, float], Solution],
    tolerance: float,
    *,
    scales: bool,
) -> tuple[Closure, Solution]:
    """The best noise within the budget for every person, and the closure at the best prices.

    solve, scales and the bound are as of `minimise_replacing`.
    """
    best: tuple[float, Closure, Solution] | None = None
    allowed = privacy_cost
    for _ in range(_ROUNDS):
        panel = closure.panel
        assert panel is not None
        costs = np.maximum(closure.privacy_cost_factor, _LEAST_COST * closure.full_cost_factor)
        solution = solve(replace(closure, privacy_cost_factor=costs), allowed)
        over = dearest_person(closure, panel, solution.sigma_squared) / privacy_cost
        if best is None or over < best[0]:
            best = over, closure, solution
        if over <= (1 + tolerance if scales else 1 - _ROOM):
            break
        if over <= 1 + tolerance:
            allowed *= (1 - 2 * _ROOM) / over
            continue
        shares = panel.best_shares(closure, costs / solution.sigma_squared**2)
        closure = closure.in_panel(replace(panel, shares=shares))
    assert best is not None
    over, closure, solution = best
    if not np.isfinite(over) or (not scales and over > 1):
        raise PlanError(
            "The tables could not be planned for a panel; take another objective, or leave "
            "--period out, which protects people with any records."
        )
    return closure, replace(solution, sigma_squared=solution.sigma_squared * max(over, 1.0))
