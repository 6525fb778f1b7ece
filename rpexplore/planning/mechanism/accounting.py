"""Exact accounting: what given noise scales cost and give, in integer arithmetic.

Floats plan; integers decide. Nothing here rounds except towards a higher privacy cost.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from rpexplore.common.exact_numbers import Decimals
from rpexplore.planning.mechanism.closure import Closure

_GUARD_DIGITS = 30


def privacy_cost_upper_bound(closure: Closure, sigma_squared: Decimals) -> Fraction:
    """Σ_A p_A / σ²_A over the closure, never below the true sum (docs/mathematics.md §2.4).

    p_A is ∏ (n_i − 1)/n_i, or for attributes with a strategy ∏ β_i. Each term is rounded up, the
    sum by less than 10^−29 of the smallest term times their number.
    """
    costs = [Fraction(n - 1, n) for n in closure.sizes.tolist()]
    for attribute, strategy in closure.strategies.items():
        costs[attribute] = strategy.cost_factor
    above = closure.exact_product([cost.numerator for cost in costs])
    below = closure.exact_product([cost.denominator for cost in costs])
    below = below * sigma_squared.digits.astype(object)
    smallest = float(np.min(closure.privacy_cost_factor / sigma_squared.floats))
    digits = max(_GUARD_DIGITS - int(np.floor(np.log10(smallest))), 0)
    shifts = digits - sigma_squared.exponents  # p/σ² · 10^digits = above · 10^shift / below
    powers = np.array([10**k for k in range(int(np.max(np.abs(shifts))) + 1)], dtype=object)
    above = above * powers[np.maximum(shifts, 0)]
    below = below * powers[np.maximum(-shifts, 0)]
    return Fraction(int(np.sum(-(-above // below))), 10**digits)


@dataclass(frozen=True, eq=False)
class ExactVariances:
    """Variance of each marginal as exact integers: numerators[i] · scale / cells[i]².

    numerators, cells: Python integers, object[n_tables]; scale: a power of ten.
    """

    numerators: np.ndarray
    cells: np.ndarray
    scale: Fraction

    @classmethod
    def of(cls, closure: Closure, cells: np.ndarray, sigma_squared: Decimals) -> "ExactVariances":
        """From the closure, the exact cell counts (object[n_tables]) and the noise scales."""
        digits, exponent = sigma_squared.on_common_exponent()
        terms = closure.exact_product([n * (n - 1) for n in closure.sizes.tolist()]) * digits
        incidence = closure.incidence
        sums = np.add.reduceat(terms[incidence.indices], incidence.indptr[:-1])
        return cls(sums, cells, Fraction(10) ** exponent)

    def fraction(self, table: int) -> Fraction:
        """The variance of one table."""
        return Fraction(self.numerators[table], self.cells[table] ** 2) * self.scale

    def differing(self, stated: np.ndarray, tolerance: Fraction) -> np.ndarray:
        """Indices of tables whose stated variance (taken exactly) is off by more, relative."""
        off = []
        for table, value in enumerate(stated.tolist()):
            above, below = value.as_integer_ratio()
            exact = self.numerators[table] * self.scale.numerator * below
            claimed = above * self.cells[table] ** 2 * self.scale.denominator
            if abs(claimed - exact) * tolerance.denominator > exact * tolerance.numerator:
                off.append(table)
        return np.array(off, dtype=np.int64)
