"""Records from files and folders of them, by pyarrow: the columns that are needed, in batches."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from rpexplore.data.coding import refuse_nested
from rpexplore.data.files.csv_batches import csv_batches, csv_header
from rpexplore.data.files.listing import RecordFile, record_files
from rpexplore.data.source import check_column
from rpexplore.errors import DataError

_BATCH_VALUES = 1 << 22  # of all columns together
_LEAST_ROWS, _MOST_ROWS = 1 << 12, 1 << 18  # of a batch


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Tell a file that cannot be read as a `DataError`."""
    try:
        yield
    except OSError as error:
        raise DataError(
            f"The records {str(path)!r} cannot be read ({error.strerror or 'input error'}); check "
            "the path and that the file is complete."
        ) from None
    except pa.ArrowException as error:
        # pyarrow quotes the offending row.
        raise DataError(
            f"The records {str(path)!r} cannot be read as {path.suffix or 'a table'}; check that "
            "the file is complete, in UTF-8, and has the same number of columns in every row.",
            private=f"The reader says: {error}",
        ) from None


def batches(path: Path, names: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, float]]:
    """Batches of the named columns, each with the share of all records' bytes read so far.

    path: a file, or a folder as `record_files` takes it. Texts come with their distinct values
    (as dictionaries). Every file is looked at for the columns before the first batch comes.

    Raises `DataError` for a column that a file does not have once.
    """
    files = record_files(path)
    headers = [columns_of(file) for file in files]
    for file, header in zip(files, headers, strict=True):
        _check_columns(file, header, names)
    total = max(sum(file.size for file in files), 1)
    before = 0
    for file, header in zip(files, headers, strict=True):
        with readable(file.path):
            for batch, share in _file_batches(file, header, names):
                yield batch, min((before + share * file.size) / total, 1.0)
        before += file.size


def columns_of(file: RecordFile) -> list[str]:
    """The names of a file's own columns; looks at no record."""
    with readable(file.path):
        if file.kind == "csv":
            return csv_header(file.path)[0]
        return pyarrow.parquet.read_schema(file.path).names


def _file_batches(
    file: RecordFile, header: list[str], names: Sequence[str]
) -> Iterator[tuple[pa.RecordBatch, float]]:
    own = [name for name in names if name not in file.keys]
    of_kind = csv_batches if file.kind == "csv" else _parquet_batches
    for batch, share in of_kind(file.path, header, own):
        columns = {
            name: _constant_column(file.keys[name], batch.num_rows)
            if name in file.keys
            else batch.column(name)
            for name in names
        }
        yield pa.record_batch(columns) if names else batch, share


def _parquet_batches(
    path: Path, _: list[str], names: list[str]
) -> Iterator[tuple[pa.RecordBatch, float]]:
    schema = pyarrow.parquet.read_schema(path)
    for name in names:
        refuse_nested(str(path), name, schema.field(name).type)
    rows = min(max(_BATCH_VALUES // max(len(names), 1), _LEAST_ROWS), _MOST_ROWS)
    with pyarrow.parquet.ParquetFile(path, read_dictionary=names) as file:
        done = 0
        for group in range(file.metadata.num_row_groups):
            for batch in file.iter_batches(rows, row_groups=[group], columns=names):
                done += batch.num_rows
                yield batch, done / file.metadata.num_rows


def _constant_column(value: str | None, n_records: int) -> pa.Array:
    """The column of a key: one value for all records."""
    indices = pa.array(np.zeros(n_records, dtype=np.int32), mask=np.full(n_records, value is None))
    return pa.DictionaryArray.from_arrays(indices, pa.array([value or ""], pa.string()))


def _check_columns(file: RecordFile, header: list[str], names: Sequence[str]) -> None:
    """Raise `DataError` unless each name stands once in the header and the keys."""
    more = {}
    if len(header) == 1 and any(mark in header[0] for mark in ";\t|"):
        more = {"remedy": "save the file with commas between the columns"}
    for name in names:
        if name in file.keys and name in header:
            more = {"remedy": f"leave it to one of the two, its columns or the folders {name}=…"}
        check_column(str(file.path), name, [*header, *file.keys], **more)
