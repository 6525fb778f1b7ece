"""Release: a plan and records in, noisy tables out; spends the budget once."""

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import numpy as np

from rpexplore.charge import Charge, Progress, refuse_broken
from rpexplore.data.files import read_records
from rpexplore.data.records import Records
from rpexplore.exact import Exact
from rpexplore.measurement import check_countable, check_measurable, measured
from rpexplore.new_folder import check_new, check_room
from rpexplore.plan import Plan
from rpexplore.reconstruct import answers, asked_by, contribution, marginal
from rpexplore.release_folder import BYTES_PER_CELL, FolderWriter, Release
from rpexplore.verification import verify

__all__ = ["Release", "release"]

# Shares of the whole run's time, for the progress bar.
# Of the work: what is done when the run is booked (before, stopping it costs nothing), and when all
# noise is drawn.
BOOKED, _MEASURED = 0.1, 0.45


def release(
    plan: Plan,
    data: str | Path,
    output: str | Path,
    *,
    other: Mapping[str, str] | None = None,
    ledger: str | Path | None = None,
    cap_rho: Exact | None = None,
    progress: Progress = lambda doing, share: None,
) -> Release:
    """Run a plan on records and write the release folder `output`, which must not exist yet.

    data      .csv or .parquet with the plan's attributes as columns; others are not read
    other     attribute name -> category that takes values not in the domain, and missing ones
    ledger    the ledger file; without it, the one in the data's folder
    cap_rho   cap on the dataset's total ρ, in the plan's privacy unit; noted in the ledger if it
              has none yet, refused if it has another
    progress  told what is being done, and the share that is done; from `BOOKED` on, a run that it
              stops by raising stays charged

    Everything that can be refused (plan, folder, records, cap) is refused before the run is
    booked; it is booked before any noise is drawn; a run that stops after that stays charged.

    Raises `PlanError`, `ReleaseError`, `DataError`, `LedgerError`.
    """
    data, output = Path(data), Path(output)
    progress("Checking the plan", 0.0)
    # Nothing of the guarantee depends on whether other strategies would be better.
    refuse_broken(verify(plan, strategies=False))
    check_measurable(plan)
    check_new(output)
    check_room(BYTES_PER_CELL * float(np.sum(plan.workload.cells)), output)
    charge = Charge(plan, data, output, ledger, cap_rho)

    progress("Reading the records", 0.0)
    records = read_records(
        data,
        plan.workload.domain,
        plan.workload.used,
        other=other,
        progress=lambda share: progress("Reading the records", BOOKED * share),
    )
    check_countable(plan, records)

    with charge.folder() as folder, closing(FolderWriter(folder, plan, other or {})) as writer:
        progress("Booking the run in the ledger", BOOKED)
        charge.book()
        contributions = _measure(plan, records, writer, progress)
        _write_tables(plan, contributions, writer, progress)
        manifest = writer.finish()
    progress("Finished", 1.0)
    return Release(output, plan, manifest)


def _measure(
    plan: Plan, records: Records, writer: FolderWriter, progress: Progress
) -> dict[int, np.ndarray]:
    """The contribution of every residual, by its place; measurements are kept by the writer."""
    contributions = {}
    for residual in range(len(plan.closure)):
        drawn = measured(plan, residual, records)
        writer.add_residual(residual, drawn)
        places = plan.closure.attributes(residual)
        contributions[residual] = contribution(drawn, places, plan.closure.strategies)
        if residual % 16 == 0:
            share = BOOKED + (_MEASURED - BOOKED) * residual / len(plan.closure)
            progress("Measuring with noise", share)
    return contributions


def _write_tables(
    plan: Plan, contributions: dict[int, np.ndarray], writer: FolderWriter, progress: Progress
) -> None:
    workload, closure = plan.workload, plan.closure
    asked = asked_by(workload)
    for position in range(len(workload)):
        places = workload.places(position)
        within = {
            closure.attributes(residual): contributions[residual]
            for residual in closure.subsets(position).tolist()
        }
        values = marginal(places, closure.sizes, within, closure.strategies)
        of_axes = [asked[question] for question in workload.asks[position, : len(places)]]
        writer.add_table(position, answers(values, of_axes))
        if position % 16 == 0:
            share = _MEASURED + (1 - _MEASURED) * position / len(workload)
            progress("Writing the tables", share)
