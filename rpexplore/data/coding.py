"""Coding: the category index of every value in a column, by its distinct values.

Columns hold few distinct values, or whole numbers of a narrow range: only these are compared with
the domain, and records look their indices up. What a value means never depends on the others.
"""

# pyarrow.compute makes its functions when it is imported, so pyright cannot know them.
# pyright: reportAttributeAccessIssue=false

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from math import ceil, floor
from typing import Any
from unicodedata import normalize

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rpexplore.common.text import joined
from rpexplore.data.amounts import code_size, codes_of_amounts
from rpexplore.data.arrow_values import as_numbers, as_text, distinct_values, of_known_type
from rpexplore.domain.amounts import Amounts
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.categories import NUMBER_STEPS, WHOLE_TEXT, Categories
from rpexplore.domain.dates import BLANKS, Reading, reading_of
from rpexplore.domain.domain import Domain
from rpexplore.domain.ordered_values import Bins, Dates, Integers, number_of
from rpexplore.domain.universe import BOOLEANS, DAYS, NUMBERS
from rpexplore.domain.values import index_by_value
from rpexplore.errors import DataError

_SHOWN = 5  # distinct values named on the screen
_DECIMAL_COMMA = r"^(\s*[+-]?\d*),(\d+(?:[eE][+-]?\d+)?\s*)$"
_DECIMAL_POINT = r"^\s*[+-]?\d*[.]\d+(?:[eE][+-]?\d+)?\s*$"
EXACT = 2**53
"""The last whole number that a float of 64 bits tells from the next: 2^53 + 1 becomes it."""
EXACT_TEXT = f"[+-]?0*{EXACT}([.]0*)?"
"""How that number is written where it is no float."""

UNKNOWN, MISSING = -1, -2
"""The codes of what is not in the domain, and of what is missing, until it is refused or taken."""

EVERY = "*"
"""Stands for all attributes that have the category that is named with it."""

_UNKNOWN_VALUE = "a value that is not in the codebook"
_UNKNOWN_VALUES = "values that are not in the codebook"


EPOCH = date(1970, 1, 1).toordinal()
_UTC = ("UTC", "Etc/UTC", "GMT", "Z", "+00:00", "+0000")


@dataclass(frozen=True)
class Declared:
    """What the records themselves declare to stand for no answer in a column.

    ranges       of numbers, both ends included; of days as ordinals if they are days
    texts        what is read of letters such as .a
    are_days     whether the ranges are of days
    exact_below  of a column that is stored as numbers, whatever it is read as: whole ones below it
                 are stored as they were
    """

    ranges: tuple[tuple[float, float], ...] = ()
    texts: tuple[str, ...] = ()
    are_days: bool = False
    exact_below: float = np.inf

    def are_rounded(self, column: pa.Array) -> np.ndarray:
        """Whether each value may stand for several numbers that were rounded to it, bool[n]."""
        if self.exact_below == np.inf:
            return np.zeros(len(column), bool)
        numbers = as_numbers(column)
        is_exact = (numbers == np.floor(numbers)) & (np.abs(numbers) < self.exact_below)
        return ~is_exact & ~np.isnan(numbers)

    def where(self, column: pa.Array) -> np.ndarray:
        """Whether each value is one of these, bool[n]."""
        are_declared = np.zeros(len(column), bool)
        if self.ranges:
            numbers = ordinals(column, reading_of("")) if self.are_days else as_numbers(column)
            for low, high in self.ranges:
                are_declared |= (numbers >= low) & (numbers <= high)
        if self.texts and pa.types.is_string(column.type):
            listed = pc.is_in(column, value_set=pa.array(self.texts, pa.string()))
            are_declared |= listed.to_numpy(zero_copy_only=False)
        return are_declared


class Coder:
    """Turns a column's values into category indices.

    Each record is coded by itself: what a value means never depends on the other records, so
    that adding a record changes the counts by that record alone.

    declared: what the file itself declares missing
    has_decimal_commas: whether texts have numbers with a decimal comma
    """

    def __init__(
        self,
        attribute: Attribute,
        declared: Declared | None = None,
        *,
        has_decimal_commas: bool = False,
    ) -> None:
        self.name, self._values, self._declared = attribute.name, attribute.values, declared
        self._has_decimal_commas = has_decimal_commas
        self._marks: set[str] = set()  # before decimals, in texts so far
        if isinstance(self._values, Categories):
            readings = self._values.readings
            self._listed = pa.array(list(readings), pa.string())
            self._code_of_listed = np.array([*readings.values(), UNKNOWN], np.int64)
        if isinstance(self._values, Dates):
            self._starts = np.asarray(self._values.starts)
        self._edges: dict[str, np.ndarray] = {}  # by the width of floats that they are compared at
        self._size = code_size(attribute)
        self.dtype = np.min_scalar_type(self._size - 1)

    def signed_codes(self, column: pa.Array) -> np.ndarray:
        """Category indices [n], signed, with `UNKNOWN` and `MISSING` for what is in no category.

        Amounts have codes of their own (`amounts`).
        """
        codes, indices = self._distinct_codes(column)
        # Not codes[indices], which takes half as long again.
        return np.take(codes.astype(code_type(self._size)), indices)

    def _distinct_codes(self, column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
        """Codes int64[k + 1] of some values, the last that of nothing; and whose is which."""
        distinct, indices = distinct_values(column)
        values = of_known_type(distinct)
        is_missing = pc.is_null(values, nan_is_null=True).to_numpy(zero_copy_only=False)
        if isinstance(self._values, Dates):
            codes = self._codes_of_days(self._values, distinct, values)
        else:
            codes = self._codes_of(values, float_width(column.type))
            if pa.types.is_timestamp(distinct.type):
                of_times = self._codes_of(_text_of_times(distinct), "float64")
                codes = np.where(codes == UNKNOWN, of_times, codes)
        codes = np.append(codes, UNKNOWN)
        empty = MISSING
        if not isinstance(self._values, Categories):
            empty = self._values.missing_codes.get("", MISSING)
        codes[np.append(is_missing, True) & (codes < 0)] = empty
        return codes, indices

    def _codes_of(self, column: pa.Array, width: str) -> np.ndarray:
        """Category indices, int64[n], below 0 for what is missing or not in the domain.

        width: of the floating point numbers that the column was read as
        """
        values = self._values
        are_texts = isinstance(values, Categories) and not values.are_numbers
        if self._has_decimal_commas and not are_texts and pa.types.is_string(column.type):
            column = self._with_points(column)
        if isinstance(values, Categories):
            texts = pc.utf8_normalize(as_text(column), form="NFC")
            if values.numbers:
                form = texts
                for pattern, replacement in NUMBER_STEPS:
                    form = pc.replace_substring_regex(form, pattern, replacement)
                is_number = pc.match_substring_regex(texts, f"^({values.numbers})$")
                texts = pc.if_else(is_number, form, texts)
            places = pc.index_in(texts, value_set=self._listed, skip_nulls=True)
            codes = self._code_of_listed[pc.fill_null(places, -1).to_numpy(zero_copy_only=False)]
            if self._declared is not None:
                codes[(codes == UNKNOWN) & self._declared.where(column)] = MISSING
            return codes
        assert not isinstance(values, Dates)
        if pa.types.is_boolean(column.type):  # yes and no are no numbers
            return np.full(len(column), UNKNOWN)
        numbers = as_numbers(column)
        if isinstance(values, Integers):
            codes = _groups_of_whole(column, numbers, values)
        elif isinstance(values, Amounts):
            codes = codes_of_amounts(column, numbers, values)
        elif pa.types.is_integer(column.type):
            codes = _bins_of_whole(column, values)
        else:
            edges = self._edges.get(width)
            if edges is None:
                edges = self._edges[width] = compared_edges(self.name, values, width)
            inside = (numbers >= edges[0]) & (numbers <= edges[-1])
            last = values.n_ordered - 1
            codes = np.minimum(np.searchsorted(edges, numbers, side="right") - 1, last)
            codes = np.where(inside, codes, UNKNOWN).astype(np.int64)
        if self._declared is not None:
            codes[self._declared.where(column)] = MISSING
        for value, code in values.codes_of_texts.items():  # they go before the numbers
            codes[_are_missing(value, column, numbers, width)] = code
        return codes

    def _with_points(self, texts: pa.Array) -> pa.Array:
        """Texts whose numbers have a point in the place of a decimal comma.

        Raises `DataError` where some have a comma and others a point, in whatever batch.
        """
        for mark, pattern in ((",", _DECIMAL_COMMA), (".", _DECIMAL_POINT)):
            if pc.any(pc.match_substring_regex(texts, pattern)).as_py():
                self._marks.add(mark)
        if len(self._marks) > 1:
            raise DataError(
                f"The column {self.name!r} has some numbers with a decimal comma and others with a "
                "point, so that nobody can say what 1.000 is; write all of them alike, and "
                "leave thousands unmarked."
            )
        return pc.replace_substring_regex(texts, _DECIMAL_COMMA, r"\1.\2")

    def _codes_of_days(self, values: Dates, column: pa.Array, plain: pa.Array) -> np.ndarray:
        """Group indices of days, int64[n], below 0 for what is missing or in no group.

        plain: the column as `of_known_type`
        """
        if pa.types.is_timestamp(column.type):
            refuse_zone(self.name, column.type.tz)
        days = ordinals(column, values.reading)
        first, last = values.first.toordinal(), values.last.toordinal()
        codes = np.searchsorted(self._starts, days, side="right") - 1
        codes = np.where((days >= first) & (days <= last), codes, UNKNOWN).astype(np.int64)
        unknown = codes == UNKNOWN
        if values.written_periods and unknown.any() and not pa.types.is_temporal(plain.type):
            periods = pa.array(list(values.written_periods), pa.string())
            texts = pc.utf8_trim(as_text(plain.filter(pa.array(unknown))), BLANKS)
            places = pc.fill_null(pc.index_in(texts, value_set=periods, skip_nulls=True), -1)
            groups = np.array([*values.written_periods.values(), UNKNOWN], np.int64)
            codes[unknown] = groups[places.to_numpy(zero_copy_only=False)]
        if self._declared is not None:
            codes[self._declared.where(plain)] = MISSING
        numbers = as_numbers(plain)
        for value, code in values.codes_of_texts.items():
            day = values.missing_day(value)
            if day is not None:
                codes[days == day] = code
            codes[_are_missing(value, plain, numbers, "float64")] = code
        return codes


def kind_of(column: pa.Array) -> str:
    """What a column holds by its type, as universes have it; "" for texts, others, or nothing."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_boolean(kind):
        held = BOOLEANS
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        held = NUMBERS
    else:
        held = DAYS if pa.types.is_date(kind) or pa.types.is_timestamp(kind) else ""
    # Where all is missing some sources have any type.
    return "" if held and pc.all(pc.is_null(column, nan_is_null=True)).as_py() else held


def _are_missing(value: str, column: pa.Array, numbers: np.ndarray, width: str) -> np.ndarray:
    """Whether each value of a column is this missing one of a codebook, bool[n].

    numbers: the column as floats of 64 bits
    width: of the floating point numbers that it was read as
    """
    number = number_of(value)
    is_text = pa.types.is_string(column.type)
    if number is not None:
        equal = numbers == at_width(number, width)
        if abs(number) < EXACT or not equal.any() or pa.types.is_floating(column.type):
            return equal
        # Whole numbers that floats cannot tell from this one are compared by their digits.
        exact = Decimal(value)
        if not is_text:
            column = column.cast(pa.string())
        texts = pc.utf8_trim_whitespace(column)
        is_whole = pc.fill_null(pc.match_substring_regex(texts, f"^{WHOLE_TEXT}$"), False)
        is_itself = pc.fill_null(pc.match_substring_regex(texts, exact_text(exact)), False)
        is_near = ~is_whole.to_numpy(zero_copy_only=False)
        return equal & (is_near | is_itself.to_numpy(zero_copy_only=False))
    if not is_text:
        return np.zeros(len(column), bool)
    texts = pc.utf8_trim_whitespace(pc.utf8_normalize(column, form="NFC"))
    return pc.fill_null(pc.equal(texts, value), False).to_numpy(zero_copy_only=False)


def exact_text(number: Decimal) -> str:
    """A regular expression of how a whole number is written; of no text for another number."""
    if number != number.to_integral_value():
        return "^a^"
    sign = "-" if number < 0 else "[+]?"
    return f"^{sign}0*{abs(int(number))}([.]0*)?$"


def ordinals(column: pa.Array, reading: Reading) -> np.ndarray:
    """The day of each value, int64[n], as of `date.toordinal`; 0 for what is none, or not known.

    A time falls into its day, unless it has a zone: then it must be the midnight of UTC.

    reading: how texts write a day
    """
    kind = column.type
    if pa.types.is_date(kind):
        days = pc.fill_null(column.cast(pa.date32()).cast(pa.int32()).cast(pa.int64()), -EPOCH)
        days = days.to_numpy(zero_copy_only=False) + EPOCH
    elif pa.types.is_timestamp(kind):
        per_day = 86_400 * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
        there = column.is_valid().to_numpy(zero_copy_only=False)
        since = pc.fill_null(column.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
        days, time = np.divmod(since, per_day)
        is_day = there & ((time == 0) & (kind.tz in _UTC) | (kind.tz is None))
        days = np.where(is_day, days + EPOCH, 0)
    else:
        texts = as_text(of_known_type(column))
        are_days = pc.match_substring_regex(texts, reading.pattern)
        texts = pc.if_else(pc.fill_null(are_days, False), texts, pa.scalar(None, pa.string()))
        year, month, day = (
            pc.fill_null(
                pc.replace_substring_regex(texts, reading.pattern, f"\\{group}").cast(pa.int64()),
                0,
            ).to_numpy(zero_copy_only=False)
            if group
            else np.ones(len(texts), np.int64)
            for group in (reading.year, reading.month, reading.day)
        )
        days = ordinal_of(year, month, day)
        is_last = np.where(month == 12, 1, 0)
        next_month = ordinal_of(year + is_last, np.where(month == 12, 1, month + 1), 1)
        is_day = (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1) & (days < next_month)
        days = np.where(is_day, days, 0)
    return np.where((days >= 1) & (days <= date.max.toordinal()), days, 0)


def ordinal_of(year: Any, month: Any, day: Any) -> Any:
    """The number of a day, as of `date.toordinal`; arrays or numbers, of years from 1 on."""
    before = (14 - month) // 12  # 1 in January and February, which end a year here
    year, month = year + 4800 - before, month + 12 * before - 3
    days = day + (153 * month + 2) // 5 + 365 * year + year // 4 - year // 100 + year // 400
    return days - 1753470


def refuse_zone(name: str, zone: str | None) -> None:
    """Raise `DataError` for times that no day follows from: those of a zone other than UTC."""
    if zone not in (None, *_UTC):
        raise DataError(
            f"The column {name!r} holds times in the zone {zone}, and which day one is in depends "
            "on the zone; make a column of dates from it."
        )


def _text_of_times(column: pa.Array) -> pa.Array:
    """Times as 2026-01-31 13:30:00; those with a zone in UTC, others as they are."""
    texts = of_known_type(column)
    if column.type.tz not in (None, *_UTC):
        return texts
    second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[column.type.unit]
    since = column.cast(pa.int64())
    is_whole = pc.equal(since, pc.multiply(pc.divide(since, second), second))
    return pc.if_else(is_whole, pc.utf8_slice_codeunits(texts, 0, 19), texts)


def _groups_of_whole(column: pa.Array, numbers: np.ndarray, values: Integers) -> np.ndarray:
    """The indices of groups of whole numbers, `UNKNOWN` for all else.

    numbers: the column as floats, which cannot tell the last of them (`EXACT`) from the next
    """
    inside = (numbers >= values.minimum) & (numbers <= values.maximum)
    inside &= numbers == np.floor(numbers)
    is_last = inside & (np.abs(numbers) == EXACT)
    if np.any(is_last) and not pa.types.is_floating(column.type):
        texts = pc.utf8_trim_whitespace(column.cast(pa.string()))
        is_itself = pc.fill_null(pc.match_substring_regex(texts, f"^{EXACT_TEXT}$"), False)
        inside &= ~is_last | is_itself.to_numpy(zero_copy_only=False)
    whole = np.where(inside, numbers, values.minimum).astype(np.int64)
    return np.where(inside, (whole - values.minimum) // values.step, UNKNOWN)


def _bins_of_whole(column: pa.Array, values: Bins) -> np.ndarray:
    """The indices of bins of whole numbers, of which floats tell too few; `UNKNOWN` outside."""
    wide = pa.int64() if pa.types.is_signed_integer(column.type) else pa.uint64()
    numbers = pc.fill_null(column.cast(wide), 0).to_numpy(zero_copy_only=False)
    least, most = np.iinfo(numbers.dtype).min, np.iinfo(numbers.dtype).max
    firsts, last = [ceil(edge) for edge in values.edges], floor(values.edges[-1])
    reached = np.array([max(first, least) for first in firsts if first <= most], numbers.dtype)
    codes = np.minimum(np.searchsorted(reached, numbers, side="right") - 1, values.n_ordered - 1)
    inside = column.is_valid().to_numpy(zero_copy_only=False) & (last >= least)
    inside &= numbers <= np.array(min(max(last, least), most), numbers.dtype)
    return np.where(inside, codes, UNKNOWN).astype(np.int64)


def float_width(kind: pa.DataType) -> str:
    """The type of the floating point numbers of a column: "float32"; of all else "float64"."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return f"float{kind.bit_width}" if pa.types.is_floating(kind) else "float64"


def at_width(numbers: Any, width: str) -> np.ndarray:
    """Numbers of a codebook at the precision of a column, float64[…].

    The nearest number to 0.7 of 32 bits lies below that of 64, so that what is compared with the
    records has to be rounded as they were. What is too large or too small for the width stays.
    """
    exact = np.asarray(numbers, dtype=np.float64)
    with np.errstate(over="ignore", under="ignore"):
        rounded = exact.astype(width).astype(np.float64)
    return np.where(np.isfinite(rounded) & ((rounded == 0) == (exact == 0)), rounded, exact)


def compared_edges(name: str, values: Bins, width: str) -> np.ndarray:
    """The edges of an attribute's bins at the precision of a column, float64[k].

    Between two neighbouring floats of 64 bits lies the lower one alone, and the same holds at the
    width of the column. Raises `DataError` if the column cannot tell two edges.
    """
    exact = np.asarray(values.edges, dtype=np.float64)
    edges = at_width(exact, width)
    is_alone = np.flatnonzero(np.nextafter(exact[:-1], np.inf) == exact[1:])
    with np.errstate(over="ignore", under="ignore"):
        alone = edges[is_alone].astype(width)
        following = np.nextafter(alone, np.array(np.inf, width)).astype(np.float64)
    edges[is_alone + 1] = np.where(np.isfinite(following), following, exact[is_alone + 1])
    for index in np.flatnonzero(np.diff(edges) <= 0):
        raise DataError(
            f"The edges {values.edges[index]} and {values.edges[index + 1]} of attribute {name!r} "
            f"are one number at the precision of its column ({width}); leave one of them out, or "
            "store the column as float64."
        )
    return edges


def code_type(size: int) -> np.dtype:
    """The narrowest type for the signed codes of so many values."""
    return np.min_scalar_type(-max(size, 2))


@dataclass(frozen=True)
class Takers:
    """The categories that take what is missing, and what is not in the codebook.

    missing  attribute index -> the code of the category that takes missing values
    unknown  attribute index -> the same for values that are not in the codebook

    What has no taker is refused.
    """

    missing: Mapping[int, int] = field(default_factory=dict)
    unknown: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        domain: Domain,
        unknown_values: Mapping[str, str] | None = None,
        missing_values: Mapping[str, str] | None = None,
    ) -> "Takers":
        """Those of attribute names and their categories; errors are those of `taker_codes`."""
        return cls(taker_codes(domain, missing_values), taker_codes(domain, unknown_values))

    def taken(self, index: int, codes: np.ndarray) -> np.ndarray:
        """The signed codes of an attribute with the takers in place of what they take."""
        for code, takers in ((MISSING, self.missing), (UNKNOWN, self.unknown)):
            if index in takers:
                codes = np.where(codes == code, codes.dtype.type(takers[index]), codes)
        return codes


@dataclass
class Faults:
    """How many values of each attribute are missing, or not in the codebook. Private.

    n_missing, n_unknown  attribute index -> how many
    examples              attribute index -> some values that are not in the codebook
    """

    domain: Domain
    takers: Takers
    n_missing: dict[int, int] = field(default_factory=dict)
    n_unknown: dict[int, int] = field(default_factory=dict)
    examples: dict[int, list[Any]] = field(default_factory=dict)

    def codes(self, index: int, column: pa.Array, coder: Coder) -> np.ndarray:
        """Category indices of a column, unsigned; 0 for what is refused in the end."""
        codes = coder.signed_codes(column)
        if len(codes) and codes.min() < 0:
            self.add(index, np.sum(codes == UNKNOWN), np.sum(codes == MISSING))
            if index not in self.takers.unknown:
                self._add_examples(index, column.filter(pa.array(codes == UNKNOWN)))
            codes = np.maximum(self.takers.taken(index, codes), 0)
        return codes.astype(coder.dtype)

    def add(self, index: int, n_unknown: int, n_missing: int) -> None:
        for counts, n in ((self.n_unknown, n_unknown), (self.n_missing, n_missing)):
            if n:
                counts[index] = counts.get(index, 0) + int(n)

    def _add_examples(self, index: int, unknown: pa.Array) -> None:
        seen = self.examples.setdefault(index, [])
        if len(seen) <= _SHOWN:
            values = of_known_type(unknown).unique().to_pylist()
            seen += [value for value in values if value not in seen][: _SHOWN + 1 - len(seen)]

    def refuse(self) -> None:
        """Raise `DataError` for all that nothing takes, in all columns."""
        unknown = [index for index in sorted(self.n_unknown) if index not in self.takers.unknown]
        missing = [index for index in sorted(self.n_missing) if index not in self.takers.missing]
        if not unknown and not missing:
            return
        names = self.domain.names
        faults, remedies = [], []
        for indices, one, several, option in (
            (missing, "a missing value", "missing values", "--missing-values"),
            (unknown, _UNKNOWN_VALUE, _UNKNOWN_VALUES, "--unknown-values"),
        ):
            if indices:
                columns = joined([repr(names[index]) for index in indices])
                is_one = len(indices) == 1
                noun = "column" if is_one else "columns"
                hold = f"holds {one}" if is_one else f"hold {several}"
                faults.append(f"the {noun} {columns} {hold}")
                remedies.append(option)
        refused = dict.fromkeys([*missing, *unknown])
        whose = f"category of {names[next(iter(refused))]!r} that takes"
        if len(refused) > 1:
            whose = "category of each that takes"
        options = " and ".join(remedies)
        lacking = [names[i] for i in refused if not _takers_of(self.domain.attributes[i])]
        need = ""
        if lacking:
            need = f"; give {joined([*map(repr, lacking)])} missingValues in the codebook for that"
        text = " and ".join(faults)
        raise DataError(
            f"{text[0].upper()}{text[1:]}; correct the records or the codebook, or name a {whose} "
            f"such values (the option{'s' if len(remedies) > 1 else ''} {options}){need}.",
            private=" ".join([*self._sentences(missing, unknown)]),
        )

    def _sentences(self, missing: Sequence[int], unknown: Sequence[int]) -> Iterator[str]:
        """How many values are refused in each column, and some of them."""
        for index in missing:
            yield f"{self.domain.names[index]!r}: {self.n_missing[index]:,} missing."
        for index in unknown:
            text = f"{self.domain.names[index]!r}: {self.n_unknown[index]:,} not in the codebook"
            if examples := self.examples.get(index):
                more = ", …" if len(examples) > _SHOWN else ""
                text += f". It holds: {', '.join(map(repr, examples[:_SHOWN]))}{more}"
            yield f"{text}."

    def taken(self) -> tuple[tuple[str, str, int, str], ...]:
        """Attribute, "missing" or "not in the codebook", how many, and counted as what."""
        return tuple(
            (attribute.name, what, counts[index], attribute.values.label(takers[index]))
            for index, attribute in enumerate(self.domain)
            for what, counts, takers in (
                ("missing", self.n_missing, self.takers.missing),
                ("not in the codebook", self.n_unknown, self.takers.unknown),
            )
            if index in counts and index in takers
        )


def coders(
    domain: Domain,
    attributes: Iterable[int],
    declared: Mapping[str, Declared] | None = None,
    *,
    has_decimal_commas: bool = False,
) -> dict[int, Coder]:
    """A coder for each of these attribute indices.

    declared: column -> what the records themselves declare missing
    has_decimal_commas: whether texts have numbers with a decimal comma
    """
    said = declared or {}
    return {
        index: Coder(
            domain.attributes[index],
            said.get(domain.names[index]),
            has_decimal_commas=has_decimal_commas,
        )
        for index in sorted(attributes)
    }


def taker_codes(domain: Domain, takers: Mapping[str, str] | None) -> dict[int, int]:
    """Attribute index -> index of the category that takes what is in none.

    takers: attribute name -> that category; "*" stands for all other attributes that have it.
    Raises `DomainError` for an unknown name, `DataError` for a category that cannot take anything.
    """
    codes = {}
    for name, value in with_all(domain, takers or {}).items():
        attribute, value = domain[name], normalize("NFC", value)
        code = index_by_value(attribute).get(value)
        if code is None:
            raise DataError(
                f"The category {value!r} is not one of attribute {name!r}; declare it in the "
                "codebook, or choose one that is there."
            )
        if code not in _takers_of(attribute):
            raise DataError(
                f"The value {value!r} of attribute {name!r} is of real numbers, and cannot take "
                'what is no number; give the attribute "missingValues" in the codebook, and name '
                "their label."
            )
        codes[domain.position(name)] = code
    return codes


def able_to_take(attribute: Attribute) -> list[str]:
    """The values, as they are stored, that can take what is in no category."""
    stored = attribute.stored_values()
    return [stored[code] for code in _takers_of(attribute)]


def _takers_of(attribute: Attribute) -> range:
    """The codes that can take what is in no category; of numbers, the cells for missing ones."""
    is_listed = isinstance(attribute.values, Categories)
    return range(0 if is_listed else attribute.n_ordered, attribute.size)


def with_all(domain: Domain, takers: Mapping[str, str]) -> dict[str, str]:
    """The takers by attribute, as they are stored, with those that "*" stands for.

    What names one may be its label, which stands for another value in another codebook. Attributes
    and values that are not there stay as they are. Raises `DataError` if "*" stands for none.
    """
    having: dict[str, str] = {}
    if EVERY in takers and EVERY not in domain:
        value = normalize("NFC", takers[EVERY])
        # What is named in two ways, as it is stored and by its label, is meant where it can take.
        having = {
            attribute.name: _as_stored(attribute, value)
            for attribute in domain
            if index_by_value(attribute).get(value, -1) in _takers_of(attribute)
        }
        if not having:
            raise DataError(
                f"No attribute has the value {value!r} that is to take values of all ({EVERY}); "
                "declare it in the codebook, or choose one that is there."
            )
        takers = {name: value for name, value in takers.items() if name != EVERY}
    for name, value in takers.items():
        if name in domain:
            attribute = domain[name]
            having[attribute.name] = _as_stored(attribute, normalize("NFC", value))
        else:  # which is refused where records are counted
            having[name] = value
    return having


def _as_stored(attribute: Attribute, value: str) -> str:
    code = index_by_value(attribute).get(value)
    return value if code is None else attribute.stored_values()[code]
