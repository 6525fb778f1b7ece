"""Measurements on disk while a release is under way: what comes after needs no records.

    plan.json            the plan, on disk before the run is booked
    run/booked.json      where the run is booked, on disk just before it is: without a run that
                         fits in that ledger, nothing was charged
    run/measured.int64   all that is measured in the plan's order, each number in 64 bits, the least
                         significant byte first; of a plan of tables every residual, row-major
    run/drawn.json       that all of it was drawn, for which run; written when the rest is on disk

A run that is booked can be run again at no further cost, and draws anew: nothing of what it had
drawn was published. From `drawn.json` on it can be finished without drawing noise again. The folder
`run` is no part of the finished release.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np

from rpexplore.common.files import names_to_disk
from rpexplore.errors import ReleaseError
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.release_plan import ReleasePlan
from rpexplore.releases.atomic_folder import write_to_disk
from rpexplore.releases.measurement import measured_cells, measured_shape

NOTE, BOOKED, PLAN = "run/drawn.json", "run/booked.json", "plan.json"
RUN_FOLDER = "run"

_MEASURED, _NOTE = "run/measured.int64", "run/drawn.new"
_BLOCK = 1 << 20  # bytes
_MOST_NOTED = 1 << 16  # bytes: names of attributes, values and paths

_TYPE = np.dtype("<i8")


@dataclass(frozen=True)
class MeasurementNote:
    """What finishing a run needs to know of it, beside its plan and its measurements.

    run             its name, which no other run has
    entry_id        its number in the ledger
    ledger          the ledger's file
    plan_sha256     of the plan that was measured
    unknown_values  attribute name -> category that took values not in the domain
    person_rule     how the records of a person were bounded, in words; "" if they were not
    sha256          of the measurements
    escape_formulas whether no text in CSV files begins as formulas of spreadsheets do
    """

    run: str
    entry_id: int
    ledger: str
    plan_sha256: str
    unknown_values: Mapping[str, str]
    person_rule: str
    sha256: str
    escape_formulas: bool


@dataclass(frozen=True)
class BookingNote:
    """Where a run is booked, for whoever finds it unfinished.

    ledger       the ledger's file
    plan_sha256  of the plan
    n_entries    how many entries the ledger had before
    """

    ledger: str
    plan_sha256: str
    n_entries: int


Note = MeasurementNote | BookingNote
NoteKind = TypeVar("NoteKind", MeasurementNote, BookingNote)

_FORMATS = {MeasurementNote: ("rpexplore-drawn", 1), BookingNote: ("rpexplore-booked", 1)}


def write_booking(folder: Path, note: BookingNote) -> None:
    """Note what is about to be booked; it is on disk afterwards."""
    write_to_disk(folder / BOOKED, _note_text(note))
    names_to_disk((folder / BOOKED).parent)
    names_to_disk(folder)


def read_booking(folder: Path) -> BookingNote | None:
    """What was about to be booked; None if there is no such note, or none that was finished."""
    return _note_in(folder / BOOKED, BookingNote)


def preallocate(folder: Path, plan: ReleasePlan, n_measured: int) -> None:
    """Write the plan, and take the room on disk for so many measurements and their note.

    So a full disk is noticed before a run is charged. Raises `OSError`.
    """
    write_to_disk(folder / PLAN, plan.text)
    (folder / RUN_FOLDER).mkdir(exist_ok=True)
    for name, size in ((_MEASURED, _TYPE.itemsize * n_measured), (_NOTE, _MOST_NOTED)):
        with (folder / name).open("wb") as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
                continue
            for start in range(0, size, _BLOCK):  # macOS: what is written takes room for sure
                file.write(bytes(min(_BLOCK, size - start)))


def write_measured(folder: Path, parts: Iterable[np.ndarray]) -> str:
    """Write the measurements, all of them in the plan's order; returns their SHA-256.

    They are on disk when this returns, in the room that was taken for them.
    """
    digest = hashlib.sha256()
    with (folder / _MEASURED).open("r+b") as file:
        for part in parts:
            numbers = np.ascontiguousarray(part, dtype=_TYPE).data.cast("B")
            digest.update(numbers)
            file.write(numbers)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()


def write_note(folder: Path, note: MeasurementNote) -> None:
    """Note that everything was drawn; it and all names in the folder are on disk afterwards."""
    draft = folder / _NOTE
    with draft.open("r+", encoding="utf-8") as file:
        file.write(_note_text(note))
        file.truncate()
        file.flush()
        os.fsync(file.fileno())
    draft.rename(folder / NOTE)
    names_to_disk(draft.parent)
    names_to_disk(folder)


def read_note(folder: Path) -> MeasurementNote:
    """What was noted; raises `ReleaseError` if it, or a measurement, is not as it was written."""
    note = _note_in(folder / NOTE, MeasurementNote)
    if note is None:
        raise ReleaseError(
            f"The run in {str(folder)!r} cannot be finished: its note {NOTE} cannot be read. "
            "What it was charged stays charged; remove the folder, and run the plan again."
        )
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


def _note_text(note: Note) -> str:
    name, version = _FORMATS[type(note)]
    return json.dumps({"format": name, "format_version": version, **asdict(note)})


def _note_in(path: Path, kind: type[NoteKind]) -> NoteKind | None:
    """The note in a file; None if there is none of this kind."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        stated = content.pop("format"), content.pop("format_version")
        return kind(**content) if stated == _FORMATS[kind] else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def read_measured(folder: Path, start: int, stop: int) -> np.ndarray:
    """The measurements from one position up to another: int64[stop − start].

    Several threads may read at a time.
    """
    path, offset = folder / _MEASURED, start * _TYPE.itemsize
    numbers = np.fromfile(path, dtype=_TYPE, count=stop - start, offset=offset)
    if len(numbers) < stop - start:
        raise ReleaseError(f"{_MEASURED} is shorter than its plan says.")
    return numbers.astype(np.int64, copy=False)


@dataclass(frozen=True, eq=False, repr=False)
class MeasuredFile:
    """The measured residuals in a folder; any can be read, by several threads at a time."""

    folder: Path
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
        parts = [read_measured(self.folder, start, stop) for start, stop in runs]
        numbers = parts[0] if len(parts) == 1 else np.concatenate(parts)
        shape = measured_shape(self.closure, int(residuals[0]))
        return numbers.reshape(len(residuals), *shape)

    @cached_property
    def starts(self) -> np.ndarray:
        """Where each residual begins in the list, and the end: int64[n_residuals + 1]."""
        return np.concatenate([[0], np.cumsum(measured_cells(self.closure))])
