"""Dearest pair: which two records cost most to tell apart, where each residual is charged alone.

Tables of levels, amounts and aggregations, and tables in areas, are charged for each residual the
most that replacing a record costs in it (docs/guarantees.md, "Replacing a record"). That is a
bound, as no two records are the dearest in all residuals. Here two records are looked for that cost
nearly as much. With the columns a of an attribute's matrix, they cost in a residual S

    t_S (∏ ‖a_u‖² + ∏ ‖a_v‖² − 2 ∏ ⟨a_u, a_v⟩),

with t_S the precision that both records, or (of areas) each of them and both together, are measured
with. Few records are all tried; else one attribute of both is changed at a time, from several pairs
on, until no such change costs more.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rpexplore.planning.mechanism.closure import Closure

_MOST_TRIED = 1 << 26  # pairs of records times residuals: all of them are tried
_STARTS, _WORK = 12, 1 << 21  # pairs to start from, fewer where there are many residuals
_ROUNDS = 50
_BOTH_AT_ONCE = 64  # values of an attribute that are tried in pairs
_GAIN = 1e-12


@dataclass(frozen=True)
class RecordPair:
    """Two records by the index of their value of each column, which may be of no residual.

    cost      what telling them apart costs, in floats
    is_proven whether no pair costs more: all were tried
    """

    first: tuple[int, ...]
    second: tuple[int, ...]
    cost: float
    is_proven: bool


@dataclass(frozen=True, eq=False)
class Precisions:
    """What each residual is measured with, float64[n_residuals] each.

    first, second  of each record, over all areas that it is in
    shared         in areas that both are in; at most either of these
    """

    first: np.ndarray
    second: np.ndarray
    shared: np.ndarray


@dataclass(frozen=True, eq=False)
class RecordProducts:
    """⟨a_u, a_v⟩ of each attribute or block that a closure has, for the values of its column."""

    closure: Closure

    def exact(self, number: int, one: int, other: int) -> tuple[int, int]:
        """Of two values of the column, as numerator and denominator."""
        places = self._place_of(number, one), self._place_of(number, other)
        strategy = self.closure.strategies.get(number)
        n = int(self.closure.sizes[number])
        below = n if strategy is None else 4**strategy.bits
        if min(places) < 0:
            return 0, below
        if strategy is None:
            return (n - 1 if places[0] == places[1] else -1), below
        first, second = (strategy.integers[:, place].tolist() for place in places)
        return sum(a * b for a, b in zip(first, second, strict=True)), below

    def with_all(self, number: int, value: int) -> np.ndarray:
        """Of one value with every value of the column: float64[n_values]."""
        place, n = self._place_of(number, value), int(self.closure.sizes[number])
        if place < 0:
            return np.zeros(self.n_values(number))
        strategy = self.closure.strategies.get(number)
        if strategy is None:
            products = (np.arange(n) == place) - 1 / n
        else:
            products = strategy.matrix[:, place] @ strategy.matrix
        return self._of_values(number, products)

    def squares(self, number: int) -> np.ndarray:
        """‖a‖² of every value of the column: float64[n_values]."""
        strategy, n = self.closure.strategies.get(number), int(self.closure.sizes[number])
        own = np.full(n, 1 - 1 / n)
        if strategy is not None:
            own = np.sum(strategy.matrix**2, axis=0)
        return self._of_values(number, own)

    def n_values(self, number: int) -> int:
        """Of the column."""
        block = self.closure.blocks.get(number)
        return int(self.closure.sizes[number]) if block is None else len(block.index_of_values)

    @cached_property
    def of_columns(self) -> dict[int, list[int]]:
        """Column -> the attributes and blocks of residuals that are of it."""
        found: dict[int, list[int]] = {}
        for number in np.unique(self.closure.members).tolist():
            if number >= 0:
                found.setdefault(int(self.closure.columns[number]), []).append(number)
        return found

    @cached_property
    def n_columns(self) -> int:
        return max(self.of_columns, default=-1) + 1

    def _place_of(self, number: int, value: int) -> int:
        block = self.closure.blocks.get(number)
        return value if block is None else int(block.index_of_values[value])

    def _of_values(self, number: int, of_groups: np.ndarray) -> np.ndarray:
        block = self.closure.blocks.get(number)
        if block is None:
            return of_groups
        return np.append(of_groups, 0.0)[block.index_of_values]


def dearest_pair(closure: Closure, precisions: Precisions) -> RecordPair:
    """The dearest two records, or two from which no change of one attribute costs more."""
    products = RecordProducts(closure)
    sizes = {column: products.n_values(own[0]) for column, own in products.of_columns.items()}
    n_records = np.prod([float(size) for size in sizes.values()])
    if n_records**2 * len(closure) <= _MOST_TRIED:
        return _dearest_of_all(products, sizes, precisions)
    search = _Search(products, sizes, precisions)
    n_starts = min(max(_WORK // (len(closure) * len(sizes)), 1), _STARTS)
    pairs = [search.from_pair(*search.start(number)) for number in range(n_starts)]
    return max(pairs, key=lambda pair: pair.cost)


def pair_products(
    closure: Closure, pair: RecordPair
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """∏ ‖a_u‖², ∏ ‖a_v‖², ∏ ⟨a_u, a_v⟩ of each residual, exact: whole numbers, and over what.

    Python's integers, object[n_residuals] each.
    """
    products, every = RecordProducts(closure), np.arange(len(closure))
    n_numbers = len(closure.sizes)
    factors = np.ones((4, n_numbers), dtype=object)
    for column, numbers in products.of_columns.items():
        u, v = pair.first[column], pair.second[column]
        for number in numbers:
            of_both = [products.exact(number, *values) for values in ((u, u), (v, v), (u, v))]
            factors[:, number] = [*(above for above, _ in of_both), of_both[0][1]]
    first, second, shared, below = (closure.exact_product(row.tolist(), every) for row in factors)
    return first, second, shared, below


def _dearest_of_all(
    products: RecordProducts, sizes: dict[int, int], precisions: Precisions
) -> RecordPair:
    """Of all pairs of records."""
    closure, shape = products.closure, list(sizes.values())
    grams = {
        number: np.array([products.with_all(number, value) for value in range(sizes[column])])
        for column, numbers in products.of_columns.items()
        for number in numbers
    }
    n = int(np.prod(shape))
    gram, squares = np.zeros((n, n)), np.zeros((2, n))
    for residual in range(len(closure)):
        inside = {int(closure.columns[number]): number for number in closure.attributes(residual)}
        factor = np.ones((1, 1))
        for column, size in sizes.items():
            own = grams[inside[column]] if column in inside else np.ones((size, size))
            factor = np.kron(factor, own)
        gram += precisions.shared[residual] * factor
        squares[0] += precisions.first[residual] * np.diag(factor)
        squares[1] += precisions.second[residual] * np.diag(factor)
    costs = squares[0][:, None] + squares[1] - 2 * gram
    places = divmod(int(np.argmax(costs)), n)
    records = []
    for place in places:
        values = [0] * products.n_columns
        for column, value in zip(sizes, np.unravel_index(place, shape), strict=True):
            values[column] = int(value)
        records.append(tuple(values))
    return RecordPair(records[0], records[1], float(costs[places]), is_proven=True)


class _Search:
    """Changes one attribute of both records at a time, while that costs more."""

    def __init__(
        self, products: RecordProducts, sizes: dict[int, int], precisions: Precisions
    ) -> None:
        self._products, self._sizes, closure = products, sizes, products.closure
        self._precisions = np.stack([precisions.first, precisions.second, precisions.shared])
        # Of each attribute or block: the residuals that have it, and their other members.
        self._within: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        for number in (number for numbers in products.of_columns.values() for number in numbers):
            rows = np.flatnonzero(np.any(closure.members == number, axis=1))
            members = closure.members[rows]
            self._within[number] = rows, np.where(members == number, -1, members)
        self._squares = {number: products.squares(number) for number in self._within}

    def start(self, number: int) -> tuple[list[int], list[int]]:
        """Two records that differ in all attributes: the first and last values, and others."""
        records = [[0] * self._products.n_columns for _ in range(2)]
        for column, size in self._sizes.items():
            one = number * (2 * column + 1) % size
            other = (one + size - 1 - number * (column + 1) % max(size - 1, 1)) % size
            records[0][column], records[1][column] = one, other
        return records[0], records[1]

    def from_pair(self, first: list[int], second: list[int]) -> RecordPair:
        """The pair that is found from this one on."""
        closure = self._products.closure
        # Of every attribute and block, and 1 for the padding of members.
        factors = np.ones((3, len(closure.sizes) + 1))
        for column in self._sizes:
            self._set(factors, column, first[column], second[column])
        value = self._value(factors)
        for _ in range(_ROUNDS):
            before = value
            for column in self._sizes:
                u, v = self._best(factors, column, first[column])
                if (u, v) != (first[column], second[column]):
                    first[column], second[column] = u, v
                    self._set(factors, column, u, v)
            value = self._value(factors)
            if value <= before * (1 + _GAIN):
                break
        return RecordPair(tuple(first), tuple(second), value, is_proven=False)

    def _set(self, factors: np.ndarray, column: int, u: int, v: int) -> None:
        for number in self._products.of_columns[column]:
            squares = self._squares[number]
            both = self._products.with_all(number, u)[v]
            factors[:, number] = squares[u], squares[v], both

    def _value(self, factors: np.ndarray) -> float:
        products = np.prod(factors[:, self._products.closure.members], axis=2)
        own = np.sum(self._precisions * products, axis=1)
        return float(own[0] + own[1] - 2 * own[2])

    def _best(self, factors: np.ndarray, column: int, u: int) -> tuple[int, int]:
        """The best values of a column for the others as they are."""
        numbers, weights = self._products.of_columns[column], []
        for number in numbers:
            rows, others = self._within[number]
            products = np.prod(factors[:, others], axis=2)
            weights.append(np.sum(self._precisions[:, rows] * products, axis=1))
        size = self._sizes[column]
        if size <= _BOTH_AT_ONCE:
            return self._best_beside(numbers, weights, range(size))
        _, v = self._best_beside(numbers, weights, [u])
        of_second = [weight[[1, 0, 2]] for weight in weights]
        _, u = self._best_beside(numbers, of_second, [v])
        return u, v

    def _best_beside(
        self, numbers: Sequence[int], weights: Sequence[np.ndarray], values: Sequence[int]
    ) -> tuple[int, int]:
        """The best of these values of one record beside any value of the other."""
        costs = np.zeros((len(values), self._products.n_values(numbers[0])))
        for number, (one, other, both) in zip(numbers, weights, strict=True):
            squares = self._squares[number]
            products = np.array([self._products.with_all(number, value) for value in values])
            costs += one * squares[list(values)][:, None] + other * squares - 2 * both * products
        place, of_other = divmod(int(np.argmax(costs)), costs.shape[1])
        return values[place], of_other
