"""Release: a plan and records in, noisy tables out; spends the budget once.

    check       plan, folder, disk, ledger, records: everything that can be refused is, for nothing
    count       the records, exactly, where they lie
    book        the run, in the ledger: it is charged from here on
    measure     counts with noise, on disk when all is drawn: nothing needs the records any more
    write       the tables

`dry_run` ends before the booking. A run that is stopped while it writes can be finished by
`resume`, which draws nothing.
"""

import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np

from rpexplore.common.concurrency import in_order
from rpexplore.common.exact_numbers import Exact
from rpexplore.data.counts import Counts
from rpexplore.data.files.source import AnySource, source_of
from rpexplore.data.source import Fingerprint, PersonRule
from rpexplore.errors import ReleaseError
from rpexplore.planning.plan import Plan
from rpexplore.planning.verification import verify
from rpexplore.releases.atomic_folder import check_new, check_room, resumed_folder, unfinished
from rpexplore.releases.charged_run import (
    ChargedRun,
    DryRun,
    Progress,
    how_to_finish,
    note_finished,
    refuse_broken,
)
from rpexplore.releases.ledger import Ledger
from rpexplore.releases.measurement import (
    all_measured,
    check_countable,
    check_measurable,
    measured_cells,
)
from rpexplore.releases.measurement_file import (
    NOTE,
    PLAN,
    MeasurementNote,
    read_note,
    reserve,
    write_measured,
    write_note,
)
from rpexplore.releases.table_folder import BYTES_PER_CELL, FolderWriter, Release

__all__ = ["Release", "can_be_resumed", "dry_run", "release", "resume"]

# Shares of the whole run's time, for the progress bar.
# Of the work: what is done when the run is booked (before, stopping it costs nothing), and when all
# noise is drawn (after, it can be finished).
BOOKED, DRAWN = 0.3, 0.4


def release(
    plan: Plan,
    data: AnySource,
    output: str | Path,
    *,
    other: Mapping[str, str] | None = None,
    persons: PersonRule | None = None,
    ledger: str | Path | None = None,
    cap_rho: Exact | None = None,
    checked: Fingerprint | None = None,
    progress: Progress = lambda doing, share: None,
) -> Release:
    """Run a plan on records and write the release folder `output`, which must not exist yet.

    data      a .csv or .parquet file, a folder of such, or another `Source`, with the plan's
              attributes as columns; others are not read
    other     attribute name -> category that takes values not in the domain, and missing ones
    persons   how it is seen to that no person has more records than the plan protects; without
              it, that is taken for granted
    ledger    the ledger file; without it, the one in the data's folder
    cap_rho   cap on the dataset's total ρ, in the plan's privacy unit; noted in the ledger if it
              has none yet, refused if it has another
    checked   what a dry run has seen of the records: refused if they are no longer the same
    progress  told what is being done, and the share that is done; from `BOOKED` on, a run that it
              stops by raising stays charged, and from `DRAWN` on `resume` can finish it

    Everything that can be refused (plan, folder, records, cap) is refused before the run is
    booked; it is booked before any noise is drawn; a run that stops after that stays charged.

    Raises `PlanError`, `ReleaseError`, `DataError`, `LedgerError`.
    """
    output = Path(output)
    other = other or {}
    run = _Run(plan, data, output, ledger, cap_rho, progress)
    counts = run.counted(other, persons, checked)
    with run.charge.folder() as folder:
        reserve(folder, plan)
        progress("Booking the run in the ledger", BOOKED)
        number = run.charge.book()
        with closing(all_measured(plan, counts)) as parts:
            sha256 = write_measured(folder, _followed(parts, plan, progress))
        del counts, parts
        ledger_file = str(run.charge.book_of_runs.path)
        words = persons.words if persons else ""
        drawn = MeasurementNote(number, ledger_file, plan.sha256, dict(other), words, sha256)
        write_note(folder, drawn)
        manifest = _write(folder, plan, drawn, progress)
    progress("Finished", 1.0)
    return Release(output, plan, manifest)


def dry_run(
    plan: Plan,
    data: AnySource,
    output: str | Path,
    *,
    other: Mapping[str, str] | None = None,
    persons: PersonRule | None = None,
    ledger: str | Path | None = None,
    cap_rho: Exact | None = None,
    progress: Progress = lambda doing, share: None,
) -> DryRun:
    """Do everything that `release` does up to the booking: check and count, spend nothing.

    Arguments and errors are those of `release`. The counts are thrown away.
    """
    run = _Run(plan, data, Path(output), ledger, cap_rho, progress)
    run.counted(other or {}, persons)
    progress("Finished", 1.0)
    return run.charge.dry_run(run.room, other or {}, persons)


def resume(
    output: str | Path,
    *,
    ledger: str | Path | None = None,
    progress: Progress = lambda doing, share: None,
) -> Release:
    """Finish a run into `output` that was stopped after its noise had been drawn.

    Needs no records, draws nothing and costs nothing. ledger: where it lies now, if it was moved.

    Raises `ReleaseError` if there is no such run, if its plan is not the one that it was booked
    with, or if its measurements are not those that were noted when they were drawn.
    """
    output = Path(output)
    if (output / NOTE).is_file():  # it was stopped after it got its name
        return _tidied(output, ledger)
    try:
        with resumed_folder(output, NOTE) as folder:
            progress("Checking what was drawn", 0.0)
            drawn = read_note(folder)
            plan = Plan.load(folder / PLAN)
            book = Ledger(drawn.ledger if ledger is None else ledger)
            booked = book.run(drawn.run)
            known = booked is not None and booked.plan_sha256 == drawn.plan_sha256
            if not known or plan.sha256 != drawn.plan_sha256:
                raise ReleaseError(
                    f"The run into {str(output)!r} cannot be finished: its plan is not the one "
                    f"that was booked for it in the ledger {str(book.path)!r}; name the ledger "
                    "that it was booked in, or restore the plan."
                )
            refuse_broken(verify(plan, strategies=False))
            manifest = _write(folder, plan, drawn, progress)
    except OSError as error:
        raise ReleaseError(
            f"The release could not be written to {str(output)!r} ({error.strerror or error}). "
            f"{how_to_finish(output)}"
        ) from None
    note_finished(book, drawn.run, output)
    progress("Finished", 1.0)
    return Release(output, plan, manifest)


def _tidied(output: Path, ledger: str | Path | None) -> Release:
    """A complete release without what only served its run; the ledger notes that it finished."""
    done, drawn = Release.load(output), read_note(output)
    book = Ledger(drawn.ledger if ledger is None else ledger)
    note_finished(book, drawn.run, output)
    shutil.rmtree((output / NOTE).parent)
    return done


def can_be_resumed(output: str | Path) -> bool:
    """Whether there is a run into `output` that `resume` could finish."""
    output = Path(output)
    left = output if output.exists() else unfinished(output)
    return (left / NOTE).is_file()


class _Run:
    """A run up to its booking: what a release and a dry run have in common."""

    def __init__(
        self,
        plan: Plan,
        data: AnySource,
        output: Path,
        ledger: str | Path | None,
        cap_rho: Exact | None,
        progress: Progress,
    ) -> None:
        self._plan, self._progress = plan, progress
        progress("Checking the plan", 0.0)
        # Nothing of the guarantee depends on whether other strategies would be better.
        refuse_broken(verify(plan, strategies=False))
        check_measurable(plan)
        check_new(output, kept_with=NOTE)
        measured = 8.0 * float(np.sum(measured_cells(plan.closure)))
        self.room = BYTES_PER_CELL * float(np.sum(plan.workload.cells)) + measured
        check_room(self.room, output)
        self.charge = ChargedRun(plan, source_of(data), output, ledger, cap_rho, kept_with=NOTE)

    def counted(
        self,
        other: Mapping[str, str],
        persons: PersonRule | None,
        checked: Fingerprint | None = None,
    ) -> Counts:
        """Exact counts of everything that the plan measures."""
        self._progress("Counting the records", 0.0)
        workload = self._plan.workload
        counts = self.charge.counted(
            workload.domain,
            [workload.places(position) for position in range(len(workload))],
            other=other,
            persons=persons,
            checked=checked,
            progress=lambda share: self._progress("Counting the records", BOOKED * share),
        )
        check_countable(self._plan, counts)
        return counts


def _followed(parts: Iterator[np.ndarray], plan: Plan, progress: Progress) -> Iterator[np.ndarray]:
    """The parts as they are, with word of how far they have come."""
    done, total = 0, int(np.sum(measured_cells(plan.closure)))
    for part in parts:
        progress("Measuring with noise", BOOKED + (DRAWN - BOOKED) * done / total)
        yield part
        done += part.size


def _write(
    folder: Path, plan: Plan, drawn: MeasurementNote, progress: Progress
) -> Mapping[str, object]:
    """Write tables, residuals and manifest from what was drawn; returns the manifest."""
    writer = FolderWriter(folder, plan, drawn.other, drawn.persons)
    cells = plan.workload.cells
    done, total = 0.0, float(np.sum(cells))
    files = []
    with ThreadPoolExecutor(1) as beside:
        residuals = beside.submit(writer.residuals)
        with closing(in_order(writer.table, range(len(cells)))) as written:
            for position, entries in enumerate(written):
                files += entries
                done += cells[position]
                if position % 16 == 0:
                    progress("Writing the tables", DRAWN + (1 - DRAWN) * done / total)
        files.append(residuals.result())
    return writer.finish(files)
