"""Records in memory: a pandas or polars DataFrame, an Arrow table, or whatever exports Arrow data.

Anything with the Arrow PyCapsule interface (`__arrow_c_stream__`) will do. Memory, beyond what
counting takes: none for what lies in memory as Arrow has it (polars, pyarrow, numbers of pandas),
else a copy of the columns that are used.
"""

# pyarrow.compute makes its functions when it is imported, so pyright cannot know them.
# pyright: reportAttributeAccessIssue=false

import hashlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, runtime_checkable
from unicodedata import normalize

import pyarrow as pa
import pyarrow.compute as pc

from rpexplore.data.arrow_values import EXTENSION_NAME, as_stored, of_known_type, refuse_odd_kind
from rpexplore.data.counting import BatchSource
from rpexplore.data.source import Fingerprint, check_column
from rpexplore.errors import DataError, without_causes

_ROWS = 1 << 17  # of a batch


@runtime_checkable
class Frame(Protocol):
    """A table in memory that exports Arrow data."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


class FrameSource(BatchSource):
    """The records of a frame, charged under a name that the caller answers for.

    Args:
        frame: A table with one row a record. A stream that can be read only once is refused.
        name: What the ledger knows the records by: the same name for the same records, whoever
            releases them and whatever they are read into. To a ledger in a file, a path names the
            file there, too.
        columns: The columns that are used; None: all. Others are not looked at.

    Raises:
        DataError: For a frame that cannot be read, or no name.
    """

    def __init__(self, frame: Frame, *, name: str, columns: Sequence[str] | None = None) -> None:
        if not (name.strip() and name.isprintable()):
            raise DataError(
                "Records in memory must have a name, under which a ledger charges them, got "
                f"{name!r}; give one, the same for every release of these records (name=...)."
            )
        # One name however it is typed: as columns are, and as files of some systems are called.
        self._given, self._name = name, normalize("NFC", name.strip())
        with self.readable():
            self._table, self._n_records, self._unreadable = _arrow_table(frame, name, columns)

    @property
    def name(self) -> str:
        return self._name

    @property
    def home(self) -> Path | None:
        """None: a ledger has to be named."""
        return None

    def names(self, folder: Path | None) -> tuple[str, ...]:
        # As it was given, too: that is how accounts of earlier versions know it.
        return tuple(dict.fromkeys((self.name, self._given)))

    def fingerprint(self) -> Fingerprint:
        """A digest of the columns that are used: names, types and every value, in their order."""
        digest = hashlib.sha256()
        with self.readable():
            for field, column in zip(self._table.schema, self._table.columns, strict=True):
                head = f"{len(field.name)} {field.name} {field.type} {len(column)};"
                digest.update(head.encode())
                if not pa.types.is_nested(field.type):  # others are never counted
                    with suppress(pa.ArrowException):  # neither is what cannot be read
                        for part in _bytes_of(column):
                            digest.update(part)
        return Fingerprint(self._table.nbytes, "", digest.hexdigest())

    def columns(self, wanted: Sequence[str] = ()) -> tuple[str, ...]:
        return tuple(self._table.column_names)

    def batches(self, names: Sequence[str]) -> Generator[tuple[pa.RecordBatch, float], None, None]:
        for name in names:
            check_column(self.name, name, self._table.column_names)
            if name in self._unreadable:
                raise DataError(
                    f"The column {name!r} of {self.name!r} cannot be read; make its values all "
                    "texts, all numbers or all categories."
                )
            refuse_odd_kind(self.name, name, self._table.schema.field(name))
        table = self._table.select(names)
        if not names:  # a table without columns need not know how many rows it has
            table = pa.table({"": pa.nulls(self._n_records)})
        n_read = 0
        for batch in table.to_batches(max_chunksize=_ROWS):
            n_read += batch.num_rows
            kinds = [field.with_type(_known_type(field.type)) for field in batch.schema]
            yield batch.cast(pa.schema(kinds)), n_read / max(self._n_records, 1)

    @without_causes
    @contextmanager
    def readable(self) -> Iterator[None]:
        try:
            yield
        except pa.ArrowException as error:  # pyarrow quotes what it cannot convert
            raise DataError(
                f"The records {self.name!r} cannot be read as a table; make every column that is "
                "used texts (in UTF-8), numbers or categories.",
                private=f"The reader says: {error}",
            ) from None

    def __repr__(self) -> str:
        return f"FrameSource({self.name!r})"


def _arrow_table(
    frame: Any, name: str, columns: Sequence[str] | None
) -> tuple[pa.Table, int, frozenset[str]]:
    """The columns of a frame that are used, as they are now, how many records there are, and which
    columns cannot be read."""
    if isinstance(frame, pa.RecordBatchReader) or not isinstance(frame, Frame):
        raise DataError(
            f"The records {name!r} must be a table that can be read again, as a DataFrame or "
            f"pyarrow.Table, got a {type(frame).__name__}; read it into one first."
        )
    unreadable: set[str] = set()
    if hasattr(frame, "iloc"):  # pandas
        fields, arrays, n_records = [], [], len(frame)  # pyright: ignore[reportArgumentType]
        # One by one: pandas converts all or nothing, and no two columns of one name.
        for position, label in enumerate(frame.columns):
            field = normalize("NFC", str(label))
            if columns is not None and field not in columns:
                continue
            column = frame.iloc[:, [position]].reset_index(drop=True)
            if hasattr(column.iloc[:, 0], "sparse"):  # Arrow has no such type
                column = column.sparse.to_dense()
            try:
                array = pa.table(column).column(0)
            # pandas and pyarrow differ in these; whole numbers beyond 64 bits overflow.
            except (pa.ArrowException, TypeError, ValueError, OverflowError):
                unreadable.add(field)
                array = pa.chunked_array([pa.nulls(n_records)])
            fields.append(field)
            arrays.append(array)
        table = pa.table(arrays, names=fields)
    else:
        try:
            table = pa.table(frame)
        except pa.ArrowException:
            if not hasattr(frame, "get_columns"):
                raise
            # polars, with a column of a type that Arrow does not have (Int128).
            arrays, names = [], []
            for column in frame.get_columns():  # pyright: ignore[reportAttributeAccessIssue]
                names.append(column.name)
                try:
                    arrays.append(pa.chunked_array(column))
                except pa.ArrowException:
                    unreadable.add(normalize("NFC", column.name))
                    arrays.append(pa.chunked_array([pa.nulls(len(column))]))
            table = pa.table(arrays, names=names)
        n_records = table.num_rows
        table = table.rename_columns([normalize("NFC", name) for name in table.column_names])
        if columns is not None:
            used = [i for i, name in enumerate(table.column_names) if name in columns]
            table = table.select(used)
    for index, field in enumerate(table.schema):
        if isinstance(field.type, pa.BaseExtensionType):
            pieces = [batch.column(index) for batch in table.to_batches(max_chunksize=_ROWS)]
            stored = [as_stored(piece) for piece in pieces or [pa.array([], field.type)]]
            own = pa.chunked_array(stored)
            about = {EXTENSION_NAME: field.type.extension_name}
            table = table.set_column(index, pa.field(field.name, own.type, metadata=about), own)
    return table, n_records, frozenset(unreadable)


def _known_type(kind: pa.DataType) -> pa.DataType:
    """The type, with texts as the one type of texts that is computed with."""
    if pa.types.is_string_view(kind) or pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_dictionary(kind):
        return pa.dictionary(pa.int32(), _known_type(kind.value_type))
    return kind


def _bytes_of(column: pa.ChunkedArray) -> Iterator[bytes]:
    """The values, as bytes that do not depend on how they lie in memory."""
    for start in range(0, len(column), _ROWS):
        rows = column.slice(start, _ROWS).cast(_known_type(column.type)).combine_chunks()
        values = of_known_type(rows)
        yield values.is_null().to_numpy(zero_copy_only=False).tobytes()
        if pa.types.is_string(values.type):
            texts = pc.fill_null(values, "").cast(pa.binary())
            yield pc.binary_length(texts).to_numpy().tobytes()
            yield b"".join(texts.to_pylist())
        else:
            # What stands below a missing value is nobody's.
            filled = pc.fill_null(values, pa.scalar(0).cast(values.type))
            yield filled.to_numpy(zero_copy_only=False).tobytes()
