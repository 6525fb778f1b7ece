"""Measured residuals on disk while a release is under way: what comes after needs no records.

    plan.json            the plan, on disk before the run is booked
    run/measured.int64   every residual's measurement in the plan's order, row-major, each number
                         in 64 bits, the least significant byte first
    run/drawn.json       that all of it was drawn, for which run; written when the rest is on disk

From `drawn.json` on a run that is stopped can be finished without drawing noise again. The folder
`run` is no part of the finished release.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from rpexplore.errors import ReleaseError
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.plan import Plan
from rpexplore.releases.measurement import measured_cells, measured_shape

NOTE, PLAN = "run/drawn.json", "plan.json"

_MEASURED, _NOTE = "run/measured.int64", "run/drawn.new"
_MOST_NOTED = 1 << 16  # bytes: names of attributes, values and paths

_FORMAT = "rpexplore-drawn", 1
_TYPE = np.dtype("<i8")


@dataclass(frozen=True)
class MeasurementNote:
    """What finishing a run needs to know of it, beside its plan and its measurements.

    run           its number in the ledger
    ledger        the ledger's file
    plan_sha256   of the plan that was measured
    other         attribute name -> category that took other values
    persons       how the records of a person were bounded, in words; "" if they were not
    sha256        of the measurements
    """

    run: int
    ledger: str
    plan_sha256: str
    other: Mapping[str, str]
    persons: str
    sha256: str


def reserve(folder: Path, plan: Plan) -> None:
    """Write the plan, and take the room on disk that the measurements and their note will need.

    So a full disk is noticed before a run is charged. Raises `OSError`.
    """
    with (folder / PLAN).open("w", encoding="utf-8", newline="\n") as file:
        file.write(plan.text)
        file.flush()
        os.fsync(file.fileno())
    (folder / NOTE).parent.mkdir()
    room = _TYPE.itemsize * int(np.sum(measured_cells(plan.closure)))
    for name, size in ((_MEASURED, room), (_NOTE, _MOST_NOTED)):
        with (folder / name).open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, size)


def write_measured(folder: Path, parts: Iterable[np.ndarray]) -> str:
    """Write the measurements, all residuals in the plan's order; returns their SHA-256.

    They are on disk when this returns, in the room that was reserved.
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


def write_note(folder: Path, drawn: MeasurementNote) -> None:
    """Note that everything was drawn; it and all names in the folder are on disk afterwards."""
    beside, note = folder / _NOTE, {"format": _FORMAT[0], "format_version": _FORMAT[1]}
    with beside.open("r+", encoding="utf-8") as file:
        json.dump({**note, **asdict(drawn)}, file)
        file.truncate()
        file.flush()
        os.fsync(file.fileno())
    beside.rename(folder / NOTE)
    for each in (beside.parent, folder):
        opened = os.open(each, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def read_note(folder: Path) -> MeasurementNote:
    """What was noted; raises `ReleaseError` if it, or a measurement, is not as it was written."""
    try:
        noted = json.loads((folder / NOTE).read_text(encoding="utf-8"))
        found = noted.pop("format"), noted.pop("format_version")
        drawn = MeasurementNote(**noted)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        found, drawn = None, None
    if drawn is None or found != _FORMAT:
        raise ReleaseError(
            f"The run in {str(folder)!r} cannot be finished: its note {NOTE} cannot be read. "
            "What it was charged stays charged; remove the folder, and run the plan again."
        )
    with (folder / _MEASURED).open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != drawn.sha256:
            raise ReleaseError(
                f"The run in {str(folder)!r} cannot be finished: its measurements were changed "
                "since they were drawn. What it was charged stays charged; remove the folder, and "
                "run the plan again."
            )
    return drawn


@dataclass(frozen=True, eq=False, repr=False)
class MeasuredFile:
    """The measurements in a folder; any of them can be read, by several threads at a time."""

    folder: Path
    closure: Closure

    def measured(self, residual: int) -> np.ndarray:
        """What was measured of one residual: int64, one axis an attribute."""
        start, stop = self.starts[residual : residual + 2].tolist()
        return self.numbers(start, stop).reshape(measured_shape(self.closure, residual))

    def numbers(self, start: int, stop: int) -> np.ndarray:
        """The numbers from one place up to another in the whole list: int64[stop − start]."""
        found = np.empty(stop - start, dtype=_TYPE)
        with (self.folder / _MEASURED).open("rb", buffering=0) as file:
            file.seek(start * _TYPE.itemsize)
            read, wanted = 0, found.data.cast("B")
            while read < len(wanted):
                got = file.readinto(wanted[read:])
                if not got:
                    raise ReleaseError(f"{_MEASURED} is shorter than its plan says.")
                read += got
        return found.astype(np.int64, copy=False)

    @cached_property
    def starts(self) -> np.ndarray:
        """Where each residual begins in the list, and the end: int64[n_residuals + 1]."""
        return np.concatenate([[0], np.cumsum(measured_cells(self.closure))])
