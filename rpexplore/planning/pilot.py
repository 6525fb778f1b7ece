"""Pilot: the one-way tables of a plan, measured first, with noise that the plan has anyway.

A share s of the precision of every residual of at most one attribute is drawn before the rest; of
an attribute that tables have at several levels, those are the residuals of its blocks:

    σ₀² = σ² / s        the pilot
    σ₁² = σ² / (1 − s)  the rest, so that 1/σ₀² + 1/σ₁² = 1/σ²

Both measure the same residual, and their mean by inverse variances has the plan's own σ². The sum
p/σ₀² + p/σ₁² is the cost p/σ² that the plan has for the residual. So the pilot is free: cost,
variances and certificate are those of the plan without one (docs/mathematics.md §21). It can have
at most what the best plan gives to its one-way residuals: a larger share of the budget would take
from other tables, and is not taken.
"""

import math
from dataclasses import replace
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

import numpy as np

from rpexplore.common.numbers import Decimals, Exact, exact_fraction, exact_share, shown
from rpexplore.errors import PlanError
from rpexplore.planning.losses.losses import SumOfVariances
from rpexplore.planning.mechanism.accounting import privacy_cost_upper_bound
from rpexplore.planning.mechanism.variances import TableVariances
from rpexplore.planning.part_plan import PartPlan
from rpexplore.planning.plan import Plan
from rpexplore.planning.planner import optimum
from rpexplore.planning.table_plan import (
    PILOT_STEPS,
    RestObjective,
    TablePlan,
    n_pilot_residuals,
    one_way_cost,
    refuse_unsuitable_for_pilot,
)
from rpexplore.workload.workload import Workload

DEFAULT_SHARE = Fraction(1, 20)
"""Of the budget, that a pilot has at most."""
SHARE_BEFORE_REST = Fraction(1, 50)
"""The same where the rest is planned from its figures: more takes from what the rest would use
(docs/mathematics-pilot.md, "Gains")."""

_SHARE_STEPS = 10**6  # of the budget
_UP = Context(prec=12, rounding=ROUND_CEILING)  # significant digits of noise scales


def with_pilot(
    plan: Plan | PartPlan, share: Exact = DEFAULT_SHARE, *, then: RestObjective | None = None
) -> Plan:
    """The plan with a pilot: its one-way tables are measured first, by a share of the budget.

    The tables become exactly as accurate as without it, and cost as much. A pilot has no more than
    the plan spends on its one-way residuals, whatever share is asked for.

    Args:
        plan: With tables of single values, or of levels of attributes; what else it has is
            measured after the pilot.
        share: The most that the pilot may cost, as a share of the whole budget: "5%", "1/20".
        then: What the rest is planned for when the pilot is measured, instead of going on by this
            plan (`plan_of_rest`).

    Returns:
        The plan, whose part "tables" has `pilot`, the share of the one-way precision.

    Raises:
        PlanError: If the share is not between 0 and 1, the plan can have no pilot, or its noise is
            too small for an (ε, δ) that is to hold whatever is planned then.

    Example:
        >>> import rpexplore as rp
        >>> tables = rp.Workload.all_up_to(rp.Domain.from_sizes({"age": 100, "sex": 2}), 2)
        >>> plan = rp.plan(tables, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.5"))
        >>> piloted = with_pilot(plan, "5%")
        >>> float(piloted.part("tables").pilot), piloted.rho == plan.rho
        (0.059, True)
    """
    plan, wanted = Plan.of(plan), share_of_budget(share)
    tables = plan.part("tables")
    if tables is None:
        raise PlanError(
            f"A pilot measures one-way tables first, and {plan.kind_text} has none; ask for "
            "tables, or leave the pilot out."
        )
    refuse_unsuitable_for_pilot(tables.workload)
    if tables.closure.panel is not None or tables.budget.exact:
        raise PlanError(
            "A pilot does not go with a panel or with exact totals, whose periods or totals its "
            "one-way tables need not have; leave it out."
        )
    of_one_way = one_way_cost(tables.closure, tables.sigma_squared.floats)
    of_one_way *= float(tables.budget.records_factor)
    allowed = float(wanted * plan.exact_privacy_cost)
    # Rounded scales cost less than this, never more.
    steps = min(int(PILOT_STEPS * allowed / of_one_way * (1 + 1e-12)), PILOT_STEPS - 1)
    if steps < 1:
        raise PlanError(
            f"A pilot of {shown(str(share))} of the budget is too small to measure anything; "
            "allow it more, such as 5%."
        )
    own = replace(tables, pilot=Fraction(steps, PILOT_STEPS), then=then)
    made = replace(plan, parts=tuple(own if part is tables else part for part in plan.parts))
    if then is not None:
        refuse_beyond_epsilon(made)
    return made


def refuse_beyond_epsilon(plan: Plan) -> None:
    """Raise `PlanError` if ρ alone does not prove the (ε, δ) of a plan's budget."""
    epsilon, delta = plan.budget.stated_epsilon, plan.budget.stated_delta
    if epsilon is None or delta is None or exact_fraction(plan.epsilon(delta), "ε") <= epsilon:
        return
    raise PlanError(
        "A plan that is made of a pilot's figures keeps an ε by its ρ alone, and this one counts "
        "on the noise being that of one plan; plan with the pilot and its rest together "
        "(Request(pilot=…, then=…)), or state ρ."
    )


def share_of_budget(share: Exact) -> Fraction:
    """The share that is meant by "5%", "0.05" or 1/20. Raises `PlanError` unless within 0 and 1."""
    value = exact_share(share, "The share of the pilot")
    if not 0 < value < 1:
        raise PlanError(
            f"The share of the pilot must be above 0 % and below 100 % of the budget, got "
            f"{shown(str(share))}; 5% is usual."
        )
    return value


def share_of_pilot(plan: TablePlan, whole: Plan | None = None) -> Fraction | None:
    """A share of the cost of the tables by which `with_pilot` makes this pilot; None without one.

    In millionths, rounded up: a pilot has whole thousandths of the one-way precision.

    whole: the plan that the tables are a part of, of whose cost it is to be the share
    """
    if plan.pilot is None:
        return None
    share = plan.pilot_share
    if whole is not None:
        share *= plan.exact_privacy_cost / whole.exact_privacy_cost
    return Fraction(math.ceil(share * _SHARE_STEPS), _SHARE_STEPS)


def pilot_scales(plan: TablePlan) -> Decimals:
    """σ₀² of the pilot's residuals, exact, rounded up to 12 digits."""
    if plan.first is not None:
        return pilot_scales(plan.first.part("tables"))
    assert plan.pilot is not None
    scales, share = plan.sigma_squared, plan.pilot
    return _decimals([scales.fraction(i) / share for i in range(n_pilot_residuals(plan.closure))])


def rest_scales(plan: TablePlan) -> Decimals:
    """σ² of what is measured after the pilot: of all residuals, exact.

    Those that the pilot has measured get what is left of their precision, rounded so that both
    together never cost more than the plan says.
    """
    scales, pilot = plan.sigma_squared, pilot_scales(plan)
    left = [
        1 / (1 / scales.fraction(residual) - 1 / pilot.fraction(residual))
        for residual in range(len(pilot))
    ]
    return Decimals.joined(_decimals(left), scales[np.arange(len(pilot), len(scales))])


def pilot_weights(plan: TablePlan) -> np.ndarray:
    """The weight of the pilot's figures in the mean with the rest's, float64[n_residuals].

    By inverse variances; 0 for residuals that the pilot has not measured.
    """
    weights, pilot = np.zeros(len(plan.closure)), pilot_scales(plan).floats
    rest = rest_scales(plan).floats[: len(pilot)]
    weights[: len(pilot)] = rest / (pilot + rest)
    return weights


def pilot_plan(plan: TablePlan, sha256: str) -> TablePlan:
    """What the pilot of a plan measures, as a plan of its one-way tables and the total.

    An attribute has a table at each level that the plan's tables have it at, measured as there.
    Its cost is the pilot's, which the whole plan's has in it. It is made for no objective of its
    own, so that its certificate only says how far its noise is from the best for equal weights.

    sha256: of the whole plan, which the pilot's names
    """
    workload, scales = plan.workload, pilot_scales(plan)
    sizes, names = workload.domain.sizes, workload.domain.names
    one_way = [(names[index],) for index in workload.used if sizes[index] > 1]
    tables = Workload.of(workload.domain, [(), *one_way])
    loss, factor = SumOfVariances(), plan.budget.records_factor
    strategies = plan.closure.strategies or None
    found = optimum(tables, loss=loss, budget=plan.budget, strategies=strategies)
    cost = privacy_cost_upper_bound(found.closure, scales) * factor
    best = found.at(plan.budget.of_unit(privacy_cost=cost))
    variances = TableVariances.of(tables, found.closure, scales.floats)
    shares = loss.table_weights(tables) * variances.mean
    certificate = replace(
        best.certificate,
        loss_value=loss.value(variances.of_loss(loss), tables),
        shadow_prices=shares / np.sum(shares),
    )
    return replace(
        best,
        sigma_squared=scales,
        table_variances=variances,
        exact_privacy_cost=cost,
        certificate=certificate,
        version=plan.version,
        pilot_of=sha256,
    )


def dearer_with_pilot(plan: TablePlan) -> list[int]:
    """The residuals of which pilot and rest have more precision than the plan pays for: exact."""
    plans, pilot, rest = plan.sigma_squared, pilot_scales(plan), rest_scales(plan)
    return [
        i
        for i in range(len(pilot))
        if 1 / pilot.fraction(i) + 1 / rest.fraction(i) > 1 / plans.fraction(i)
    ]


def _decimals(values: list[Fraction]) -> Decimals:
    """Positive rationals rounded up to 12 significant digits, exactly."""
    up = {
        value: _UP.divide(Decimal(value.numerator), Decimal(value.denominator)).as_tuple()
        for value in dict.fromkeys(values)
    }
    digits = [int("".join(map(str, up[value].digits))) for value in values]
    exponents = [int(up[value].exponent) for value in values]
    return Decimals(np.array(digits), np.array(exponents))
