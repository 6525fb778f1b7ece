"""The records of a file or of a folder of files; what records can be given as."""

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from unicodedata import normalize

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from rpexplore.common.formatting import text_of_path
from rpexplore.data.batch_source import BatchSource
from rpexplore.data.coding import refuse_nested
from rpexplore.data.files.csv_batches import csv_batches, csv_header
from rpexplore.data.files.listing import RecordFile, record_files
from rpexplore.data.files.statistics_batches import statistics_batches, statistics_variables
from rpexplore.data.frames import Frame, FrameSource
from rpexplore.data.source import Fingerprint, Source, check_column, file_names
from rpexplore.errors import DataError

_BATCH_VALUES = 1 << 22  # of all columns together
_LEAST_ROWS, _MOST_ROWS = 1 << 12, 1 << 18  # of a batch


@dataclass(frozen=True)
class FileSource(BatchSource):
    """The records of a file, or of a folder of files of one kind, as `record_files` takes it.

    path: where they are, with all links followed when this is made: one that is led elsewhere later
    changes nothing, and an ending counts where it is that of the file itself
    """

    path: Path
    _given: str = field(compare=False)

    def __init__(self, path: str | Path) -> None:
        object.__setattr__(self, "_given", str(path))
        with suppress(ValueError):  # a NUL, with which there is nothing to be found
            path = os.path.realpath(path)
        object.__setattr__(self, "path", Path(path))

    @property
    def name(self) -> str:
        return self._given

    @property
    def home(self) -> Path | None:
        return self.path.parent

    def names(self, folder: Path | None) -> tuple[str, ...]:
        return file_names(folder, self.path)

    def fingerprint(self) -> Fingerprint:
        """Size and last change of all files, and a digest of their names, sizes and times.

        Raises `DataError` if there are none, or if a folder changes while it is looked at.
        """
        with self.readable():
            if not self.path.exists():
                raise DataError(f"There are no records at {self.name!r}; check the path.")
            seen, again = self._files(), self._files()
        if seen != again:
            raise DataError(
                f"The records {self.name!r} change while they are looked at; wait until they "
                "are complete."
            )
        _, sizes, times, _, _ = zip(*seen, strict=True)
        modified = datetime.fromtimestamp(max(times) / 1e9, UTC).isoformat(timespec="seconds")
        digest = hashlib.sha256(json.dumps(seen).encode()).hexdigest()
        return Fingerprint(sum(sizes), modified, digest)

    def _files(self) -> list[tuple[str, int, int, int, int]]:
        """Of every file: name, bytes, ns of the last change of contents, of any change, inode."""
        files = []
        for file in record_files(self.path):
            stat = file.path.stat()
            name = text_of_path(file.path.relative_to(self.path))
            # The time of a change cannot be set back as that of the contents can.
            files.append((name, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino))
        return files

    def columns(self) -> tuple[str, ...]:
        """Those of the first file, then the keys of the folders."""
        with self.readable():
            first = record_files(self.path)[0]
            return (*_in_one_form(_columns_of(first)), *first.keys)

    def batches(self, names: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, float]]:
        """Texts come with their distinct values, as dictionaries; shares are of all files' bytes.

        Every file is looked at for the columns before the first batch comes.
        """
        files = record_files(self.path)
        headers = [_columns_of(file) for file in files]
        for file, header in zip(files, headers, strict=True):
            _check_columns(file, header, names)
        total = max(sum(file.size for file in files), 1)
        before = 0
        for file, header in zip(files, headers, strict=True):
            with _readable(file.path):
                for batch, share in _file_batches(file, header, names):
                    yield batch, min((before + share * file.size) / total, 1.0)
            before += file.size

    def readable(self) -> AbstractContextManager[None]:
        return _readable(self.path)


AnySource = str | Path | Source | Frame


def source_of(
    data: AnySource, *, name: str | None = None, columns: Sequence[str] | None = None
) -> Source:
    """A source as it is; a path as the file or folder there; a frame by its name.

    name: what a ledger knows a frame by; columns: those of a frame that are used, None for all.
    Raises `DataError` for a frame without a name, a name of anything else, and other objects.
    """
    if isinstance(data, Frame):
        return FrameSource(data, name=name or "", columns=columns)
    if name is not None:
        raise DataError(
            f"A name is for records in memory alone, got {name!r} for other ones; leave it out."
        )
    if isinstance(data, (str, Path)):
        return FileSource(data)
    if not hasattr(data, "fingerprint"):
        raise DataError(
            "Records must be a path, a DataFrame (pandas, polars), an Arrow table or a source, got "
            f"a {type(data).__name__}; convert them, for instance by pyarrow.table(...)."
        )
    return data


@contextmanager
def _readable(path: Path) -> Iterator[None]:
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


def _columns_of(file: RecordFile) -> list[str]:
    with _readable(file.path):
        if file.kind == "csv":
            return csv_header(file.path)[0]
        if file.kind == "parquet":
            return pyarrow.parquet.read_schema(file.path).names
        return [variable.name for variable in statistics_variables(file.path)]


def _in_one_form(header: Sequence[str]) -> list[str]:
    return [normalize("NFC", name) for name in header]


def _file_batches(
    file: RecordFile, header: list[str], names: Sequence[str]
) -> Iterator[tuple[pa.RecordBatch, float]]:
    written = dict(zip(_in_one_form(header), header, strict=True))
    own = [written[name] for name in names if name not in file.keys]
    of_kind = {"csv": csv_batches, "parquet": _parquet_batches}.get(file.kind, statistics_batches)
    for batch, share in of_kind(file.path, header, own):
        columns = {
            name: _constant_column(file.keys[name], batch.num_rows)
            if name in file.keys
            else batch.column(written[name])
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
    more, header = {}, _in_one_form(header)
    if not header:
        raise DataError(
            f"The records {str(file.path)!r} are empty, or do not start with a header line; put "
            "the names of the columns there."
        )
    if len(header) == 1 and any(mark in header[0] for mark in ";\t|"):
        more = {"remedy": "save the file with commas between the columns"}
    for name in names:
        if name in file.keys and name in header:
            more = {"remedy": f"leave it to one of the two, its columns or the folders {name}=…"}
        check_column(str(file.path), name, [*header, *file.keys], **more)
