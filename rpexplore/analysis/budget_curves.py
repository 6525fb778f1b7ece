"""Accuracy against the budget: exact curves, from one solution (docs/mathematics.md §6.2).

With a budget k times as large every standard error is divided by √k, and every variance by k: on
log axes all curves are parallel lines. They tell which budget goes with which accuracy.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pandas as pd

from rpexplore.analysis.area_accuracy import level_accuracy
from rpexplore.analysis.budget_units import stated_delta, typed_text
from rpexplore.analysis.measures import STANDARD_ERROR, Measure, group_name, order_groups
from rpexplore.analysis.sufficient_budgets import SufficientBudget, budget_for_error
from rpexplore.common.text import rounded
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.counts import QueryPlan
from rpexplore.planning.mechanism.variances import (
    CELLS,
    TableVariances,
    cells_differ,
    is_negligible_difference,
)
from rpexplore.planning.part_plan import PartPlan
from rpexplore.planning.planner import Optimum
from rpexplore.privacy.budget import Budget
from rpexplore.privacy.conversions import rho_text
from rpexplore.privacy.discrete_noise import DiscreteNoise, proven_epsilon
from rpexplore.workload.table_text import title_of

# The round budgets of each decade: ten steps, about equally far apart.
_STEPS = tuple(map(Fraction, ("1", "1.2", "1.5", "2", "2.5", "3", "4", "5", "6", "8")))
_AROUND = 10  # curves reach from a tenth of the current budget to ten times as much,
_BEYOND = 3  # and to three times the budget of a change, or a third of it,
_FAR = 10**6  # if that is no more than so many times the current one
_MOST_RHO = 4.9e99  # larger ones are no budgets
_MOST_NAMED = 6  # curves in a sentence


@dataclass(frozen=True)
class Curve:
    """The accuracy of some tables against the budget.

    name      "median table", "age × sex"
    variance  at privacy cost 1 of one record, as `Optimum.mean_variances` has it
    table     the table whose it is; "" where it is no single one's
    """

    name: str
    variance: float
    table: str = ""

    def value(self, rho: float, budget: Budget, measure: Measure = STANDARD_ERROR) -> float:
        """At ρ of the privacy unit that the budget is for."""
        return math.sqrt(self.variance * budget.records_factor / (2 * rho)) ** measure.power


def _variances(optimum: Optimum) -> TableVariances:
    return optimum.table_variances.in_units(optimum.workload.units)


def quantile_curves(optimum: Optimum) -> list[Curve]:
    """The least accurate table, the median, the most accurate one; one curve if they are the same.

    Where the cells of tables differ: the least accurate cell, the median of the tables' mean
    variances, and the most accurate cell.
    """
    variances = _variances(optimum)
    comparable = optimum.workload.comparable
    least = int(np.nanargmax(np.where(comparable, variances.largest, np.nan)))
    most = int(np.nanargmin(np.where(comparable, variances.smallest, np.nan)))
    high, low = float(variances.largest[least]), float(variances.smallest[most])
    if len(variances.mean) == 1:
        return table_curves(optimum, 0)
    if is_negligible_difference(math.sqrt(low), math.sqrt(high)):
        return [Curve("every table", high)]
    noun = "cell" if cells_differ(variances) else "table"
    return [
        Curve(f"least accurate {noun}", high, title_of(optimum.workload, least)),
        Curve("median table", float(np.nanmedian(variances.mean[comparable]))),
        Curve(f"most accurate {noun}", low, title_of(optimum.workload, most)),
    ]


def order_curves(optimum: Optimum, *, least_accurate: bool) -> list[Curve]:
    """The least accurate cell or the median table of each number of attributes."""
    groups, curves = order_groups(optimum.workload), []
    all_variances = _variances(optimum)
    of_tables = all_variances.largest if least_accurate else all_variances.mean
    having = optimum.workload.comparable
    for group in np.unique(groups[having]).tolist():
        tables = np.flatnonzero((groups == group) & having)
        shown, name = of_tables[tables], group_name(group, optimum.workload)
        if least_accurate and len(tables) > 1:
            largest = int(np.argmax(shown))
            title = title_of(optimum.workload, tables[largest])
            curves.append(Curve(f"least accurate of {name}", float(shown[largest]), title))
        else:
            curves.append(Curve(name, float(np.median(shown))))
    return curves


def table_curves(optimum: Optimum, table: int) -> list[Curve]:
    """One table's; two where its cells differ, their root mean square and the least accurate."""
    name, variances = title_of(optimum.workload, table), _variances(optimum)
    mean, largest = float(variances.mean[table]), float(variances.largest[table])
    if is_negligible_difference(math.sqrt(mean), math.sqrt(largest)):
        return [Curve(name, mean, name)]
    return [
        Curve(f"{name}, {CELLS['mean']}", mean, name),
        Curve(f"{name}, {CELLS['largest']}", largest, name),
    ]


def area_curves(plan: AreaPlan) -> list[Curve]:
    """The root mean square of each level of areas."""
    levels, at_cost_1 = level_accuracy(plan), _at_cost_1(plan)
    told = zip(levels["level"], levels["standard_error"], strict=True)
    return [Curve(str(level), error**2 * at_cost_1) for level, error in told]


def count_curves(plan: QueryPlan) -> list[Curve]:
    """The least accurate own count, the median, the most accurate one; one if they are the same."""
    variances, names = plan.variances * _at_cost_1(plan), plan.queries.names
    most, least = int(np.argmin(variances)), int(np.argmax(variances))
    low, high = float(variances[most]), float(variances[least])
    if is_negligible_difference(math.sqrt(low), math.sqrt(high)):
        return [Curve("every count" if len(names) > 1 else names[most], high)]
    return [
        Curve("least accurate count", high, names[least]),
        Curve("median count", float(np.median(variances))),
        Curve("most accurate count", low, names[most]),
    ]


def _at_cost_1(plan: PartPlan) -> float:
    """The variances of a plan at privacy cost 1 of one record, as a multiple of its own."""
    return 2 * float(plan.budget.rho) / plan.budget.records_factor


def errors_by_budget(
    curves: Sequence[Curve],
    budget: Budget,
    also: Iterable[float] = (),
    measure: Measure = STANDARD_ERROR,
    noise: DiscreteNoise | None = None,
) -> pd.DataFrame:
    """The curves at round budgets around the current one, which is among them.

    also: further ρ to reach and to have among them; noise: of the optimum, by which an ε is the
    smallest that is proven. Columns: series (number of the curve), curve,
    table, rho (of the privacy unit), epsilon (at the stated δ, rounded up), and the measure.
    """
    current, delta = float(budget.rho), stated_delta(budget)
    also = [rho for rho in also if current / _FAR <= rho <= current * _FAR]
    low = min([current / _AROUND, *(rho / _BEYOND for rho in also)])
    high = min(max([current * _AROUND, *(rho * _BEYOND for rho in also)]), _MOST_RHO)
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (float(step * Fraction(10) ** exponent) for exponent in exponents for step in _STEPS)
    rhos = sorted({*[rho for rho in steps if low <= rho <= high], low, current, high, *also})
    epsilons = [proven_epsilon(rho, delta, noise) for rho in rhos]
    rows = [
        (series, curve.name, curve.table, rho, epsilon, curve.value(rho, budget, measure))
        for series, curve in enumerate(curves)
        for rho, epsilon in zip(rhos, epsilons, strict=True)
    ]
    columns = ["series", "curve", "table", "rho", "epsilon", measure.column]
    return pd.DataFrame(rows, columns=columns)


def describe_curves(
    curves: Sequence[Curve],
    budget: Budget,
    record_noun: str,
    measure: Measure = STANDARD_ERROR,
    noise: DiscreteNoise | None = None,
) -> str:
    """The values of the curves at the current budget, and the cost of halving them.

    noise: of the optimum
    """
    now = "; ".join(
        f"{curve.name} {_current(curve, budget, measure)}" for curve in curves[:_MOST_NAMED]
    )
    half = times_for_half(measure) * budget.rho
    exact = typed_text(half)
    rho = exact if len(exact) <= 10 else rounded(half, 4)
    epsilon = f" ({budget.epsilon_text(half, noise=noise)})" if half < _MOST_RHO else ""
    unit = measure.unit(record_noun)
    times = {4: "four times", 2: "twice"}[times_for_half(measure)]
    return (
        f"At the current budget, {rho_text(budget.rho, 4, 'nearest')}, the {measure.noun}"
        f"{f' in {unit}' if unit else ''} is: {now}. To halve it takes {times} the "
        f"budget: ρ = {rho}{epsilon}."
    )


def budget_for_value(
    curve: Curve,
    wanted: float,
    budget: Budget,
    measure: Measure = STANDARD_ERROR,
    noise: DiscreteNoise | None = None,
) -> SufficientBudget:
    """The smallest budget at which a curve is as accurate as wanted. noise: of the optimum

    Raises `BudgetError` for a wanted value that is not positive, or out of reach.
    """
    error = max(wanted, 0.0) ** (1 / measure.power)
    return budget_for_error(curve.variance, error, budget, noise)


def describe_wanted_value(
    curve: Curve,
    wanted: float,
    enough: SufficientBudget,
    budget: Budget,
    record_noun: str,
    measure: Measure = STANDARD_ERROR,
) -> str:
    """The cost of a wanted accuracy, in a sentence."""
    name = f"“{curve.name}”" if curve.table != curve.name else curve.name
    return (
        f"For a {measure.noun} of {measure.stated(wanted, record_noun, 6)} in {name} (now "
        f"{_current(curve, budget, measure)}), the budget must be {enough.text}: {enough.compared}."
    )


def half_value(
    curve: Curve, budget: Budget, measure: Measure = STANDARD_ERROR
) -> tuple[float, float]:
    """The ρ at which a curve is at half its current value, and that value."""
    rho = times_for_half(measure) * float(budget.rho)
    return rho, curve.value(rho, budget, measure)


def times_for_half(measure: Measure) -> int:
    """How many times the budget halves a measure."""
    return 2 if measure.power == 2 else 4


def _current(curve: Curve, budget: Budget, measure: Measure) -> str:
    return measure.text(curve.value(float(budget.rho), budget, measure))
