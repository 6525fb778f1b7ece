"""Smooth tables of estimates, or of a release: a best guess at the counts. Biased.

The fit needs what was measured alone: `estimation` (docs/mathematics.md §13).
"""

from rpexplore.common.concurrency import Progress, no_progress
from rpexplore.estimation.measured_residuals import MeasuredResiduals
from rpexplore.estimation.smooth_tables import SmoothTables, smooth_residuals
from rpexplore.postprocessing.estimates import Estimates


def smooth(estimates: Estimates, *, on_progress: Progress = no_progress) -> SmoothTables:
    """The smooth tables of what was measured; the same estimates always give the same tables."""
    return smooth_residuals(measured_residuals(estimates), on_progress=on_progress)


def measured_residuals(estimates: Estimates, largest_order: int | None = None) -> MeasuredResiduals:
    """What the fit needs of estimates; largest_order: the most attributes of one, None for all."""
    contributions = estimates.contributions
    if largest_order is not None:
        # By key, as what is left out need not be read.
        contributions = {
            subset: contributions[subset]
            for subset in contributions
            if len(subset) <= largest_order
        }
    variances = {subset: float(estimates.variances[subset]) for subset in contributions}
    return MeasuredResiduals(contributions, variances, estimates.domain.sizes, estimates.strategies)
