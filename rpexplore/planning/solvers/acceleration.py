"""Faster iterations: SQUAREM, Anderson's acceleration, and Newton's method for shadow prices."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from scipy import sparse

from rpexplore.common.processes import Progress, Share, no_share
from rpexplore.planning.solvers.solution import VarianceMap, report_gap, share_done

# ---- SQUAREM: two plain steps of a monotone iteration, extrapolated (VR, scheme S3).
#
# It may overshoot, so it is taken back towards the plain steps while the bound, which plain steps
# never lower, falls.


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


# ---- Anderson's acceleration of a fixed-point iteration that knows how far off it is.


_MEMORY = 10  # earlier steps that a new one is fitted from
_LONGEST = 4.0  # the largest change of one number in a step; the numbers are logarithms
_PATIENCE = 200  # steps without progress before giving up


class Iterate(Protocol):
    """A step: where it began, where it led, how far off, and how much each number counts."""

    state: np.ndarray
    following: np.ndarray
    metric: np.ndarray
    error: float


Step = TypeVar("Step", bound=Iterate)


def anderson_acceleration(
    step: Callable[[np.ndarray], Step],
    state: np.ndarray,
    *,
    tolerance: float,
    leeway: float = 10.0,
    limit: int = 1000,
    on_share: Share = no_share,
) -> Step:
    """The step with the smallest error, which is at most `tolerance` unless none was found.

    leeway: how far above the smallest error a fit may lead before it is given up. on_share: called
    with the share that is done; it may raise.
    """
    best = at = step(state)
    progress, at_progress = 0, at.error
    states: list[np.ndarray] = []
    residuals: list[np.ndarray] = []
    plain = rejected = 0
    for count in range(1, limit):
        on_share(share_done(best.error, tolerance))
        if best.error <= tolerance or count - progress > _PATIENCE:
            break
        # Only the last few steps: the map is not linear, and older ones lie too far away.
        states = [*states, at.state][-_MEMORY:]
        residuals = [*residuals, at.following - at.state][-_MEMORY:]
        if plain > 0:
            # After a misleading fit: plain steps for a while.
            plain -= 1
            at = step(at.following)
        else:
            at = step(_extrapolated(states, residuals, np.sqrt(at.metric)))
            if not at.error < leeway * best.error and len(states) > 1:
                # The fit misled: forget it, and go plainly from the best, each time for longer.
                states, residuals, at = [], [], best
                plain, rejected = 2**rejected, rejected + 1
        if at.error < best.error:
            best = at
        # Patience counts from the last real progress; crawling by less than a tenth is none.
        if best.error < 0.9 * at_progress:
            progress, at_progress = count, best.error
    return best


def _extrapolated(
    states: list[np.ndarray], residuals: list[np.ndarray], weights: np.ndarray
) -> np.ndarray:
    """A step from where the residuals, fitted linearly, are smallest."""
    step = residuals[-1]
    if len(states) > 1:
        earlier = np.array(residuals[:-1])
        changes, moves = (step - earlier).T, (states[-1] - np.array(states[:-1])).T
        # Columns of length 1: residuals shrink by orders of magnitude, and the cut-off of small
        # singular values must not take the latest ones for noise.
        scaled = weights[:, None] * changes
        lengths = np.sqrt((scaled * scaled).sum(axis=0))
        lengths[lengths == 0] = 1
        scaled /= lengths
        fit = np.linalg.lstsq(scaled, weights * residuals[-1], rcond=1e-7)[0]
        # Anderson's update: x + r − (ΔX + ΔR) γ, with γ the fit of the residuals.
        step = step - (moves + changes) @ (fit / lengths)
    # States are logarithms: a factor of more than e^4 in one number is an accident of the fit.
    return states[-1] + step * min(1, _LONGEST / max(float(np.abs(step).max()), 1e-300))


# ---- Shadow prices by Newton's method, where multiplicative steps crawl (docs/mathematics.md
# §6.3).
#
# For the largest variance g(y) = Σ_j √(p_j (v₀ + Cᵀy)_j), with C the weighted rows of B, is
# maximised over y on the simplex; for caps g(z)²/c − Σ z over z ≥ 0. A logarithmic barrier makes
# both strictly concave. Its maximum comes with a gap of about m times the barrier's weight (m
# cells), which is lowered until that is small enough (Boyd and Vandenberghe, Convex Optimization,
# §11.3).


MOST_CELLS = 1500  # a step solves a dense system of so many unknowns
_STEPS = 40  # of Newton for one weight of the barrier
_FALL = 0.05  # of the barrier's weight between them

# The point that a step of some length leads to, its gain to first order, and the longest length.
_Step = tuple[Callable[[float], np.ndarray], float, float]


def central_prices(
    weighted: sparse.csr_array,
    costs: np.ndarray,
    fixed: np.ndarray,
    start: np.ndarray,
    *,
    gap: float,
    tolerance: float,
) -> np.ndarray:
    """y, float64[m] on the simplex, with g(y) within `tolerance` (relative) of its maximum.

    weighted: C, float64[m, n_residuals]. costs, fixed: p and v₀, float64[n_residuals]. start:
    float64[m], sum 1, and the gap it has.
    """
    from scipy.linalg import cho_factor, cho_solve  # slow to import

    count = len(start)
    # A barrier of b a price means a gap of about b · count: it begins where the start already is.
    barrier = max(min(gap, 0.01), tolerance / 8) / count
    y = np.maximum(start, 0.1 * barrier)
    y /= np.sum(y)
    scale = float(np.sum(np.sqrt(costs * (fixed + weighted.T @ y))))

    def value(y: np.ndarray) -> float:
        root_sum = float(np.sum(np.sqrt(costs * (fixed + weighted.T @ y))))
        return root_sum / scale + barrier * float(np.sum(np.log(y)))

    def newton(y: np.ndarray) -> _Step:
        within = fixed + weighted.T @ y
        roots = np.sqrt(costs / within)
        gradient = (weighted @ roots) / (2 * scale) + barrier / y
        # −∂²g = ¼ C diag(√p v^−3/2) Cᵀ.
        bent = sparse.csr_array(weighted.multiply((roots / within) / (4 * scale)))
        # In units of y, so that small prices do not spoil the system's conditioning.
        hessian = (bent @ weighted.T).toarray() * np.outer(y, y)
        hessian[np.diag_indices_from(hessian)] += barrier * (1 + 1e-9)
        towards = cho_solve(cho_factor(hessian), np.column_stack([gradient * y, y]))
        # Σ move = 0: y stays on the simplex.
        move = (towards[:, 0] - towards[:, 1] * (y @ towards[:, 0]) / (y @ towards[:, 1])) * y
        falling = move < 0
        # No further than 99 % of the way to where a price would become 0.
        longest = 0.99 * float(np.min(-y[falling] / move[falling], initial=np.inf))
        return (lambda length: y + length * move), float(gradient @ move), longest

    while True:
        # To a thousandth of the barrier: what is gained beyond that is lost when it falls.
        y = _maximum(value, newton, y, 1e-3 * barrier, accepted=lambda y: y / np.sum(y))
        if barrier * count <= tolerance / 8:
            return y
        barrier *= _FALL


def central_cap_prices(
    relative: sparse.csr_array,
    costs: np.ndarray,
    held: np.ndarray,
    start: np.ndarray,
    *,
    privacy_cost: float,
    value: float,
    gap: float,
    tolerance: float,
) -> np.ndarray:
    """z, float64[m] > 0, with g(z)²/c − Σ z within `tolerance` times `value` of its maximum.

    relative: float64[m, n_residuals], rows of B over their caps. held: v₀. value: about the
    maximum; gap: that of the start, relative. The rest as for `central_prices`.
    """
    from scipy.linalg import cho_factor, cho_solve  # slow to import

    count = len(start)
    barrier = max(min(gap, 0.01), tolerance / 4) * value / count
    z = np.maximum(start, barrier)

    def objective(z: np.ndarray) -> float:
        root_sum = float(np.sum(np.sqrt(costs * (held + relative.T @ z))))
        rest = barrier * float(np.sum(np.log(z))) - float(np.sum(z))
        return root_sum * root_sum / privacy_cost + rest

    def newton(z: np.ndarray) -> _Step:
        weights = held + relative.T @ z
        roots = np.sqrt(costs / weights)
        root_sum = float(roots @ weights)
        slopes = z * (relative @ roots) / 2  # of g, in log z
        gradient = 2 * root_sum / privacy_cost * slopes - z + barrier
        bent = sparse.csr_array(relative.multiply(roots / weights * (root_sum / privacy_cost / 2)))
        hessian = (bent @ relative.T).toarray() * np.outer(z, z)
        # g² also bends by the square of its slope; what remains is positive semidefinite (§6.5).
        hessian -= np.outer(slopes, slopes) * (2 / privacy_cost)
        hessian[np.diag_indices_from(hessian)] += barrier * (1 + 1e-9)
        move = cho_solve(cho_factor(hessian), gradient)
        longest = -0.99 / min(float(np.min(move)), -1e-300)
        return (lambda length: z * (1 + length * move)), float(gradient @ move), longest

    while True:
        # To so little gain that the response keeps stiff caps, too.
        z = _maximum(objective, newton, z, 1e-6 * barrier)
        if barrier * count <= tolerance / 4 * value:
            return z
        barrier *= _FALL


def _maximum(
    value: Callable[[np.ndarray], float],
    newton: Callable[[np.ndarray], _Step],
    point: np.ndarray,
    least_gain: float,
    accepted: Callable[[np.ndarray], np.ndarray] = lambda point: point,
) -> np.ndarray:
    """The maximum of a concave function by Newton's steps, halved until they raise it enough.

    least_gain: by which a step raises the value, to first order, else the search has ended.
    accepted: what becomes of a point that is taken.
    """
    present = value(point)
    for _ in range(_STEPS):
        try:
            step, gain, longest = newton(point)
        # Not positive definite by rounding: there is no more to gain here.
        except np.linalg.LinAlgError:
            return point
        if gain <= least_gain:
            return point
        length = min(1.0, longest)
        while length > 1e-10:
            new = value(step(length))
            # Armijo's rule.
            if new >= present + 1e-4 * length * gain:
                break
            length /= 2
        else:
            return point
        point, present = accepted(step(length)), new
    return point
