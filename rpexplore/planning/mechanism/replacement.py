"""Replacement: what it costs to replace one record by any other; the number of records is public.

With t_S = 1/σ²_S and p_S = ∏_{k∈S} (n_k − 1)/n_k, two records that differ in the attributes D, and
in no other, are told apart at the privacy cost (docs/guarantees.md, "Replacing a record")

    C_D = 2 Σ_S p_S t_S (1 − ∏_{k ∈ S∩D} y_k),    y_k = −1/(n_k − 1),

of which the total, S = ∅, has no part. The largest C_D is 2 (Σ a_S − min F), with a_S = p_S t_S
and F = Σ a_S ∏_{k∈S} y_k, a polynomial in numbers that are 1 outside of D. To find its smallest
value is hard in general. So attributes of one size are put in groups, and a_S is raised to the
largest one of as many attributes of each group: then F depends on how many of each group are in D,
and all of these are tried. The coefficients of a_S in C_D are at least 0, so raising a_S bounds
every C_D from above; it changes nothing where attributes of a group are alike, or alone in it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from rpexplore.common.numbers import read_only

if TYPE_CHECKING:
    from rpexplore.planning.mechanism.closure import Closure

FREE_NOISE = 1e-9
"""σ² of the total, which is public: whole-number noise of this variance is 0, for all one can see
(another number has a probability below 10^−10^8)."""

MOST_TRIED = 1 << 18  # numbers of attributes of each group in D
_ALIKE_DIGITS = 6  # of what attributes that may be alike have in common
_CLOSE = 1e-6  # of bound and dearest change: no other grouping is looked for
_FLIPS = 1000
_NO_PRICE = 1e-12
_ROUNDING = 2.0**-48  # of a sum, relative, for each of its terms: far above what floats are off by


@dataclass(frozen=True, eq=False)
class Replacement:
    """Groups of attributes of one size, and differences between records, with prices.

    groups  indices of the attributes with several values that some table has, each once
    counts  int64[n, n_groups]: how many attributes of each group two records differ in. A row
            stands for the mean of all D with so many, which costs at most what the dearest does
    prices  float64[n], sum 1
    """

    groups: tuple[tuple[int, ...], ...]
    counts: np.ndarray
    prices: np.ndarray

    def __post_init__(self) -> None:
        read_only(self.counts)
        read_only(self.prices)

    @classmethod
    def of_all(cls, closure: "Closure") -> "Replacement":
        """Of records that differ in all attributes, or nearly; those of one size in one group."""
        return cls.of_groups(closure, _by_size(closure))

    @classmethod
    def of_groups(cls, closure: "Closure", groups: tuple[tuple[int, ...], ...]) -> "Replacement":
        """Of records that differ in all attributes, and in half of those of two values.

        Two records that differ in two attributes of two values are alike in their residual: beside
        records that differ in all, others must have a price for it to cost anything.
        """
        every = [len(group) for group in groups]
        rows = [every]
        for number, group in enumerate(groups):
            if closure.sizes[group[0]] == 2 and sum(every) > 1:
                rows.append([*every[:number], len(group) // 2, *every[number + 1 :]])
        prices = np.full(len(rows), 0.5 / max(len(rows) - 1, 1))
        prices[0] = 1.0 - np.sum(prices[1:])
        return cls(groups, np.array(rows), prices)

    def with_counts(self, counts: Sequence[int]) -> "Replacement":
        """With another difference, of which the price is small as yet."""
        rows = np.vstack([self.counts, counts])
        return replace(self, counts=rows, prices=np.append(self.prices * 0.9, 0.1))

    @property
    def priced(self) -> "Replacement":
        """Without differences that have next to no price."""
        kept = self.prices > _NO_PRICE
        prices = self.prices[kept]
        return replace(self, counts=self.counts[kept], prices=prices / np.sum(prices))

    def has(self, counts: Sequence[int]) -> bool:
        """Whether this difference is among its own."""
        return bool(np.any(np.all(self.counts == counts, axis=1)))

    def cost_factors(self, closure: "Closure") -> np.ndarray:
        """What each difference costs in each residual at σ² = 1: float64[n, n_residuals]."""
        tables = [_mean_products(group, closure, _order(closure)) for group in self.groups]
        of_residuals = _counts_of(closure.members, self.groups)
        products = np.ones((len(self.counts), len(closure)))
        for group, table in enumerate(tables):
            products *= table[self.counts[:, group]][:, of_residuals[:, group]]
        return 2 * closure.full_cost_factor * np.maximum(1 - products, 0.0)


@dataclass(frozen=True)
class DearestReplacement:
    """What replacing a record costs at most, and the dearest replacement that was found.

    bound    no replacement costs more: float, above by more than its rounding
    counts   how many attributes of each group the dearest differs in, by the bound of the groups,
             or of the one found where these are too many to be tried
    changed  attribute indices of the dearest difference that was found
    found    what it costs
    """

    bound: float
    counts: tuple[int, ...]
    changed: tuple[int, ...]
    found: float

    @property
    def gap(self) -> float:
        """How far the bound may be above the true cost, relative."""
        return self.bound / self.found - 1 if self.found > 0 else 0.0


def dearest_replacement(
    closure: "Closure", groups: Sequence[tuple[int, ...]], sigma_squared: np.ndarray
) -> DearestReplacement:
    """The proven cost of a replacement at these noise scales, and the dearest one found."""
    with np.errstate(over="ignore"):
        amounts = closure.full_cost_factor / sigma_squared
    amounts = np.where(_orders(closure.members) == 0, 0.0, amounts)
    total = float(np.sum(amounts))
    allowance = 1 + _ROUNDING * (len(closure) + 100)
    bound, counts = float(np.sum(amounts * largest_shares(closure))) * allowance, ()
    start = [attribute for group in groups for attribute in group]
    if groups and _n_tried(groups) <= MOST_TRIED:
        polynomial, raised = _polynomial(closure, groups, amounts)
        place = int(np.argmin(polynomial))
        counts = tuple(map(int, np.unravel_index(place, polynomial.shape)))
        tried = 2 * (raised - float(polynomial.flat[place])) + 2 * raised * (allowance - 1)
        bound = min(bound, tried)
        pairs = zip(groups, counts, strict=True)
        start = [attribute for group, count in pairs for attribute in group[:count]]
    changed, least = _descended(closure, amounts, start)
    if not counts:
        counts = tuple(sum(index in changed for index in group) for group in groups)
    return DearestReplacement(bound, counts, changed, 2 * (total - least))


def largest_shares(closure: "Closure") -> np.ndarray:
    """The largest 2 (1 − ∏ y) of each residual, over all D: float64[n_residuals]; 0 of the total.

    The product is least where one attribute, of the fewest values, is in D.
    """
    none = np.iinfo(np.int64).max
    fewest = np.min(np.append(closure.sizes, none)[closure.members], axis=1, initial=none)
    return np.where(fewest == none, 0.0, 2 * (1 + 1 / (fewest - 1.0)))


def chosen_groups(closure: "Closure", sigma_squared: np.ndarray) -> tuple[tuple[int, ...], ...]:
    """The groups whose bound is the smallest, of some that can be tried."""
    best: tuple[float, tuple[tuple[int, ...], ...]] | None = None
    for groups in _groupings(closure, sigma_squared):
        if best is not None and _n_tried(groups) > MOST_TRIED:
            continue
        gap = dearest_replacement(closure, groups, sigma_squared).gap
        if best is None or gap < best[0]:
            best = gap, groups
        if best[0] <= _CLOSE:
            break
    assert best is not None
    return best[1]


# ---- groups


def _groupings(
    closure: "Closure", sigma_squared: np.ndarray
) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Those of one size and of about the same costs; each alone; those of one size."""
    members, orders = closure.members, _orders(closure.members)
    costs = closure.full_cost_factor / sigma_squared
    sums = np.zeros((len(closure.sizes), members.shape[1] + 1))
    for column in range(members.shape[1]):
        inside = members[:, column] >= 0
        np.add.at(sums, (members[inside, column], orders[inside]), costs[inside])
    logs = np.round(np.log(np.where(sums > 0, sums, 1.0)), _ALIKE_DIGITS)
    keys = {index: (int(closure.sizes[index]), *logs[index].tolist()) for index in _used(closure)}
    ordered = sorted(keys, key=lambda index: (keys[index], index))
    yield tuple(tuple(group) for _, group in groupby(ordered, key=keys.__getitem__))
    yield tuple((index,) for index in sorted(keys))
    yield _by_size(closure)


def _by_size(closure: "Closure") -> tuple[tuple[int, ...], ...]:
    sizes = closure.sizes.tolist()
    ordered = sorted(_used(closure), key=lambda index: (sizes[index], index))
    return tuple(tuple(group) for _, group in groupby(ordered, key=sizes.__getitem__))


def _used(closure: "Closure") -> list[int]:
    return [index for index in np.unique(closure.members).tolist() if index >= 0]


def _n_tried(groups: Sequence[tuple[int, ...]]) -> int:
    return math.prod(len(group) + 1 for group in groups)


def _orders(members: np.ndarray) -> np.ndarray:
    return np.count_nonzero(members >= 0, axis=1)


def _order(closure: "Closure") -> int:
    return closure.members.shape[1]


def _counts_of(members: np.ndarray, groups: Sequence[tuple[int, ...]]) -> np.ndarray:
    """How many attributes of each group each residual has: int64[n_residuals, n_groups]."""
    n_attributes = max((index for group in groups for index in group), default=0) + 1
    of_attributes = np.full(n_attributes + 1, len(groups))
    for number, group in enumerate(groups):
        of_attributes[list(group)] = number
    counts = np.zeros((len(members), len(groups) + 1), dtype=np.int64)
    rows = np.arange(len(members))
    for column in range(members.shape[1]):
        counts[rows, of_attributes[members[:, column]]] += 1
    return counts[:, :-1]


def _mean_products(group: tuple[int, ...], closure: "Closure", order: int) -> np.ndarray:
    """The mean of ∏ y over k attributes of a group, j of which are in D: [j, k].

    Over all choices of the k, as over all choices of the j: the number of them in D is
    hypergeometric. Exact, then rounded once.
    """
    size, n = len(group), int(closure.sizes[group[0]])
    y = Fraction(-1, n - 1)
    return np.array([
        [
            float(
                sum(
                    math.comb(j, inside) * math.comb(size - j, k - inside) * y**inside
                    for inside in range(k + 1)
                )
                / Fraction(math.comb(size, k))
            )
            for k in range(min(size, order) + 1)
        ]
        for j in range(size + 1)
    ])  # fmt: skip


def _polynomial(
    closure: "Closure", groups: Sequence[tuple[int, ...]], amounts: np.ndarray
) -> tuple[np.ndarray, float]:
    """F, with the amounts raised to the largest of their kind, by how many of each group are in D.

    And the sum of these amounts.
    """
    order = _order(closure)
    shape = tuple(min(len(group), order) + 1 for group in groups)
    of_residuals = _counts_of(closure.members, groups)
    largest = np.zeros(math.prod(shape))
    np.maximum.at(largest, np.ravel_multi_index(tuple(of_residuals.T), shape), amounts)
    values = largest.reshape(shape)
    # As many residuals as there can be of so many attributes of each group.
    for axis, group in enumerate(groups):
        many = np.array([float(math.comb(len(group), k)) for k in range(shape[axis])])
        values = values * many.reshape([-1 if one == axis else 1 for one in range(len(shape))])
    raised = float(np.sum(values))
    for axis, group in enumerate(groups):
        table = _mean_products(group, closure, order)
        values = np.moveaxis(np.tensordot(table, values, axes=(1, axis)), 0, axis)
    return values, raised


def _descended(
    closure: "Closure", amounts: np.ndarray, start: Sequence[int]
) -> tuple[tuple[int, ...], float]:
    """The attributes of a D from which no single change makes F smaller, and F there."""
    inverse = np.append(-1 / (closure.sizes - np.where(closure.sizes > 1, 1.0, 2.0)), 1.0)
    y = np.ones(len(inverse))
    y[list(start)] = inverse[list(start)]
    members, used, value = closure.members, np.array(_used(closure), dtype=np.int64), 0.0
    for _ in range(_FLIPS):
        terms = amounts * np.prod(y[members], axis=1)
        value = float(np.sum(terms))
        if not len(used):
            break
        sums = np.zeros(len(y))
        for column in range(members.shape[1]):
            sums += np.bincount(members[:, column] % len(y), terms, len(y))
        other = np.where(y == 1.0, inverse, 1.0)
        gains = (sums * (1 - other / y))[used]
        best = int(np.argmax(gains))
        if gains[best] <= 1e-12 * np.sum(amounts):
            break
        y[used[best]] = other[used[best]]
    return tuple(index for index in used.tolist() if y[index] != 1.0), value
