"""SQUAREM: two plain steps of a monotone iteration, extrapolated.

Varadhan and Roland: Simple and globally convergent methods for accelerating the convergence of any
EM algorithm, Scandinavian Journal of Statistics 35(2), 2008, scheme S3. It may overshoot, so it is
taken back towards the plain steps while the bound, which plain steps never lower, falls.
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np

# Beyond this multiple of two plain steps the length is worth halving; below, they are taken.
_NEARLY_PLAIN = 1.02


class Visited(Protocol):
    """A point that was evaluated, and what is to rise."""

    @property
    def bound(self) -> float: ...


Point = TypeVar("Point", bound=Visited)


def squarem_step(
    visit: Callable[[np.ndarray], Point],
    state: np.ndarray,
    steps: tuple[np.ndarray, np.ndarray],
    *,
    metric: np.ndarray,
    least_bound: float,
) -> Point:
    """The point that two plain steps lead to when they are extrapolated.

    Args:
        visit: evaluates the point of a state; the last one that it is given is returned
        state: where the plain steps began, float64[n]
        steps: the plain step from `state`, and that from where it led
        metric: how much each number of the state counts in the length of a step, float64[n] ≥ 0;
            what has no influence may drift however it likes
        least_bound: the bound after one plain step
    """
    move, slowing = steps[0], steps[1] - steps[0]
    ratio = np.sum(metric * move**2) / max(float(np.sum(metric * slowing**2)), 1e-300)
    length = max(float(np.sqrt(ratio)), 1.0)  # 1 is exactly two plain steps
    while True:
        point = visit(state + 2 * length * move + length**2 * slowing)
        if point.bound >= least_bound or length == 1:
            return point
        length = (length + 1) / 2 if length > _NEARLY_PLAIN else 1.0
