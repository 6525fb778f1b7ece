"""Coding: the category index of every value in a column, by its distinct values.

Columns hold few distinct values, or whole numbers of a narrow range: only these are compared with
the domain, and records look their indices up. What a value means never depends on the others.
"""

# pyarrow.compute makes its functions when it is imported, so pyright cannot know them.
# pyright: reportAttributeAccessIssue=false

from collections.abc import Iterable, Mapping
from math import ceil, floor
from unicodedata import normalize

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rpexplore.domain.attribute import NUMBER_STEPS, Attribute, Bins, Categories, Integers
from rpexplore.domain.domain import Domain
from rpexplore.errors import DataError

_SHOWN = 5  # distinct values named on the screen
_NARROW = 1 << 16  # a range of whole numbers that is looked up without searching for those in it
_HEAD = 1 << 12  # values that tell whether a column repeats itself
BLANKS = (
    "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007"
    "\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
"""What pyarrow takes for a blank at the end of a text."""
EXACT = 2**53
"""The last whole number that a float of 64 bits tells from the next: 2^53 + 1 becomes it."""
EXACT_TEXT = f"[+-]?0*{EXACT}([.]0*)?"
"""How that number is written where it is no float."""

UNKNOWN, MISSING = -1, -2
"""The codes of what is not in the domain, and of what is missing, until it is refused."""


class Coder:
    """Turns a column's values into category indices, or refuses them.

    Each record is coded by itself: what a value means never depends on the other records, so
    that adding a record changes the counts by that record alone.
    """

    def __init__(self, attribute: Attribute, unknown_code: int | None) -> None:
        self.name, self._values, self._unknown_code = attribute.name, attribute.values, unknown_code
        if isinstance(self._values, Categories):
            readings = self._values.readings
            self._listed = pa.array(list(readings), pa.string())
            self._code_of_listed = np.array([*readings.values(), UNKNOWN], np.int64)
        self._edges: dict[str, np.ndarray] = {}  # by the width of floats that they are compared at
        self._size = attribute.size
        self.dtype = np.min_scalar_type(attribute.size - 1)

    def codes(self, column: pa.Array) -> np.ndarray:
        """Category indices [n], unsigned; raises `DataError` for what is not in the domain."""
        codes, indices = self._distinct_codes(column)
        is_unknown = codes < 0
        if np.any(is_unknown[indices]):
            self._refuse(of_known_type(column.filter(pa.array(is_unknown[indices]))))
        return codes.astype(self.dtype)[indices]

    def signed_codes(self, column: pa.Array) -> np.ndarray:
        """Category indices [n], signed, with `UNKNOWN` and `MISSING` for what `codes` refuses."""
        codes, indices = self._distinct_codes(column)
        return codes.astype(code_type(self._size))[indices]

    def _distinct_codes(self, column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
        """Codes int64[k + 1] of some values, the last that of what is missing; and which is whose.

        The code of a category that takes what is unknown, or else `UNKNOWN` and `MISSING`.
        """
        distinct, indices = distinct_values(column)
        values = of_known_type(distinct)
        is_missing = pc.is_null(values, nan_is_null=True).to_numpy(zero_copy_only=False)
        codes = np.append(self._codes_of(values, float_width(column.type)), UNKNOWN)
        codes[np.append(is_missing, True) & (codes < 0)] = MISSING
        if self._unknown_code is not None:
            codes[codes < 0] = self._unknown_code
        return codes, indices

    def _codes_of(self, column: pa.Array, width: str) -> np.ndarray:
        """Category indices, int64[n], −1 for what is missing or not in the domain.

        width: of the floating point numbers that the column was read as
        """
        values = self._values
        if isinstance(values, Categories):
            texts = pc.utf8_normalize(as_text(column), form="NFC")
            if values.numbers:
                form = texts
                for pattern, replacement in NUMBER_STEPS:
                    form = pc.replace_substring_regex(form, pattern, replacement)
                is_number = pc.match_substring_regex(texts, f"^({values.numbers})$")
                texts = pc.if_else(is_number, form, texts)
            places = pc.index_in(texts, value_set=self._listed, skip_nulls=True)
            return self._code_of_listed[pc.fill_null(places, -1).to_numpy(zero_copy_only=False)]
        if pa.types.is_boolean(column.type):  # yes and no are no numbers
            return np.full(len(column), -1)
        if isinstance(values, Bins) and pa.types.is_integer(column.type):
            return _bins_of_whole(column, values)
        numbers = as_numbers(column)
        if isinstance(values, Integers):
            inside = (numbers >= values.minimum) & (numbers <= values.maximum)
            inside &= numbers == np.floor(numbers)
            is_last = inside & (np.abs(numbers) == EXACT)
            if np.any(is_last) and not pa.types.is_floating(column.type):
                texts = pc.utf8_trim_whitespace(column.cast(pa.string()))
                is_itself = pc.fill_null(pc.match_substring_regex(texts, f"^{EXACT_TEXT}$"), False)
                inside &= ~is_last | is_itself.to_numpy(zero_copy_only=False)
            whole = np.where(inside, numbers, values.minimum).astype(np.int64)
            codes = (whole - values.minimum) // values.step
        else:
            edges = self._edges.get(width)
            if edges is None:
                edges = self._edges[width] = compared_edges(self.name, values, width)
            inside = (numbers >= edges[0]) & (numbers <= edges[-1])
            codes = np.minimum(np.searchsorted(edges, numbers, side="right") - 1, values.size - 1)
        return np.where(inside, codes, -1).astype(np.int64)

    def _refuse(self, unknown: pa.Array) -> None:
        values = unknown.drop_null().unique()
        if not len(values):
            raise unknown_value_error(self.name, is_missing=True)
        shown = ", ".join(repr(value) for value in values[:_SHOWN].to_pylist())
        more = ", …" if len(values) > _SHOWN else ""
        raise unknown_value_error(self.name, is_missing=False, private=f"It holds: {shown}{more}.")


def _bins_of_whole(column: pa.Array, values: Bins) -> np.ndarray:
    """The indices of bins, −1 outside: of whole numbers, of which floats tell too few apart."""
    wide = pa.int64() if pa.types.is_signed_integer(column.type) else pa.uint64()
    numbers = pc.fill_null(column.cast(wide), 0).to_numpy(zero_copy_only=False)
    least, most = np.iinfo(numbers.dtype).min, np.iinfo(numbers.dtype).max
    firsts, last = [ceil(edge) for edge in values.edges], floor(values.edges[-1])
    reached = np.array([max(first, least) for first in firsts if first <= most], numbers.dtype)
    codes = np.minimum(np.searchsorted(reached, numbers, side="right") - 1, values.size - 1)
    inside = column.is_valid().to_numpy(zero_copy_only=False) & (last >= least)
    inside &= numbers <= np.array(min(max(last, least), most), numbers.dtype)
    return np.where(inside, codes, -1).astype(np.int64)


def float_width(kind: pa.DataType) -> str:
    """The type of the floating point numbers of a column: "float32"; of all else "float64"."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return f"float{kind.bit_width}" if pa.types.is_floating(kind) else "float64"


def compared_edges(name: str, values: Bins, width: str) -> np.ndarray:
    """The edges of an attribute's bins at the precision of a column, float64[k].

    The nearest number to 0.7 of 32 bits lies below that of 64, so that the edge has to be rounded
    as the records were. Edges too large or too small for the width stay as they are.

    Raises `DataError` if the column cannot tell two of them.
    """
    exact = np.array(values.edges)
    with np.errstate(over="ignore", under="ignore"):
        rounded = exact.astype(width).astype(np.float64)
    edges = np.where(np.isfinite(rounded) & ((rounded == 0) == (exact == 0)), rounded, exact)
    for index in np.flatnonzero(np.diff(edges) <= 0):
        raise DataError(
            f"The edges {exact[index]} and {exact[index + 1]} of attribute {name!r} are one number "
            f"at the precision of its column ({width}); leave one of them out, or store the column "
            "as float64."
        )
    return edges


def code_type(size: int) -> np.dtype:
    """The narrowest type for the signed codes of so many values."""
    return np.min_scalar_type(-max(size, 2))


def unknown_value_error(column: str, *, is_missing: bool, private: str = "") -> DataError:
    """The error for a value that is missing, or not in the domain."""
    what = "a missing value" if is_missing else "a value that is not in the codebook"
    return DataError(
        f"The column {column!r} holds {what}; correct the records or the codebook, or name a "
        f"category of {column!r} that takes such values (the option --unknown-values).",
        private=private,
    )


def coders(
    domain: Domain, attributes: Iterable[int], unknown_values: Mapping[str, str] | None
) -> dict[int, Coder]:
    """A coder for each of these attribute indices; errors are those of `unknown_codes`."""
    codes = unknown_codes(domain, unknown_values)
    return {
        index: Coder(domain.attributes[index], codes.get(index)) for index in sorted(attributes)
    }


def unknown_codes(domain: Domain, unknown_values: Mapping[str, str] | None) -> dict[int, int]:
    """Attribute index -> index of the category that takes what is missing or not in the domain.

    unknown_values: attribute name -> that category. Raises `DomainError` for an unknown name,
    `DataError` for an unknown category.
    """
    codes = {}
    for name, value in (unknown_values or {}).items():
        listed = domain[name].stored_values()
        value = normalize("NFC", value)
        if value not in listed:
            raise DataError(
                f"The category {value!r} is not one of attribute {name!r}; declare it in the "
                "codebook, or choose one that is there."
            )
        codes[domain.position(name)] = listed.index(value)
    return codes


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
    indices = pc.fill_null(column.indices.cast(pa.int64()), len(column.dictionary))
    return column.dictionary, indices.to_numpy(zero_copy_only=False)


def _in_range(column: pa.Array, least: int, most: int) -> tuple[pa.Array, np.ndarray]:
    wide = np.int64 if pa.types.is_signed_integer(column.type) else np.uint64
    values = pc.fill_null(column, least).to_numpy(zero_copy_only=False).astype(wide, copy=False)
    indices = (values - wide(least)).astype(np.int64, copy=False)
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


def refuse_nested(records: str, name: str, kind: pa.DataType) -> None:
    """Raise `DataError` for a column whose values are not plain."""
    if pa.types.is_nested(kind):
        raise DataError(
            f"The column {name!r} of {records!r} holds lists or structures; make it one plain "
            "value for each record."
        )


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
