"""Area range: areas of a tree that follow one another, with what lies in them, level by level.

A tree is worked on a range after another where it is too large for the memory.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rpexplore.domain.area_tree import AreaTree


@dataclass(frozen=True, eq=False)
class Families:
    """The areas of a level of a range that have parts, and these parts, by their rows.

    owners   int64[n_owners]
    parts    the rows of all their parts
    first    int64[n_owners]: where the parts of each begin in `parts`
    parents  int64[n_parts]: the row of the area that each is a part of
    """

    owners: np.ndarray
    parts: slice
    first: np.ndarray
    parents: np.ndarray


@dataclass(frozen=True, eq=False)
class AreaRange:
    """Some areas that follow one another on a level, and all within them down to another level.

    tree    the areas
    slices  the areas of each level by their numbers, from the highest on; may be none on lower ones

    A number for each area stands in the order of the levels: this is an area's row.
    """

    tree: AreaTree
    slices: tuple[slice, ...]

    @classmethod
    def within(cls, tree: AreaTree, level: int, start: int, stop: int, last: int) -> "AreaRange":
        """From the areas [start, stop) of a level, by their numbers, down to the level `last`."""
        slices = [slice(start, stop)]
        for _ in range(level, last):
            above = slices[-1]
            ends = [_first_part(tree, area) for area in (above.start, above.stop)]
            slices.append(slice(*ends))
        return cls(tree, tuple(slices))

    @cached_property
    def starts(self) -> np.ndarray:
        """The first row of each level, and how many rows there are: int64[n_levels + 1]."""
        return np.cumsum([0, *(areas.stop - areas.start for areas in self.slices)])

    def __len__(self) -> int:
        return int(self.starts[-1])

    @cached_property
    def areas(self) -> np.ndarray:
        """The number of each row's area, int64[n_rows]."""
        return np.concatenate([np.arange(areas.start, areas.stop) for areas in self.slices])

    def rows(self, level: int) -> slice:
        """The rows of a level, counted from the range's highest."""
        return slice(int(self.starts[level]), int(self.starts[level + 1]))

    def down_to(self, n_levels: int) -> "AreaRange":
        """The same with no more than so many levels; its rows are the first of these."""
        return AreaRange(self.tree, self.slices[:n_levels])

    @cached_property
    def families(self) -> list[Families]:
        """From the highest level down."""
        found = []
        for level, (above, below) in enumerate(zip(self.slices[:-1], self.slices[1:], strict=True)):
            divided = np.flatnonzero(self.tree.n_parts[above] > 0)
            if len(divided):
                start = int(self.starts[level])
                first = self.tree.first_parts[above][divided] - below.start
                parents = start + self.tree.parents[below].astype(np.int64) - above.start
                found.append(Families(start + divided, self.rows(level + 1), first, parents))
        return found

    def add_parts(self, values: np.ndarray) -> None:
        """Add to each area's values those of its parts, with all within them: [n_rows, …]."""
        for family in reversed(self.families):
            values[family.owners] += sums_of_parts(family, values)


def sums_of_parts(family: Families, values: np.ndarray) -> np.ndarray:
    """The sum of the parts of each owner, [n_owners, …], of values [n_rows, …]."""
    return np.add.reduceat(values[family.parts], family.first, axis=0)


def _first_part(tree: AreaTree, area: int) -> int:
    """Where the parts of an area begin, or would; of the number after the last: the end."""
    return int(tree.first_parts[area]) if area < tree.n_areas else tree.n_areas
