"""Verification: does a plan hold what it claims? From the plan alone, in exact arithmetic."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from rpexplore.common.formatting import rounded
from rpexplore.planning.bound_verification import (
    DECODED_TOLERANCE,
    limits_kept,
    near_other_strategies,
    proven_by_dual_weights,
    proven_by_shadow_prices,
)
from rpexplore.planning.mechanism.accounting import ExactVariances, privacy_cost_upper_bound
from rpexplore.planning.mechanism.table_variances import TableVariances
from rpexplore.planning.plan import Plan
from rpexplore.planning.release_plan import ReleasePlan

# Stated variances are floats: sums of positive terms, good to about 15 digits.
VARIANCE_TOLERANCE = Fraction(1, 10**12)
# The loss is for reading; cost, variances and bound are proven.
LOSS_TOLERANCE = 1e-11


@dataclass(frozen=True)
class Check:
    """One claim of a plan: whether it holds, and a finding for people."""

    name: str
    holds: bool
    finding: str


@dataclass(frozen=True)
class Verification:
    """All checks of a plan, and its guarantee as text."""

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


def verify(plan: ReleasePlan, *, strategies: bool = True) -> Verification:
    """Recompute privacy cost, every variance and the certificate of a plan of whatever kind.

    Costs are recomputed in exact arithmetic. In floating point are compared: variances that depend
    on the inverse of a matrix (to 8 digits), and the certificate's bound, lowered by more than its
    rounding error.

    Args:
        strategies: Bound what other matrices could gain as well, where attributes of tables are
            measured through matrices. It takes as long as the plan did, and nothing of the
            guarantee depends on it.

    Example:
        >>> import rpexplore as rp
        >>> tables = rp.Workload.all_of_order(rp.Domain.from_sizes({"age": 100, "sex": 2}), 1)
        >>> verify(rp.plan(tables, loss=rp.PNorm(p=2), budget=rp.Budget(rho="0.5"))).holds
        True
    """
    return Verification(plan.checks(strategies=strategies), plan.guarantee)


def table_checks(plan: Plan, *, strategies: bool) -> tuple[Check, ...]:
    """The claims of a plan of tables; its variances of marginals are compared exactly."""
    checks = [_check_privacy(plan), _check_variances(plan), _check_loss(plan)]
    if plan.loss.is_proven_by_shadow_prices:
        checks.append(Check("optimality", *proven_by_shadow_prices(plan)))
        if strategies and plan.closure.strategies:
            checks.append(Check("strategies", *near_other_strategies(plan)))
    else:
        if (kept := limits_kept(plan)) is not None:
            name = "required" if plan.loss.meets_required_targets else "limit"
            checks.append(Check(name, *kept))
        checks.append(Check("optimality", *proven_by_dual_weights(plan)))
    return tuple(checks)


def _check_privacy(plan: Plan) -> Check:
    cost = privacy_cost_upper_bound(plan.closure, plan.sigma_squared) * plan.budget.records_factor
    allowed = plan.budget.privacy_cost
    holds = cost <= plan.exact_privacy_cost <= allowed
    # Rounded alike where they hold: what is within the budget must not read as if it were above.
    mode = "up" if holds else "down"
    return Check(
        "privacy cost",
        holds,
        f"the noise scales cost at most {rounded(cost, 12, 'up')}; stated "
        f"{rounded(plan.exact_privacy_cost, 12, 'up')}, budget {rounded(allowed, 12, mode)} "
        f"(ρ = {rounded(allowed / 2, 12, mode)})",
    )


def _check_variances(plan: Plan) -> Check:
    workload, count = plan.workload, len(plan.workload)
    if workload.is_marginals:
        exact = ExactVariances.of(plan.closure, workload.exact_cells, plan.sigma_squared)
        off = exact.differing(plan.variances, VARIANCE_TOLERANCE)
        if len(off):
            computed = float(exact.fraction(int(off[0])))
            return _differing_variances(plan, off, "variance", plan.variances, computed)
        return Check("variances", True, f"all {count:,} tables have the variance that is stated")
    variances = TableVariances.of(workload, plan.closure, plan.sigma_squared.floats)
    for cell, adjective in (("mean", "mean"), ("worst", "largest"), ("best", "smallest")):
        stated, computed = plan.table_variances.at(cell), variances.at(cell)
        off = np.flatnonzero(~np.isclose(stated, computed, rtol=DECODED_TOLERANCE, atol=0))
        if len(off):
            noun = f"{adjective} variance of a cell"
            return _differing_variances(plan, off, noun, stated, float(computed[off[0]]))
    finding = f"all {count:,} tables have the mean and extreme variances stated"
    return Check("variances", True, finding)


def _differing_variances(
    plan: Plan, off: np.ndarray, noun: str, stated: np.ndarray, computed: float
) -> Check:
    """The failed check of the tables `off`; computed: of the first of them."""
    table = int(off[0])
    finding = (
        f"{len(off):,} of {len(plan.workload):,} tables differ; the first is "
        f"{plan.workload.describe(table)}: its {noun} is stated as {stated[table]:.12g} and is "
        f"{computed:.12g}"
    )
    return Check("variances", False, finding)


def _check_loss(plan: Plan) -> Check:
    stated = plan.certificate.loss_value
    if not plan.loss.is_available:
        return Check(
            "loss",
            True,
            f"{plan.loss.description} is stated as {stated:.9g}; its definition stands in the "
            "script that made the plan, and is not checked",
        )
    variances = TableVariances.of(plan.workload, plan.closure, plan.sigma_squared.floats)
    value = plan.loss.value(variances.of_loss(plan.loss), plan.workload)
    tolerance = LOSS_TOLERANCE if plan.workload.is_marginals else DECODED_TOLERANCE
    holds = bool(np.isclose(value, stated, rtol=tolerance, atol=0))
    return Check("loss", holds, f"{plan.loss.description} is {value:.9g}; stated {stated:.9g}")
