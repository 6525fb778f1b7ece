"""Dearest replacement in areas: two records, each in an area, that cost most to tell apart.

An area plan is charged for every residual of every area the most that replacing a record costs in
it. Here pairs of areas are tried, and in each the records that `dearest_pair` finds: both records
in one area, or in two that lie in the same areas down to some level.
"""

from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np

from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.mechanism.dearest_pair import Precisions, dearest_pair, pair_products

_AREAS = 6  # groups of areas whose records cost most, of which all pairs are tried


def dearest_in_areas(plan: AreaPlan) -> Fraction:
    """What the dearest replacement of a record that was found costs: exact."""
    found = []
    for first, second, shared in _paths(plan):
        wholes = [_precisions(plan, path) for path in (first, second, shared)]
        floats = [whole.astype(float) * float(plan.unit) for whole in wholes]
        pair = dearest_pair(plan.closure, Precisions(*floats))
        found.append((pair.cost, pair, wholes))
    _, pair, wholes = max(found, key=lambda one: one[0])
    of_first, of_second, of_both, below = pair_products(plan.closure, pair)
    above = wholes[0] * of_first + wholes[1] * of_second - 2 * wholes[2] * of_both
    moved = zip(above.tolist(), below.tolist(), strict=True)
    return plan.unit * sum((Fraction(*one) for one in moved), Fraction(0))


def _paths(plan: AreaPlan) -> list[tuple[list[int], list[int], list[int]]]:
    """The groups of areas that two records are in, and those that both are in, from below."""
    groups = plan.groups
    costs = plan.closure.full_cost_factor * plan.factors.astype(float)
    of_profiles = np.bincount(plan.of_residual, costs, len(plan.multiples))
    sums = np.stack([groups.summed_downwards(row)[groups.undivided] for row in plan.multiples])
    order = np.argsort(-(of_profiles @ sums), kind="stable")[:_AREAS]
    paths, leaves = [], groups.undivided[order].tolist()
    for one, other in combinations_with_replacement(leaves, 2):
        first, second = _up_from(plan, one), _up_from(plan, other)
        shared = [group for group in first if group in second]
        paths.append((first, second, shared))
        if one == other and groups.multiplicity[one] > 1:  # in two areas of the group
            paths.append((first, second, shared[1:]))
    return paths


def _up_from(plan: AreaPlan, group: int) -> list[int]:
    """A group of areas and those that they lie in."""
    path = [group]
    while (parent := int(plan.groups.parents[path[-1]])) >= 0:
        path.append(parent)
    return path


def _precisions(plan: AreaPlan, path: list[int]) -> np.ndarray:
    """What is measured of each residual in these areas together, over `plan.unit`: [n_residuals].

    Python's integers.
    """
    multiples = plan.multiples[:, path].astype(object)
    of_profiles = np.array([sum(row) for row in multiples.tolist()], dtype=object)
    return of_profiles[plan.of_residual] * plan.factors.astype(object)
