"""Exact totals in areas: the number of records of each area of a level, tables of the top area."""

import numpy as np

from rpexplore.errors import PlanError
from rpexplore.planning.areas.area_workload import AreaWorkload
from rpexplore.planning.held_totals import is_in_top, level_of
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.kept_totals import KeptInAreas
from rpexplore.planning.mechanism.replacement import is_kept_by_all
from rpexplore.privacy.budget import Budget


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
        level = level_of(total, tree)
        if level is not None:
            n_levels = max(n_levels, level + 1)
            continue
        # Of a total of other tables of the plan: what a table of the top area has of it.
        own = [name for name in total if name in workload.domain]
        if is_in_top(own, workload):
            inside = sorted(workload.domain.position(name) for name in own)
            totals.add(tuple(index for index in inside if sizes[index] > 1))
    largest = [one for one in totals if not any(set(one) < set(other) for other in totals)]
    largest = tuple(sorted(one for one in largest if one))
    return KeptInAreas(n_levels, largest, exchanges=bool(budget.exact))


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
