"""The release of a pilot: the one-way tables that a run has measured so far, as their own release.

A run of a plan with a pilot draws the pilot first. Its figures can be published before the rest is
drawn: beside the folder of the run, `out`, lies then `out-pilot`, a release by the plan of the
pilot alone. The whole run is booked before; its unfinished folder keeps what was drawn, so that
running it again draws the rest and nothing twice.
"""

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from shlex import quote
from uuid import uuid4

from rpexplore.common.files import names_to_disk
from rpexplore.common.processes import Progress
from rpexplore.errors import ReleaseError
from rpexplore.planning.pilot import pilot_plan
from rpexplore.planning.plan import Plan, load_plan
from rpexplore.releases.atomic_folder import (
    MANIFEST,
    check_new,
    new_folder,
    unfinished_folder,
    write_to_disk,
)
from rpexplore.releases.finished_release import Release
from rpexplore.releases.ledger.account import LedgerEntry
from rpexplore.releases.measurement_file import (
    NOTE,
    PLAN,
    RUN_FOLDER,
    Measured,
    MeasurementNote,
    note_shown,
    numbers_sha256,
    pilot_sha256,
    read_booking,
    write_numbers,
)
from rpexplore.releases.release_steps import PlanSteps

_NAME, _REST = f"{RUN_FOLDER}/name", f"{RUN_FOLDER}/rest"
_SHA256_DIGITS = 64


def pilot_folder(output: Path) -> Path:
    """Where the pilot of a run into `output` is released."""
    return output.with_name(f"{output.name}-pilot")


def refuse_without_pilot(plan: Plan, output: Path) -> None:
    """Raise `ReleaseError` unless the pilot of a plan can be released by itself.

    One that this run has released already may be there.
    """
    tables = plan.part("tables")
    if tables is None or tables.pilot is None:
        raise ReleaseError(
            "The plan has no pilot, and so none can be released by itself; plan with --pilot 5%, "
            "or leave --pilot-only out."
        )
    if _within_universe(tables.alone, plan).universe != plan.universe:
        raise ReleaseError(
            "The pilot cannot be released by itself, as the condition that says which records are "
            "counted names values of attributes that only other parts of the plan have; leave "
            "--pilot-only out."
        )
    if begun := _rest_begun(unfinished_folder(output)):  # whose plan is not to be written over
        raise ReleaseError(
            f"The pilot of the run into {str(output)!r} is released, and its rest is being "
            f"measured by the plan with the SHA-256 {begun[:12]}…; go on with that one."
        )
    folder, name = pilot_folder(output), unfinished_folder(output) / _NAME
    is_there = folder.is_dir() and name.is_file()
    if not (is_there and Release.load(folder).manifest["run"] == name.read_text("utf-8")):
        check_new(folder)


def plan_behind_pilot(output: Path) -> Plan | None:
    """The plan by which a run goes on whose pilot is released: its own, or that of its rest.

    None if there is no such run, or all of it is drawn. Where a rest that does not state its pilot
    is not begun, it is the first plan, for the rest to be planned again. Raises `RpexploreError`
    for files that cannot be used.
    """
    run, folder = unfinished_folder(output), pilot_folder(output)
    # `os.path`: of a name that no file can have it says that there is none.
    if os.path.exists(run / NOTE) or not all(map(os.path.isfile, (run / PLAN, folder / MANIFEST))):
        return None
    plan = load_plan(run / PLAN)
    tables = Release.load(folder).plan.part("tables")
    if tables is None or tables.pilot_of != plan.booked_sha256:
        return None
    is_usable = plan is plan.booked or plan.part("tables").pilot_sha256 or _rest_begun(run)
    return plan if is_usable else plan.booked


def refuse_pilot_of_rest(plan: Plan, output: Path) -> None:
    """Raise `ReleaseError` for a plan that is measured behind its pilot by another one."""
    tables = plan.part("tables")
    if tables is not None and tables.then is not None:
        raise ReleaseError(
            "This plan measures its pilot, and the rest is planned from the pilot's figures: "
            "release the pilot alone (--pilot-only), have the rest planned by rpexplore forecast "
            f"{output} --rest FILE, and release FILE into {str(output)!r}, at no further cost."
        )


def refuse_rest_alone(plan: Plan, output: Path, *, is_booked: bool) -> None:
    """Raise `ReleaseError` for the plan of a rest that goes on with no run, or with another's.

    is_booked: whether a run of its first plan into this folder is booked, and not finished
    """
    tables = plan.part("tables")
    if tables is None or tables.first is None:
        return
    if not is_booked:
        raise ReleaseError(
            "This is the plan of a rest, and goes on with the run of its first plan (SHA-256 "
            f"{plan.booked_sha256[:12]}…), of which none into {str(output)!r} is under way; name "
            "the folder of that run, or release its pilot first (--pilot-only)."
        )
    _refuse_other_rest(plan, unfinished_folder(output))


def refuse_shown_otherwise(entry: LedgerEntry, output: Path, n_pilot: int) -> None:
    """Raise `ReleaseError` if a booked run would draw the pilot anew that its ledger has as shown.

    As it would where its unfinished folder is a copy from before the pilot was drawn.

    n_pilot: how many numbers the pilot measures
    """
    if not entry.pilot_sha256:
        return
    with suppress(OSError, ReleaseError):  # it has fewer numbers, or none
        if pilot_sha256(unfinished_folder(output), n_pilot) == entry.pilot_sha256:
            return
    failed = ReleaseError(
        f"The pilot of the run into {str(output)!r} is released, and its unfinished folder does "
        "not have what was drawn, which is not drawn again; bring the folder back as it was when "
        "the pilot was released, or run the plan into another folder, which is charged as a "
        "further run."
    )
    failed.says_charge = True
    raise failed


def refuse_rest_of_other_pilot(plan: Plan, entry: LedgerEntry, output: Path, n_pilot: int) -> None:
    """Raise `ReleaseError` for the plan of a rest that was made from another pilot's figures.

    The booked run's own pilot is as it was shown (`refuse_shown_otherwise`). Plans of earlier
    versions do not state theirs: what is begun by one goes on, and its README says so.

    n_pilot: how many numbers the pilot measures
    """
    if plan.booked_sha256 == plan.sha256:
        return
    run, stated = unfinished_folder(output), plan.part("tables").pilot_sha256
    if not stated and _rest_begun(run) == plan.sha256:
        return
    own = ""
    if entry.pilot_sha256 or (run / _NAME).is_file():  # which is written when the pilot is drawn
        with suppress(OSError, ReleaseError):
            own = pilot_sha256(run, n_pilot)
    if own and stated == own:
        return
    forecast = f"rpexplore forecast {quote(str(output))} --rest FILE"
    again = f"plan the rest again from this run's pilot: {forecast}"
    said = f"does not state which pilot's figures it was made from; {again}"
    if not own:
        said = (
            f"goes on with the run into {str(output)!r}, whose pilot is not released; release the "
            f"first plan with --pilot-only, then {again}"
        )
    elif stated:
        said = (
            f"was made from the figures of another pilot (SHA-256 {stated[:12]}…) than that of the "
            f"run into {str(output)!r} ({own[:12]}…); {again}"
        )
    failed = ReleaseError(
        f"This plan of a rest {said}. The run stays charged, and this costs nothing further."
    )
    failed.says_charge = True
    raise failed


def refuse_shown_elsewhere(output: Path) -> None:
    """Raise `ReleaseError` for the unfinished folder of a run with a released pilot, not of this.

    Which a new run would clear: it is paid for, and goes on where it was booked.
    """
    folder = unfinished_folder(output)
    note = read_booking(folder)
    if note is not None and note.is_shown:
        raise ReleaseError(
            f"The folder {str(folder)!r} is that of a run whose pilot is released, and which was "
            f"booked for another folder than {str(output)!r}, in another ledger, or has finished. "
            "To go on with it at no further cost, move it back to where it was, and name the "
            "ledger that it was booked in where it is now (--ledger); for a new run choose another "
            "folder, or remove this one."
        )


def note_rest(plan: Plan, run: Path, *, is_begun: bool) -> None:
    """Note in the unfinished folder which plan of a rest is measured, before anything of it is.

    What is drawn behind a pilot is then never of two plans.

    is_begun: whether some of it is drawn, so that the note must be there
    """
    if plan.booked_sha256 == plan.sha256:
        return
    _refuse_other_rest(plan, run, is_begun=is_begun)  # another process may have begun meanwhile
    if not _rest_begun(run):
        write_to_disk(run / _REST, plan.sha256)
        names_to_disk(run / RUN_FOLDER)


def _refuse_other_rest(plan: Plan, run: Path, *, is_begun: bool = False) -> None:
    begun = _rest_begun(run)
    if begun != plan.sha256 and (begun or is_begun):
        by = f"by another plan (SHA-256 {begun[:12]}…); go on with that one"
        if not begun:
            by = f"already, and the note by which plan ({_REST}) is gone; bring it back"
        failed = ReleaseError(
            f"The rest of the run in {str(run)!r} is being measured {by}. The run stays charged, "
            "and this costs nothing further."
        )
        failed.says_charge = True
        raise failed


def _rest_begun(run: Path) -> str:
    """SHA-256 of the plan of a rest of which something may be drawn; "" if nothing is."""
    with suppress(OSError):
        noted = (run / _REST).read_bytes().decode("ascii", "replace")
        return noted if len(noted) == _SHA256_DIGITS else ""  # cut off: nothing was drawn yet
    return ""


def _within_universe(own: Plan, plan: Plan) -> Plan:
    """A plan of the same records as another one."""
    return own if plan.universe is None else own.within(plan.universe.text)


def figures_sha256(release: Release) -> str:
    """`pilot_sha256` of the run whose pilot a release is; "" for any other release."""
    tables = release.plan.part("tables")
    if tables is None or not tables.pilot_of:
        return ""
    measured = release.part("tables").measured(range(len(tables.closure)))
    return numbers_sha256(measured[residual] for residual in range(len(tables.closure)))


def run_name(run: Path) -> str:
    """The name of a run, by its unfinished folder: that which its pilot was released by, or new.

    Pilot and whole release have one name, as they have measurements in common.
    """
    with suppress(OSError):
        return (run / _NAME).read_text("utf-8")
    return uuid4().hex


def release_pilot(
    plan: Plan,
    run: Path,
    output: Path,
    note: MeasurementNote,
    enter: Callable[[], None],
    on_progress: Progress,
) -> Release:
    """Write the release of a pilot that is drawn; one that is there already is left as it is.

    Args:
        plan: The whole plan.
        run: The unfinished folder of the run, which has the pilot's measurements.
        output: The folder of the run.
        note: Of the run; of its measurements nothing is taken.
        enter: Enters its figures in the ledger, or raises if others were shown; called before the
            release gets its name.

    Raises:
        ReleaseError: If it cannot be written.
    """
    folder = pilot_folder(output)
    if folder.is_dir():  # this run's, by `refuse_without_pilot`
        enter()
        return Release.load(folder)
    own = _within_universe(pilot_plan(plan.part("tables"), plan.sha256).alone, plan)
    steps = PlanSteps.of(own)
    numbers = Measured(run).read(0, steps.starts()[-1])
    write_to_disk(run / _NAME, note.run)
    note_shown(run)
    with new_folder(folder, confirm=lambda _: enter()) as unfinished:
        write_to_disk(unfinished / PLAN, own.text)
        sha256 = write_numbers(unfinished, numbers)
        own_note = replace(
            note,
            plan_sha256=own.sha256,
            sha256=sha256,
            approvals=(),  # they are of the whole plan, and go with its release
            n_demanded=0,
        )
        manifest = steps.write(unfinished, own_note, on_progress)
        shutil.rmtree(unfinished / RUN_FOLDER)
    return Release(folder, own, manifest)
