"""The best noise where what a person's records cost depends on what they hold: by prices.

Neighbours replace a record, which costs different things by what differs (`minimise_replacing`), or
people have at most one record a period, whose values differ or not (`minimise_in_panel`).

A plan is within a budget if no difference between two records, and no person, costs more. At prices
on these it is planned as where all records cost the same, and the prices bound the loss of every
plan from below, as those of kinds of records do (docs/mathematics.md §5.5). Differences are taken
in as they turn out to be the dearest; mostly that is one alone, in all attributes.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy import sparse

from rpexplore.errors import PlanError
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.panel import dearest_person
from rpexplore.planning.mechanism.replacement import Replacement, chosen_groups, dearest_replacement
from rpexplore.planning.mechanism.variances import CellVarianceMap
from rpexplore.planning.solvers.largest_variance import minimise_over_cells
from rpexplore.planning.solvers.solution import Solution

_ROUNDS = 60
_GROUPINGS = 3  # as often as groups of attributes are chosen
_ROOM = 1e-11  # of the budget, where noise is not scaled: for its rounding
_PRECISE = 1e-8  # of the prices for given weights, relative
# Of a residual's cost for records, what it costs at least in the search: the total costs nothing,
# others nothing at some prices. A loss is smaller without by less than its root, which the bound
# that is proven in the end has not.
LEAST_COST = 1e-15


def minimise_replacing(
    closure: Closure,
    privacy_cost: float,
    solve: Callable[[Closure, float], Solution],
    tolerance: float,
    *,
    scales: bool,
) -> tuple[Closure, Solution]:
    """The best noise within the budget for every replacement, and the closure at the best prices.

    solve: the best noise at the costs of a closure, within a privacy cost
    scales: whether the noise may be scaled up to keep the budget; else it is solved for less

    Its bound is that of the search, not of the plan: for `proven_bound` to find again.
    """
    closure = closure.replacing(Replacement.of_all(closure))
    best: tuple[float, Closure, Solution] | None = None
    allowed, n_groupings = privacy_cost, 0
    for _ in range(_ROUNDS):
        solution = solve(_with_least_costs(closure), allowed)
        sigma_squared = solution.sigma_squared
        assert closure.replacement is not None
        groups = closure.replacement.groups
        dearest = dearest_replacement(closure, groups, sigma_squared)
        if n_groupings < _GROUPINGS and (not n_groupings or dearest.gap > tolerance):
            n_groupings += 1
            groups = chosen_groups(closure, sigma_squared)
        if groups != closure.replacement.groups:  # the search begins again with them
            closure = closure.replacing(Replacement.of_groups(closure, groups))
            assert closure.replacement is not None
            dearest = dearest_replacement(closure, groups, sigma_squared)
            best = None
        over = dearest.bound / privacy_cost
        if best is None or over < best[0]:
            best = over, closure, solution
        if over <= (1 + tolerance if scales else 1 - _ROOM):
            break
        replacement = closure.replacement
        known = replacement.has(dearest.counts, dearest.others)
        is_settled = dearest.found <= privacy_cost * (1 + tolerance) or (
            known and len(replacement.counts) == 1
        )
        if is_settled:
            if scales:
                break
            allowed *= (1 - 2 * _ROOM) / over  # what the bound is above the cost, or rounding
            continue
        if not known:
            replacement = replacement.with_counts(dearest.counts, dearest.others)
        weights = _with_least_costs(closure).privacy_cost_factor / sigma_squared**2
        closure = closure.replacing(_with_best_prices(closure, replacement, weights))
    assert best is not None
    over, closure, solution = best
    if not np.isfinite(over) or (not scales and over > 1):
        if closure.exact_totals:
            raise PlanError(
                "The tables could not be planned around these exact totals; take another "
                "objective, or leave the exact totals out."
            )
        raise PlanError(
            "The tables could not be planned for neighbours that replace a record; take another "
            "objective, or --records-per-person 2, which protects against that as well."
        )
    assert closure.replacement is not None
    return closure.replacing(closure.replacement.priced), replace(
        solution, sigma_squared=solution.sigma_squared * max(over, 1.0)
    )


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
        charged = _with_least_costs(closure)
        solution = solve(charged, allowed)
        over = dearest_person(closure, panel, solution.sigma_squared) / privacy_cost
        if best is None or over < best[0]:
            best = over, closure, solution
        if over <= (1 + tolerance if scales else 1 - _ROOM):
            break
        if over <= 1 + tolerance:
            allowed *= (1 - 2 * _ROOM) / over
            continue
        shares = panel.best_shares(closure, charged.privacy_cost_factor / solution.sigma_squared**2)
        closure = closure.in_panel(replace(panel, shares=shares))
    assert best is not None
    over, closure, solution = best
    if not np.isfinite(over) or (not scales and over > 1):
        raise PlanError(
            "The tables could not be planned for a panel; take another objective, or leave "
            "--period out, which protects people with any records."
        )
    return closure, replace(solution, sigma_squared=solution.sigma_squared * max(over, 1.0))


def _with_least_costs(closure: Closure) -> Closure:
    costs = np.maximum(closure.privacy_cost_factor, LEAST_COST * closure.full_cost_factor)
    return replace(closure, privacy_cost_factor=costs)


def _with_best_prices(
    closure: Closure, replacement: Replacement, weights: np.ndarray
) -> Replacement:
    """The differences with the prices that bound Σ weights · σ² best."""
    costs = replacement.cost_factors(closure)
    counted = np.flatnonzero(np.any(costs > 0, axis=0) & (weights > 0))
    scaled = weights[counted] / np.max(weights[counted])
    solution = minimise_over_cells(
        CellVarianceMap(sparse.csr_array(costs[:, counted]), scaled),
        np.ones(len(costs)),
        1.0,
        _PRECISE,
        np.zeros(len(counted)),
        np.maximum(replacement.prices, 1e-6 / len(costs)),
    )
    prices = np.maximum(solution.shadow_prices, 0.0)
    return replace(replacement, prices=prices / np.sum(prices))
