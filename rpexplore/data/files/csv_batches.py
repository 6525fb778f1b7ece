"""Records from a CSV file, maybe compressed by gzip, by pyarrow, batch by batch."""

import csv
import gzip
import io
import os
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa
import pyarrow.csv

from rpexplore.common.files import HEAD, kind_beside_text
from rpexplore.errors import DataError

_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars (|)"}
_TEXT = pa.dictionary(pa.int32(), pa.string())


def csv_batches(
    path: Path, name: str, header: list[str], names: list[str]
) -> Generator[tuple[pa.RecordBatch, float], None, None]:
    """Batches of the named columns, as texts, each with the share of the file read so far.

    name: by which errors call the file; header: what `csv_header` finds, not empty. An empty value
    is a missing one.
    """
    if not csv_header(path, name)[1]:  # no record at all, which the reader takes for a broken file
        return
    _check_quotes(path, name)
    size = max(path.stat().st_size, 1)
    # Without a list of columns the reader would convert all of them; one is enough to count.
    columns = names or header[:1]
    # Arrow's own file, never one of Python: a thread of Arrow's reads ahead, and one that still
    # wants the interpreter at exit ends the process by SIGABRT, with the records in its core. Not
    # closed here either, as that thread may be reading: the last of the two who holds it does.
    raw = pa.OSFile(os.fsencode(path))
    reader = pyarrow.csv.open_csv(
        pa.CompressedInputStream(raw, "gzip") if _is_gzip(path) else raw,
        read_options=pyarrow.csv.ReadOptions(block_size=1 << 24),
        # In a file of one column an empty line is a missing value, which must be seen.
        parse_options=pyarrow.csv.ParseOptions(
            newlines_in_values=True, ignore_empty_lines=len(header) > 1
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


def csv_header(path: Path, name: str, content: bytes | None = None) -> tuple[list[str], bool]:
    """The column names in the first line, and whether anything follows it (it may be anything).

    name: by which errors call the file; content: what the file holds, where it is not on this
    computer's disk
    """
    with opened(path, content) as file:
        kind = kind_beside_text(file.read(HEAD))
    if kind:
        raise DataError(
            f"The records {name!r} are {kind}, and no CSV; save them as CSV in UTF-8, or as "
            "Parquet."
        )
    try:
        # A broken character elsewhere must not stop the reading of the header.
        with (
            opened(path, content) as file,
            io.TextIOWrapper(
                file, encoding="utf-8-sig", errors="surrogateescape", newline=""
            ) as text,
        ):
            header, more = next(csv.reader(text), []), bool(text.read(1))
    except csv.Error:
        header, more = [], True
    if not any(column.strip() for column in header):
        header = []  # an empty file, or an empty line before the names
    if any("\udc80" <= sign <= "\udcff" for column in header for sign in column):
        raise DataError(
            f"The records {name!r} do not start with a header line in UTF-8; save the file as "
            "CSV in UTF-8."
        )
    return header, more


def other_separator(header: list[str]) -> str | None:
    """What stands between columns instead of commas, in words; None where commas may do."""
    if len(header) != 1:
        return None
    return next((words for sign, words in _SEPARATORS.items() if sign in header[0]), None)


def _check_quotes(path: Path, name: str) -> None:
    """Refuse quotes that are never closed, or closed by another's opening.

    The fast reader would take the records between them for one value, and drop them. Python's
    strict parser finds them; it is slow, and only needed where there are quotes at all.
    """
    with opened(path) as file:
        if not any(b'"' in block for block in iter(partial(file.read, 1 << 24), b"")):
            return
    limit = csv.field_size_limit(2**31 - 1)
    try:
        with (
            opened(path) as file,
            # As the reader does, past a mark of UTF-8, behind which the first value begins.
            io.TextIOWrapper(
                file, encoding="utf-8-sig", errors="surrogateescape", newline=""
            ) as text,
        ):
            for _ in csv.reader(text, strict=True):
                pass
    except csv.Error as error:
        raise DataError(
            f"The records {name!r} hold a quotation mark that is not closed where its value "
            "ends; write such values in quotes, with every mark inside doubled.",
            private=f"The reader says: {error}.",
        ) from None
    finally:
        csv.field_size_limit(limit)


def _is_gzip(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


@contextmanager
def opened(path: Path, content: bytes | None = None) -> Iterator[BinaryIO]:
    """The content of a file, also of one that is compressed."""
    with path.open("rb") if content is None else io.BytesIO(content) as raw:
        if not _is_gzip(path):
            yield raw
            return
        try:
            with gzip.open(raw) as file:
                yield cast(BinaryIO, file)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise OSError(0, "a broken or incomplete gzip file") from error
