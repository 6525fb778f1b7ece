"""Weights for smooth tables mixed with weights by cell, and when an adaptive plan loses less.

Weights by pairs trust that pairs of attributes tell nearly all of larger tables; weights by cell
trust nothing (docs/mathematics.md §6.10).
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rpexplore.planning.losses.losses import SumOfVariances
from rpexplore.planning.planner import plan_tables
from rpexplore.privacy.budget import Budget
from rpexplore.workload.smooth_weights import SmoothWeights
from rpexplore.workload.workload import Workload

NOT_SIMULATED = 0.5
"""The share of weights by pairs where nothing is simulated: near the minimax of trials."""

FEWEST_OF_THREE = 3
"""Attributes of a table from which on weights by pairs may be wrong about it."""

ABOUT_AS_GOOD = 1.01
"""Times the largest loss of another plan or mixture: smaller differences are chance."""

_LEAST_ERROR = 1e-9  # that is divided by


def mixed_smooth_weights(
    by_pairs: SmoothWeights, workload: Workload, budget: Budget, shares: Sequence[float]
) -> dict[float, SmoothWeights]:
    """By share θ: weights θ w/L + (1 − θ) c/L_c, L and L_c the least losses by w and by cells c."""
    if tuple(shares) == (1.0,):
        return {1.0: by_pairs}
    losses = []
    for weights in (by_pairs.weights(workload), np.asarray(workload.counted_cells, dtype=float)):
        of_kind = replace(workload, weights=weights)
        losses.append(plan_tables(of_kind, loss=SumOfVariances(), budget=budget).loss_value)
    ratio = losses[0] / losses[1]
    return {
        share: replace(by_pairs, by_cell=float(f"{(1 - share) / share * ratio:.3g}"))
        for share in shares
    }


def loses_less_at_worst(
    adaptive: Sequence[float], fixed: Sequence[float], best: Sequence[float] | None = None
) -> bool:
    """Whether the largest loss of an adaptive plan is clearly below that of a fixed one.

    A loss is the error in a population over the least error there.

    Args:
        adaptive: The errors in each population, shares of the records.
        fixed: Likewise.
        best: The least errors of all fixed plans tried, where there are others.
    """
    return gain_at_worst(adaptive, fixed, best) > 0


def gain_at_worst(
    adaptive: Sequence[float], fixed: Sequence[float], best: Sequence[float] | None = None
) -> float:
    """log of a fixed plan's largest loss over an adaptive one's, less what is no clear gain.

    The arguments are those of `loses_less_at_worst`.
    """
    least = np.minimum(adaptive, fixed if best is None else best)
    least = np.maximum(least, _LEAST_ERROR)
    largest = [np.max(np.maximum(errors, _LEAST_ERROR) / least) for errors in (adaptive, fixed)]
    return float(np.log(largest[1] / largest[0]) - np.log(ABOUT_AS_GOOD))
