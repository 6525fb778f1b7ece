"""A list of arrays in a Parquet file: one row a number, with its array's index and its own."""

from collections.abc import Iterable, Iterator, Sequence
from math import prod
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from rpexplore.errors import ReleaseError
from rpexplore.releases.stored_columns import check_schema, not_what_was_written, refuse_gaps

_ROWS_AT_ONCE = 1 << 18


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
            if rows >= _ROWS_AT_ONCE:
                writer.write_table(pa.Table.from_batches(waiting))
                waiting, rows = [], 0
        writer.write_table(pa.Table.from_batches(waiting, schema=schema))


def read_arrays(
    path: Path,
    column: str,
    shapes: Sequence[tuple[int, ...]],
    dtype: type[np.generic],
    *,
    first: int = 0,
) -> Iterator[np.ndarray]:
    """The arrays of a file, of these shapes, one after another: all are never in memory at a time.

    first: the index of the first of them.
    Raises `ReleaseError` for a file that does not hold every number of these arrays once, in order.
    """
    sizes = np.array([prod(shape) for shape in shapes], int)
    parts = _read_numbers(path, column, sizes, dtype, first)
    rest = np.empty(0, dtype)
    for shape in shapes:
        array, filled = np.empty(prod(shape), dtype), 0
        while filled < array.size:
            rest = rest if len(rest) else next(parts)
            taken = rest[: array.size - filled]
            array[filled : filled + len(taken)] = taken
            filled, rest = filled + len(taken), rest[len(taken) :]
        yield array.reshape(shape)
    for _ in parts:  # which refuse what is too much
        pass


def _read_numbers(
    path: Path, column: str, sizes: np.ndarray, dtype: type[np.generic], first: int
) -> Iterator[np.ndarray]:
    """The numbers of all arrays, in parts, none of them empty."""
    starts = np.concatenate([[0], np.cumsum(sizes)])
    columns = {
        "residual": pa.int32(),
        "cell": pa.int64(),
        column: pa.from_numpy_dtype(dtype),
    }
    start = 0
    try:
        # Not buffered beforehand: that would be the whole file, in memory.
        with pyarrow.parquet.ParquetFile(path, pre_buffer=False) as file:
            check_schema(path, file.schema_arrow, columns)
            for batch in file.iter_batches(batch_size=_ROWS_AT_ONCE, columns=list(columns)):
                refuse_gaps(path, batch, columns)
                stop = start + len(batch)
                # Fewer than there are rows, if these are too many.
                residual = np.repeat(np.arange(len(sizes)), np.diff(np.clip(starts, start, stop)))
                cell = np.arange(start, start + len(residual)) - starts[residual]
                for name, indices in (("residual", residual + first), ("cell", cell)):
                    if not np.array_equal(batch[name].to_numpy(), indices):
                        raise _not_in_order(path)
                if len(batch):
                    yield batch[column].to_numpy()
                start = stop
    except (OSError, pa.ArrowException):
        raise not_what_was_written(path, "it cannot be read any more") from None
    if start != starts[-1]:
        raise _not_in_order(path)


def _not_in_order(path: Path) -> ReleaseError:
    return not_what_was_written(path, "each number must be in it once, in order")
