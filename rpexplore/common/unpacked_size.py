"""How large an uploaded file becomes when it is read: a small one may hold very much."""

import io
import zipfile

from rpexplore.common.zip_file import DAMAGED, ZIP

_OF_PARQUET = b"PAR1"
_ROWS_AT_ONCE = 64  # each may hold a long text again, which the file has but once


def unpacked_size(content: bytes, most: int) -> int:
    """The bytes of a file's content once unpacked; where that is more than `most`, any such number.

    Of zip files, Parquet files, and these in those; a damaged file is left to its reader.

    >>> unpacked_size(b"age,sex", most=100)
    7
    """
    if content.startswith(ZIP):
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                entries = archive.infolist()
                size = sum(entry.file_size for entry in entries)
                for entry in entries:
                    if size > most:
                        break
                    with archive.open(entry) as file:
                        begins = file.read(len(_OF_PARQUET))
                    if begins == _OF_PARQUET:
                        size += _of_parquet(archive.read(entry), most)
                return size
        except DAMAGED:
            return len(content)
    return _of_parquet(content, most) if content.startswith(_OF_PARQUET) else len(content)


def _of_parquet(content: bytes, most: int) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        about = file.metadata
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
    except (pa.ArrowException, OSError, ValueError, TypeError):
        return len(content)
