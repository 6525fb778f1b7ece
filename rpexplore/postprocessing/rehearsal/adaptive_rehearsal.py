"""How near an adaptive release would come to the truth, beside smooth tables of a fixed plan.

Made-up records go through what a run does with records: the same measurements, selections and
noise, exact, from the operating system. So no two rehearsals are alike, as no two releases are. No
record is read, no ledger written, and nothing of it is to be published.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from rpexplore.common.concurrency import Progress, no_progress, part_of_progress
from rpexplore.common.formatting import describe_share, plural
from rpexplore.data.counting import counts_of
from rpexplore.data.counts import Counts
from rpexplore.domain.domain import AttributeIndices
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.domain.smooth_rehearsal import WITHOUT_SIGNS
from rpexplore.errors import ReleaseError
from rpexplore.estimation.measured_residuals import MeasuredResiduals
from rpexplore.estimation.smooth_tables import SmoothTables, smooth_residuals
from rpexplore.planning.adaptive.adaptive_plan import AdaptivePlan
from rpexplore.planning.mechanism.reconstruction import contribution
from rpexplore.planning.table_plan import TablePlan
from rpexplore.postprocessing.rehearsal.made_up_records import made_up_records
from rpexplore.postprocessing.rehearsal.smooth_rehearsal import MOST_CELLS, MOST_RECORDS
from rpexplore.releases.adaptive.estimates import MeasuredSoFar, downward_closed, tables_of
from rpexplore.releases.adaptive.outcomes import read_outcomes
from rpexplore.releases.adaptive.rounds import measure_rounds
from rpexplore.releases.measurement import measure_residual


@dataclass(frozen=True, eq=False, repr=False)
class AdaptiveRehearsal:
    """The errors of one made-up release of each kind.

    frame      one row a number of attributes: order, tables, adaptive and fixed: the errors of all
               cells of a table, added up without their signs, over the number of records, mean
               over tables
    n_records  that were made up
    """

    frame: pd.DataFrame
    n_records: int

    def describe(self, record_noun: str) -> str:
        """The errors of the largest tables, in a sentence."""
        row = self.frame.iloc[-1]
        return (
            f"Rehearsed once on made-up {record_noun} ({self.n_records:,}): a table of "
            f"{plural(int(row['order']), 'attribute')} is off by {describe_share(row['adaptive'])} "
            f"of the {record_noun} (errors of all its cells, {WITHOUT_SIGNS}) where it is released "
            f"adaptively, and by {describe_share(row['fixed'])} as a smooth table of a fixed plan "
            "with the same budget. Another rehearsal differs by chance; made-up records are "
            "simpler than real ones, whose errors may well be larger."
        )


def rehearse_adaptive(
    plan: AdaptivePlan,
    fixed: TablePlan,
    expected: ExpectedCounts,
    *,
    on_progress: Progress = no_progress,
) -> AdaptiveRehearsal:
    """The errors of an adaptive release, and of smooth tables of a fixed plan, on made-up records.

    Args:
        fixed: A plan that measures all tables of the adaptive one, for the same budget.
        expected: Public counts, of which the made-up records have the total and the margin.

    Raises:
        WorkloadError: If the expected counts do not fit the plan's codebook.
        ReleaseError: If there are too many records or cells to be rehearsed.
    """
    cells = float(np.sum(plan.workload.cells))
    if expected.total > MOST_RECORDS or cells > MOST_CELLS:
        raise ReleaseError(
            f"At most {MOST_RECORDS:,} records and {MOST_CELLS:,} cells of all tables can be "
            "rehearsed; rehearse fewer tables, or that number of records."
        )
    on_progress("Making up records", 0.0)
    tables = tables_of(plan)
    codes, n_records = made_up_records(plan.domain, expected, plan.workload.used)
    counts = counts_of(
        [(codes, n_records, 1.0)],
        tables,
        plan.domain.sizes.tolist(),
        on_progress=part_of_progress(on_progress, 0.0, 0.05),
    )
    readings = {
        "adaptive": adaptive_fit(plan, counts, part_of_progress(on_progress, 0.05, 0.8)),
        "fixed": _fixed_fit(fixed, counts, part_of_progress(on_progress, 0.8, 1.0)),
    }
    frame = pd.DataFrame(
        [
            {
                "order": len(table),
                "tables": 1,
                **{name: _error(fit, table, counts) for name, fit in readings.items()},
            }
            for table in tables
            if table
        ]
    )
    how = {"tables": "sum", "adaptive": "mean", "fixed": "mean"}
    on_progress("Finished", 1.0)
    return AdaptiveRehearsal(frame.groupby("order", as_index=False).agg(how), n_records)


def adaptive_fit(
    plan: AdaptivePlan, counts: Counts, on_progress: Progress = no_progress
) -> SmoothTables:
    """The tables that a run of an adaptive plan estimates, of counts that are nobody's.

    Noise and selections are those of a run, but nothing is booked: not for real records.
    """
    drawn: list[np.ndarray] = []
    first = _measured(plan.first, counts)
    measure_rounds(
        plan,
        counts,
        first,
        np.zeros(0, dtype=np.int64),
        lambda pieces: drawn.extend(np.ravel(piece) for piece in pieces),
        part_of_progress(on_progress, 0.0, 0.8),
    )
    outcomes = read_outcomes(plan, np.concatenate(drawn))
    family = downward_closed(tables_of(plan))
    on_fit = part_of_progress(on_progress, 0.8, 1.0)
    return MeasuredSoFar.of(plan, first, outcomes).fit(family, on_fit)


def _fixed_fit(plan: TablePlan, counts: Counts, on_progress: Progress) -> SmoothTables:
    """The smooth tables of a release by a fixed plan, of such counts."""
    closure = plan.closure
    subsets = [closure.attributes(residual) for residual in range(len(closure))]
    contributions = {
        subset: contribution(measured, subset, closure.strategies)
        for subset, measured in zip(subsets, _measured(plan, counts), strict=True)
    }
    variances = dict(zip(subsets, plan.sigma_squared.floats.tolist(), strict=True))
    sizes = plan.domain.sizes
    residuals = MeasuredResiduals(contributions, variances, sizes, closure.strategies)
    return smooth_residuals(residuals, on_progress=on_progress)


def _measured(plan: TablePlan, counts: Counts) -> list[np.ndarray]:
    return [measure_residual(plan, residual, counts) for residual in range(len(plan.closure))]


def _error(fit: SmoothTables, table: AttributeIndices, counts: Counts) -> float:
    distance = np.abs(fit.table(table) - counts.counts(table)).sum()
    return float(distance) / max(counts.n_records, 1)
