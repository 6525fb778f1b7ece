"""Dearest replacement in areas: two records, each in an area, that cost most to tell apart.

An area plan is charged for every residual of every area the most that replacing a record costs in
it. Here pairs of areas are tried, and in each the records that `dearest_pair` finds: both records
in one area, or in two that lie in the same areas down to some level. Around exact totals a record
moves within an area whose number of records is kept, and two records exchange values: there sets of
attributes are tried, all where they are few.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, combinations_with_replacement

import numpy as np

from rpexplore.planning.areas.area_plan import AreaPlan
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.dearest_pair import Precisions, dearest_pair, pair_products
from rpexplore.planning.mechanism.kept_totals import KeptInAreas
from rpexplore.planning.mechanism.replacement import parts_of_totals

_ATTRIBUTES = 6  # of which all sets are tried
_AREAS = 6  # groups of areas whose records cost most, of which all pairs are tried


def dearest_in_areas(plan: AreaPlan) -> Fraction:
    """What the dearest replacement of a record that was found costs: exact."""
    kept = plan.closure.in_areas
    if kept is not None and kept.exchanges:
        return _dearest_change(plan, kept)
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


def _dearest_change(plan: AreaPlan, kept: KeptInAreas) -> Fraction:
    """What the dearest change that keeps exact totals, of those tried, costs: exact."""
    closure = plan.closure
    parts = parts_of_totals(kept.totals)
    costs = closure.exact_product(
        [Fraction(n - 1, n) for n in closure.sizes.tolist()], np.arange(len(closure))
    )
    best = Fraction(0)
    for first, second, shared in _paths(plan):
        both = _precisions(plan, shared) * costs
        apart = (_precisions(plan, first) + _precisions(plan, second)) * costs - 2 * both
        # Their areas on the last of the levels whose numbers of records are kept.
        is_within = (
            any(plan.groups.starts[kept.n_levels - 1] <= group for group in shared)
            or first == shared
        )
        for one, other in _changes(closure, parts):
            if one is None:  # a record changes, and moves from one of the areas to the other
                if not is_within or any(index in parts for index in other):
                    continue
                terms = apart + 2 * (1 - _products(closure, other)) * both
            else:  # two records exchange what they differ in
                moved, others = 1 - _products(closure, one), 1 - _products(closure, other)
                terms = 2 * moved * apart + 4 * moved * others * both
            best = max(best, sum(terms.tolist(), Fraction(0)))
    return plan.unit * best


def _changes(
    closure: Closure, parts: dict[int, int]
) -> Iterator[tuple[tuple[int, ...] | None, tuple[int, ...]]]:
    """What one record changes (None, and which attributes), or what two exchange and differ in.

    All of them where there are few attributes, else those of one or of nearly all attributes.
    """
    used = [index for index in np.unique(closure.members).tolist() if index >= 0]
    few = len(used) <= _ATTRIBUTES
    sizes = range(len(used) + 1) if few else (0, 1, 2, len(used) - 1, len(used))
    subsets = [one for size in sizes for one in combinations(used, size)]
    yield from ((None, one) for one in subsets)
    for one in subsets:
        if not one:
            continue
        rest = [index for index in used if index not in one]
        for other in (
            [two for two in subsets if not set(two) & set(one)] if few else [(), tuple(rest)]
        ):
            of_one, of_other = (
                {parts[index] for index in side if index in parts and parts[index] >= 0}
                for side in (one, other)
            )
            if not of_one & of_other:  # attributes of totals that hang together are on one side
                yield one, other


def _products(closure: Closure, changed: Sequence[int]) -> np.ndarray:
    """∏ −1/(n − 1) over the attributes of each residual that change: object[n_residuals]."""
    factors = [
        Fraction(-1, n - 1) if index in changed else Fraction(1)
        for index, n in enumerate(closure.sizes.tolist())
    ]
    return closure.exact_product(factors, np.arange(len(closure)))


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
