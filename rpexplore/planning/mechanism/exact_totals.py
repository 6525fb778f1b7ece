"""Exact totals: the margins that a release holds as they are, and that neighbours keep."""

import numpy as np

from rpexplore.errors import PlanError
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.mechanism.kept_totals import KeptTotals
from rpexplore.planning.mechanism.replacement import Totals, is_exact, is_kept_by_all
from rpexplore.privacy.budget import Budget
from rpexplore.workload.workload import Workload


def exact_totals(workload: Workload, budget: Budget) -> Totals:
    """What each exact total of a budget has of the attributes with several values, as indices.

    Of a total that another part of the plan holds that may be some of its attributes, or none:
    neighbours that keep the total keep what is left of it. Then more changes are charged than
    these neighbours make.
    """
    names, sizes, totals = workload.domain.names, workload.domain.sizes, []
    for total in budget.exact:
        wanted = {names.index(name) for name in total if name in names}
        totals.append(tuple(sorted(index for index in wanted if sizes[index] > 1)))
    return tuple(
        sorted({one for one in totals if not any(set(one) < set(other) for other in totals)})
    )


def kept_totals(workload: Workload, closure: Closure, budget: Budget) -> KeptTotals | None:
    """The exact totals of tables with levels, amounts or aggregations; None without any.

    Raises `PlanError` for totals of other than single values or levels, and of weighted tables.
    """
    if not budget.exact:
        return None
    domain, trees = workload.domain, {tree.column: tree for tree in closure.trees}
    if np.any(workload.is_weighted):
        raise PlanError(
            f"Exact totals ({budget.exact_text}) do not go with weighted tables: records that "
            "exchange values have different weights, so that weighted totals do not stay."
        )
    aggregated = {index for index, basis in workload.attribute_bases if not basis.is_identity}
    numbers, columns = [], []
    for total in budget.exact:
        inside = [domain.position(name) for name in total if name in domain]
        names = [domain.names[index] for index in inside if index in aggregated]
        if names:
            raise PlanError(
                f"The total of {' × '.join(total)} is to be exact, and tables have {names[0]!r} in "
                "an aggregation: exact totals are of single values or levels, whose counts are "
                "whole numbers. Leave the aggregation out, or that total."
            )
        own: set[int] = set()
        for index in inside:
            attribute = domain[domain.names[index]]
            column = domain.position(attribute.of) if attribute.of else index
            if index == column:
                own.update(np.flatnonzero(closure.columns == column).tolist())
            elif column in trees and index in trees[column].of_tables:
                own.update(trees[column].within(index))
            else:
                own.add(index)
        numbers.append(frozenset(own))
        columns.append(tuple(sorted({int(closure.columns[number]) for number in own})))
    return KeptTotals(tuple(numbers), tuple(columns))


def refuse_unprotected_by_residual(closure: Closure, workload: Workload) -> None:
    """Raise `PlanError` as `refuse_unprotected`, where residuals are charged one by one."""
    kept = closure.kept
    if kept is None:
        return
    if np.all(closure.is_public):
        raise PlanError(_ALL_TOLD)
    for residual in range(len(closure)):
        if kept.is_unmoved(closure, closure.attributes(residual)):
            names = [workload.domain.names[index] for index in closure.columns_of(residual)]
            raise PlanError(_UNMOVED.format(" × ".join(names)))


_ALL_TOLD = (
    "Every table is inside of an exact total, so that nothing is left to protect; ask for other "
    "tables, too, or publish the totals without a plan."
)
_UNMOVED = (
    "The exact totals share attributes, so that no change of records that keeps them changes {}, "
    "which would not be protected; make that total exact as well, or leave it out of the tables, "
    "or one of the exact totals."
)


def refuse_unprotected(closure: Closure, workload: Workload, exact: Totals) -> None:
    """Raise `PlanError` for tables of which exact totals leave nothing to protect, unsaid."""
    if np.all(is_exact(closure, exact)):
        raise PlanError(_ALL_TOLD)
    kept = np.flatnonzero(is_kept_by_all(closure, exact))
    if len(kept):
        together = " × ".join(
            workload.domain.names[index] for index in closure.columns_of(int(kept[0]))
        )
        raise PlanError(_UNMOVED.format(together))
