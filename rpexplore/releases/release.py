"""Release: a plan and records in, noisy figures out; spends the budget once.

    check       plan, folder, disk, ledger, records: everything that can be refused is, for nothing
    count       the records, exactly, where they lie
    book        the run, in the ledger: it is charged from here on
    measure     counts with noise, on disk when all is drawn: nothing needs the records any more
    write       what follows from the measurements

`dry_run` ends before the booking. A run that is stopped while it writes can be finished by
`resume`, which draws nothing. All this is the same for every kind of plan; what a kind counts,
measures and writes says its `PlanRun`.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import numpy as np

from rpexplore.common.concurrency import Progress, no_progress, part_of_progress
from rpexplore.common.exact_numbers import Exact
from rpexplore.data.counts import Counts
from rpexplore.data.files.source import AnySource, source_of
from rpexplore.data.source import COUNTING, Fingerprint, PersonRule, Source
from rpexplore.errors import PlanError, ReleaseError
from rpexplore.planning.plan import Plan
from rpexplore.planning.release_plan import ReleasePlan
from rpexplore.planning.verification import verify
from rpexplore.queries.plan import QueryPlan
from rpexplore.queries.plan_kinds import load_plan
from rpexplore.releases.atomic_folder import (
    check_new,
    check_room,
    resumed_folder,
    unfinished_folder,
)
from rpexplore.releases.charged_run import (
    ChargedRun,
    DryRun,
    RunOptions,
    how_to_finish,
    note_finished,
)
from rpexplore.releases.ledger import Ledger
from rpexplore.releases.manifest import checked_manifest
from rpexplore.releases.measurement_file import (
    NOTE,
    PLAN,
    MeasurementNote,
    preallocate,
    read_note,
    write_measured,
    write_note,
)
from rpexplore.releases.plan_run import FinishedRelease, PlanRun
from rpexplore.releases.query_release import QueryRun
from rpexplore.releases.table_release import TableRun

_RUNS: dict[type[ReleasePlan], Callable[..., PlanRun]] = {Plan: TableRun, QueryPlan: QueryRun}


def release(
    plan: ReleasePlan,
    data: AnySource,
    output: str | Path,
    *,
    name: str | None = None,
    ledger: str | Path | None = None,
    cap_rho: Exact | None = None,
    unknown_values: Mapping[str, str] | None = None,
    person_rule: PersonRule | None = None,
    expected_fingerprint: Fingerprint | None = None,
    on_progress: Progress = no_progress,
) -> FinishedRelease:
    """Run a plan on records and write the release folder `output`, which must not exist yet.

    Everything that can be refused (plan, folder, records, cap) is refused before the run is
    booked; it is booked before any noise is drawn; a run that stops after that stays charged.

    Args:
        plan: Of tables or of queries.
        data: A .csv or .parquet file, a folder of such, a table in memory (a DataFrame of pandas
            or polars, an Arrow table), or another `Source`, with the plan's attributes as columns;
            others are not read.
        name: What the ledger knows records in memory by: the same for every release of them.
        ledger: The ledger file; without it, the one in the data's folder. Records in memory need
            one.
        cap_rho: Cap on the dataset's total ρ, in the plan's privacy unit; noted in the ledger if
            it has none yet, refused if it has another.
        unknown_values: Attribute name -> the category that takes values that are not in the
            domain, and missing ones; without it they are refused.
        person_rule: How it is seen to that no person has more records than the plan protects;
            without it, that is taken for granted.
        expected_fingerprint: What a dry run has seen of the records: refused if they are no longer
            the same.
        on_progress: Told what is being done, and the share that is done. From the `booked_share`
            of the kind of plan on, a run that it stops by raising stays charged, and from its
            `drawn_share` on `resume` can finish it.

    Returns:
        The finished release: a `Release` of tables, or a `QueryRelease`.

    Raises:
        PlanError: If the plan does not hold what it claims.
        ReleaseError: If it cannot be measured or written.
        DataError: If the records cannot be counted, or have changed.
        LedgerError: If the run would go beyond the cap, or the ledger cannot be used.
    """
    options = RunOptions(unknown_values or {}, person_rule, ledger, cap_rho, expected_fingerprint)
    source = _source(plan, data, name, person_rule)
    preflight = _Preflight(plan, source, Path(output), options, on_progress)
    counts = preflight.count()
    run, charged_run = preflight.run, preflight.charged_run
    with charged_run.folder() as folder:
        preallocate(folder, plan, run.n_measured)
        on_progress("Booking the run in the ledger", run.booked_share)
        entry_id = charged_run.book()
        with closing(run.measure(counts)) as parts:
            sha256 = write_measured(folder, _with_progress(parts, run, on_progress))
        del counts, parts
        note = MeasurementNote(
            entry_id,
            str(charged_run.ledger.path),
            plan.sha256,
            dict(options.unknown_values),
            person_rule.text if person_rule else "",
            sha256,
        )
        write_note(folder, note)
        manifest = _write(run, folder, note, on_progress)
    on_progress("Finished", 1.0)
    return run.finished_release(Path(output), manifest)


def dry_run(
    plan: ReleasePlan,
    data: AnySource,
    output: str | Path,
    *,
    name: str | None = None,
    ledger: str | Path | None = None,
    cap_rho: Exact | None = None,
    unknown_values: Mapping[str, str] | None = None,
    person_rule: PersonRule | None = None,
    on_progress: Progress = no_progress,
) -> DryRun:
    """Do everything that `release` does up to the booking: check and count, spend nothing.

    Arguments and errors are those of `release`. The counts are thrown away.
    """
    options = RunOptions(unknown_values or {}, person_rule, ledger, cap_rho)
    source = _source(plan, data, name, person_rule)
    preflight = _Preflight(plan, source, Path(output), options, on_progress)
    preflight.count()
    on_progress("Finished", 1.0)
    return preflight.charged_run.dry_run(preflight.run.n_bytes)


def resume(
    output: str | Path,
    *,
    ledger: str | Path | None = None,
    on_progress: Progress = no_progress,
) -> FinishedRelease:
    """Finish a run into `output` that was stopped after its noise had been drawn.

    Needs no records, draws nothing and costs nothing. ledger: where it lies now, if it was moved.

    Raises `ReleaseError` if there is no such run, if its plan is not the one that it was booked
    with, or if its measurements are not those that were noted when they were drawn.
    """
    output = Path(output)
    if (output / NOTE).is_file():  # it was stopped after it got its name
        return _tidy(output, ledger)
    try:
        with resumed_folder(output, NOTE) as folder:
            on_progress("Checking what was drawn", 0.0)
            note = read_note(folder)
            plan = load_plan(folder / PLAN)
            book = Ledger(note.ledger if ledger is None else ledger)
            entry = book.entry(note.entry_id)
            is_known = entry is not None and entry.plan_sha256 == note.plan_sha256
            if not is_known or plan.sha256 != note.plan_sha256:
                raise ReleaseError(
                    f"The run into {str(output)!r} cannot be finished: its plan is not the one "
                    f"that was booked for it in the ledger {str(book.path)!r}; name the ledger "
                    "that it was booked in, or restore the plan."
                )
            refuse_broken(plan)
            run = run_of(plan)
            manifest = _write(run, folder, note, on_progress)
    except OSError as error:
        raise ReleaseError(
            f"The release could not be written to {str(output)!r} ({error.strerror or error}). "
            f"{how_to_finish(output)}"
        ) from None
    note_finished(book, note.entry_id, output)
    on_progress("Finished", 1.0)
    return run.finished_release(output, manifest)


def can_be_resumed(output: str | Path) -> bool:
    """Whether there is a run into `output` that `resume` could finish."""
    output = Path(output)
    folder = output if output.exists() else unfinished_folder(output)
    return (folder / NOTE).is_file()


def run_of(plan: ReleasePlan) -> PlanRun:
    """What a release by a plan counts, measures and writes."""
    return _RUNS[type(plan)](plan)


def refuse_broken(plan: ReleasePlan) -> None:
    """Raise `PlanError` for a plan that does not hold what it claims."""
    # Nothing of the guarantee depends on whether other strategies would be better.
    verification = verify(plan, strategies=False)
    if not verification.holds:
        broken = next(check for check in verification.checks if not check.holds)
        raise PlanError(
            f"The plan does not hold what it claims ({broken.name}: {broken.finding}); make it "
            "again."
        )


def _source(
    plan: ReleasePlan, data: AnySource, name: str | None, person_rule: PersonRule | None
) -> Source:
    """Where the records are; of a table in memory, the columns that the run looks at."""
    columns = [plan.domain.names[index] for index in plan.attribute_indices]
    if person_rule is not None:
        columns += [person_rule.column, *([person_rule.order] if person_rule.order else [])]
    return source_of(data, name=name, columns=columns)


class _Preflight:
    """A run up to its booking: what a release and a dry run have in common."""

    def __init__(
        self,
        plan: ReleasePlan,
        source: Source,
        output: Path,
        options: RunOptions,
        on_progress: Progress,
    ) -> None:
        on_progress("Checking the plan", 0.0)
        self._on_progress = on_progress
        self.run = run_of(plan)
        refuse_broken(plan)
        self.run.check_measurable()
        check_new(output, kept_with=NOTE)
        check_room(self.run.n_bytes, output)
        self.charged_run = ChargedRun(plan, source, output, options)

    def count(self) -> Counts:
        """Exact counts of everything that the plan measures."""
        self._on_progress(COUNTING, 0.0)
        counts = self.charged_run.count(
            self.run.tables, part_of_progress(self._on_progress, 0.0, self.run.booked_share)
        )
        self.run.check_countable(counts)
        return counts


def _with_progress(
    parts: Iterator[np.ndarray], run: PlanRun, on_progress: Progress
) -> Iterator[np.ndarray]:
    """The measured parts as they are; tells how far they have come."""
    n_done, n_measured = 0, run.n_measured
    for part in parts:
        share = (run.drawn_share - run.booked_share) * n_done / n_measured
        on_progress("Measuring with noise", run.booked_share + share)
        yield part
        n_done += part.size


def _write(
    run: PlanRun, folder: Path, note: MeasurementNote, on_progress: Progress
) -> Mapping[str, object]:
    """Write what follows from the measurements; returns the manifest."""

    def on_share(share: float) -> None:
        on_progress("Writing the release", run.drawn_share + (1 - run.drawn_share) * share)

    return run.write(folder, note, on_share)


def _tidy(output: Path, ledger: str | Path | None) -> FinishedRelease:
    """A complete release without what only served its run; the ledger notes that it finished."""
    run, note = run_of(load_plan(output / PLAN)), read_note(output)
    manifest = checked_manifest(output, run.release_format)
    book = Ledger(note.ledger if ledger is None else ledger)
    note_finished(book, note.entry_id, output)
    shutil.rmtree((output / NOTE).parent)
    return run.finished_release(output, manifest)
