"""Verification: does a plan hold what it claims? From the plan alone, in exact arithmetic."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from rpexplore.accounting import ExactVariances, privacy_cost_upper_bound
from rpexplore.best_strategies import strategy_bound
from rpexplore.cells import Cells
from rpexplore.losses import MaxVariance, SumOfVariances
from rpexplore.named_loss import NamedLoss
from rpexplore.own_loss import ConvexLoss
from rpexplore.plan import Plan
from rpexplore.solvers.solution import dual_bound, rounding_allowance
from rpexplore.table_variances import TableVariances
from rpexplore.target_losses import BoundedAverage, MustsFirst
from rpexplore.words import rounded

# Stated variances are floats: sums of positive terms, good to about 15 digits.
VARIANCE_TOLERANCE = Fraction(1, 10**12)
# Through strategies they depend on the inverse of a matrix, computed in floats as well.
DECODED_TOLERANCE = 1e-8
# The loss and the shadow prices are for reading; cost, variances and bound are proven.
LOSS_TOLERANCE = 1e-11
PRICE_TOLERANCE = 1e-9
# What is above a cap by no more than this is on it (relative, of variances).
CAP_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Check:
    """One claim of a plan: whether it holds, and what was found, in words."""

    name: str
    holds: bool
    finding: str


@dataclass(frozen=True)
class Verification:
    """All checks of a plan, and its guarantee in words."""

    checks: tuple[Check, ...]
    guarantee: str

    @property
    def holds(self) -> bool:
        return all(check.holds for check in self.checks)

    def __str__(self) -> str:
        marks = {True: "ok  ", False: "FAIL"}
        lines = [f"{marks[check.holds]} {check.name}: {check.finding}" for check in self.checks]
        closing = self.guarantee if self.holds else "This plan does not hold what it claims."
        return "\n".join([*lines, "", closing])


def verify(plan: Plan, *, strategies: bool = True) -> Verification:
    """Recompute privacy cost, every variance and the certificate of a plan.

    strategies: bound what other matrices could gain as well, where attributes are measured through
    matrices; it takes as long as the plan did, and nothing of the guarantee depends on it

    The cost and the variances of marginals are compared in exact integer arithmetic. In floating
    point are compared: variances that depend on the inverse of a strategy (to 8 digits), and the
    certificate's bound, lowered by more than its rounding error.
    """
    checks = [_check_privacy(plan), _check_variances(plan), _check_loss(plan)]
    has_search = isinstance(plan.loss, SumOfVariances | MaxVariance)
    if has_search:
        checks.append(_check_bound(plan))
    else:
        checks += [*_check_caps(plan), _check_dual_bound(plan)]
    if strategies and plan.closure.strategies and has_search:
        checks.append(_check_strategies(plan))
    return Verification(tuple(checks), guarantee(plan))


def guarantee(plan: Plan) -> str:
    """What the plan guarantees, in words."""
    rows = ", ".join(plan.guarantees)
    return (
        f"A release by this plan is ρ-zCDP with ρ = {rounded(plan.rho, 6, 'up')} for "
        f"{plan.budget.unit}: adding or removing it changes the distribution of everything that "
        f"is released by no more than that. It follows that the release is (ε, δ)-differentially "
        f"private with {rows}. The noise is discrete Gaussian, so these hold for the numbers as "
        "they are drawn, not only for an ideal. Every table's answers are unbiased, with the "
        "standard errors the plan states."
    )


def _check_privacy(plan: Plan) -> Check:
    found = privacy_cost_upper_bound(plan.closure, plan.sigma_squared) * plan.budget.records_factor
    allowed = plan.budget.privacy_cost
    holds = found <= plan.exact_privacy_cost <= allowed
    # Rounded alike where they hold: what is within the budget must not read as if it were above.
    mode = "up" if holds else "down"
    return Check(
        "privacy cost",
        holds,
        f"the noise scales cost at most {rounded(found, 12, 'up')}; stated "
        f"{rounded(plan.exact_privacy_cost, 12, 'up')}, budget {rounded(allowed, 12, mode)} "
        f"(ρ = {rounded(allowed / 2, 12, mode)})",
    )


def _check_variances(plan: Plan) -> Check:
    if not plan.workload.is_pure:
        return _check_decoded_variances(plan)
    exact = ExactVariances.of(plan.closure, plan.workload.exact_cells, plan.sigma_squared)
    off = exact.differing(plan.variances, VARIANCE_TOLERANCE)
    if len(off) == 0:
        finding = f"all {len(plan.workload):,} tables have the variance that is stated"
    else:
        place = int(off[0])
        finding = (
            f"{len(off):,} of {len(plan.workload):,} tables differ; the first is "
            f"{plan.workload.describe(place)}: stated {plan.variances[place]:.12g}, exact "
            f"{float(exact.fraction(place)):.12g}"
        )
    return Check("variances", len(off) == 0, finding)


def _check_decoded_variances(plan: Plan) -> Check:
    found = TableVariances.of(plan.workload, plan.closure, plan.sigma_squared.floats)
    for cell, words in (("mean", "mean"), ("worst", "largest"), ("best", "smallest")):
        stated, exact = plan.table_variances.at(cell), found.at(cell)
        off = np.flatnonzero(~np.isclose(stated, exact, rtol=DECODED_TOLERANCE, atol=0))
        if len(off):
            place = int(off[0])
            return Check(
                "variances",
                False,
                f"{len(off):,} of {len(plan.workload):,} tables differ; the first is "
                f"{plan.workload.describe(place)}: its {words} variance of a cell is stated as "
                f"{stated[place]:.9g} and is {exact[place]:.9g}",
            )
    count = len(plan.workload)
    return Check(
        "variances", True, f"all {count:,} tables have the mean and extreme variances stated"
    )


def _check_loss(plan: Plan) -> Check:
    stated = plan.certificate.loss_value
    if isinstance(plan.loss, NamedLoss):
        return Check(
            "loss",
            True,
            f"{plan.loss.description} is stated as {stated:.9g}; what it is "
            "stands in the script that made the plan, so it is not checked",
        )
    variances = TableVariances.of(plan.workload, plan.closure, plan.sigma_squared.floats)
    found = plan.loss.value(variances.of_loss(plan.loss), plan.workload)
    tolerance = LOSS_TOLERANCE if plan.workload.is_pure else DECODED_TOLERANCE
    holds = bool(np.isclose(found, stated, rtol=tolerance, atol=0))
    return Check("loss", holds, f"{plan.loss.description} is {found:.9g}; stated {stated:.9g}")


def _check_bound(plan: Plan) -> Check:
    """The dual at the stated shadow prices, lowered by what its computation can be off.

    Shadow prices must sum to 1; in a sum of variances they are the tables' shares in it.
    """
    certificate, workload, loss = plan.certificate, plan.workload, plan.loss
    prices, cells = certificate.shadow_prices, certificate.cells
    weights = loss.table_weights(workload)
    # Prices that sum to a little more than 1 would prove a little too much.
    scale = max(float(np.sum(prices)), 1.0)
    right_prices = abs(float(np.sum(prices)) - 1) <= PRICE_TOLERANCE
    if isinstance(loss, SumOfVariances):
        shares = weights * plan.variances
        right_prices = np.allclose(prices, shares / np.sum(shares), rtol=PRICE_TOLERANCE, atol=0)
        residual_weights = plan.closure.residual_weights(weights)
    elif workload.is_pure:
        residual_weights = plan.closure.residual_weights(weights * prices / scale)
    elif cells is None:
        return Check("optimality", False, "it is not stated which cells are the worst ones")
    else:
        of_tables = np.bincount(cells.tables, cells.prices, len(workload))
        right_prices &= np.allclose(prices, of_tables, rtol=PRICE_TOLERANCE, atol=PRICE_TOLERANCE)
        scale = max(float(np.sum(cells.prices)), 1.0)
        of_cells = Cells(workload, plan.closure).map(cells.tables, cells.rows)
        residual_weights = of_cells.residual_weights(weights[cells.tables] * cells.prices / scale)
    if not right_prices:
        return Check("optimality", False, "the stated shadow prices are not what they must be")
    return _optimality(plan, _smallest_weighted_sum(plan, residual_weights))


def _smallest_weighted_sum(plan: Plan, residual_weights: np.ndarray) -> float:
    """Below it is no Σ residual_weights · σ² within the budget, up to rounding."""
    budget = float(plan.budget.record_privacy_cost)
    bound = dual_bound(plan.closure.privacy_cost_factor, residual_weights, budget)
    return bound * (1 - rounding_allowance(len(plan.workload)) / 4)


def _optimality(plan: Plan, bound: float) -> Check:
    """Whether the stated bound is proven by this one."""
    certificate = plan.certificate
    # A computation elsewhere may invert the strategies a little differently.
    slack = DECODED_TOLERANCE if plan.closure.strategies else 0.0
    which = " that measures the attributes as this one does" if plan.closure.strategies else ""
    gap = max(certificate.loss_value / bound - 1, 0.0) if bound > 0 else np.inf
    finding = (
        f"no plan with this budget{which} has a loss below {rounded(bound, 9, 'down')}; this one "
        f"is within {rounded(gap, 2, 'up')} (relative) of it"
    )
    holds = certificate.lower_bound <= bound * (1 + slack)
    if not holds:
        finding += f"; the stated bound, {certificate.lower_bound:.12g}, is not proven"
    return Check("optimality", holds, finding)


def _check_caps(plan: Plan) -> list[Check]:
    """Whether every table is within the limit that the loss sets it."""
    caps = _caps(plan)
    if caps is None:
        return []
    variances = TableVariances.of(plan.workload, plan.closure, plan.sigma_squared.floats).worst
    over = np.flatnonzero(variances > caps * (1 + CAP_TOLERANCE))
    count = int(np.count_nonzero(np.isfinite(caps)))
    name = "musts" if isinstance(plan.loss, MustsFirst) else "limit"
    finding = f"all {count:,} tables that have a largest allowed variance are within it"
    if len(over):
        first = int(over[0])
        finding = (
            f"{len(over):,} of {count:,} tables are above their largest allowed variance; the "
            f"first is {plan.workload.describe(first)}: {variances[first]:.9g} instead of "
            f"{caps[first]:.9g}"
        )
    return [Check(name, len(over) == 0, finding)]


def _caps(plan: Plan) -> np.ndarray | None:
    """The largest variance that the loss allows each table; None: it sets no limits."""
    loss, limit = plan.loss, plan.certificate.limit
    if isinstance(loss, MustsFirst):
        return loss.caps(plan.workload)
    if isinstance(loss, BoundedAverage):
        return loss.caps(plan.workload, 0.0 if limit is None else limit)
    return None


def _check_dual_bound(plan: Plan) -> Check:
    """The bound that follows from the stated dual weights by the loss's minorant.

    That a `BoundedAverage` has the right limit is not part of it.
    """
    certificate, workload, loss = plan.certificate, plan.workload, plan.loss
    dual = certificate.dual_weights
    if dual is None:
        return Check("optimality", False, "it is not stated with which dual weights it is proven")
    caps = _caps(plan)
    of_sum = dual
    if caps is not None:
        # Prices of caps, and shares of a maximum, are prices of single cells.
        of_sum = loss.table_weights(workload)
        if loss.looks_at_worst_cells:
            of_sum = np.zeros(len(workload))
        if np.any(dual < of_sum) or np.any((dual > of_sum) & np.isinf(caps) & (of_sum > 0)):
            return Check("optimality", False, "the stated dual weights are not what they must be")
    residual_weights = plan.closure.residual_weights(of_sum)
    extra = dual - of_sum
    if caps is not None and np.any(extra > 0):
        residual_weights = residual_weights + _of_worst_cells(plan, extra)
    smallest = _smallest_weighted_sum(plan, residual_weights)
    if isinstance(loss, NamedLoss):
        weighted = float(np.sum(dual * plan.variances))
        finding = (
            "by the tables' stated dual weights, no plan with this budget has a weighted sum of "
            f"variances more than {rounded(max(weighted / smallest - 1, 0.0), 2, 'up')} (relative) "
            "below that of this one; that this bounds the loss stands in the script that made it"
        )
        return Check("optimality", True, finding)
    if isinstance(loss, BoundedAverage):
        assert certificate.limit is not None
        factor, offset = loss.minorant_within(certificate.limit, dual, workload)
    else:
        near = {"near": plan.variances} if isinstance(loss, ConvexLoss) else {}
        factor, offset = loss.minorant(dual, workload, **near)
    return _optimality(plan, factor * smallest - offset)


def _of_worst_cells(plan: Plan, prices: np.ndarray) -> np.ndarray:
    """Weight of each σ² in Σ prices · (variance of the stated cells), float64[n_residuals].

    prices: float64[n_tables], spread over the table's cells as the plan states; what is stated of
    no cell counts for the table's mean, which is never above its worst cell.
    """
    cells, closure = plan.certificate.cells, plan.closure
    if plan.workload.is_pure or cells is None:
        return closure.residual_weights(prices)
    of_tables = np.bincount(cells.tables, cells.prices, len(plan.workload))
    without = np.where(of_tables > 0, 0.0, prices)
    spread = cells.prices * (prices / np.where(of_tables > 0, of_tables, 1.0))[cells.tables]
    of_cells = Cells(plan.workload, closure).map(cells.tables, cells.rows)
    return of_cells.residual_weights(spread) + closure.residual_weights(without)


def _check_strategies(plan: Plan) -> Check:
    """How much better a plan could be that measures attributes through other matrices."""
    bound = strategy_bound(
        plan.workload,
        plan.closure,
        plan.loss.table_weights(plan.workload),
        largest=plan.loss.looks_at_worst_cells,
    )
    bound *= (1 - DECODED_TOLERANCE) / float(plan.budget.record_privacy_cost)
    gap = max(plan.certificate.loss_value / bound - 1, 0.0)
    return Check(
        "strategies",
        bound <= plan.certificate.loss_value,
        "whatever is measured of the attributes that are asked other than by single values, with "
        f"totals spread as here no plan has a loss below {rounded(bound, 9, 'down')}; this one is "
        f"within {rounded(gap, 2, 'up')} (relative) of it",
    )
