"""Records from a text file of columns (CSV, TSV), maybe compressed, batch by batch.

Files in UTF-8 are read by pyarrow; those in another encoding, and those in a zip file, by Python's
csv module, at about a tenth of the speed.
"""

import codecs
import csv
import gzip
import io
import os
import re
import threading
import zipfile
import zlib
from collections.abc import Collection, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import BinaryIO, cast
from unicodedata import normalize

import numpy as np
import pyarrow as pa
import pyarrow.csv

from rpexplore.common.file_kinds import DAMAGED
from rpexplore.common.files import HEAD, is_utf16, kind_beside_text
from rpexplore.errors import DataError

SEPARATORS = (",", ";", "\t", "|")
UTF8 = "utf-8-sig"
TEXT_ENDINGS = (".csv", ".tsv", ".tab")
FIXED_ENDINGS = (".dat", ".asc")  # of records of fixed width
_BLOCK = 1 << 22  # bytes of a file, which are read together
_ROWS_AT_ONCE = 1 << 16  # of a file that pyarrow does not read
_TEXT = pa.dictionary(pa.int32(), pa.string())
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\r?\n?', re.IGNORECASE)  # of Excel, above the names
_END_OF_ZIP, _END_OF_ZIP_BYTES = b"PK\x05\x06", 22  # what ends a zip file, before its comment
_limit, _n_readers, _limit_before = threading.Lock(), 0, 0  # of `_any_length`


@dataclass(frozen=True)
class CsvForm:
    """How a file of columns is written.

    columns      their names, in the first line; empty without one
    has_records  whether anything follows that line (it may be anything)
    separator    between columns
    encoding     as Python calls it
    n_above      lines above the names: Excel's "sep=;" or none
    """

    columns: list[str]
    has_records: bool
    separator: str
    encoding: str
    n_above: int = 0

    @property
    def has_decimal_commas(self) -> bool:
        """Whether a comma in a number can only be a decimal one: it separates no columns."""
        return len(self.columns) > 1 and self.separator != ","


def csv_form(
    path: Path,
    name: str,
    content: bytes | None = None,
    *,
    encoding: str | None = None,
    wanted: Collection[str] = (),
) -> CsvForm:
    """How a file is written, by its first line alone.

    The separator is the one that splits the line into the wanted columns; where several do, or
    none, one that cuts no name in quotes apart, and of these the one that splits it into most
    columns, the comma before others. A line "sep=;" above the names, as Excel takes and writes it,
    says which it is.

    Args:
        name: By which errors call the file.
        content: What the file holds, where it is not on this computer's disk.
        encoding: The one that somebody states; a byte order mark goes before it.
        wanted: Names of columns, in the Unicode form NFC.

    Raises:
        DataError: For a file that is no text, or whose first line is in another encoding.
    """
    with opened(path, content) as file:
        head = file.read(HEAD)
    encoding = "utf-16" if is_utf16(head) else encoding or UTF8
    if not encoding.startswith("utf-16") and (kind := kind_beside_text(head)):
        raise DataError(
            f"The records {name!r} are {kind}, and no CSV; save them as CSV in UTF-8, or as "
            "Parquet."
        )
    written = head.decode(encoding, errors="replace")
    lines: dict[str, list[str]] = {}
    stated = _stated_separator(path, content, encoding)
    separators = (stated,) if stated else SEPARATORS
    has_records: dict[str, bool] = dict.fromkeys(separators, True)
    n_cut: dict[
        str, float
    ] = {}  # names that a separator within quotes, or a line break there, cuts
    is_long = False
    for separator, strict in product(separators, (True, False)):
        if lines.get(separator):  # read strictly
            continue
        with _text_of(path, content, encoding, errors="surrogateescape") as text:
            try:
                if stated:
                    text.readline()
                reader = csv.reader(text, delimiter=separator, strict=strict)
                lines[separator] = next(reader, [])
                has_records[separator] = bool(text.read(1))
                # A name that is written in quotes, with this one doubled, is whole.
                are_cut = (
                    column.count('"') % 2 and '"' + column.replace('"', '""') + '"' not in written
                    for column in lines[separator]
                )
                n_cut[separator] = sum(are_cut) if strict else np.inf
            except (csv.Error, UnicodeError) as error:
                lines[separator], n_cut[separator] = [], 0
                is_long |= "field larger than" in str(error)
    fitting = [
        separator
        for separator, line in lines.items()
        if set(wanted) <= {normalize("NFC", column) for column in line}
    ]
    separator = max(
        fitting or separators,
        key=lambda separator: (bool(lines[separator]), -n_cut[separator], len(lines[separator])),
    )
    columns = lines[separator]
    if not any(column.strip() for column in columns):
        columns = []  # an empty file, or an empty line before the names
    if is_long and not columns:
        raise DataError(
            f"The header line of {name!r} has a name of more than {csv.field_size_limit():,} "
            "characters, so it is none, or a quotation mark in it is not closed; put the names of "
            "the columns there."
        )
    if any("\udc80" <= sign <= "\udcff" for column in columns for sign in column):
        raise DataError(
            f"The records {name!r} do not start with a header line in UTF-8; save the file as "
            "CSV in UTF-8, or name its encoding (--encoding windows-1252)."
        )
    return CsvForm(columns, has_records[separator], separator, encoding, int(bool(stated)))


def _stated_separator(path: Path, content: bytes | None, encoding: str) -> str:
    """The separator that the first line names; "" where it is no such line."""
    with _text_of(path, content, encoding, errors="surrogateescape") as text:
        try:
            match = _SEPARATOR_LINE.fullmatch(text.readline(16))
        except UnicodeError:
            return ""
    return match[1] if match else ""


def csv_batches(
    path: Path, name: str, form: CsvForm, names: list[str]
) -> Generator[tuple[pa.RecordBatch, float], None, None]:
    """Batches of the named columns, as texts, each with the share of the file read so far.

    name: by which errors call the file; form: what `csv_form` finds, with columns. An empty value
    is a missing one.
    """
    if not form.has_records:  # no record at all, which the reader takes for a broken file
        return
    # Without a list of columns the reader would convert all of them; one is enough to count.
    columns = names or form.columns[:1]
    if form.encoding != UTF8 or _is_zip(path):
        yield from _batches_of_text(path, name, form, columns)
        return
    _check_quotes(path, name, form.separator)
    size = max(path.stat().st_size, 1)
    # Arrow's own file, never one of Python: a thread of Arrow's reads ahead, and one that still
    # wants the interpreter at exit ends the process by SIGABRT, with the records in its core. Not
    # closed here either, as that thread may be reading: the last of the two who holds it does.
    raw = pa.OSFile(os.fsencode(path))
    reader = pyarrow.csv.open_csv(
        pa.CompressedInputStream(raw, "gzip") if _is_gzip(path) else raw,
        read_options=pyarrow.csv.ReadOptions(block_size=_BLOCK, skip_rows=form.n_above),
        # In a file of one column an empty line is a missing value, which must be seen.
        parse_options=pyarrow.csv.ParseOptions(
            delimiter=form.separator,
            newlines_in_values=True,
            ignore_empty_lines=len(form.columns) > 1,
        ),
        convert_options=pyarrow.csv.ConvertOptions(
            include_columns=columns,
            column_types=dict.fromkeys(columns, _TEXT if names else pa.binary()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=True,
        ),
    )
    with reader:
        for batch in reader:
            yield batch, min(raw.tell() / size, 1.0)


def _batches_of_text(
    path: Path, name: str, form: CsvForm, columns: list[str]
) -> Generator[tuple[pa.RecordBatch, float], None, None]:
    """`csv_batches` of a file that pyarrow cannot read."""
    places = [form.columns.index(column) for column in columns]
    schema = pa.schema([(column, _TEXT) for column in columns])

    def batch(rows: list[list[str]]) -> pa.RecordBatch:
        arrays = [
            pa.array([row[place] or None for row in rows], pa.string()).dictionary_encode()
            for place in places
        ]
        return pa.record_batch(arrays, schema=schema)

    rows: list[list[str]] = []
    size, n_characters = max(size_of_text(path), 1), 0
    with _any_length(), _text_of(path, None, form.encoding) as text:
        reader = csv.reader(text, delimiter=form.separator, strict=True)
        try:
            for _ in range(form.n_above + 1):
                next(reader)
            for row in reader:
                # As pyarrow: in a file of one column an empty line is a missing value.
                if not row and len(form.columns) > 1:
                    continue
                row = row or [""]
                if len(row) != len(form.columns):
                    raise DataError(
                        f"The records {name!r} have {len(row):,} columns in line "
                        f"{reader.line_num:,} instead of {len(form.columns):,}; put values that "
                        "hold the separator in quotes."
                    )
                rows.append(row)
                n_characters += sum(map(len, row)) + len(row)
                if len(rows) == _ROWS_AT_ONCE:
                    yield batch(rows), min(n_characters / size, 1.0)
                    rows = []
        except UnicodeError:
            raise DataError(
                f"The records {name!r} are not all text in the encoding {form.encoding}; name "
                "theirs (--encoding), or save them as CSV in UTF-8."
            ) from None
        except csv.Error as error:
            raise _open_quote(name, error) from None
    if rows:
        yield batch(rows), 1.0


def _check_quotes(path: Path, name: str, separator: str) -> None:
    """Refuse quotes that are never closed, or closed by another's opening.

    The fast reader would take the records between them for one value, and drop them. Python's
    strict parser finds them; it is slow, and only needed where quotes are not plainly in order.
    """
    if _has_plain_quotes(path, separator):
        return
    try:
        # As the reader does, past a mark of UTF-8, behind which the first value begins.
        with _any_length(), _text_of(path, None, "utf-8-sig", errors="surrogateescape") as text:
            for _ in csv.reader(text, delimiter=separator, strict=True):
                pass
    except csv.Error as error:
        raise _open_quote(name, error) from None


def _has_plain_quotes(path: Path, separator: str) -> bool:
    """Whether each quote opens a value, closes one, or is one of two within.

    By turns quotes open and close, two within a value being a close and an opening. So an opening
    must follow a separator, the end of a line or a closing, and a closing must precede one of these
    or an opening. A strict parser agrees then, from the first quote to the last; where a quote
    stands within a value without quotes, it may agree all the same.
    """
    ends_value = np.zeros(256, dtype=bool)
    ends_value[list(f'{separator}\r\n"'.encode())] = True
    n_quotes, data = 0, b"\n"
    with opened(path) as file:
        while True:
            block = file.read(_BLOCK)
            if data == b"\n":
                block = block.removeprefix(codecs.BOM_UTF8)
            # The first byte has been looked at, and the last one waits for what follows it.
            data = data[-2:] + (block or b"\n")
            if b'"' in data:
                signs = np.frombuffer(data, np.uint8)
                quotes = np.flatnonzero(signs[1:-1] == ord('"')) + 1
                opening, closing = quotes[n_quotes % 2 :: 2], quotes[1 - n_quotes % 2 :: 2]
                if not (
                    ends_value[signs[opening - 1]].all() and ends_value[signs[closing + 1]].all()
                ):
                    return False
                n_quotes += len(quotes)
            if not block:
                return n_quotes % 2 == 0


def _open_quote(name: str, error: csv.Error) -> DataError:
    return DataError(
        f"The records {name!r} hold a quotation mark that is not closed where its value "
        "ends; write such values in quotes, with every mark inside doubled.",
        private=f"The reader says: {error}.",
    )


@contextmanager
def _any_length() -> Iterator[None]:
    """A block in which Python's csv module takes values of any length."""
    # The limit is one for all threads: the last one out sets it back.
    global _n_readers, _limit_before
    with _limit:
        if not _n_readers:
            _limit_before = csv.field_size_limit(2**31 - 1)
        _n_readers += 1
    try:
        yield
    finally:
        with _limit:
            _n_readers -= 1
            if not _n_readers:
                csv.field_size_limit(_limit_before)


@contextmanager
def _text_of(
    path: Path, content: bytes | None, encoding: str, errors: str = "strict"
) -> Iterator[io.TextIOWrapper]:
    with (
        opened(path, content) as file,
        io.TextIOWrapper(file, encoding=encoding, errors=errors, newline="") as text,
    ):
        yield text


def _is_gzip(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def _is_zip(path: Path) -> bool:
    return path.suffix.lower() == ".zip"


def size_of_text(path: Path) -> int:
    """Bytes of a file, unpacked where it says how many these are."""
    if not _is_zip(path):
        return path.stat().st_size
    with zipfile.ZipFile(path) as archive:
        return _only_entry(archive, path).file_size


@contextmanager
def opened(path: Path, content: bytes | None = None) -> Iterator[BinaryIO]:
    """The content of a file, also of one that is compressed, or alone in a zip file."""
    with path.open("rb") if content is None else io.BytesIO(content) as raw:
        if _is_gzip(path):
            try:
                with gzip.open(raw) as file:
                    yield cast(BinaryIO, file)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise OSError(0, "a broken or incomplete gzip file") from error
        elif _is_zip(path):
            # While it is read, only what zipfile raises itself; other errors are the caller's.
            try:
                archive = zipfile.ZipFile(raw)
                file = archive.open(_only_entry(archive, path))
            except DAMAGED as error:
                raise OSError(0, "a broken zip file, or one with a password") from error
            with archive, file:
                try:
                    yield cast(BinaryIO, file)
                except (zipfile.BadZipFile, zlib.error, EOFError) as error:
                    raise OSError(0, "a broken zip file") from error
        else:
            yield raw


def _only_entry(archive: zipfile.ZipFile, path: Path) -> zipfile.ZipInfo:
    """The file of records in a zip file; raises `DataError` unless it holds one, and no other."""
    if not _is_whole(archive):
        raise DataError(
            f"The zip file {path.name!r} has something before or behind it, such as a second zip "
            "file, of which nothing would be read; unpack them, and name the file or the folder."
        )
    entries = [
        entry
        for entry in archive.infolist()
        # What macOS adds of its own.
        if not entry.is_dir() and not entry.filename.startswith("__MACOSX/")
    ]
    endings = (*TEXT_ENDINGS, ".txt", *FIXED_ENDINGS)
    fitting = [entry for entry in entries if entry.filename.lower().endswith(endings)]
    if len(fitting) != 1:
        raise DataError(
            f"The zip file {path.name!r} must hold one file of records "
            f"({', '.join(endings)}), and holds {len(fitting)}; unpack it, and name the file "
            "or the folder."
        )
    return fitting[0]


def _is_whole(archive: zipfile.ZipFile) -> bool:
    """Whether a zip file is all that its file holds: of several, one behind the other, the last
    directory alone is read."""
    file = archive.fp
    assert file is not None
    length = len(archive.comment) + _END_OF_ZIP_BYTES
    file.seek(-length, os.SEEK_END)
    starts = [entry.header_offset for entry in archive.infolist()]
    return file.read(len(_END_OF_ZIP)) == _END_OF_ZIP and min(starts, default=0) == 0
