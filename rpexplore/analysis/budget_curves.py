"""Standard errors against the budget: exact curves, from one solution (docs/mathematics.md §6.2).

With a budget k times as large every standard error is divided by √k: on log axes all curves are
parallel lines. They tell which budget goes with which error.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pandas as pd

from rpexplore.analysis.budget_units import (
    epsilon_text,
    slider_stops,
    stated_delta,
    stated_unit,
    text_in_unit,
    typed_text,
    with_value,
)
from rpexplore.analysis.forecast import group_name, order_groups
from rpexplore.analysis.sufficient_budgets import SufficientBudget
from rpexplore.analysis.usefulness import Usefulness, forecast_at_cost_1
from rpexplore.common.formatting import rounded
from rpexplore.planning.mechanism.table_variances import (
    CELLS,
    cells_differ,
    is_negligible_difference,
)
from rpexplore.planning.optimum import Optimum, record_cost
from rpexplore.privacy import conversions as privacy
from rpexplore.privacy.budget import Budget
from rpexplore.privacy.conversions import rho_text
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
    """The standard error of some tables against the budget.

    name      "median table", "age × sex"
    variance  at privacy cost 1 of one record, as `Optimum.mean_variances` has it
    table     the table whose it is; "" where it is no single one's
    """

    name: str
    variance: float
    table: str = ""

    def standard_error(self, rho: float, budget: Budget) -> float:
        """At ρ of the privacy unit that the budget is for."""
        return math.sqrt(self.variance * budget.records_factor / (2 * rho))


def quantile_curves(optimum: Optimum) -> list[Curve]:
    """The least accurate table, the median, the most accurate one; one curve if they are the same.

    Where the cells of tables differ: the least accurate cell, the median of the tables' mean
    variances, and the most accurate cell.
    """
    variances = optimum.table_variances
    least, most = int(np.argmax(variances.largest)), int(np.argmin(variances.smallest))
    high, low = float(variances.largest[least]), float(variances.smallest[most])
    if len(variances.mean) == 1:
        return table_curves(optimum, 0)
    if is_negligible_difference(math.sqrt(low), math.sqrt(high)):
        return [Curve("every table", high)]
    noun = "cell" if cells_differ(variances) else "table"
    return [
        Curve(f"least accurate {noun}", high, title_of(optimum.workload, least)),
        Curve("median table", float(np.median(variances.mean))),
        Curve(f"most accurate {noun}", low, title_of(optimum.workload, most)),
    ]


def order_curves(optimum: Optimum, *, least_accurate: bool) -> list[Curve]:
    """The least accurate cell or the median table of each number of attributes."""
    groups, curves = order_groups(optimum.workload), []
    of_tables = optimum.table_variances.largest if least_accurate else optimum.mean_variances
    for group in np.unique(groups).tolist():
        tables = np.flatnonzero(groups == group)
        variances, name = of_tables[tables], group_name(group, optimum.workload)
        if least_accurate and len(tables) > 1:
            largest = int(np.argmax(variances))
            title = title_of(optimum.workload, tables[largest])
            curves.append(Curve(f"least accurate of {name}", float(variances[largest]), title))
        else:
            curves.append(Curve(name, float(np.median(variances))))
    return curves


def table_curves(optimum: Optimum, table: int) -> list[Curve]:
    """One table's; two where its cells differ, their root mean square and the least accurate."""
    name, variances = title_of(optimum.workload, table), optimum.table_variances
    mean, largest = float(variances.mean[table]), float(variances.largest[table])
    if is_negligible_difference(math.sqrt(mean), math.sqrt(largest)):
        return [Curve(name, mean, name)]
    return [
        Curve(f"{name}, {CELLS['mean']}", mean, name),
        Curve(f"{name}, {CELLS['largest']}", largest, name),
    ]


def errors_by_budget(
    curves: Sequence[Curve], budget: Budget, also: Iterable[float] = ()
) -> pd.DataFrame:
    """The curves at round budgets around the current one, which is among them.

    also: further ρ to reach and to have among them. Columns: series (number of the curve), curve,
    table, rho (of the privacy unit), epsilon (at the stated δ, rounded up), standard_error.
    """
    current, delta = float(budget.rho), stated_delta(budget)
    also = [rho for rho in also if current / _FAR <= rho <= current * _FAR]
    low = min([current / _AROUND, *(rho / _BEYOND for rho in also)])
    high = min(max([current * _AROUND, *(rho * _BEYOND for rho in also)]), _MOST_RHO)
    rhos = sorted({*_round_budgets(low, high), low, current, high, *also})
    epsilons = [privacy.epsilon_from_rho(rho, delta) for rho in rhos]
    rows = [
        (series, curve.name, curve.table, rho, epsilon, curve.standard_error(rho, budget))
        for series, curve in enumerate(curves)
        for rho, epsilon in zip(rhos, epsilons, strict=True)
    ]
    columns = ["series", "curve", "table", "rho", "epsilon", "standard_error"]
    return pd.DataFrame(rows, columns=columns)


def describe_curves(curves: Sequence[Curve], budget: Budget, record_noun: str) -> str:
    """What the curves are at the current budget, and what half the error would cost."""
    now = "; ".join(f"{curve.name} {_current(curve, budget)}" for curve in curves[:_MOST_NAMED])
    half = 4 * budget.rho
    exact = typed_text(half)
    rho = exact if len(exact) <= 10 else rounded(half, 4)
    epsilon = f" ({epsilon_text(half, stated_delta(budget))})" if half < _MOST_RHO else ""
    return (
        f"At the current budget, {rho_text(budget.rho, 4, 'nearest')}, the standard error in "
        f"{record_noun} is: {now}. Half of it takes four times the budget, for every "
        f"table: ρ = {rho}{epsilon}."
    )


def describe_wanted_error(
    curve: Curve, wanted: float, enough: SufficientBudget, budget: Budget, record_noun: str
) -> str:
    """What a wanted standard error would cost."""
    name = f"“{curve.name}”" if curve.table != curve.name else curve.name
    return (
        f"For a standard error of {rounded(wanted, 6)} {record_noun} in {name} (now "
        f"{_current(curve, budget)}), the budget must be {enough.text}: {enough.compared}."
    )


def half_error(curve: Curve, budget: Budget) -> tuple[float, float]:
    """The ρ at which a curve's standard error is half the current one, and that error."""
    rho = 4 * float(budget.rho)
    return rho, curve.standard_error(rho, budget)


def _current(curve: Curve, budget: Budget) -> str:
    return rounded(curve.standard_error(float(budget.rho), budget), 3)


def _round_budgets(low: float, high: float) -> list[float]:
    """The round budgets from low to high."""
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (float(step * Fraction(10) ** exponent) for exponent in exponents for step in _STEPS)
    return [rho for rho in steps if low <= rho <= high]


def publishable_by_budget(optimum: Optimum, now: Usefulness) -> pd.DataFrame:
    """The publishable share at each stop of the slider in the unit that the budget is stated in.

    Columns: budget (in that unit, ascending), share. optimum: what `now` is of, with an objective
    whose best noise at one budget is that of another, scaled.
    """
    curve = now.cells.share_curve(forecast_at_cost_1(optimum))
    unit, delta = stated_unit(now.budget), stated_delta(now.budget)
    stops = slider_stops(unit, text_in_unit(now.budget, unit, delta))
    costs = [record_cost(with_value(now.budget, unit, stop, delta)) for stop in stops]
    return pd.DataFrame(
        {
            "budget": [float(Fraction(stop)) for stop in stops],
            "share": [curve(now.cv_limit * cost**0.5) for cost in costs],
        }
    )


def publishable_at(useful: Usefulness, like: Budget) -> tuple[float, float]:
    """(budget, publishable share), the budget in the unit that another one is stated in."""
    text = text_in_unit(useful.budget, stated_unit(like), stated_delta(like))
    return float(Fraction(text.replace(",", ""))), useful.share
