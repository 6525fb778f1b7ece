"""The privacy profile of a query plan: how much of the budget records of each cell use.

A record is in one cell, and what it costs is the privacy cost of its own cell: the plan's profile
times the largest. Where that is below the largest, more may be measured about the cell while no
record's cost rises above what the plan costs anyway (the refined privacy ordering of FFU).
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from rpexplore.common.concurrency import one_thread
from rpexplore.common.formatting import describe_share, plural, rounded
from rpexplore.errors import WorkloadError
from rpexplore.planning.solvers.fitness_for_use import decoding
from rpexplore.queries.plan import QueryPlan

_KNOWN = 1e-7  # what the answers leave open of a cell's count, relative: less is rounding


def profile_of_cells(plan: QueryPlan) -> pd.DataFrame:
    """One row a cell, in the order of the cells: cell, share (of the budget in use) and spare."""
    return pd.DataFrame(
        {"cell": plan.queries.cell_labels, "share": plan.profile, "spare": plan.spare}
    )


def describe_profile(plan: QueryPlan, record_noun: str) -> str:
    """Whose protection is better than promised, and what that is good for."""
    spare, n_cells = np.flatnonzero(plan.spare), plan.queries.n_cells
    if not len(spare):
        return (
            "The records of every cell use the whole budget: there is nothing left over for "
            "further queries at no cost."
        )
    least = int(spare[np.argmin(plan.profile[spare])])
    text = (
        f"Records in {len(spare):,} of {plural(n_cells, 'cell')} use less of the budget than "
        f"others and are better protected than promised; least in "
        f"{plan.queries.cell_labels[least]}, with {describe_share(float(plan.profile[least]))}."
    )
    if len(spare) == 1:
        return text
    error = rounded(free_standard_error(plan, spare.tolist()), 3)
    return (
        f"{text} All of these cells together could be counted at no further cost with a standard "
        f"error of {error} {record_noun}."
    )


def spare_cells(plan: QueryPlan) -> pd.DataFrame:
    """One row a cell with unused budget: what counting it as well would give, at no cost.

    cell, profile (share of the budget in use), spare_cost (privacy cost of one record left),
    standard_error (of the extra count), present_standard_error (of the cell's count by the plan's
    answers, NaN where it does not follow from them) and combined_standard_error (of both). All
    these cells can be counted together: a record is in one of them only.
    """
    cells = np.flatnonzero(plan.spare)
    spare = _spare_cost(plan)[cells]
    own = np.eye(plan.queries.n_cells)[cells]
    matrix = plan.strategy.integers.astype(float)
    with one_thread():
        decoded = decoding(matrix, own)
        left_open = np.abs(decoded @ matrix - own).max(axis=1, initial=0.0) > _KNOWN
    present = np.sum(decoded**2, axis=1) * float(plan.gamma_squared)
    present[left_open] = np.nan
    precision = spare + np.where(left_open, 0.0, 1 / present)
    return pd.DataFrame(
        {
            "cell": [plan.queries.cell_labels[cell] for cell in cells],
            "profile": plan.profile[cells],
            "spare_cost": spare,
            "standard_error": 1 / np.sqrt(spare),
            "present_standard_error": np.sqrt(present),
            "combined_standard_error": 1 / np.sqrt(precision),
        }
    )


def free_standard_error(plan: QueryPlan, cells: Iterable[int]) -> float:
    """Standard error of one extra query that counts these cells together, at no cost.

    cells: indices of cells, each with unused budget; the one with the least decides. It takes the
    place of counting them one by one.

    Raises `WorkloadError` for no cell, or for one without unused budget.
    """
    indices = list(cells)
    full = [cell for cell in indices if not plan.spare[cell]]
    if full or not indices:
        which = f"the cell {plan.queries.cell_labels[full[0]]!r} has none" if full else "got none"
        raise WorkloadError(
            f"A query at no cost must count cells with unused budget, and at least one; {which}."
        )
    return float(1 / np.sqrt(np.min(_spare_cost(plan)[indices])))


def _spare_cost(plan: QueryPlan) -> np.ndarray:
    """Privacy cost that a record of each cell leaves of the plan's, float64[n_cells]."""
    cost = float(plan.exact_privacy_cost / plan.budget.records_factor)
    return (1 - plan.profile) * cost
