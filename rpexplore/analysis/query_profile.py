"""The privacy profile of a query plan: how much of the budget records of each cell use."""

import numpy as np
import pandas as pd

from rpexplore.analysis.spare_cells import free_standard_error
from rpexplore.common.formatting import plural, rounded, share_in_words
from rpexplore.queries.plan import QueryPlan


def profile_of_cells(plan: QueryPlan) -> pd.DataFrame:
    """One row a cell, in the order of the cells: cell, share (of the budget in use) and spare."""
    return pd.DataFrame(
        {"cell": plan.queries.cell_labels, "share": plan.profile, "spare": plan.spare}
    )


def profile_in_words(plan: QueryPlan, counted: str) -> str:
    """Whose protection is better than promised, and what that is good for."""
    spare, n_cells = np.flatnonzero(plan.spare), plan.queries.n_cells
    if not len(spare):
        return (
            "The records of every cell use the whole budget: there is nothing left over for "
            "further queries at no cost."
        )
    least = int(spare[np.argmin(plan.profile[spare])])
    words = (
        f"Records in {len(spare):,} of {plural(n_cells, 'cell')} use less of the budget than "
        f"others and are better protected than promised; least in "
        f"{plan.queries.cell_labels[least]}, with {share_in_words(float(plan.profile[least]))}."
    )
    if len(spare) == 1:
        return words
    error = rounded(free_standard_error(plan, spare.tolist()), 3)
    return (
        f"{words} All of these cells together could be counted at no further cost with a standard "
        f"error of {error} {counted}."
    )
