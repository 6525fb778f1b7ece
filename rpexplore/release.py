"""Release: a plan and records in, noisy tables out; spends the budget once."""

from collections.abc import Callable, Mapping
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import numpy as np

from rpexplore.data.files import read_records
from rpexplore.data.records import Records
from rpexplore.errors import DataError, LedgerError, PlanError, ReleaseError
from rpexplore.exact import Exact, exact_fraction
from rpexplore.ledger import Ledger
from rpexplore.measurement import check_countable, check_measurable, measured
from rpexplore.plan import Plan
from rpexplore.reconstruct import answers, asked_by, contribution, marginal
from rpexplore.release_folder import FolderWriter, Release, check_new, check_room, new_folder
from rpexplore.verification import verify

Progress = Callable[[str, float], None]

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
    record_rho = _checked_record_rho(plan)
    check_measurable(plan)
    check_new(output)
    check_room(plan, output)
    if not data.is_file():
        raise DataError(f"There are no records at {str(data)!r}; check the path.")
    book = Ledger(ledger) if ledger is not None else Ledger.beside(data)
    cap = None if cap_rho is None else _record_cap(plan, cap_rho)
    book.check(data, plan, record_rho, cap)

    progress("Reading the records", 0.0)
    records = read_records(
        data,
        plan.workload.domain,
        plan.workload.used,
        other=other,
        progress=lambda share: progress("Reading the records", BOOKED * share),
    )
    check_countable(plan, records)

    run = None
    try:
        with (
            new_folder(output) as folder,
            closing(FolderWriter(folder, plan, other or {})) as writer,
        ):
            progress("Booking the run in the ledger", BOOKED)
            run = book.book(data, plan, record_rho, output, cap)
            contributions = _measure(plan, records, writer, progress)
            _write_tables(plan, contributions, writer, progress)
            manifest = writer.finish()
    except OSError as error:
        charge = "was not booked" if run is None else "was booked before and stays charged"
        raise ReleaseError(
            f"The release could not be written to {str(output)!r} ({error.strerror or error}) and "
            f"nothing of it was left; the run {charge}. Make room, or choose another folder."
        ) from None
    try:
        book.finish(run)
    except LedgerError as error:
        raise LedgerError(
            f"The release is complete at {str(output)!r} and charged; only the note that it "
            f"finished could not be made. {error}"
        ) from None
    progress("Finished", 1.0)
    return Release(output, plan, manifest)


def _checked_record_rho(plan: Plan) -> Fraction:
    """ρ for one record, verified against the noise scales; refuses a plan that is off."""
    verification = verify(plan, strategies=False)
    if not verification.holds:
        broken = next(check for check in verification.checks if not check.holds)
        raise PlanError(
            f"The plan does not hold what it claims ({broken.name}: {broken.finding}); make it "
            "again."
        )
    return plan.record_rho


def _record_cap(plan: Plan, cap_rho: Exact) -> Fraction:
    """The cap, given for the plan's privacy unit, for one record."""
    cap = exact_fraction(cap_rho, "cap_rho")
    if cap <= 0:
        raise LedgerError(f"The cap must be a positive ρ, got {cap_rho}.")
    return cap / plan.budget.records_factor


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
