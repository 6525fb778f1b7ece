"""Verification of query plans: does one hold what it claims? From the plan alone."""

from fractions import Fraction

import numpy as np

from rpexplore.common.formatting import rounded
from rpexplore.planning.bound_verification import DECODED_TOLERANCE, PRICE_TOLERANCE
from rpexplore.planning.solvers.fitness_for_use import cost_bound
from rpexplore.planning.verification import Check
from rpexplore.queries.plan import QueryPlan

# The bound inverts nothing; elsewhere its eigenvalues may be rounded a little otherwise.
BOUND_TOLERANCE = 1e-10


def query_checks(plan: QueryPlan) -> tuple[Check, ...]:
    """The claims of a query plan, for `verify`.

    That the strategy answers the queries without bias was checked when it was read.
    """
    return _check_privacy(plan), _check_variances(plan), _check_bound(plan)


def _check_privacy(plan: QueryPlan) -> Check:
    columns = plan.strategy.integers.astype(object)  # Python's integers, which do not overflow
    squared = int(np.max(np.sum(columns * columns, axis=0)))
    cost = Fraction(squared) / plan.gamma_squared * plan.budget.records_factor
    allowed = plan.budget.privacy_cost
    holds = cost <= plan.exact_privacy_cost <= allowed
    # Rounded alike where they hold: what is within the budget must not read as if it were above.
    mode = "up" if holds else "down"
    return Check(
        "privacy cost",
        holds,
        f"the noise costs {rounded(cost, 12, 'up')}; stated "
        f"{rounded(plan.exact_privacy_cost, 12, 'up')}, budget {rounded(allowed, 12, mode)} "
        f"(ρ = {rounded(allowed / 2, 12, mode)})",
    )


def _check_variances(plan: QueryPlan) -> Check:
    computed = plan.strategy.variance_factors * float(plan.gamma_squared)
    off = np.flatnonzero(~np.isclose(plan.variances, computed, rtol=DECODED_TOLERANCE, atol=0))
    finding = f"all {len(computed):,} queries have the variance that is stated"
    if len(off):
        query = int(off[0])
        finding = (
            f"{len(off):,} of {len(computed):,} queries differ; the first is "
            f"{plan.queries.names[query]}: its variance is stated as {plan.variances[query]:.9g} "
            f"and is {computed[query]:.9g}"
        )
    return Check("variances", len(off) == 0, finding)


def _check_bound(plan: QueryPlan) -> Check:
    """The largest ratio, and the bound at the stated weights of queries and cells."""
    certificate = plan.certificate
    ratio = float(np.max(plan.variance_ratios))
    if not np.isclose(ratio, certificate.loss_value, rtol=DECODED_TOLERANCE, atol=0):
        finding = (
            f"the largest ratio of a variance to its target's is {ratio:.9g}; stated "
            f"{certificate.loss_value:.9g}"
        )
        return Check("optimality", False, finding)
    prices, weights = certificate.shadow_prices, plan.cell_weights
    if any(abs(float(np.sum(shares)) - 1) > PRICE_TOLERANCE for shares in (prices, weights)):
        return Check("optimality", False, "the shadow prices or cell weights do not sum to 1")
    cost = cost_bound(plan.queries.coefficients, plan.queries.targets, prices, weights)
    bound = cost / float(plan.budget.record_privacy_cost)
    gap = max(certificate.loss_value / bound - 1, 0.0) if bound > 0 else np.inf
    finding = (
        "with this budget no mechanism with Gaussian noise has a largest ratio below "
        f"{rounded(bound, 9, 'down')}; this one is within {rounded(gap, 2, 'up')} (relative) of it"
    )
    holds = bool(certificate.lower_bound <= bound * (1 + BOUND_TOLERANCE))
    if not holds:
        finding += f"; the stated bound, {certificate.lower_bound:.12g}, is not proven"
    return Check("optimality", holds, finding)
