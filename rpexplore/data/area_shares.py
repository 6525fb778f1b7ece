"""Area shares: subtrees of a tree of areas, each counted and worked on by itself."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from rpexplore.data.area_coding import AreaCuts
from rpexplore.data.counts import Counts
from rpexplore.domain.area_range import AreaRange
from rpexplore.domain.area_tree import AreaTree

Work: TypeAlias = Callable[[int, Counts], Iterator[np.ndarray]]
"""What is made of a share, by its number, and its exact counts: int64[·] each."""


@dataclass(frozen=True, eq=False)
class AreaShare:
    """Areas of one level that follow one another with all that lies in them, and their counts.

    tables  sets of attribute indices, which have the cuts behind the domain's
    """

    areas: AreaRange
    cuts: AreaCuts
    tables: Sequence[Sequence[int]]


@dataclass(frozen=True, eq=False)
class AreaShares:
    """Shares of one level of a tree; no area is in two, and some may be in none."""

    tree: AreaTree
    shares: tuple[AreaShare, ...]

    def __len__(self) -> int:
        return len(self.shares)

    @cached_property
    def of_areas(self) -> np.ndarray:
        """Which share each area of the tree is in, int[n_areas]; −1 for none."""
        tree = self.tree
        found = np.full(tree.n_areas, -1, dtype=np.min_scalar_type(-len(self) - 1))
        for number, share in enumerate(self.shares):
            found[share.areas.slices[0]] = number
        top = int(tree.level_of[self.shares[0].areas.slices[0].start])
        for level in range(top + 1, len(tree.levels)):
            areas = tree.level_slice(level)
            found[areas] = found[tree.parents[areas]]
        return found
