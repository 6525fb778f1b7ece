"""Columns in the Parquet files of a release, read only if they are what was written."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from rpexplore.errors import ReleaseError

Columns = Mapping[str, pa.DataType]

LARGEST_ESTIMATE = 1e200  # no sum of what is measured comes near it, however weighted
_LARGEST_MEASURED = 2**62  # docs/mathematics.md §7.4
_LARGEST_FLOAT = float(np.finfo(float).max)


def read_columns(
    path: Path,
    columns: Columns,
    n_rows: int | None = None,
    *,
    or_empty: Columns = MappingProxyType({}),
    largest: float = _LARGEST_FLOAT,
    **options: Any,
) -> pa.Table:
    """The table in a file, with all its columns.

    Raises `ReleaseError` for a file that cannot be read, and for one of these columns that is
    missing, doubled, of another type, or has cells that are empty or not of a usable size.

    Args:
        n_rows: How many rows there must be; any number if left out.
        or_empty: More columns, which may be empty from the first cell to the last.
        largest: The largest size of a number with decimals.
        options: For `pyarrow.parquet.read_table`.
    """
    try:
        check_schema(path, pyarrow.parquet.read_schema(path), {**columns, **or_empty})
        table = pyarrow.parquet.read_table(path, **options)
    except (OSError, pa.ArrowException):
        raise not_what_was_written(path, "it cannot be read any more") from None
    filled = {name: or_empty[name] for name in or_empty if table[name].null_count < len(table)}
    refuse_gaps(path, table, {**columns, **filled}, largest)
    if n_rows not in (None, len(table)):
        raise not_what_was_written(path, f"it must have {n_rows:,} rows, and has {len(table):,}")
    return table


def check_schema(path: Path, schema: pa.Schema, columns: Columns) -> None:
    """Raise `ReleaseError` unless a file has each of these columns once, and of its type."""
    for name, kind in columns.items():
        if (times := schema.names.count(name)) != 1:
            there = f"{times} of them are" if times else "it is not"
            raise not_what_was_written(path, f"it must have one column {name!r}, and {there} there")
        if schema.field(name).type != kind:
            stated = schema.field(name).type
            raise not_what_was_written(path, f"its column {name!r} must be {kind}, and is {stated}")


def refuse_gaps(
    path: Path,
    table: pa.Table | pa.RecordBatch,
    columns: Columns,
    largest: float = _LARGEST_FLOAT,
) -> None:
    """Raise `ReleaseError` for a cell in these columns that is empty, or no number it may hold."""
    for name, kind in columns.items():
        column, most = table[name], {pa.int64(): _LARGEST_MEASURED, pa.float64(): largest}.get(kind)
        is_usable = column.null_count == 0
        if is_usable and most is not None:
            numbers = np.asarray(column)  # whose least is NaN if one is
            is_usable = -most <= numbers.min(initial=0) <= numbers.max(initial=0) <= most
        if not is_usable:
            reason = f"its column {name!r} has cells without a usable number"
            raise not_what_was_written(path, reason)


def not_what_was_written(path: Path, reason: str) -> ReleaseError:
    """What to raise for a file of a release that holds something else."""
    return ReleaseError(
        f"The file {path.name!r} of {str(path.parent)!r} does not hold what its plan says: "
        f"{reason}; use the original folder."
    )
