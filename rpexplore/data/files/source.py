"""The records of a file or of a folder of files; what records can be given as."""

import hashlib
import json
import os
import stat
from collections import defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from unicodedata import normalize

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet

from rpexplore.common.file_kinds import PACKAGES
from rpexplore.common.files import file_identity, machine_names
from rpexplore.common.text import text_of_path
from rpexplore.data.coding import Declared, refuse_nested
from rpexplore.data.counting import BatchSource
from rpexplore.data.files.csv_batches import csv_batches, csv_header, opened, other_separator
from rpexplore.data.files.statistics_batches import (
    declared_by,
    statistics_batches,
    statistics_variables,
)
from rpexplore.data.frames import Frame, FrameSource
from rpexplore.data.source import (
    Fingerprint,
    Source,
    check_column,
    file_names,
    names_with_parts,
)
from rpexplore.errors import DataError

# ---- Listing: the files that records lie in, one or a folder of them, looked at from outside.


_BEGINNING = 1 << 16  # bytes in which other records hardly ever agree

LEDGER = "rpexplore-ledger.sqlite"
"""The usual name of a ledger, which may lie among records."""

VERSION_LOGS = ("_delta_log", ".hoodie")
"""Folders that say which files beside them are records of a version."""

_ENDINGS = {
    **{".csv": "csv", ".csv.gz": "csv", ".parquet": "parquet", ".pq": "parquet"},
    **{f".{form}": form for form in PACKAGES},
}


@dataclass(frozen=True)
class RecordFile:
    """A file of records.

    path  where it is
    kind  "csv", "parquet" or the format of a statistics package, as in `PACKAGES`
    size  its bytes
    keys  columns that the names of the folders around it stand for, with the one value that all
          its records have; None for a missing one
    """

    path: Path
    kind: str
    size: int
    keys: dict[str, str | None] = field(default_factory=dict)


def record_files(path: Path) -> list[RecordFile]:
    """The files of records at this path, in the order of their names.

    path: a file, or a folder of files of one kind; there, folders named key=value (hive) add a
    column each, and names that begin with a dot or an underscore are passed over.

    Raises `DataError` for another kind of file, files of several kinds, two that differ in their
    endings alone, or folders that do not all have the same keys. Looks into no file; raises
    `OSError` for what is not there.
    """
    if not path.is_dir():
        kind = file_kind(path.name)
        if kind is None:
            raise DataError(
                "The records must be a .csv or .parquet file (.csv.gz if compressed), a file of "
                "SPSS, Stata or SAS, or a folder of these, "
                f"got {path.name!r}; export them as one of these."
            )
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # a pipe would be waited for, a device read for ever
            raise DataError(
                f"The records {str(path)!r} must be a file or a folder; save them as one."
            )
        return [RecordFile(path, kind, status.st_size)]
    files: list[RecordFile] = []
    stems: dict[Path, str] = {}
    for file in _paths_within(path):
        kind, inner = file_kind(file.name), str(file.relative_to(path))
        if kind is None:
            raise DataError(
                f"The folder {str(path)!r} holds {inner!r}, which is no .csv or .parquet file; "
                "move it elsewhere, or rename it with an underscore in front."
            )
        files.append(RecordFile(file, kind, file.stat().st_size, _hive_keys(file, path)))
        first = files[0]
        if kind != first.kind:
            raise DataError(
                f"The folder {str(path)!r} holds records of two kinds, such as "
                f"{str(first.path.relative_to(path))!r} and {inner!r}; leave those of one kind "
                "there."
            )
        if files[-1].keys.keys() != first.keys.keys():
            raise DataError(
                f"The files {str(first.path.relative_to(path))!r} and {inner!r} in {str(path)!r} "
                "lie in folders of different keys; give every file the same key=value folders "
                "around it."
            )
        end = next(end for end in _ENDINGS if file.name.lower().endswith(end))
        other = stems.setdefault(file.with_name(file.name[: -len(end)]), inner)
        if other != inner:
            raise _twice_error(path, other, inner)
    if not files:
        raise DataError(
            f"The folder {str(path)!r} holds no records; name one with .csv or .parquet files."
        )
    return files


def _twice_error(folder: Path, one: str, other: str) -> DataError:
    return DataError(
        f"The folder {str(folder)!r} seems to hold the same records twice, in {one!r} and "
        f"{other!r}; move one of them elsewhere. If they are other records, give them a name of "
        "their own, or join the two files."
    )


def _refuse_copies(folder: Path, files: Sequence[RecordFile]) -> None:
    """Raise `DataError` where two files hold the same bytes, compressed or not, and any record.

    Files below folders of different keys are other records. Those that begin alike are read whole.
    """

    def alike(files: Sequence[RecordFile], *, in_all: bool) -> list[list[RecordFile]]:
        """Those that have their keys and their beginning, or all, in common with another one."""
        groups: defaultdict[object, list[RecordFile]] = defaultdict(list)
        for file in files:
            with _readable(file.path), opened(file.path) as content:
                digest = hashlib.sha256(content.read(_BEGINNING))
                while in_all and (block := content.read(_BEGINNING)):
                    digest.update(block)
            groups[digest.digest(), *sorted(file.keys.items())].append(file)
        return [group for group in groups.values() if len(group) > 1]

    for begin_alike in alike(files, in_all=False):
        for one, other, *_ in alike(begin_alike, in_all=True):
            if _has_records(one):
                raise _twice_error(
                    folder, *(str(file.path.relative_to(folder)) for file in (one, other))
                )


def _has_records(file: RecordFile) -> bool:
    """Whether there are any; of a file of a statistics package this is taken for granted."""
    with _readable(file.path):
        if file.kind == "csv":
            return csv_header(file.path)[1]
        return file.kind != "parquet" or pyarrow.parquet.read_metadata(file.path).num_rows > 0


def _paths_within(folder: Path) -> list[Path]:
    """All files in a folder and those in it, by name; without hidden ones."""
    paths = []
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            _refuse_versions(entry.name, folder)
            # A folder _key=value holds records: the underscore is the key's.
            if entry.name.startswith((".", LEDGER)) or (
                entry.name.startswith("_") and "=" not in entry.name
            ):
                continue
            path = folder / entry.name
            if entry.is_dir(follow_symlinks=False):
                paths += _paths_within(path)
            elif entry.is_file(follow_symlinks=False):
                paths.append(path)
            else:
                raise DataError(
                    f"The folder {str(folder)!r} holds {entry.name!r}, which is neither a file nor "
                    "a folder of its own; put the records themselves there, or rename it with an "
                    "underscore in front."
                )
    return paths


def _refuse_versions(name: str, folder: Path) -> None:
    """Raise `DataError` where which files are records is written somewhere else."""
    if name in VERSION_LOGS:
        raise DataError(
            f"The folder {str(folder)!r} is a table of versions ({name}), in which files of "
            "deleted records may lie; export the records of one version as Parquet, or count the "
            "table with Spark."
        )
    hidden = name.startswith((".", "_")) and "=" not in name
    if hidden and name.lower().endswith(tuple(_ENDINGS)):
        raise DataError(
            f"The folder {str(folder)!r} holds {name!r}, of which it is not clear whether it is to "
            "be counted; give it a name that begins with a letter, or move it elsewhere."
        )


def file_kind(name: str) -> str | None:
    """The kind of a `RecordFile`, by the ending of a file's name; None for any other."""
    return next((kind for end, kind in _ENDINGS.items() if name.lower().endswith(end)), None)


def _hive_keys(path: Path, folder: Path) -> dict[str, str | None]:
    """The keys of the folders between the two, as pyarrow reads them: all as text."""
    inner = path.relative_to(folder)
    parts = [part for part in inner.parent.parts if "=" in part]
    names = [part.partition("=")[0] for part in parts]
    if len(set(names)) < len(names):
        raise DataError(
            f"The folders around {str(inner)!r} in {str(folder)!r} give one key twice; rename one "
            "of them."
        )
    schema = pa.schema([(name, pa.string()) for name in names])
    try:
        keys = ds.get_partition_keys(ds.HivePartitioning(schema).parse("/".join(parts) + "/"))
    except (pa.ArrowException, UnicodeEncodeError):
        raise DataError(
            f"The folders around {str(inner)!r} in {str(folder)!r} are not key=value in UTF-8; "
            "rename them."
        ) from None
    return {name: keys[name] for name in names}


# ---- The records of a file or of a folder of files; what records can be given as.


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
        """Of a folder also what each file of records, and each folder, in it is.

        Not their paths, which are seen to lie in it, and may tell values (key=value).
        """
        own = file_names(folder, self.path)
        if not self.path.is_dir():
            return own
        inside: dict[Path, None] = {}
        with suppress(DataError, OSError):  # a folder that cannot be counted
            for file in _paths_within(self.path):
                around = file.relative_to(self.path).parents
                inside |= dict.fromkeys(self.path / one for one in around if one.name)
                inside[file] = None
        machines = machine_names(self.path) if folder is None else ("",)
        parts: list[str] = []
        for path in inside:
            with suppress(OSError):  # it went meanwhile
                parts += [file_identity(path, machine) for machine in machines]
        return names_with_parts(own, parts)

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

    def declared_missing(self) -> Mapping[str, Declared]:
        """Of files of SPSS, Stata or SAS; what one file of a folder declares holds for all."""
        declared: dict[str, Declared] = {}
        with self.readable():
            for file in record_files(self.path):
                if file.kind not in PACKAGES:
                    continue
                for variable in statistics_variables(file.path):
                    if found := declared_by(variable, PACKAGES[file.kind]):
                        name = normalize("NFC", variable.name)
                        before = declared.get(name, Declared())
                        declared[name] = Declared(
                            before.ranges + found.ranges,
                            before.texts + found.texts,
                            found.are_days,
                        )
        return declared

    def columns(self) -> tuple[str, ...]:
        """Those of the first file, then the keys of the folders."""
        with self.readable():
            first = record_files(self.path)[0]
            return (*_in_one_form(_columns_of(first)), *first.keys)

    def batches(self, names: Sequence[str]) -> Generator[tuple[pa.RecordBatch, float], None, None]:
        """Texts come with their distinct values, as dictionaries; shares are of all files' bytes.

        Every file is looked at for the columns, and whether another one holds the same records,
        before the first batch comes.
        """
        files = record_files(self.path)
        headers = [_columns_of(file) for file in files]
        for file, header in zip(files, headers, strict=True):
            _check_columns(file, header, names)
        if len(files) > 1:
            _refuse_copies(self.path, files)
        total = max(sum(file.size for file in files), 1)
        before = 0
        for file, header in zip(files, headers, strict=True):
            with (
                _readable(file.path),
                closing(_file_batches(file, header, names)) as batches,
            ):
                for batch, share in batches:
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
) -> Generator[tuple[pa.RecordBatch, float], None, None]:
    written = dict(zip(_in_one_form(header), header, strict=True))
    own = [written[name] for name in names if name not in file.keys]
    of_kind = {"csv": csv_batches, "parquet": _parquet_batches}.get(file.kind, statistics_batches)
    with closing(of_kind(file.path, header, own)) as batches:
        for batch, share in batches:
            columns = {
                name: _constant_column(file.keys[name], batch.num_rows)
                if name in file.keys
                else batch.column(written[name])
                for name in names
            }
            yield pa.record_batch(columns) if names else batch, share


def _parquet_batches(
    path: Path, _: list[str], names: list[str]
) -> Generator[tuple[pa.RecordBatch, float], None, None]:
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
    if (separator := other_separator(header)) is not None:
        more = {"remedy": f"save the file with commas between the columns instead of {separator}"}
    for name in names:
        if name in file.keys and name in header:
            more = {"remedy": f"leave it to one of the two, its columns or the folders {name}=…"}
        check_column(str(file.path), name, [*header, *file.keys], **more)
