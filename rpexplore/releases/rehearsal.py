"""Rehearsal: a table as it might come out, made up from expected counts and the plan's noise.

The expected counts, in whole numbers, are measured and put together again as a release does it
with the records': the same residuals, the same sampler, the same reconstruction. No record is
read, no ledger written, and nothing of it is to be published.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from rpexplore.common.text import plural, rounded
from rpexplore.data.source import Counts
from rpexplore.domain.domain import AttributeIndices, AttributeSet
from rpexplore.domain.expected_counts import CV_LIMIT, ExpectedCounts
from rpexplore.domain.readings import are_publishable
from rpexplore.domain.result_schema import frame_of
from rpexplore.errors import ReleaseError, WorkloadError
from rpexplore.planning.mechanism.reconstruction import answers, contribution, marginal
from rpexplore.planning.mechanism.variances import CellVariances
from rpexplore.planning.table_plan import TablePlan
from rpexplore.releases.measurement import check_countable, measure_residual
from rpexplore.releases.table_cells import label_columns, table_of_cells
from rpexplore.workload.table_text import query_matrix

MAX_CELLS = 100_000  # of one table: more cannot be looked at

_SUPPRESSED = ["value", "lower_95", "upper_95"]  # where a cell is not publishable


@dataclass(frozen=True, eq=False)
class MadeUpTable:
    """A made-up table; its arrays are float64 or bool, one axis an attribute.

    attributes  of the table, in the order of its columns
    cells       one row a cell, with the columns that a release's table has
    expected    the expected answers, as they were stated
    publishable whether the standard error is at most `cv_limit` times the expected answer
    """

    attributes: tuple[str, ...]
    cells: pd.DataFrame
    expected: np.ndarray
    publishable: np.ndarray
    cv_limit: float

    @property
    def shown(self) -> pd.DataFrame:
        """`cells` with values and intervals left empty (NaN) where they are not publishable."""
        shown = self.cells.copy()
        shown.loc[~self.publishable.ravel(), _SUPPRESSED] = np.nan
        return shown

    @property
    def text(self) -> str:
        """What it is, and how much of it is publishable, in sentences."""
        n_cells, n_publishable = self.publishable.size, int(np.sum(self.publishable))
        limit = f"a coefficient of variation of at most {rounded(100 * self.cv_limit, 3)} %"
        are = "is" if n_publishable == 1 else "are"
        return (
            "Made up: expected counts, in whole numbers, with noise of this plan that was drawn "
            "for this picture. No record was read and nothing was spent. "
            f"{n_publishable:,} of {plural(n_cells, 'cell')} {are} publishable, with {limit}; "
            "others are left empty."
        )


def rehearse(
    plan: TablePlan, expected: ExpectedCounts, table: AttributeSet, *, cv_limit: float = CV_LIMIT
) -> MadeUpTable:
    """A table of a plan as it would look if the records were as expected; drawn anew each time.

    Args:
        expected: Public counts; what they say of the table's cells is rounded to whole numbers
            that keep the total, and each of them stays within 1 of it.
        table: The attributes of a table of the workload.
        cv_limit: The largest coefficient of variation of a publishable cell: 0.2 is 20 %.

    Raises:
        WorkloadError: If the expected counts do not fit the plan's codebook, or there is no such
            table.
        ReleaseError: If it is too large.
    """
    workload, closure = plan.workload, plan.closure
    position = workload.position(table)
    if workload.has_amounts[position]:
        raise WorkloadError(
            f"The table {workload.describe(position)} has sums, and expected counts say nothing "
            "of sums; choose a table of counts."
        )
    indices = tuple(workload.attribute_indices(position))
    n_cells = max(workload.cells[position], workload.counted_cells[position])
    if n_cells > MAX_CELLS:
        raise ReleaseError(
            f"The table {workload.describe(position)} has {n_cells:,.0f} cells, and one that is "
            f"made up can have {MAX_CELLS:,}; choose a smaller table."
        )
    attributes = [workload.domain.attributes[index] for index in indices]
    bases = [workload.basis_of(position, index) for index in indices]
    matrices = [
        None if basis.is_identity else query_matrix(basis, attribute)
        for basis, attribute in zip(bases, attributes, strict=True)
    ]
    counts = expected.fitted(workload.domain).counts_of(attributes)
    values = answers(_noisy_marginal(plan, position, indices, counts), matrices)
    variances = CellVariances(workload, closure).variances_of(position, plan.stated_scales)
    labels = [
        label_columns(attribute, basis) for attribute, basis in zip(attributes, bases, strict=True)
    ]
    answers_expected = answers(counts, matrices)
    return MadeUpTable(
        workload.tables[position],
        frame_of(table_of_cells(labels, values, variances)),
        answers_expected,
        are_publishable(np.sqrt(variances), answers_expected, cv_limit),
        cv_limit,
    )


def whole_counts(counts: np.ndarray) -> np.ndarray:
    """Whole numbers, int64, within 1 of the counts; their sum is rounded, and nothing is lost."""
    sums = np.rint(np.cumsum(counts.ravel()))
    return np.diff(sums, prepend=0.0).astype(np.int64).reshape(counts.shape)


def _noisy_marginal(
    plan: TablePlan, position: int, indices: AttributeIndices, counts: np.ndarray
) -> np.ndarray:
    """What a release would give for a table by single values whose records have these counts."""
    closure, whole = plan.closure, whole_counts(counts)
    records = Counts({indices: whole}, int(whole.sum()))
    check_countable(plan, records)
    contributions = {}
    for residual in closure.subsets(position).tolist():
        subset = closure.attributes(residual)
        measured = measure_residual(plan, residual, records)
        contributions[subset] = contribution(measured, subset, closure.strategies)
    return marginal(indices, closure.sizes, contributions, closure.strategies, closure.trees)
