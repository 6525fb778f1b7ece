"""Exact totals of a plan as they are typed, and which of its parts holds each.

A budget names a total of attributes by these, and the number of records of each area of a level as
`area@LEVEL`.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from rpexplore.common.numbers import shown
from rpexplore.common.text import joined
from rpexplore.domain.domain import Domain
from rpexplore.errors import PlanError
from rpexplore.privacy.budget import Budget
from rpexplore.workload.table_text import table_from_text
from rpexplore.workload.workload import Workload

if TYPE_CHECKING:  # a plan of tables needs nothing of areas
    from rpexplore.domain.area_tree import AreaTree
    from rpexplore.planning.areas.area_workload import AreaWorkload

OF_AREAS = "area@"


def total_from_text(domain: Domain, tree: "AreaTree | None", text: str) -> tuple[str, ...]:
    """The names of an exact total as it is typed: "sex,age", or "area@county" beside areas.

    Raises:
        WorkloadError, DomainError: As `table_from_text`.
        PlanError: For areas of a plan that has none, or a level of areas by its bare name.
    """
    names = tuple(name.strip() for name in text.split(","))
    of_areas = [name for name in names if name.startswith(OF_AREAS) and name not in domain]
    if tree is not None and of_areas:
        return names
    if of_areas:
        raise PlanError(
            f"The exact total {shown(of_areas[0])!r} counts the records of areas, and the plan has "
            "none; give the areas (--areas), or make a total of attributes exact."
        )
    bare = [] if tree is None else [n for n in names if n in tree.levels and n not in domain]
    if bare:
        raise PlanError(
            f"{shown(bare[0])!r} is a level of areas; the exact number of records of each is "
            f"written {OF_AREAS}{bare[0]}, and goes with no attribute."
        )
    return table_from_text(domain, text)


def refuse_unheld(budget: Budget, tables: Workload | None, areas: "AreaWorkload | None") -> None:
    """Raise `PlanError` for an exact total that no table of a plan holds.

    tables, areas: those of its parts
    """
    if budget.exact and tables is None and areas is None:
        raise PlanError(
            f"Exact totals ({budget.exact_text}) are tables that a release holds as they are, and "
            "this plan has no tables; ask for these totals as tables beside the own counts."
        )
    for total in budget.exact:
        level = None if areas is None else level_of(total, areas.tree)
        if areas is not None and level is not None:
            if not np.any(areas.kinds[areas.tree.level_slice(level)] >= 0):
                raise PlanError(
                    f"The number of records of each {areas.tree.levels[level]} is to be exact, and "
                    "no table is asked for on that level; ask for one there, which has it."
                )
            continue
        of_tables = () if tables is None else tables.tables
        if any(set(total) <= set(table) for table in of_tables):
            continue
        if areas is not None and is_in_top(total, areas):
            continue
        domains = [part.domain for part in (tables, areas) if part is not None]
        # A level is there although no table has it.
        known = {name for domain in domains for name in (*domain.names, *domain.with_levels.names)}
        unknown = [name for name in total if name not in known]
        if areas is not None:
            levels = [f"{OF_AREAS}{level}" for level in areas.tree.levels]
            reason = (
                f"there is no attribute {shown(unknown[0])!r}; areas are written as "
                f"{joined(levels, ' or ')}"
                if unknown
                else f"no table of the level {areas.tree.levels[0]} has it; ask for that table "
                "there"
            )
            raise PlanError(f"The total of {' × '.join(total)} is to be exact, and {reason}.")
        reason = f"there is no attribute {shown(unknown[0])!r}" if unknown else "no table has it"
        raise PlanError(
            f"The total of {' × '.join(total)} is to be exact, and {reason}; ask for that "
            "table, or for a larger one that it is a margin of."
        )


def level_of(total: tuple[str, ...], tree: "AreaTree") -> int | None:
    """The level whose areas a total counts; None for one of attributes."""
    named = [name for name in total if name.startswith(OF_AREAS)]
    if not named:
        return None
    if len(total) > 1:
        raise PlanError(
            f"The total of {' × '.join(total)} is to be exact: how many records areas have can be, "
            f"and tables of the top area, {tree.levels[0]}, but no table of other areas; leave the "
            "attributes or the areas out."
        )
    level = named[0].removeprefix(OF_AREAS)
    if level not in tree.levels:
        raise PlanError(
            f"The total of {named[0]} is to be exact, and there is no level {shown(level)}; the "
            f"levels are {joined(tree.levels)}."
        )
    return tree.levels.index(level)


def is_in_top(names: Collection[str], workload: "AreaWorkload") -> bool:
    """Whether a table of the top area has these attributes."""
    kind = int(workload.kinds[0])
    top = [] if kind < 0 else workload.workloads[kind].tables
    return any(set(names) <= set(table) for table in top)
