"""How much of a plan for areas is of use: the cells that are accurate enough to publish, by level.

As of plans of tables (`analysis.usefulness`): a cell is publishable if the standard error of its
noise, over its expected count, is within the limit of the coefficient of variation. What is
expected of an area is its part of all records: evenly over the areas without parts, or as publicly
known totals say.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from rpexplore.common.numbers import shown
from rpexplore.common.text import describe_count, describe_share, plural
from rpexplore.domain.area_tree import AreaRange, AreaTree
from rpexplore.domain.expected_counts import CV_LIMIT, ExpectedCounts, checked_cv_limit
from rpexplore.errors import WorkloadError
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.workload.table_text import title


@dataclass(frozen=True, eq=False)
class AreaUsefulness:
    """Which cells of a plan for areas are publishable.

    expected  of the other attributes, for all areas together
    shares    float64[n_areas]: the part of all records that each area is expected to hold
    cv_limit  the largest coefficient of variation of a publishable cell
    source    how records are taken to be spread over areas, in words
    """

    plan: AreaPlan
    expected: ExpectedCounts
    shares: np.ndarray
    cv_limit: float
    source: str

    @cached_property
    def of_tables(self) -> pd.DataFrame:
        """One row a level and table, the levels from the top.

        level, table, areas, cells (in all areas), in_full (areas with every cell publishable),
        publishable (cells), share (of the cells)
        """
        return pd.DataFrame([vars(row) | {"share": row.share} for row in self._rows])

    @cached_property
    def by_level(self) -> pd.DataFrame:
        """One row a level: level, tables (in all its areas), in_full, cells, publishable, share.

        And median_count, the records that the median area of the level is expected to hold.
        """
        tree, rows = self.plan.workload.tree, []
        for number, level in enumerate(tree.levels):
            of_level = [row for row in self._rows if row.level == level]
            if not of_level:
                continue
            cells = sum(row.cells for row in of_level)
            publishable = sum(row.publishable for row in of_level)
            median = float(np.median(self.shares[tree.level_slice(number)]))
            rows.append(
                {
                    "level": level,
                    "tables": sum(row.areas for row in of_level),
                    "in_full": sum(row.in_full for row in of_level),
                    "cells": cells,
                    "publishable": publishable,
                    "share": publishable / cells,
                    "median_count": median * self.expected.total,
                }
            )
        return pd.DataFrame(rows)

    @property
    def n_cells(self) -> int:
        """Number of cells of all tables of all areas."""
        return sum(row.cells for row in self._rows)

    @property
    def n_publishable(self) -> int:
        """How many of them are publishable."""
        return sum(row.publishable for row in self._rows)

    @property
    def share(self) -> float:
        """Publishable share of the cells of all tables of all areas, 0 to 1."""
        return self.n_publishable / self.n_cells

    @property
    def share_text(self) -> str:
        """ "64 %"; "100 %" only where all cells are publishable."""
        is_whole = self.n_publishable == self.n_cells
        return describe_share(self.share if is_whole else min(self.share, 1 - 1e-15))

    @property
    def expected_text(self) -> str:
        """The source of the expected counts, for a sentence."""
        return f"{self.expected.text}, and {self.source}"

    def describe(self) -> str:
        """How much is publishable, in a sentence."""
        whole = sum(row.in_full for row in self._rows)
        tables = sum(row.areas for row in self._rows)
        return (
            f"{self.share_text} of the {describe_count(self.n_cells)} cells are publishable, with "
            f"a coefficient of variation of at most {100 * self.cv_limit:g} %: {whole:,} of "
            f"{plural(tables, 'table')} of areas in full."
        )

    @cached_property
    def _rows(self) -> list["_Table"]:
        return list(self._each_table())

    def _each_table(self) -> Iterator["_Table"]:
        plan, workload = self.plan, self.plan.workload
        tables, groups = workload.tables, plan.groups
        counts = [
            np.sort(
                self.expected.counts_of(
                    [plan.domain.attributes[index] for index in tables.attribute_indices(row)]
                ),
                axis=None,
            )
            for row in range(len(tables))
        ]
        for number, level in enumerate(workload.tree.levels):
            areas = workload.tree.level_slice(number)
            first, stop = groups.starts[number : number + 2].tolist()
            of_area, kinds = groups.of_area[areas] - first, workload.kinds[areas]
            for table in range(len(tables)):
                asked = [kind for kind, rows in enumerate(workload.rows) if table in rows]
                own = np.isin(kinds, asked)
                if not np.any(own):
                    continue
                variances = plan.residual_variances[:, first:stop]
                errors = np.sqrt(plan.closure.variance_matrix[table] @ variances)[of_area[own]]
                shares = self.shares[areas][own]
                # A cell is publishable from this count in all areas on.
                least = np.divide(
                    errors,
                    self.cv_limit * shares,
                    out=np.full(len(errors), np.inf),
                    where=shares > 0,
                )
                n_cells = len(counts[table])
                publishable = n_cells - np.searchsorted(counts[table], least)
                yield _Table(
                    level=level,
                    table=title(tables.tables[table]),
                    areas=len(errors),
                    cells=len(errors) * n_cells,
                    in_full=int(np.count_nonzero(publishable == n_cells)),
                    publishable=int(np.sum(publishable)),
                )


@dataclass(frozen=True)
class _Table:
    """How much of a table is publishable in the areas of a level; a row of `of_tables`."""

    level: str
    table: str
    areas: int
    cells: int
    in_full: int
    publishable: int

    @property
    def share(self) -> float:
        return self.publishable / self.cells


def publishable_in_areas(
    plan: AreaPlan,
    expected: ExpectedCounts,
    *,
    cv_limit: float = CV_LIMIT,
    totals: Mapping[int, float] | None = None,
) -> AreaUsefulness:
    """Which cells of a plan for areas are accurate enough to publish.

    Args:
        expected: How many records each cell of the other attributes is expected to hold in all
            areas together, from public sources.
        cv_limit: The largest coefficient of variation of a publishable cell: 0.2 is 20 %.
        totals: Publicly known totals of areas, by their numbers, to whose parts records are taken
            to fall evenly; of areas that do not overlap, and together are the whole. Without them
            records fall evenly on all areas without parts.

    Raises:
        WorkloadError: If the counts do not fit the plan's codebook, the limit is none, a total is
            no number of records, or the totals do not cover every area once; and if tables are in
            other bases than single values, whose cells have standard errors of their own.
    """
    if not plan.workload.tables.is_marginals:
        raise WorkloadError(
            "Publishable cells of areas are those of tables of single values, and some tables of "
            "this plan are in other bases; plan them in single values to see how many there are."
        )
    expected, tree = expected.fitted(plan.domain), plan.workload.tree
    source = "evenly over the leaves"
    if totals is not None:
        source = f"over areas as {plural(len(totals), 'known total')} say"
    shares = shares_of_areas(tree, totals)
    return AreaUsefulness(plan, expected, shares, checked_cv_limit(cv_limit), source)


def shares_of_areas(tree: AreaTree, totals: Mapping[int, float] | None = None) -> np.ndarray:
    """The part of all records that each area is expected to hold, float64[n_areas].

    totals: as of `publishable_in_areas`
    """
    given = np.zeros(tree.n_areas)
    covered = np.zeros(tree.n_areas, dtype=np.int64)
    undivided = (tree.n_parts == 0).astype(float)
    every = AreaRange.within(tree, 0, 0, 1, len(tree.levels) - 1)
    within = undivided.copy()
    every.add_parts(within)
    for area, total in ({0: 1.0} if totals is None else totals).items():
        if not 0 <= area < tree.n_areas:
            raise WorkloadError(
                f"A total is given of an area {shown(area)}; the areas of this tree have the "
                f"numbers 0 to {tree.n_areas - 1:,}."
            )
        if not (math.isfinite(total) and total >= 0):
            raise WorkloadError(
                f"The total of the area {' > '.join(tree.path(area)) or tree.levels[0]} is "
                f"{shown(total)}; give a number of records, 0 or more."
            )
        given[area] = total / within[area]
        covered[area] = 1
    for areas in every.slices[1:]:  # what was given goes down to all within
        above = tree.parents[areas]
        given[areas] += given[above]
        covered[areas] += covered[above]
    if np.any(covered[tree.n_parts == 0] != 1):
        area = int(np.argmax((covered != 1) & (tree.n_parts == 0)))
        times = "in none" if covered[area] == 0 else "in several"
        raise WorkloadError(
            f"The area {' > '.join(tree.path(area))} lies {times} of the areas whose totals are "
            "given; give totals of areas that together are the whole, such as all of one level."
        )
    shares = given * undivided
    every.add_parts(shares)
    if shares[0] <= 0:
        raise WorkloadError("The totals of areas must not all be 0.")
    return shares / shares[0]
