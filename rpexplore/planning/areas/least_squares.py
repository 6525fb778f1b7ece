"""Least squares on a tree of areas (docs/mathematics.md §15.2).

Upwards, the estimate of an area from its own measurement and the sum of its parts; downwards, what
an area is known to have more than its parts say goes to them in shares. The variances of the
answers are those of `Estimation`. A tree may be worked on range by range: upwards within ranges,
upwards and downwards through the levels above them, downwards within ranges.
"""

from dataclasses import dataclass

import numpy as np

from rpexplore.common.numerics import read_only
from rpexplore.domain.area_range import AreaRange, sums_of_parts
from rpexplore.planning.areas.area_groups import AreaGroups
from rpexplore.planning.areas.estimation import Estimation


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """How measurements of given precisions are combined; float64[n_groups] each.

    own      what an area's measurement counts in its estimate from within
    parts    what the sum of its parts' estimates counts in it; 0 where not all parts are known
    surplus  the share of an area in what its parent has more than all parts say
    """

    groups: AreaGroups
    own: np.ndarray
    parts: np.ndarray
    surplus: np.ndarray

    @classmethod
    def of(cls, groups: AreaGroups, precisions: np.ndarray) -> "LeastSquares":
        """From precisions, float64[n_groups] ≥ 0."""
        estimation = Estimation.of(groups, precisions)
        # 1/s, and 0 where the sum of the parts is not known: then it counts nothing upwards.
        of_sums = np.divide(
            1.0, estimation.sums, out=np.zeros(len(groups)), where=estimation.sums > 0
        )
        surplus = np.zeros(len(groups))
        surplus[1:] = estimation.below[1:] * of_sums[groups.parents[1:]]
        return cls(
            groups,
            read_only(estimation.below * precisions),
            read_only(estimation.below * of_sums),
            read_only(surplus),
        )

    def upwards(self, measured: np.ndarray, areas: AreaRange) -> None:
        """Make measurements, 0 where there is none, estimates from within, float64[n_rows, m].

        Those of the lowest level stay as they are.
        """
        groups = self.groups.of_area[areas.areas]
        for family in reversed(areas.families):
            own, parts = (shares[groups[family.owners], None] for shares in (self.own, self.parts))
            # d (t · measured + (1/s) · sum of parts): weighted by precisions (§15.2).
            estimates = own * measured[family.owners] + parts * sums_of_parts(family, measured)
            measured[family.owners] = estimates

    def downwards(self, estimates: np.ndarray, areas: AreaRange) -> None:
        """Make estimates from within the least-squares answers, float64[n_rows, m].

        Those of the highest level are taken for answers already. An area that is neither measured
        nor known from its parts has none.
        """
        groups = self.groups.of_area[areas.areas]
        for family in areas.families:
            surplus = np.zeros_like(estimates[: family.parts.start])
            # What the parent is known to have beyond its parts; each takes its share d_v/s of it.
            surplus[family.owners] = estimates[family.owners] - sums_of_parts(family, estimates)
            shares = self.surplus[groups[family.parts], None]
            estimates[family.parts] += shares * surplus[family.parents]
