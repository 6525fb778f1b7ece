"""Parquet files of results: written here, and read here, with what each column is."""

import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet

from rpexplore.domain.result_schema import DISTINCT, Column, Schema, rows_of
from rpexplore.errors import ReleaseError
from rpexplore.releases.stored_columns import LARGEST_ESTIMATE, not_what_was_written, read_columns

if TYPE_CHECKING:
    import pandas as pd


def table_writer(path: Path, schema: pa.Schema) -> pyarrow.parquet.ParquetWriter:
    """A writer of rows with these columns, each of which has a role."""
    columns = Schema.of(schema).columns
    repeated: Any = [column.name for column in columns if column.role not in DISTINCT]
    # Least and largest labels, which nobody looks for, would take a third of the time.
    return pyarrow.parquet.ParquetWriter(
        path, schema, use_dictionary=repeated, write_statistics=False
    )


def write_rows(path: Path, pieces: Iterable[pa.Table]) -> int:
    """Write rows in pieces, at least one, and return how many they are."""
    writer, n_rows = None, 0
    try:
        for piece in pieces:
            if writer is None:
                writer = table_writer(path, piece.schema)
            writer.write_table(piece)
            n_rows += len(piece)
    finally:
        if writer is not None:
            writer.close()
    return n_rows


def parquet_of(frame: "pd.DataFrame") -> bytes:
    """A table of results as the bytes of a Parquet file, with what its columns are."""
    file = io.BytesIO()
    pyarrow.parquet.write_table(rows_of(frame), file)
    return file.getvalue()


def read_rows(path: Path, figures: Sequence[Column], n_rows: int | None = None) -> pa.Table:
    """The rows in a file of results, whose columns say what they are.

    Raises `ReleaseError` for a file that cannot be read, a column without a role, one of `figures`
    that is missing or has another role or type, and a number that is missing or not usable. Errors
    by a model may be left out, all of them.

    Args:
        figures: The columns that there must be, beside those of labels.
        n_rows: How many rows there must be; any number if left out.
    """
    numbers = [column for column in figures if column.is_number]
    kinds = {
        may_be_empty: {
            column.name: pa.float64() for column in numbers if _may_be_empty(column) is may_be_empty
        }
        for may_be_empty in (False, True)
    }
    rows = read_columns(path, kinds[False], n_rows, or_empty=kinds[True], largest=LARGEST_ESTIMATE)
    check_roles(path, rows.schema, figures)
    return rows


def _may_be_empty(column: Column) -> bool:
    return column.role in ("model_error", "target")


def check_roles(path: Path, schema: pa.Schema, figures: Sequence[Column]) -> None:
    """Raise `ReleaseError` unless all columns of a file have roles, and these the ones stated."""
    try:
        roles = {column.name: column.role for column in Schema.of(schema).columns}
    except ReleaseError:
        raise not_what_was_written(path, "not all of its columns say what they are") from None
    for column in figures:
        if roles.get(column.name) != column.role:
            reason = f"its column {column.name!r} must have the role {column.role!r}"
            raise not_what_was_written(path, reason)
