"""A list of arrays in a Parquet file: one row a number, with its array's index and its own."""

from collections.abc import Iterable, Sequence
from math import prod
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from rpexplore.releases.stored_columns import check_schema, not_what_was_written, refuse_gaps

_ROWS_PER_GROUP = 1 << 20


def write_arrays(path: Path, column: str, arrays: Iterable[np.ndarray]) -> None:
    """Write the arrays, float64, row-major, one after another.

    Columns: residual (the array's index in the list), cell (the number's index in it), `column`.
    """
    schema = pa.schema([("residual", pa.int32()), ("cell", pa.int64()), (column, pa.float64())])
    waiting: list[pa.RecordBatch] = []
    rows = 0
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        for index, array in enumerate(arrays):
            columns = [
                pa.array(np.full(array.size, index, dtype=np.int32)),
                pa.array(np.arange(array.size)),
                pa.array(array.ravel()),
            ]
            waiting.append(pa.record_batch(columns, schema=schema))
            rows += array.size
            if rows >= _ROWS_PER_GROUP:
                writer.write_table(pa.Table.from_batches(waiting))
                waiting, rows = [], 0
        writer.write_table(pa.Table.from_batches(waiting, schema=schema))


def read_arrays(
    path: Path, column: str, shapes: Sequence[tuple[int, ...]], dtype: type[np.generic]
) -> list[np.ndarray]:
    """The arrays of a file, of these shapes; rows may stand in any order.

    Takes 9 bytes a number, and a batch. Raises `ReleaseError` for a file that does not hold every
    number of these arrays once.
    """
    starts = np.cumsum([0, *map(prod, shapes)])
    sizes = np.diff(starts)
    flat, seen = np.empty(starts[-1], dtype=dtype), np.zeros(starts[-1], dtype=bool)
    columns = {
        "residual": pa.int32(),
        "cell": pa.int64(),
        column: pa.from_numpy_dtype(dtype),
    }
    n_rows = 0
    try:
        # Not buffered beforehand: that would be the whole file, in memory beside the arrays.
        with pyarrow.parquet.ParquetFile(path, pre_buffer=False) as file:
            check_schema(path, file.schema_arrow, columns)
            for batch in file.iter_batches(columns=list(columns)):
                refuse_gaps(path, batch, columns)
                array, cell = (batch[name].to_numpy() for name in ("residual", "cell"))
                known = (array >= 0) & (array < len(sizes)) & (cell >= 0)
                if not np.all(known) or np.any(cell >= sizes[array]):
                    raise not_what_was_written(path, "it has a number of a cell that is not there")
                where = starts[array] + cell
                flat[where], seen[where] = batch[column].to_numpy(), True
                n_rows += len(batch)
    except (OSError, pa.ArrowException):
        raise not_what_was_written(path, "it cannot be read any more") from None
    if n_rows != len(flat) or not np.all(seen):
        raise not_what_was_written(path, "each number must be in it once")
    ends = zip(starts[:-1].tolist(), starts[1:].tolist(), shapes, strict=True)
    return [flat[start:stop].reshape(shape) for start, stop, shape in ends]
