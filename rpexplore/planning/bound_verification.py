"""Verification of what a plan claims to be worth: its limits are kept, and its bound is proven.

Each function returns whether a claim holds, and a finding as text.
"""

import numpy as np

from rpexplore.common.concurrency import one_thread
from rpexplore.common.formatting import rounded
from rpexplore.planning.certificate import smallest_weighted_sum
from rpexplore.planning.losses.base import SumOfVariances
from rpexplore.planning.losses.constrained import SumWithBoundedMax
from rpexplore.planning.mechanism.cell_variances import CellVariances
from rpexplore.planning.mechanism.table_variances import TableVariances
from rpexplore.planning.optimal_strategies import strategy_bound
from rpexplore.planning.plan import Plan
from rpexplore.planning.solvers.max_cell_variance import minimise_max_cell_variance
from rpexplore.planning.solvers.solution import dual_bound, rounding_allowance
from rpexplore.planning.solving import LIMIT_TOLERANCE

# What depends on the inverse of a strategy, computed in floats, may differ by so much elsewhere.
DECODED_TOLERANCE = 1e-8
# Shadow prices are for reading; the bound that they give is proven.
PRICE_TOLERANCE = 1e-9
# Variances of marginals are floats, good to about 15 digits.
CAP_TOLERANCE = 1e-12
# What a bound may come out above the loss of the plan that it is the bound of, by rounding.
_ABOVE_LOSS = 1e-9
# Weights beyond these leave too few digits, or none, to whatever is computed from them.
_LEAST_WEIGHT, _MOST_WEIGHT = 1e-200, 1e200

Finding = tuple[bool, str]


def limits_kept(plan: Plan) -> Finding | None:
    """Whether every table is within the limit that the loss sets it, and a `SumWithBoundedMax`'s is
    right; None: it sets none.
    """
    if isinstance(plan.loss, SumWithBoundedMax):
        is_right, finding = _limit_is_right(plan, plan.loss)
        if not is_right:
            return False, finding
    caps = plan.loss.caps(plan.workload, plan.certificate.limit)
    if caps is None:
        return None
    variances = TableVariances.of(plan.workload, plan.closure, plan.sigma_squared.floats).worst
    tolerance = DECODED_TOLERANCE if plan.closure.strategies else CAP_TOLERANCE
    over = np.flatnonzero(variances > caps * (1 + tolerance))
    count = int(np.count_nonzero(np.isfinite(caps)))
    if len(over) == 0:
        return True, f"all {count:,} tables that have a largest allowed variance are within it"
    first = int(over[0])
    return False, (
        f"{len(over):,} of {count:,} tables are above their largest allowed variance; the "
        f"first is {plan.workload.describe(first)}: {variances[first]:.9g} instead of "
        f"{caps[first]:.9g}"
    )


def _limit_is_right(plan: Plan, loss: SumWithBoundedMax) -> Finding:
    """Whether the stated limit is that of the smallest largest variance, computed again."""
    cells, weights = CellVariances(plan.workload, plan.closure), plan.workload.weights
    cost, limit = float(plan.budget.record_privacy_cost), plan.certificate.limit or 0.0
    with one_thread():
        solution = minimise_max_cell_variance(cells, weights, cost)
    largest = float(np.max(weights * cells.worst(solution.sigma_squared).variances))
    least = loss.limit(solution.lower_bound) * (1 - DECODED_TOLERANCE)
    most = loss.limit(largest) * (1 + 2 * LIMIT_TOLERANCE)
    return least <= limit <= most, (
        f"weight times variance may be {limit:.9g} at most, and the largest that is "
        f"{100 * loss.slack:.6g} % (of its standard error) above the smallest possible is "
        f"{loss.limit(largest):.9g}"
    )


def proven_by_shadow_prices(plan: Plan) -> Finding:
    """The dual at the stated shadow prices, which are a sum's shares, or of a largest variance."""
    certificate, workload, loss = plan.certificate, plan.workload, plan.loss
    prices, cells = certificate.shadow_prices, certificate.cells
    weights = loss.table_weights(workload)
    # Prices that sum to a little more than 1 would prove a little too much.
    total = float(np.sum(prices))
    scale, right_prices = max(total, 1.0), abs(total - 1) <= PRICE_TOLERANCE
    if isinstance(loss, SumOfVariances):
        shares = weights * plan.variances
        right_prices = np.allclose(prices, shares / np.sum(shares), rtol=PRICE_TOLERANCE, atol=0)
        residual_weights = plan.closure.residual_weights(weights)
    elif workload.is_marginals:
        residual_weights = plan.closure.residual_weights(weights * prices / scale)
    elif cells is None:
        return False, "the worst cells, which prove the bound, are not stated"
    else:
        of_tables = np.bincount(cells.tables, cells.prices, len(workload))
        right_prices &= np.allclose(prices, of_tables, rtol=PRICE_TOLERANCE, atol=PRICE_TOLERANCE)
        scale = max(float(np.sum(cells.prices)), 1.0)
        of_cells = CellVariances(workload, plan.closure).map(cells.tables, cells.rows)
        residual_weights = of_cells.residual_weights(weights[cells.tables] * cells.prices / scale)
    if not right_prices:
        return False, "the stated shadow prices are not those of the tables"
    costs, cost = plan.closure.privacy_cost_factor, float(plan.budget.record_privacy_cost)
    return _optimality(plan, dual_bound(costs, residual_weights, cost) * _lowered(plan))


def proven_by_dual_weights(plan: Plan) -> Finding:
    """The bound that follows from the stated dual weights, of other losses."""
    certificate, workload, loss = plan.certificate, plan.workload, plan.loss
    dual = certificate.dual_weights
    if dual is None:
        return False, "the dual weights that prove the bound are not stated"
    caps = loss.caps(workload, certificate.limit)
    of_sum = loss.weights_on_means(workload, dual)
    priced_without_cap = (dual > of_sum) & (of_sum > 0) & (caps is not None and np.isinf(caps))
    usable = _LEAST_WEIGHT < np.max(dual) < _MOST_WEIGHT
    if np.any(dual < of_sum) or np.any(priced_without_cap) or not usable:
        return False, "the stated dual weights cannot be those of a bound on the loss"
    cost = float(plan.budget.record_privacy_cost)
    smallest = _lowered(plan) * smallest_weighted_sum(
        workload, plan.closure, loss, dual, certificate.cells, cost
    )
    if not loss.is_available:
        gap = max(float(np.sum(dual * plan.variances)) / smallest - 1, 0.0)
        return True, (
            "at the stated dual weights no plan with this budget has a weighted sum of variances "
            f"more than {rounded(gap, 2, 'up')} (relative) below that of this one; that this "
            "bounds the loss stands in the script that made the plan"
        )
    factor, offset = loss.minorant_of_plan(
        dual, workload, limit=certificate.limit, variances=plan.variances
    )
    return _optimality(plan, factor * smallest - offset)


def near_other_strategies(plan: Plan) -> Finding:
    """How much better a plan could be that measures attributes through other matrices."""
    bound = strategy_bound(
        plan.workload,
        plan.closure,
        plan.loss.table_weights(plan.workload),
        largest=plan.loss.looks_at_worst_cells,
    )
    bound *= (1 - DECODED_TOLERANCE) / float(plan.budget.record_privacy_cost)
    gap = max(plan.certificate.loss_value / bound - 1, 0.0)
    return bound <= plan.certificate.loss_value, (
        "with these reference distributions no plan has a loss below "
        f"{rounded(bound, 9, 'down')}, whatever the matrices of its strategies; this one is within "
        f"{rounded(gap, 2, 'up')} (relative) of it"
    )


def _lowered(plan: Plan) -> float:
    """By what a bound is lowered, so that rounding proves nothing."""
    return 1 - rounding_allowance(len(plan.workload)) / 4


def _optimality(plan: Plan, bound: float) -> Finding:
    """Whether the stated bound is proven by this one."""
    certificate = plan.certificate
    # A computation elsewhere may invert the strategies a little differently, and the bound of an
    # own loss is known as well as its solver knows it.
    slack = DECODED_TOLERANCE if plan.closure.strategies else 0.0
    slack = max(slack, plan.loss.bound_allowance)
    # The plan itself shows that no bound above its loss is right: such a one comes of weights that
    # cannot be computed with.
    if not bound <= certificate.loss_value * (1 + max(slack, _ABOVE_LOSS)):
        return False, "the stated prices or weights are beyond what can be computed with"
    which = " that measures the attributes as this one does" if plan.closure.strategies else ""
    gap = max(certificate.loss_value / bound - 1, 0.0) if bound > 0 else np.inf
    finding = (
        f"no plan with this budget{which} has a loss below {rounded(bound, 9, 'down')}; this one "
        f"is within {rounded(gap, 2, 'up')} (relative) of it"
    )
    holds = certificate.lower_bound <= bound * (1 + slack)
    if not holds:
        finding += f"; the stated bound, {certificate.lower_bound:.12g}, is not proven"
    return holds, finding
