"""The files of what was measured: one, or a folder of several, which programs read as one."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from rpexplore.planning.mechanism.closure import Closure
from rpexplore.releases.measurement import measured_cells, measured_shape, ranges_of
from rpexplore.releases.measurement_file import MeasuredFile
from rpexplore.releases.stored_columns import not_what_was_written, read_columns

_NAME = "residuals"
_ROWS_PER_FILE = 100_000_000  # or those of one residual that has more; of the format
_COLUMNS = {"residual": pa.int32(), "cell": pa.int64(), "measured": pa.int64()}
_SCHEMA = pa.schema(list(_COLUMNS.items()))
_ROWS_AT_ONCE = 1 << 20
_SMALL_STEPS = "DELTA_BINARY_PACKED"


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
            writer.write_batch(pa.record_batch(columns, schema=_SCHEMA))


@dataclass(frozen=True, eq=False)
class StoredResiduals:
    """What a finished release has measured, in whichever files."""

    folder: Path
    closure: Closure

    def measured(self, residuals: Sequence[int]) -> dict[int, np.ndarray]:
        """What was measured of these residuals: int64, one axis an attribute.

        Raises `ReleaseError` for files that do not hold it once, in order.
        """
        measured = {}
        for path, within in residual_files(self.closure).items():
            if wanted := [residual for residual in residuals if residual in within]:
                measured |= self._in_file(self.folder / path, wanted)
        return measured

    def _in_file(self, path: Path, residuals: Sequence[int]) -> dict[int, np.ndarray]:
        stored = read_columns(path, _COLUMNS, filters=[("residual", "in", set(residuals))])
        number, cell, measured = (stored[name].to_numpy() for name in _COLUMNS)
        arrays = {}
        for residual in residuals:
            shape = measured_shape(self.closure, residual)
            rows = number == residual
            if not np.array_equal(cell[rows], np.arange(np.prod(shape, dtype=np.int64))):
                raise not_what_was_written(path, "each number must be in it once, in order")
            arrays[residual] = measured[rows].reshape(shape)
        return arrays
