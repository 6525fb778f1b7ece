"""Of which attributes there are whole counts on each level, and what is known of them there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from math import prod

import numpy as np

from rpexplore.domain.domain import AttributeIndices
from rpexplore.errors import ReleaseError

MOST_CELLS = 1_000_000


@dataclass(frozen=True, eq=False)
class AreaCells:
    """The tables of which all tables of an area are margins, level by level.

    On each level they have the attributes that are asked for there or further down, so that the
    counts of the parts of an area add up to a margin of the area's.

    sizes       how many values each attribute has, more than one where it is in a table
    attributes  those of the table of each level, ascending; those of a level are among those above
    known       the residuals, by their attributes, to which all areas of a level have answers
    possible    bool[n_cells of the top]: where there may be records
    """

    sizes: tuple[int, ...]
    attributes: tuple[AttributeIndices, ...]
    known: tuple[frozenset[AttributeIndices], ...]
    possible: np.ndarray

    def shape(self, level: int) -> tuple[int, ...]:
        """Of the table of an area."""
        return tuple(self.sizes[index] for index in self.attributes[level])

    def margins(self, counts: np.ndarray, level: int) -> np.ndarray:
        """Counts on a level summed to the cells of the level below, [n_areas, n_cells]."""
        return self.margin_on(counts, level, self.attributes[level + 1])

    def margin_on(self, counts: np.ndarray, level: int, attributes: AttributeIndices) -> np.ndarray:
        """Counts on a level summed to the cells of some attributes, [n_areas, n_cells]."""
        axes = tuple(
            axis
            for axis, index in enumerate(self.attributes[level], start=1)
            if index not in attributes
        )
        shaped = counts.reshape(len(counts), *self.shape(level))
        return shaped.sum(axis=axes, dtype=np.int64).reshape(len(counts), -1)

    @cached_property
    def stages(self) -> list[tuple[int, ...]]:
        """Of each level how many cells the tables have that are made one after another.

        From the total on, each has the attributes of the one before and one more, that of the
        fewest values, as long as there are answers to all of the table; the last has all
        attributes. They are margins of the table as `in_stages` makes it, on its first axes.
        """
        found = []
        for level, order in enumerate(self._orders):
            sizes = [1]
            for count in range(1, len(order)):
                if not self._is_known(level, order[:count]):
                    break
                sizes.append(sizes[-1] * self.sizes[order[count - 1]])
            if order:
                sizes.append(prod(self.shape(level)))
            found.append(tuple(sizes))
        return found

    def in_stages(self, values: np.ndarray, level: int) -> np.ndarray:
        """Tables of a level with the attributes in the order of `stages`, [n_areas, n_cells]."""
        axes = [self.attributes[level].index(each) + 1 for each in self._orders[level]]
        shaped = values.reshape(len(values), *self.shape(level))
        return shaped.transpose(0, *axes).reshape(len(values), -1)

    def from_stages(self, values: np.ndarray, level: int) -> np.ndarray:
        """Tables with attributes in the order of `stages` as all others, [n_areas, n_cells]."""
        order = self._orders[level]
        axes = [order.index(each) + 1 for each in self.attributes[level]]
        shaped = values.reshape(len(values), *(self.sizes[each] for each in order))
        return shaped.transpose(0, *axes).reshape(len(values), -1)

    @cached_property
    def _orders(self) -> list[AttributeIndices]:
        """The attributes of each level in the order in which `stages` add them."""
        orders = []
        for level, attributes in enumerate(self.attributes):
            order: AttributeIndices = ()
            while left := [each for each in attributes if each not in order]:
                known = [each for each in left if self._is_known(level, (*order, each))]
                order = (*order, min(known or left, key=lambda each: self.sizes[each]))
            orders.append(order)
        return orders

    def _is_known(self, level: int, attributes: AttributeIndices) -> bool:
        """Whether there are answers to all of a table."""
        return all(each in self.known[level] for each in subsets_of(tuple(sorted(attributes))))

    @cached_property
    def _unknown(self) -> list[list[AttributeIndices]]:
        return [
            [each for each in subsets_of(attributes) if each not in known]
            for attributes, known in zip(self.attributes, self.known, strict=True)
        ]

    def has_unknown(self, level: int) -> bool:
        """Whether the answers on a level leave some of the table's residuals open."""
        return bool(self._unknown[level])

    def unknown_part(self, level: int, tables: np.ndarray) -> np.ndarray:
        """What the residuals without answers contribute to tables, [n_areas, n_cells] each."""
        shaped = tables.reshape(-1, *self.shape(level))
        found = np.zeros_like(shaped)
        for subset in self._unknown[level]:
            part = shaped
            for axis, index in enumerate(self.attributes[level], start=1):
                mean = part.mean(axis=axis, keepdims=True)
                part = part - mean if index in subset else mean
            found += part
        return found.reshape(tables.shape)


def check_cells(shape: Sequence[int]) -> None:
    """Raise `ReleaseError` for a table of more cells than can be counted in an area."""
    if (n_cells := prod(shape)) > MOST_CELLS:
        raise ReleaseError(
            f"Whole counts need a table of all attributes together, which has {n_cells:,} cells in "
            f"an area; {MOST_CELLS:,} can be counted at most. Plan tables of fewer attributes."
        )


def subsets_of(attributes: AttributeIndices) -> Iterator[AttributeIndices]:
    """All subsets, the empty one first."""
    sizes = range(len(attributes) + 1)
    return chain.from_iterable(combinations(attributes, size) for size in sizes)
