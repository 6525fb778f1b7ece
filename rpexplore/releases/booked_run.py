"""A run that is booked: found in the ledger from its unfinished folder, and noted as finished."""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from shlex import quote

from rpexplore.common.text import text_of_path
from rpexplore.errors import LedgerError, ReleaseError, RpexploreError
from rpexplore.planning.plan import LAST_OF_VERSION_1, is_plan_of_version_1, load_plan
from rpexplore.releases.atomic_folder import MANIFEST, clear_unfinished, unfinished_folder
from rpexplore.releases.ledger.account import GIVEN_UP, LedgerEntry, closed_into, given_up_text
from rpexplore.releases.ledger.chain import End, seen_names, shown_figures
from rpexplore.releases.ledger.events import Event, ledger_id, merged_digests
from rpexplore.releases.ledger.ledger import Ledger, OtherFiguresError
from rpexplore.releases.ledger.overlaps import in_place_of
from rpexplore.releases.manifest import manifest_sha256
from rpexplore.releases.measurement_file import (
    BOOKED,
    NOTE,
    PLAN,
    RUN_FOLDER,
    BookingNote,
    MeasurementNote,
    pilot_sha256,
    read_booking,
)
from rpexplore.releases.pilot import pilot_folder
from rpexplore.releases.release_steps import PlanSteps


def is_entered_as_finished(ledger: Ledger, entry: LedgerEntry, folder: Path) -> bool:
    """Whether the ledger has the release in an unfinished folder, which only lacks its name.

    Raises `ReleaseError` for a run that has finished elsewhere, from a copy of its folder, and
    `LedgerError` for one that may have.
    """
    _refuse_given_up(entry, ledger)
    if entry.state != "finished":
        return False
    if (folder / MANIFEST).is_file() and manifest_sha256(folder) == entry.manifest_sha256:
        return True
    failed = ReleaseError(
        f"The run in {str(folder)!r} has finished elsewhere, as the ledger {ledger.name!r} "
        "holds, or you remember; one charge is for one release: remove this folder, and use that "
        "release."
    )
    failed.says_charge = True
    raise failed


def _refuse_given_up(entry: LedgerEntry, ledger: Ledger) -> None:
    if entry.state == GIVEN_UP:
        failed = LedgerError(given_up_text(entry, ledger.name))
        failed.says_charge = True
        raise failed


def enter_finished(ledger: Ledger, entry_id: int, folder: Path, output: Path, n_pilot: int) -> None:
    """Enter in the ledger that the release in an unfinished folder is that of its run.

    From then on no copy of the folder, with other noise, can become one. Just before it gets its
    name: a run that is stopped between the two is given that later.

    Raises `ReleaseError` if the ledger has another release of the run, and `LedgerError`; both say
    what is charged.

    Args:
        folder: The unfinished one, all of which is on disk.
        output: Its name to be.
        n_pilot: How many numbers the run's pilot measures; 0 without one.
    """
    try:
        with removing_other_figures(folder):
            ledger.finish(entry_id, manifest_sha256(folder), pilot_sha256(folder, n_pilot))
    except LedgerError as error:
        failed = LedgerError(
            f"The release is charged and written, and gets its name {str(output)!r} once the "
            "ledger has noted that; when that can be written to, finish it without further cost "
            f"(rpexplore release --resume --out {quote(str(output))}). {error}"
        )
        failed.says_charge = True
        raise failed from None


@contextmanager
def removing_other_figures(folder: Path) -> Iterator[None]:
    """Have an unfinished folder removed, unread, if others of its run's figures were shown."""
    try:
        yield
    except OtherFiguresError as error:
        for note in (NOTE, BOOKED):  # with which it would be kept
            (folder / note).unlink(missing_ok=True)
        failed = ReleaseError(f"{error} What was drawn in {str(folder)!r} is removed.")
        failed.says_charge = True
        raise failed from None


def tidy(output: Path) -> None:
    """Remove what only served the run of a release that is complete."""
    clear_unfinished(pilot_folder(output), BOOKED)  # of a pilot that was killed as it was written
    shutil.rmtree(output / RUN_FOLDER, ignore_errors=True)


def ledger_of_run(noted: str, named: str | Path | None) -> Ledger:
    """The ledger in which a stopped run is finished: the noted one, or what that has become.

    Raises `LedgerError` if the named one is a copy of the noted one that has not gone on from it,
    or of one that went on further: in each of two copies the run could be finished.

    Args:
        noted: The name of the ledger that the run was booked in.
        named: Where it lies now, if it was moved, or another name of it.
    """
    own = Ledger(noted)
    ledger = in_place_of(own if named is None else Ledger(named))
    there: list[Event] = []
    with suppress(LedgerError):  # it cannot be reached by that name any more
        there = own.store.read_events()
    one_id = ledger_id(ledger.store.read_events())
    ends = seen_names(one_id)  # before entries are looked at: others may add some
    events = ledger.store.read_events()
    digests = [event.digest for event in events]
    before = [event.digest for event in there]
    if one_id and one_id == ledger_id(there) and closed_into(there) is None:
        # Of a file an equal one is a copy as well; a database has several names.
        is_copy = ledger != own and digests == before and own.path is not None
        if is_copy or digests[: len(before)] != before:
            raise LedgerError(
                f"The ledger {ledger.name!r} is a copy of {own.name!r}, in which the run was "
                "booked, and does not go on from where that ended; leave --ledger out, or bring "
                "that one back."
            )
    # Whatever lies where the noted one was: another may have been begun there since.
    if one_id:
        is_closed = closed_into(there) is not None  # nothing is finished in it any more
        others = {name: end for name, end in ends.items() if not is_closed or name != own.name}
        _refuse_left_behind(ledger, events, others)
    return ledger


def _refuse_left_behind(ledger: Ledger, events: Sequence[Event], ends: Mapping[str, End]) -> None:
    """Raise `LedgerError` for a ledger of which this user knows a copy that went on further.

    In each of the two a run could be finished. ends: `seen_names` of its identity
    """
    digests, merged = [event.digest for event in events], merged_digests(events)
    for name, end in ends.items():
        has_end = digests[end.number - 1 : end.number] == [end.digest] or end.digest in merged
        if not has_end:
            raise LedgerError(
                f"The ledger {ledger.name!r} is a copy of {name!r}, and does not go on from where "
                "that ended when you last added to it: a run could be finished in both. Bring that "
                "one back and leave --ledger out, name it where it is now, or merge the two."
            )


def noted_run(
    ledger: Ledger, note: MeasurementNote, folder: Path
) -> tuple[Ledger, LedgerEntry | None]:
    """The ledger and the entry of a run whose noise is drawn; None if the ledger has none.

    By when it was booked: in a ledger that others were merged into, it can have another number.

    folder: of the run; notes of earlier versions there do not tell that moment
    """
    ledger, booking = in_place_of(ledger), read_booking(folder)
    # Settled: what a lost connection may still enter would not be that which is written anew.
    accounts = ledger.accounts(settled=True)
    booked = [entry for account in accounts for entry in account.entries]
    entries = {entry.id: entry for entry in as_shown(booked)}
    if booking is None or not booking.started:
        return ledger, entries.get(note.entry_id)
    own = note.booked_sha256 or note.plan_sha256, booking.started
    found = [one for one in entries.values() if (one.plan_sha256, one.started) == own]
    found = _with_figures_of(folder, found)
    return ledger, found[-1] if found else None


def _with_figures_of(folder: Path, found: Sequence[LedgerEntry]) -> Sequence[LedgerEntry]:
    """Of entries of one run those that have the release, or the pilot, in its folder; else all.

    Two copies of a ledger, merged, can have two releases of it, or two pilots: see `merging`.
    """
    if len(found) < 2:
        return found
    own = []
    with suppress(OSError, RpexploreError):
        sha256 = manifest_sha256(folder)
        own = [one for one in found if one.manifest_sha256 == sha256]
    with suppress(OSError, RpexploreError):
        sha256 = pilot_sha256(folder, PlanSteps.of(load_plan(folder / PLAN)).n_pilot)
        own = own or [one for one in found if one.pilot_sha256 == sha256]
    return own or found


def as_shown(entries: Sequence[LedgerEntry]) -> Iterator[LedgerEntry]:
    """The entries of a ledger with what this user has shown of their runs and it does not tell.

    As it does not where it was brought back, or merged, as it was before.
    """
    told = {sha256 for one in entries for sha256 in (one.manifest_sha256, one.pilot_sha256)}
    for entry in entries:
        shown = shown_figures(entry.started, entry.plan_sha256)
        shown = {key: sha256 for key, sha256 in shown.items() if sha256 not in told}
        if entry.state == "started" and shown:
            state = "finished" if "manifest_sha256" in shown else entry.state
            entry = replace(entry, **shown, state=state)
        yield entry


def _is_known(note: BookingNote, entries: Sequence[LedgerEntry]) -> bool:
    """Whether a ledger has the run of a note, whatever became of it."""
    booked = note.plan_sha256, note.started
    return not note.started or any((one.plan_sha256, one.started) == booked for one in entries)


def booked_run(output: Path, ledger: Ledger | None = None) -> LedgerEntry | None:
    """The run into this folder that was stopped after it was booked, if it is charged.

    ledger: the one in use, which may be the noted one, moved. Raises `LedgerError` if the ledger
    of the run cannot be read, or is gone, and for a run that nobody may go on with.
    """
    note = read_booking(unfinished_folder(output))
    if note is None:
        return None
    book, n_before = Ledger(note.ledger), note.n_entries
    if book.path is not None and not book.path.exists():
        if ledger is None and note.n_entries:
            raise LedgerError(
                f"The ledger {book.name!r}, in which a run into {str(output)!r} may be booked, is "
                "gone; bring it back, or name it where it is now (--ledger)."
            )
        book = ledger or book
    if (merged := in_place_of(book)) != book:  # where it has another number
        book, n_before = merged, 0
    folder = text_of_path(os.path.realpath(output))
    entries = [entry for account in book.accounts(settled=True) for entry in account.entries]
    if ledger not in (None, book) and not _is_known(note, entries):
        # Where the ledger was, another one may have been begun since, which notes where it is.
        entries = [one for account in ledger.accounts(settled=True) for one in account.entries]
        n_before = 0  # others may have been merged into it
    stopped = [
        entry
        for entry in as_shown(entries)
        if entry.id > n_before
        and (entry.plan_sha256, entry.output) == (note.plan_sha256, folder)
        and entry.state != "finished"
        and note.started in ("", entry.started)
    ]
    stopped = _with_figures_of(unfinished_folder(output), stopped)
    if not stopped:
        return None
    _refuse_given_up(stopped[-1], ledger or book)
    return stopped[-1]


def refuse_run_of_version_1(output: Path) -> None:
    """Raise `ReleaseError` if the unfinished run into this folder is of format version 1."""
    if is_plan_of_version_1(unfinished_folder(output) / PLAN):
        raise ReleaseError(
            f"The run into {str(output)!r} that was stopped is of format version 1, which "
            f"rpexplore {LAST_OF_VERSION_1} runs again or finishes at no further cost, and this "
            "library does not; use that version for it, or choose another folder."
        )
