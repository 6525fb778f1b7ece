"""Small columns as a Parquet file in memory, and back, with what it must hold checked."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from rpexplore.common.numbers import shown
from rpexplore.errors import RpexploreError

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_BYTES = 4 << 30  # of a file's columns in memory


def parquet_bytes(columns: "Mapping[str, pa.Array]") -> bytes:
    """A Parquet file of columns of one length, none with missing values."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    fields = [pa.field(name, column.type, nullable=False) for name, column in columns.items()]
    table = pa.Table.from_arrays(list(columns.values()), schema=pa.schema(fields))
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", store_schema=False)
    return sink.getvalue().to_pybytes()


def table_of_parquet(
    content: bytes,
    kinds: "Mapping[str, pa.DataType]",
    error: type[RpexploreError],
    *,
    optional: Collection[str] = (),
    most_rows: int | None = None,
) -> "dict[str, pa.Array]":
    """The columns of a Parquet file, in the order and of the types they must have.

    optional: columns that may be left out. Raises `error`, which the caller completes with the
    file's name, for anything else than rows, at most `most_rows`, of exactly these columns without
    missing values.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        names = file.schema_arrow.names
        wanted = [name for name in kinds if name in names or name not in optional]
        if names != wanted:
            raise error(
                f"it must have the columns {', '.join(wanted)}, got {shown(', '.join(names))}."
            )
        for name in names:  # a few bytes may stand for lists of any length
            if (kind := file.schema_arrow.field(name).type) != kinds[name]:
                raise error(f"its column {name} must be of type {kinds[name]}, got {kind}.")
        groups = [file.metadata.row_group(number) for number in range(file.num_row_groups)]
        if file.metadata.num_rows == 0:
            raise error("it must have rows, got none.")
        if most_rows is not None and file.metadata.num_rows > most_rows:
            raise error(f"it can have {most_rows:,} rows, got {file.metadata.num_rows:,}.")
        if sum(group.total_byte_size for group in groups) > _MOST_BYTES:
            raise error("its columns are larger than 4 GB.")
        columns = {name: file.read([name])[name].combine_chunks() for name in names}
        for column in columns.values():
            column.validate(full=True)
        del file
        pa.default_memory_pool().release_unused()  # what reading took, beside the columns
    except (pa.ArrowException, OSError, ValueError, TypeError):
        raise error("it is no Parquet file, or a damaged one.") from None
    for name, column in columns.items():
        if column.null_count:
            raise error(
                f"its column {name} must have no missing values, got {column.null_count:,} missing."
            )
    return columns
