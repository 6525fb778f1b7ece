"""A run that is booked: found in the ledger from its unfinished folder, and noted as finished."""

import os
import shutil
from pathlib import Path

from rpexplore.common.text import text_of_path
from rpexplore.errors import LedgerError, ReleaseError
from rpexplore.planning.plan import LAST_OF_VERSION_1, is_plan_of_version_1
from rpexplore.releases.atomic_folder import clear_unfinished, unfinished_folder
from rpexplore.releases.ledger.account import LedgerEntry, ledger_ids
from rpexplore.releases.ledger.ledger import Ledger
from rpexplore.releases.ledger.overlaps import in_place_of
from rpexplore.releases.manifest import manifest_sha256
from rpexplore.releases.measurement_file import (
    BOOKED,
    PLAN,
    RUN_FOLDER,
    MeasurementNote,
    read_booking,
)
from rpexplore.releases.pilot import pilot_folder


def refuse_finished(ledger: Ledger, entry: LedgerEntry | None, folder: Path) -> None:
    """Raise `ReleaseError` for a run that has finished elsewhere, from a copy of its folder.

    Asked again before the release gets its name: meanwhile another machine may have drawn its own.
    """
    if entry is not None and entry.state == "finished":
        failed = ReleaseError(
            f"The run in {str(folder)!r} has finished elsewhere, as the ledger {ledger.name!r} "
            "holds, and one charge is for one release; remove this folder, and use that release."
        )
        failed.says_charge = True
        raise failed


def note_finished(ledger: Ledger, entry_id: int, output: Path) -> None:
    """Note in the ledger that a run's release is complete, and remove what only served the run.

    Raises `LedgerError`, which says that it is complete.
    """
    try:
        ledger.finish(entry_id, manifest_sha256(output))
    except LedgerError as error:
        failed = LedgerError(
            f"The release is complete at {str(output)!r} and charged; only the note that it "
            f"finished could not be made. {error}"
        )
        failed.says_charge = True
        raise failed from None
    clear_unfinished(pilot_folder(output), BOOKED)  # of a pilot that was killed as it was written
    shutil.rmtree(output / RUN_FOLDER, ignore_errors=True)


def noted_run(
    ledger: Ledger, note: MeasurementNote, output: Path
) -> tuple[Ledger, LedgerEntry | None]:
    """The ledger and the entry of a run whose noise is drawn; None if the ledger has none.

    In a ledger that others were merged into, the run can have another number than is noted.
    """
    ledger = in_place_of(ledger)
    entries = {entry.id: entry for account in ledger.accounts() for entry in account.entries}
    booked = note.booked_sha256 or note.plan_sha256
    if len(ledger_ids(ledger.store.read_events())) > 1:
        folder = text_of_path(os.path.realpath(output))
        for entry in reversed(entries.values()):
            if (entry.plan_sha256, entry.output) == (booked, folder):
                return ledger, entry
    return ledger, entries.get(note.entry_id)


def booked_run(output: Path, ledger: Ledger | None = None) -> LedgerEntry | None:
    """The run into this folder that was stopped after it was booked, if it is charged.

    ledger: the one in use, which may be the noted one, moved. Raises `LedgerError` if the ledger
    of the run cannot be read, or is gone.
    """
    note = read_booking(unfinished_folder(output))
    if note is None:
        return None
    book, n_before = Ledger(note.ledger), note.n_entries
    if book.path is not None and not book.path.exists():
        if ledger is None and note.n_entries:
            raise LedgerError(
                f"The ledger {book.name!r}, in which a run into {str(output)!r} may be booked, is "
                "gone; bring it back, or name it where it is now."
            )
        book = ledger or book
    if (merged := in_place_of(book)) != book:  # where it has another number
        book, n_before = merged, 0
    folder = text_of_path(os.path.realpath(output))
    stopped = [
        entry
        for account in book.accounts(settled=True)
        for entry in account.entries
        if entry.id > n_before
        and (entry.plan_sha256, entry.output) == (note.plan_sha256, folder)
        and entry.state == "started"
        and note.started in ("", entry.started)
    ]
    return stopped[-1] if stopped else None


def refuse_run_of_version_1(output: Path) -> None:
    """Raise `ReleaseError` if the unfinished run into this folder is of format version 1."""
    if is_plan_of_version_1(unfinished_folder(output) / PLAN):
        raise ReleaseError(
            f"The run into {str(output)!r} that was stopped is of format version 1, which "
            f"rpexplore {LAST_OF_VERSION_1} runs again or finishes at no further cost, and this "
            "library does not; use that version for it, or choose another folder."
        )
