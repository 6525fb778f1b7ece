"""Forecast: how accurate each table of a workload would be, by one plan, under one name.

Analyses take forecasts, so that plans, schemes and scenarios are compared by the same code.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rpexplore.common.formatting import plural
from rpexplore.planning.losses.base import WEIGHTINGS, Loss, MaxVariance, SumOfVariances
from rpexplore.planning.mechanism.cell_variances import CellVariances
from rpexplore.planning.mechanism.table_variances import CELLS, TableVariances, cells_differ
from rpexplore.planning.optimum import Optimum
from rpexplore.planning.plan import Plan
from rpexplore.privacy.budget import Budget
from rpexplore.workload.table_text import title_of
from rpexplore.workload.workload import Workload

MOST = 5  # attributes; tables of more are grouped with these

# The ways of weighing tables that RP+ compares in its Figures 1 to 3, by what they give.
SCHEMES: dict[str, Loss] = {
    **{WEIGHTINGS[name].capitalize(): SumOfVariances(name) for name in ("equal", "sqrt", "cells")},
    MaxVariance().title.capitalize(): MaxVariance(),
}


def unweighted(workload: Workload) -> Workload:
    """The tables that schemes are compared on: they weigh them by nothing but their own rule.

    All are of equal weight, and none has a target; the workload itself if all weights are 1.
    """
    if np.all(workload.weights == 1):
        return workload  # no scheme looks at targets
    count = len(workload)
    none = np.zeros(count, dtype=bool)
    return replace(workload, weights=np.ones(count), targets=np.full(count, np.nan), required=none)


def scheme_of(loss: Loss, workload: Workload) -> str:
    """The scheme that a plan with this loss is, "" if it is none of them."""
    if np.any(workload.weights != 1):
        return ""
    return next((name for name, scheme in SCHEMES.items() if scheme == loss), "")


@dataclass(frozen=True, eq=False)
class Noise:
    """What the accuracy of every cell of a forecast's tables follows from.

    cells          of the workload, as measured
    sigma_squared  float64[n_residuals]
    variances      of each table: mean, worst and best cell
    """

    cells: CellVariances
    sigma_squared: np.ndarray
    variances: TableVariances


@dataclass(frozen=True, eq=False)
class Forecast:
    """Accuracy of the tables of a workload, in one standard error of each.

    standard_errors  float64[n_tables]
    shadow_prices    float64[n_tables], sum 1: the share of the loss that each table has
    cell             which standard error of a table that is, of `table_variances.CELLS`
    noise            behind the standard errors; without it all cells of a table are taken as alike
    """

    name: str
    workload: Workload
    standard_errors: np.ndarray
    shadow_prices: np.ndarray
    cell: str = "mean"
    noise: Noise | None = None

    @classmethod
    def of_plan(cls, name: str, plan: Plan) -> "Forecast":
        """What a plan gives, seen at the root mean square of its cells."""
        cells = CellVariances(plan.workload, plan.closure)
        noise = Noise(cells, plan.sigma_squared.floats, plan.table_variances)
        prices = plan.certificate.shadow_prices
        return cls(name, plan.workload, plan.standard_errors, prices, noise=noise)

    @classmethod
    def of_optimum(cls, name: str, optimum: Optimum, budget: Budget) -> "Forecast":
        """What the plan at this budget would give, without making it."""
        workload, solution = optimum.workload, optimum.solution
        cost, at_cost_1 = float(budget.record_privacy_cost), optimum.table_variances
        mean = worst = best = at_cost_1.mean / cost
        if at_cost_1.worst is not at_cost_1.best:
            worst, best = at_cost_1.worst / cost, at_cost_1.best / cost
        cells = CellVariances(workload, optimum.closure)
        variances = TableVariances(mean, worst, best)
        noise = Noise(cells, solution.sigma_squared / cost, variances)
        errors = optimum.standard_errors(budget)
        return cls(name, workload, errors, solution.shadow_prices, noise=noise)

    def cell_standard_errors(self, table: int) -> np.ndarray:
        """Standard error of every cell of a table, one axis an attribute."""
        if self.noise is None:
            bases = self.workload.attribute_basis_index[table, : self.workload.orders[table]]
            rows = [self.workload.n_queries[basis] for basis in bases]
            return np.full(rows, self.standard_errors[table])
        return np.sqrt(self.noise.cells.variances_of(table, self.noise.sigma_squared))

    def at_cell(self, cell: str) -> "Forecast":
        """The same tables seen at another cell of each: one of `table_variances.CELLS`."""
        if self.noise is None or cell == self.cell:
            return self
        return replace(self, standard_errors=self.noise.variances.standard_errors(cell), cell=cell)

    @cached_property
    def cells_differ(self) -> bool:
        """Whether some table's cells differ noticeably in accuracy."""
        return self.noise is not None and cells_differ(self.noise.variances)

    def extremes(self, tables: np.ndarray) -> dict[str, np.ndarray]:
        """Columns for these tables: their best and worst cell, where cells differ."""
        if self.noise is None or not self.cells_differ:
            return {}
        return {
            f"{cell}_standard_error": self.noise.variances.standard_errors(cell)[tables]
            for cell in ("best", "worst")
        }

    @property
    def cell_text(self) -> str:
        """Which cell is looked at, in a sentence; "" where all cells are alike."""
        if not self.cells_differ:
            return ""
        return f"Of each table, {CELLS[self.cell]} is shown."


def order_groups(workload: Workload) -> np.ndarray:
    """Number of attributes of each table, at most `MOST`, int64[n_tables]."""
    return np.minimum(workload.orders, MOST)


def group_name(group: int, workload: Workload) -> str:
    """ "total", "1 attribute", "5 attributes or more"."""
    if group == 0:
        return "total"
    more = " or more" if group == MOST and int(workload.orders.max()) > MOST else ""
    return f"{plural(group, 'attribute')}{more}"


@dataclass(frozen=True)
class WorkloadTotals:
    """The size of a workload: tables, cells over all tables, and its largest table."""

    tables: int
    cells: int
    largest_table: str
    largest_cells: int


def totals(workload: Workload) -> WorkloadTotals:
    """The size of a workload, exact however large."""
    cells = workload.exact_cells
    largest = int(np.argmax(workload.cells))
    return WorkloadTotals(
        tables=len(workload),
        cells=int(cells.sum()),
        largest_table=title_of(workload, largest),
        largest_cells=int(cells[largest]),
    )
