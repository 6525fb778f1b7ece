"""Verification of plans for areas: does one hold what it claims? From its files alone.

The privacy cost is computed in exact rationals, as the largest sum on the way down to any area;
loss and bound in floats, the latter lowered by more than its rounding error.
"""

from itertools import pairwise

import numpy as np

from rpexplore.common.concurrency import one_thread
from rpexplore.common.formatting import joined, plural
from rpexplore.planning.areas.area_cells import extreme_variances
from rpexplore.planning.areas.area_loss import caps_of, profiles_of
from rpexplore.planning.areas.area_plan import AreaPlan, area_loss, proven_bound
from rpexplore.planning.losses.constrained import WithinTargets
from rpexplore.planning.verification import (
    DECODED_TOLERANCE,
    PRICE_TOLERANCE,
    VARIANCE_TOLERANCE,
    Check,
    bound_check,
    privacy_check,
)

# What is computed in passes over the tree may differ by so much elsewhere: the bound is lowered by
# more when it is made.
BOUND_TOLERANCE = 1e-10


def area_checks(plan: AreaPlan, *, strategies: bool) -> tuple[Check, ...]:
    """The claims of a plan for areas, for `verify`."""
    with one_thread():
        # First, as it takes the most memory, and the others keep what they have computed.
        bound = proven_bound(plan) if _has_profiles_of_tables(plan) else None
        checks = [privacy_check(plan, plan.exact_record_cost), _check_answers(plan)]
        if plan.uniform:
            checks.append(_check_levels(plan))
        if isinstance(plan.loss, WithinTargets):
            checks.append(_check_required(plan, plan.loss))
        if all(check.holds for check in checks):
            checks += _check_loss_and_bound(plan, bound)
    return tuple(checks)


def _has_profiles_of_tables(plan: AreaPlan) -> bool:
    """Whether the profiles of residuals are those that the loss needs."""
    profiles = profiles_of(plan.workload, plan.closure, plan.loss, plan.loss_rows)
    return np.array_equal(profiles.of_residual, plan.of_residual)


def _check_answers(plan: AreaPlan) -> Check:
    """Whether what is measured determines every table in every area where it is asked for."""
    name, missing = "answers", 0
    for kind, rows in enumerate(plan.workload.rows):
        of_kind = plan.groups.kinds == kind
        counted = np.any(plan.closure.variance_matrix[rows] > 0, axis=0)
        known = np.all(plan.residual_variances[np.ix_(counted, of_kind)] > 0, axis=0)
        missing += int(np.sum(plan.groups.multiplicity[of_kind][~known]))
    if missing:
        return Check(
            name, False, f"{missing:,} areas have a table that nothing measured determines"
        )
    return Check(
        name, True, f"all {plan.n_items:,} tables of areas are determined by what is measured"
    )


def _check_levels(plan: AreaPlan) -> Check:
    """Whether all areas of a level that are measured have one precision."""
    starts = plan.groups.starts
    for level, (start, stop) in enumerate(pairwise(starts)):
        for multiples in plan.multiples[:, start:stop]:
            if len(np.unique(multiples[multiples > 0])) > 1:
                finding = f"the areas of the level {plan.workload.tree.levels[level]} differ"
                return Check("levels", False, finding)
    return Check("levels", True, "all areas of a level that are measured have one precision")


def _check_required(plan: AreaPlan, loss: WithinTargets) -> Check:
    """Whether every required target is met in every area, in floats."""
    missed, count = [], 0
    tolerance = DECODED_TOLERANCE if plan.closure.strategies else float(VARIANCE_TOLERANCE)
    for kind, caps in enumerate(caps_of(plan.workload, loss)):
        asked, of_kind = plan.workload.workloads[kind], plan.groups.kinds == kind
        sizes, variances = plan.groups.multiplicity[of_kind], plan.residual_variances[:, of_kind]
        largest = extreme_variances(plan.workload, plan.closure, kind, variances, largest=True)
        over = largest > caps[:, None] * (1 + tolerance)
        count += int(np.sum(np.isfinite(caps))) * int(np.sum(sizes))
        missed += [
            f"{asked.describe(table)} in {plural(int(sizes @ over[table]), 'area')}"
            for table in np.flatnonzero(np.any(over, axis=1)).tolist()
        ]
    if missed:
        return Check("required", False, f"required targets are missed: {joined(missed)}")
    return Check("required", True, f"all {count:,} required targets are met")


def _check_loss_and_bound(plan: AreaPlan, bound: float | None) -> list[Check]:
    if bound is None:
        return [Check("optimality", False, "the profiles of residuals are not those of the tables")]
    value, stated = area_loss(plan), plan.certificate.loss_value
    loss = Check(
        "loss",
        bool(np.isclose(value, stated, rtol=DECODED_TOLERANCE, atol=0)),
        f"{plan.loss.description} is {value:.9g}; stated {stated:.9g}",
    )
    sizes = plan.groups.multiplicity
    totals = [plan.prices @ sizes]
    if plan.table_prices is not None and not plan.loss.meets_required_targets:
        totals.append(np.sum(plan.table_prices @ sizes))
    if any(abs(float(total) - 1) > PRICE_TOLERANCE for total in totals):
        return [loss, Check("optimality", False, "the prices of areas or tables do not sum to 1")]
    if not 0 < bound <= value * (1 + DECODED_TOLERANCE):
        return [loss, Check("optimality", False, "the prices cannot be computed with")]
    levels = " and one precision a level" if plan.uniform else ""
    claim = f"no plan with this budget and independent noise on every area{levels}"
    if not plan.closure.strategies:
        return [loss, bound_check(plan, bound, f"{claim} has a loss", BOUND_TOLERANCE)]
    # Strategies may be inverted a little differently elsewhere.
    claim += " that measures the attributes as this one does has a loss"
    return [loss, bound_check(plan, bound, claim, DECODED_TOLERANCE)]
