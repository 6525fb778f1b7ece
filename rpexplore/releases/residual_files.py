"""What was measured for tables: its files, and the mean of what a pilot measured with the rest.

The files are one, or a folder of several, which programs read as one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from rpexplore.planning.mechanism.closure import Closure
from rpexplore.planning.pilot import pilot_weights
from rpexplore.planning.table_plan import TablePlan, n_pilot_residuals
from rpexplore.releases.manifest import CheckedFolder
from rpexplore.releases.measurement import measured_cells, measured_shape, ranges_of
from rpexplore.releases.measurement_file import Measured, MeasuredFile
from rpexplore.releases.table_cells import check_schema, not_what_was_written, refuse_gaps

_NAME = "residuals"
PILOT = "pilot.parquet"
_ROWS_PER_FILE = 100_000_000  # or those of one residual that has more; of the format
_COLUMNS = {"residual": pa.int32(), "cell": pa.int64(), "measured": pa.int64()}
_SCHEMA = pa.schema(list(_COLUMNS.items()))
_ROWS_AT_ONCE = 1 << 20
_ROWS_IN_GROUP = 1 << 14  # what is read, at least, to have one residual
_SMALL_STEPS = "DELTA_BINARY_PACKED"
_MANY_GROUPS = 64  # that are read in threads
_NOT_IN_ORDER = "each number must be in it once, in order"


def residual_files(closure: Closure) -> dict[str, range]:
    """The files of what was measured, and the residuals in each, which follow each other.

    One file, `residuals.parquet`, or where it would have more than 100 million rows several in the
    folder `residuals`.
    """
    ranges = ranges_of(measured_cells(closure), _ROWS_PER_FILE)
    if len(ranges) == 1:
        return {f"{_NAME}.parquet": ranges[0]}
    return {f"{_NAME}/{number:04d}.parquet": items for number, items in enumerate(ranges)}


def write_residuals(measurements: MeasuredFile, folder: Path, path: str, residuals: range) -> None:
    """Write one of the `residual_files` into the folder of a part."""
    starts = measurements.starts
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    first, last = starts[[residuals.start, residuals.stop]].tolist()
    options: dict[str, Any] = {
        "use_dictionary": ["residual"],
        "column_encoding": {"cell": _SMALL_STEPS},
        "write_statistics": ["residual"],
    }
    with pyarrow.parquet.ParquetWriter(folder / path, _SCHEMA, **options) as writer:
        for start in range(first, last, _ROWS_AT_ONCE):
            stop = min(start + _ROWS_AT_ONCE, last)
            within = np.diff(np.clip(starts, start, stop))
            residual = np.repeat(np.arange(len(within), dtype=np.int32), within)
            columns = [
                pa.array(residual),
                pa.array(np.arange(start, stop) - starts[residual]),
                pa.array(measurements.numbers.read(start, stop)),
            ]
            rows = pa.record_batch(columns, schema=_SCHEMA)
            writer.write_batch(rows, row_group_size=_ROWS_IN_GROUP)


@dataclass(frozen=True, eq=False)
class StoredResiduals:
    """What a finished release has measured, in whichever files.

    Any of it is read without the rest: where a residual begins follows from the plan.
    """

    folder: CheckedFolder
    closure: Closure
    file: str = ""  # the one that has them, if it is not those of `residual_files`

    def measured(self, residuals: Sequence[int]) -> dict[int, np.ndarray]:
        """What was measured of these residuals: int64, one axis an attribute.

        Raises `ReleaseError` for files that do not hold it once, in order.
        """
        measured = {}
        for path, within in self._files.items():
            if wanted := [residual for residual in residuals if residual in within]:
                measured |= self._in_file(path, wanted)
        return measured

    def rows(self, residual: int, rows: range) -> np.ndarray:
        """What was measured of a residual for some values of its first attribute: int64.

        One axis an attribute; of the total all there is.
        """
        shape = measured_shape(self.closure, residual)
        path = next(path for path, within in self._files.items() if residual in within)
        return self._in_file(path, [residual], rows if shape else None)[residual]

    @cached_property
    def _files(self) -> dict[str, range]:
        if self.file:
            return {self.file: range(n_pilot_residuals(self.closure))}
        return residual_files(self.closure)

    @cached_property
    def _starts(self) -> np.ndarray:
        """Where each residual begins in the list, and the end: int64[n_residuals + 1]."""
        return np.concatenate([[0], np.cumsum(measured_cells(self.closure))])

    @cached_property
    def _footers(self) -> dict[str, "tuple[pyarrow.parquet.FileMetaData, np.ndarray]"]:
        """Path -> the footer of the file; where its row groups begin, and the last one ends."""
        return {}

    def _footer(self, name: str) -> "tuple[pyarrow.parquet.FileMetaData, np.ndarray]":
        if name not in self._footers:
            path, within = self.folder / name, self._files[name]
            footer = pyarrow.parquet.read_metadata(path)
            check_schema(path, footer.schema.to_arrow_schema(), _COLUMNS)
            first, stop = self._starts[[within.start, within.stop]].tolist()
            if footer.num_rows != stop - first:
                raise not_what_was_written(path, _NOT_IN_ORDER)
            sizes = [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]
            self._footers[name] = footer, first + np.cumsum([0, *sizes])
        return self._footers[name]

    def _in_file(
        self, name: str, residuals: Sequence[int], rows: range | None = None
    ) -> dict[int, np.ndarray]:
        """What was measured of residuals in a file; of one perhaps only some `rows`."""
        path = self.folder / name
        firsts = self._starts[list(residuals)]
        stops = self._starts[[residual + 1 for residual in residuals]]
        shapes, first_cell = [measured_shape(self.closure, one) for one in residuals], 0
        if rows is not None:
            (shape,) = shapes
            first_cell, shapes = rows.start * prod(shape[1:]), [(len(rows), *shape[1:])]
            stops = firsts + rows.stop * prod(shape[1:])
            firsts = firsts + first_cell
        try:
            footer, begins = self._footer(name)
            of_first = np.searchsorted(begins, firsts, "right") - 1
            of_last = np.searchsorted(begins, stops - 1, "right")
            groups = np.unique(np.concatenate([*map(np.arange, of_first, of_last)]))
            with pa.OSFile(str(path)) as raw:
                file = pyarrow.parquet.ParquetFile(raw, metadata=footer)
                stored = file.read_row_groups(
                    groups.tolist(), columns=[*_COLUMNS], use_threads=len(groups) > _MANY_GROUPS
                )
        except (OSError, pa.ArrowException):
            raise not_what_was_written(path, "it cannot be read any more") from None
        refuse_gaps(path, stored, _COLUMNS)
        number, cell, measured = (stored[column].to_numpy() for column in _COLUMNS)
        # Where the first row of each group is among those that were read, and in the file.
        sizes = np.diff(begins)[groups]
        shifts = np.cumsum(sizes) - sizes - begins[groups]
        at = firsts + shifts[np.searchsorted(groups, of_first)]
        arrays = {}
        for residual, start, shape in zip(residuals, at.tolist(), shapes, strict=True):
            size = prod(shape)
            some = slice(start, start + size)
            in_order = np.array_equal(cell[some], np.arange(first_cell, first_cell + size))
            if not (in_order and np.all(number[some] == residual)):
                raise not_what_was_written(path, _NOT_IN_ORDER)
            arrays[residual] = measured[some].reshape(shape)
        return arrays


# ---- What a pilot measured, with what was measured after it.


@dataclass(frozen=True, eq=False, repr=False)
class PilotedFile(MeasuredFile):
    """The measured residuals of a plan with a pilot: of those measured twice the mean.

    numbers  those after the pilot; closure: as of all
    pilot    what the pilot measured
    weights  float64[n_residuals]: of the pilot's figures in the mean
    """

    pilot: MeasuredFile
    weights: np.ndarray

    def stacked(self, residuals: np.ndarray) -> np.ndarray:
        """The means of residuals of one shape, int64[m]: float64[m, …]; int64 without a pilot."""
        rest = super().stacked(residuals)
        if not self.weights[residuals[0]]:  # those of one shape all have one, or none
            return rest
        weights = self.weights[residuals].reshape(-1, *([1] * (rest.ndim - 1)))
        return together(self.pilot.stacked(residuals), rest, weights)


def measurements_of(plan: TablePlan, measured: Measured) -> MeasuredFile:
    """What was measured for a plan, with its pilot if it has one."""
    if not plan.has_pilot:
        return MeasuredFile(measured, plan.closure)
    pilot = MeasuredFile(measured, plan.closure)
    n_pilot = int(pilot.starts[n_pilot_residuals(plan.closure)])
    rest = replace(measured, start=measured.start + n_pilot)
    return PilotedFile(rest, plan.closure, pilot, pilot_weights(plan))


def together(pilot: np.ndarray, rest: np.ndarray, weights: float | np.ndarray) -> np.ndarray:
    """The mean of what was measured twice; weights: of the pilot's figures."""
    return rest + weights * (pilot - rest)
