"""The records of a file or of a folder of files; what records can be given as."""

import hashlib
import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from rpexplore.common.file_kinds import PARQUET
from rpexplore.common.files import UTF8, file_identities, known_encoding, listed_path, machine_names
from rpexplore.common.statistics_files import PACKAGES, DictionaryVariable
from rpexplore.common.text import text_of_path, time_of_change
from rpexplore.data.arrow_values import as_stored, as_written, refuse_odd_kind, with_dictionary
from rpexplore.data.coding import Declared
from rpexplore.data.counting import BatchSource
from rpexplore.data.files.csv_batches import CsvForm, csv_batches, csv_form
from rpexplore.data.files.fixed_batches import fixed_batches
from rpexplore.data.files.record_files import (
    RecordFile,
    file_errors,
    paths_within,
    record_files,
    refuse_copies,
)
from rpexplore.data.files.statistics_batches import (
    declared_by,
    encoding_remarks,
    statistics_batches,
    statistics_variables,
)
from rpexplore.data.frames import Frame, FrameSource
from rpexplore.data.source import Fingerprint, Source, check_column, file_names, names_with_parts
from rpexplore.domain.record_layout import RecordLayout
from rpexplore.errors import DataError

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
            for file in paths_within(self.path, self.path):
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
            refuse_copies(self.path, files)
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
