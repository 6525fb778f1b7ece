"""Rest: what is measured after a pilot by a plan that is made of its figures, on top of them.

A first plan with a pilot can state what the rest is planned for once the pilot is measured
(`RestObjective`). The plan of the rest is for the same tables, at the cost that is booked for
them. With τ* the precisions of the best plan for the new weights, and τ⁰ those of the pilot, it has

    τ = max(τ⁰ · 1000/999, s τ*),   s the largest at which it costs no more,

which for sums of variances is the best of all plans that have measured the pilot: water filling
(docs/mathematics.md §21). Where records of different kinds cost different things, as with levels of
attributes, τ* is the best above τ⁰ and not that of a plan without one. Its certificate compares it
with all plans, whatever they measured first.

It is no run of its own: it goes on with the booked run of the first plan. So its file names that
plan by SHA-256, and has it beside it; and it names the pilot's figures that it was made from, so
that no run with another pilot goes on by it. For whichever two records, or sets of them, neighbours
differ in, a pilot costs Σ τ⁰ q and the rest Σ (τ − τ⁰) q with q ≥ 0 that depends on these alone.
Both are at most what the whole plan costs, whatever the pilot drew: so the rest may depend on it.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from rpexplore.common.numbers import Decimals
from rpexplore.errors import ContradictionError, PlanError
from rpexplore.planning.losses.losses import SumOfVariances
from rpexplore.planning.mechanism.accounting import privacy_cost_upper_bound
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.variances import TableVariances
from rpexplore.planning.part_plan import PartPlan
from rpexplore.planning.pilot import pilot_scales
from rpexplore.planning.plan import Plan
from rpexplore.planning.solvers.record_prices import best_above
from rpexplore.planning.table_plan import PILOT_STEPS, TablePlan, n_pilot_residuals

# Of the pilot's precision: what the rest adds at least, so that all residuals are measured in it.
_LEAST_MORE = PILOT_STEPS / (PILOT_STEPS - 1)
_HALVINGS = 60  # of an interval of floats
_HALVINGS_OF_OWN_COSTS = 30  # where a cost takes long: to a billionth
_NAME_DIGITS = 16  # of a SHA-256 in the name of a file


def on_top_of_pilot(first: Plan, best: TablePlan, pilot_sha256: str) -> Plan:
    """The plan of the rest: the best plan for new weights, on top of what the pilot measured.

    Args:
        first: The plan whose pilot is measured, which states what the rest is planned for.
        best: The plan with the smallest sum of variances for its tables, with the weights that
            were found since; of whichever budget.
        pilot_sha256: Of the pilot's figures that the weights were found from.

    Returns:
        The plan of everything, pilot and rest, at the cost that is booked for the first one.

    Raises:
        PlanError: If the first plan has no pilot or states no objective of the rest, or the best
            plan is for other tables, or by another loss.
    """
    tables = stating_rest(first)
    _refuse_other_tables(tables, best)
    closure, factor = best.closure, tables.budget.records_factor
    limit = tables.exact_privacy_cost / factor
    n_pilot = n_pilot_residuals(closure)
    floor = np.zeros(len(closure))
    floor[:n_pilot] = _LEAST_MORE / pilot_scales(tables).floats
    wanted = 1 / best.sigma_squared.floats
    if closure.classes is not None:
        weights = closure.residual_weights(best.loss.table_weights(best.workload))
        priced = best_above(closure, weights, floor, float(limit))
        wanted = np.where(closure.is_public, wanted, priced)

    def precisions(scale: float) -> np.ndarray:
        return np.maximum(floor, scale * wanted)

    def cost(scale: float) -> float:
        return closure.largest_cost(1 / precisions(scale))

    halvings = _HALVINGS_OF_OWN_COSTS if closure.has_own_costs else _HALVINGS
    start = float(limit) / closure.largest_cost(1 / wanted)
    scale = _largest_within(cost, float(limit), start, halvings)
    sigma_squared, exact_cost = _within(closure, precisions, scale, limit)
    variances = TableVariances.of(best.workload, closure, sigma_squared.floats)
    more = float(best.budget.record_privacy_cost / tables.budget.record_privacy_cost)
    shares = best.loss.table_weights(best.workload) * variances.mean
    certificate = replace(
        best.certificate,
        loss_value=best.loss.value(variances.mean, best.workload),
        lower_bound=best.certificate.lower_bound * more,
        shadow_prices=shares / np.sum(shares),
    )
    own = replace(
        best,
        budget=tables.budget,
        sigma_squared=sigma_squared,
        table_variances=variances,
        exact_privacy_cost=exact_cost * factor,
        certificate=certificate,
        rules=tables.rules,
        first=first,
        pilot_sha256=pilot_sha256,
    )
    parts = tuple(own if part is tables else part for part in first.parts)
    return Plan(parts, first.budget, own.version, universe=first.universe)


def stating_rest(first: Plan) -> Any:
    """The tables of a plan whose rest is planned anew; raises `PlanError` if it has none such."""
    tables = first.part("tables")
    if tables is None or tables.then is None:
        raise PlanError(
            "The rest of a plan is planned anew only behind a pilot whose plan states what for; "
            "plan with --pilot 2% --then-most-people."
        )
    return tables


def _largest_within(
    cost: Callable[[float], float], limit: float, start: float, halvings: int
) -> float:
    """The largest scale at which something costs no more than a limit, by halving.

    start: near it, and above 0
    """
    low, high = 0.0, start
    while cost(high) <= limit:
        low, high = high, 2 * high
    for _ in range(halvings):
        middle = (low + high) / 2
        low, high = (middle, high) if cost(middle) <= limit else (low, middle)
    return low


def _within(
    closure: Closure, precisions: Callable[[float], np.ndarray], scale: float, limit: Fraction
) -> tuple[Decimals, Fraction]:
    """Noise scales as decimals, and their exact cost, which is within the limit."""
    for _ in range(40):
        rounded = Decimals.rounded_up(1 / precisions(scale))
        cost = privacy_cost_upper_bound(closure, rounded)
        if cost <= limit:
            return rounded, cost
        scale *= 1 - max(2 * float(cost / limit - 1), 1e-15)  # of rounding
    raise PlanError("The rest could not be brought within the cost that is booked; plan anew.")


# ---- The first plan, which the file of such a plan names and has beside it.


def name_of_first(sha256: str) -> str:
    """The name of the file of a first plan, beside that of the plan of its rest."""
    return f"first-{sha256[:_NAME_DIGITS]}.json"


def first_plan_of(sha256: str, folder: Path | None) -> Plan:
    """The first plan that a plan file names, from beside it."""
    if folder is None:
        raise PlanError("a plan of a rest has the first plan beside it; read it from its folder.")
    path = folder / name_of_first(sha256)
    if not path.is_file():
        raise PlanError(f"it needs the first plan, {path.name}, beside it; put that file there.")
    first = Plan.load(path)
    if first.sha256 != sha256:
        raise ContradictionError(f"{name_of_first(sha256)} beside it is of another plan.")
    return first


def refuse_other_first(plan: TablePlan) -> None:
    """Raise `PlanError` unless a plan can be that of the rest of its first plan."""
    assert plan.first is not None
    tables = plan.first.part("tables")
    if tables is None or tables.then is None or plan.pilot is not None or plan.pilot_of:
        raise PlanError("its first plan must state what the rest is planned for.")
    _refuse_other_tables(tables, plan)
    pilot = pilot_scales(plan)
    if any(plan.sigma_squared.fraction(i) >= pilot.fraction(i) for i in range(len(pilot))):
        raise PlanError("it must add to everything that its pilot has measured.")


def _refuse_other_tables(tables: TablePlan, other: TablePlan) -> None:
    """Raise `PlanError` unless a rest is planned for the same tables, matrices and privacy unit.

    other: the best plan for the new weights, or the rest itself; of the least sum of variances
    """
    if not isinstance(other.loss, SumOfVariances):
        raise PlanError(
            f"The rest is planned for a sum of variances, and not for {other.loss.description}; "
            "give weights instead."
        )
    own, others = tables.workload, other.workload
    if own.domain != others.domain or own.tables != others.tables or not others.has_values_alone:
        raise PlanError("The rest must be planned for the tables of the first plan, all of them.")
    if not _are_measured_alike(tables.closure, other.closure):
        raise PlanError(
            "The rest must measure attributes at several levels as the first plan does; plan it "
            "with the strategies of that one."
        )
    if tables.budget.full_unit != other.budget.full_unit:
        raise PlanError(f"The rest must protect {tables.budget.full_unit}, as the first plan does.")


def _are_measured_alike(one: Closure, other: Closure) -> bool:
    """Whether the matrices of two closures of the same tables are the same."""
    if one.strategies.keys() != other.strategies.keys():
        return False
    pairs = ((own, other.strategies[number]) for number, own in one.strategies.items())
    return all(a.bits == b.bits and a.is_like(b) for a, b in pairs)


def differences_from_first(plan: Plan | PartPlan) -> list[str]:
    """How the plan of a rest is not as its first plan lets it be, in words; [] if it is.

    Privacy costs are compared exactly.
    """
    plan = Plan.of(plan)
    tables = plan.part("tables")
    first = tables.first
    found = {
        "the budget": (plan.budget.to_json(), first.budget.to_json()),
        "the condition on records": tuple(
            "" if one.universe is None else one.universe.text for one in (plan, first)
        ),
        "the rules": (tables.rules, first.part("tables").rules),
        "the budget of the tables": (
            tables.budget.to_json(),
            first.part("tables").budget.to_json(),
        ),
        "the other parts": (_texts_of_others(plan), _texts_of_others(first)),
    }
    different = [
        f"{what} is another one" for what, (own, of_first) in found.items() if own != of_first
    ]
    if plan.exact_privacy_cost > first.exact_privacy_cost or plan.record_rho > first.record_rho:
        different.append("it costs more than is booked")
    return different


def _texts_of_others(plan: Plan) -> list[str]:
    return [part.to_text() for part in plan.parts if part.kind != "tables"]
