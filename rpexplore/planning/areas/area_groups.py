"""Area groups and profiles: areas, and residuals, that are alike and planned as one."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rpexplore.common.numbers import read_only
from rpexplore.domain.area_tree import AreaTree

# ---- Area groups: parts of an area that are alike in every respect, counted as one.
#
# Areas of one parent that are not divided and asked for the same get the same noise from the best
# plan, so they are one variable with a multiplicity: a country of 8.2 million blocks has as many
# variables as it has block groups, twice.


@dataclass(frozen=True, eq=False)
class Siblings:
    """The parts of all areas of one level that have any.

    groups   the numbers of these parts
    parents  int64[n_groups]: the parent of each
    first    int64[n_parents]: where the parts of each parent begin
    owners   int64[n_parents]: the parents
    """

    groups: slice
    parents: np.ndarray
    first: np.ndarray
    owners: np.ndarray

    @cached_property
    def sizes(self) -> np.ndarray:
        """How many groups the parts of each parent are, int64[n_parents]."""
        return np.diff(self.first, append=len(self.parents))

    @cached_property
    def are_single(self) -> bool:
        """Whether all parts of each parent are one group, as blocks mostly are."""
        return len(self.owners) == len(self.parents)

    def summed(self, of_parts: np.ndarray) -> np.ndarray:
        """The sum over the groups of each parent, float64[n_parents]."""
        return of_parts if self.are_single else np.add.reduceat(of_parts, self.first)

    def repeated(self, of_owners: np.ndarray) -> np.ndarray:
        """The numbers of the parents, repeated for each of their groups, [n_groups]."""
        return of_owners if self.are_single else np.repeat(of_owners, self.sizes)


@dataclass(frozen=True, eq=False)
class AreaGroups:
    """Groups of areas, level by level from the top, in the order of a tree's areas.

    parents       int64[n_groups]: the group that each is a part of (a group of one), −1 for the top
    multiplicity  float64[n_groups]: how many areas of one parent it stands for
    kinds         int64[n_groups]: what is asked for these areas
    starts        int64[n_levels + 1]: the first group of each level, and how many there are
    of_area       int32[n_areas]: the group of each area
    """

    parents: np.ndarray
    multiplicity: np.ndarray
    kinds: np.ndarray
    starts: np.ndarray
    of_area: np.ndarray

    @classmethod
    def of(cls, tree: AreaTree, kinds: np.ndarray) -> "AreaGroups":
        """Of a tree, and what is asked for each area as a number, int[n_areas]."""
        divided = tree.n_parts > 0
        # A group begins where an area is divided, follows a divided one, or differs from its
        # neighbour in parent or workload.
        begins = np.ones(tree.n_areas, dtype=bool)
        begins[1:] = (
            divided[1:]
            | divided[:-1]
            | (tree.parents[1:] != tree.parents[:-1])
            | (kinds[1:] != kinds[:-1])
        )
        # No group crosses levels.
        begins[tree.starts[:-1]] = True
        first = np.flatnonzero(begins)
        of_area = (np.cumsum(begins) - 1).astype(np.int32)
        parents = tree.parents[first].astype(np.int64)
        # From numbers of areas to numbers of groups; −1 of the top stays.
        parents[1:] = of_area[parents[1:]]
        return cls(
            parents=read_only(parents),
            multiplicity=read_only(np.diff(first, append=tree.n_areas).astype(float)),
            kinds=read_only(np.asarray(kinds, dtype=np.int64)[first]),
            starts=read_only(np.searchsorted(first, tree.starts)),
            of_area=read_only(of_area),
        )

    @classmethod
    def single(cls) -> "AreaGroups":
        """Of a single area."""
        zero, one = np.zeros(1, dtype=np.int64), np.ones(1)
        return cls(zero - 1, one, zero, np.array([0, 1]), zero.astype(np.int32))

    def __len__(self) -> int:
        return len(self.parents)

    @cached_property
    def downwards(self) -> list[Siblings]:
        """The groups below the top, level by level."""
        levels = []
        for start, stop in zip(self.starts[1:-1], self.starts[2:], strict=True):
            parents = self.parents[start:stop]
            # Groups of one parent lie side by side, as areas do in a tree.
            first = np.flatnonzero(np.diff(parents, prepend=-1))
            levels.append(Siblings(slice(int(start), int(stop)), parents, first, parents[first]))
        return levels

    def above(self, n_levels: int) -> slice:
        """The groups on the first levels, from the top on."""
        return slice(0, int(self.starts[min(n_levels, len(self.starts) - 1)]))

    def known_exactly(self, n_levels: int) -> np.ndarray:
        """Where numbers known exactly on the first levels are counted: bool[n_groups].

        On the last of these levels, and in areas without parts above it; others are their sums.
        """
        counted = np.zeros(len(self), dtype=bool)
        if n_levels:
            counted[self.undivided] = True
            last = slice(self.above(n_levels - 1).stop, self.above(n_levels).stop)
            counted[last] = True
            counted[last.stop :] = False
        return counted

    @property
    def upwards(self) -> Iterator[Siblings]:
        """The same from the lowest level on."""
        return reversed(self.downwards)

    @cached_property
    def undivided(self) -> np.ndarray:
        """The groups of areas without parts, int64[n]."""
        divided = np.zeros(len(self), dtype=bool)
        divided[self.parents[1:]] = True
        return np.flatnonzero(~divided)

    def sums_of_parts(self, siblings: Siblings, of_groups: np.ndarray) -> np.ndarray:
        """Sum over the areas in each of `siblings.owners` of a number for each group."""
        parts = siblings.groups
        return siblings.summed(self.multiplicity[parts] * of_groups[parts])

    def summed_downwards(self, of_groups: np.ndarray) -> np.ndarray:
        """Sum over each area and those it lies in; exact for integers."""
        sums = of_groups.copy()
        for siblings in self.downwards:
            sums[siblings.groups] += sums[siblings.parents]
        return sums

    def summed_upwards(self, of_groups: np.ndarray) -> np.ndarray:
        """Sum over each area and all within it."""
        sums = of_groups.astype(float)
        for siblings in self.upwards:
            # Level by level from below: a level's own sums are complete before its parents need
            # them.
            sums[siblings.owners] += self.sums_of_parts(siblings, sums)
        return sums

    def by_level(self, of_groups: np.ndarray) -> np.ndarray:
        """The sum over the level that each group is on, [n_rows, n_groups]."""
        sums = np.add.reduceat(of_groups, self.starts[:-1], axis=1)
        return np.repeat(sums, np.diff(self.starts), axis=1)


# ---- Profiles: residuals whose noise differs between areas in the same way, planned as one.
#
# A residual S of the other attributes costs p_S and counts in the variance of table A by B_AS.
# Where the columns of B of two residuals are proportional, so are their best precisions, area by
# area (docs/mathematics.md §15.4): one problem with the cost c = Σ √(a_S p_S) stands for all of
# them. With the same tables on all levels there is a single profile.


_SAME = 1e-10  # by how much, relative, columns of one profile may differ


@dataclass(frozen=True, eq=False)
class Profiles:
    """Residuals by profile, and what each of them counts.

    of_residual  int64[n_residuals]: the profile of each
    factors      float64[n_residuals]: a residual's precision over its profile's
    columns      float64[n_rows, n_profiles]: how a profile counts in each row of B; the largest is
                 1
    costs        float64[n_profiles]: both a profile's cost at precision 1, and what its columns
                 count
    kinds        float64[n_kinds, n_profiles]: the part of this cost that a record of each kind
                 has; one row of ones where all records cost the same
    exact_levels int64[n_profiles]: on so many levels, from the top on, they are known exactly
    """

    of_residual: np.ndarray
    factors: np.ndarray
    columns: np.ndarray
    costs: np.ndarray
    kinds: np.ndarray
    exact_levels: np.ndarray

    @classmethod
    def of(
        cls,
        matrix: np.ndarray,
        residual_costs: np.ndarray,
        exact_levels: np.ndarray,
        kinds: np.ndarray | None = None,
    ) -> "Profiles":
        """From B, float64[n_rows, n_residuals] ≥ 0 without zero columns, and p, [n_residuals].

        exact_levels: int64[n_residuals], as of profiles; residuals of one are alike in it
        kinds: what a record of each kind costs in each residual over p, float64[n_kinds,
            n_residuals]; residuals of one profile have the same; None: 1 everywhere
        """
        # Proportional columns are equal once their largest number is 1.
        scales = np.max(matrix, axis=0)
        columns = matrix / scales
        of_residual = np.empty(matrix.shape[1], dtype=np.int64)
        kinds = np.ones((1, matrix.shape[1])) if kinds is None else kinds
        # Profiles by what they cost records of each kind, and where they are exact.
        _, classes = np.unique(np.vstack([kinds, exact_levels]), axis=1, return_inverse=True)
        first: list[int] = []
        alike: dict[int, list[int]] = {}
        for residual, own in enumerate(classes.tolist()):
            column = columns[:, residual]
            for profile in alike.setdefault(own, []):
                if np.all(np.abs(column - columns[:, first[profile]]) <= _SAME * column):
                    of_residual[residual] = profile
                    break
            else:
                of_residual[residual] = len(first)
                alike[own].append(len(first))
                first.append(residual)
        return cls(
            of_residual=read_only(of_residual),
            # The best split of a profile's precision: a and p of each residual enter as √(a/p) and
            # √(a p).
            factors=read_only(np.sqrt(scales / residual_costs)),
            columns=read_only(columns[:, first]),
            costs=read_only(np.bincount(of_residual, np.sqrt(scales * residual_costs))),
            kinds=read_only(np.ascontiguousarray(kinds[:, first])),
            exact_levels=read_only(exact_levels[first]),
        )
