"""Which files hold records and how large they become when they are read; zip files in memory."""

import copy
import io
import sys
import zipfile
import zlib
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

from rpexplore.common.files import HEAD
from rpexplore.common.processes import in_other_process
from rpexplore.common.statistics_files import PACKAGES, statistics_format
from rpexplore.errors import DomainError, RpexploreError

# ---- Which files hold records, by their first bytes and their endings; and how they are refused.


PARQUET = b"PAR1"
ZIP = b"PK\x03\x04"
_BEGINNINGS = {
    PARQUET: "a Parquet file",
    b"ARROW1": "an Arrow file",
    b"ORC": "an ORC file",
    b"Obj\x01": "an Avro file",
    b"SQLite format 3\x00": "an SQLite database",
    b"\x1f\x8b": "compressed by gzip",
    ZIP: "a ZIP file",
}


def refuse_records(content: bytes, filename: str, *, taken: Collection[bytes] = ()) -> None:
    """Raise `DomainError` for a file of a kind that holds records, by its content or its ending.

    taken: `PARQUET` where a public list may come as such a file, `ZIP` where a project may
    """
    form = statistics_format(content[:HEAD], filename)
    if form is not None:
        raise DomainError(
            f"{filename} is a file of {PACKAGES[form]}, which holds records, and this server takes "
            "none. Make the codebook where the file is (rpexplore schema FILE --out codebook.json) "
            "and upload codebook.json."
        )
    for beginning, kind in _BEGINNINGS.items():
        if content.startswith(beginning) and beginning not in taken:
            raise refusal(filename, kind)


def refusal(filename: str, kind: str) -> DomainError:
    """The error for a file of this kind, which holds records or may hold them."""
    return DomainError(
        f"{filename} is {kind}, and this server takes no records. Make the codebook where the "
        "records are, on the Data page of your own app (rpexplore app), download codebook.json "
        "there, and upload that."
    )


# ---- How large an uploaded file becomes when it is read: a small one may hold very much.


_ROWS_AT_ONCE = 64  # each may hold a long text again, which the file has but once
_MOST_FILES = 1_000  # in a zip file, each of which takes time to open; projects have a few
# Of a process that reads Parquet files: bytes, 1.2 GB when it begins, and seconds of a processor.
_MEMORY, _SECONDS = 2 << 30, 20


def unpacked_size(content: bytes, most: int) -> int:
    """The bytes of a file's content once unpacked; where that is more than `most`, any such number.

    Of zip files, Parquet files, and these in those; a damaged file is left to its reader. A zip
    file of very many files is taken for too large, however small they are, and so is a Parquet
    file with lists in its cells, or one that takes much memory or time to be read.

    >>> unpacked_size(b"age,sex", most=100)
    7
    """
    size, parquet = len(content), list[bytes]()
    if content.startswith(PARQUET):
        size, parquet = 0, [content]
    elif content.startswith(ZIP):
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                entries = archive.infolist()
                if len(entries) > _MOST_FILES:
                    return most + 1
                size = sum(entry.file_size for entry in entries)
                if size > most:
                    return size
                for entry in entries:
                    with suppress(*DAMAGED):  # which says nothing of the other ones
                        file = _unpacked(archive, entry, most)
                        if file is None:
                            return most + 1
                        if file.startswith(PARQUET):
                            parquet.append(file)
        except DAMAGED:
            return len(content)
    if not parquet:
        return size
    try:
        # What a file says of itself may be wrong, so that only reading it tells, in a process
        # whose memory has a limit.
        return size + in_other_process(_size_of_parquet, parquet, most)
    except (RpexploreError, MemoryError):
        return most + 1


def _unpacked(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, most: int) -> bytes | None:
    """A file in a zip file; None if it has another size than is stated, or may have any.

    Python unpacks all that is there, also where less is stated, and of bzip2 and LZMA all at once.
    """
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return None
    stated = copy.copy(entry)
    stated.file_size = most + 1
    # Without it `zipfile` checks nothing: it is of the bytes that are stated, and more may be read.
    del stated.CRC
    with archive.open(stated) as file:
        content = file.read(most + 1)
    return content if len(content) == entry.file_size else None


def _size_of_parquet(files: list[bytes], most: int) -> int:
    """The bytes of the columns of Parquet files, in a process of its own."""
    if sys.platform == "linux":
        import resource  # here, as Windows has no such module

        resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    size = 0
    for content in files:
        if size <= most:
            size += _of_parquet(content, most - size)
    return size


def _of_parquet(content: bytes, most: int) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        about = file.metadata
        if has_lists(about):  # one row may hold any number of values
            return most + 1
        groups = [about.row_group(number) for number in range(about.num_row_groups)]
        stated = max(about.num_rows * about.num_columns, sum(g.total_byte_size for g in groups))
        if stated > most:
            return stated
        size = 0
        for rows in file.iter_batches(_ROWS_AT_ONCE, use_threads=False):
            size += rows.nbytes
            if size > most:
                break
        return size
    except MemoryError:
        raise
    except (pa.ArrowException, OSError, ValueError, TypeError):
        return len(content)


def has_lists(about: Any) -> bool:
    """Whether cells of a Parquet file with this metadata hold lists or maps."""
    columns = (about.schema.column(number) for number in range(about.num_columns))
    return any(column.max_repetition_level > 0 for column in columns)


_BETWEEN = (b",", b":", b";", b"[", b"{", b"<", b"=")  # values of JSON, tables and XML
_NPY = b"\x93NUMPY"


def number_of_values(content: bytes) -> int:
    """About how many values a file holds, at least half of them, before any of them is made.

    Each takes up to some hundred bytes of memory when it is read, be it but two in the file. Signs
    within texts count as well: what is a text in one format is none in another. Of zip files those
    of all files in them; 0 for a matrix of NumPy, which becomes no larger.

    >>> number_of_values(b'{"age": ["0, 1, 2", "3+"]}'), number_of_values(b"age,sex\\n12,F\\n")
    (6, 2)
    """
    if not content.startswith(ZIP):
        return _number_of_values(content)
    found = 0
    with suppress(*DAMAGED), zipfile.ZipFile(io.BytesIO(content)) as archive:
        for entry in archive.infolist():
            with suppress(*DAMAGED):
                found += _number_of_values(archive.read(entry))
    return found


def _number_of_values(content: bytes) -> int:
    if content.startswith(PARQUET):
        return _values_of_parquet(content)
    if content.startswith(_NPY):
        return 0
    return max(sum(map(content.count, _BETWEEN)), sum(map(content.count, (b"\n", b"\r"))))


def _values_of_parquet(content: bytes) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        about = pq.read_metadata(pa.BufferReader(content))
    except (pa.ArrowException, OSError, ValueError, TypeError):
        return 0
    return about.num_rows * about.num_columns


# ---- Zip files in memory.


# What zipfile raises for files that it cannot read.
DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    NotImplementedError,  # for a compression or an encryption that it does not know
    RuntimeError,  # for an entry with a password
    ValueError,
    OSError,
    EOFError,
)
_MOMENT = (1980, 1, 1, 0, 0, 0)  # the earliest a zip file can say: the same plan, the same bytes


def zip_of(files: Mapping[str, bytes]) -> bytes:
    """The zip file of these; the same bytes every time."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, _MOMENT)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system, entry.external_attr = 3, 0o644 << 16
            archive.writestr(entry, content)
    return file.getvalue()
