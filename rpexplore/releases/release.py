"""Release: a plan and records in, noisy figures out; spends the budget once.

    check       plan, folder, disk, ledger, records: everything that can be refused is, for nothing
    count       the records, exactly, where they lie
    book        the run, in the ledger: it is charged from here on, once
    measure     counts with noise, on disk when all is drawn: nothing needs the records any more.
                What is larger than memory is counted and measured in parts
    write       what follows from the measurements
    enter       in the ledger, that this is the run's release; then it gets its name

`dry_run` ends before the booking. A run that is stopped while it measures can be run again at no
further cost; one that is stopped while it writes can be finished by `resume`, which draws nothing.
What is counted, measured and written of a part of a plan are its `PartSteps`.
"""

import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from rpexplore.common.numbers import Exact
from rpexplore.common.processes import Progress, no_progress, part_of_progress
from rpexplore.data.coding import with_all
from rpexplore.data.files.source import AnySource
from rpexplore.data.source import Fingerprint, PersonRule
from rpexplore.errors import ReleaseError
from rpexplore.planning.approval import Approval
from rpexplore.planning.part_plan import PartPlan
from rpexplore.planning.plan import Plan, load_plan
from rpexplore.releases.approvals import load_approvals
from rpexplore.releases.atomic_folder import (
    MANIFEST,
    not_written_but_drawn,
    resumed_folder,
    unfinished_folder,
)
from rpexplore.releases.booked_run import (
    enter_finished,
    is_entered_as_finished,
    ledger_of_run,
    noted_run,
    refuse_run_of_version_1,
    tidy,
)
from rpexplore.releases.charged_run import ChargedRun, draft_of, write_measured
from rpexplore.releases.finished_release import Release
from rpexplore.releases.ledger.account import GIVEN_UP
from rpexplore.releases.manifest import manifest_sha256
from rpexplore.releases.measurement_file import (
    NOTE,
    PLAN,
    RUN_FOLDER,
    MeasurementNote,
    drawn_entry_id,
    read_note,
    write_note,
)
from rpexplore.releases.pilot import release_pilot, run_name
from rpexplore.releases.release_steps import DryRun, PlanSteps, RunOptions, refuse_false_claims


def release(
    plan: Plan | PartPlan,
    data: AnySource,
    output: str | Path,
    *,
    name: str | None = None,
    ledger: str | Path | None = None,
    limit_rho: Exact | None = None,
    unknown_values: Mapping[str, str] | None = None,
    missing_values: Mapping[str, str] | None = None,
    person_rule: PersonRule | None = None,
    may_be_empty: bool = False,
    count_impossible: bool = False,
    escape_formulas: bool = False,
    parquet_only: bool = False,
    file_per_table: bool = False,
    expected_fingerprint: Fingerprint | None = None,
    approvals: Sequence[str | Path | Approval] = (),
    pilot_only: bool = False,
    on_progress: Progress = no_progress,
) -> Release:
    """Run a plan on records and write the release folder `output`, which must not exist yet.

    Everything that can be refused (plan, folder, records, budget limit) is refused before the run
    is booked; it is booked before any noise is drawn; a run that stops after that
    stays charged, and costs nothing further when it is run again into the same folder.

    Args:
        plan: What `rpexplore.plan` or `Plan.load` returns; or one part of a plan, by itself.
        data: A .csv or .parquet file, a folder of such, a table in memory (a DataFrame of pandas
            or polars, an Arrow table), or another `Source`, with the plan's attributes, and levels
            of areas, as columns; others are not read.
        name: What the ledger knows records in memory by: the same for every release of them.
        ledger: The ledger, as `Ledger` takes it; without it, the file in the data's folder. Records
            in memory need one.
        limit_rho: Budget limit of the dataset, a total ρ in the plan's privacy unit (in a panel for
            people with as many records in any periods); noted in the ledger if it has none yet,
            refused if it has another.
        unknown_values: Attribute name -> the category that takes values that are not in the
            domain; without it they are refused. "*" stands for all attributes that have this
            category and are not named.
        missing_values: The same for values that are missing.
        person_rule: How it is seen to that no person has more records than the plan protects;
            without it, that is taken for granted.
        may_be_empty: Whether a release without a single record is wanted; else it is refused.
        count_impossible: Whether records with combinations that the codebook states to be
            impossible are counted as they are; else they are refused. Manifest and README say so.
        escape_formulas: Whether an apostrophe stands in CSV files before texts that a spreadsheet
            would take for formulas.
        parquet_only: Whether to leave out CSV files, half of the time and two thirds
            of the disk.
        file_per_table: Whether each table has files of its own, however many tables there are.
            Else more than 100 tables of at most 2^20 cells are in one file, `tables.parquet`.
        expected_fingerprint: What a dry run has seen of the records: refused if they are no longer
            the same.
        approvals: Files of approvals of the plan, or what `approve` returns. Each must be right,
            whether or not the ledger demands any.
        pilot_only: Whether to draw and release nothing but the plan's pilot, into the folder
            `output` with "-pilot" behind its name. The whole run is booked; running the plan into
            `output` again draws the rest, costs nothing further, and draws nothing twice.
        on_progress: Told what is being done, and the share that is done. From the `booked_share`
            of the kind of plan on, a run that it stops by raising stays charged, and from its
            `drawn_share` on `resume` can finish it.

    Returns:
        The finished release; with `pilot_only` that of the pilot.

    Raises:
        PlanError: If the plan does not hold what it claims.
        ReleaseError: If it cannot be measured or written, or has no pilot to release alone.
        DataError: If the records cannot be counted, or have changed.
        LedgerError: If the run would go beyond the budget limit, or the ledger cannot be used.
        ApprovalError: If an approval is not right, or the ledger demands others.

    Example:
        >>> import tempfile, pandas, rpexplore as rp
        >>> tables = rp.Workload.all_up_to(rp.Domain.from_sizes({"sex": 2}), 1)
        >>> plan = rp.plan(tables, loss=rp.SumOfVariances(), budget=rp.Budget(rho="1/2"))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     records = f"{folder}/survey.csv"
        ...     pandas.DataFrame({"sex": [0, 1, 0]}).to_csv(records, index=False)
        ...     done = rp.release(plan, records, f"{folder}/out")
        ...     table = done.table("sex")
        >>> list(table.columns)
        ['sex', 'value', 'standard_error', 'lower_95', 'upper_95']
    """
    plan, output = Plan.of(plan), Path(output)
    options = RunOptions(
        name=name,
        unknown_values=with_all(plan.domain, unknown_values or {}),
        missing_values=with_all(plan.domain, missing_values or {}),
        person_rule=person_rule,
        ledger=ledger,
        limit_rho=limit_rho,
        may_be_empty=may_be_empty,
        count_impossible=count_impossible,
        escape_formulas=escape_formulas,
        parquet_only=parquet_only,
        file_per_table=file_per_table,
        expected_fingerprint=expected_fingerprint,
        approvals=load_approvals(approvals),
        universe=plan.universe,
        pilot_only=pilot_only,
    )
    on_progress("Checking the plan", 0.0)
    charged_run = ChargedRun(plan, data, output, options)
    charged_run.count(on_progress)
    steps = charged_run.steps
    done: Release | None = None
    with suppress(_PilotReleased), charged_run.folder() as folder:
        draft = draft_of(charged_run, plan, folder)
        on_progress("Booking the run in the ledger", steps.booked_share)
        entry_id = charged_run.book(folder)
        write_measured(charged_run, draft, folder, on_progress)
        note = MeasurementNote(
            run_name(folder),
            entry_id,
            charged_run.ledger.name,
            plan.sha256,
            dict(options.unknown_values),
            charged_run.origin["person_rule"],
            draft.sha256,
            escape_formulas,
            parquet_only,
            charged_run.counting_note,
            *charged_run.noted_approvals(),
            missing_values=dict(options.missing_values),
            count_impossible=options.count_impossible and bool(plan.domain.impossible),
            file_per_table=file_per_table,
            booked_sha256="" if plan.booked_sha256 == plan.sha256 else plan.booked_sha256,
            positions=dict(charged_run.positions),
            encoding=charged_run.encoding,
        )
        on_writing = part_of_progress(on_progress, steps.drawn_share, 1.0)
        if pilot_only:
            show = partial(charged_run.enter_pilot, folder)
            done = release_pilot(plan, folder, output, note, show, on_writing)
            raise _PilotReleased  # the folder stays unfinished, with what is drawn
        write_note(folder, note)
        done = Release(output, plan, steps.write(folder, note, on_writing))
    assert done is not None
    on_progress("Finished", 1.0)
    return replace(done, taken=charged_run.taken())


class _PilotReleased(Exception):
    """A run ends here for now: its pilot is released."""


def dry_run(
    plan: Plan | PartPlan,
    data: AnySource,
    output: str | Path,
    *,
    name: str | None = None,
    ledger: str | Path | None = None,
    limit_rho: Exact | None = None,
    unknown_values: Mapping[str, str] | None = None,
    missing_values: Mapping[str, str] | None = None,
    person_rule: PersonRule | None = None,
    may_be_empty: bool = False,
    count_impossible: bool = False,
    escape_formulas: bool = False,
    parquet_only: bool = False,
    file_per_table: bool = False,
    approvals: Sequence[str | Path | Approval] = (),
    pilot_only: bool = False,
    on_progress: Progress = no_progress,
) -> DryRun:
    """Do everything that `release` does up to the booking: check and count, spend nothing.

    Arguments and errors are those of `release`. The counts are thrown away.

    Example:
        >>> import tempfile, pandas, rpexplore as rp
        >>> tables = rp.Workload.all_up_to(rp.Domain.from_sizes({"sex": 2}), 1)
        >>> plan = rp.plan(tables, loss=rp.SumOfVariances(), budget=rp.Budget(rho="1/2"))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     records = f"{folder}/survey.csv"
        ...     pandas.DataFrame({"sex": [0, 1, 0]}).to_csv(records, index=False)
        ...     check = rp.dry_run(plan, records, f"{folder}/out")
        >>> check.findings[0]
        'The plan holds what it claims, and protects one record.'
    """
    plan = Plan.of(plan)
    options = RunOptions(
        name=name,
        unknown_values=with_all(plan.domain, unknown_values or {}),
        missing_values=with_all(plan.domain, missing_values or {}),
        person_rule=person_rule,
        ledger=ledger,
        limit_rho=limit_rho,
        may_be_empty=may_be_empty,
        count_impossible=count_impossible,
        escape_formulas=escape_formulas,
        parquet_only=parquet_only,
        file_per_table=file_per_table,
        approvals=load_approvals(approvals),
        universe=plan.universe,
        pilot_only=pilot_only,
    )
    on_progress("Checking the plan", 0.0)
    charged_run = ChargedRun(plan, data, Path(output), options)
    charged_run.count(on_progress)
    on_progress("Finished", 1.0)
    return DryRun(charged_run.findings(), charged_run.fingerprint, charged_run.taken())


def resume(
    output: str | Path,
    *,
    ledger: str | Path | None = None,
    on_progress: Progress = no_progress,
) -> Release:
    """Finish a run into `output` that was stopped after its noise had been drawn.

    Needs no records, draws nothing and costs nothing. Of a release that is complete, it removes
    what a run that was stopped in the end has left. ledger: where it lies now, if it was moved.

    Raises `ReleaseError` if there is no such run, if it has finished elsewhere, if its plan is not
    the one that it was booked with, or if its measurements are not those that were noted when they
    were drawn.

    Example:
        >>> import contextlib, tempfile, pandas, rpexplore as rp
        >>> tables = rp.Workload.all_up_to(rp.Domain.from_sizes({"sex": 2}), 1)
        >>> plan = rp.plan(tables, loss=rp.SumOfVariances(), budget=rp.Budget(rho="1/2"))
        >>> def stop(doing, share):
        ...     if doing == "Writing the release":
        ...         raise KeyboardInterrupt
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     records = f"{folder}/survey.csv"
        ...     pandas.DataFrame({"sex": [0, 1, 0]}).to_csv(records, index=False)
        ...     with contextlib.suppress(KeyboardInterrupt):
        ...         done = rp.release(plan, records, f"{folder}/out", on_progress=stop)
        ...     done = rp.resume(f"{folder}/out")
        >>> done.plan.contents
        '2 noisy tables'
    """
    output = Path(output)
    if (output / MANIFEST).is_file():  # it is complete: only tidying was stopped, if anything
        finished = Release.load(output)
        if not (output / NOTE).is_file():  # removed only when the ledger has that it finished
            shutil.rmtree(output / RUN_FOLDER, ignore_errors=True)
            return finished
        note = read_note(output, measured=False)
        book, entry = noted_run(ledger_of_run(note.ledger, ledger), note, output)
        if entry is None or entry.plan_sha256 != (note.booked_sha256 or note.plan_sha256):
            raise ReleaseError(
                f"The ledger {book.name!r} does not have the run of the release in "
                f"{str(output)!r}, which is complete; name the ledger that it was booked in "
                "(--ledger)."
            )
        # Versions that gave a release its name first noted it in the ledger afterwards.
        if entry.manifest_sha256 not in ("", manifest_sha256(output)):
            raise ReleaseError(
                f"The manifest of {str(output)!r} is not the one that the ledger "
                f"{book.name!r} holds for its run; use the original folder."
            )
        if entry.state != GIVEN_UP:  # of which no more is said
            book.finish(entry.id, manifest_sha256(output))
        tidy(output)
        return finished

    def finish(folder: Path) -> None:
        assert entry is not None
        enter_finished(book, entry.id, folder, output, steps.n_pilot)

    try:
        with resumed_folder(output, NOTE, finish) as folder:
            refuse_run_of_version_1(output)
            on_progress("Checking what was drawn", 0.0)
            note = read_note(folder)
            plan = load_plan(folder / PLAN)
            book, entry = noted_run(ledger_of_run(note.ledger, ledger), note, folder)
            booked = note.booked_sha256 or note.plan_sha256
            if (note.plan_sha256, booked) != (plan.sha256, plan.booked_sha256):
                raise ReleaseError(
                    f"The run into {str(output)!r} cannot be finished: the plan in "
                    f"{str(folder / PLAN)!r} is not the one that was booked; restore that file."
                )
            if entry is None or entry.plan_sha256 != booked:
                raise ReleaseError(
                    f"The run into {str(output)!r} cannot be finished: the ledger {book.name!r} "
                    "does not have it; name the ledger that it was booked in where it is now "
                    f"(--ledger). If that is lost for good, remove {str(folder)!r} and run the "
                    "plan again, which is charged as a further run."
                )
            steps = PlanSteps.of(plan)
            if is_entered_as_finished(book, entry, folder):
                manifest = Release.load_complete(folder).manifest
            else:
                refuse_false_claims(plan)
                on_writing = part_of_progress(on_progress, steps.drawn_share, 1.0)
                manifest = steps.write(folder, note, on_writing)
    except OSError as error:
        raise not_written_but_drawn(output, error) from None
    tidy(output)
    on_progress("Finished", 1.0)
    return Release(output, plan, manifest)


def can_be_resumed(output: str | Path, entry_id: int | None = None) -> bool:
    """Whether there is a run into `output` that `resume` could finish.

    entry_id: its number in the ledger, if it is to be this run and no later one
    """
    output = Path(output)
    folder = output if output.exists() else unfinished_folder(output)
    return (folder / NOTE).is_file() and entry_id in (None, drawn_entry_id(folder))
