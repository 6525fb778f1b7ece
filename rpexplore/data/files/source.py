"""The records of a file or of a folder of files; what records can be given as."""

import hashlib
import json
import os
import stat
from collections import defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet

from rpexplore.common.file_kinds import PARQUET
from rpexplore.common.files import UTF8, file_identities, known_encoding, listed_path, machine_names
from rpexplore.common.statistics_files import PACKAGES, DictionaryVariable
from rpexplore.common.text import text_of_path, time_of_change
from rpexplore.data.arrow_values import as_stored, as_written, refuse_odd_kind, with_dictionary
from rpexplore.data.coding import Declared
from rpexplore.data.counting import BatchSource
from rpexplore.data.files.csv_batches import (
    FIXED_ENDINGS,
    TEXT_ENDINGS,
    CsvForm,
    csv_batches,
    csv_form,
    opened,
)
from rpexplore.data.files.fixed_batches import fixed_batches
from rpexplore.data.files.statistics_batches import (
    declared_by,
    encoding_remarks,
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
    without_values,
)
from rpexplore.domain.record_layout import RecordLayout
from rpexplore.errors import DataError, without_causes

# ---- Listing: the files that records lie in, one or a folder of them, looked at from outside.


_BEGINNING = 1 << 16  # bytes in which other records hardly ever agree

LEDGER = "rpexplore-ledger.sqlite"
"""The usual name of a ledger, which may lie among records."""

VERSION_LOGS = ("_delta_log", ".hoodie")
"""Folders that say which files beside them are records of a version."""

_ENDINGS = {
    **{f"{text}{packed}": "csv" for text in TEXT_ENDINGS for packed in ("", ".gz", ".zip")},
    **{f"{text}{packed}": "fixed" for text in FIXED_ENDINGS for packed in ("", ".gz", ".zip")},
    **{".parquet": "parquet", ".pq": "parquet"},
    **{f".{form}": form for form in PACKAGES},
}
# In folders these are other things: what a person has noted, what was packed.
_ONLY_IF_NAMED = (".txt", ".txt.gz", ".txt.zip", ".zip")


@dataclass(frozen=True)
class RecordFile:
    """A file of records.

    path  where it is
    kind  "csv", "fixed" (text of fixed width), "parquet" or the format of a statistics package, as
          in `PACKAGES`; with a layout a text of any ending is of fixed width
    size  its bytes
    name  by which errors call it: its path, within a folder of records without values of keys
    keys  columns that the names of the folders around it stand for, with the one value that all
          its records have; None for a missing one
    """

    path: Path
    kind: str
    size: int
    name: str
    keys: dict[str, str | None] = field(default_factory=dict)


def _error_about(message: str, *paths: Path) -> DataError:
    """An error whose message names these `without_values`; in full they are private."""
    in_full = ", ".join(repr(str(path)) for path in paths)
    has_values = any("=" in str(path) for path in paths)
    return DataError(message, private=f"In full: {in_full}." if has_values else "")


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
        if path.name.lower().endswith(_ONLY_IF_NAMED):
            kind = "csv"
        if kind is None:
            raise DataError(
                "The records must be a .csv or .parquet file (.tsv, .tab or .txt, .csv.gz or "
                ".csv.zip if compressed), one of fixed width (.dat, .asc), a file of SPSS, Stata "
                "or SAS, or a folder of these, "
                f"got {path.name!r}; export them as one of these."
            )
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # a pipe would be waited for, a device read for ever
            raise DataError(
                f"The records {str(path)!r} must be a file or a folder; save them as one."
            )
        return [RecordFile(path, kind, status.st_size, str(path))]
    files: list[RecordFile] = []
    stems: dict[Path, Path] = {}
    for file in _paths_within(path, path):
        kind, inner = file_kind(file.name), file.relative_to(path)
        shown = without_values(inner)
        if kind is None:
            raise _error_about(
                f"The folder {str(path)!r} holds {shown!r}, which is no .csv or .parquet file; "
                "move it elsewhere, or rename it with an underscore in front.",
                inner,
            )
        name, keys = str(path / shown), _hive_keys(inner, path)
        files.append(RecordFile(file, kind, file.stat().st_size, name, keys))
        first = files[0].path.relative_to(path)
        if kind != files[0].kind:
            raise _error_about(
                f"The folder {str(path)!r} holds records of two kinds, such as "
                f"{without_values(first)!r} and {shown!r}; leave those of one kind there.",
                first,
                inner,
            )
        if keys.keys() != files[0].keys.keys():
            raise _error_about(
                f"The files {without_values(first)!r} and {shown!r} in {str(path)!r} lie in "
                "folders of different keys; give every file the same key=value folders around it.",
                first,
                inner,
            )
        end = _ending(file.name)
        other = stems.setdefault(file.with_name(file.name[: -len(end)]), inner)
        if other != inner:
            raise _twice_error(path, other, inner)
    if not files:
        raise DataError(
            f"The folder {str(path)!r} holds no records; name one with .csv or .parquet files."
        )
    return files


def _twice_error(folder: Path, one: Path, other: Path) -> DataError:
    return _error_about(
        f"The folder {str(folder)!r} seems to hold the same records twice, in "
        f"{without_values(one)!r} and {without_values(other)!r}; move one of them elsewhere. If "
        "they are other records, give them a name of their own, or join the two files.",
        one,
        other,
    )


def _refuse_copies(folder: Path, files: Sequence[RecordFile]) -> None:
    """Raise `DataError` where two files hold the same bytes, compressed or not, and any record.

    Files below folders of different keys are other records. Those that begin alike are read whole.
    """

    def alike(files: Sequence[RecordFile], *, in_all: bool) -> list[list[RecordFile]]:
        """Those that have their keys and their beginning, or all, in common with another one."""
        groups: defaultdict[object, list[RecordFile]] = defaultdict(list)
        for file in files:
            with file_errors(file.path, file.name), opened(file.path) as content:
                digest = hashlib.sha256(content.read(_BEGINNING))
                while in_all and (block := content.read(_BEGINNING)):
                    digest.update(block)
            groups[digest.digest(), *sorted(file.keys.items())].append(file)
        return [group for group in groups.values() if len(group) > 1]

    for begin_alike in alike(files, in_all=False):
        for one, other, *_ in alike(begin_alike, in_all=True):
            if _has_records(one):
                raise _twice_error(
                    folder, one.path.relative_to(folder), other.path.relative_to(folder)
                )


def _has_records(file: RecordFile) -> bool:
    """Whether there are any; of a file of a statistics package this is taken for granted."""
    with file_errors(file.path, file.name):
        if file.kind == "csv":
            return csv_form(file.path, file.name).has_records
        if file.kind == "fixed":
            with opened(file.path) as content:
                return bool(content.read(1))
        return file.kind != "parquet" or pyarrow.parquet.read_metadata(file.path).num_rows > 0


def _paths_within(folder: Path, top: Path) -> list[Path]:
    """All files in a folder and those in it, by name; without hidden ones.

    top: the folder of records, within which values of keys are left out of errors
    """
    paths = []
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            _refuse_versions(entry.name, folder, top)
            # A folder _key=value holds records: the underscore is the key's.
            if entry.name.startswith((".", LEDGER)) or (
                entry.name.startswith("_") and "=" not in entry.name
            ):
                continue
            path = folder / entry.name
            if entry.is_dir(follow_symlinks=False):
                paths += _paths_within(path, top)
            elif entry.is_file(follow_symlinks=False):
                paths.append(path)
            else:
                inner = path.relative_to(top)
                raise _error_about(
                    f"The folder {str(top)!r} holds {without_values(inner)!r}, which is neither a "
                    "file nor a folder of its own; put the records themselves there, or rename it "
                    "with an underscore in front.",
                    inner,
                )
    return paths


def _refuse_versions(name: str, folder: Path, top: Path) -> None:
    """Raise `DataError` where which files are records is written somewhere else."""
    inner = folder.relative_to(top)
    if name in VERSION_LOGS:
        raise _error_about(
            f"The folder {str(top / without_values(inner))!r} is a table of versions ({name}), in "
            "which files of deleted records may lie; export the records of one version as Parquet, "
            "or count the table with Spark.",
            inner,
        )
    hidden = name.startswith((".", "_")) and "=" not in name
    if hidden and name.lower().endswith(tuple(_ENDINGS)):
        raise _error_about(
            f"The folder {str(top / without_values(inner))!r} holds {name!r}, of which it is not "
            "clear whether it is to be counted; give it a name that begins with a letter, or move "
            "it elsewhere.",
            inner,
        )


def file_kind(name: str) -> str | None:
    """The kind of a `RecordFile`, by the ending of a file's name; None for any other."""
    return _ENDINGS.get(_ending(name))


def _ending(name: str) -> str:
    """The ending by which a file is one of records, in small letters; "" for any other."""
    return next((end for end in _ENDINGS if name.lower().endswith(end)), "")


def _hive_keys(inner: Path, folder: Path) -> dict[str, str | None]:
    """The keys of the folders around a file in a folder, as pyarrow reads them: all as text.

    None where a folder has no value (`region=`), as for an empty field of a CSV file.
    """
    parts = [part for part in inner.parent.parts if "=" in part]
    names = [part.partition("=")[0] for part in parts]
    if len(set(names)) < len(names):
        raise _error_about(
            f"The folders around {without_values(inner)!r} in {str(folder)!r} give one key twice; "
            "rename one of them.",
            inner,
        )
    schema = pa.schema([(name, pa.string()) for name in names])
    try:
        keys = ds.get_partition_keys(ds.HivePartitioning(schema).parse("/".join(parts) + "/"))
    except (pa.ArrowException, UnicodeEncodeError):
        raise _error_about(
            f"The folders around {without_values(inner)!r} in {str(folder)!r} are not key=value in "
            "UTF-8; rename them.",
            inner,
        ) from None
    return {name: keys[name] or None for name in names}


# ---- The records of a file or of a folder of files; what records can be given as.


_BATCH_VALUES = 1 << 22  # of all columns together
_LEAST_ROWS, _MOST_ROWS = 1 << 12, 1 << 18  # of a batch


@dataclass(frozen=True)
class FileSource(BatchSource):
    """The records of a file, or of a folder of files of one kind, as `record_files` takes it.

    path: where they are, with all links followed when this is made: one that is led elsewhere later
    changes nothing, and an ending counts where it is that of the file itself
    encoding: of texts, as Python calls it ("windows-1252"); UTF-8 if left out, and UTF-16 where a
    byte order mark says so. Of SPSS, Stata and SAS the one that the file states if left out, or
    else UTF-8 where its texts are that, and windows-1252. Raises `DataError` for one that there is
    not.
    layout: where the columns are in the lines of text files, whatever their endings; they have no
    header then
    """

    path: Path
    encoding: str | None
    layout: RecordLayout | None
    _given: str = field(compare=False)

    def __init__(
        self, path: str | Path, encoding: str | None = None, layout: RecordLayout | None = None
    ) -> None:
        object.__setattr__(self, "_given", str(path))
        object.__setattr__(
            self, "encoding", None if encoding is None else known_encoding(encoding, DataError)
        )
        object.__setattr__(self, "layout", layout)
        with suppress(ValueError):  # a NUL, with which there is nothing to be found
            path = listed_path(path)
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
            for file in _paths_within(self.path, self.path):
                around = file.relative_to(self.path).parents
                inside |= dict.fromkeys(self.path / one for one in around if one.name)
                inside[file] = None
        machines = machine_names(self.path) if folder is None else ("",)
        parts: list[str] = []
        for path in inside:
            with suppress(OSError):  # it went meanwhile
                parts += [name for machine in machines for name in file_identities(path, machine)]
        return names_with_parts(own, parts)

    def fingerprint(self) -> Fingerprint:
        """Size and last change of all files, and digests of names, sizes, times and reading.

        Raises `DataError` if there are none, or if a folder changes while it is looked at.
        """
        with self.readable():
            seen, again = self._files(), self._files()
        if seen != again:
            raise DataError(
                f"The records {self.name!r} change while they are looked at; wait until they "
                "are complete."
            )
        _, sizes, times, _, _ = zip(*seen, strict=True)
        modified = time_of_change(max(times) / 1e9).isoformat(timespec="seconds")
        encoding, layout = self._reading
        detail, lasting = (
            hashlib.sha256(json.dumps([files, encoding, layout]).encode()).hexdigest()
            for files in (seen, [file[:3] for file in seen])
        )
        return Fingerprint(sum(sizes), modified, detail, lasting)

    @property
    def reading(self) -> str:
        return json.dumps(self._reading) if any(self._reading) else ""

    @property
    def _reading(self) -> tuple[str | None, dict[str, Any] | None]:
        """The encoding and the positions, and not what their file is called."""
        layout = None if self.layout is None else asdict(replace(self.layout, stated={}))
        return self.encoding, layout

    def _files(self) -> list[tuple[str, int, int, int, int]]:
        """Of every file: name, bytes, ns of the last change of contents, of any change, inode."""
        files = []
        for file in record_files(self.path):
            stat = file.path.stat()
            name = text_of_path(file.path.relative_to(self.path))
            # The time of a change cannot be set back as that of the contents can.
            files.append((name, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino))
        return files

    def remarks(self) -> tuple[str, ...]:
        """Of files of SPSS, Stata or SAS that state another encoding than is named, perhaps."""
        with self.readable():
            files = [file for file in record_files(self.path) if file.kind in PACKAGES]
            return encoding_remarks({file.name: file.path for file in files}, self.encoding)

    @property
    def needs_layout(self) -> bool:
        """Whether the records are of fixed width, by the endings of their files."""
        with self.readable():
            return record_files(self.path)[0].kind == "fixed"

    def declared_missing(self) -> Mapping[str, Declared]:
        """Of files of SPSS, Stata or SAS; what one file of a folder declares holds for all."""
        declared: dict[str, Declared] = {}
        with self.readable():
            for file in record_files(self.path):
                if file.kind not in PACKAGES:
                    continue
                for variable in _variables_of(file, self.encoding):
                    if found := declared_by(variable, PACKAGES[file.kind]):
                        name = normalize("NFC", variable.name)
                        before = declared.get(name, Declared())
                        declared[name] = Declared(
                            before.ranges + found.ranges,
                            before.texts + found.texts,
                            found.are_days,
                            min(before.exact_below, found.exact_below),
                        )
        return declared

    def columns(self, wanted: Sequence[str] = ()) -> tuple[str, ...]:
        """Those of the first file, then the keys of the folders."""
        with self.readable():
            first = record_files(self.path)[0]
            return (*_in_one_form(self._columns_of(first, wanted)[0]), *first.keys)

    @property
    def case_weight(self) -> str:
        if self.layout is not None:
            return self.layout.weight
        with self.readable():
            for file in record_files(self.path):
                if file.kind in PACKAGES:
                    for variable in _variables_of(file, self.encoding):
                        if variable.is_weight:
                            return normalize("NFC", variable.name)
        return ""

    @property
    def positions(self) -> Mapping[str, str]:
        return {} if self.layout is None else self.layout.stated

    @property
    def named_encoding(self) -> str:
        return "" if self.encoding in (None, UTF8) else self.encoding

    def has_decimal_commas(self, names: Sequence[str]) -> bool:
        with self.readable():
            forms = [self._columns_of(file, names)[1] for file in record_files(self.path)]
        found = {isinstance(form, CsvForm) and form.has_decimal_commas for form in forms}
        if len(found) > 1:
            raise DataError(
                f"Some files of {self.name!r} have columns between semicolons, tabs or bars, where "
                "a comma in a number is a decimal one, and others do not, so that nobody can say "
                "what 3,5 is; write all of them alike."
            )
        return found == {True}

    def batches(self, names: Sequence[str]) -> Generator[tuple[pa.RecordBatch, float], None, None]:
        """Texts come with their distinct values, as dictionaries; shares are of all files' bytes.

        Every file is looked at for the columns, and whether another one holds the same records,
        before the first batch comes.
        """
        files = record_files(self.path)
        forms = [self._columns_of(file, names) for file in files]
        for file, (header, _) in zip(files, forms, strict=True):
            with file_errors(file.path, file.name):
                _check_columns(file, header, names)
        if len(files) > 1:
            _refuse_copies(self.path, files)
        total = max(sum(file.size for file in files), 1)
        before = 0
        for file, (header, form) in zip(files, forms, strict=True):
            with (
                file_errors(file.path, file.name),
                closing(_file_batches(file, header, form, names, self.encoding)) as batches,
            ):
                for batch, share in batches:
                    yield batch, min((before + share * file.size) / total, 1.0)
            before += file.size

    def _columns_of(
        self, file: RecordFile, wanted: Sequence[str] = ()
    ) -> tuple[list[str], CsvForm | RecordLayout | None]:
        """The columns of a file, and how a text file is written; wanted: as of `csv_form`."""
        if file.kind not in ("csv", "fixed"):
            if self.layout is not None:
                raise DataError(
                    f"The records {file.name!r} name their columns themselves; leave the positions "
                    "(--positions) out."
                )
            return _columns_of(file, self.encoding)
        if self.layout is not None:
            return list(self.layout.names), self.layout
        if file.kind == "fixed":
            raise DataError(
                f"The records {file.name!r} are of fixed width by their ending, and where the "
                "columns are is in their DDI codebook: name it by --positions codebook.xml (in "
                "Python FileSource(path, layout=RecordLayout.load(…))). If they are CSV, end "
                "their name in .csv."
            )
        with file_errors(file.path, file.name):
            own = [name for name in wanted if name not in file.keys]
            form = csv_form(file.path, file.name, encoding=self.encoding, wanted=own)
            return form.columns, form

    @contextmanager
    def readable(self) -> Iterator[None]:
        with file_errors(self.path, str(self.path)):
            if not self.path.exists():
                raise DataError(f"There are no records at {self.name!r}; check the path.")
            yield


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


@without_causes
@contextmanager
def file_errors(path: Path, name: str) -> Iterator[None]:
    """Tell a file that cannot be read as a `DataError`, by this name; its path is private then."""
    in_full = "" if name == str(path) else f"In full: {str(path)!r}."
    try:
        yield
    except DataError as error:
        if not in_full:
            raise
        raise DataError(str(error), private=f"{error.private} {in_full}".lstrip()) from None
    except OSError as error:
        raise DataError(
            f"The records {name!r} cannot be read ({error.strerror or 'input error'}); check "
            "the path and that the file is complete.",
            private=in_full,
        ) from None
    except pa.ArrowException as error:
        if "straddl" in str(error):  # a record over more than two of the blocks that are read
            raise DataError(
                f"The records {name!r} hold a value of several megabytes, or a quotation mark that "
                "opens one and is not closed; close it, or leave such a column out of the file.",
                private=in_full,
            ) from None
        # pyarrow quotes the offending row.
        raise DataError(
            f"The records {name!r} cannot be read as {path.suffix or 'a table'}; check that "
            "the file is complete, in UTF-8 (or name its encoding: --encoding windows-1252), and "
            "has the same number of columns in every row.",
            private=f"The reader says: {error} {in_full}".rstrip(),
        ) from None


def _columns_of(file: RecordFile, encoding: str | None) -> tuple[list[str], None]:
    """The columns of a file that is no text."""
    with file_errors(file.path, file.name):
        if file.kind == "parquet":
            return pyarrow.parquet.read_schema(file.path).names, None
        return [variable.name for variable in _variables_of(file, encoding)], None


def _variables_of(file: RecordFile, encoding: str | None) -> Sequence[DictionaryVariable]:
    with file_errors(file.path, file.name):
        return statistics_variables(file.path, file.name, encoding)


def _in_one_form(header: Sequence[str]) -> list[str]:
    return [normalize("NFC", name) for name in header]


def _file_batches(
    file: RecordFile,
    header: list[str],
    form: CsvForm | RecordLayout | None,
    names: Sequence[str],
    encoding: str | None,
) -> Generator[tuple[pa.RecordBatch, float], None, None]:
    written = dict(zip(_in_one_form(header), header, strict=True))
    own = [written[name] for name in names if name not in file.keys]
    if isinstance(form, RecordLayout):
        read = fixed_batches(file.path, file.name, form, own, encoding=encoding)
    elif form is not None:
        read = csv_batches(file.path, file.name, form, own)
    elif file.kind == "parquet":
        read = _parquet_batches(file.path, file.name, own)
    else:
        read = statistics_batches(file.path, file.name, header, own, encoding)
    with closing(read) as batches:
        for batch, share in batches:
            columns = {
                name: _constant_column(file.keys[name], batch.num_rows)
                if name in file.keys
                else batch.column(written[name])
                for name in names
            }
            yield pa.record_batch(columns) if names else batch, share


def _parquet_batches(
    path: Path, name: str, names: list[str]
) -> Generator[tuple[pa.RecordBatch, float], None, None]:
    schema, about = pyarrow.parquet.read_schema(path), pyarrow.parquet.read_metadata(path)
    for column in names:
        refuse_odd_kind(name, column, as_written(schema.field(column), about.metadata))
    rows = min(max(_BATCH_VALUES // max(len(names), 1), _LEAST_ROWS), _MOST_ROWS)
    # Old times of 96 bits hold more years than nanoseconds do, as which they would be read.
    with pyarrow.parquet.ParquetFile(
        path, read_dictionary=with_dictionary(names, about), coerce_int96_timestamp_unit="us"
    ) as file:
        _refuse_joined(path, name, file.metadata)
        done = 0
        for group in range(file.metadata.num_row_groups):
            for batch in file.iter_batches(rows, row_groups=[group], columns=names):
                done += batch.num_rows
                if any(isinstance(column, pa.ExtensionArray) for column in batch.columns):
                    columns = [as_stored(column) for column in batch.columns]
                    batch = pa.record_batch(columns, names=batch.schema.names)
                yield batch, done / file.metadata.num_rows


def _refuse_joined(path: Path, name: str, about: pyarrow.parquet.FileMetaData) -> None:
    """Raise `DataError` for Parquet files written one behind the other.

    The last one's directory is read alone, and leads into the first one's records. Whatever was put
    in front of a file makes room between its data and its directory, where indexes lie
    otherwise, so that the files meet in that many bytes at the beginning.
    """
    groups = [about.row_group(number) for number in range(about.num_row_groups)]
    data_end = len(PARQUET)
    if groups:  # the last one, almost always; were it another one, more is searched
        for column in map(groups[-1].column, range(groups[-1].num_columns)):
            starts = (column.data_page_offset, column.dictionary_page_offset)
            start = min((one for one in starts if one), default=0)
            data_end = max(data_end, start + column.total_compressed_size)
    directory = about.serialized_size + 4 + len(PARQUET)
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        most = max(len(content) - directory - data_end, 0) + len(PARQUET)
        is_joined = content.find(PARQUET + PARQUET, 0, most) >= 0
        is_joined |= content[: len(PARQUET)] not in (PARQUET, b"PARE")
    if is_joined or sum(group.num_rows for group in groups) != about.num_rows:
        raise DataError(
            f"The records {name!r} are more than one Parquet file, or a damaged one: only a part "
            "of them would be read. Put the files into a folder, or write them anew as one."
        )


def _constant_column(value: str | None, n_records: int) -> pa.Array:
    """The column of a key: one value for all records."""
    indices = pa.array(np.zeros(n_records, dtype=np.int32), mask=np.full(n_records, value is None))
    return pa.DictionaryArray.from_arrays(indices, pa.array([value or ""], pa.string()))


def _check_columns(file: RecordFile, header: list[str], names: Sequence[str]) -> None:
    """Raise `DataError` unless each name stands once in the header and the keys."""
    more: dict[str, str] = {}
    header = _in_one_form(header)
    if not header:
        raise DataError(
            f"The records {file.name!r} are empty, or do not start with a header line; put "
            "the names of the columns there."
        )
    for name in names:
        if name in file.keys and name in header:
            more = {"remedy": f"leave it to one of the two, its columns or the folders {name}=…"}
        check_column(file.name, name, [*header, *file.keys], **more)
