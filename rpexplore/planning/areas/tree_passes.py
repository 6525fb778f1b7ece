"""Least-squares answers on a tree of areas, their variances and gradient, in two passes each."""

from dataclasses import dataclass

import numpy as np

from rpexplore.common.numbers import read_only
from rpexplore.domain.area_tree import AreaRange, sums_of_parts
from rpexplore.planning.areas.area_groups import AreaGroups, Siblings

# Each area has an independent measurement with a precision t ≥ 0 of its own; an area's count is
# also the sum of its parts' counts (docs/mathematics.md §15.2, §15.3; Hay et al. 2010 for equal
# ones).


EXACT = 1e-60
"""The variance that stands for 0, of what is known exactly: 0 stands for no answer."""
NO_ERROR = 1e-12
"""A variance below this is that of what is known exactly: it is stated as 0."""


def stated_errors(variances: np.ndarray) -> np.ndarray:
    """Standard errors, 0 of what is known exactly."""
    return np.sqrt(np.where(variances < NO_ERROR, 0.0, variances))


@dataclass(frozen=True, eq=False)
class Estimation:
    """How measurements of these precisions are combined; float64[n_groups] each.

    What is known exactly has the variance `EXACT`, whatever its parts say.

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
    def of(cls, groups: AreaGroups, precisions: np.ndarray, exact_levels: int = 0) -> "Estimation":
        """From precisions, float64[n_groups] ≥ 0, which do not count where answers are exact.

        exact_levels: on so many levels, from the top on, they are
        """
        exact = groups.above(exact_levels)
        # Pass 1, upwards (§15.2): 1/d = t + 1/s, s = Σ d over the parts.
        below = _inverse(precisions)
        below[exact] = EXACT
        sums = np.zeros(len(groups))
        for siblings in groups.upwards:
            owners = siblings.owners
            least = below[siblings.groups]
            if not siblings.are_single:
                least = np.minimum.reduceat(least, siblings.first)
            # One part without an answer (d = 0), and the sum is not known: 0 stands for infinite
            # here.
            sums[owners] = np.where(least > 0, groups.sums_of_parts(siblings, below), 0.0)
            below[owners] = _inverse(precisions[owners] + _inverse(sums[owners]))
            below[exact] = EXACT
        # Pass 2, downwards (§15.2): V_v = d_v (s − d_v)/s + (d_v/s)² V of the parent.
        variances = below.copy()
        for siblings in groups.downwards:
            parts, owners = siblings.groups, siblings.owners
            own, of_sums = below[parts], siblings.repeated(sums[owners])
            share = own * _inverse(of_sums)
            # s − d_v as the sum of the others: the difference itself would lose all digits of a
            # part that is nearly all of its parent.
            found = _sums_of_others(groups, siblings, own)
            found += share * siblings.repeated(variances[owners])
            found *= share
            variances[parts] = np.where(of_sums > 0, found, own)
            variances[exact] = EXACT
        return cls(groups, below, sums, variances)

    def gradient(self, weights: np.ndarray) -> np.ndarray:
        """−∂ Σ_v weights_v V_v / ∂t_v of one area of each group, float64[n_groups].

        It is Σ_x weights_x Cov(x, v)². weights: float64[n_groups] ≥ 0, of one area each; 0 where
        there is no answer, as the result is.
        """
        groups, below, variances = self.groups, self.below, self.variances
        from_parts = _inverse(self.sums)
        shares = np.zeros(len(groups))
        # (d_v/s)²: how much a change of the parent moves each part.
        shares[1:] = below[1:] * from_parts[groups.parents[1:]]
        shares *= shares
        inside = weights.astype(float)  # Σ over x within v of weights_x (Cov(x, v) / V_v)²
        for siblings in groups.upwards:
            parts = siblings.groups
            # Areas within reach v through its parts: their covariance shrinks by d/s at each level.
            of_parts = groups.multiplicity[parts] * shares[parts] * inside[parts]
            inside[siblings.owners] += siblings.summed(of_parts)
        # Downwards: Σ over x outside of v, which reach it through its parent (§15.3).
        outside = np.zeros(len(groups))
        for siblings in groups.downwards:
            parts, owners = siblings.groups, siblings.owners
            through = outside[owners] + weights[owners] * variances[owners] ** 2
            # Siblings are correlated only as far as their parent is known otherwise than by their
            # sum.
            known_otherwise = (1 - variances[owners] * from_parts[owners]) ** 2
            found = _sums_of_others(groups, siblings, inside[parts] * below[parts] ** 2)
            found *= siblings.repeated(known_otherwise)
            found += siblings.repeated(through)
            outside[parts] = shares[parts] * found
        # Cov(x, v)² of areas within is counted in units of V_v².
        inside *= variances
        inside *= variances
        return np.add(inside, outside, out=outside)


def _inverse(values: np.ndarray) -> np.ndarray:
    """1 over what is above 0; 0 elsewhere."""
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)


def _sums_of_others(groups: AreaGroups, siblings: Siblings, values: np.ndarray) -> np.ndarray:
    """For one area of each group of parts the sum over the other parts of its parent.

    As a difference from the whole sum, except of the largest part, which could be nearly all of it.

    values: of one area of each group of these parts
    """
    in_groups = groups.multiplicity[siblings.groups] * values
    in_own_group = in_groups - values
    if siblings.are_single:
        return in_own_group
    # Sum of the others = sum without the largest + largest − own; of the largest: the sum without.
    largest = siblings.repeated(np.maximum.reduceat(in_groups, siblings.first))
    largest = np.flatnonzero(in_groups == largest)
    largest = largest[np.diff(siblings.parents[largest], prepend=-1) > 0]  # one of each parent
    without = in_groups.copy()
    without[largest] = 0
    without = siblings.summed(without)
    others = siblings.repeated(without + in_groups[largest]) - in_groups
    others[largest] = without
    return others + in_own_group


# ---- Least squares on a tree of areas (docs/mathematics.md §15.2).
#
# Upwards, the estimate of an area from its own measurement and the sum of its parts; downwards,
# what an area is known to have more than its parts say goes to them in shares. The variances of the
# answers are those of `Estimation`. A tree may be worked on range by range: upwards within ranges,
# upwards and downwards through the levels above them, downwards within ranges.


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
    def of(
        cls, groups: AreaGroups, precisions: np.ndarray, exact_levels: int = 0
    ) -> "LeastSquares":
        """From precisions, float64[n_groups] ≥ 0; exact_levels: as of an `Estimation`."""
        estimation = Estimation.of(groups, precisions, exact_levels)
        # 1/s, and 0 where the sum of the parts is not known: then it counts nothing upwards.
        of_sums = np.divide(
            1.0, estimation.sums, out=np.zeros(len(groups)), where=estimation.sums > 0
        )
        surplus = np.zeros(len(groups))
        surplus[1:] = estimation.below[1:] * of_sums[groups.parents[1:]]
        own, parts = estimation.below * precisions, estimation.below * of_sums
        # What is known exactly is taken as it was counted, and above that as the sum of its parts.
        exact, counted = groups.above(exact_levels), groups.known_exactly(exact_levels)
        own[exact], parts[exact] = counted[exact], ~counted[exact]
        return cls(groups, read_only(own), read_only(parts), read_only(surplus))

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
