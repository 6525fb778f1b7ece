"""Verification: whether a plan holds what it claims, from the plan alone, at an exact cost."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

import numpy as np

from rpexplore.common.numbers import exact_fraction
from rpexplore.common.processes import one_thread
from rpexplore.common.text import joined, plural, rounded, small
from rpexplore.planning.adaptive import AdaptivePlan, subsets_within
from rpexplore.planning.areas.area_loss import caps_of, extreme_variances, profiles_of
from rpexplore.planning.areas.area_plan import AreaPlan, area_loss, proven_bound
from rpexplore.planning.areas.dearest_in_areas import dearest_in_areas
from rpexplore.planning.counts import QueryPlan
from rpexplore.planning.counts_moves import are_moves
from rpexplore.planning.counts_objectives import TARGETS_THEN_SUM
from rpexplore.planning.losses.constrained import SumWithBoundedMax, WithinTargets
from rpexplore.planning.losses.losses import SumOfVariances
from rpexplore.planning.mechanism.accounting import (
    ExactVariances,
    dearest_by_residual,
    privacy_cost_upper_bound,
    replacement_cost,
)
from rpexplore.planning.mechanism.variances import CELLS, CellVariances, TableVariances
from rpexplore.planning.optimal_strategies import strategy_bound
from rpexplore.planning.part_plan import TITLES, CertifiedPlan, PartPlan, smallest_weighted_sum
from rpexplore.planning.pilot import dearer_with_pilot
from rpexplore.planning.plan import Plan
from rpexplore.planning.replaced_counts import differences_of
from rpexplore.planning.rest import differences_from_first
from rpexplore.planning.solvers.kinds_of_records import Limits, minimise_with_kinds
from rpexplore.planning.solvers.largest_variance import minimise_max_cell_variance
from rpexplore.planning.solvers.queries import cost_bound
from rpexplore.planning.solvers.solution import dual_bound, rounding_allowance
from rpexplore.planning.solving import LIMIT_TOLERANCE, Problem, smallest_largest_variance
from rpexplore.planning.table_plan import TablePlan, n_pilot_residuals
from rpexplore.privacy.conversions import rho_text

# Each kind of part has checks of its own; those of tables are here.


# Stated variances of marginals are floats: sums of positive terms, good to about 15 digits.
VARIANCE_TOLERANCE = Fraction(1, 10**12)
# The loss is for reading; cost, variances and bound are proven.
LOSS_TOLERANCE = 1e-11
# What depends on the inverse of a strategy, computed in floats, may differ by so much elsewhere.
DECODED_TOLERANCE = 1e-8
# Shadow prices are for reading; the bound that they give is proven.
PRICE_TOLERANCE = 1e-9
# What a bound may come out above the loss of the plan that it is the bound of, by rounding.
_ABOVE_LOSS = 1e-9
# Weights beyond these leave too few digits, or none, to whatever is computed from them.
_LEAST_WEIGHT, _MOST_WEIGHT = 1e-200, 1e200


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


def verify(plan: Plan | PartPlan, *, strategies: bool = True) -> Verification:
    """Recompute privacy cost, every variance and the certificate of a plan, part by part.

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
    plan = Plan.of(plan)
    checks = []
    for part in plan.parts:
        with np.errstate(over="ignore", invalid="ignore"):  # of forged numbers: no check passes
            of_part = part.checks(strategies=strategies)
        if len(plan.parts) > 1:
            title = TITLES[part.kind].lower()
            of_part = tuple(replace(check, name=f"{title}, {check.name}") for check in of_part)
        checks += of_part
    if len(plan.parts) > 1:
        cost, allowed = plan.exact_privacy_cost, plan.budget.privacy_cost
        # Rounded alike where they hold, so that neither reads as if it were above the other.
        mode = "up" if cost <= allowed else "down"
        finding = (
            f"the parts cost {rounded(cost, 12, 'up')} together; budget "
            f"{rounded(allowed, 12, mode)} ({rho_text(allowed / 2, 12, mode)})"
        )
        checks.insert(0, Check("privacy cost", cost <= allowed, finding))
    tables = plan.part("tables")
    if tables is not None and tables.first is not None:
        different = differences_from_first(plan)
        booked = f"the plan with the SHA-256 {tables.first.sha256[:12]}…"
        figures = "and which figures it was made from is not stated"
        if tables.pilot_sha256:
            figures = f"and was made from a pilot's figures, SHA-256 {tables.pilot_sha256[:12]}…"
        finding = (
            f"it is of the tables, budget and other parts of {booked}, costs no more, {figures}"
        )
        finding = f"beside {booked}: {joined(different)}" if different else finding
        checks.append(Check("first plan", not different, finding))
    epsilon, delta = plan.budget.stated_epsilon, plan.budget.stated_delta
    if epsilon is not None and delta is not None:
        checks.insert(0, _check_epsilon(plan, epsilon, delta))
    return Verification(tuple(checks), plan.guarantee)


def _check_epsilon(plan: Plan, epsilon: Fraction, delta: Fraction) -> Check:
    """Whether the noise of a plan keeps the (ε, δ) of its budget, by whichever proof."""
    proven = plan.epsilon(delta)
    holds = exact_fraction(proven, "ε") <= epsilon
    claim = plan.gaussian_claim
    how = "ρ alone proves" if claim is None else f"the noise, {claim.text}, proves"
    finding = (
        f"{how} ε = {rounded(proven, 9, 'up' if not holds else 'nearest')} at δ = {small(delta)}; "
        f"stated ε = {rounded(epsilon, 9, 'nearest')}"
    )
    return Check("privacy", holds, finding)


# ---- parts of every kind


def privacy_check(plan: PartPlan, record_cost: Fraction) -> Check:
    """Whether the stated cost is at least that of the noise for one record, and in the budget."""
    cost = record_cost * plan.budget.records_factor
    allowed = plan.budget.privacy_cost
    holds = cost <= plan.exact_privacy_cost <= allowed
    # Rounded alike where they hold: what is within the budget must not read as if it were above.
    mode = "up" if holds else "down"
    return Check(
        "privacy cost",
        holds,
        f"the noise costs at most {rounded(cost, 12, 'up')}; stated "
        f"{rounded(plan.exact_privacy_cost, 12, 'up')}, budget {rounded(allowed, 12, mode)} "
        f"({rho_text(allowed / 2, 12, mode)})",
    )


def bound_check(plan: CertifiedPlan, bound: float, claim: str, slack: float) -> Check:
    """Whether the stated bound is proven by this one.

    claim: what cannot be below the bound. slack: how far above it, relative, the stated one may be
    """
    stated = plan.certificate.lower_bound
    gap = _gap(plan.certificate.loss_value, bound)
    finding = f"{claim} below {rounded(bound, 9, 'down')}; this one is within {gap} of it"
    holds = bool(stated <= bound * (1 + slack))
    if not holds:
        finding += f"; the stated bound, {stated:.12g}, is not proven"
    return Check("optimality", holds, finding)


def items_check(
    name: str, wrong: np.ndarray, right: str, problem: str, details: Callable[[int], str]
) -> Check:
    """Whether no table, or no query, is among the wrong ones; `details` of the first of them."""
    if not len(wrong):
        return Check(name, True, right)
    finding = f"{len(wrong):,} of {problem}; the first is {details(int(wrong[0]))}"
    return Check(name, False, finding)


def differing(stated: np.ndarray, computed: np.ndarray) -> np.ndarray:
    """Indices of stated numbers that depend on the inverse of a matrix, and are others."""
    return np.flatnonzero(~np.isclose(stated, computed, rtol=DECODED_TOLERANCE, atol=0))


def _gap(value: float, bound: float) -> str:
    """How far above a bound a value is at most, rounded up: "0.0012 (relative)"."""
    gap = max(value / bound - 1, 0.0) if bound > 0 else np.inf
    return f"{rounded(gap, 2, 'up')} (relative)"


# ---- plans of tables


def table_checks(plan: TablePlan, *, strategies: bool) -> tuple[Check, ...]:
    """The claims of a plan of tables; its variances of marginals are compared exactly."""
    checks = [_check_cost(plan)]
    variances = TableVariances.of(plan.workload, plan.closure, plan.sigma_squared.floats)
    checks += [_check_variances(plan, variances), _check_loss(plan, variances)]
    if plan.has_pilot:
        checks.append(_check_pilot(plan))
    if plan.loss.is_proven_by_shadow_prices:
        checks.append(_check_bound_of_shadow_prices(plan))
        others = strategies and not plan.closure.by_residual
        if others and plan.closure.strategies and not plan.closure.trees:
            checks.append(_check_strategies(plan))
    else:
        caps = plan.loss.caps(plan.workload, plan.certificate.limit)
        if caps is not None:
            checks.append(_check_limits(plan, variances.largest, caps))
        checks.append(_check_bound_of_dual_weights(plan))
    return tuple(checks)


def _check_cost(plan: TablePlan) -> Check:
    """The privacy check of tables, with the dearest replacement found where there are any."""
    if plan.closure.by_residual:
        check = privacy_check(plan, privacy_cost_upper_bound(plan.closure, plan.sigma_squared))
        if plan.budget.exact:
            each = "each residual is charged the most that a change that keeps the exact totals"
            return replace(check, finding=f"{check.finding}; {each} costs in it")
        pair, found = dearest_by_residual(plan.closure, plan.sigma_squared)
        return _beside_dearest(check, found * plan.budget.records_factor, is_proven=pair.is_proven)
    if not plan.budget.replaces:
        return privacy_check(plan, privacy_cost_upper_bound(plan.closure, plan.sigma_squared))
    most, found = replacement_cost(plan.closure, plan.sigma_squared)
    check = privacy_check(plan, most)
    dearest = rounded(found * plan.budget.records_factor, 12, "up")
    noun = "change" if plan.budget.exact else "replacement"
    return replace(
        check, finding=f"{check.finding}; the dearest {noun} that was found costs {dearest}"
    )


_REPLACING = "replacing a record"


def _beside_dearest(
    check: Check, found: Fraction, *, is_proven: bool, what: str = _REPLACING
) -> Check:
    """The check of a bound on what replacing a record costs, with the dearest that was found."""
    which = "the dearest of all replacements" if is_proven else "the dearest that was found"
    finding = (
        f"{check.finding}; each residual is charged the most that {what} costs in it, "
        f"and {which} costs {rounded(found, 12, 'up')}"
    )
    return replace(check, finding=finding)


def _check_pilot(plan: TablePlan) -> Check:
    """Whether pilot and rest together have no more precision than the plan pays for."""
    n_pilot = n_pilot_residuals(plan.closure)
    return items_check(
        "pilot",
        np.array(dearer_with_pilot(plan)),
        f"all {n_pilot:,} residuals of the pilot cost no more with what is measured after it",
        f"{n_pilot:,} residuals of the pilot cost more than is stated",
        lambda residual: plan.domain.describe(plan.closure.columns_of(residual)),
    )


def _check_variances(plan: TablePlan, variances: TableVariances) -> Check:
    workload, stated_as = plan.workload, plan.table_variances
    if workload.is_marginals:
        what, noun, stated = "the variance that is", "variance", stated_as.mean
        exact = ExactVariances.of(plan.closure, plan.sigma_squared)
        off, computed = exact.differing(stated, VARIANCE_TOLERANCE), exact.fraction
    else:
        wrong = {cell: differing(stated_as.at(cell), variances.at(cell)) for cell in CELLS}
        cell = next((cell for cell in CELLS if len(wrong[cell])), "mean")
        what, noun = "the mean and extreme variances", f"{cell} variance of a cell"
        off, stated, computed = wrong[cell], stated_as.at(cell), variances.at(cell).item
    return items_check(
        "variances",
        off,
        f"all {len(workload):,} tables have {what} stated",
        f"{len(workload):,} tables differ",
        lambda table: (
            f"{workload.describe(table)}: its {noun} is stated as {stated[table]:.12g} and is "
            f"{float(computed(table)):.12g}"
        ),
    )


def _check_loss(plan: TablePlan, variances: TableVariances) -> Check:
    stated = plan.certificate.loss_value
    if not plan.loss.is_available:
        return Check(
            "loss",
            True,
            f"{plan.loss.description} is stated as {stated:.9g}; its definition stands in the "
            "script that made the plan, and is not checked",
        )
    value = plan.loss.value(variances.of_loss(plan.loss), plan.workload)
    tolerance = LOSS_TOLERANCE if plan.workload.is_marginals else DECODED_TOLERANCE
    holds = bool(np.isclose(value, stated, rtol=tolerance, atol=0))
    return Check("loss", holds, f"{plan.loss.description} is {value:.9g}; stated {stated:.9g}")


def _check_limits(plan: TablePlan, variances: np.ndarray, caps: np.ndarray) -> Check:
    """Whether every table is within its cap, and a `SumWithBoundedMax`'s limit is right."""
    name = "required" if plan.loss.meets_required_targets else "limit"
    if isinstance(plan.loss, SumWithBoundedMax) and (wrong := _wrong_limit(plan, plan.loss)):
        return Check(name, False, wrong)
    tolerance = DECODED_TOLERANCE if plan.closure.strategies else float(VARIANCE_TOLERANCE)
    over = np.flatnonzero(variances > caps * (1 + tolerance))
    count = int(np.count_nonzero(np.isfinite(caps)))
    return items_check(
        name,
        over,
        f"all {count:,} tables that have a largest allowed variance are within it",
        f"{count:,} tables are above their largest allowed variance",
        lambda table: (
            f"{plan.workload.describe(table)}: {variances[table]:.9g} instead of {caps[table]:.9g}"
        ),
    )


def _wrong_limit(plan: TablePlan, loss: SumWithBoundedMax) -> str:
    """What is wrong with the stated limit, which is computed again; "" if it is right."""
    cells, weights = CellVariances(plan.workload, plan.closure), plan.workload.weights
    cost, limit = float(plan.budget.record_privacy_cost), plan.certificate.limit or 0.0
    with one_thread():
        if plan.closure.has_own_costs:
            problem = Problem(plan.workload, plan.closure, loss, cost, LIMIT_TOLERANCE)
            smallest = smallest_largest_variance(problem)
            return _beside_limit(loss, limit, smallest / (1 + LIMIT_TOLERANCE), smallest)
        if plan.closure.classes is None:
            solution = minimise_max_cell_variance(cells, weights, cost)
        else:
            _, solution = minimise_with_kinds(cells, Limits(largest=weights), cost)
    largest = float(np.max(weights * cells.least_accurate(solution.sigma_squared).variances))
    return _beside_limit(loss, limit, solution.lower_bound, largest)


def _beside_limit(loss: SumWithBoundedMax, limit: float, lower_bound: float, largest: float) -> str:
    """What is wrong with a limit, where the smallest largest variance is between these two."""
    least = loss.limit(lower_bound) * (1 - DECODED_TOLERANCE)
    most = loss.limit(largest) * (1 + 2 * LIMIT_TOLERANCE)
    if least <= limit <= most:
        return ""
    return (
        f"weight times variance may be {limit:.9g} at most, and the largest that is "
        f"{100 * loss.slack:.6g} % (of its standard error) above the smallest possible is "
        f"{loss.limit(largest):.9g}"
    )


def _check_bound_of_shadow_prices(plan: TablePlan) -> Check:
    """The dual at the stated shadow prices, which are a sum's shares, or of a largest variance."""
    certificate, workload, loss = plan.certificate, plan.workload, plan.loss
    prices, cells = certificate.shadow_prices, certificate.cells
    weights = loss.table_weights(workload)
    # Prices that sum to a little more than 1 would prove a little too much.
    total = float(np.sum(prices))
    scale, right_prices = max(total, 1.0), abs(total - 1) <= PRICE_TOLERANCE
    if isinstance(loss, SumOfVariances):
        shares = weights * plan.mean_variances
        right_prices = np.allclose(prices, shares / np.sum(shares), rtol=PRICE_TOLERANCE, atol=0)
        residual_weights = plan.closure.residual_weights(weights)
    elif workload.is_marginals:
        residual_weights = plan.closure.residual_weights(weights * prices / scale)
    elif cells is None:
        return Check("optimality", False, "the cells that prove the bound are not stated")
    else:
        of_tables = np.bincount(cells.tables, cells.prices, len(workload))
        right_prices &= np.allclose(prices, of_tables, rtol=PRICE_TOLERANCE, atol=PRICE_TOLERANCE)
        scale = max(float(np.sum(cells.prices)), 1.0)
        of_cells = CellVariances(workload, plan.closure).map(cells.tables, cells.rows)
        residual_weights = of_cells.residual_weights(weights[cells.tables] * cells.prices / scale)
    if not right_prices:
        return Check("optimality", False, "the stated shadow prices are not those of the tables")
    costs, cost = plan.closure.privacy_cost_factor, float(plan.budget.record_privacy_cost)
    return _check_bound(plan, dual_bound(costs, residual_weights, cost) * _lowered(plan))


def _check_bound_of_dual_weights(plan: TablePlan) -> Check:
    """The bound that follows from the stated dual weights, of other losses."""
    certificate, workload, loss = plan.certificate, plan.workload, plan.loss
    dual = certificate.dual_weights
    if dual is None:
        return Check("optimality", False, "the dual weights that prove the bound are not stated")
    caps = loss.caps(workload, certificate.limit)
    of_sum = loss.weights_on_means(workload, dual)
    priced_without_cap = (dual > of_sum) & (of_sum > 0) & (caps is not None and np.isinf(caps))
    usable = _LEAST_WEIGHT < np.max(dual) < _MOST_WEIGHT
    if np.any(dual < of_sum) or np.any(priced_without_cap) or not usable:
        return Check("optimality", False, "the stated dual weights cannot bound the loss")
    cost = float(plan.budget.record_privacy_cost)
    smallest = _lowered(plan) * smallest_weighted_sum(
        workload, plan.closure, loss, dual, certificate.cells, cost
    )
    if not loss.is_available:
        gap = _gap(float(np.sum(dual * plan.mean_variances)), smallest)
        return Check(
            "optimality",
            True,
            "at the stated dual weights no plan with this budget has a weighted sum of variances "
            f"more than {gap} below that of this one; that this bounds the loss stands in the "
            "script that made the plan",
        )
    factor, offset = loss.minorant_of_plan(dual, workload, certificate.limit, plan.mean_variances)
    return _check_bound(plan, factor * smallest - offset)


def _lowered(plan: TablePlan) -> float:
    """By what a bound is lowered, so that rounding proves nothing."""
    return 1 - rounding_allowance(len(plan.workload)) / 4


def _check_bound(plan: TablePlan, bound: float) -> Check:
    """Whether the stated bound on the loss is proven by this one."""
    # A computation elsewhere may invert the strategies a little differently, and the bound of an
    # own loss is known as well as its solver knows it.
    slack = DECODED_TOLERANCE if plan.closure.strategies else 0.0
    slack = max(slack, plan.loss.bound_allowance)
    # The plan itself shows that no bound above its loss is right: such a one comes of weights that
    # cannot be computed with.
    if not bound <= plan.certificate.loss_value * (1 + max(slack, _ABOVE_LOSS)):
        return Check("optimality", False, "the stated prices or weights cannot be computed with")
    which = " that measures the attributes as this one does" if plan.closure.strategies else ""
    return bound_check(plan, bound, f"no plan with this budget{which} has a loss", slack)


def _check_strategies(plan: TablePlan) -> Check:
    """How much better a plan could be that measures attributes through other matrices."""
    weights = plan.loss.table_weights(plan.workload)
    bound = strategy_bound(
        plan.workload, plan.closure, weights, largest=plan.loss.looks_at_least_accurate_cells
    )
    bound *= (1 - DECODED_TOLERANCE) / float(plan.budget.record_privacy_cost)
    if not np.isfinite(bound):
        return Check("strategies", False, "the stated weights cannot be computed with")
    return Check(
        "strategies",
        bound <= plan.certificate.loss_value,
        "with these reference distributions no plan has a loss below "
        f"{rounded(bound, 9, 'down')}, whatever the matrices of its strategies; this one is within "
        f"{_gap(plan.certificate.loss_value, bound)} of it",
    )


# ---- Verification of plans for areas: does one hold what it claims? From its files alone.
#
# The privacy cost is computed in exact rationals, as the largest sum on the way down to any area;
# loss and bound in floats, the latter lowered by more than its rounding error.


# What is computed in passes over the tree may differ by so much elsewhere: the bound is lowered by
# more when it is made.
BOUND_TOLERANCE = 1e-10


def area_checks(plan: AreaPlan, *, strategies: bool) -> tuple[Check, ...]:
    """The claims of a plan for areas, for `verify`."""
    with one_thread():
        # First, as it takes the most memory, and the others keep what they have computed.
        bound = proven_bound(plan) if _has_profiles_of_tables(plan) else None
        cost = privacy_check(plan, plan.exact_record_cost)
        if plan.budget.replaces:
            found = dearest_in_areas(plan) * plan.budget.records_factor
            what = "a change that keeps the exact totals" if plan.budget.exact else _REPLACING
            cost = _beside_dearest(cost, found, is_proven=False, what=what)
        checks = [cost, _check_answers(plan)]
        if plan.uniform:
            checks.append(_check_levels(plan))
        if isinstance(plan.loss, WithinTargets):
            checks.append(_check_required(plan, plan.loss))
        if all(check.holds for check in checks):
            checks += _check_loss_and_bound(plan, bound)
    return tuple(checks)


def _has_profiles_of_tables(plan: AreaPlan) -> bool:
    """Whether the profiles of residuals are those that the loss needs."""
    exact_levels = plan.exact_levels[plan.of_residual]
    profiles = profiles_of(plan.workload, plan.closure, plan.loss, plan.loss_rows, exact_levels)
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
    totals = [np.sum(plan.prices @ sizes)]
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


# ---- Verification of query plans: does one hold what it claims? From the plan alone.


def query_checks(plan: QueryPlan, *, strategies: bool) -> tuple[Check, ...]:
    """The claims of a query plan, for `verify`.

    That the strategy answers the queries without bias was checked when it was read.
    """
    columns = plan.strategy.integers.astype(object)  # Python's integers, which do not overflow
    squared = int(np.max(np.sum(columns * columns, axis=0)))
    if plan.strategy.kept is not None:
        squared = plan.strategy.squared_diameter
    elif plan.budget.replaces:
        squared = max(
            int(np.max(np.sum((columns - columns[:, [cell]]) ** 2, axis=0)))
            for cell in np.unique(plan.strategy.integers, axis=1, return_index=True)[1]
        )
    cost = Fraction(squared) / plan.gamma_squared
    checks = [
        privacy_check(plan, cost),
        _check_counts_variances(plan),
        _check_counts_bound(plan),
    ]
    if plan.strategy.free:
        alone = columns[: len(columns) - plan.strategy.free_rows]
        without = int(np.max(np.sum(alone * alone, axis=0)))
        free = plural(len(plan.strategy.free), "free count")
        finding = f"without what is measured for {free} alone the noise costs the same"
        if squared != without:
            less = Fraction(without) / plan.gamma_squared * plan.budget.records_factor
            finding = f"without {free} the noise costs {rounded(less, 12, 'up')}"
        checks.insert(1, Check("free counts", squared == without, finding))
    return tuple(checks)


def _check_counts_variances(plan: QueryPlan) -> Check:
    strategy = plan.strategy
    factors = strategy.replaced_factors if plan.budget.replaces else strategy.variance_factors
    computed = factors * float(plan.gamma_squared)
    count, stated, names = len(computed), plan.variances, plan.queries.names
    return items_check(
        "variances",
        differing(stated, computed),
        "the own count has the variance that is stated"
        if count == 1
        else f"all {count:,} own counts have the variance that is stated",
        f"{count:,} own counts differ",
        lambda query: (
            f"{names[query]}: its variance is stated as {stated[query]:.9g} and is "
            f"{computed[query]:.9g}"
        ),
    )


def _check_counts_bound(plan: QueryPlan) -> Check:
    """The value of the objective, and the bound at the stated weights of queries and cells."""
    certificate, objective, charged = plan.certificate, plan.objective, plan.strategy.is_charged
    queries, ratios = plan.strategy.charged.queries, plan.variance_ratios[charged]
    value = objective.value(ratios)
    if not np.isclose(value, certificate.loss_value, rtol=DECODED_TOLERANCE, atol=0):
        finding = f"{objective.description} is {value:.9g}; stated {certificate.loss_value:.9g}"
        return Check("optimality", False, finding)
    if objective is TARGETS_THEN_SUM and not np.all(plan.met[charged]):
        missed = queries.names[int(np.argmax(ratios))]
        return Check("optimality", False, f"targets come first, and that of {missed} is missed")
    prices, weights = certificate.shadow_prices[charged], plan.cell_weights
    if any(abs(float(np.sum(shares)) - 1) > PRICE_TOLERANCE for shares in (prices, weights)):
        return Check("optimality", False, "the shadow prices or cell weights do not sum to 1")
    coefficients = queries.coefficients
    if plan.cell_pairs is not None:
        coefficients = differences_of(queries, plan.cell_pairs)
        kept = plan.strategy.kept
        if kept is not None and not np.all(are_moves(queries, kept, plan.cell_pairs)):
            finding = "a change that proves the bound does not keep the exact totals"
            return Check("optimality", False, finding)
    cost = cost_bound(coefficients, queries.targets, prices, weights)
    bound = objective.bound(cost / float(plan.budget.record_privacy_cost), prices)
    met = " that meets all targets" if objective is TARGETS_THEN_SUM else ""
    ratio = objective.description.removeprefix("the ").partition(" of ")[0]
    claim = f"with this budget no mechanism with Gaussian noise{met} has a {ratio}"
    return bound_check(plan, bound, claim, BOUND_TOLERANCE)


# ---- Verification of adaptive plans: does one hold what it claims? From the plan alone, exactly.


def adaptive_checks(plan: AdaptivePlan, *, strategies: bool) -> tuple[Check, ...]:
    """The claims of an adaptive plan, for `verify`; those of its first plan among them.

    That rounds select from the candidates and cost something was checked when it was read.
    """
    rounds_rho = sum((step.rho for step in plan.rounds), Fraction())
    # What the first plan states is booked; that it costs no more is one of its own checks.
    cost = plan.first.exact_privacy_cost / plan.budget.records_factor + 2 * rounds_rho
    of_first = table_checks(plan.first, strategies=strategies)
    return (
        privacy_check(plan, cost),
        _check_measured(plan),
        *(replace(check, name=f"first plan, {check.name}") for check in of_first),
    )


def _check_measured(plan: AdaptivePlan) -> Check:
    """Whether the first plan measures what the fit of every round starts from."""
    sets = {tuple(row) for order in (1, 2) for row in subsets_within(plan.workload, order).tolist()}
    measured = {
        tuple(index for index in row if index >= 0) for row in plan.first.closure.members.tolist()
    }
    # Further residuals would spend budget on what no table needs.
    holds = measured == sets | {()} and not plan.first.closure.strategies
    if holds:
        finding = (
            f"the first plan measures all {len(sets):,} sets of 1 and 2 attributes within tables; "
            f"the rounds select {plural(plan.n_selected, 'time')} from "
            f"{plural(len(plan.candidates), 'candidate')}"
        )
        return Check("measured", True, finding)
    finding = "the first plan must measure all sets of 1 and 2 attributes within tables, and only "
    return Check("measured", False, finding + "those")
