"""Exact totals: the margins that a release holds as they are, and that neighbours keep."""

import numpy as np

from rpexplore.errors import PlanError
from rpexplore.planning.mechanism.closure import Closure
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


def refuse_unprotected(closure: Closure, workload: Workload, exact: Totals) -> None:
    """Raise `PlanError` for tables of which exact totals leave nothing to protect, unsaid."""
    if np.all(is_exact(closure, exact)):
        raise PlanError(
            "Every table is inside of an exact total, so that nothing is left to protect; ask for "
            "other tables, too, or publish the totals without a plan."
        )
    kept = np.flatnonzero(is_kept_by_all(closure, exact))
    if len(kept):
        together = " × ".join(
            workload.domain.names[index] for index in closure.columns_of(int(kept[0]))
        )
        raise PlanError(
            f"The exact totals share attributes, so that no change of records that keeps them "
            f"changes {together}, which would not be protected; make that total exact as well, or "
            "leave it out of the tables, or one of the exact totals."
        )
