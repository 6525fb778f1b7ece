"""Columns of Arrow as plain values: the distinct ones, and each as a text or a number."""

# pyarrow.compute makes its functions when it is imported, so pyright cannot know them.
# pyright: reportAttributeAccessIssue=false

from base64 import b64decode
from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.parquet import FileMetaData

from rpexplore.errors import DataError

_NARROW = 1 << 16  # a range of whole numbers that is looked up without searching for those in it
_HEAD = 1 << 12  # values that tell whether a column repeats itself


def distinct_values(column: pa.Array) -> tuple[pa.Array, np.ndarray]:
    """Some values [k], and for each record which one it has, int[n]; k for what is missing."""
    if pa.types.is_integer(column.type):
        ends = pc.min_max(column)
        least, most = ends["min"].as_py(), ends["max"].as_py()
        if least is not None and most - least < _NARROW:
            return _in_range(column, least, most)
    if pa.types.is_float16(column.type):
        column = column.cast(pa.float32())
    if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
        head = column.slice(0, _HEAD)
        if len(head.unique()) > len(head) // 2:  # it hardly repeats itself
            return column, np.arange(len(column))
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    indices = column.indices
    if indices.null_count:
        indices = pc.fill_null(indices.cast(pa.int64()), len(column.dictionary))
    return column.dictionary, indices.to_numpy(zero_copy_only=False)


def _in_range(column: pa.Array, least: int, most: int) -> tuple[pa.Array, np.ndarray]:
    wide = np.int64 if pa.types.is_signed_integer(column.type) else np.uint64
    # Steps that change nothing are left out: each would take as long as the look-up of the codes.
    filled = pc.fill_null(column, least) if column.null_count else column
    indices = filled.to_numpy(zero_copy_only=False).astype(wide, copy=False)
    if least or column.null_count:  # what is missing gets an index of its own
        indices = indices - wide(least)
    indices = indices.astype(np.int64, copy=False)
    if column.null_count:
        indices[column.is_null().to_numpy(zero_copy_only=False)] = most - least + 1
    return pa.array(np.arange(most - least + 1, dtype=wide) + wide(least)), indices


def of_known_type(column: pa.Array) -> pa.Array:
    """Numbers and booleans as they are, everything else as text; pyarrow computes on few types."""
    column.validate(full=True)  # texts that are not UTF-8 are refused here
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_float16(column.type):
        return column.cast(pa.float32())
    kept = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
    if any(is_of(column.type) for is_of in kept):
        return column
    return column.cast(pa.string())


def as_stored(column: pa.Array) -> pa.Array:
    """A column of an extension type as it is stored, UUIDs as texts; any other one as it is."""
    if not isinstance(column, pa.ExtensionArray):
        return column
    stored = column.storage
    if not isinstance(column.type, pa.UuidType):
        return stored
    # 16 bytes each, wherever the column begins in memory; what is missing has some as well.
    values = np.frombuffer(stored.buffers()[1], np.uint8).reshape(-1, 16)
    values = values[stored.offset : stored.offset + len(stored)]
    hexadecimal = np.frombuffer(b"0123456789abcdef", np.uint8)
    texts = np.full((len(values), 36), ord("-"), np.uint8)
    digits = [place for place in range(36) if place not in (8, 13, 18, 23)]
    texts[:, digits] = hexadecimal[np.stack([values >> 4, values & 15], axis=-1).reshape(-1, 32)]
    ends = pa.array(np.arange(len(values) + 1, dtype=np.int32) * 36)
    written = pa.StringArray.from_buffers(len(values), ends.buffers()[1], pa.py_buffer(texts))
    return pc.if_else(stored.is_valid(), written, pa.scalar(None, pa.string()))


EXTENSION_NAME = b"ARROW:extension:name"
"""Where the metadata of a column have the name of its extension type."""
_BOOLEANS = "arrow.bool8"  # stored as 0 and 1

_COUNTED_KINDS = (
    pa.types.is_null,
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_date,
    pa.types.is_time,
    pa.types.is_timestamp,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
    pa.types.is_fixed_size_binary,
)


def refuse_odd_kind(records: str, name: str, field: pa.Field) -> None:
    """Raise `DataError` for a column whose values are not plain.

    Durations are numbers of a unit that nobody sees: seconds in one file, nanoseconds in another.
    So are numbers of an extension type, such as the periods of pandas: the year 2026 is stored as
    56. Whoever does not know the type, as a file may have any, sees its name beside the numbers.
    """
    kind = field.type
    if pa.types.is_nested(kind):
        raise DataError(
            f"The column {name!r} of {records!r} holds lists or structures; make it one plain "
            "value for each record."
        )
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    stated = (field.metadata or {}).get(EXTENSION_NAME, b"").decode(errors="replace")
    if isinstance(plain, pa.BaseExtensionType):
        stated, plain = plain.extension_name, plain.storage_type
    is_unclear = pa.types.is_primitive(plain) and stated not in ("", _BOOLEANS)
    if is_unclear or not any(is_of(plain) for is_of in _COUNTED_KINDS):
        shown = stated if is_unclear else kind
        raise DataError(
            f"The column {name!r} of {records!r} is of a kind ({shown}) that cannot be counted; "
            "make it a text, a number or a date for each record."
        )


def as_written(field: pa.Field, metadata: Mapping[bytes, bytes] | None) -> pa.Field:
    """A column of a Parquet file with this metadata, of the type that was written, if it is known.

    Of a dictionary of durations pyarrow reads the numbers alone.
    """
    with suppress(KeyError, ValueError, pa.ArrowException):
        schema = pa.ipc.read_schema(pa.py_buffer(b64decode((metadata or {})[b"ARROW:schema"])))
        written = schema.field(field.name)
        if pa.types.is_dictionary(written.type):
            return written
    return field


_NO_DICTIONARY = {"DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"}


def with_dictionary(names: Sequence[str], about: FileMetaData) -> list[str]:
    """Columns of a Parquet file that can be read by their distinct values.

    pyarrow makes no dictionaries of texts that are stored by what they share with the one before,
    nor of those whose lengths are stored apart. Some programs (DuckDB) choose for each group of
    records.
    """
    places = [p for p in range(about.num_columns) if about.schema.column(p).path in names]
    chunks = (
        about.row_group(group).column(place)
        for group in range(about.num_row_groups)
        for place in places
    )
    shared = {one.path_in_schema for one in chunks if not _NO_DICTIONARY.isdisjoint(one.encodings)}
    return [name for name in names if name not in shared]


def as_text(column: pa.Array) -> pa.Array:
    """Each value as text; a float that is a whole number as that: 3.0 is the category "3"."""
    if not pa.types.is_floating(column.type):
        return column.cast(pa.string())
    whole = pc.and_(pc.equal(column, pc.floor(column)), pc.less_equal(pc.abs(column), 2.0**53))
    integers = pc.if_else(whole, column, pa.scalar(None, column.type)).cast(pa.int64())
    return pc.if_else(whole, integers.cast(pa.string()), column.cast(pa.string()))


def as_numbers(column: pa.Array) -> np.ndarray:
    """Each value as float64[n]; NaN for what is missing or not a number."""
    if pa.types.is_string(column.type):
        trimmed = pc.utf8_trim_whitespace(column)
        numeric = pc.match_substring_regex(
            trimmed, r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
        )
        column = pc.if_else(numeric, trimmed, pa.scalar(None, column.type))
        column = pc.replace_substring_regex(column, r"^\+", "")  # parsing knows no plus sign
    numbers = column.cast(pa.float64(), safe=False)
    return pc.fill_null(numbers, np.nan).to_numpy(zero_copy_only=False)
