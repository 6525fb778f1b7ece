"""The losses that files, command line and pages know, by kind.

A new loss is a class in this folder and a line here, and its solver in
`rpexplore.planning.solving.SOLVERS`.
"""

from rpexplore.planning.losses.base import Loss, MaxVariance, SumOfVariances
from rpexplore.planning.losses.constrained import (
    MaxWithinTargets,
    SumWithBoundedMax,
    SumWithinTargets,
)
from rpexplore.planning.losses.custom import UnavailableLoss
from rpexplore.planning.losses.p_norm import PNorm

# In the order in which they are offered. What a file holds of a custom loss is not available.
LOSSES: dict[str, type[Loss]] = {
    loss.kind: loss
    for loss in (
        SumOfVariances,
        MaxVariance,
        SumWithinTargets,
        MaxWithinTargets,
        SumWithBoundedMax,
        PNorm,
        UnavailableLoss,
    )
}


def choices() -> dict[str, Loss]:
    """What can be chosen on a page: a loss with its usual options, by its `Loss.choice`."""
    return {loss.choice: loss for kind in LOSSES.values() for loss in kind.choices()}
