"""Anderson's acceleration of a fixed-point iteration that knows how far off it is."""

from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np

from rpexplore.common.concurrency import Share, no_share
from rpexplore.planning.solvers.solution import share_done

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
        changes = np.array([residuals[-1] - one for one in residuals[:-1]]).T
        moves = np.array([states[-1] - one for one in states[:-1]]).T
        # Columns of length 1: residuals shrink by orders of magnitude, and the cut-off of small
        # singular values must not take the latest ones for noise.
        lengths = np.linalg.norm(weights[:, None] * changes, axis=0)
        lengths[lengths == 0] = 1
        scaled = weights[:, None] * changes / lengths
        fit = np.linalg.lstsq(scaled, weights * residuals[-1], rcond=1e-7)[0]
        # Anderson's update: x + r − (ΔX + ΔR) γ, with γ the fit of the residuals.
        step = step - (moves + changes) @ (fit / lengths)
    # States are logarithms: a factor of more than e^4 in one number is an accident of the fit.
    return states[-1] + step * min(1, _LONGEST / max(np.abs(step).max(), 1e-300))
