"""Publicly known totals by groups of the values of tables: bands where these have single ages.

Noise of a residual is alike in all directions, σ² P along an attribute of single values. So what it
says of the sums of groups, and of values within a group, is independent of each other, and totals
by groups replace the first and leave the second: an attribute at two levels, as if each had been
measured by itself (docs/mathematics.md §9.3).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from rpexplore.common.numbers import matrix_along, read_only
from rpexplore.domain.domain import AttributeIndices, Domain
from rpexplore.estimation.table_map import ArrayStore, largest
from rpexplore.planning.mechanism.levels import Block, LevelTree, level_trees
from rpexplore.planning.mechanism.strategy import Strategy
from rpexplore.results.known_release import KnownTable, groups_of_values
from rpexplore.results.unbiased import Estimates
from rpexplore.workload.workload import Workload


@dataclass(frozen=True, eq=False)
class SumsOfGroups(Strategy):
    """How the sums of groups are told where single values were measured: R x with noise P m P.

    A group gets a share of the total as large as its share of the values, z = m/M, and what is
    decoded has the covariance D Dᵀ = diag(m) − m mᵀ/M, that of sums of noise I − 11ᵀ/M. R is of
    floats, as nothing is measured by it: `integers` only say its shape.

    n_values  m, of each group
    """

    n_values: tuple[int, ...] = ()

    @classmethod
    def of(cls, n_values: Sequence[int]) -> "SumsOfGroups":
        size = len(n_values)
        return cls(np.zeros((size - 1, size), np.int64), 0, n_values=tuple(n_values))

    @cached_property
    def _orthonormal(self) -> np.ndarray:
        """Rows orthogonal to √m, and to each other: float64[n − 1, n]."""
        roots = np.sqrt(np.array(self.n_values, float))
        return np.linalg.qr(np.column_stack([roots, np.eye(self.size)[:, 1:]]))[0][:, 1:].T

    @cached_property
    def matrix(self) -> np.ndarray:
        return read_only(self._orthonormal / np.sqrt(np.array(self.n_values, float)))

    @cached_property
    def _inverse(self) -> np.ndarray:
        numbers = np.array(self.n_values, float)
        decoding = np.sqrt(numbers)[:, None] * self._orthonormal.T
        return read_only(np.column_stack([numbers / numbers.sum(), decoding]))


def with_groups(estimates: Estimates, tables: Sequence[AttributeIndices]) -> Estimates:
    """The same estimates, told by the groups of known tables where they are told by their values.

    An attribute that tables have at one level, by single values of that, is at two levels after
    it; others stay. tables: indices in `domain.with_levels`
    """
    domain = estimates.domain.with_levels
    used = {index for table in estimates.tables for index in table}
    groups = groups_among(domain, used, estimates.strategies, tables)
    if not groups:
        return estimates
    names = domain.names
    together = [*estimates.table_names, *([names[index]] for index in groups)]
    trees, blocks = trees_of(Workload.of(domain, together))
    moved = {
        before: after
        for own in estimates.trees
        for tree in trees
        if tree.column == own.column
        for before, after in zip(own.numbers, tree.numbers, strict=True)
    }
    columns = {int(domain.columns[index]) for index in groups}
    maps, strategies = {}, {moved.get(one, one): own for one, own in estimates.strategies.items()}
    for tree in trees:
        if tree.column in columns:
            (index,) = {one for one in used if domain.columns[one] == tree.column}
            told, of_blocks = _told_by_blocks(tree, blocks, groups_of_values(domain, index))
            maps[index] = told
            strategies |= of_blocks

    def numbers_of(index: int) -> list[int]:
        return list(maps.get(index, {moved.get(index, index): None}))

    for number, strategy in strategies.items():
        if strategy.of_residuals:
            own = {
                tuple(sorted(numbers)): matrix
                for residual, matrix in strategy.of_residuals.items()
                for numbers in product(*map(numbers_of, residual))
            }
            strategies[number] = replace(strategy, of_residuals=own)
    contributions, variances = ArrayStore(), {}
    for subset, values in estimates.contributions.items():
        parts = {(): values}  # what stands for the attributes so far -> values, their axes in order
        for axis, index in enumerate(subset):
            of_index = maps.get(index, {moved.get(index, index): None})
            parts = {
                (*before, number): part if matrix is None else matrix_along(matrix, part, axis)
                for before, part in parts.items()
                for number, matrix in of_index.items()
            }
        for numbers, part in parts.items():
            key = tuple(sorted(numbers))
            contributions[key] = part.transpose(np.argsort(numbers).astype(int))
            variances[key] = estimates.variances[subset]
    return replace(
        estimates,
        domain=domain,
        contributions=contributions,
        variances=variances,
        strategies=strategies,
        trees=trees,
        blocks=blocks,
    )


def groups_among(
    domain: Domain,
    used: Collection[int],
    strategies: Mapping[int, Strategy],
    known: Sequence[AttributeIndices],
) -> list[int]:
    """The attributes of known tables that are groups of values of the only one tables have.

    used: the attributes of tables. Those that are measured by a strategy tell no groups apart from
    the rest, and are left out
    """
    found = []
    for index in sorted({index for table in known for index in table}.difference(used)):
        own = [one for one in used if domain.columns[one] == domain.columns[index]]
        if len(own) != 1 or own[0] in strategies:
            continue
        values, groups = groups_of_values(domain, own[0]), groups_of_values(domain, index)
        of_values = np.empty(int(values.max()) + 1, np.int64)
        of_values[values] = groups
        if 1 < domain.sizes[index] < len(of_values) and np.array_equal(of_values[values], groups):
            found.append(index)
    return found


def trees_of(workload: Workload) -> tuple[tuple[LevelTree, ...], dict[int, Block]]:
    """The trees of attributes at several levels, and the blocks of these."""
    trees, blocks = level_trees(workload)
    return trees, {number: blocks[number] for tree in trees for number in tree.numbers}


def known_marginals(
    estimates: Estimates, tables: Sequence[KnownTable]
) -> tuple[AttributeIndices, ...]:
    """The largest of the known tables, by the attributes that the estimates tell.

    An attribute that tables have by groups alone is in them by these.
    """
    domain = estimates.domain
    told = {index for table in estimates.tables for index in table}
    told |= {index for tree in estimates.trees for index in tree.of_tables}
    marginals = set()
    for table in tables:
        indices = [
            index
            if index in told
            else next(one for one in sorted(told) if domain.columns[one] == domain.columns[index])
            for index in table.attributes
            if domain.sizes[index] > 1
        ]
        marginals.add(tuple(sorted(indices)))
    return tuple(sorted(largest(marginals)))


def _told_by_blocks(
    tree: LevelTree, blocks: Mapping[int, Block], values: np.ndarray
) -> tuple[dict[int, np.ndarray], dict[int, Strategy]]:
    """Of each block what makes its contribution of one by values, and its strategy if it has one.

    values: which value of the attribute each value of its column is in, int64[n]
    """
    told: dict[int, np.ndarray] = {}
    strategies: dict[int, Strategy] = {}
    for number in tree.numbers:
        of_values = np.full(int(values.max()) + 1, -1)
        of_values[values] = blocks[number].index_of_values
        inside = np.flatnonzero(of_values >= 0)
        sums = np.zeros((blocks[number].size, len(of_values)))
        sums[of_values[inside], inside] = 1
        n_values = sums.sum(axis=1)
        told[number] = sums - np.outer(n_values / n_values.sum(), sums.sum(axis=0))
        if n_values.max() > 1:
            strategies[number] = SumsOfGroups.of(n_values.astype(int).tolist())
    return told, strategies
