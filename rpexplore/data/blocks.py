"""Blocks: fewer and larger sets of attributes than the tables that are wanted, to count by.

The work of counting a table grows with the records, whatever its size, as long as its counts fit
the processor's cache. So several tables are counted as one: a block, from which they follow by
summing. All 455 tables of 3 among 15 attributes of size 10 are in some 80 blocks of 5.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod

import numpy as np

from rpexplore.domain.domain import AttributeIndices


@dataclass(frozen=True)
class Block:
    """Attributes that are counted together, and the tables that are summed from these counts.

    places  ascending
    tables  each on some of these places, ascending
    """

    places: AttributeIndices
    tables: tuple[AttributeIndices, ...]


def maximal(tables: Iterable[Sequence[int]]) -> list[AttributeIndices]:
    """The sets of places that are in no other, each once, ascending; without the empty one."""
    sets = sorted({tuple(sorted(table)) for table in tables} - {()}, key=len, reverse=True)
    # For each place, the sets that it is in, as the bits of a number; the largest sets come first.
    holding: dict[int, bytearray] = {}
    for position, table in enumerate(sets):
        for place in table:
            bits = holding.setdefault(place, bytearray(len(sets) // 8 + 1))
            bits[position // 8] |= 1 << position % 8
    numbers = {place: int.from_bytes(bits, "little") for place, bits in holding.items()}
    return sorted(
        table
        for table in sets
        if len(table) == len(sets[0])
        or reduce(int.__and__, (numbers[place] for place in table)).bit_count() == 1
    )


def blocks(
    tables: Sequence[AttributeIndices], sizes: Sequence[int], most_cells: int
) -> list[Block]:
    """Blocks of at most so many cells that the tables follow from, each from one of them.

    tables: no set in another. A larger table is a block of its own. Greedy, a heuristic: from one
    table, the attribute is added that brings most others for its size, while there is room.
    """
    cells = [prod(sizes[place] for place in table) for table in tables]
    cover = _Cover(tables, sizes)
    found = []
    for seed in sorted(range(len(tables)), key=lambda table: -cells[table]):
        if not cover.open[seed]:
            continue
        if 2 * cells[seed] > most_cells:  # no room for another attribute that matters
            cover.open[seed] = False
            found.append(Block(tables[seed], (tables[seed],)))
        else:
            found.append(cover.block(seed, most_cells))
    return found


class _Cover:
    """Which tables are in no block yet, and what an attribute would bring to a growing block.

    Of tables that are in a block, nothing is kept up to date.
    """

    def __init__(self, tables: Sequence[AttributeIndices], sizes: Sequence[int]) -> None:
        self._tables, self._sizes = tables, np.array(sizes, dtype=np.int64)
        self._worth = 1 / np.log(np.maximum(self._sizes, 1.01))
        self.open = np.ones(len(tables), dtype=bool)
        self._lacking = np.array([len(table) for table in tables])  # places outside the block
        self._sums = np.array([sum(table) for table in tables])  # of these places
        self._alone = np.flatnonzero(self._lacking == 1)
        members: list[list[int]] = [[] for _ in sizes]
        for position, table in enumerate(tables):
            for place in table:
                members[place].append(position)
        self._with = [np.array(positions, dtype=np.int64) for positions in members]

    def block(self, seed: int, most_cells: int) -> Block:
        """A block that holds this table, and as many open ones as its cells allow."""
        places: list[int] = []
        covered: list[int] = []
        alone = self._alone[self.open[self._alone]]
        brings = np.bincount(self._sums[alone], minlength=len(self._sizes)).astype(float)
        add = list(self._tables[seed])
        while add:
            places += add
            for place in add:
                those = self._with[place]
                those = self._with[place] = those[self.open[those]]
                self._lacking[those] -= 1
                self._sums[those] -= place
                covered += those[self._lacking[those] == 0].tolist()
                # Where one place is lacking, the sum of the lacking ones is that place.
                near = self._sums[those[self._lacking[those] == 1]]
                brings += np.bincount(near, minlength=len(brings))
            self.open[covered] = False
            brings[places] = 0
            room = most_cells // prod(self._sizes[places].tolist())
            score = np.where(self._sizes <= room, brings * self._worth, 0)
            best = int(np.argmax(score))
            add = [best] if score[best] > 0 else []
        for place in places:
            self._lacking[self._with[place]] += 1
            self._sums[self._with[place]] += place
        return Block(tuple(sorted(places)), tuple(self._tables[table] for table in covered))


def summed_tables(
    block: Block, counts: np.ndarray
) -> Iterator[tuple[AttributeIndices, np.ndarray]]:
    """Each table of a block with its counts, one axis a place, from those of the block.

    One attribute is summed away at a time, and what is left serves all tables without it.
    """
    return _summed(counts, block.places, list(block.tables))


def _summed(
    counts: np.ndarray, places: AttributeIndices, tables: list[AttributeIndices]
) -> Iterator[tuple[AttributeIndices, np.ndarray]]:
    smaller = [table for table in tables if table != places]
    if len(smaller) < len(tables):
        yield places, counts
    while smaller:
        lacking = [sum(place not in table for table in smaller) for place in places]
        axis = lacking.index(max(lacking))
        without = [table for table in smaller if places[axis] not in table]
        left = places[:axis] + places[axis + 1 :]
        yield from _summed(counts.sum(axis=axis), left, without)
        smaller = [table for table in smaller if places[axis] in table]
