"""The cells of one table that stay above 0, found set by set: for tables that are nearly all 0."""

from collections.abc import Iterator
from itertools import combinations
from math import prod

import numpy as np

# Of one table x, the squared length of its contributions is xᵀ H x, H the Kronecker product of
# I + (1 − 1/n_j) 1 1ᵀ over its axes: the total over some axes counts as often as they have cells.
# The nearest nonnegative table with its total, at multipliers λ ≥ 0 that are 0 where x is above 0,
# has H (x − x₀) + ν 1 = λ. A primal-dual active set method (Hintermüller, Ito and Kunisch 2002)
# takes the cells where x − λ > 0 for those above 0, solves the equations for these alone, by
# conjugate gradients, and looks again. Each set takes time in proportion to its cells, but for one
# product with H. Whether it ends is not proven for this H, whose entries are all above 0: what it
# finds is a proposal, which `nonnegative` judges by its certificate.

MOST_SHARE = 1 / 10
"""Of the cells of a table: of more than these a set takes longer than many rounds over all."""

_MOST_SETS = 12
_SETTLED = 0.05  # of the cells of a set: where fewer change, it is told as near to the last one
_ROUGHLY, _FINELY = 1e-3, 1e-7  # residuals by the first one, before a set is that near, and then
_MOST_STEPS = 400


def sets_above_zero(
    cells: np.ndarray, start: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Tables near the nearest nonnegative one, and their multipliers λ, each better as a rule.

    Args:
        cells: The table x₀, float64, one axis an attribute of several values; its total is kept.
        start: Above 0 where the nearest table may be, of the same shape.

    Yields:
        x and λ, both ≥ 0 and shaped alike; nothing where no set was found that is nearly right.
    """
    total, weighted = float(cells.sum()), _weighted(cells).ravel()
    values, tolerance = start.ravel(), _ROUGHLY
    for _ in range(_MOST_SETS):
        own = np.flatnonzero(values > 0)
        if not 0 < len(own) <= MOST_SHARE * cells.size:
            return
        table = np.zeros(cells.size)
        table[own] = _solved(
            np.unravel_index(own, cells.shape),
            cells.shape,
            weighted[own],
            values[own] + (total - values[own].sum()) / len(own),
            tolerance,
        )
        multipliers = _weighted(table.reshape(cells.shape)).ravel() - weighted
        multipliers -= np.mean(multipliers[own])
        multipliers[own] = 0.0
        n_changes = np.count_nonzero(table < 0) + np.count_nonzero(multipliers < 0)
        values = table - multipliers
        if n_changes <= _SETTLED * len(own):
            tolerance = _FINELY
            both = np.maximum(table, 0), np.maximum(multipliers, 0)
            yield both[0].reshape(cells.shape), both[1].reshape(cells.shape)
            if n_changes == 0:
                return


def _weighted(table: np.ndarray) -> np.ndarray:
    """H x."""
    for axis, size in enumerate(table.shape):
        table = table + (1 - 1 / size) * table.sum(axis=axis, keepdims=True)
    return table


def _solved(
    places: tuple[np.ndarray, ...],
    shape: tuple[int, ...],
    wanted: np.ndarray,
    start: np.ndarray,
    tolerance: float,
) -> np.ndarray:
    """The numbers of some cells with (H x)ᵢ = wanted up to one constant, and the sum of the start.

    places: the indices of the cells along each axis
    """
    # H = Σ_B ∏_{j∈B} (1 − 1/n_j) · (totals over the axes B): a total for each value of the others.
    # That over all axes is left out, as it stays.
    sums: list[tuple[np.ndarray, int, float]] = []
    axes = range(len(shape))
    for n_summed in range(1, len(shape)):
        for summed in combinations(axes, n_summed):
            others = [axis for axis in axes if axis not in summed]
            cell = np.ravel_multi_index(
                [places[axis] for axis in others], [shape[axis] for axis in others]
            )
            totals, which = np.unique(cell, return_inverse=True)
            factor = prod(1 - 1 / shape[axis] for axis in summed)
            sums.append((which, len(totals), factor))

    def image(vector: np.ndarray) -> np.ndarray:
        """H of these cells, but for what is alike in all of them."""
        result = vector.copy()
        for which, n_totals, factor in sums:
            result += factor * np.bincount(which, vector, n_totals)[which]
        return result - result.mean()

    numbers = start.copy()
    residual = wanted - wanted.mean() - image(numbers)
    direction, length = residual.copy(), float(residual @ residual)
    goal = tolerance**2 * length
    for _ in range(_MOST_STEPS):
        if length <= goal:
            break
        of_direction = image(direction)
        step = length / float(direction @ of_direction)
        numbers += step * direction
        residual -= step * of_direction
        shorter = float(residual @ residual)
        direction = residual + shorter / length * direction
        length = shorter
    return numbers
