"""SQUAREM: two plain steps of a monotone iteration, extrapolated (VR, scheme S3).

It may overshoot, so it is taken back towards the plain steps while the bound, which plain steps
never lower, falls.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from rpexplore.common.concurrency import Progress
from rpexplore.planning.solvers.solution import VarianceMap, report_gap

# Beyond this multiple of two plain steps the length is worth halving; below, they are taken.
_NEARLY_PLAIN = 1.02


class Visited(Protocol):
    """A point that was evaluated: the plain step from its state, and what is to rise."""

    step: np.ndarray
    bound: float


VisitedPoint = TypeVar("VisitedPoint", bound=Visited)


def squarem_step(
    visit: Callable[[np.ndarray], VisitedPoint],
    state: np.ndarray,
    move: np.ndarray,
    plain: VisitedPoint,
    metric: np.ndarray,
) -> VisitedPoint:
    """The point that two plain steps lead to when they are extrapolated.

    Args:
        visit: evaluates the point of a state, float64[n]; the last one is returned
        state, move, plain: where the plain steps began, the first of them, and where that led
        metric: how much each number of the state counts in the length of a step, float64[n] ≥ 0
    """
    # The steps' change: VR's v, with r = move; S3 takes the length |r| / |v|.
    slowing = plain.step - move
    ratio = np.sum(metric * move**2) / max(float(np.sum(metric * slowing**2)), 1e-300)
    length = max(float(np.sqrt(ratio)), 1.0)  # 1 is exactly two plain steps
    while True:
        # VR's x − 2αr + α²v with α = −length.
        point = visit(state + 2 * length * move + length**2 * slowing)
        if point.bound >= plain.bound or length == 1:
            return point
        length = (length + 1) / 2 if length > _NEARLY_PLAIN else 1.0


@dataclass(eq=False)
class Point:
    """Dual weights (up to rounding their logarithms), the plain step in these, and their bound."""

    weights: np.ndarray
    logs: np.ndarray
    step: np.ndarray
    bound: float


@dataclass(eq=False)
class Search(ABC):
    """The best plan and the best bound among all dual weights visited so far.

    weights: that of each variance in the loss, or 1 over its cap
    """

    variance_map: VarianceMap
    weights: np.ndarray
    privacy_cost: float

    def __post_init__(self) -> None:
        self.rounds = 0
        self.best_value, self.best_bound = np.inf, -np.inf

    @abstractmethod
    def visit(self, logs: np.ndarray) -> Point:
        """Evaluate the best response to the weights with these logarithms, and keep the best."""

    def keep(
        self, value: float, sigma_squared: np.ndarray, bound: float, weights: np.ndarray
    ) -> None:
        """Keep the plan or the dual weights if no better ones were visited."""
        self.rounds += 1
        if bound > self.best_bound:
            self.best_bound, self.best_weights = bound, weights
        if value < self.best_value:
            self.best_value, self.best_sigma_squared = value, sigma_squared

    @property
    def gap(self) -> float:
        """How far the best plan can be from the optimum, relative."""
        return self.best_value / self.best_bound - 1 if self.best_bound > 0 else np.inf

    def run(
        self, start: np.ndarray, tolerance: float, max_rounds: int, on_progress: Progress
    ) -> Point:
        """Visit weights from `start` on until the gap is small enough; returns the last ones."""
        # The logarithm of 0 would never come back.
        at = self.visit(np.log(np.maximum(start, 1e-250)))
        while self.gap > tolerance and self.rounds < max_rounds:
            report_gap(on_progress, self.gap)
            plain = self.visit(at.logs + at.step)
            if self.gap <= tolerance:
                return plain
            # Norms weighted by the dual weights: those without influence may drift however they
            # like.
            at = squarem_step(self.visit, at.logs, plain.logs - at.logs, plain, at.weights)
        return at
