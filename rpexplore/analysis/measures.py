"""Accuracy: how accurate each table of a workload would be, by one plan; measures of accuracy."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rpexplore.common.text import plural, rounded
from rpexplore.planning.losses.losses import WEIGHTINGS, Loss, MaxVariance, SumOfVariances
from rpexplore.planning.mechanism.variances import (
    CELLS,
    CellVariances,
    TableVariances,
    cells_differ,
)
from rpexplore.planning.planner import Optimum, record_cost
from rpexplore.planning.table_plan import TablePlan
from rpexplore.privacy.budget import Budget
from rpexplore.workload.table_text import title_of
from rpexplore.workload.workload import Workload

# ---- Measures of accuracy: the standard error and the variance.


@dataclass(frozen=True)
class Measure:
    """A measure of the accuracy of a cell, larger where that is less accurate.

    title   of a choice
    noun    in a sentence; nouns: several of them
    symbol  in a heading
    column  of a frame
    power   of the standard error that it goes with
    """

    title: str
    noun: str
    nouns: str
    symbol: str
    column: str
    power: int = 1

    def text(self, value: float, digits: int = 3, *, zeros: bool = False) -> str:
        """A value without its unit: "12.3"."""
        return rounded(value, digits, zeros=zeros)

    def unit(self, record_noun: str) -> str:
        """ "people", "people²"."""
        return record_noun if self.power == 1 else f"{record_noun}²"

    def stated(
        self, value: float, record_noun: str, digits: int = 3, *, zeros: bool = False
    ) -> str:
        """A value with its unit: "12.3 people", "151 people²"."""
        return f"{self.text(value, digits, zeros=zeros)} {self.unit(record_noun)}"

    def to_type(self, value: float) -> float:
        """The number to type for a value, of four digits, rounded up."""
        return float(rounded(value, 4, "up").replace(",", ""))

    def label(self, record_noun: str, remark: str = "", of: str = " of a cell") -> str:
        """Of an axis: "standard error of a cell (people, log scale)"."""
        remarks = ", ".join(filter(None, [self.unit(record_noun), remark]))
        return f"{self.noun}{of} ({remarks})"


STANDARD_ERROR = Measure(
    "Standard error", "standard error", "standard errors", "σ", "standard_error"
)
VARIANCE = Measure("Variance", "variance", "variances", "σ²", "variance", power=2)

# ---- Accuracy: how accurate each table of a workload would be, by one plan, under one name.
#
# Analyses take an `Accuracy`, so that plans, schemes and scenarios are compared by the same code.


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
class Accuracy:
    """Accuracy of the tables of a workload, in one measure of one cell of each.

    cells          of the workload, as measured
    sigma_squared  float64[n_residuals]
    variances      of each table: of its mean, its least and its most accurate cell, in the units of
                   its cells
    shadow_prices  float64[n_tables], sum 1: the share of the loss that each table has
    cell           whose standard error is looked at, of `table_variances.CELLS`
    measure        what is looked at of it
    """

    name: str
    cells: CellVariances
    sigma_squared: np.ndarray
    variances: TableVariances
    shadow_prices: np.ndarray
    cell: str = "mean"
    measure: Measure = STANDARD_ERROR

    @classmethod
    def of_plan(cls, name: str, plan: TablePlan) -> "Accuracy":
        """The errors of a plan, seen at the root mean square of its cells."""
        cells, prices = CellVariances(plan.workload, plan.closure), plan.certificate.shadow_prices
        return cls(name, cells, plan.sigma_squared.floats, plan.variances_in_units, prices)

    @classmethod
    def of_optimum(cls, name: str, optimum: Optimum, budget: Budget) -> "Accuracy":
        """The errors of the plan at this budget, without making it."""
        optimum, cost = optimum.for_neighbours(budget), record_cost(budget)
        at_cost_1 = optimum.table_variances.in_units(optimum.workload.units)
        variances = TableVariances(*(at_cost_1.at(cell) / cost for cell in CELLS))
        cells, solution = CellVariances(optimum.workload, optimum.closure), optimum.solution
        return cls(name, cells, solution.sigma_squared / cost, variances, solution.shadow_prices)

    @property
    def workload(self) -> Workload:
        """The tables."""
        return self.cells.workload

    @cached_property
    def standard_errors(self) -> np.ndarray:
        """The standard error of each table that is looked at, float64[n_tables]."""
        return self.variances.standard_errors(self.cell)

    @cached_property
    def values(self) -> np.ndarray:
        """Each table in the measure, float64[n_tables]; NaN where it has none.

        Tables with amounts have none beside tables of counts: they are of other units.
        """
        values = self.standard_errors**self.measure.power
        return np.where(self.workload.comparable, values, np.nan)

    @cached_property
    def having(self) -> np.ndarray:
        """Indices of the tables that have a value in the measure, int64[n]."""
        return np.flatnonzero(~np.isnan(self.values))

    def columns(self, tables: np.ndarray) -> dict[str, np.ndarray]:
        """Columns for these tables: the measure, and the standard error."""
        errors = {STANDARD_ERROR.column: self.standard_errors[tables]}
        return {self.measure.column: self.values[tables]} | errors

    def cell_standard_errors(self, table: int) -> np.ndarray:
        """Standard error of every cell of a table, one axis an attribute."""
        return self.cells.standard_errors_of(table, self.sigma_squared)

    def in_measure(self, measure: Measure) -> "Accuracy":
        """The same tables in another measure."""
        return replace(self, measure=measure)

    def at_cell(self, cell: str) -> "Accuracy":
        """The same tables seen at another cell of each: one of `table_variances.CELLS`."""
        return replace(self, cell=cell)

    @cached_property
    def cells_differ(self) -> bool:
        """Whether some table's cells differ noticeably in accuracy."""
        return cells_differ(self.variances)

    @property
    def cell_title(self) -> str:
        """Which cell of a table is looked at; "" where all cells are alike."""
        return CELLS[self.cell] if self.cells_differ else ""

    @property
    def cell_text(self) -> str:
        """Which cell is looked at, in a sentence or two; "" where all cells are alike."""
        if not self.cell_title:
            return ""
        text = f"Of each table, {self.cell_title} is shown."
        if count := int(np.count_nonzero(~self.workload.comparable)):
            of = self.workload.sums_noun_of(~self.workload.comparable)
            are = "is" if count == 1 else "are"
            text += f" {plural(count, 'table')} of {of} {are} left out."
        return text


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
