"""The records of a file or of a folder of files; what records can be given as."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from rpexplore.common.formatting import text_of_path
from rpexplore.data.batch_source import BatchSource
from rpexplore.data.files.batches import batches, columns_of, readable
from rpexplore.data.files.listing import record_files
from rpexplore.data.frames import Frame, FrameSource
from rpexplore.data.source import Fingerprint, Source, file_names
from rpexplore.errors import DataError


@dataclass(frozen=True)
class FileSource(BatchSource):
    """The records of a .csv or .parquet file, or of a folder as `record_files` takes it."""

    path: Path

    def __init__(self, path: str | Path) -> None:
        object.__setattr__(self, "path", Path(path))

    @property
    def name(self) -> str:
        return str(self.path)

    @property
    def home(self) -> Path | None:
        return self.path.resolve().parent

    def names(self, folder: Path) -> tuple[str, ...]:
        return file_names(folder, self.path.resolve())

    def fingerprint(self) -> Fingerprint:
        """Size and last change of all files, and a digest of their names, sizes and times.

        Raises `DataError` if there are none, or if a folder changes while it is looked at.
        """
        with self.readable():
            if not self.path.exists():
                raise DataError(f"There are no records at {str(self.path)!r}; check the path.")
            seen, again = self._files(), self._files()
        if seen != again:
            raise DataError(
                f"The records {str(self.path)!r} change while they are looked at; wait until they "
                "are complete."
            )
        _, sizes, times, _, _ = zip(*seen, strict=True)
        modified = datetime.fromtimestamp(max(times) / 1e9, UTC).isoformat(timespec="seconds")
        digest = hashlib.sha256(json.dumps(seen).encode()).hexdigest()
        return Fingerprint(sum(sizes), modified, digest)

    def _files(self) -> list[tuple[str, int, int, int, int]]:
        """Name, bytes, times of contents and of any change in nanoseconds, and inode
        of every file."""
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
            return (*columns_of(first), *first.keys)

    def batches(self, names: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, float]]:
        return batches(self.path, names)

    def readable(self) -> AbstractContextManager[None]:
        return readable(self.path)


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
