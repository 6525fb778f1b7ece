"""The levels of an attribute as axes of a table of cells, of which all its levels are margins."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import numpy as np

from rpexplore.common.numbers import read_only
from rpexplore.planning.mechanism.levels import Block, LevelTree
from rpexplore.planning.mechanism.strategy import Strategy

Direction = tuple[int | None, np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class LevelAxes:
    """An axis for each level of a tree: which child of its group on the level above a group is.

    So the cells of the first axes are the groups of a level, and a table summed over further axes
    is one of a coarser level. As groups have different numbers of children, there are cells of no
    group, where nobody is.

    first       the number of the first axis; those of the others follow
    strategies  by the numbers of blocks; without one, shares are even
    """

    tree: LevelTree
    first: int
    strategies: Mapping[int, Strategy]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Of each axis the largest number of children."""
        return tuple(int(places.max()) + 1 for places in self._among_children)

    @property
    def numbers(self) -> range:
        """The numbers of the axes."""
        return range(self.first, self.first + len(self.sizes))

    def n_cells(self, depth: int) -> int:
        """Of the first axes."""
        return prod(self.sizes[:depth])

    def depth_in(self, axes: tuple[int, ...]) -> int:
        """How many of the axes are among these; the first so many, as they are added in order."""
        return sum(number in self.numbers for number in axes)

    def depth_of(self, attribute: int) -> int:
        """How many axes a table with this attribute needs."""
        return self.tree.of_tables[attribute][0] + 1

    @cached_property
    def _among_children(self) -> list[np.ndarray]:
        """Of each level which child of its group on the level above each group is."""
        found = []
        for parents in self.tree.parents:
            order = np.argsort(parents, kind="stable")
            first = np.searchsorted(parents[order], parents[order])
            places = np.empty(len(parents), dtype=np.int64)
            places[order] = np.arange(len(parents)) - first
            found.append(places)
        return found

    def cells(self, depth: int) -> np.ndarray:
        """The cell of the first axes that each group of their last level is: int64[n_groups]."""
        found = np.zeros(1, dtype=np.int64)
        for parents, places, size in zip(
            self.tree.parents[:depth], self._among_children, self.sizes, strict=False
        ):
            found = found[parents] * size + places
        return found

    def places(self, depth: int, values: Mapping[int, np.ndarray]) -> np.ndarray:
        """Cells of the first axes, from the values of axes by their numbers: int64[n]."""
        found = np.zeros(1, dtype=np.int64)
        for number, size in zip(self.numbers[:depth], self.sizes, strict=False):
            found = found * size + values[number]
        return found

    def values(self, attribute: int) -> np.ndarray:
        """The value of an attribute of tables in the cells that it needs; −1 where no group is."""
        level, index = self.tree.of_tables[attribute]
        found = np.full(self.n_cells(level + 1), -1)
        found[self.cells(level + 1)] = index
        return read_only(found)

    def at(self, depth: int) -> LevelTree:
        """The tree with the groups of a level as values of an attribute.

        It has the number of the last axis.
        """
        groups = np.arange(self.tree.sizes[depth - 1])
        return replace(self.tree, of_tables={self.first + depth - 1: (depth - 1, groups)})

    def summed(
        self, numbers: np.ndarray, axis: int, depth: int, blocks: Mapping[int, Block]
    ) -> np.ndarray:
        """Numbers for the column's values along an axis, summed to cells: float64.

        blocks: by their numbers
        """
        found = np.zeros((self.n_cells(depth), *np.moveaxis(numbers, axis, 0).shape[1:]))
        np.add.at(found, self._cells_of_values(depth, blocks), np.moveaxis(numbers, axis, 0))
        return np.moveaxis(found, 0, axis)

    def _cells_of_values(self, depth: int, blocks: Mapping[int, Block]) -> np.ndarray:
        """The cell of each value of the column, int64[n_values]."""
        some = blocks[self.tree.numbers[0]].index_of_values
        group = np.zeros(len(some), dtype=np.int64)
        for parents, of_level in zip(self.tree.parents[:depth], self.tree.blocks, strict=False):
            only = np.zeros(int(parents.max()) + 1, dtype=np.int64)
            only[parents] = np.arange(len(parents))  # of a group that is not split
            below = only[group]
            for number, groups in of_level:
                index = blocks[number].index_of_values
                below[index >= 0] = groups[index[index >= 0]]
            group = below
        return self.cells(depth)[group]

    def numbers_within(self, depth: int) -> list[int]:
        """The numbers of the blocks that tables of the first axes need."""
        return [number for of_level in self.tree.blocks[:depth] for number, _ in of_level]

    def shares(self, depth: int) -> np.ndarray:
        """Which share of the total each cell gets where nothing else is known: float64[n_cells]."""
        found = np.zeros(self.n_cells(depth))
        found[self.cells(depth)] = self._shares_within(0, np.zeros(1, dtype=np.int64), depth)[:, 0]
        return found

    def directions(self, depth: int) -> list[Direction]:
        """What is told of the cells: of the total (None) and of each block, by its number.

        With it R float64[n_rows, n_cells], which is measured, and D float64[n_cells, n_rows], which
        makes the cells of it: all D R together are the identity of cells where somebody can be.
        """
        if depth not in self._directions:
            self._directions[depth] = list(self._directions_of(depth))
        return self._directions[depth]

    @cached_property
    def _directions(self) -> dict[int, list[Direction]]:
        return {}

    def _directions_of(self, depth: int) -> Iterator[Direction]:
        cells = self.cells(depth)
        total = np.zeros((1, self.n_cells(depth)))
        total[:, cells] = 1.0
        yield None, total, self.shares(depth)[:, None]
        for level in range(depth):
            above = np.arange(len(cells))  # the group of this level that each of the last is in
            for parents in self.tree.parents[level + 1 : depth][::-1]:
                above = parents[above]
            for number, groups in self.tree.blocks[level]:
                strategy = self.strategies.get(number)
                if strategy is None:
                    measured = decoding = np.eye(len(groups)) - 1 / len(groups)
                else:
                    measured, decoding = strategy.matrix, strategy.decoding
                place = np.full(self.tree.sizes[level], -1)
                place[groups] = np.arange(len(groups))
                inside = place[above] >= 0
                rows = np.zeros((len(measured), self.n_cells(depth)))
                rows[:, cells[inside]] = measured[:, place[above[inside]]]
                columns = np.zeros((self.n_cells(depth), len(measured)))
                columns[cells] = self._shares_within(level + 1, groups, depth) @ decoding
                yield number, rows, columns

    def _shares_within(self, level: int, groups: np.ndarray, depth: int) -> np.ndarray:
        """Which share of some groups those of the last of the levels get: float64[n, n_groups].

        level: below the one that the groups are of
        """
        n_groups = self.tree.sizes[level - 1] if level else 1
        found = np.zeros((n_groups, len(groups)))
        found[groups, np.arange(len(groups))] = 1.0
        of_levels = self.tree.shares(self.strategies)
        for parents, shares in zip(
            self.tree.parents[level:depth], of_levels[level:depth], strict=True
        ):
            found = found[parents] * shares[:, None]
        return found
