"""Attribute strategies: what well-known mechanisms measure of one attribute.

Each is a function from the number of values n, and the Gram matrix WᵀW of what is asked of them,
to an `AttributeStrategy`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, log

import numpy as np

from rpexplore.workload.bases.operators import Intervals


@dataclass(frozen=True, eq=False)
class AttributeStrategy:
    """Queries A on the n values of an attribute, of full rank.

    inverse  (AᵀA)⁻¹, float64[n, n]
    norms    the largest sum of absolute numbers in a column of A, and of their squares: what a
             record costs with Laplace noise (squared), and with Gaussian noise
    """

    inverse: np.ndarray
    norms: tuple[float, float]

    def covariance(self, norm: int) -> np.ndarray:
        """Of the values' estimates: for noise of variance 1 at a sensitivity of 1 in a norm."""
        return self.inverse * (self.norms[0] ** 2 if norm == 1 else self.norms[1])


Measure = Callable[[int, np.ndarray], AttributeStrategy]


def single_values(size: int, gram: np.ndarray) -> AttributeStrategy:
    """Each value by itself."""
    return AttributeStrategy(np.eye(size), (1.0, 1.0))


def binary_tree(size: int, gram: np.ndarray) -> AttributeStrategy:
    """H2: the total, its halves, their halves and so on (Hay et al. 2010)."""
    return _of_intervals(_tree(size, 2), size)


def wide_tree(size: int, gram: np.ndarray) -> AttributeStrategy:
    """HB: a tree with the branching for which ranges are most accurate (Qardaji et al. 2013).

    Without the total, as they have it.
    """
    return _of_intervals(_tree(size, best_branching(size))[1:], size)


def best_branching(size: int) -> int:
    """The branching b with the smallest (b − 1) h³ − 2 (b + 1) h² / 3, h the height of the tree."""

    def error(branching: int) -> float:
        height = ceil(log(size, branching) - 1e-9)
        return (branching - 1) * height**3 - 2 * (branching + 1) * height**2 / 3

    return min(range(2, max(size, 2) + 1), key=error)


def wavelet(size: int, gram: np.ndarray) -> AttributeStrategy:
    """Privelet: the total, and the difference of halves of every interval (Xiao et al. 2010)."""
    rows = np.zeros((size, size))
    rows[0] = 1.0
    # As a binary tree has them; a difference is 1 on its left half and −1 on its right one.
    halved = [(first, last) for first, last in _tree(size, 2) if last > first]
    for row, (first, last) in enumerate(halved, start=1):
        middle = (first + last + 1) // 2
        rows[row, first:middle] = 1.0
        rows[row, middle : last + 1] = -1.0
    return _of_gram(rows.T @ rows, float(np.max(np.sum(np.abs(rows), axis=0))))


def greedy_tree(size: int, gram: np.ndarray) -> AttributeStrategy:
    """GreedyH: a binary tree, with weights found from the leaves upwards (Li et al. 2014).

    For Laplace noise. As in its authors' program, whose figures are the published ones: the rows of
    the Gram matrix count as queries, and what is asked across the parts of an interval of depth k
    counts for 2^(−k/2).
    """
    asked = gram @ gram

    def within(first: int, stop: int, depth: int) -> tuple[float, np.ndarray]:
        """The error, and (AᵀA)⁻¹, of the best tree of an interval at a sensitivity of 1."""
        if stop - first == 1:
            return asked[first, first], np.ones((1, 1))
        middle = (first + stop) // 2
        left, right = within(first, middle, depth + 1), within(middle, stop, depth + 1)
        half, size = middle - first, stop - first
        inverse = np.zeros((size, size))
        inverse[:half, :half], inverse[half:, half:] = left[1], right[1]
        sums = inverse.sum(axis=1)
        weighted = asked[first:stop, first:stop] * np.outer(sums, sums)
        inside = np.sum(weighted[:half, :half]) + np.sum(weighted[half:, half:])
        decay = 2 ** (-depth / 2)
        across = (np.sum(weighted) - inside) * decay + inside
        share = np.arange(100, 0, -1) / 100  # of the budget for the parts
        own = (1 - share) ** 2
        errors = left[0] + right[0] - across * own * decay / (share**2 + own * decay * np.sum(sums))
        best = int(np.argmin(errors / share**2))
        kept, given = share[best] ** 2, own[best]
        updated = inverse - np.outer(sums, sums) * given / (kept + given * np.sum(sums))
        return float(errors[best] / kept), updated / kept

    inverse = within(0, size, 0)[1]
    return AttributeStrategy(inverse, (1.0, float("nan")))


def _tree(size: int, branching: int) -> list[tuple[int, int]]:
    """First and last value of every interval of a tree, from the top."""
    intervals, level = [], [(0, size)]
    while level:
        intervals += [(first, stop - 1) for first, stop in level]
        below = []
        for first, stop in level:
            if stop - first > 1:
                parts = min(branching, stop - first)
                cuts = [first + (stop - first) * part // parts for part in range(parts + 1)]
                below += pairwise(cuts)
        level = below
    return intervals


def _of_intervals(intervals: list[tuple[int, int]], size: int) -> AttributeStrategy:
    first, last = np.array(intervals).T
    gram = Intervals(first, last, size).gram
    return _of_gram(gram, float(np.max(np.diag(gram))))


def _of_gram(gram: np.ndarray, largest_sum: float) -> AttributeStrategy:
    return AttributeStrategy(np.linalg.inv(gram), (largest_sum, float(np.max(np.diag(gram)))))
