"""Measurements on disk while a release is under way: what comes after needs no records.

    plan.json            the plan, on disk before the run is booked
    run/booked.json      where the run is booked, on disk just before it is: without a run that
                         fits in that ledger, nothing was charged
    run/measured.int64   all that is measured in the plan's order, a part after another, each number
                         in 64 bits, the least significant byte first; of tables every residual,
                         row-major
    run/draft.json       how many of these are drawn and on disk, part by part, and what they were
                         drawn of; with a checksum
    run/drawn.json       that all of it was drawn, for which run; written when the rest is on disk

A run that is booked can be run again at no further cost. Parts that it had drawn of the same
records are kept, and are never drawn a second time; what stands behind them is half a part, of
which nothing was read or published, and is destroyed before noise is drawn for it anew. So every
number of a release has the noise of one draw, and only that. From `drawn.json` on a run can be
finished without drawing noise again. The folder `run` is no part of the finished release.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from rpexplore.common.files import names_to_disk
from rpexplore.errors import ReleaseError
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.plan import Plan
from rpexplore.releases.atomic_folder import write_to_disk
from rpexplore.releases.measurement import measured_cells, measured_shape

NOTE, BOOKED, PLAN = "run/drawn.json", "run/booked.json", "plan.json"
RUN_FOLDER = "run"

_MEASURED, _NOTE = "run/measured.int64", "run/drawn.new"
_DRAFT, _DRAFT_NOTE = "run/draft.json", "run/draft.new"
_BLOCK = 1 << 20  # bytes
_MOST_NOTED = 1 << 16  # bytes: names of attributes, values and paths

_TYPE = np.dtype("<i8")


@dataclass(frozen=True)
class MeasurementNote:
    """What finishing a run needs to know of it, beside its plan and its measurements.

    run             its name, which no other run has
    entry_id        its number in the ledger
    ledger          the ledger's name: a path, or postgresql:NAME
    plan_sha256     of the plan that was measured
    booked_sha256   of the plan that was booked, if it is another: that of the pilot
    unknown_values  attribute name -> category that took values not in the domain
    person_rule     how the records of a person were bounded, in words; "" if they were not
    sha256          of the measurements
    escape_formulas whether no text in CSV files begins as formulas of spreadsheets do
    parquet_only    whether there are no CSV files
    streaming_note  that records left their server to be counted, and which weight of theirs was
                    not used, in words; "" if neither is so
    approvals       SHA-256 of the files of approvals, in their order
    n_demanded      how many approvals the ledger demanded when the run was booked
    missing_values  attribute name -> category that took missing values
    file_per_table  whether small tables have files of their own, however many they are
    count_impossible
                    whether records with impossible combinations were counted, if there were any
    positions       of records of fixed width the name of the `file` with the positions of their
                    columns, and its `sha256`; else empty
    encoding        of the records, if one was named; "" for none, or for UTF-8
    """

    run: str
    entry_id: int
    ledger: str
    plan_sha256: str
    unknown_values: Mapping[str, str]
    person_rule: str
    sha256: str
    escape_formulas: bool
    parquet_only: bool = False
    streaming_note: str = ""
    approvals: Sequence[str] = ()
    n_demanded: int = 0
    missing_values: Mapping[str, str] = field(default_factory=dict)
    count_impossible: bool = False
    file_per_table: bool = False
    booked_sha256: str = ""
    positions: Mapping[str, str] = field(default_factory=dict)
    encoding: str = ""


@dataclass(frozen=True)
class BookingNote:
    """Where a run is booked, for whoever finds it unfinished.

    ledger       the ledger's name: a path, or postgresql:NAME
    plan_sha256  of the plan
    n_entries    how many entries the ledger had before
    started      when the run is said to have started there, which tells it from one that another
                 machine books for a folder of the same name; "" in notes of earlier versions
    is_shown     whether the run's pilot may have been released, so that it is never drawn again
    """

    ledger: str
    plan_sha256: str
    n_entries: int
    started: str = ""
    is_shown: bool = False


@dataclass(frozen=True)
class DraftNote:
    """The measurements that are on disk while others are still to be drawn.

    origin      what they were drawn of: the run, by when it started, and the records as they were
                counted
    n_measured  how many there are
    sha256      of these
    """

    origin: Mapping[str, Any]
    n_measured: int
    sha256: str


Note = MeasurementNote | BookingNote | DraftNote
NoteKind = TypeVar("NoteKind", MeasurementNote, BookingNote, DraftNote)

_FORMATS = {
    MeasurementNote: ("rpexplore-drawn", 1),
    BookingNote: ("rpexplore-booked", 1),
    DraftNote: ("rpexplore-draft", 1),
}


def write_booking(folder: Path, note: BookingNote) -> None:
    """Note what is about to be booked; it is on disk afterwards, or not there at all.

    A note that a full disk cut off would keep the folder of a run that is not booked.
    """
    try:
        write_to_disk(folder / BOOKED, _note_text(note))
        names_to_disk(folder)
    except OSError:
        (folder / BOOKED).unlink(missing_ok=True)
        raise


def read_booking(folder: Path) -> BookingNote | None:
    """What was about to be booked; None if there is no such note, or none that was finished."""
    return _note_in(folder / BOOKED, BookingNote)


def note_shown(folder: Path) -> None:
    """Note that what a booked run has drawn is about to be released; on disk when this returns.

    In the note of the booking, without which the run would be charged anew.
    """
    note = read_booking(folder)
    if note is not None:
        new = folder / f"{BOOKED}.new"  # the old one stays until this is on disk
        write_to_disk(new, _note_text(replace(note, is_shown=True)))
        new.rename(folder / BOOKED)
        names_to_disk((folder / BOOKED).parent)


class Draft:
    """The measurements of a run as they are drawn, in the plan's order, a part after another.

    n_measured  how many are drawn and on disk
    """

    def __init__(
        self,
        folder: Path,
        plan: Plan,
        ends: Sequence[int],
        origin: Mapping[str, Any] | None,
        *,
        n_used: int | None = None,
    ) -> None:
        """Write the plan, and take the room on disk for all measurements and their note.

        So a full disk is noticed before a run is charged. Raises `OSError`.

        Args:
            ends: How many numbers there are at the end of each part.
            origin: What an earlier draft in this folder must have been drawn of to be kept; None
                if none may be. All else that it holds is destroyed unread.
            n_used: How many numbers are drawn when later draws begin to depend on earlier ones;
                None if none do. A draft that has come so far and cannot be kept is refused with
                `ReleaseError`: nothing is drawn again after it was used.
        """
        self._folder, self._digest, self.n_measured = folder, hashlib.sha256(), 0
        write_to_disk(folder / PLAN, plan.text)
        for name, content in plan.companions.items():
            write_to_disk(folder / name, content)
        (folder / RUN_FOLDER).mkdir(exist_ok=True)
        note = _note_in(folder / _DRAFT, DraftNote)
        if note is not None and _are_one(note.origin, origin) and note.n_measured in ends:
            self._keep(note)
        if not self.n_measured:
            if n_used is not None and self._was_used(n_used):
                failed = ReleaseError(
                    f"What the run in {str(folder)!r} drew is not as it was written, or is of "
                    "other records, and is not drawn again. That run stays charged: go on with it "
                    "when the records, their times of change and how they are read are as they "
                    "were, or run the plan into another folder, which is charged as a further run."
                )
                failed.says_charge = True
                raise failed
            (folder / _DRAFT).unlink(missing_ok=True)
        kept = _TYPE.itemsize * self.n_measured
        _take_room(folder / _MEASURED, _TYPE.itemsize * ends[-1], kept=kept)
        _take_room(folder / _NOTE, _MOST_NOTED)

    @property
    def sha256(self) -> str:
        """Of the measurements so far."""
        return self._digest.hexdigest()

    def _keep(self, note: DraftNote) -> None:
        """Go on from what is noted, if it is on disk as it was written."""
        with suppress(OSError), (self._folder / _MEASURED).open("rb") as file:
            digest, left = hashlib.sha256(), _TYPE.itemsize * note.n_measured
            while left and (read := file.read(min(left, _BLOCK))):
                digest.update(read)
                left -= len(read)
            if not left and digest.hexdigest() == note.sha256:
                self._digest, self.n_measured = digest, note.n_measured

    def _was_used(self, n_used: int) -> bool:
        """Whether so many numbers, or more, may have been drawn and used."""
        booking = read_booking(self._folder)
        if booking is not None and booking.is_shown:
            return True
        note = _note_in(self._folder / _DRAFT, DraftNote)
        if (self._folder / _DRAFT).exists() and (note is None or note.n_measured >= n_used):
            return True
        return self._has_more_than(n_used)

    def _has_more_than(self, n_numbers: int) -> bool:
        """Whether more numbers than these were written, whatever a note says, or none."""
        with suppress(OSError, ReleaseError):  # no file yet, or a shorter one
            return bool(Measured(self._folder).read(n_numbers, n_numbers + 1)[0])
        return False

    def add(self, pieces: Iterable[np.ndarray]) -> None:
        """Write the measurements that come next; they are on disk when this returns."""
        n_measured = self.n_measured
        with (self._folder / _MEASURED).open("r+b") as file:
            file.seek(_TYPE.itemsize * n_measured)
            for piece in pieces:
                numbers = np.ascontiguousarray(piece, dtype=_TYPE).data.cast("B")
                self._digest.update(numbers)
                file.write(numbers)
                n_measured += piece.size
            file.flush()
            os.fsync(file.fileno())
        self.n_measured = n_measured

    def note(self, origin: Mapping[str, Any]) -> None:
        """Note that what is drawn so far is to be kept; on disk when this returns."""
        write_note(self._folder, DraftNote(origin, self.n_measured, self.sha256))

    def end(self) -> None:
        """Give back the room behind what was drawn."""
        os.truncate(self._folder / _MEASURED, _TYPE.itemsize * self.n_measured)


def _are_one(noted: Mapping[str, Any], origin: Mapping[str, Any] | None) -> bool:
    """Whether measurements were drawn of what others are drawn of.

    Earlier versions noted the run's number, which is another one in a ledger that theirs was
    merged into; that the folder is of this run the note of its booking tells.
    """
    if origin is None or "entry_id" not in noted:
        return noted == origin
    without = (
        {k: v for k, v in one.items() if k not in ("entry_id", "started")}
        for one in (noted, origin)
    )
    return origin["started"] is not None and next(without) == next(without)


def write_numbers(folder: Path, numbers: np.ndarray) -> str:
    """Write measurements that are drawn, int64[n], for a folder of their own; their SHA-256."""
    (folder / RUN_FOLDER).mkdir()
    content = np.ascontiguousarray(numbers, dtype=_TYPE).tobytes()
    (folder / _MEASURED).write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def pilot_sha256(folder: Path, n_pilot: int) -> str:
    """SHA-256 of the measurements of a run's pilot, the first of all; "" without a pilot.

    Raises `ReleaseError` or `OSError` if they are not there.
    """
    return numbers_sha256([Measured(folder).read(0, n_pilot)]) if n_pilot else ""


def numbers_sha256(pieces: Iterable[np.ndarray]) -> str:
    """SHA-256 of measurements, one piece after another, in the form in which runs keep them."""
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(np.ascontiguousarray(piece, dtype=_TYPE).tobytes())
    return digest.hexdigest()


def _take_room(path: Path, size: int, *, kept: int = 0) -> None:
    """Take the room on disk for a file of so many bytes; all behind the first `kept` are new."""
    with path.open("r+b" if kept else "wb") as file:
        file.truncate(kept)
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
            return
        file.seek(kept)
        for start in range(kept, size, _BLOCK):  # macOS: what is written takes room for sure
            file.write(bytes(min(_BLOCK, size - start)))


def read_note(folder: Path, *, measured: bool = True) -> MeasurementNote:
    """What was noted; raises `ReleaseError` if it, or a measurement, is not as it was written.

    measured: whether measurements are used again, so that they have to be there
    """
    note = _note_in(folder / NOTE, MeasurementNote)
    if note is None:
        raise ReleaseError(
            f"The run in {str(folder)!r} cannot be finished: its note {NOTE} cannot be read. "
            "What it was charged stays charged; remove the folder, and run the plan again."
        )
    if not measured:
        return note
    with (folder / _MEASURED).open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != note.sha256:
            raise ReleaseError(
                f"The run in {str(folder)!r} cannot be finished: its measurements were changed "
                "since they were drawn. What it was charged stays charged; remove the folder, and "
                "run the plan again."
            )
    return note


def drawn_entry_id(folder: Path) -> int | None:
    """The number in the ledger of the run whose noise is drawn; None if no note can be read."""
    note = _note_in(folder / NOTE, MeasurementNote)
    return None if note is None else note.entry_id


def write_note(folder: Path, note: MeasurementNote | DraftNote) -> None:
    """Write a note in the room taken for it, then name it; it and its name are on disk then."""
    names = (_NOTE, NOTE) if isinstance(note, MeasurementNote) else (_DRAFT_NOTE, _DRAFT)
    new, name = (folder / name for name in names)
    with new.open("r+" if new.exists() else "w", encoding="utf-8") as file:
        file.write(_note_text(note))
        file.truncate()
        file.flush()
        os.fsync(file.fileno())
    new.rename(name)
    names_to_disk(new.parent)
    names_to_disk(folder)


def _note_text(note: Note) -> str:
    name, version = _FORMATS[type(note)]
    return json.dumps({"format": name, "format_version": version, **asdict(note)})


def _note_in(path: Path, kind: type[NoteKind]) -> NoteKind | None:
    """The note in a file; None if there is none of this kind."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        stated = content.pop("format"), content.pop("format_version")
        return kind(**content) if stated == _FORMATS[kind] else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


@dataclass(frozen=True)
class Measured:
    """The measurements of one part of a plan; several threads may read at a time.

    folder  of the run
    start   where those of the part begin among all
    """

    folder: Path
    start: int = 0

    def read(self, start: int, stop: int | None = None) -> np.ndarray:
        """Those from one position in the part up to another, or the end: int64[stop − start]."""
        offset = (self.start + start) * _TYPE.itemsize
        count = -1 if stop is None else stop - start
        numbers = np.fromfile(self.folder / _MEASURED, dtype=_TYPE, count=count, offset=offset)
        if len(numbers) < count:
            raise ReleaseError(f"{_MEASURED} is shorter than its plan says.")
        return numbers.astype(np.int64, copy=False)


@dataclass(frozen=True, eq=False, repr=False)
class MeasuredFile:
    """The measured residuals of a part; any can be read, by several threads at a time."""

    numbers: Measured
    closure: Closure

    def measured(self, residual: int) -> np.ndarray:
        """What was measured of one residual: int64, one axis an attribute."""
        return self.stacked(np.array([residual]))[0]

    def stacked(self, residuals: np.ndarray) -> np.ndarray:
        """What was measured of residuals of one shape, int64[m]: int64[m, …]."""
        starts, stops = self.starts[residuals], self.starts[residuals + 1]
        first = np.flatnonzero(np.append(True, starts[1:] != stops[:-1]))
        last = np.append(first[1:], len(residuals)) - 1
        runs = zip(starts[first].tolist(), stops[last].tolist(), strict=True)
        parts = [self.numbers.read(start, stop) for start, stop in runs]
        numbers = parts[0] if len(parts) == 1 else np.concatenate(parts)
        shape = measured_shape(self.closure, int(residuals[0]))
        return numbers.reshape(len(residuals), *shape)

    def rows(self, residual: int, rows: range) -> np.ndarray:
        """The same for some values of its first attribute; of the total: rows range(1)."""
        shape = measured_shape(self.closure, residual)[1:]
        start, of_value = int(self.starts[residual]), prod(shape)
        numbers = self.numbers.read(start + rows.start * of_value, start + rows.stop * of_value)
        return numbers.reshape([len(rows), *shape] if self.closure.attributes(residual) else [])

    @cached_property
    def starts(self) -> np.ndarray:
        """Where each residual begins in the list, and the end: int64[n_residuals + 1]."""
        return np.concatenate([[0], np.cumsum(measured_cells(self.closure))])
