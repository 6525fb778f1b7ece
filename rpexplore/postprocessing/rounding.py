"""Whole numbers for a table: each cell moves by less than 1, and totals are kept where they can be.

Rounded from the total down to the cells, attribute by attribute (docs/mathematics.md §12): at every
step the parts with the largest fractions go up, as many as their whole needs. What two tables have
for their first attributes in common is the same in both; totals over other attributes may differ.
Nothing is drawn at random, so the same table is always rounded alike: a bias of less than 1 a cell.
"""

from collections.abc import Sequence

import numpy as np

_WHOLE = 1e-6  # a number this near to a whole one is taken for it, and not the one below


def rounded(totals: Sequence[np.ndarray]) -> np.ndarray:
    """A table in whole numbers, float64, one axis an attribute.

    totals: the table summed over all its attributes, over all but the first, over all but the first
    two, …, and the table itself; each the sum of the next up to rounding errors.
    """
    first, *finer = totals
    whole = np.rint(first)
    for values in finer:
        whole = _parts(whole.ravel(), values.reshape(whole.size, -1)).reshape(values.shape)
    return whole


def _parts(wholes: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The values [m, n] in whole numbers that add up to wholes [m] along each row.

    A whole is at less than 1 from the sum of its row.
    """
    nearest = np.rint(values)
    whole = np.where(np.abs(values - nearest) < _WHOLE, nearest, np.floor(values))
    fractions = values - whole
    missing = (wholes - whole.sum(axis=1))[:, np.newaxis]
    order = np.argsort(-fractions, axis=1, kind="stable")
    rank = np.argsort(order, axis=1)
    whole += rank < missing
    # Of numbers that were taken for whole ones a little above them, the sum can be one too many.
    whole -= rank >= values.shape[1] + missing
    return whole
