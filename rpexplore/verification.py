"""Verification: does a plan hold what it claims? From the plan alone, in exact arithmetic."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from rpexplore.accounting import ExactVariances, privacy_cost_upper_bound
from rpexplore.best_strategies import strategy_bound
from rpexplore.cells import Cells
from rpexplore.losses import SumOfVariances
from rpexplore.plan import Plan
from rpexplore.solvers.solution import dual_bound, rounding_allowance
from rpexplore.table_variances import TableVariances
from rpexplore.words import rounded

# Stated variances are floats: sums of positive terms, good to about 15 digits.
VARIANCE_TOLERANCE = Fraction(1, 10**12)
# Through strategies they depend on the inverse of a matrix, computed in floats as well.
DECODED_TOLERANCE = 1e-8
# The loss and the shadow prices are for reading; cost, variances and bound are proven.
LOSS_TOLERANCE = 1e-11
PRICE_TOLERANCE = 1e-9


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
    checks = [_check_privacy(plan), _check_variances(plan), _check_loss(plan), _check_bound(plan)]
    if strategies and plan.closure.strategies:
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
    costs, budget = plan.closure.privacy_cost_factor, float(plan.budget.record_privacy_cost)
    bound = dual_bound(costs, residual_weights, budget)
    bound *= 1 - rounding_allowance(len(workload)) / 4
    # A computation elsewhere may invert the strategies a little differently.
    slack = DECODED_TOLERANCE if plan.closure.strategies else 0.0
    which = " that measures the attributes as this one does" if plan.closure.strategies else ""
    gap = max(certificate.loss_value / bound - 1, 0.0)
    finding = (
        f"no plan with this budget{which} has a loss below {rounded(bound, 9, 'down')}; this one "
        f"is within {rounded(gap, 2, 'up')} (relative) of it"
    )
    holds = certificate.lower_bound <= bound * (1 + slack)
    if not holds:
        finding += f"; the stated bound, {certificate.lower_bound:.12g}, is not proven"
    return Check("optimality", holds, finding)


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
