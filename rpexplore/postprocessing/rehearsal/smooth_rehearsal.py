"""How near smooth tables would come to the truth by a plan, beside nonnegative and unbiased ones.

Made-up records are measured as a release measures records: the same residuals, with noise of the
same variance. No record is read, no ledger written, and nothing of it is to be published.

The noise follows from the residual: the same normal numbers in every plan, times its σ (common
random numbers). So plans differ by what they are, not by chance.
"""

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from rpexplore.common.concurrency import Progress, no_progress, part_of_progress
from rpexplore.common.formatting import describe_count, describe_share, plural
from rpexplore.data.counting import counts_of
from rpexplore.data.counts import Counts
from rpexplore.domain.domain import AttributeIndices
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.domain.smooth_rehearsal import WITHOUT_SIGNS, SmoothRehearsal
from rpexplore.errors import ReleaseError, WorkloadError
from rpexplore.estimation.measured_residuals import MeasuredResiduals
from rpexplore.estimation.rehearsal import normal_noise
from rpexplore.estimation.seeded_numbers import SeededNumbers
from rpexplore.estimation.smooth_tables import smooth_residuals
from rpexplore.estimation.table_map import ContributionArrays
from rpexplore.planning.mechanism.reconstruction import contribution
from rpexplore.planning.part_plan import PartPlan
from rpexplore.planning.plan import Plan
from rpexplore.planning.table_plan import TablePlan
from rpexplore.postprocessing.duration import search_seconds
from rpexplore.postprocessing.nonnegative import nonnegative
from rpexplore.postprocessing.rehearsal.made_up_records import made_up_records
from rpexplore.releases.measurement import check_countable, exact_residual

MOST_RECORDS, MOST_CELLS = 2_000_000, 20_000_000
# Of the nonnegative tables: seconds that they may take, and a gap that is enough for a rehearsal.
_MOST_SECONDS, _GAP = 30.0, 0.01


def rehearse_smooth_tables(
    plan: Plan | PartPlan, expected: ExpectedCounts, *, on_progress: Progress = no_progress
) -> SmoothRehearsal:
    """The errors of unbiased, nonnegative and smooth tables of a plan, on made-up records.

    The records are the same every time, and so is the noise but for its size: the same plan has
    the same figures.

    Args:
        expected: Public counts, of which the made-up records have the total and the margin.

    Raises:
        PlanError: If the plan has no tables.
        WorkloadError: If the expected counts do not fit the plan's codebook.
        ReleaseError: If there are too many records or cells to be rehearsed.
    """
    if not isinstance(expected, ExpectedCounts):
        raise WorkloadError(
            "What is expected must be ExpectedCounts, such as ExpectedCounts.of_total(50000), got "
            f"{type(expected).__name__}."
        )
    tables = TablePlan.part_of(plan)
    return _rehearsed(tables, expected, _tables(tables), on_progress)


def describe_smooth_change(
    before: TablePlan,
    after: TablePlan,
    expected: ExpectedCounts,
    record_noun: str,
    *,
    on_progress: Progress = no_progress,
) -> str:
    """How much nearer the smooth tables of one plan come than those of another, in a sentence.

    Of the tables of the first, all of which the second has. Raises as `rehearse_smooth_tables`.
    """
    tables, frames, n_records = _tables(before), [], 0
    present = "smooth tables" if tables == _tables(after) else "the present smooth tables"
    for plan, start in ((before, 0.0), (after, 0.5)):
        of_plan = part_of_progress(on_progress, start, start + 0.5)
        rehearsal = _rehearsed(plan, expected, tables, of_plan, with_nonnegative=False)
        n_records = rehearsal.n_records
        frames.append(rehearsal.frame.set_index("order")["smooth"])
    parts = []
    for order, shares in sorted(pd.concat(frames, axis=1).iterrows(), reverse=True):
        share, later = map(describe_share, shares.tolist())
        parts.append(f"from {share} to {later} in tables of {plural(int(str(order)), 'attribute')}")
    return (
        f"Rehearsed on made-up {record_noun} ({n_records:,}): the errors of {present} go "
        f"{', '.join(parts)} (of all cells, {WITHOUT_SIGNS}, as a share of the {record_noun})."
    )


def _rehearsed(
    plan: TablePlan,
    expected: ExpectedCounts,
    tables: Sequence[AttributeIndices],
    on_progress: Progress,
    *,
    with_nonnegative: bool = True,
) -> SmoothRehearsal:
    """tables: those whose errors are looked at."""
    closure, sizes = plan.closure, plan.workload.domain.sizes
    cells = float(np.sum(plan.workload.counted_cells))
    if expected.total > MOST_RECORDS or cells > MOST_CELLS:
        raise ReleaseError(
            f"At most {MOST_RECORDS:,} records and {MOST_CELLS:,} cells of all tables can be "
            f"rehearsed, got {describe_count(int(expected.total))} and "
            f"{describe_count(int(cells))}; rehearse fewer tables, or that number of records, of "
            "which errors are larger shares."
        )
    on_progress("Making up records", 0.0)
    codes, n_records = made_up_records(plan.workload.domain, expected, plan.workload.used)
    counts = counts_of(
        [(codes, n_records, 1.0)],
        _tables(plan),
        sizes.tolist(),
        on_progress=part_of_progress(on_progress, 0.0, 0.05),
    )
    check_countable(plan, counts)
    unbiased = dict(_measured(plan, counts, part_of_progress(on_progress, 0.05, 0.3)))
    variances = {
        closure.attributes(residual): float(variance)
        for residual, variance in enumerate(plan.sigma_squared.floats)
    }
    measured = MeasuredResiduals(unbiased, variances, sizes, closure.strategies)
    readings: dict[str, ContributionArrays | None] = {"unbiased": unbiased, "nonnegative": None}
    shapes = [measured.shape(table) for table in measured.map.tables]
    if with_nonnegative and search_seconds(shapes) <= _MOST_SECONDS:
        readings["nonnegative"] = nonnegative(
            unbiased,
            sizes,
            closure.strategies,
            gap=_GAP,
            on_progress=part_of_progress(on_progress, 0.3, 0.6),
        ).contributions
    fit = smooth_residuals(measured, on_progress=part_of_progress(on_progress, 0.6, 0.95))
    readings["smooth"] = fit.contributions
    on_progress("Comparing with the made-up records", 0.95)
    frame = _errors(measured, counts, tables, readings)
    on_progress("Finished", 1.0)
    return SmoothRehearsal(plan.sha256, frame, n_records, expected)


def _tables(plan: TablePlan) -> list[AttributeIndices]:
    """The attributes of each table that have several values, each set once."""
    several = {index for index, size in enumerate(plan.closure.sizes.tolist()) if size > 1}
    workload = plan.workload
    tables = (workload.attribute_indices(position) for position in range(len(workload)))
    distinct = dict.fromkeys(tuple(i for i in table if i in several) for table in tables)
    return sorted(distinct, key=lambda table: (len(table), table))


def _measured(
    plan: TablePlan, counts: Counts, on_progress: Progress
) -> Iterator[tuple[AttributeIndices, np.ndarray]]:
    """The contribution of each residual, with normal noise of the plan's variance."""
    closure = plan.closure
    names, variances = plan.workload.domain.names, plan.sigma_squared.floats
    for residual in range(len(closure)):
        on_progress("Measuring made-up records", residual / len(closure))
        subset = closure.attributes(residual)
        exact = exact_residual(plan, residual, counts)
        values = contribution(exact, subset, closure.strategies)
        seed = repr([names[index] for index in subset]).encode()
        noise = normal_noise(
            SeededNumbers(hashlib.sha256(seed).digest()),
            subset,
            values.shape,
            float(variances[residual]),
            closure.strategies,
        )
        yield subset, values + noise


def _errors(
    measured: MeasuredResiduals,
    counts: Counts,
    tables: Sequence[AttributeIndices],
    readings: dict[str, ContributionArrays | None],
) -> pd.DataFrame:
    """The frame of a rehearsal."""
    rows = []
    for table in tables:
        truth = counts.counts(table)
        row = {"order": len(table), "tables": 1} | dict.fromkeys(readings, np.nan)
        for name, contributions in readings.items():
            if contributions is not None:
                errors = measured.map.table(table, contributions) - truth
                row[name] = float(np.sum(np.abs(errors))) / max(counts.n_records, 1)
        rows.append(row)
    rows = [row for row in rows if row["order"]] or rows
    how = {"tables": "sum"} | dict.fromkeys(readings, "mean")
    return pd.DataFrame(rows).groupby("order", as_index=False).agg(how)
