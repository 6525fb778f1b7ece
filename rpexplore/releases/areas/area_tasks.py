"""Measurement where the records lie: each part of areas is a task of a cluster.

The run is booked before. Noise is drawn by the worker that has the counts of a part, from the
entropy of its operating system, and only what is measured leaves it. Where a worker is lost,
another one counts the part again and draws its noise anew: one of them is taken, and the other has
been read by nobody (docs/stopped-runs.md).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from rpexplore.data.area_shares import AreaShare, AreaShares
from rpexplore.data.counts import Counts
from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.releases.areas.area_measurement import measure_areas
from rpexplore.releases.areas.area_parts import AreaParts


@dataclass(frozen=True, eq=False)
class PartWork:
    """Measures parts of a plan by their exact counts: a `Work`, as workers have it.

    first  the part that is the first share
    """

    plan: AreaPlan
    first: int

    def __call__(self, share: int, counts: Counts) -> Iterator[np.ndarray]:
        parts = AreaParts(self.plan, alone=True)
        return measure_areas(parts, self.first + share, counts)


def tasks_from(parts: AreaParts, first: int) -> tuple[AreaShares, PartWork]:
    """What is worked on from a part on, which is a subtree, and how. parts: each counted alone."""
    shares = [AreaShare(each.areas, each.cuts, each.tables) for each in parts.passes[first:]]
    # Without what was worked out on the way, or read from its files.
    plan = replace(parts.plan, given_files=None)
    return AreaShares(plan.workload.tree, tuple(shares)), PartWork(plan, first)
