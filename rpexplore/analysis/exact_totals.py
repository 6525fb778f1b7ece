"""Warnings about exact totals, by what is public alone: never by records."""

from collections.abc import Mapping, Sequence

import numpy as np

from rpexplore.analysis.drawn_areas import shares_of_areas
from rpexplore.common.text import joined, plural, rounded
from rpexplore.domain.area_tree import AreaTree
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.planning.held_totals import OF_AREAS
from rpexplore.planning.plan import Plan

FEW_PEOPLE = 10
"""Expected records of a cell below which its exact number may tell of them: a rule of thumb of
statistical offices, which suppress cells below 3 to 10."""
_MOST_NAMED = 3


def exact_total_warnings(
    plan: Plan, expected: ExpectedCounts | None = None, totals: Mapping[int, float] | None = None
) -> list[str]:
    """That the workload asks something else of an exact total, or that it pins down few people.

    expected: counts from public figures; without them nothing is known of cells
    totals: publicly known ones of areas, by their numbers
    """
    tables, areas = plan.part("tables"), plan.part("areas")
    if (tables is None and areas is None) or not plan.budget.exact:
        return []
    warnings: list[str] = []
    asked: list[str] = []
    if tables is not None:
        workload = tables.workload
        asked = [
            " × ".join(names)
            for names, target in zip(workload.tables, workload.targets, strict=True)
            if not np.isnan(target) and any(set(names) <= set(total) for total in plan.budget.exact)
        ]
    if areas is not None:
        rows = areas.accuracy()
        is_exact = (rows["largest_standard_error"] == 0) & ~np.isnan(rows["target"])
        of_levels = zip(rows["item"][is_exact], rows["level"][is_exact], strict=True)
        asked += [f"{item} on the level {level}" for item, level in of_levels]
    if asked:
        named = joined(asked[:_MOST_NAMED]) if len(asked) <= _MOST_NAMED else f"{asked[0]} and more"
        warnings.append(
            f"A target is set for {named or 'the total'}, which the exact totals release without "
            "noise: the target has no effect, and what it allows of noise is not there to protect "
            "anybody. Leave the target or the exact total out."
        )
    if areas is not None and expected is not None:
        warnings += _of_areas(areas.workload.tree, plan.budget.exact, expected, totals)
    domain = plan.domain
    of_attributes = [one for one in plan.budget.exact if set(one) <= set(domain.names)]
    for total in of_attributes if expected is not None else ():
        attributes = [domain[name] for name in domain.in_order(total)]
        assert expected is not None
        counts = expected.counts_of(attributes)
        few = int(np.count_nonzero(counts < FEW_PEOPLE))
        if not few:
            continue
        cell = np.unravel_index(int(np.argmin(counts)), counts.shape)
        values = ", ".join(
            f"{attribute.name} {attribute.stored_values(int(place) + 1)[int(place)]}"
            for attribute, place in zip(attributes, cell, strict=True)
        )
        warnings.append(
            f"By the expected counts {plural(few, 'cell')} of the exact total "
            f"{' × '.join(total)} {'holds' if few == 1 else 'hold'} fewer than {FEW_PEOPLE} "
            f"records (about {rounded(float(counts.min()), 2)} with {values}), and the release "
            "tells how many exactly: people who know the others in such a cell learn who is left. "
            "Make a coarser total exact."
        )
    return warnings


def _of_areas(
    tree: AreaTree,
    exact: Sequence[Sequence[str]],
    expected: ExpectedCounts,
    totals: Mapping[int, float] | None,
) -> list[str]:
    """That areas whose number of records is exact have few of them: on average, or by their totals.

    totals: below them, as within areas whose totals are known, records are taken as spread evenly
    """
    warnings = []
    for total in exact:
        if not total[0].startswith(OF_AREAS):
            continue
        areas = tree.level_slice(tree.levels.index(total[0].removeprefix(OF_AREAS)))
        n_areas = areas.stop - areas.start
        people = expected.total / n_areas
        which = (
            f"the areas of the exact total {total[0]} have {rounded(people, 2)} records on average"
        )
        if totals is not None:
            of_areas = expected.total * shares_of_areas(tree, totals)[areas]
            people, few = float(np.min(of_areas)), int(np.count_nonzero(of_areas < FEW_PEOPLE))
            which = (
                f"{few:,} of {plural(n_areas, 'area')} of the exact total {total[0]} "
                f"{'has' if few == 1 else 'have'} fewer than {FEW_PEOPLE} records (the smallest "
                f"{rounded(people, 2)})"
            )
        if people < FEW_PEOPLE:
            warnings.append(
                f"By what is expected {which}, and the release tells how many exactly: people who "
                "know the others in a small area learn who is left. Make the numbers of a higher "
                "level exact."
            )
    return warnings
