"""The cells of areas with whole counts on each level, and the unbiased answers to them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import prod

import numpy as np

from rpexplore.common.numbers import matrix_along
from rpexplore.common.text import describe_count
from rpexplore.domain.domain import AttributeIndices, Domain, subsets
from rpexplore.errors import ReleaseError
from rpexplore.estimation.table_map import largest
from rpexplore.planning.areas.area_design import AreaDesign
from rpexplore.planning.mechanism.levels import Block
from rpexplore.planning.mechanism.reconstruction import marginal
from rpexplore.planning.mechanism.strategy import Strategy
from rpexplore.releases.area_measurement import AreaAnswers, PartAnswers
from rpexplore.results.estimates.level_axes import LevelAxes

# ---- Of which attributes there are whole counts on each level, and what is known of them there.


MOST_CELLS = 1_000_000


@dataclass(frozen=True, eq=False)
class AreaCells:
    """The tables of which all tables of an area are margins, level by level.

    On each level they have the attributes that are asked for there or further down, so that the
    counts of the parts of an area add up to a margin of the area's. An attribute that tables have
    at several levels is there by an axis for each level that is needed, coarsest first.

    sizes       how many values each attribute has, more than one where it is in a table, and axis
    attributes  those of the table of each level, or axes, ascending; those of a level are among
                those above
    known       the residuals, by their attributes, to which all areas of a level have answers
    possible    bool[n_cells of the top]: where there may be records
    exact       the residuals that are exact in the top area
    levels      of each attribute that tables have at several levels
    """

    sizes: tuple[int, ...]
    attributes: tuple[AttributeIndices, ...]
    known: tuple[frozenset[AttributeIndices], ...]
    possible: np.ndarray
    exact: frozenset[AttributeIndices] = frozenset()
    levels: tuple[LevelAxes, ...] = ()

    def shape(self, level: int) -> tuple[int, ...]:
        """Of the table of an area."""
        return tuple(self.sizes[index] for index in self.attributes[level])

    def plain(self, axes: AttributeIndices) -> list[int]:
        """Those of some axes that are attributes themselves."""
        of_levels = {number for levels in self.levels for number in levels.numbers}
        return [index for index in axes if index not in of_levels]

    def levels_in(self, axes: AttributeIndices) -> list[tuple[LevelAxes, int]]:
        """The attributes at levels that some axes have, and how many axes each has there."""
        depths = [(levels, levels.depth_in(axes)) for levels in self.levels]
        return [(levels, depth) for levels, depth in depths if depth]

    def axes_of(self, attributes: AttributeIndices) -> frozenset[int]:
        """The axes that a table with these attributes needs."""
        found: set[int] = set()
        for index in attributes:
            levels = self._levels_of.get(index)
            found |= {index} if levels is None else set(levels.numbers[: levels.depth_of(index)])
        return frozenset(found)

    def has(self, level: int, attributes: AttributeIndices) -> bool:
        """Whether a table with these attributes is a margin of a level's."""
        return self.axes_of(attributes) <= set(self.attributes[level])

    @cached_property
    def _levels_of(self) -> dict[int, LevelAxes]:
        """By the attributes of tables."""
        return {index: levels for levels in self.levels for index in levels.tree.of_tables}

    @cached_property
    def of_records(self) -> AttributeIndices:
        """The attributes of tables that the cells of the top tell, ascending."""
        axes = self.attributes[0]
        told = [index for index in self._levels_of if self.has(0, (index,))]
        return tuple(sorted([*self.plain(axes), *told]))

    def values(self, level: int, codes: np.ndarray) -> dict[int, np.ndarray]:
        """The value of each axis of a level's table in some cells, by axis: int64[n]."""
        shape = self.shape(level)  # NumPy knows no cell of a table without attributes
        found = np.unravel_index(codes, shape) if shape else ()
        return dict(zip(self.attributes[level], found, strict=True))

    def values_of(
        self, level: int, codes: np.ndarray, attributes: AttributeIndices
    ) -> list[np.ndarray]:
        """The value of each of some attributes of tables in some cells: int64[n]."""
        values, found = self.values(level, codes), []
        for index in attributes:
            levels = self._levels_of.get(index)
            if levels is None:
                found.append(values[index])
                continue
            places = levels.places(levels.depth_of(index), values)
            found.append(levels.values(index)[places])
        return found

    def margins(self, counts: np.ndarray, level: int) -> np.ndarray:
        """Counts on a level summed to the cells of the level below, [n_areas, n_cells]."""
        return self._summed(counts, level, frozenset(self.attributes[level + 1]))

    def _summed(self, counts: np.ndarray, level: int, kept: frozenset[int]) -> np.ndarray:
        axes = tuple(
            axis for axis, index in enumerate(self.attributes[level], start=1) if index not in kept
        )
        shaped = counts.reshape(len(counts), *self.shape(level))
        kind = np.float64 if counts.dtype.kind == "f" else np.int64
        return shaped.sum(axis=axes, dtype=kind).reshape(len(counts), -1)

    def margin_on(self, counts: np.ndarray, level: int, attributes: AttributeIndices) -> np.ndarray:
        """Counts on a level summed to a table of some attributes, [n_areas, n_cells].

        attributes: ascending, at any of the levels that the cells have
        """
        attributes = tuple(index for index in attributes if self.sizes[index] > 1)
        summed = self._summed(counts, level, self.axes_of(attributes))
        at_levels = [index for index in attributes if index in self._levels_of]
        if not at_levels:
            return summed
        # Attributes at levels follow the others; their cells become values, one after another.
        at_levels.sort(key=lambda index: self._levels_of[index].first)
        order = [*(index for index in attributes if index not in self._levels_of), *at_levels]
        sizes = [
            self.sizes[index] if levels is None else levels.n_cells(levels.depth_of(index))
            for index, levels in ((index, self._levels_of.get(index)) for index in order)
        ]
        shaped = summed.reshape(len(counts), *sizes)
        for axis, index in enumerate(order, start=1):
            if (levels := self._levels_of.get(index)) is not None:
                values = levels.values(index)
                cells = np.argsort(values, kind="stable")[np.count_nonzero(values < 0) :]
                first = np.searchsorted(values[cells], np.arange(self.sizes[index]))
                shaped = np.add.reduceat(shaped.take(cells, axis), first, axis)
        axes = [order.index(index) + 1 for index in attributes]
        return shaped.transpose(0, *axes).reshape(len(counts), -1)

    def from_contributions(
        self,
        level: int,
        contributions: Mapping[AttributeIndices, np.ndarray],
        strategies: Mapping[int, Strategy],
    ) -> np.ndarray:
        """The tables of areas of a level, [n_areas, n_cells], from all their residuals.

        contributions: as `reconstruction.contribution` makes them, a stack of areas each
        """
        axes = self.attributes[level]
        at_levels = self.levels_in(axes)
        trees = [levels.at(depth) for levels, depth in at_levels]
        sizes = np.array(self.sizes)
        for tree, (levels, depth) in zip(trees, at_levels, strict=True):
            sizes[levels.numbers[depth - 1]] = tree.sizes[depth - 1]
        attributes = [
            *self.plain(axes),
            *(levels.numbers[depth - 1] for levels, depth in at_levels),
        ]
        found = marginal(attributes, sizes, contributions, strategies, trees)
        for axis, (levels, depth) in enumerate(at_levels, start=found.ndim - len(trees)):
            shape = *found.shape[:axis], levels.n_cells(depth), *found.shape[axis + 1 :]
            with_all = np.zeros(shape)  # 0 in cells of no group
            np.moveaxis(with_all, axis, 0)[levels.cells(depth)] = np.moveaxis(found, axis, 0)
            found = with_all
        return found.reshape(len(found), -1)

    def shares(self, level: int) -> np.ndarray:
        """How a total is spread over the cells of a level's table if nothing else changes.

        float64[n_cells], sum 1: evenly, or by the shares that levels are measured with
        """
        axes = self.attributes[level]
        found = np.ones(())
        for index in self.plain(axes):
            found = np.multiply.outer(found, np.full(self.sizes[index], 1 / self.sizes[index]))
        for levels, depth in self.levels_in(axes):
            found = np.multiply.outer(found, levels.shares(depth))
        return found.ravel()

    @cached_property
    def stages(self) -> list[tuple[int, ...]]:
        """Of each level how many cells the tables have that are made one after another.

        From the total on, each has the axes of the one before and one more, that of the fewest
        values, as long as there are answers to all of the table; the last has all axes. What is
        exact in the top area comes first there, to be kept. They are margins of the table as
        `in_stages` makes it, on its first axes.
        """
        found = []
        for level, order in enumerate(self.orders):
            sizes = [1]
            for count in range(1, len(order)):
                if not self.is_known(level, order[:count]):
                    break
                sizes.append(sizes[-1] * self.sizes[order[count - 1]])
            if order:
                sizes.append(prod(self.shape(level)))
            found.append(tuple(sizes))
        return found

    def in_stages(self, values: np.ndarray, level: int) -> np.ndarray:
        """Tables of a level with the axes in the order of `stages`, [n_areas, n_cells]."""
        axes = [self.attributes[level].index(each) + 1 for each in self.orders[level]]
        shaped = values.reshape(len(values), *self.shape(level))
        return shaped.transpose(0, *axes).reshape(len(values), -1)

    def from_stages(self, values: np.ndarray, level: int) -> np.ndarray:
        """Tables with axes in the order of `stages` as all others, [n_areas, n_cells]."""
        order = self.orders[level]
        axes = [order.index(each) + 1 for each in self.attributes[level]]
        shaped = values.reshape(len(values), *(self.sizes[each] for each in order))
        return shaped.transpose(0, *axes).reshape(len(values), -1)

    @cached_property
    def orders(self) -> list[AttributeIndices]:
        """The axes of each level in the order in which `stages` add them."""
        orders = []
        for level, attributes in enumerate(self.attributes):
            order: AttributeIndices = ()
            while len(order) < len(attributes):
                left = [each for each in attributes if self._is_next(each, order)]
                known = [each for each in left if self.is_known(level, (*order, each))]
                if level == 0:
                    known = [each for each in known if self.is_exact((*order, each))] or known
                order = (*order, min(known or left, key=lambda each: self.sizes[each]))
            orders.append(order)
        return orders

    def _is_next(self, axis: int, order: AttributeIndices) -> bool:
        """Whether an axis can follow others: of an attribute's levels a finer one comes later."""
        of_levels = [levels for levels in self.levels if axis in levels.numbers]
        first = of_levels[0].first if of_levels else axis
        return axis not in order and all(each in order for each in range(first, axis))

    def are_tables(self, axes: AttributeIndices) -> bool:
        """Whether no axis of an attribute's levels is there without the coarser ones."""
        return all(
            set(levels.numbers[:depth]) <= set(axes) for levels, depth in self.levels_in(axes)
        )

    def residuals_of(self, axes: AttributeIndices) -> Iterator[AttributeIndices]:
        """The residuals of a table with these axes, the total first."""
        choices: list[tuple[int | None, ...]] = [
            *((None, index) for index in self.plain(axes)),
            *((None, *levels.numbers_within(depth)) for levels, depth in self.levels_in(axes)),
        ]
        for chosen in product(*choices):
            yield tuple(sorted(index for index in chosen if index is not None))

    def is_known(self, level: int, axes: AttributeIndices) -> bool:
        """Whether there are answers to all of a table."""
        return all(each in self.known[level] for each in self.residuals_of(axes))

    def is_exact(self, axes: AttributeIndices) -> bool:
        """Whether all of a table is exact in the top area."""
        return bool(self.exact) and all(each in self.exact for each in self.residuals_of(axes))

    @cached_property
    def _unknown(self) -> list[list[AttributeIndices]]:
        return [
            [each for each in self.residuals_of(axes) if each not in known]
            for axes, known in zip(self.attributes, self.known, strict=True)
        ]

    def has_unknown(self, level: int) -> bool:
        """Whether the answers on a level leave some of the table's residuals open."""
        return bool(self._unknown[level])

    def unknown_part(self, level: int, tables: np.ndarray) -> np.ndarray:
        """What the residuals without answers contribute to tables, [n_areas, n_cells] each."""
        axes = self.attributes[level]
        plain = self.plain(axes)
        sizes = [levels.n_cells(depth) for levels, depth in self.levels_in(axes)]
        shaped = tables.reshape(-1, *(self.sizes[index] for index in plain), *sizes)
        found = np.zeros_like(shaped, dtype=float)
        for subset in self._unknown[level]:
            part = shaped
            for axis, index in enumerate(plain, start=1):
                mean = part.mean(axis=axis, keepdims=True)
                part = part - mean if index in subset else mean
            for axis, of_blocks in enumerate(self._told_by_blocks[level], start=1 + len(plain)):
                number = next((each for each in subset if each in of_blocks), None)
                measured, decoding = of_blocks[number]
                part = matrix_along(decoding, matrix_along(measured, part, axis), axis)
            found += part
        return found.reshape(tables.shape)

    def unknown_in_stages(self, level: int) -> Callable[[np.ndarray], np.ndarray]:
        """`unknown_part` of tables in the order of stages."""

        def of_tables(tables: np.ndarray) -> np.ndarray:
            own = self.unknown_part(level, self.from_stages(tables, level))
            return self.in_stages(own, level)

        return of_tables

    def known_tables_in_stages(self, level: int) -> list[np.ndarray]:
        """The largest tables to which there are answers on a level: the cell that each cell is in.

        int64[n_cells] each, of cells in the order of stages
        """
        shape = self.shape(level)
        codes = np.arange(prod(shape))
        places = dict(zip(self.attributes[level], np.unravel_index(codes, shape), strict=True))
        return [
            self.in_stages(
                np.ravel_multi_index(
                    [places[index] for index in axes], [self.sizes[index] for index in axes]
                )[None],
                level,
            )[0]
            if axes
            else np.zeros(len(codes), dtype=np.int64)
            for axes in self._largest_known(level)
        ]

    def _largest_known(self, level: int) -> list[AttributeIndices]:
        """The axes of the largest tables to which there are answers."""
        return largest(
            each
            for each in subsets(self.attributes[level])
            if self.are_tables(each) and self.is_known(level, each)
        )

    def with_least_structure(self, cells: np.ndarray) -> np.ndarray:
        """Cells ≥ 0 of the top with the same known tables, and no dependence beyond these.

        By iterative fitting, in at most 100 rounds; what is negative in a table is taken for 0.
        """
        if not self.has_unknown(0):
            return cells
        attributes, shape = self.attributes[0], self.shape(0)
        known = self._largest_known(0)
        others = [
            tuple(axis for axis, index in enumerate(attributes) if index not in each)
            for each in known
        ]
        wanted = cells.reshape(shape)
        fitted = self.possible.reshape(shape).astype(float)
        for _ in range(100):
            for axes in others:
                sums = fitted.sum(axis=axes, keepdims=True)
                ratio = np.divide(
                    np.maximum(wanted.sum(axis=axes, keepdims=True), 0.0),
                    sums,
                    np.zeros_like(sums),
                    where=sums > 0,
                )
                fitted = fitted * ratio
        return fitted.ravel()

    @cached_property
    def _told_by_blocks(self) -> list[list[dict[int | None, tuple[np.ndarray, np.ndarray]]]]:
        """By level, of each attribute at levels: what is measured, and what makes cells of it."""
        return [
            [
                {number: (rows, columns) for number, rows, columns in levels.directions(depth)}
                for levels, depth in self.levels_in(axes)
            ]
            for axes in self.attributes
        ]


def check_cells(shape: Sequence[int]) -> None:
    """Raise `ReleaseError` for a table of more cells than can be counted in an area."""
    if (n_cells := prod(shape)) > MOST_CELLS:
        cells = f"{n_cells:,}" if n_cells < 10**15 else describe_count(n_cells)
        raise ReleaseError(
            f"Whole counts need a table of all attributes together, which has {cells} cells in an "
            f"area; {MOST_CELLS:,} can be counted at most. Plan tables of fewer attributes."
        )


# ---- The unbiased answers to the cells of a finished release of tables in areas.


def cells_of(plan: AreaDesign) -> AreaCells:
    """Of which attributes there are whole counts, down to the lowest level with a table.

    Sums of amounts and weighted counts are left aside.

    Raises:
        ReleaseError: If an area down to there has no answer to its total, or there are too many
            cells, or if tables are in other bases than single values, or none counts records.
    """
    workload, tree, closure = plan.workload, plan.workload.tree, plan.closure
    sizes, levels_of = closure.sizes.tolist(), dict[int, LevelAxes]()
    for own in closure.trees:
        axes = LevelAxes(own, len(sizes), closure.strategies)
        sizes += axes.sizes
        levels_of |= dict.fromkeys(own.of_tables, axes)
    is_count = ~workload.tables.has_amounts
    if not is_count.any():
        raise ReleaseError(
            f"Whole counts are made of tables that count records, and all tables of this release "
            f"have {workload.tables.sums_noun}; plan and release tables of counts for them."
        )
    bases = np.unique(workload.tables.attribute_basis_index[is_count])
    attribute_bases = workload.tables.attribute_bases
    if not all(attribute_bases[basis][1].is_identity for basis in bases[bases >= 0].tolist()):
        raise ReleaseError(
            "Whole counts are made of tables of single values, and some tables of this release "
            "are in other bases; plan and release tables of single values for them."
        )
    asked = [
        {int(kind) for kind in np.unique(workload.kinds[tree.level_slice(level)]) if kind >= 0}
        for level in range(len(tree.levels))
    ]
    last = max(level for level, kinds in enumerate(asked) if kinds)
    attributes: list[AttributeIndices] = []
    below: set[int] = set()
    for kinds in reversed(asked[: last + 1]):
        for kind in kinds:
            of_kind = workload.rows[kind]
            members = workload.tables.members[of_kind[is_count[of_kind]]]
            for index in members[members >= 0].tolist():
                if index in levels_of:
                    below |= set(levels_of[index].numbers[: levels_of[index].depth_of(index)])
                elif sizes[index] > 1:
                    below.add(index)
        attributes.insert(0, tuple(sorted(below)))
    known = []
    for level in range(last + 1):
        groups = slice(*plan.groups.starts[level : level + 2].tolist())
        are_known = np.all(plan.residual_variances[:, groups] > 0, axis=1)
        known.append(
            frozenset(plan.closure.attributes(row) for row in np.flatnonzero(are_known).tolist())
        )
        if () not in known[-1]:
            raise ReleaseError(
                "Whole counts need an answer to the total of every area down to the level "
                f"{tree.levels[last]}, but on the level {tree.levels[level]} some have none; plan "
                "totals on all levels down to it."
            )
    check_cells(tuple(sizes[index] for index in attributes[0]))
    in_top = np.flatnonzero(plan.exact_levels[plan.of_residual] > 0).tolist()
    exact = frozenset(closure.attributes(row) for row in in_top)
    cells = AreaCells(
        tuple(sizes), tuple(attributes), tuple(known), np.empty(0), exact,
        tuple(dict.fromkeys(levels_of.values())),
    )  # fmt: skip
    return replace(cells, possible=possible_cells(plan.domain, closure.blocks, cells))


def exact_numbers(plan: AreaDesign, answers: AreaAnswers) -> dict[int, int]:
    """The numbers of records of areas, by their numbers, that a release has without noise."""
    total = plan.closure.find(())
    assert total is not None
    n_levels = int(plan.exact_levels[plan.of_residual[total]])
    if not n_levels:
        return {}
    parts, found = answers.parts, dict[int, int]()
    known = (
        [(answers.of_top, 0)]
        if n_levels <= parts.level + 1
        else ((answers.of_part(part), part) for part in range(len(parts.areas)))
    )
    for estimates, part in known:
        own = estimates.areas.down_to(n_levels - (parts.level if part else 0))
        values = np.rint(estimates.contribution(total, slice(0, len(own))).reshape(-1))
        found |= dict(zip(own.areas.tolist(), values.astype(np.int64).tolist(), strict=True))
    return found


def why_no_whole_counts(plan: AreaDesign) -> str:
    """Why no whole counts can be made of the plan's release, in a sentence; "" where they can."""
    try:
        cells_of(plan)
    except ReleaseError as error:
        return str(error)
    return ""


def possible_cells(domain: Domain, blocks: Mapping[int, Block], cells: AreaCells) -> np.ndarray:
    """Where there may be records by the codebook: bool[n_cells of the top].

    blocks: of levels, by their numbers
    """
    plain = cells.plain(cells.attributes[0])
    at_levels = cells.levels_in(cells.attributes[0])
    columns = [levels.tree.column for levels, _ in at_levels]
    attributes = tuple(sorted([*plain, *columns]))
    found = domain.structural_zeros.possible(attributes)
    if found is None:
        found = np.ones((), dtype=bool)
        for index in plain:
            found = np.multiply.outer(found, np.ones(cells.sizes[index], dtype=bool))
        for levels, depth in at_levels:
            found = np.multiply.outer(found, levels.shares(depth) > 0)
        return found.ravel()
    found = found.transpose([attributes.index(index) for index in [*plain, *columns]])
    for axis, (levels, depth) in enumerate(at_levels, start=len(plain)):
        found = levels.summed(found, axis, depth, blocks) > 0
    return found.ravel()


@dataclass(frozen=True, eq=False)
class PartCells:
    """The answers to cells of a part, by level and areas; what is unknown is 0."""

    cells: AreaCells
    of_part: PartAnswers
    first_level: int

    def __call__(self, level: int, areas: slice) -> np.ndarray:
        own = level - self.first_level
        rows = self.of_part.areas.rows(own)
        start = rows.start + areas.start - self.of_part.areas.slices[own].start
        some = slice(start, start + areas.stop - areas.start)
        axes, closure = self.cells.attributes[level], self.of_part.parts.plan.closure
        contributions: Mapping[AttributeIndices, np.ndarray] = {
            subset: self._contribution(level, subset, some)
            for subset in self.cells.residuals_of(axes)
        }
        return self.cells.from_contributions(level, contributions, closure.strategies)

    def _contribution(self, level: int, subset: AttributeIndices, rows: slice) -> np.ndarray:
        residual = self.of_part.parts.plan.closure.find(subset)
        if residual is None or subset not in self.cells.known[level]:
            sizes = (self.cells.sizes[index] for index in subset)
            return np.zeros((rows.stop - rows.start, *sizes))
        return self.of_part.contribution(residual, rows)
