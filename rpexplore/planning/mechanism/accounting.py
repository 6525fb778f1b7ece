"""Exact accounting: what given noise scales cost and give, in integer arithmetic.

Floats plan; integers decide. Nothing here rounds except towards a higher privacy cost.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from rpexplore.common.numbers import Decimals, distinct_rows
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.dearest_pair import (
    Precisions,
    RecordPair,
    dearest_pair,
    pair_products,
)
from rpexplore.planning.mechanism.levels import COST_STEPS
from rpexplore.planning.mechanism.panel import has_period, partners_of
from rpexplore.planning.mechanism.replacement import dearest_replacement

_GUARD_DIGITS = 30
_MOST_COMPARED = 64  # subsets of a table that are compared with another's


def privacy_cost_upper_bound(closure: Closure, sigma_squared: Decimals) -> Fraction:
    """Σ_A p_A / σ²_A over the closure, never below the true sum (docs/mathematics.md §2.4).

    p_A is ∏ (n_i − 1)/n_i, or for attributes with a strategy ∏ β_i. Each term is rounded up, the
    sum by less than 10^−29 of the smallest term times their number. Where neighbours replace a
    record, `replacement_cost`; or each residual is charged twice `Closure.replaced_shares` as much.
    """
    if closure.replacement is not None:
        return replacement_cost(closure, sigma_squared)[0]
    if closure.panel is not None:
        return panel_cost(closure, sigma_squared)
    costs = [Fraction(n - 1, n) for n in closure.sizes.tolist()]
    for attribute, strategy in closure.strategies.items():
        costs[attribute] = strategy.cost_factor
    if closure.classes is not None:
        return _largest_cost_of_kinds(closure, costs, sigma_squared)
    of_attributes: Sequence[Hashable] = costs
    # Whose shares, or matrices, are those of attributes.
    if closure.by_residual or closure.residual_moments:
        of_attributes = range(len(costs))
    first, kinds = _kinds_of_residuals(closure, of_attributes, sigma_squared)
    counts, scales = np.bincount(kinds).astype(object), sigma_squared[first]
    above = closure.exact_product([cost.numerator for cost in costs], first)
    below = closure.exact_product([cost.denominator for cost in costs], first)
    above, below = _replaced(closure, first, above, below)
    for place in np.flatnonzero(np.isin(first, closure.residuals_with_own_matrices)).tolist():
        for number, own in closure.own_matrices(int(first[place])).items():
            ratio = own.cost_factor / costs[number]
            above[place], below[place] = (
                above[place] * ratio.numerator,
                below[place] * ratio.denominator,
            )
    below = below * scales.digits.astype(object)
    smallest = _smallest(closure.full_cost_factor[first] / scales.floats)
    terms, digits = _rounded_up(above, below, scales.exponents, smallest)
    return Fraction(int(np.sum(terms * counts)), 10**digits)


def _replaced(
    closure: Closure, residuals: np.ndarray, above: np.ndarray, below: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Numerators and denominators times what replacing a record costs, where one is replaced."""
    if not closure.by_residual:
        return above, below
    shares = 2 * closure.replaced_shares[residuals]
    ratios = [share.as_integer_ratio() for share in shares]
    numerators, denominators = np.array(ratios, dtype=object).reshape(-1, 2).T
    return above * numerators, below * denominators


def _smallest(amounts: np.ndarray) -> float:
    return float(np.min(amounts[amounts > 0], initial=1.0))


def _rounded_up(
    above: np.ndarray, below: np.ndarray, exponents: np.ndarray, smallest: float
) -> tuple[np.ndarray, int]:
    """above / below / 10^exponents as whole numbers of 10^−digits, rounded up: object[n], digits.

    smallest: about the smallest of them
    """
    digits = max(_GUARD_DIGITS - int(np.floor(np.log10(smallest))), 0)
    shifts = digits - exponents
    powers = np.array([10**k for k in range(int(np.max(np.abs(shifts))) + 1)], dtype=object)
    above = above * powers[np.maximum(shifts, 0)]
    below = below * powers[np.maximum(-shifts, 0)]
    return -(-above // below), digits


def replacement_cost(closure: Closure, sigma_squared: Decimals) -> tuple[Fraction, Fraction]:
    """What replacing a record costs at most, and the dearest replacement that was found.

    The first is never below the cost of any replacement; the second is that of one, rounded up by
    less than `privacy_cost_upper_bound` rounds.
    """
    assert closure.replacement is not None
    dearest = dearest_replacement(closure, closure.replacement.groups, sigma_squared.floats)
    found = cost_of_difference(closure, dearest.changed, sigma_squared, dearest.others_changed)
    return max(Fraction(dearest.bound), found), found


def dearest_by_residual(closure: Closure, sigma_squared: Decimals) -> tuple[RecordPair, Fraction]:
    """The dearest two records found where each residual is charged by itself, and their cost.

    The cost is exact, rounded up by less than `privacy_cost_upper_bound` rounds.
    """
    precision = np.where(closure.is_public, 0.0, 1 / sigma_squared.floats)
    pair = dearest_pair(closure, Precisions(precision, precision, precision))
    first, second, shared, below = pair_products(closure, pair)
    moved = np.flatnonzero(~closure.is_public)
    above = (first + second - 2 * shared)[moved]
    scales = sigma_squared[moved]
    below = below[moved] * scales.digits.astype(object)
    smallest = _smallest(closure.full_cost_factor[moved] / scales.floats)
    terms, digits = _rounded_up(above, below, scales.exponents, smallest)
    return pair, Fraction(int(np.sum(terms)), 10**digits)


def panel_cost(closure: Closure, sigma_squared: Decimals) -> Fraction:
    """What a person costs at most, over m², who has one record a period: rounded up as others."""
    panel = closure.panel
    assert panel is not None
    n, m, every = int(closure.sizes[panel.period]), panel.most, np.arange(len(closure))
    sizes = closure.sizes.tolist()
    above = closure.exact_product([k - 1 for k in sizes], every)
    below = closure.exact_product(sizes, every)
    inside = np.flatnonzero(has_period(closure, panel.period))
    above[inside] = above[inside] // (n - 1) * n  # the period has no part in p
    partners = partners_of(closure, panel.period)
    paired = np.flatnonzero(partners >= 0)
    by_period = partners[paired]
    # t ≥ t_q/n: p (t + (1/m − 1/n) t_q), else p t_q/m. Where rounding decides, both are the same.
    own, others = sigma_squared.floats[paired], sigma_squared.floats[by_period]
    is_above = n * others >= own
    above[by_period] = above[by_period] * np.where(is_above, n - m, n).astype(object)
    below[by_period] = below[by_period] * (n * m)
    above[paired[~is_above]] = 0
    below = below * sigma_squared.digits.astype(object)
    terms, digits = _rounded_up(
        above,
        below,
        sigma_squared.exponents,
        float(np.min(closure.full_cost_factor / sigma_squared.floats)) / (n * m),
    )
    # Floats may take the smaller side where both are within 2^-50 of each other.
    return Fraction(int(np.sum(terms)), 10**digits) * (1 + Fraction(1, 2**48))


def cost_of_difference(
    closure: Closure,
    changed: Sequence[int],
    sigma_squared: Decimals,
    others: Sequence[int] = (),
) -> Fraction:
    """2 Σ p/σ² (1 − ∏ −1/(n − 1)) for two records that differ in these attributes alone.

    others: of two records that exchange what they differ in, the other attributes that differ:
        4 Σ p/σ² (1 − ∏ −1/(n − 1)) (1 − ∏ −1/(n − 1)), a product over each of the two
    """
    sizes, own, beside = closure.sizes.tolist(), set(changed), set(others)
    of_attributes = [(n, index in own, index in beside) for index, n in enumerate(sizes)]
    first, kinds = _kinds_of_residuals(closure, of_attributes, sigma_squared)

    # Over ∏ n the factor is ∏ (n − 1) less the same with −1 for attributes that differ.
    def signed(own: set[int]) -> np.ndarray:
        factors = [-1 if index in own else n - 1 for index, n in enumerate(sizes)]
        return closure.exact_product(factors, first)

    above = 2 * (signed(set()) - signed(own))
    if others:
        above = 2 * (above - 2 * (signed(beside) - signed(own | beside)))
    scales = sigma_squared[first]
    below = closure.exact_product(sizes, first) * scales.digits.astype(object)
    amounts = (above / below).astype(float) * 10.0 ** -scales.exponents.astype(float)
    smallest = float(np.min(amounts[amounts > 0], initial=1.0))
    terms, digits = _rounded_up(above, below, scales.exponents, smallest)
    counts = np.bincount(kinds).astype(object)
    return Fraction(int(np.sum(terms * counts)), 10**digits)


def _largest_cost_of_kinds(
    closure: Closure, costs: Sequence[Fraction], sigma_squared: Decimals
) -> Fraction:
    """`privacy_cost_upper_bound` where records of different kinds cost in different residuals."""
    classes = closure.classes
    assert classes is not None
    every = np.arange(len(closure))
    above = closure.exact_product([cost.numerator for cost in costs], every)
    below = closure.exact_product([cost.denominator for cost in costs], every)
    above, below = _replaced(closure, every, above, below)
    below = below * sigma_squared.digits.astype(object)
    smallest = _smallest(closure.full_cost_factor / sigma_squared.floats)
    terms, digits = _rounded_up(above, below, sigma_squared.exponents, smallest)
    # Whole numbers of this part, exactly: below 2^53 for as many trees as there can be.
    steps = COST_STEPS ** len(closure.trees)
    parts = np.rint(classes.data * steps).astype(np.int64).astype(object)
    sums = np.add.reduceat(terms[classes.indices] * parts, classes.indptr[:-1])
    return Fraction(int(np.max(sums)), steps * 10**digits)


@dataclass(frozen=True, eq=False)
class ExactVariances:
    """Variance of each marginal as exact integers: numerators[k] · scale / cells[k]², k its kind.

    Tables of a kind have subsets of the same sizes with the same noise, one by one.

    kinds: int64[n_tables]; numerators, cells: Python integers, object[n_kinds]; scale: a power of
    ten.
    """

    kinds: np.ndarray
    numerators: np.ndarray
    cells: np.ndarray
    scale: Fraction

    @classmethod
    def of(cls, closure: Closure, sigma_squared: Decimals) -> "ExactVariances":
        """From the closure of marginals and the noise scales."""
        sizes = closure.sizes.tolist()
        residuals, kinds_of_residuals = _kinds_of_residuals(closure, sizes, sigma_squared)
        digits, exponent = sigma_squared[residuals].on_common_exponent()
        terms = closure.exact_product([n * (n - 1) for n in sizes], residuals) * digits
        incidence = closure.incidence
        first, kinds = _kinds_of_tables(incidence.indptr, kinds_of_residuals[incidence.indices])
        rows = incidence[first]
        sums = np.add.reduceat(terms[kinds_of_residuals[rows.indices]], rows.indptr[:-1])
        # A table's last subset is the table itself.
        cells = closure.exact_product(sizes, incidence.indices[incidence.indptr[first + 1] - 1])
        return cls(kinds, sums, cells, Fraction(10) ** exponent)

    def fraction(self, table: int) -> Fraction:
        """The variance of one table."""
        kind = int(self.kinds[table])
        return Fraction(self.numerators[kind], self.cells[kind] ** 2) * self.scale

    def differing(self, stated: np.ndarray, tolerance: Fraction) -> np.ndarray:
        """Indices of tables whose stated variance (taken exactly) is off by more, relative."""
        first, kinds = distinct_rows((self.kinds, stated))
        up, down = self.scale.as_integer_ratio()
        within, parts = tolerance.as_integer_ratio()
        exact = self.numerators[self.kinds[first]] * up
        squares = self.cells[self.kinds[first]] ** 2 * down
        is_off = np.zeros(len(first), dtype=bool)
        for index, value in enumerate(stated[first].tolist()):
            above, below = value.as_integer_ratio()
            off = abs(above * squares[index] - exact[index] * below)
            is_off[index] = off * parts > exact[index] * below * within
        return np.flatnonzero(is_off[kinds])


def _kinds_of_residuals(
    closure: Closure, of_attributes: Sequence[Hashable], sigma_squared: Decimals
) -> tuple[np.ndarray, np.ndarray]:
    """Residuals with the same σ² whose attributes are alike, as `distinct_rows` has them.

    of_attributes: what attributes that are alike have in common.
    """
    kinds = {value: kind for kind, value in enumerate(dict.fromkeys(of_attributes))}
    of_members = np.array([*(kinds[value] for value in of_attributes), -1])[closure.members]
    return distinct_rows((*of_members.T, sigma_squared.digits, sigma_squared.exponents))


def _kinds_of_tables(starts: np.ndarray, entries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Equal rows of a ragged array, as `distinct_rows` has them: row i from starts[i] on.

    Where there are long ones every row is of a kind of its own.
    """
    lengths = np.diff(starts)
    if lengths.max() > _MOST_COMPARED:
        return np.arange(len(lengths)), np.arange(len(lengths))
    columns = [
        np.where(column < lengths, entries[np.minimum(starts[:-1] + column, len(entries) - 1)], -1)
        for column in range(int(lengths.max()))
    ]
    return distinct_rows(columns)
