"""How much of a plan is of use: the cells that are accurate enough to publish, at any budget.

A cell is publishable if the standard error of its noise, over its expected count, is within the
limit of the coefficient of variation. Budgets scale all standard errors alike, so shares at a
budget are those at privacy cost 1 within a limit as many times larger, and what was computed once
serves every budget.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import pandas as pd

from rpexplore.analysis import expected_cells
from rpexplore.analysis.expected_cells import ExpectedCells
from rpexplore.analysis.measures import Accuracy, group_name, order_groups
from rpexplore.common.text import describe_count, describe_share, plural
from rpexplore.domain.expected_counts import CV_LIMIT, ExpectedCounts, checked_cv_limit
from rpexplore.domain.readings import coefficients_of_variation
from rpexplore.domain.survey import SurveyDesign
from rpexplore.planning.part_plan import Z_95, PartPlan
from rpexplore.planning.plan import Plan
from rpexplore.planning.planner import Optimum, record_cost
from rpexplore.planning.table_plan import TablePlan
from rpexplore.privacy.budget import Budget
from rpexplore.workload.bases import Hierarchy
from rpexplore.workload.table_text import attribute_title


@dataclass(frozen=True, eq=False)
class Usefulness:
    """Which cells of a plan are publishable.

    accuracy  standard errors of the tables, at some budget
    scale     by which they are multiplied to be those at `budget`
    cv_limit  the largest coefficient of variation of a publishable cell
    """

    accuracy: Accuracy
    cells: ExpectedCells
    cv_limit: float
    budget: Budget
    scale: float = 1.0

    @classmethod
    def of_plan(cls, plan: TablePlan, cells: ExpectedCells, cv_limit: float) -> "Usefulness":
        """The usefulness of a plan; cells: of its workload."""
        return cls(Accuracy.of_plan("", plan), cells, cv_limit, plan.budget)

    @classmethod
    def of_optimum(
        cls, optimum: Optimum, budget: Budget, cells: ExpectedCells, cv_limit: float
    ) -> "Usefulness":
        """The usefulness of the plan at this budget; fast where only the budget moves."""
        scale = float(1 / np.sqrt(record_cost(budget)))
        return cls(accuracy_at_cost_1(optimum), cells, cv_limit, budget, scale)

    @cached_property
    def shares(self) -> np.ndarray:
        """Share of each table's cells that are publishable, float64[n_tables]; NaN: left out."""
        return self.cells.shares(self.accuracy, self._limit)

    @property
    def n_cells(self) -> float:
        """Number of cells of all tables that are looked at."""
        return float(np.sum(self._cells))

    @cached_property
    def share(self) -> float:
        """Publishable share of the cells of all tables, 0 to 1; NaN if all are left out."""
        held = self.cells.held
        return _share_of_all(self.shares[held], self._cells)

    @property
    def tables(self) -> int:
        """How many tables are looked at."""
        return len(self._cells)

    @cached_property
    def whole(self) -> int:
        """How many tables are publishable in full."""
        return int(np.count_nonzero(self.shares == 1))

    @cached_property
    def none(self) -> int:
        """How many tables have no publishable cell."""
        return int(np.count_nonzero(self.shares == 0))

    @property
    def partly(self) -> int:
        """How many tables have publishable cells and others."""
        return self.tables - self.whole - self.none

    # ---- frames

    def by_order(self) -> pd.DataFrame:
        """One row a group of orders.

        Columns: attributes ("total", "2 attributes"), tables, whole (tables that are publishable in
        full), cells, median_count (half of the cells are expected to hold at most so much),
        margin_95 (of a cell, median over tables), publishable (cells), share.
        """
        workload, held = self.cells.workload, self.cells.held
        groups, rows = order_groups(workload), []
        for group, median_count in _median_counts_by_order(self.cells).items():
            chosen = held & (groups == group)
            cells, shares = workload.cells[chosen], self.shares[chosen]
            error = float(np.median(self.accuracy.standard_errors[chosen])) * self.scale
            share = _share_of_all(shares, cells)
            rows.append(
                {
                    "attributes": group_name(group, workload),
                    "tables": len(cells),
                    "whole": int(np.count_nonzero(shares == 1)),
                    "cells": float(np.sum(cells)),
                    "median_count": median_count,
                    "margin_95": Z_95 * error,
                    "publishable": float(np.sum(shares * cells)),
                    "share": share,
                }
            )
        return pd.DataFrame(rows)

    def by_level(self) -> pd.DataFrame:
        """One row for each level of a hierarchy, the coarsest first, over all tables that have it.

        Columns: attribute ("region (hierarchy)"), level ("total", "groups of 5", "single values"),
        tables, cells, median_count (expected, of these cells), margin_95 (median over these cells),
        publishable (cells), share. No rows where no table that is looked at has a hierarchy.
        """
        rows = []
        for level in _levels(self.cells, self.accuracy):
            publishable = int(np.searchsorted(level.ratios, self._limit, side="right"))
            rows.append(
                {
                    "attribute": level.attribute,
                    "level": level.name,
                    "tables": level.tables,
                    "cells": len(level.ratios),
                    "median_count": level.median_count,
                    "margin_95": Z_95 * level.median_error * self.scale,
                    "publishable": publishable,
                    "share": publishable / len(level.ratios),
                }
            )
        return pd.DataFrame(rows, columns=list(_LEVEL_COLUMNS))

    def of_tables(self) -> pd.DataFrame:
        """One row a table, the largest publishable share first, then the smallest median CV.

        Columns, indexed by the table's index in the workload: table, order, cells, publishable,
        share, median_count, median_relative_error (the median CV), standard_error, margin_95. Where
        the cells of a table differ, the last two are those of the root mean square.
        """
        frame = expected_cells.of_tables(self.accuracy, self.cells, self._limit)
        error = frame["standard_error"] * self.scale
        return frame.assign(
            median_relative_error=frame["median_relative_error"] * self.scale,
            standard_error=error,
            margin_95=error * Z_95,
        )

    # ---- sentences

    @property
    def share_text(self) -> str:
        """ "64 %"; "100 %" only where every table is publishable in full."""
        return describe_share(self.share if self.whole == self.tables else below_1(self.share))

    @property
    def tables_text(self) -> str:
        """ "148 of 232 tables in full, 53 in part, 31 not at all", "the table in part"."""
        if self.tables == 1:
            how = "in full" if self.whole else "in part" if self.partly else "not at all"
            return f"the table {how}"
        return (
            f"{self.whole:,} of {plural(self.tables, 'table')} in full, {self.partly:,} in part, "
            f"{self.none:,} not at all"
        )

    def describe(self) -> str:
        """How much is publishable, in a sentence."""
        limit = f"with a coefficient of variation of at most {100 * self.cv_limit:g} %"
        if self.cells.survey is not None:
            limit += f" (of noise and sampling: {self.cells.survey.text})"
        if self.n_cells == 1:
            return f"The one cell is {'' if self.whole else 'not '}publishable, {limit}."
        return (
            f"{self.share_text} of the {describe_count(int(self.n_cells))} cells are publishable, "
            f"{limit}: {self.tables_text}."
        )

    # ---- inside

    @property
    def _limit(self) -> float:
        """The limit of coefficients of variation at the budget of the accuracy."""
        return self.cv_limit / self.scale

    @cached_property
    def _cells(self) -> np.ndarray:
        return self.cells.workload.cells[self.cells.held]


def publishable(
    plan: Plan | PartPlan,
    expected: ExpectedCounts,
    *,
    cv_limit: float = CV_LIMIT,
    survey: SurveyDesign | None = None,
) -> Usefulness:
    """Which cells of a plan's tables are accurate enough to publish.

    Args:
        expected: How many records each cell is expected to hold, from public sources.
        cv_limit: The largest coefficient of variation of a publishable cell: 0.2 is 20 %.
        survey: The design of the survey, if its sampling error counts beside the noise.

    Raises:
        PlanError: If the plan has no tables.
        WorkloadError: If the counts do not fit the plan's codebook, or the limit is none.

    Example:
        >>> import rpexplore as rp
        >>> tables = rp.Workload.all_up_to(rp.Domain.from_sizes({"age": 100, "sex": 2}), 1)
        >>> best = rp.plan(tables, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.5"))
        >>> rp.publishable(best, rp.ExpectedCounts.of_total(5000)).share
        1.0
    """
    tables = TablePlan.part_of(plan)
    if survey is not None:
        survey.refuse_unknown(tables.workload.tables)
    cells = ExpectedCells.of(expected, tables.workload, survey, checked_cv_limit(cv_limit))
    return Usefulness.of_plan(tables, cells, cv_limit)


# Solved once, optima serve every budget; titles, medians and what is gone through cell by cell are
# kept by the `Accuracy` that this returns.
@lru_cache(maxsize=6)
def accuracy_at_cost_1(optimum: Optimum) -> Accuracy:
    """What an optimum gives at privacy cost 1 of one record; the same object every time."""
    return Accuracy.of_optimum("", optimum, Budget(privacy_cost=1))


def _share_of_all(shares: np.ndarray, cells: np.ndarray) -> float:
    """The share of all cells, exactly 1 if all shares are."""
    return float(np.sum(shares * cells) / np.sum(cells)) if len(cells) else np.nan


def below_1(share: float) -> float:
    """A few cells of very many are lost in the rounding of the share, not in its text."""
    return min(share, 1 - 1e-15)


@lru_cache(maxsize=6)
def _median_counts_by_order(cells: ExpectedCells) -> dict[int, float]:
    """The median expected count of the cells of each group of orders that has tables."""
    groups = order_groups(cells.workload)
    used = np.unique(groups[cells.held]).tolist()
    return {group: cells.median_count(groups == group) for group in used}


# ---- levels of hierarchies

_LEVEL_COLUMNS = (
    "attribute", "level", "tables", "cells", "median_count", "margin_95", "publishable", "share",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Level:
    """The cells of a level of an attribute, in all tables that have it in this hierarchy.

    ratios  float64[n]: their coefficients of variation at the budget of a accuracy, ascending
    """

    attribute: str
    name: str
    tables: int
    ratios: np.ndarray
    median_count: float
    median_error: float


@lru_cache(maxsize=6)
def _levels(cells: ExpectedCells, accuracy: Accuracy) -> list[_Level]:
    workload = cells.workload
    parts: dict[tuple[int, str], list[tuple[np.ndarray, ...]]] = {}
    for table in cells.unequal:
        bases = workload.attribute_basis_index[table].tolist()
        having = [
            (axis, index)
            for axis, index in enumerate(bases)
            if index >= 0 and isinstance(workload.attribute_bases[index][1], Hierarchy)
        ]
        if not having:
            continue
        answers, errors = np.abs(cells.answers(table)), accuracy.cell_standard_errors(table)
        for_noise = cells.counts_for_noise(answers, cells.factors[table])
        for axis, index in having:
            attribute, basis = workload.attribute_bases[index]
            for name, rows in basis.levels(workload.domain.attributes[attribute]).items():
                of_level = (
                    np.take(part, rows, axis).ravel() for part in (answers, errors, for_noise)
                )
                parts.setdefault((index, name), []).append(tuple(of_level))
    levels = []
    for (index, name), pairs in parts.items():
        attribute, basis = workload.attribute_bases[index]
        counts, errors, for_noise = (np.concatenate(each) for each in zip(*pairs, strict=True))
        ratios = np.sort(coefficients_of_variation(errors, for_noise))
        title = attribute_title(workload.domain.attributes[attribute], basis)
        medians = float(np.median(counts)), float(np.median(errors))
        levels.append(_Level(title, name, len(pairs), ratios, *medians))
    return levels
