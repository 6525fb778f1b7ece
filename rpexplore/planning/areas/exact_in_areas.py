"""Exact totals in areas: the number of records of each area of a level, and tables of the top area.

A budget names the first as `area@LEVEL`.
"""

from collections.abc import Collection

import numpy as np

from rpexplore.common.numbers import shown
from rpexplore.common.text import joined
from rpexplore.domain.area_tree import AreaTree
from rpexplore.domain.domain import Domain
from rpexplore.errors import PlanError
from rpexplore.planning.areas.area_workload import AreaWorkload
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.kept_in_areas import KeptInAreas
from rpexplore.planning.mechanism.replacement import is_kept_by_all
from rpexplore.privacy.budget import Budget
from rpexplore.workload.table_text import table_from_text
from rpexplore.workload.workload import Workload

OF_AREAS = "area@"


def total_from_text(domain: Domain, tree: AreaTree | None, text: str) -> tuple[str, ...]:
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


def kept_in_areas(workload: AreaWorkload, budget: Budget) -> KeptInAreas | None:
    """What neighbours of a budget keep; None where they add or remove records.

    Raises:
        PlanError: For a total of tables of other than single values, or that is none.
    """
    if not budget.replaces:
        return None
    tables, tree = workload.tables, workload.tree
    if budget.exact and (not tables.is_marginals or tables.has_levels):
        raise PlanError(
            f"Exact totals ({budget.exact_text}) go with tables in areas of single values: what an "
            "exchange of two records in different areas costs is proven where all records move a "
            "table by as much. Leave levels, amounts and aggregations such as cumulative sums out "
            "of the areas (tables beside them may have these), or the exact totals."
        )
    n_levels, totals, sizes = 1, set(), workload.domain.sizes
    for total in budget.exact:
        level = _level_of(total, tree)
        if level is not None:
            n_levels = max(n_levels, level + 1)
            continue
        # Of a total of other tables of the plan: what a table of the top area has of it.
        own = [name for name in total if name in workload.domain]
        if _is_in_top(own, workload):
            inside = sorted(workload.domain.position(name) for name in own)
            totals.add(tuple(index for index in inside if sizes[index] > 1))
    largest = [one for one in totals if not any(set(one) < set(other) for other in totals)]
    largest = tuple(sorted(one for one in largest if one))
    return KeptInAreas(n_levels, largest, exchanges=bool(budget.exact))


def refuse_unheld(budget: Budget, tables: Workload | None, areas: AreaWorkload | None) -> None:
    """Raise `PlanError` for an exact total that no table of a plan holds.

    tables, areas: those of its parts
    """
    if budget.exact and tables is None and areas is None:
        raise PlanError(
            f"Exact totals ({budget.exact_text}) are tables that a release holds as they are, and "
            "this plan has no tables; ask for these totals as tables beside the own counts."
        )
    for total in budget.exact:
        level = None if areas is None else _level_of(total, areas.tree)
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
        if areas is not None and _is_in_top(total, areas):
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


def _level_of(total: tuple[str, ...], tree: AreaTree) -> int | None:
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


def _is_in_top(names: Collection[str], workload: AreaWorkload) -> bool:
    """Whether a table of the top area has these attributes."""
    kind = int(workload.kinds[0])
    top = [] if kind < 0 else workload.workloads[kind].tables
    return any(set(names) <= set(table) for table in top)


def refuse_unprotected_in_areas(workload: AreaWorkload, closure: Closure) -> None:
    """Raise `PlanError` for tables of which exact totals leave nothing to protect, unsaid."""
    kept, tree = closure.in_areas, workload.tree
    if kept is None:
        return
    levels, everything = kept.levels_of(closure), True
    for kind, rows in enumerate(workload.rows):
        deepest = int(np.max(tree.level_of[workload.kinds == kind]))
        counted = np.any(closure.variance_matrix[rows] > 0, axis=0)
        everything &= bool(np.all(levels[counted] > deepest))
    if everything:
        raise PlanError(
            "Where neighbours replace a record the number of records is public"
            f"{', and so are exact totals' if kept.exchanges else ''}; nothing else is asked for. "
            "Ask for a table with an attribute of several values, or on a lower level."
        )
    top = workload.rows[int(workload.kinds[0])] if workload.kinds[0] >= 0 else []
    of_top = np.any(closure.variance_matrix[top] > 0, axis=0) if len(top) else False
    hidden = np.flatnonzero(is_kept_by_all(closure, kept.totals) & of_top)
    if len(hidden):
        attributes = closure.attributes(int(hidden[0]))
        together = " × ".join(workload.domain.names[index] for index in attributes)
        raise PlanError(
            "The exact totals share attributes, so that no change of records that keeps them "
            f"changes {together} of the level {tree.levels[0]}, which would not be protected; make "
            "that total exact as well, or leave it out of the tables there, or one of the exact "
            "totals."
        )
