"""Targets of synthetic records from a release: its smooth two-way tables."""

import numpy as np

from rpexplore.common.concurrency import Progress, no_progress
from rpexplore.domain.domain import AttributeIndices
from rpexplore.planning.mechanism.reconstruction import marginal
from rpexplore.postprocessing.estimates import Estimates
from rpexplore.postprocessing.smooth.smooth_tables import smooth
from rpexplore.postprocessing.synthetic.targets import PairTargets, targets_from_tables
from rpexplore.postprocessing.table_map import subsets


def smooth_targets(
    estimates: Estimates, attributes: AttributeIndices, on_progress: Progress = no_progress
) -> tuple[PairTargets, float]:
    """What records are fitted to, from the smooth two-way tables; and the smooth total."""
    pairs = [subset for subset in estimates.contributions if len(subset) == 2]
    up_to_two = {s: values for s, values in estimates.contributions.items() if len(s) <= 2}
    smoothed = smooth(
        Estimates(
            estimates.domain,
            (*pairs, *((index,) for index in attributes)),
            up_to_two,
            {subset: estimates.variances[subset] for subset in up_to_two},
            estimates.strategies,
            estimates.sources,
        ),
        on_progress=on_progress,
    ).contributions
    sizes = estimates.domain.sizes

    def counts(table: AttributeIndices) -> np.ndarray:
        several = [index for index in table if sizes[index] > 1]
        within = {subset: smoothed[subset] for subset in subsets(tuple(several))}
        return marginal(table, sizes, within, estimates.strategies)

    targets = targets_from_tables(counts, attributes, pairs, estimates.domain)
    return targets, max(float(smoothed[()]), 1.0)
