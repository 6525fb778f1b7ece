"""Area parts: the subtrees that are counted, measured and written at a time.

The tree is cut at a level. A part is all areas above it, or some areas of it that follow one
another, with all that lies in them. Some parts together are counted in one pass over the records.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from rpexplore.data.areas import AreaCut, AreaCuts
from rpexplore.data.blocks import maximal
from rpexplore.domain.area_tree import AreaRange
from rpexplore.domain.domain import AttributeIndices
from rpexplore.planning.areas.area_design import AreaDesign
from rpexplore.planning.mechanism.reconstruction import query_matrices
from rpexplore.planning.mechanism.variances import CellVariances
from rpexplore.releases.measurement import PART_CELLS, Part, measured_cells, ranges_of
from rpexplore.workload.table_text import QueryMatrix

PART_NUMBERS = 16_000_000
"""Measured, or answered, at a time, 8 bytes each; of the format."""


@dataclass(frozen=True)
class Columns:
    """Columns of numbers, those of one residual or of some with the same noise.

    within         the columns
    residuals      ascending
    scale_squared  ∏ n_i² of each of them (4^b for attributes with a strategy): measured are
                   integers that are larger by its root
    factor         of the plan, of each of them
    """

    within: slice
    residuals: tuple[int, ...]
    scale_squared: int
    factor: int


@dataclass(frozen=True, eq=False)
class AreaParts:
    """How a plan's areas are worked on. A part's numbers stand by profile, area and column.

    alone  whether each part is counted by itself
    """

    plan: AreaDesign
    alone: bool = False

    # ---- what is measured of an area

    @cached_property
    def depths(self) -> np.ndarray:
        """The lowest level on which something is measured, of each profile: int64[n_profiles]."""
        # 0 where nothing is, of which verification tells.
        last = [int(np.max(np.flatnonzero(row), initial=0)) for row in self.plan.is_counted]
        return np.searchsorted(self.plan.groups.starts, last, side="right") - 1

    @cached_property
    def columns(self) -> list[list[Columns]]:
        """Of each profile: its residuals, those of the same noise together."""
        plan, sizes = self.plan, measured_cells(self.plan.closure)
        found = []
        for profile in range(len(plan.multiples)):
            alike: dict[tuple[int, int], list[int]] = {}
            for residual in np.flatnonzero(plan.of_residual == profile).tolist():
                key = plan.closure.integer_scale(residual) ** 2, int(plan.factors[residual])
                alike.setdefault(key, []).append(residual)
            start, columns = 0, []
            for (scale_squared, factor), residuals in alike.items():
                stop = start + int(np.sum(sizes[residuals]))
                columns.append(Columns(slice(start, stop), tuple(residuals), scale_squared, factor))
                start = stop
            found.append(columns)
        return found

    @cached_property
    def of_residuals(self) -> dict[int, tuple[int, slice]]:
        """The profile and the columns of each residual."""
        sizes, found = measured_cells(self.plan.closure).tolist(), {}
        for profile, columns in enumerate(self.columns):
            for each in columns:
                start = each.within.start
                for residual in each.residuals:
                    found[residual] = profile, slice(start, start + sizes[residual])
                    start += sizes[residual]
        return found

    @cached_property
    def widths(self) -> np.ndarray:
        """How many columns each profile has, int64[n_profiles]."""
        return np.array([columns[-1].within.stop for columns in self.columns])

    # ---- what is answered in an area

    @cached_property
    def _queries(self) -> list[QueryMatrix | None]:
        return query_matrices(self.plan.workload.tables)

    def queries_of(self, table: int) -> list[QueryMatrix | None]:
        """What a table of `plan.workload.tables` asks, an attribute after another."""
        tables = self.plan.workload.tables
        n_axes = len(tables.attribute_indices(table))
        return [self._queries[basis] for basis in tables.attribute_basis_index[table, :n_axes]]

    @cached_property
    def _cells(self) -> CellVariances:
        return CellVariances(self.plan.workload.tables, self.plan.closure)

    def cell_factors(self, table: int) -> tuple[np.ndarray, np.ndarray]:
        """How the variance of each residual gets into the cells of a table.

        Returns:
            The residuals that do, int64[n], and by how much, float64[n, n_cells]; one column where
            all cells are alike. Variances are in the units of cells: of sums in those of amounts.
        """
        closure = self.plan.closure
        residuals = closure.subsets(table)
        attributes = self.plan.workload.tables.attribute_indices(table)
        if not set(attributes) & set(closure.strategies) and self.plan.workload.tables.is_marginals:
            return residuals, closure.variance_matrix[table, residuals][:, None]
        units = np.zeros((len(residuals), len(closure)))
        units[np.arange(len(residuals)), residuals] = 1
        squares = self._cells.units_of(table) ** 2
        rows = [(self._cells.variances_of(table, unit) * squares).reshape(-1) for unit in units]
        return residuals, np.stack(rows)

    def units_of(self, table: int) -> np.ndarray:
        """What answers of a table are multiplied by; broadcasts to its cells."""
        return self._cells.units_of(table)

    def sum_covariance_factors(self, table: int) -> np.ndarray:
        """How the variances of the residuals of `cell_factors` get into covariances of sums.

        Of the sum and the count of each group of a table with amounts: float64[n, n_groups].
        """
        units = np.zeros(
            (len(residuals := self.plan.closure.subsets(table)), len(self.plan.closure))
        )
        units[np.arange(len(residuals)), residuals] = 1
        return np.stack([self._cells.sum_covariances_of(table, unit).ravel() for unit in units])

    # ---- parts

    @cached_property
    def _numbers(self) -> np.ndarray:
        """How many numbers all areas within each area have, and itself: float64[n_areas]."""
        tree, levels = self.plan.workload.tree, np.arange(len(self.plan.workload.tree.levels))
        of_levels = (self.depths[None, :] >= levels[:, None]) @ self.widths
        numbers = of_levels[tree.level_of].astype(float)
        AreaRange.within(tree, 0, 0, 1, len(levels) - 1).add_parts(numbers)
        return numbers

    @cached_property
    def level(self) -> int:
        """Where the tree is cut: the highest level whose largest subtree is small enough."""
        starts = self.plan.workload.tree.starts[: int(np.max(self.depths)) + 2]
        largest = np.maximum.reduceat(self._numbers[: starts[-1]], starts[:-1])
        fitting = np.flatnonzero(largest <= PART_NUMBERS)
        return int(fitting[0]) if len(fitting) else len(largest) - 1

    @cached_property
    def areas(self) -> list[AreaRange]:
        """Of each part, down to the lowest level on which something is measured."""
        tree, level, last = self.plan.workload.tree, self.level, int(np.max(self.depths))
        areas = tree.level_slice(level)
        subtrees = [
            AreaRange.within(tree, level, areas.start + some.start, areas.start + some.stop, last)
            for some in ranges_of(self._numbers[areas], PART_NUMBERS)
        ]
        above = [AreaRange.within(tree, 0, 0, 1, level - 1)] if level else []
        return [*above, *subtrees]

    def of_profile(self, part: int, profile: int) -> AreaRange | None:
        """The areas of a part down to where the profile is measured; None for none."""
        areas = self.areas[part]
        first = 0 if part == 0 else self.level
        n_levels = int(self.depths[profile]) + 1 - first
        return areas.down_to(n_levels) if n_levels > 0 else None

    def measured_rows(self, profile: int, areas: AreaRange) -> np.ndarray:
        """The rows of the areas in which a profile is measured."""
        groups = self.plan.groups.of_area[areas.areas]
        return np.flatnonzero(self.plan.is_counted[profile, groups])

    @cached_property
    def starts(self) -> np.ndarray:
        """Where each part's numbers of each profile begin: int64[n_parts · n_profiles + 1]."""
        sizes = [0]
        for part in range(len(self.areas)):
            for profile, width in enumerate(self.widths.tolist()):
                areas = self.of_profile(part, profile)
                rows = 0 if areas is None else len(self.measured_rows(profile, areas))
                sizes.append(rows * width)
        return np.cumsum(sizes)

    def bounds(self, part: int, profile: int) -> tuple[int, int]:
        """Where the numbers of a profile in a part begin, and end."""
        index = part * len(self.widths) + profile
        return int(self.starts[index]), int(self.starts[index + 1])

    # ---- passes

    @cached_property
    def sets(self) -> list[tuple[AttributeIndices, int]]:
        """Sets of attributes that are counted, each down to a level; all residuals follow."""
        closure, depths = self.plan.closure, self.depths[self.plan.of_residual]
        found: list[tuple[AttributeIndices, int]] = []
        for depth in sorted(set(depths.tolist()), reverse=True):
            residuals = np.flatnonzero(depths == depth).tolist()
            sets = maximal([closure.columns_of(residual) for residual in residuals]) or [()]
            held = [set(larger) for larger, _ in found]
            new = [each for each in sets if not any(larger.issuperset(each) for larger in held)]
            found += [(each, depth) for each in new]
        return found

    @cached_property
    def passes(self) -> list["AreaPass"]:
        """What is counted in each pass, in the order of the parts."""
        if self.alone:
            return [AreaPass(self, range(part, part + 1)) for part in range(len(self.areas))]
        sizes = self.plan.domain.sizes.tolist()
        of_level = np.zeros(int(np.max(self.depths)) + 1)
        for attributes, depth in self.sets:
            of_level[: depth + 1] += prod(sizes[index] for index in attributes)
        first = 1 if self.level else 0
        cells = [
            sum(
                (areas.stop - areas.start) * of_level[self.level + number]
                for number, areas in enumerate(part.slices)
            )
            for part in self.areas[first:]
        ]
        found = []
        for some in ranges_of(np.array(cells), PART_CELLS):
            parts = range(first + some.start, first + some.stop)
            found.append(AreaPass(self, range(0 if not found else parts.start, parts.stop)))
        return found

    @cached_property
    def parts(self) -> Sequence[Part]:
        """What is measured at a time; those of one pass have its tables."""
        n_profiles = len(self.widths)
        ends = self.starts[n_profiles::n_profiles].tolist()
        sizes = np.diff([0, *ends]).tolist()
        return [
            Part(each.tables, range(part, part + 1), sizes[part], each.cuts)
            for each in self.passes
            for part in each.parts
        ]


@dataclass(frozen=True, eq=False)
class AreaPass:
    """Parts that are counted together.

    parts  by their numbers
    """

    of: AreaParts
    parts: range

    @cached_property
    def areas(self) -> AreaRange:
        """All areas of the parts that are subtrees."""
        tree, level = self.of.plan.workload.tree, self.of.level
        subtrees = [self.of.areas[part] for part in self.parts if part or not level]
        start, stop = subtrees[0].slices[0].start, subtrees[-1].slices[0].stop
        return AreaRange.within(tree, level, start, stop, int(np.max(self.of.depths)))

    @cached_property
    def _depths(self) -> list[int]:
        """The levels down to which is counted within the subtrees."""
        return sorted({depth for _, depth in self.of.sets if depth >= self.of.level})

    @cached_property
    def cuts(self) -> AreaCuts:
        """First by the areas above all subtrees, if there are any, then down to each depth.

        Of several passes each counts by all areas down to the subtrees last: there they must agree,
        or a record that was moved meanwhile would be in two subtrees.
        """
        level, tree = self.of.level, self.of.plan.workload.tree
        cuts = [AreaCut(self.of.areas[0])] if level else []
        if not level or self.parts.stop > 1:
            cuts += [AreaCut(self.areas.down_to(depth + 1 - level)) for depth in self._depths]
        if len(self.of.passes) > 1:
            cuts.append(AreaCut(AreaRange.within(tree, 0, 0, 1, level)))
        return AreaCuts(tree, tuple(cuts))

    def cuts_of(self, part: int) -> range:
        """By which cuts a part is counted."""
        first = 1 if self.of.level else 0
        return range(1) if part < first else range(first, first + len(self._depths))

    def cut(self, part: int, attributes: AttributeIndices) -> int:
        """By which of them its counts on some attributes are."""
        if part == 0 and self.of.level:
            return 0
        wanted = set(attributes)
        depth = next(depth for larger, depth in self.of.sets if wanted.issubset(larger))
        return self.cuts_of(part)[self._depths.index(depth)]

    @cached_property
    def tables(self) -> Sequence[Sequence[int]]:
        """Sets of attributes, each with a cut: with every attribute, but of a subtree alone."""
        first, tables = len(self.of.plan.domain), []
        if 0 in self.parts or not self.of.alone:
            tables += [(index, first) for index in self.of.plan.attribute_indices]
            if self.of.level:
                tables += [(*attributes, first) for attributes, _ in self.of.sets]
            if len(self.of.passes) > 1:
                tables.append((first + len(self.cuts.cuts) - 1,))
        if not self.of.level or self.parts.stop > 1:
            tables += [
                (*attributes, first + self.cut(self.parts[-1], attributes))
                for attributes, depth in self.of.sets
                if depth >= self.of.level
            ]
        return tables
