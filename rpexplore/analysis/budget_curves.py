"""Accuracy against the budget: exact curves, from one solution (docs/mathematics.md §6.2).

With a budget k times as large every standard error and coefficient of variation is divided by √k,
and every variance by k: on log axes all curves are parallel lines. They tell which budget goes with
which accuracy.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pandas as pd

from rpexplore.analysis.budget_units import (
    slider_stops,
    stated_delta,
    stated_unit,
    text_in_unit,
    typed_text,
    with_value,
)
from rpexplore.analysis.expected_cells import ExpectedCells, in_measure
from rpexplore.analysis.measures import STANDARD_ERROR, Accuracy, Measure, group_name, order_groups
from rpexplore.analysis.sufficient_budgets import SufficientBudget, budget_for_error
from rpexplore.analysis.usefulness import Usefulness, accuracy_at_cost_1
from rpexplore.common.text import rounded
from rpexplore.errors import WorkloadError
from rpexplore.planning.mechanism.variances import (
    CELLS,
    TableVariances,
    cells_differ,
    is_negligible_difference,
)
from rpexplore.planning.planner import Optimum, record_cost
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
    variance  at privacy cost 1 of one record, as `Optimum.mean_variances` has it; or the square of
              a coefficient of variation
    table     the table whose it is; "" where it is no single one's
    """

    name: str
    variance: float
    table: str = ""

    def value(self, rho: float, budget: Budget, measure: Measure = STANDARD_ERROR) -> float:
        """At ρ of the privacy unit that the budget is for."""
        return math.sqrt(self.variance * budget.records_factor / (2 * rho)) ** measure.power


def variances_in(
    optimum: Optimum, measure: Measure, cells: ExpectedCells | None = None
) -> TableVariances:
    """The quantity behind curves in a measure: variances, or squared coefficients of variation.

    NaN for tables without a value. cells: of the optimum's workload, where the measure needs them
    """
    if not measure.is_share:
        return optimum.table_variances.in_units(optimum.workload.units)
    squares = in_measure(accuracy_at_cost_1(optimum), measure, cells).values ** 2
    return TableVariances(squares, squares, squares)


def quantile_curves(optimum: Optimum, variances: TableVariances | None = None) -> list[Curve]:
    """The least accurate table, the median, the most accurate one; one curve if they are the same.

    Where the cells of tables differ: the least accurate cell, the median of the tables' mean
    variances, and the most accurate cell. variances: of `variances_in`; without them the optimum's
    """
    variances = variances or variances_in(optimum, STANDARD_ERROR)
    comparable = optimum.workload.comparable
    least = int(np.nanargmax(np.where(comparable, variances.largest, np.nan)))
    most = int(np.nanargmin(np.where(comparable, variances.smallest, np.nan)))
    high, low = float(variances.largest[least]), float(variances.smallest[most])
    if len(variances.mean) == 1:
        return table_curves(optimum, 0, variances)
    if is_negligible_difference(math.sqrt(low), math.sqrt(high)):
        return [Curve("every table", high)]
    noun = "cell" if cells_differ(variances) else "table"
    return [
        Curve(f"least accurate {noun}", high, title_of(optimum.workload, least)),
        Curve("median table", float(np.nanmedian(variances.mean[comparable]))),
        Curve(f"most accurate {noun}", low, title_of(optimum.workload, most)),
    ]


def order_curves(
    optimum: Optimum, variances: TableVariances | None = None, *, least_accurate: bool
) -> list[Curve]:
    """The least accurate cell or the median table of each number of attributes.

    variances: of `variances_in`; without them the optimum's
    """
    groups, curves = order_groups(optimum.workload), []
    all_variances = variances or variances_in(optimum, STANDARD_ERROR)
    of_tables = all_variances.largest if least_accurate else all_variances.mean
    having = ~np.isnan(of_tables) & optimum.workload.comparable
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


def table_curves(
    optimum: Optimum, table: int, variances: TableVariances | None = None
) -> list[Curve]:
    """One table's; two where its cells differ, their root mean square and the least accurate.

    variances: of `variances_in`; without them the optimum's. Raises `WorkloadError` for a table
    that has none there.
    """
    name, variances = (
        title_of(optimum.workload, table),
        variances or variances_in(optimum, STANDARD_ERROR),
    )
    mean, largest = float(variances.mean[table]), float(variances.largest[table])
    if math.isnan(mean):
        raise WorkloadError(
            f"Table {name} has no coefficient of variation: its median cell has no expected count. "
            "Choose another table, or the standard error."
        )
    if is_negligible_difference(math.sqrt(mean), math.sqrt(largest)):
        return [Curve(name, mean, name)]
    return [
        Curve(f"{name}, {CELLS['mean']}", mean, name),
        Curve(f"{name}, {CELLS['largest']}", largest, name),
    ]


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
        f"{f' in {unit}' if unit else ''} is: {now}. Half of it takes {times} the budget, for "
        f"every table: ρ = {rho}{epsilon}."
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


def publishable_by_budget(optimum: Optimum, now: Usefulness) -> pd.DataFrame:
    """The publishable share at each stop of the slider in the unit that the budget is stated in.

    Columns: budget (in that unit, ascending), share. optimum: what `now` is of, with an objective
    whose best noise at one budget is that of another, scaled.
    """
    share = _share_curve(now.cells, accuracy_at_cost_1(optimum))
    unit, delta = stated_unit(now.budget), stated_delta(now.budget)
    stops = slider_stops(unit, text_in_unit(now.budget, unit, delta))
    costs = [record_cost(with_value(now.budget, unit, stop, delta)) for stop in stops]
    return pd.DataFrame(
        {
            "budget": [float(Fraction(stop)) for stop in stops],
            "share": [share(now.cv_limit * cost**0.5) for cost in costs],
        }
    )


# Where the slider goes, most of its stops are those of before.
@lru_cache(maxsize=2)
def _share_curve(cells: ExpectedCells, accuracy: Accuracy) -> Callable[[float], float]:
    return lru_cache(maxsize=200)(cells.share_curve(accuracy))


def publishable_at(useful: Usefulness, like: Budget) -> tuple[float, float]:
    """(budget, publishable share), the budget in the unit that another one is stated in."""
    text = text_in_unit(useful.budget, stated_unit(like), stated_delta(like))
    return float(Fraction(text.replace(",", ""))), useful.share
