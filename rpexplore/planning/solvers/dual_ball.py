"""p-norms and tail means of the weighted variances: a certified multiplicative algorithm.

It is that of `max_variance` with another set of table weights in place of the simplex. The loss is
the largest Σ u · x over a set of u ≥ 0: Σ u^q ≤ 1 with 1/p + 1/q = 1 for a p-norm (Hölder); Σ u ≤ 1
and u ≤ 1/m for the mean of the m largest x. For any u in the set, the best response s(u) to the
weights u·w is a feasible plan, and its weighted value f(u) is a lower bound. With x the weighted
variances under s(u), f's root is minorised, with equality at present, by
const + Σ_A √u_A · √(u_A at present) · x_A / 2 (Cauchy and Schwarz). That is largest on the set at
u^(q − 1/2) ∝ √(u at present) · x, or at u = min(θ · (u at present) · x², 1/m), so that step never
lowers f. It is extrapolated by SQUAREM (Varadhan and Roland 2008, scheme S3), and taken back
towards the plain step while it does not raise f.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rpexplore.planning.solvers.solution import (
    TOLERANCE,
    Solution,
    VarianceMap,
    best_response,
    rounding_allowance,
)


class DualBall(Protocol):
    """The set of the u of a loss, all in log u, float64[n_tables]."""

    def onto(self, log_u: np.ndarray, /) -> np.ndarray:
        """Brought to the outer edge of the set."""
        ...

    def following(self, log_u: np.ndarray, log_x: np.ndarray, /) -> np.ndarray:
        """The plain step from log u with the weighted variances x, not yet brought onto the set."""
        ...

    def loss(self, x: np.ndarray, /) -> float:
        """The largest Σ u · x over the set."""
        ...


@dataclass(frozen=True)
class ConjugateBall:
    """Σ u^q ≤ 1, of the p-norm with p > 1."""

    p: float

    @property
    def q(self) -> float:
        return self.p / (self.p - 1)

    def onto(self, log_u: np.ndarray) -> np.ndarray:
        log_u = _above_nothing(log_u)
        return log_u - np.log(np.sum(np.exp(self.q * log_u))) / self.q

    def following(self, log_u: np.ndarray, log_x: np.ndarray) -> np.ndarray:
        return (log_u / 2 + log_x) / (self.q - 0.5)

    def loss(self, x: np.ndarray) -> float:
        largest = float(np.max(x))
        return largest * float(np.sum((x / largest) ** self.p)) ** (1 / self.p)


@dataclass(frozen=True)
class CappedSimplex:
    """Σ u ≤ 1 and u ≤ 1/tail, of the mean of the `tail` ≥ 1 largest x."""

    tail: float

    def onto(self, log_u: np.ndarray) -> np.ndarray:
        log_u = _above_nothing(log_u)
        u = np.exp(log_u)
        ascending = np.sort(u)
        rest = np.cumsum(ascending)[::-1]  # of all but the k largest; no differences, no rounding
        # If the k largest are at the cap, this is what the others are multiplied by.
        factors = np.maximum(1 - np.arange(len(u)) / self.tail, 0) / rest
        # One always does, with fewer than `tail` at the cap: no u is more than the rest it is in.
        fits = factors * ascending[::-1] <= (1 + 1e-12) / self.tail
        log_u = log_u + np.log(factors[np.argmax(fits)])
        capped = np.minimum(log_u, -np.log(self.tail))
        return capped - max(float(np.log(np.sum(np.exp(capped)))), 0.0)

    def following(self, log_u: np.ndarray, log_x: np.ndarray) -> np.ndarray:
        return log_u + 2 * log_x

    def loss(self, x: np.ndarray) -> float:
        largest_first = np.sort(x)[::-1]
        counted = np.clip(self.tail - np.arange(len(x)), 0, 1)
        return float(np.sum(counted * largest_first) / self.tail)


@dataclass(frozen=True, eq=False)
class _Point:
    """A log u on the set, its best response, that one's loss and bound, and the plain step."""

    log_u: np.ndarray
    sigma_squared: np.ndarray
    value: float
    bound: float
    step: np.ndarray


def minimise_largest_mean(
    variance_map: VarianceMap,
    table_weights: np.ndarray,
    ball: DualBall,
    privacy_cost: float,
    tolerance: float = TOLERANCE,
    *,
    max_rounds: int = 5000,
    note: Callable[[float], None] = lambda gap: None,
) -> Solution:
    """The σ² that minimise ball.loss(table_weights · Var) at this privacy cost.

    Stops when value/lower bound − 1 ≤ tolerance, or after max_rounds evaluations; either way the
    best plan found comes with its true bound. `note` is told the gap after every few evaluations.
    """
    costs = variance_map.privacy_cost_factor

    def visit(log_u: np.ndarray) -> _Point:
        log_u = ball.onto(log_u)
        in_sum = variance_map.residual_weights(np.exp(log_u) * table_weights)
        sigma_squared, bound = best_response(costs, in_sum, privacy_cost)
        weighted = table_weights * variance_map.variances(sigma_squared)
        value = ball.loss(weighted)
        step = ball.onto(ball.following(log_u, np.log(weighted / value))) - log_u
        return _Point(log_u, sigma_squared, value, bound, step)

    at = best_plan = best_bound = visit(np.zeros(len(table_weights)))
    rounds = 1
    while best_plan.value > best_bound.bound * (1 + tolerance) and rounds < max_rounds:
        note(best_plan.value / best_bound.bound - 1)
        plain = visit(at.log_u + at.step)
        move = plain.log_u - at.log_u
        slowing = plain.step - move
        # Tables without influence may drift however they like.
        influence = np.exp(2 * plain.log_u - np.max(plain.log_u))
        ratio = np.sum(influence * move**2) / max(float(np.sum(influence * slowing**2)), 1e-300)
        length = max(float(np.sqrt(ratio)), 1.0)  # 1 is exactly two plain steps
        found = [plain]
        while True:
            found.append(visit(at.log_u + 2 * length * move + length**2 * slowing))
            if found[-1].bound >= plain.bound or length == 1:
                break
            length = (length + 1) / 2 if length > 1.02 else 1.0
        at = found[-1]
        rounds += len(found)
        best_plan = min(best_plan, *found, key=lambda point: point.value)
        best_bound = max(best_bound, *found, key=lambda point: point.bound)
    dual_weights = np.exp(best_bound.log_u) * table_weights
    prices = dual_weights * variance_map.variances(best_plan.sigma_squared)
    total = float(np.sum(prices))
    return Solution(
        sigma_squared=best_plan.sigma_squared,
        lower_bound=best_bound.bound * (1 - rounding_allowance(len(table_weights))),
        shadow_prices=prices / total,
        dual_weights=dual_weights / total,
    )


def _above_nothing(log_u: np.ndarray) -> np.ndarray:
    """Not below e^-600 of the largest: nothing to the bound, but it keeps every v positive."""
    return np.maximum(log_u - np.max(log_u), -600.0)
