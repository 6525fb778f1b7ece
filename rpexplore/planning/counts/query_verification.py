"""Verification of query plans: does one hold what it claims? From the plan alone."""

from fractions import Fraction

import numpy as np

from rpexplore.planning.counts.query_plan import QueryPlan
from rpexplore.planning.solvers.fitness_for_use import cost_bound
from rpexplore.planning.verification import (
    DECODED_TOLERANCE,
    PRICE_TOLERANCE,
    Check,
    bound_check,
    differing,
    items_check,
    privacy_check,
)

# The bound inverts nothing; elsewhere its eigenvalues may be rounded a little otherwise.
BOUND_TOLERANCE = 1e-10


def query_checks(plan: QueryPlan, *, strategies: bool) -> tuple[Check, ...]:
    """The claims of a query plan, for `verify`.

    That the strategy answers the queries without bias was checked when it was read.
    """
    columns = plan.strategy.integers.astype(object)  # Python's integers, which do not overflow
    squared = int(np.max(np.sum(columns * columns, axis=0)))
    cost = Fraction(squared) / plan.gamma_squared
    return privacy_check(plan, cost), _check_variances(plan), _check_bound(plan)


def _check_variances(plan: QueryPlan) -> Check:
    computed = plan.strategy.variance_factors * float(plan.gamma_squared)
    count, stated, names = len(computed), plan.variances, plan.queries.names
    return items_check(
        "variances",
        differing(stated, computed),
        f"all {count:,} queries have the variance that is stated",
        f"{count:,} queries differ",
        lambda query: (
            f"{names[query]}: its variance is stated as {stated[query]:.9g} and is "
            f"{computed[query]:.9g}"
        ),
    )


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
    claim = "with this budget no mechanism with Gaussian noise has a largest ratio"
    return bound_check(plan, bound, claim, BOUND_TOLERANCE)
