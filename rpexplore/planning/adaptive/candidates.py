"""What an adaptive release can select: the pairs and triples of attributes within its tables."""

import numpy as np

from rpexplore.common.formatting import plural
from rpexplore.domain.domain import AttributeIndices
from rpexplore.errors import WorkloadError
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.workload.workload import Workload

MOST_CELLS = 40_000_000
"""Of all triples together, for triples to be candidates: every round estimates all candidates."""
MOST_TABLE_CELLS = 50_000_000  # in one table of a release, which is estimated as a whole


def subsets_within(workload: Workload, order: int) -> np.ndarray:
    """The sets of `order` attributes within tables, lexicographic, int32[n, order].

    Of attributes with more than one value, as others have nothing that can be measured. Raises
    `PlanError` if tables have too many subsets to list.
    """
    members = Closure.of(workload).members
    orders = np.count_nonzero(members >= 0, axis=1)
    return members[orders == order, :order]


def candidates_of(workload: Workload) -> tuple[AttributeIndices, ...]:
    """The candidates of a workload: its pairs, and its triples where they can be estimated.

    Pairs first, then triples, lexicographic. From the workload and the domain alone.
    """
    sizes = workload.domain.sizes.astype(float)
    pairs, triples = (subsets_within(workload, order) for order in (2, 3))
    rows = pairs.tolist()
    if np.sum(np.prod(sizes[triples], axis=1)) <= MOST_CELLS:
        rows += triples.tolist()
    return tuple(map(tuple, rows))


def refuse_unsuitable(workload: Workload) -> None:
    """Raise `WorkloadError` unless an adaptive release can estimate these tables."""
    if not workload.is_marginals:
        raise WorkloadError(
            "An adaptive release estimates the counts of single values; leave cumulative sums, "
            "ranges and other aggregations out, and add up the released counts instead."
        )
    if not np.all(np.isnan(workload.targets)):
        table = int(np.argmax(~np.isnan(workload.targets)))
        raise WorkloadError(
            f"The table {workload.describe(table)} has a target, and an adaptive release promises "
            "nothing of its accuracy beforehand; leave targets out, or make a plan that is not "
            "adaptive."
        )
    if len(np.unique(workload.weights)) > 1:
        raise WorkloadError(
            "The tables have different weights, and an adaptive release selects without regard to "
            "them; leave weights out, or make a plan that is not adaptive."
        )
    largest = int(np.argmax(workload.cells))
    if workload.cells[largest] > MOST_TABLE_CELLS:
        raise WorkloadError(
            f"The table {workload.describe(largest)} has {workload.cells[largest]:,.0f} cells; an "
            f"adaptive release can estimate at most {MOST_TABLE_CELLS:,} in one table; leave it "
            "out, or ask for it with fewer attributes."
        )
    several = np.append(workload.domain.sizes > 1, False)[workload.members]
    if np.max(np.count_nonzero(several, axis=1), initial=0) < 2:
        tables = plural(len(workload), "table")
        raise WorkloadError(
            f"No table of the {tables} has two attributes with more than one value, so nothing "
            "could be selected; ask for tables of two attributes or more, or make a plan that is "
            "not adaptive."
        )
