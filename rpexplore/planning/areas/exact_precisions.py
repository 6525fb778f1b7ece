"""Exact precisions: whole multiples of rational units, and what they cost.

See docs/mathematics.md §15.6.
"""

from fractions import Fraction

import numpy as np

from rpexplore.common.numerics import read_only
from rpexplore.planning.areas.area_groups import AreaGroups
from rpexplore.planning.mechanism.closure import Closure

# Precisions are whole multiples of a unit: the largest has so many bits.
PRECISION_BITS, FACTOR_BITS, _UNIT_BITS = 40, 20, 40


def whole_multiples(values: np.ndarray, bits: int) -> np.ndarray:
    """Values over the largest as whole numbers of so many bits, rounded down; above 0 at least 1.

    An area's own measurement may say next to nothing where it is known as the rest of another.
    """
    whole = np.floor(values / np.max(values) * 2.0**bits).astype(np.int64)
    return read_only(np.where(values > 0, np.maximum(whole, 1), 0))


def profile_costs(closure: Closure, of_residual: np.ndarray, factors: np.ndarray) -> list[Fraction]:
    """Σ p_S factor_S over the residuals of each profile, exact."""
    # p_S is a product over the attributes of S: (n−1)/n of single values, or the strategy's own
    # (§4.2).
    factors_of_attributes = [Fraction(n - 1, n) for n in closure.sizes.tolist()]
    for attribute, strategy in closure.strategies.items():
        factors_of_attributes[attribute] = strategy.cost_factor
    of_residuals = closure.exact_product(factors_of_attributes, np.arange(len(closure)))
    costs = [Fraction(0)] * (int(np.max(of_residual)) + 1)
    for residual, profile in enumerate(of_residual.tolist()):
        costs[profile] += of_residuals[residual] * int(factors[residual])
    return costs


def largest_record_cost(
    groups: AreaGroups, multiples: np.ndarray, costs: list[Fraction]
) -> Fraction:
    """The largest sum of multiples times costs on the way down to an area, exact."""
    sums = np.stack([groups.summed_downwards(row)[groups.undivided] for row in multiples])
    # Fractions for millions of areas would be slow: floats choose the few candidates.
    rough = np.array([float(cost) for cost in costs]) @ sums
    # A float sum of a few positive terms is within some units in the last place of what it is.
    candidates = np.flatnonzero(rough >= np.max(rough) * (1 - 1e-12))
    columns = {tuple(column) for column in sums[:, candidates].T.tolist()}
    return max(
        sum((cost * n for cost, n in zip(costs, column, strict=True)), Fraction(0))
        for column in columns
    )


def rounded_down(value: Fraction) -> Fraction:
    """The largest number of few bits that is not above a value."""
    # So that value · 2^exponent has about `_UNIT_BITS` bits before the point.
    exponent = value.denominator.bit_length() - value.numerator.bit_length() + _UNIT_BITS
    scale = Fraction(2) ** exponent
    return Fraction(int(value * scale)) / scale
