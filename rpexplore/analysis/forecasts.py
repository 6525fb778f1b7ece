"""Forecast: how accurate each table of a workload would be, by one plan, under one name.

Analyses take forecasts, so that plans, schemes and scenarios are compared by the same code.
"""

from dataclasses import dataclass, replace

import numpy as np

from rpexplore.budget import Budget
from rpexplore.losses import WEIGHTINGS, Loss, MaxVariance, SumOfVariances
from rpexplore.optimum import Optimum
from rpexplore.plan import Plan
from rpexplore.workload import Workload

# The ways of weighing tables that RP+ compares in its Figures 1 to 3, by what they give.
SCHEMES: dict[str, Loss] = {
    **{WEIGHTINGS[each].capitalize(): SumOfVariances(each) for each in ("equal", "sqrt", "cells")},
    MaxVariance().aim.capitalize(): MaxVariance(),
}


def plain(workload: Workload) -> Workload:
    """The tables that schemes are compared on: they weigh them by nothing but their own rule.

    All are equally important, and none has a target; the workload itself if it has no importance.
    """
    if np.all(workload.weights == 1):
        return workload  # no scheme looks at targets
    count = len(workload)
    return replace(workload, weights=np.ones(count), targets=np.full(count, np.nan))


def scheme_of(loss: Loss, workload: Workload) -> str:
    """The scheme that a plan with this loss is, "" if it is none of them."""
    if np.any(workload.weights != 1):
        return ""
    return next((name for name, scheme in SCHEMES.items() if scheme == loss), "")


@dataclass(frozen=True, eq=False)
class Forecast:
    """Accuracy of the tables of a workload.

    standard_errors  float64[n_tables]: of a cell of each table
    shadow_prices    float64[n_tables], sum 1: how much of the loss each table holds up
    """

    name: str
    workload: Workload
    standard_errors: np.ndarray
    shadow_prices: np.ndarray

    @classmethod
    def of_plan(cls, name: str, plan: Plan) -> "Forecast":
        """What a plan gives."""
        return cls(name, plan.workload, plan.standard_errors, plan.certificate.shadow_prices)

    @classmethod
    def of_optimum(cls, name: str, optimum: Optimum, budget: Budget) -> "Forecast":
        """What the plan at this budget would give, without making it."""
        errors = optimum.standard_errors(budget)
        return cls(name, optimum.workload, errors, optimum.solution.shadow_prices)
