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
Where there are too many sizes for that, `product_bound` bounds C_D nearly as well.

Where totals are exact (docs/guarantees.md, "Exact totals"), neighbours are the moves that keep
them. One record changes in attributes D that are in none of these, at C_D. Or two records exchange
their values of some attributes; where these differ in D, and the others in D', at

    4 Σ_S a_S (1 − ∏_{k ∈ S∩D} y_k) (1 − ∏_{k ∈ S∩D'} y_k).

Every exact total lies among the attributes that are exchanged, or among the others. So totals that
share attributes are on one side, together (`parts_of_totals`).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby
from typing import TYPE_CHECKING, cast

import numpy as np

from rpexplore.common.numbers import read_only
from rpexplore.planning.mechanism.product_bound import product_bound

if TYPE_CHECKING:
    from rpexplore.planning.mechanism.closure import Closure

Totals = tuple[tuple[int, ...], ...]
"""The attribute indices, ascending, of each exact total."""

FREE_NOISE = 1e-9
"""σ² of the total, which is public: whole-number noise of this variance is 0, for all one can see
(another number has a probability below 10^−10^8)."""

MOST_TRIED = 1 << 22  # numbers of attributes of each group in D: five sizes of 20 attributes each
_ALIKE_DIGITS = 6  # of what attributes that may be alike have in common
_CLOSE = 1e-6  # of bound and dearest change: no other grouping is looked for
_FLIPS = 1000
_NO_PRICE = 1e-12
_ROUNDING = 2.0**-48  # of a sum, relative, for each of its terms: far above what floats are off by
MOST_EXCHANGES = 5_000_000  # numbers of attributes of each group in D and in D': 14 attributes
_MOST_OUTER = 20_000  # of them, gone through one by one
_FREE, _ALONE = -2, -1  # parts of attributes: in no exact total, by themselves in one


@dataclass(frozen=True, eq=False)
class Replacement:
    """Groups of attributes of one size, and differences between records, with prices.

    groups  indices of the attributes with several values that some table has, each once
    counts  int64[n, n_groups]: how many attributes of each group two records differ in. A row
            stands for the mean of all D with so many, which costs at most what the dearest does
    prices  float64[n], sum 1
    others  int64[n, n_groups]: of two records that exchange what they differ in, by `counts`: how
            many of the other attributes differ; a row of 0 where one record changes alone
    exact   the attributes, ascending, of each total that neighbours keep; () where they replace
            any record
    """

    groups: tuple[tuple[int, ...], ...]
    counts: np.ndarray
    prices: np.ndarray
    others: np.ndarray
    exact: Totals = ()

    def __post_init__(self) -> None:
        for array in (self.counts, self.prices, self.others):
            read_only(array)

    @classmethod
    def of_all(cls, closure: "Closure", exact: Totals | None = None) -> "Replacement":
        """Of records that differ in all attributes, or nearly; those of one size in one group.

        exact: the totals that neighbours keep; None: those of the closure
        """
        exact = closure.exact_totals if exact is None else exact
        return cls.of_groups(closure, _by_size(closure, exact), exact)

    @classmethod
    def of_groups(
        cls, closure: "Closure", groups: tuple[tuple[int, ...], ...], exact: Totals | None = None
    ) -> "Replacement":
        """Of records that differ in all attributes, and in half of those of two values.

        Two records that differ in two attributes of two values are alike in their residual: beside
        records that differ in all, others must have a price for it to cost anything.
        """
        exact = closure.exact_totals if exact is None else exact
        if exact:
            moves = _first_moves(groups, exact)
            tells = np.any(moves.cost_factors(closure) > 0, axis=1)
            if not np.any(tells):
                return moves
            # A change that no table shows has no price.
            return replace(moves, prices=np.where(tells, moves.prices, 0.0)).priced
        every = [len(group) for group in groups]
        rows = [every]
        for number, group in enumerate(groups):
            if closure.sizes[group[0]] == 2 and sum(every) > 1:
                rows.append([*every[:number], len(group) // 2, *every[number + 1 :]])
        prices = np.full(len(rows), 0.5 / max(len(rows) - 1, 1))
        prices[0] = 1.0 - np.sum(prices[1:])
        return cls(groups, np.array(rows), prices, np.zeros_like(rows))

    def with_counts(self, counts: Sequence[int], others: Sequence[int]) -> "Replacement":
        """With another difference, of which the price is small as yet."""
        rows, beside = np.vstack([self.counts, counts]), np.vstack([self.others, others])
        return replace(self, counts=rows, others=beside, prices=np.append(self.prices * 0.9, 0.1))

    @property
    def priced(self) -> "Replacement":
        """Without differences that have next to no price."""
        kept = self.prices > _NO_PRICE
        prices = self.prices[kept]
        return replace(
            self,
            counts=self.counts[kept],
            others=self.others[kept],
            prices=prices / np.sum(prices),
        )

    def has(self, counts: Sequence[int], others: Sequence[int]) -> bool:
        """Whether this difference is among its own."""
        same = np.all(self.counts == counts, axis=1) & np.all(self.others == others, axis=1)
        return bool(np.any(same))

    @property
    def are_moves(self) -> bool:
        """Whether all of its differences keep the exact totals."""
        parts = parts_of_totals(self.exact)
        of_groups = np.array([parts.get(group[0], _FREE) for group in self.groups])
        alone = ~np.any(self.others > 0, axis=1)
        if np.any(self.counts[alone][:, of_groups != _FREE]):
            return False
        return not any(
            np.any(
                np.any(self.counts[:, of_groups == part] > 0, axis=1)
                & np.any(self.others[:, of_groups == part] > 0, axis=1)
            )
            for part in set(of_groups[of_groups >= 0].tolist())
        )

    def cost_factors(self, closure: "Closure") -> np.ndarray:
        """What each difference costs in each residual at σ² = 1: float64[n, n_residuals]."""
        tables = [_mean_products(group, closure, _order(closure)) for group in self.groups]
        of_residuals = _counts_of(closure.members, self.groups)

        def moved(counts: np.ndarray) -> np.ndarray:
            products = np.ones((len(counts), len(closure)))
            for group, table in enumerate(tables):
                products *= table[counts[:, group]][:, of_residuals[:, group]]
            return products

        shares = 2 * (1 - moved(self.counts))
        exchanged = np.flatnonzero(np.any(self.others > 0, axis=1))
        if len(exchanged):
            counts, others = self.counts[exchanged], self.others[exchanged]
            shares[exchanged] += 2 * (1 - 2 * moved(others) - moved(counts))
            shares[exchanged] += 4 * moved(counts + others)
        shares[:, is_exact(closure, self.exact)] = 0.0
        return closure.full_cost_factor * np.maximum(shares, 0.0)


@dataclass(frozen=True)
class DearestReplacement:
    """What replacing a record costs at most, and the dearest replacement that was found.

    bound    no replacement costs more: float, above by more than its rounding
    counts   how many attributes of each group the dearest differs in, by the bound of the groups,
             or of the one found where these are too many to be tried
    changed  attribute indices of the dearest difference that was found
    found    what it costs
    others, others_changed
             of two records that exchange what they differ in: the same of their other attributes
    """

    bound: float
    counts: tuple[int, ...]
    changed: tuple[int, ...]
    found: float
    others: tuple[int, ...]
    others_changed: tuple[int, ...] = ()

    @property
    def gap(self) -> float:
        """How far the bound may be above the true cost, relative."""
        return self.bound / self.found - 1 if self.found > 0 else 0.0


def dearest_replacement(
    closure: "Closure", groups: Sequence[tuple[int, ...]], sigma_squared: np.ndarray
) -> DearestReplacement:
    """The proven cost of a replacement at these noise scales, and the dearest one found."""
    exact = closure.exact_totals
    with np.errstate(over="ignore"):
        amounts = closure.full_cost_factor / sigma_squared
    amounts = np.where(is_exact(closure, exact), 0.0, amounts)
    total = float(np.sum(amounts))
    allowance = 1 + _ROUNDING * (len(closure) + 100)
    bound, counts = float(np.sum(amounts * largest_shares(closure))) * allowance, ()
    if exact:
        return _dearest_move(closure, groups, amounts, bound, allowance)
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
        counts = _counts_in(groups, changed)
    others, found = (0,) * len(groups), 2 * (total - least)
    if bound > found * (1 + _CLOSE):
        nearly = 2 * product_bound(closure.members, closure.sizes, amounts) * allowance
        bound = min(bound, nearly)
    return DearestReplacement(bound, counts, changed, found, others)


def largest_shares(closure: "Closure") -> np.ndarray:
    """The largest 2 (1 − ∏ y) of each residual, over all D: float64[n_residuals]; 0 of the total.

    The product is least where one attribute, of the fewest values, is in D. Where totals are
    exact: at least the largest one of all moves that keep them.
    """
    none = np.iinfo(np.int64).max
    if closure.exact_totals:
        return _largest_shares_of_moves(closure)
    fewest = np.min(np.append(closure.sizes, none)[closure.members], axis=1, initial=none)
    return np.where(fewest == none, 0.0, 2 * (1 + 1 / (fewest - 1.0)))


def chosen_groups(closure: "Closure", sigma_squared: np.ndarray) -> tuple[tuple[int, ...], ...]:
    """The groups whose bound is the smallest, of some that can be tried."""
    best: tuple[float, tuple[tuple[int, ...], ...]] | None = None
    for groups in _groupings(closure, sigma_squared):
        exact = closure.exact_totals
        too_many = _n_exchanges(groups, exact) > MOST_EXCHANGES if exact else False
        if best is not None and (too_many or _n_tried(groups) > MOST_TRIED):
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
    parts = parts_of_totals(closure.exact_totals)
    keys = {
        index: (int(closure.sizes[index]), parts.get(index, _FREE), *logs[index].tolist())
        for index in _used(closure)
    }
    ordered = sorted(keys, key=lambda index: (keys[index], index))
    yield tuple(tuple(group) for _, group in groupby(ordered, key=keys.__getitem__))
    yield tuple((index,) for index in sorted(keys))
    yield _by_size(closure, closure.exact_totals)


def _by_size(closure: "Closure", exact: Totals) -> tuple[tuple[int, ...], ...]:
    parts = parts_of_totals(exact)
    keys = {index: (int(closure.sizes[index]), parts.get(index, _FREE)) for index in _used(closure)}
    ordered = sorted(keys, key=lambda index: (keys[index], index))
    return tuple(tuple(group) for _, group in groupby(ordered, key=keys.__getitem__))


def _counts_in(groups: Sequence[tuple[int, ...]], changed: Sequence[int]) -> tuple[int, ...]:
    return tuple(sum(index in changed for index in group) for group in groups)


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
    closure: "Closure", amounts: np.ndarray, start: Sequence[int], among: Sequence[int] = ()
) -> tuple[tuple[int, ...], float]:
    """The attributes of a D from which no single change makes F smaller, and F there.

    among: those that D may have; (): all
    """
    inverse = np.append(-1 / (closure.sizes - np.where(closure.sizes > 1, 1.0, 2.0)), 1.0)
    y = np.ones(len(inverse))
    y[list(start)] = inverse[list(start)]
    members, value = closure.members, 0.0
    used = np.array(among or _used(closure), dtype=np.int64)
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


# ---- moves that keep exact totals


def parts_of_totals(exact: Totals) -> dict[int, int]:
    """Attribute index -> the part that it is exchanged with, of those that are in exact totals.

    Totals that share attributes are one part, named by its smallest index; an attribute that no
    total has together with another is `_ALONE`.
    """
    parts: list[set[int]] = []
    for total in exact:
        together = set(total).union(*(part for part in parts if not part.isdisjoint(total)))
        parts = [*(part for part in parts if part.isdisjoint(together)), together]
    return {
        index: min(part) if len(part) > 1 else _ALONE for part in parts for index in sorted(part)
    }


def is_exact(closure: "Closure", exact: Totals) -> np.ndarray:
    """Which residuals are inside of an exact total: bool[n_residuals]; the grand total always."""
    inside = _orders(closure.members) == 0
    for total in exact:
        inside |= np.all((closure.members < 0) | np.isin(closure.members, total), axis=1)
    return inside


def is_kept_by_all(closure: "Closure", exact: Totals) -> np.ndarray:
    """Which residuals no move changes though they are inside of no exact total: bool[n_residuals].

    Their attributes are together in a part of totals that share some.
    """
    if not closure.members.shape[1]:  # the total alone, which is exact
        return np.zeros(len(closure), dtype=bool)
    parts, n_attributes = parts_of_totals(exact), len(closure.sizes)
    of_attributes = np.array([*(parts.get(index, _FREE) for index in range(n_attributes)), -3])
    found, first = of_attributes[closure.members], of_attributes[closure.members[:, :1]]
    in_one = np.all((found == first) | (closure.members < 0), axis=1) & (first[:, 0] >= 0)
    return in_one & ~is_exact(closure, exact)


def _first_moves(groups: tuple[tuple[int, ...], ...], exact: Totals) -> Replacement:
    """One record changes in all that it may, or in half of it; two exchange what is in totals.

    Where there is nothing else, they exchange every other part.
    """
    parts = parts_of_totals(exact)
    of_groups = [parts.get(group[0], _FREE) for group in groups]
    sizes = np.array([len(group) for group in groups])
    is_free, none = np.array(of_groups) == _FREE, np.zeros(len(groups), dtype=np.int64)
    if np.any(is_free):
        free = np.where(is_free, sizes, 0)
        half = np.where(is_free, (sizes + 1) // 2, 0)
        counts, others = [free, sizes - free], [none, free]
        if np.all(is_free):  # of totals of other parts of a plan
            first = half if np.any(half < free) else np.where(np.arange(len(sizes)) % 2, 0, free)
            counts[1], others[1] = first, free - first
        if np.any(half < free):
            counts, others = [half, *counts], [none, *others]
    else:
        sides = {part: place % 2 for place, part in enumerate(dict.fromkeys(of_groups))}
        side = np.array([sides[part] for part in of_groups])
        if len(sides) == 1:  # attributes by themselves alone
            of_first = np.where(sizes > 1, sizes // 2, np.arange(len(sizes)) % 2)
        else:
            of_first = np.where(side == 0, sizes, 0)
        counts, others = [of_first], [sizes - of_first]
    prices = np.full(len(counts), 1 / len(counts))
    return Replacement(groups, np.array(counts), prices, np.array(others), exact)


def _largest_shares_of_moves(closure: "Closure") -> np.ndarray:
    """For each residual at least the largest share of all moves: float64[n_residuals].

    Of an exchange the two products are least where each side has one attribute, and these the
    fewest values.
    """
    exact = closure.exact_totals
    parts, none = parts_of_totals(exact), np.inf
    fewest = np.sort(np.append(closure.sizes, none)[closure.members], axis=1)
    first, second = (
        fewest[:, k] if fewest.shape[1] > k else np.full(len(closure), none) for k in (0, 1)
    )
    is_free = np.array([index not in parts for index in range(len(closure.sizes))] + [False])
    of_free = np.where(
        is_free[closure.members], np.append(closure.sizes, none)[closure.members], none
    )
    of_free = np.min(of_free, axis=1, initial=none)
    changed = np.where(of_free < none, 2 * (1 + 1 / (of_free - 1)), 0.0)
    exchanged = np.where(second < none, 4 * (1 + 1 / (first - 1)) * (1 + 1 / (second - 1)), 0.0)
    return np.where(is_exact(closure, exact), 0.0, np.maximum(changed, exchanged))


def _sides(groups: Sequence[tuple[int, ...]], exact: Totals) -> list[list[int]]:
    """Numbers of the groups that are on one side together: those of one part; others alone."""
    parts = parts_of_totals(exact)
    sides: dict[int | str, list[int]] = {}
    for number, group in enumerate(groups):
        part = parts.get(group[0], _FREE)
        sides.setdefault(part if part >= 0 else f"{number} alone", []).append(number)
    return list(sides.values())


def _is_together(side: Sequence[int], groups: Sequence[tuple[int, ...]], exact: Totals) -> bool:
    return parts_of_totals(exact).get(groups[side[0]][0], _FREE) >= 0


def _n_exchanges(groups: Sequence[tuple[int, ...]], exact: Totals) -> int:
    """How many pairs of D and D' there are by the numbers of attributes in each group."""
    n = 1
    for side in _sides(groups, exact):
        sizes = [len(groups[number]) for number in side]
        if _is_together(side, groups, exact):
            n *= 2 * math.prod(size + 1 for size in sizes) - 1
        else:
            n *= (sizes[0] + 1) * (sizes[0] + 2) // 2
    return n


def _dearest_move(
    closure: "Closure",
    groups: Sequence[tuple[int, ...]],
    amounts: np.ndarray,
    bound: float,
    allowance: float,
) -> DearestReplacement:
    """`dearest_replacement` where totals are exact; bound: of each residual by itself."""
    exact, total = closure.exact_totals, float(np.sum(amounts))
    parts, none = parts_of_totals(exact), (0,) * len(groups)
    free = [index for index in _used(closure) if index not in parts]
    of_free = tuple(len(group) if group[0] not in parts else 0 for group in groups)
    start, exchanged = free, _halves(closure, exact)
    known: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    if _n_tried(groups) <= MOST_TRIED and _n_exchanges(groups, exact) <= MOST_EXCHANGES:
        polynomial, raised = _polynomial(closure, groups, amounts)
        # One record changes: D has free attributes alone.
        alone = polynomial[tuple(slice(size + 1) for size in of_free)]
        place = int(np.argmin(alone))
        changed = tuple(map(int, np.unravel_index(place, alone.shape)))
        value, counts, others = _dearest_exchange(polynomial, groups, exact)
        value = 4 * (raised + value)
        of_one = 2 * (raised - float(alone.flat[place]))
        bound = min(bound, max(value, of_one) + 16 * raised * (allowance - 1))
        known = (counts, others) if value > of_one else (changed, none)
        start = _first_of(groups, changed)
        exchanged = _first_of(groups, counts), _first_of(groups, others, counts)
    changed, least = _descended(closure, amounts, start, free) if free else ((), total)
    found, sides = 2 * (total - least), cast("tuple[int, ...]", ())
    first, second, of_two = _ascended(closure, amounts, *exchanged)
    if of_two > found:
        changed, sides, found = first, second, of_two
    if known is None:
        known = _counts_in(groups, changed), _counts_in(groups, sides)
    return DearestReplacement(bound, known[0], changed, found, known[1], sides)


def _first_of(
    groups: Sequence[tuple[int, ...]], counts: Sequence[int], behind: Sequence[int] | None = None
) -> list[int]:
    """So many attributes of each group, behind as many others."""
    begins = behind or (0,) * len(groups)
    pairs = zip(groups, begins, counts, strict=True)
    return [index for group, begin, count in pairs for index in group[begin : begin + count]]


def _halves(closure: "Closure", exact: Totals) -> tuple[list[int], list[int]]:
    """Attributes in exact totals and others; or every other part, where there are no others."""
    used, parts = _used(closure), parts_of_totals(exact)
    inside = [index for index in used if index in parts]
    if len(inside) < len(used):
        return inside, [index for index in used if index not in parts]
    keys = [parts[index] if parts[index] >= 0 else -index - 1 for index in inside]
    places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    sides: tuple[list[int], list[int]] = ([], [])
    for index, key in zip(inside, keys, strict=True):
        sides[places[key] % 2].append(index)
    return sides


def _dearest_exchange(
    polynomial: np.ndarray, groups: Sequence[tuple[int, ...]], exact: Totals
) -> tuple[float, tuple[int, ...], tuple[int, ...]]:
    """The largest F(D ∪ D') − F(D) − F(D') of all exchanges, and the counts of D and D'."""
    flat = polynomial.reshape(-1)
    strides = [math.prod(polynomial.shape[axis + 1 :]) for axis in range(polynomial.ndim)]
    # Flat places of D and D' add up over sides: half of the sides one by one, the others at once.
    options = [_options(side, groups, strides, exact) for side in _sides(groups, exact)]
    options.sort(key=len)
    n_outer, outer, inner = 0, np.zeros((1, 2), dtype=np.int64), np.zeros((1, 2), dtype=np.int64)
    for own in options:
        if len(outer) * len(own) <= _MOST_OUTER and n_outer < len(options) // 2:
            outer, n_outer = _sums_of(outer, own), n_outer + 1
        else:
            inner = _sums_of(inner, own)
    best, places = -np.inf, (0, 0)
    for first, second in outer.tolist():
        one, two = inner[:, 0] + first, inner[:, 1] + second
        values = flat[one + two] - flat[one] - flat[two]
        place = int(np.argmax(values))
        if values[place] > best:
            best, places = float(values[place]), (int(one[place]), int(two[place]))
    counts, others = (
        tuple(map(int, np.unravel_index(place, polynomial.shape))) for place in places
    )
    return best, counts, others


def _options(
    side: Sequence[int], groups: Sequence[tuple[int, ...]], strides: Sequence[int], exact: Totals
) -> np.ndarray:
    """What groups on one side add to the flat places of D and D': int64[n, 2]."""
    if not _is_together(side, groups, exact):
        (number,) = side
        size, stride = len(groups[number]), strides[number]
        pairs = [(one, two) for one in range(size + 1) for two in range(size + 1 - one)]
        return np.array(pairs, dtype=np.int64) * stride
    places = np.zeros(1, dtype=np.int64)
    for number in side:
        own = np.arange(len(groups[number]) + 1) * strides[number]
        places = (places[:, np.newaxis] + own).reshape(-1)
    of_first = np.column_stack([places, np.zeros_like(places)])
    return np.vstack([of_first, of_first[1:, ::-1]])


def _sums_of(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    return (one[:, np.newaxis] + two).reshape(-1, 2)


def _ascended(
    closure: "Closure", amounts: np.ndarray, first: Sequence[int], second: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...], float]:
    """An exchange from which no change of one attribute costs more: D, D', and its cost."""
    members, n = closure.members, len(closure.sizes)
    parts = parts_of_totals(closure.exact_totals)
    used = _used(closure)
    y = np.append(-1 / (closure.sizes - np.where(closure.sizes > 1, 1.0, 2.0)), 1.0)
    side = np.zeros(n, dtype=np.int64)
    side[list(first)], side[list(second)] = 1, 2
    value = 0.0
    for _ in range(_FLIPS):
        # Factors in D, D' and both, with the sums of terms that each attribute is in.
        factors = np.ones((3, n + 1))
        factors[0, :n] = np.where(side == 1, y[:n], 1.0)
        factors[1, :n] = np.where(side == 2, y[:n], 1.0)
        factors[2, :n] = np.where(side > 0, y[:n], 1.0)
        terms = [amounts * np.prod(own[members], axis=1) for own in factors]
        value = 4 * float(np.sum(amounts - terms[0] - terms[1] + terms[2]))
        sums = np.zeros((3, n + 1))
        for column in range(members.shape[1]):
            for own, term in zip(sums, terms, strict=True):
                own += np.bincount(members[:, column] % (n + 1), term, n + 1)
        best, gain = None, 1e-12 * float(np.sum(amounts))
        for index in used:
            part = parts.get(index, _FREE)
            beside = {
                int(side[other])
                for other in used
                if other != index and part >= 0 and parts.get(other) == part
            } - {0}
            for new in {0, 1, 2} - {int(side[index])}:
                if beside and new and new not in beside:
                    continue
                after = [y[index] if new in own else 1.0 for own in ((1,), (2,), (1, 2))]
                ratios = np.array(after) / factors[:, index] - 1
                gained = 4 * float(np.dot(ratios * [-1, -1, 1], sums[:, index]))
                if gained > gain:
                    best, gain = (index, new), gained
        if best is None:
            break
        side[best[0]] = best[1]
    return (
        tuple(index for index in used if side[index] == 1),
        tuple(index for index in used if side[index] == 2),
        value,
    )
