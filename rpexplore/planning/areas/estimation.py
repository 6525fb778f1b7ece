"""Variances of least-squares answers on a tree of areas, and their gradient, in two passes each.

Each area has an independent measurement with a precision t ≥ 0 of its own; an area's count is also
the sum of its parts' counts (docs/mathematics.md §15.2, §15.3; Hay et al. 2010 for equal ones).
"""

from dataclasses import dataclass

import numpy as np

from rpexplore.planning.areas.area_groups import AreaGroups, Siblings


@dataclass(frozen=True, eq=False)
class Estimation:
    """How measurements of these precisions are combined; float64[n_groups] each.

    below      d: variance of an area's count from measurements of it and of what lies in it; 0
               where there are none
    sums       s: variance of the sum of an area's parts; 0 where not all of them are known
    variances  V: variance of the least-squares answer; 0 where there is none
    """

    groups: AreaGroups
    below: np.ndarray
    sums: np.ndarray
    variances: np.ndarray

    @classmethod
    def of(cls, groups: AreaGroups, precisions: np.ndarray) -> "Estimation":
        """From precisions, float64[n_groups] ≥ 0."""
        below = _inverse(precisions)
        sums = np.zeros(len(groups))
        for siblings in groups.upwards:
            owners = siblings.owners
            all_known = np.minimum.reduceat(below[siblings.groups], siblings.first) > 0
            sums[owners] = np.where(all_known, groups.sums_of_parts(siblings, below), 0.0)
            below[owners] = _inverse(precisions[owners] + _inverse(sums[owners]))
        variances = below.copy()
        for siblings in groups.downwards:
            parts, above = siblings.groups, siblings.parents
            share = below[parts] * _inverse(sums[above])
            others = _sums_of_others(groups, siblings, below)
            shared = share * (others + share * variances[above])
            variances[parts] = np.where(sums[above] > 0, shared, below[parts])
        return cls(groups, below, sums, variances)

    def gradient(self, weights: np.ndarray) -> np.ndarray:
        """−∂ Σ_v weights_v V_v / ∂t_v of one area of each group, float64[n_groups].

        It is Σ_x weights_x Cov(x, v)². weights: float64[n_groups] ≥ 0, of one area each; 0 where
        there is no answer, as the result is.
        """
        groups, below, variances = self.groups, self.below, self.variances
        from_parts = _inverse(self.sums)
        inside = weights.astype(float)  # Σ over x within v of weights_x (Cov(x, v) / V_v)²
        for siblings in groups.upwards:
            share = np.zeros(len(groups))
            share[siblings.groups] = below[siblings.groups] * from_parts[siblings.parents]
            inside[siblings.owners] += groups.sums_of_parts(siblings, share**2 * inside)
        outside = np.zeros(len(groups))
        for siblings in groups.downwards:
            parts, above = siblings.groups, siblings.parents
            through = outside[above] + weights[above] * variances[above] ** 2
            known_otherwise = 1 - variances[above] * from_parts[above]
            others = _sums_of_others(groups, siblings, inside * below**2)
            share = below[parts] * from_parts[above]
            outside[parts] = share**2 * (through + known_otherwise**2 * others)
        return variances**2 * inside + outside


def _inverse(values: np.ndarray) -> np.ndarray:
    """1 over what is above 0; 0 elsewhere."""
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)


def _sums_of_others(groups: AreaGroups, siblings: Siblings, of_groups: np.ndarray) -> np.ndarray:
    """For one area of each group of parts the sum over the other parts of its parent.

    As a difference from the whole sum, except of the largest part, which could be nearly all of it.
    """
    parts = siblings.groups
    values = of_groups[parts]
    sizes = np.diff(siblings.first, append=len(values))
    in_group = groups.multiplicity[parts] * values
    largest = np.repeat(np.maximum.reduceat(in_group, siblings.first), sizes) == in_group
    rest = np.add.reduceat(np.where(largest, 0.0, in_group), siblings.first)
    of_largest = np.add.reduceat(np.where(largest, in_group, 0.0), siblings.first)
    rest, of_largest = np.repeat(rest, sizes), np.repeat(of_largest, sizes)
    others_in_group = in_group - values
    ties = np.where(largest, of_largest - in_group, of_largest)
    return rest - np.where(largest, 0.0, in_group) + ties + others_in_group
