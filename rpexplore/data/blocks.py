"""Blocks: fewer and larger sets of attributes than the tables that are wanted, to count by.

The work of counting a table grows with the records, whatever its size, as long as its counts fit
the processor's cache. So several tables are counted as one: a block, from which they follow by
summing. All 455 tables of 3 among 15 attributes of size 10 are in some 80 blocks of 5.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from math import prod

import numpy as np

from rpexplore.data.source import holding_sets
from rpexplore.domain.amounts import amounts_in
from rpexplore.domain.domain import AttributeIndices

# A sum along an axis: counts that are many, and values that are few.
_MANY, _SHORT = 1 << 14, 32


@dataclass(frozen=True)
class Block:
    """Attributes that are counted together, and the tables that are summed from these counts.

    attribute_indices  ascending
    tables             each on some of these attributes, ascending
    """

    attribute_indices: AttributeIndices
    tables: tuple[AttributeIndices, ...]


def maximal(tables: Iterable[Sequence[int]]) -> list[AttributeIndices]:
    """The tables that are in no other, each once, ascending; without the one of no attribute."""
    sets = sorted({tuple(sorted(table)) for table in tables} - {()}, key=len, reverse=True)
    holding = holding_sets(sets)
    return sorted(
        table
        for table in sets
        if len(table) == len(sets[0])
        or reduce(int.__and__, (holding[index] for index in table)).bit_count() == 1
    )


def blocks(
    tables: Sequence[AttributeIndices], sizes: Sequence[int], most_cells: int
) -> list[Block]:
    """Blocks of at most so many cells that the tables follow from, each from one of them.

    tables: no set in another. A larger table is a block of its own. Greedy, a heuristic: from one
    table, the attribute is added that brings most others for its size, while there is room.
    """
    cells = [prod(sizes[index] for index in table) for table in tables]
    cover = _Cover(tables, sizes)
    used = {sizes[index] for table in tables for index in table}
    least = max(min(used, default=1), 2)
    chosen = []
    for seed in sorted(range(len(tables)), key=lambda table: -cells[table]):
        if not cover.open[seed]:
            continue
        if least * cells[seed] > most_cells:  # no room for another attribute that matters
            cover.open[seed] = False
            chosen.append(Block(tables[seed], (tables[seed],)))
        else:
            chosen.append(cover.block(seed, most_cells))
    return chosen


class _Cover:
    """Which tables are in no block yet, and what an attribute would bring to a growing block.

    Of tables that are in a block, nothing is kept up to date.
    """

    def __init__(self, tables: Sequence[AttributeIndices], sizes: Sequence[int]) -> None:
        self._tables, self._sizes = tables, np.array(sizes, dtype=np.int64)
        self._worth = 1 / np.log(np.maximum(self._sizes, 1.01))
        self.open = np.ones(len(tables), dtype=bool)
        self._n_lacking = np.array([len(table) for table in tables])  # attributes outside the block
        self._sums = np.array([sum(table) for table in tables])  # of their indices
        self._alone = np.flatnonzero(self._n_lacking == 1)
        members: list[list[int]] = [[] for _ in sizes]
        for position, table in enumerate(tables):
            for index in table:
                members[index].append(position)
        self._with = [np.array(positions, dtype=np.int64) for positions in members]

    def block(self, seed: int, most_cells: int) -> Block:
        """A block that holds this table, and as many open ones as its cells allow."""
        indices: list[int] = []
        covered: list[int] = []
        alone = self._alone[self.open[self._alone]]
        brings = np.bincount(self._sums[alone], minlength=len(self._sizes)).astype(float)
        add = list(self._tables[seed])
        while add:
            indices += add
            for index in add:
                those = self._with[index]
                those = self._with[index] = those[self.open[those]]
                self._n_lacking[those] -= 1
                self._sums[those] -= index
                covered += those[self._n_lacking[those] == 0].tolist()
                # Where one attribute is lacking, the sum of the lacking indices is its own.
                near = self._sums[those[self._n_lacking[those] == 1]]
                brings += np.bincount(near, minlength=len(brings))
            self.open[covered] = False
            brings[indices] = 0
            room = most_cells // prod(self._sizes[indices].tolist())
            score = np.where(self._sizes <= room, brings * self._worth, 0)
            best = int(np.argmax(score))
            add = [best] if score[best] > 0 else []
        for index in indices:
            self._n_lacking[self._with[index]] += 1
            self._sums[self._with[index]] += index
        return Block(tuple(sorted(indices)), tuple(self._tables[table] for table in covered))


def blocks_by_amount(
    tables: Sequence[AttributeIndices],
    sizes: Sequence[int],
    most_cells: int,
    ranges: Mapping[int, int],
) -> list[Block]:
    """`blocks` of the tables without amounts, and of those with the same ones.

    So sums are made for tables that want them. ranges: of `Counts`
    """
    groups: dict[AttributeIndices, list[AttributeIndices]] = {}
    for table in tables:
        groups.setdefault(amounts_in(table, ranges), []).append(table)
    return [block for group in groups.values() for block in blocks(group, sizes, most_cells)]


def summed_tables(
    block: Block, counts: np.ndarray
) -> Iterator[tuple[AttributeIndices, np.ndarray]]:
    """Each table of a block with its counts, one axis an attribute, from those of the block.

    counts: of a type that holds their sum
    """
    axes = {index: axis for axis, index in enumerate(block.attribute_indices)}
    tables = tuple(tuple(axes[index] for index in table) for table in block.tables)
    yield from _sums(_order_of_sums(len(axes), tables), block.tables, counts)


@dataclass(frozen=True)
class _Sum:
    """Counts by some axes, and what is summed from them.

    table    which table they are; None for none
    smaller  the axis that is summed away for each further sum
    """

    table: int | None
    smaller: tuple[tuple[int, "_Sum"], ...]


@lru_cache(maxsize=256)
def _order_of_sums(n_axes: int, tables: tuple[tuple[int, ...], ...]) -> _Sum:
    """How the tables, each by its axes of a block, follow from its counts.

    One axis is summed away at a time, and what is left serves all tables without it. Thousands of
    blocks are alike in this, with one order for all.
    """

    def order(axes: tuple[int, ...], wanted: list[int]) -> _Sum:
        own = next((table for table in wanted if tables[table] == axes), None)
        wanted = [table for table in wanted if table != own]
        smaller = []
        while wanted:
            n_without = [sum(axis not in tables[table] for table in wanted) for axis in axes]
            place = n_without.index(max(n_without))
            without = [table for table in wanted if axes[place] not in tables[table]]
            smaller.append((place, order(axes[:place] + axes[place + 1 :], without)))
            wanted = [table for table in wanted if axes[place] in tables[table]]
        return _Sum(own, tuple(smaller))

    return order(tuple(range(n_axes)), list(range(len(tables))))


def _sums(
    order: _Sum, tables: Sequence[AttributeIndices], counts: np.ndarray
) -> Iterator[tuple[AttributeIndices, np.ndarray]]:
    if order.table is not None:
        yield tables[order.table], counts
    for axis, smaller in order.smaller:
        yield from _sums(smaller, tables, _without_axis(counts, axis))


def _without_axis(counts: np.ndarray, axis: int) -> np.ndarray:
    """The sum along an axis, in the type of the counts."""
    behind = prod(counts.shape[axis + 1 :])
    if counts.size < _MANY or max(behind, counts.shape[axis]) > _SHORT:
        return np.add.reduce(counts, axis=axis, dtype=counts.dtype)
    # NumPy's loop over what is behind the axis is too short here to pay: three times as slow.
    slices = np.moveaxis(counts, axis, 0)
    total = slices[0].copy()
    for some in slices[1:]:
        total += some
    return total
