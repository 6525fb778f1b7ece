"""Level trees: attributes that tables have at several levels, and the blocks they are measured by.

The levels of an attribute that tables ask for are put in a chain, coarsest first, in which each
splits the groups of the one before; of two that overlap, the groups that both tell apart come
behind them. The values that a group splits into are a *block*: they are told apart by a
measurement of their own, which is about these values alone, like that of an attribute of so many
values. A value of a level is then a share z of its group, and what its block says beyond that
(docs/mathematics.md §5.5). So a record costs privacy in the blocks that its value lies in, and in
no others.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from rpexplore.common.numbers import distinct_rows, read_only
from rpexplore.domain.domain import Domain
from rpexplore.errors import PlanError
from rpexplore.planning.mechanism.strategy import Strategy
from rpexplore.workload.table_text import QueryMatrix
from rpexplore.workload.workload import Workload

COST_STEPS = 256
"""What a record costs in a block is rounded up to this part of what the dearest one does."""

_MOST_KEPT = 200  # pairs of an attribute and strategies of which a tree keeps what they are worth
_MOST_COUNTED = 5_000_000  # sums of an aggregation times the groups that they are of

# Shares of noise in a value: below the first they are rounding, and stated as the second.
_ROUNDING, _NEXT_TO_NOTHING = 1e-14, 1e-16


@dataclass(frozen=True, eq=False)
class Block:
    """Groups of values that are told apart, and measured like an attribute of so many values.

    column           the attribute of the records
    index_of_values  int64[n values of the column]: which of the groups each is in; −1: in none
    """

    column: int
    index_of_values: np.ndarray

    @cached_property
    def size(self) -> int:
        """How many groups it tells apart."""
        return int(self.index_of_values.max()) + 1

    def sums(self, counts: np.ndarray, axis: int) -> np.ndarray:
        """Counts of the groups along an axis, from counts of the column's values."""
        order, starts = self._runs
        return np.add.reduceat(counts.take(order, axis), starts, axis)

    @cached_property
    def _runs(self) -> tuple[np.ndarray, np.ndarray]:
        """The values in the order of their groups, and where each group begins; none is empty."""
        order = np.argsort(self.index_of_values, kind="stable")
        order = order[np.count_nonzero(self.index_of_values < 0) :]
        return order, np.searchsorted(self.index_of_values[order], np.arange(self.size))


@dataclass(frozen=True, eq=False)
class LevelTree:
    """The levels of one attribute of the records, coarsest first, and how tables use them.

    column     the attribute
    parents    of each level, for each of its groups the group of the level before that it is part
               of; zeros for the first
    blocks     of each level, (number, groups) of every group of the level before that is split:
               the number that stands for the block in residuals, and the groups it splits into
    of_tables  attribute index -> (level, index): at which level tables have it, and for each group
               of that level the value of the attribute that it is part of
    """

    column: int
    parents: tuple[np.ndarray, ...]
    blocks: tuple[tuple[tuple[int, np.ndarray], ...], ...]
    of_tables: Mapping[int, tuple[int, np.ndarray]]

    @property
    def sizes(self) -> list[int]:
        """Number of groups of each level."""
        return [len(parents) for parents in self.parents]

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of all blocks, ascending."""
        return tuple(number for of_level in self.blocks for number, _ in of_level)

    def within(self, attribute: int) -> list[int]:
        """The numbers of the blocks that a table with this attribute needs."""
        level, _ = self.of_tables[attribute]
        return [number for of_level in self.blocks[: level + 1] for number, _ in of_level]

    def costs(self, strategies: Mapping[int, Strategy]) -> np.ndarray:
        """What a record costs in each block, relative to the record that costs most there.

        float64[n_kinds, 1 + n_blocks], whole multiples of 1 / `COST_STEPS`, rounded up; the first
        column is that of the total, 1. One row for each kind of record that there is: by which
        blocks it is in, and by its column of their matrices.
        """
        first = self.numbers[0]
        group = np.arange(self.sizes[-1])
        costs = np.zeros((len(group), 1 + len(self.numbers)))
        costs[:, 0] = 1.0
        for parents, of_level in zip(self.parents[::-1], self.blocks[::-1], strict=True):
            place = np.zeros(len(parents), dtype=np.int64)  # of its block; 0: in none
            relative = np.zeros(len(parents))
            for number, groups in of_level:
                place[groups] = number - first + 1
                strategy = strategies.get(number)
                relative[groups] = 1.0 if strategy is None else _relative_costs(strategy)
            inside = place[group] > 0
            costs[inside, place[group][inside]] = relative[group][inside]
            group = parents[group]
        return np.unique(costs, axis=0)

    @cached_property
    def leaves(self) -> tuple[np.ndarray, ...]:
        """How many groups of the last level lie in each group of every level: float64[·] each."""
        counts: list[np.ndarray] = [np.ones(self.sizes[-1])]
        for level in range(len(self.parents) - 1, 0, -1):
            above = np.bincount(self.parents[level], counts[0], self.sizes[level - 1])
            counts.insert(0, above)
        return tuple(counts)

    def shares(self, strategies: Mapping[int, Strategy]) -> list[np.ndarray]:
        """z of every level: which share of its group each group gets where nothing else is known.

        strategies: by the numbers of blocks; without one, shares are even
        """
        shares = []
        for parents, of_level in zip(self.parents, self.blocks, strict=True):
            of_groups = np.ones(len(parents))
            for number, groups in of_level:
                strategy = strategies.get(number)
                of_groups[groups] = 1 / len(groups) if strategy is None else strategy.reference
            shares.append(of_groups)
        return shares

    def worths(self, attribute: int, strategies: Mapping[int, Strategy]) -> np.ndarray:
        """The sums of `squares` over single values, float64[1 + n_blocks]: kept for the last uses.

        A search for strategies changes those of one tree after another, and comes back to them.
        """
        key = attribute, tuple(map(strategies.get, self.numbers))
        if key not in self._worths:
            if len(self._worths) >= _MOST_KEPT:
                self._worths.clear()
            self._worths[key] = self.squares(attribute, strategies).sum(axis=1)
        return self._worths[key]

    @cached_property
    def _worths(self) -> dict[tuple[int, tuple[Strategy | None, ...]], np.ndarray]:
        return {}

    def squares(
        self,
        attribute: int,
        strategies: Mapping[int, Strategy],
        queries: QueryMatrix | None = None,
    ) -> np.ndarray:
        """How noise gets into each value of an attribute of tables, or each sum of these that
        `queries` ask for: float64[1 + n_blocks, n].

        The first row: of the total, the square of the value's share of it. Then of each block the
        sum of the squares by which its noise, of variance 1, gets into the value.

        Raises `PlanError` for queries that are too many.
        """
        index, largest = self.of_tables[attribute][1], 1.0
        n_values = int(index.max()) + 1
        if queries is None and n_values == len(index):
            squares = self._squares_of_groups(attribute, strategies)
        else:
            # What the groups of a level count in each value, from the last level up.
            weights = sparse.csr_array(
                (np.ones(len(index)), (index, np.arange(len(index)))), (n_values, len(index))
            )
            if queries is not None:
                if queries.n_rows * len(index) > _MOST_COUNTED:
                    raise PlanError(
                        f"The aggregation of {queries.attribute.name!r} has {queries.n_rows:,} "
                        f"sums of {len(index):,} groups, too many for an attribute that tables "
                        f"have at several levels (at most {_MOST_COUNTED:,} of one times the "
                        "other); ask for fewer."
                    )
                weights = sparse.csr_array(queries.of(weights.toarray(), 0))
                largest = float(np.max(weights.data**2))
            squares = self._products(self.of_tables[attribute][0], [weights], strategies)
        # Where a value takes all groups of a block alike, nothing is left but rounding. Something
        # stands for it where the table needs the block: noise that nothing depends on would have no
        # limit.
        # Of sums the total may be such, too: they can be differences.
        needed = [queries is not None, *np.isin(self.numbers, self.within(attribute))]
        least = np.where(needed, _NEXT_TO_NOTHING * largest, 0.0)
        return np.where(squares < _ROUNDING * largest, least[:, None], squares)

    def _squares_of_groups(self, attribute: int, strategies: Mapping[int, Strategy]) -> np.ndarray:
        """`squares` of values that are the groups of a level: each is in one block of a level."""
        level, index = self.of_tables[attribute]
        group = np.empty(len(index), dtype=np.int64)  # of each value
        group[index] = np.arange(len(index))
        squares = np.zeros((1 + len(self.numbers), len(index)))
        shares, first = self.shares(strategies), self.numbers[0]
        share = np.ones(len(index))  # of its group
        for above in range(level, -1, -1):
            place = np.full(self.sizes[above], -1)
            for number, groups in self.blocks[above]:
                place[groups] = np.arange(len(groups))
                values = np.flatnonzero(np.isin(group, groups))
                strategy, own = strategies.get(number), share[values]
                if strategy is None:
                    of_values = own * own - own**2 / len(groups)
                else:
                    rows = own[:, None] * strategy.decoding[place[group[values]]]
                    of_values = np.sum(rows * rows, axis=1)
                squares[number - first + 1, values] = of_values
            share = share * shares[above][group]
            group = self.parents[above][group]
        squares[0] = share**2
        return squares

    def of_query(
        self, attribute: int, vector: np.ndarray, strategies: Mapping[int, Strategy]
    ) -> list[np.ndarray]:
        """How noise gets into a sum of an attribute's values, with a number for each of them.

        First of the total, float64[1]; then of each block, so that the product of those of two
        sums is what its noise, of variance 1, adds to their covariance.
        """
        last, index = self.of_tables[attribute]
        numbers, shares = vector[index], self.shares(strategies)
        found: dict[int, np.ndarray] = {}
        for level in range(len(self.parents) - 1, -1, -1):
            if level > last:
                found |= {number: np.zeros(1) for number, _ in self.blocks[level]}
                continue
            for number, groups in self.blocks[level]:
                strategy, inside = strategies.get(number), numbers[groups]
                even = inside - inside.mean()
                found[number] = even if strategy is None else inside @ strategy.decoding
            n_above = self.sizes[level - 1] if level else 1
            numbers = np.bincount(self.parents[level], numbers * shares[level], n_above)
        return [numbers, *(found[number] for number in self.numbers)]

    def products(
        self,
        attribute: int,
        left: sparse.csr_array,
        right: sparse.csr_array,
        strategies: Mapping[int, Strategy],
    ) -> np.ndarray:
        """What noise of variance 1 adds to the covariances of pairs of sums of an attribute's
        values: float64[1 + n_blocks, n_rows], first the total, then each block.

        left, right: a sum a row, [n_rows, n_values]; one row on the right is paired with all
        """
        last, index = self.of_tables[attribute]
        pair = [sparse.csr_array(one)[:, index] for one in (left, right)]
        return self._products(last, pair, strategies)

    def _products(
        self, last: int, sums: list[sparse.csr_array], strategies: Mapping[int, Strategy]
    ) -> np.ndarray:
        """As `products`, of sums of the groups of the last level; of one matrix with itself."""
        shape: Any = sums[0].shape  # which may be None, by the stubs of scipy
        products = np.zeros((1 + len(self.numbers), shape[0]))
        shares, first = self.shares(strategies), self.numbers[0]
        for level in range(last, -1, -1):
            columns = [sparse.csc_array(one) for one in sums]
            for number, groups in self.blocks[level]:
                inside = [one[:, groups] for one in columns]
                strategy = strategies.get(number)
                if strategy is None:
                    totals = [np.asarray(one.sum(axis=1)).ravel() for one in inside]
                    of_pairs = np.asarray(inside[0].multiply(inside[-1]).sum(axis=1)).ravel()
                    products[number - first + 1] = of_pairs - totals[0] * totals[-1] / len(groups)
                else:
                    rows = [one @ strategy.decoding for one in inside]
                    products[number - first + 1] = np.sum(rows[0] * rows[-1], axis=1)
            n_above = self.sizes[level - 1] if level else 1
            spread = sparse.csr_array(
                (shares[level], (np.arange(len(shares[level])), self.parents[level])),
                (len(shares[level]), n_above),
            )
            sums = [sparse.csr_array(one @ spread) for one in sums]
        of_total = [one.toarray()[:, 0] for one in sums]
        products[0] = of_total[0] * of_total[-1]
        return products

    def spread_down(
        self,
        attribute: int,
        totals: np.ndarray,
        parts: Mapping[int, np.ndarray],
        strategies: Mapping[int, Strategy],
    ) -> np.ndarray:
        """The values of an attribute of tables along the last axis: float64[…, n].

        totals: their sums, float64[…]; parts: of each of the blocks within, what it adds to its
        groups, float64[…, n_groups]
        """
        last, index = self.of_tables[attribute]
        shares, values = self.shares(strategies), totals[..., None]
        for level in range(last + 1):
            values = values[..., self.parents[level]] * shares[level]
            for number, groups in self.blocks[level]:
                values[..., groups] += parts[number]
        n_values = int(index.max()) + 1
        if n_values == len(index):  # every group is a value
            ordered = np.empty_like(values)
            ordered[..., index] = values
            return ordered
        summed = np.zeros((*values.shape[:-1], n_values))
        np.add.at(np.moveaxis(summed, -1, 0), index, np.moveaxis(values, -1, 0))
        return summed


def _relative_costs(strategy: Strategy) -> np.ndarray:
    """Squared column norms over the largest, rounded up: float64[n], multiples of 1/COST_STEPS."""
    squares = np.sum(strategy.integers * strategy.integers, axis=0)
    steps = -(-squares * COST_STEPS // strategy.squared_sensitivity)
    # Rounding a matrix to integers makes columns a little shorter: not a kind of record each.
    return np.where(steps >= COST_STEPS - 2, COST_STEPS, steps) / COST_STEPS


def level_trees(workload: Workload) -> tuple[tuple[LevelTree, ...], dict[int, Block]]:
    """The trees of attributes that tables have at several levels, and the blocks of all levels.

    The numbers of the blocks of trees follow those of the attributes; a level that is the only one
    of its attribute keeps its own.
    """
    domain = workload.domain
    if domain.n_columns == len(domain):
        return (), {}
    of_columns: dict[int, list[int]] = {}
    for attribute in workload.used:
        if domain.sizes[attribute] > 1:
            of_columns.setdefault(int(domain.columns[attribute]), []).append(attribute)
    trees: list[LevelTree] = []
    blocks: dict[int, Block] = {}
    number = len(domain)
    for column, attributes in of_columns.items():
        partitions = {index: _partition(domain, index) for index in attributes}
        if len(attributes) == 1:
            if attributes[0] != column:
                blocks[attributes[0]] = Block(column, partitions[attributes[0]])
            continue
        tree, own = _tree(column, partitions, number)
        trees.append(tree)
        blocks |= own
        number += len(own)
    return tuple(trees), blocks


def _partition(domain: Domain, attribute: int) -> np.ndarray:
    """Which of an attribute's values each value of its column is: int64[n]."""
    index = domain.attributes[attribute].index_of_values
    return np.array(index) if index else np.arange(domain.sizes[attribute])


def _tree(
    column: int, partitions: Mapping[int, np.ndarray], first_number: int
) -> tuple[LevelTree, dict[int, Block]]:
    chain: list[np.ndarray] = []  # of each level the group of each value of the column
    for partition in sorted(partitions.values(), key=lambda one: int(one.max())):
        before = chain[-1] if chain else np.zeros(len(partition), dtype=np.int64)
        _, groups = distinct_rows((before, partition))
        if int(groups.max()) > int(before.max()):
            chain.append(groups)
    number, parents, of_levels = first_number, [], []
    blocks: dict[int, Block] = {}
    before = np.zeros(len(chain[0]), dtype=np.int64)
    for groups in chain:
        above = np.zeros(int(groups.max()) + 1, dtype=np.int64)
        above[groups] = before
        parents.append(read_only(above))
        of_level = []
        for parent in range(int(before.max()) + 1):
            children = np.flatnonzero(above == parent)
            if len(children) < 2:
                continue
            place = np.full(len(above), -1)
            place[children] = np.arange(len(children))
            blocks[number] = Block(column, read_only(place[groups]))
            of_level.append((number, read_only(children)))
            number += 1
        of_levels.append(tuple(of_level))
        before = groups
    of_tables = {}
    for attribute, partition in partitions.items():
        for level, groups in enumerate(chain):
            index = np.full(int(groups.max()) + 1, -1)
            index[groups] = partition
            if np.array_equal(index[groups], partition):
                of_tables[attribute] = level, read_only(index)
                break
    return LevelTree(column, tuple(parents), tuple(of_levels), of_tables), blocks
