"""Verification: does a plan hold what it claims? From the plan alone, in exact arithmetic."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from rpexplore.accounting import ExactVariances, privacy_cost_upper_bound
from rpexplore.losses import SumOfVariances
from rpexplore.plan import Plan
from rpexplore.solvers.solution import dual_bound, rounding_allowance
from rpexplore.words import rounded

# Stated variances are floats: sums of positive terms, good to about 15 digits.
VARIANCE_TOLERANCE = Fraction(1, 10**12)
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


def verify(plan: Plan) -> Verification:
    """Recompute privacy cost, every variance and the certificate of a plan.

    Cost and variances are compared in exact integer arithmetic, the certificate's bound in
    floating point, lowered by more than its rounding error.
    """
    return Verification(
        (_check_privacy(plan), _check_variances(plan), _check_loss(plan), _check_bound(plan)),
        guarantee(plan),
    )


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


def _check_loss(plan: Plan) -> Check:
    stated = plan.certificate.loss_value
    found = plan.loss.value(plan.closure.variances(plan.sigma_squared.floats), plan.workload)
    holds = bool(np.isclose(found, stated, rtol=LOSS_TOLERANCE, atol=0))
    return Check("loss", holds, f"{plan.loss.description} is {found:.9g}; stated {stated:.9g}")


def _check_bound(plan: Plan) -> Check:
    """The dual at the stated shadow prices, lowered by what its computation can be off.

    Shadow prices must sum to 1; in a sum of variances they are the tables' shares in it.
    """
    certificate, workload, loss = plan.certificate, plan.workload, plan.loss
    prices = certificate.shadow_prices
    right_prices = abs(float(np.sum(prices)) - 1) <= PRICE_TOLERANCE
    if isinstance(loss, SumOfVariances):
        shares = loss.table_weights(workload) * plan.variances
        right_prices = np.allclose(prices, shares / np.sum(shares), rtol=PRICE_TOLERANCE, atol=0)
    if not right_prices:
        return Check("optimality", False, "the stated shadow prices are not what they must be")
    # Prices that sum to a little more than 1 would prove a little too much.
    dual = loss.dual_weights(workload, prices / max(float(np.sum(prices)), 1.0))
    bound = dual_bound(plan.closure, dual, float(plan.budget.record_privacy_cost))
    bound *= 1 - rounding_allowance(len(workload)) / 4
    finding = (
        f"no plan with this budget has a loss below {rounded(bound, 9, 'down')}; this one is "
        f"within {rounded(max(certificate.loss_value / bound - 1, 0.0), 2, 'up')} (relative) of it"
    )
    holds = certificate.lower_bound <= bound
    if not holds:
        finding += f"; the stated bound, {certificate.lower_bound:.12g}, is not proven"
    return Check("optimality", holds, finding)
