"""What a column of an engine's table becomes there: the indices of values in the domain.

A value means exactly what it means in a file (`coding`): categories by their text, numbers by
arithmetic. Texts are compared as the hexadecimal digits of their UTF-8 bytes, so that no collation
takes two texts for one, and no text of a codebook is ever part of a statement.

Trailing blanks of PostgreSQL's char(n) are no part of a value, as everywhere in PostgreSQL.
"""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from math import ceil, floor
from typing import Any, Literal, TypeAlias
from unicodedata import normalize

import ibis
import ibis.expr.types as ir
import numpy as np
import pyarrow as pa

from rpexplore.data.amounts import SPLIT
from rpexplore.data.coding import (
    EXACT,
    EXACT_TEXT,
    MISSING,
    UNKNOWN,
    at_width,
    compared_edges,
    exact_text,
)
from rpexplore.domain.amounts import Amounts
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.categories import NUMBER_STEPS, WHOLE_TEXT, Categories
from rpexplore.domain.dates import BLANKS
from rpexplore.domain.domain import Domain
from rpexplore.domain.ordered_values import Dates, Integers, number_of
from rpexplore.errors import DataError

Value: TypeAlias = Any
"""A value in Ibis, whose annotations are narrower than what it takes."""

_NO_LIMIT = 2**63 - 1  # rows

_MOST_BINS = 512  # each is a part of the statement, which takes time to build and to read
_MOST_WHOLE = 2**62  # numbers whose size is below are whole numbers of 64 bits
_MOST_CASES = 24  # values that are compared one after the other; more are joined

_MAY_CHANGE = "^([+]|-?0.|-0$|-?[0-9]*[.])"  # a number that may not be in its one form
_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"


@ibis.udf.scalar.builtin(name="hex", signature=(("string",), "string"))
def _hex(text): ...


@ibis.udf.scalar.builtin(name="text", signature=((None,), "string"))
def sql_text(value): ...


@ibis.udf.scalar.builtin(name="convert_to", signature=(("string", "string"), "binary"))
def _bytes(text, encoding): ...


@ibis.udf.scalar.builtin(name="convert_from", signature=(("binary", "string"), "string"))
def _text(content, encoding): ...


@ibis.udf.scalar.builtin(name="encode", signature=(("binary", "string"), "string"))
def _encode(value, form): ...


@ibis.udf.scalar.builtin(name="decode", signature=(("string", "string"), "binary"))
def _decode(text, form): ...


@ibis.udf.scalar.builtin(name="timezone", signature=((None, None), "timestamp"))
def _at_zone(zone, time): ...


def in_default_collation(text: Value) -> Value:
    """A text of PostgreSQL with the collation of its database, whatever the column's is."""
    return _text(_bytes(sql_text(text), "UTF8"), "UTF8")


def code_columns(
    table: ir.Table,
    domain: Domain,
    attribute_indices: Sequence[int],
    engine: str,
    more: Mapping[str, Value],
) -> ir.Table:
    """Columns c0, c3, … of codes of these attributes, int32 (of amounts int64), and `more`.

    `UNKNOWN` and `MISSING` are codes, too. Amounts of DuckDB come as they are, v4: its decimals
    hold no more than 38 digits, so that they are read here. Raises `DataError` for a column of a
    kind that cannot be an attribute, or for more bins than a statement can hold.
    """
    given: dict[str, Value] = dict(more)
    joined: dict[int, Categories] = {}
    amounts: dict[int, Amounts] = {}
    for index in attribute_indices:
        attribute = domain.attributes[index]
        column = table[attribute.name]
        given[f"m{index}"] = _is_missing(column)
        values = attribute.values
        if isinstance(values, Amounts):
            if engine == "duckdb":
                if not column.type().is_floating():
                    plain_text(column)  # refuses kinds that cannot be counted
                given[f"v{index}"] = column
            else:
                amounts[index] = values
                given |= _amount_columns(column, index, values, engine)
        elif isinstance(values, Categories):
            text = _category_text(column, values, engine)
            if len(values.readings) > _MOST_CASES:
                joined[index] = values
                given[f"h{index}"] = hex_digits(text, engine)
            else:
                given[f"f{index}"] = _listed_code(text, values, engine)
        elif isinstance(values, Dates):
            given[f"f{index}"] = _of_date(column, attribute, values, engine)
        else:
            given[f"f{index}"] = _of_number(column, attribute, engine)
    # A table needs a column, also where all are counted together; COPY needs a whole number.
    records = table.select(**(given or {"any": ibis.literal(0, "int8")}))
    if amounts:
        records = computed_once(records, engine)
        codes = {f"f{index}": _of_amount(records, index, of) for index, of in amounts.items()}
        records = records.mutate(**codes)
    for index, values in joined.items():
        records = _join_codes(records, index, values)
    codes = {}
    for index in attribute_indices:
        if f"v{index}" in records.columns:
            codes[f"v{index}"] = records[f"v{index}"]
            continue
        values = domain.attributes[index].values
        empty = MISSING if isinstance(values, Categories) else values.missing_codes.get("", MISSING)
        code = _code(records, index, empty)
        codes[f"c{index}"] = code.cast("int64" if index in amounts else "int32")
    kept = {name: records[name] for name in (more if attribute_indices else records.columns)}
    return records.select(**kept, **codes)


def _is_missing(column: Value) -> Value:
    if column.type().is_floating():  # Ibis takes NaN for null in Spark; it equals itself in engines
        there: Value = ibis.coalesce(column == column, ibis.literal(False))
        is_nan: Value = column == ibis.literal("nan").cast(column.type())
        return ~there | ibis.coalesce(is_nan, ibis.literal(False))
    return column.isnull()


def hex_digits(text: Value, engine: str) -> Value:
    """The UTF-8 bytes of texts as hexadecimal digits, 0-9 and a-f."""
    if engine == "postgresql":
        return _encode(_bytes(sql_text(text), "UTF8"), "hex")
    digits: Value = _hex(text)
    return digits.lower()


def computed_once(table: ir.Table, engine: str) -> ir.Table:
    """The same table, whose columns are computed once a record, however often they are used.

    PostgreSQL puts the expression of a column wherever it is used, unless the rows are limited.
    """
    return table.limit(_NO_LIMIT) if engine == "postgresql" else table


def area_text(column: Value, engine: str) -> Value:
    """The code of an area as text."""
    return sql_text(as_text(column)) if engine == "postgresql" else as_text(column)


def _listed_digits(values: Categories) -> Iterator[tuple[str, int]]:
    """The digits and the code of each text, in both forms that Unicode has for it."""
    for value, code in {**values.readings, **values.texts}.items():
        for text in dict.fromkeys((value, normalize("NFD", value))):
            yield text.encode().hex(), code


def _listed_code(text: Value, values: Categories, engine: str) -> Value:
    """The code of a text that the codebook lists, null for any other."""
    plain: list[tuple[Value, Value]] = []
    others: list[tuple[str, Value]] = []
    for digits, number in _listed_digits(values):
        code: Value = ibis.literal(number, "int32")
        listed = bytes.fromhex(digits)
        # To make digits of a record takes PostgreSQL as long as some ten comparisons. Two of its
        # texts are equal if their bytes are (others: `in_default_collation`), and it makes a text
        # of the digits once for all records, if this is ASCII without what the form escapes.
        if engine == "postgresql" and listed.isascii() and not {*listed} & {*b"\0\\"}:
            plain.append((_encode(_decode(digits, "hex"), "escape"), code))
        else:
            others.append((digits, code))
    # The form that names the text once, so that it is made once.
    other: Value = hex_digits(text, engine).cases(*others) if others else ibis.null("int32")
    return sql_text(text).cases(*plain, else_=other) if plain else other


def as_text(column: Value) -> Value:
    """Each value as text, but for floating point numbers, which need to know what they may be."""
    kind = column.type()
    if kind.is_boolean():
        return ibis.cases((column, "true"), (~column, "false"))
    if kind.is_date():
        text: Value = column.strftime("%Y-%m-%d")
        # PostgreSQL writes the year before the first one as 0001, too.
        return ibis.ifelse(column < ibis.date(1, 1, 1), text + " BC", text)
    if kind.is_string():
        return column
    # Bits are neither: 0101 may be a number, or what is the same with other zeros in front.
    is_plain = kind.is_integer() or kind.is_decimal() or kind.is_uuid()
    is_bits = kind.is_unknown() and str(kind.raw_type).upper().startswith(("BIT", "VARBIT"))
    if is_plain or (kind.is_unknown() and not is_bits):
        return column.cast("string")
    stated = kind.raw_type if kind.is_unknown() else kind
    raise DataError(
        f"The column {column.get_name()!r} is of a kind ({stated}) that cannot be counted; make a "
        "column of text, of numbers or of dates from it, in a view say."
    )


def _time_text(column: Value) -> Value:
    """Times as 2026-01-31 13:30:00, in UTC if they have a zone; with a dot where there is more."""
    if column.type().timezone:
        column = _at_zone("UTC", column)
    time = _to_microseconds(column)
    is_all: Value = column == time.truncate("s")
    text: Value = time.strftime("%Y-%m-%d %H:%M:%S")
    return ibis.ifelse(is_all, text, text + ".")


def _to_microseconds(time: Value) -> Value:
    """A time without what is below microseconds.

    DuckDB rounds that up when it casts, and its functions overflow where seconds and milliseconds
    are beyond the years that nanoseconds know.
    """
    scale = time.type().scale
    if scale in (None, 6):
        return time
    rounded = time.cast("timestamp(6)")
    if scale < 6:
        return rounded
    return ibis.ifelse(rounded > time, rounded - ibis.interval(microseconds=1), rounded)


def plain_text(column: Value) -> Value:
    """As `as_text`, also of times."""
    return _time_text(column) if column.type().is_timestamp() else as_text(column)


def _category_text(column: Value, values: Categories, engine: str) -> Value:
    """Each value as text; of a float that is no whole number, only if it is in the codebook."""
    kind = column.type()
    if not kind.is_floating():
        text: Value = plain_text(column)
        if not values.numbers or kind.is_integer():
            return text
        text = sql_text(text) if engine == "postgresql" else text
        form = text
        for pattern, replacement in NUMBER_STEPS:
            form = form.re_replace(pattern, replacement)
        is_number = text.re_search(_MAY_CHANGE) & text.re_search(f"^({values.numbers})$")
        cases = [(is_number, form)]
        # Most records are written as the codebook is, and are looked at once: unpadded numbers, or
        # those of one width, which are looked up as they are.
        numbers = [listed for listed in values.texts if re.fullmatch(values.numbers, listed)]
        (width, *others) = {len(number) if number.isdecimal() else 0 for number in numbers}
        if width and not others and any(number[0] == "0" for number in numbers):
            cases.insert(0, (text.re_search(f"^[0-9]{{{width}}}$"), text))
        return ibis.cases(*cases, else_=text)
    whole = _is_whole(column)
    texts = ibis.ifelse(whole, column, as_float(0)).cast("int64").cast("string")
    width = _float_width(column)
    cases = [
        (column == ibis.literal(text).cast(width), text)
        for text in values.readings
        if _stands_for_float(text, values, width)
    ]
    # "" is no category: what is left is unknown.
    return ibis.cases((whole, texts), *cases, else_="")


def _float_width(column: Value) -> Literal["float32", "float64"]:
    """As `coding.float_width`."""
    return "float32" if column.type().is_float32() else "float64"


def _is_whole(number: Value) -> Value:
    # Larger ones and NaN are never rounded: engines refuse what fits no whole number.
    near: Value = ibis.ifelse(number.abs() <= as_float(EXACT), number, as_float(0.5))
    return near == near.floor()


def _stands_for_float(text: str, values: Categories, width: str) -> bool:
    """Whether a float of this width, but no small whole one, is read as this text."""
    try:
        with np.errstate(over="ignore"):
            number = np.dtype(width).type(text)
    except ValueError:
        return False
    if number == np.floor(number) and abs(number) <= EXACT:
        return False
    written = pa.scalar(number, pa.from_numpy_dtype(width)).cast(pa.string()).as_py()
    return values.form(written) == text


def _numbers(column: Value, engine: str) -> Value:
    """Each value as 64-bit floating point; null for what is missing or not a number."""
    kind = column.type()
    if kind.is_integer() or kind.is_floating():
        return column.cast("float64")
    if kind.is_boolean():
        return ibis.null("float64")
    text: Value = plain_text(column)
    if engine == "postgresql":
        text = sql_text(text)
    is_number = text.re_search(f"^[{BLANKS}]*{_NUMBER}[{BLANKS}]*$")
    digits = text.re_replace(f"[{BLANKS}]", "")
    if engine != "postgresql":
        return ibis.ifelse(is_number, digits, ibis.null("string")).try_cast("float64")
    short = _is_short(digits)
    nothing = (digits.length() <= 1000) & digits.re_search("[eE]-0*[1-9][0-9]{4}")
    shortened: Value = ibis.ifelse(short, digits, ibis.literal("0"))
    value = shortened.cast("decimal").abs()
    largest: Value = ibis.literal("1.7976931348623158e308")
    smallest: Value = ibis.literal("2.5e-324")
    # Far within the range of floating point, by how it is written.
    is_plain = (digits.length() <= 200) & ~digits.re_search("[eE][+-]?0*[1-9][0-9][0-9]")
    return ibis.cases(
        (is_number & is_plain, digits.cast("float64")),
        (
            is_number,
            ibis.cases(
                (nothing, as_float(0)),
                (~short, ibis.null("float64")),
                (value > largest.cast("decimal"), ibis.null("float64")),
                (value < smallest.cast("decimal"), as_float(0)),
                else_=digits.cast("float64"),
            ),
        ),
    )


def _is_short(digits: Value) -> Value:
    """Whether PostgreSQL's decimals hold a number that is written so."""
    return (digits.length() <= 1000) & ~digits.re_search("[eE][+-]?0*[1-9][0-9]{4}")


def _exact_numbers(column: Value, numbers: Value) -> Iterator[tuple[Value, Value]]:
    """Whether texts or decimals of PostgreSQL are numbers, and which, in cases one after another.

    numbers: of `_numbers`
    """
    if column.type().is_decimal():
        yield column.abs() <= _decimal(repr(sys.float_info.max)), column  # not a number is beyond
        return
    text: Value = sql_text(plain_text(column))
    # Most are written so, and are looked at once.
    is_plain = (text.length() <= 99) & text.re_search("^-?[0-9]+([.][0-9]+)?$")
    yield is_plain, _decimal(text)
    digits = text.re_replace(f"[{BLANKS}]", "")
    # Others are nearly 0, or have more decimals than PostgreSQL has.
    yield ~numbers.isnull() & _is_short(digits), _decimal(digits)
    yield ~numbers.isnull(), _decimal("0")


def _of_number(column: Value, attribute: Attribute, engine: str) -> Value:
    """The index of the range that a number lies in, or of its missing values; null outside."""
    values, kind = attribute.values, column.type()
    assert not isinstance(values, Categories | Dates | Amounts)
    numbers = _numbers(column, engine)
    missing = list(_missing_cases(column, numbers, values.codes_of_texts, engine))
    # Whole numbers are compared as such: floats tell too few of them apart.
    number: Value = column if kind.is_integer() else numbers
    if kind.is_integer() and kind.nbytes < 8:
        number = column.cast("int64")  # differences of few bits overflow
    if isinstance(values, Integers):
        minimum, maximum = (
            _whole(limit) if kind.is_integer() else as_float(limit)
            for limit in (values.minimum, values.maximum)
        )
        inside = (number >= minimum) & (number <= maximum)
        if not kind.is_integer():
            inside &= _is_whole(number)
        reaches_last = EXACT in (-values.minimum, values.maximum)
        if reaches_last and not (kind.is_integer() or kind.is_floating() or kind.is_boolean()):
            text: Any = sql_text(as_text(column)) if engine == "postgresql" else as_text(column)
            is_itself = text.re_search(f"^[{BLANKS}]*{EXACT_TEXT}[{BLANKS}]*$")
            inside &= (number.abs() < as_float(EXACT)) | is_itself
        # Nothing outside is ever cast: engines refuse what does not fit. PostgreSQL computes only
        # the case that holds.
        safe: Value = number if engine == "postgresql" else ibis.ifelse(inside, number, minimum)
        steps = whole_quotient(safe.cast("int64") - _whole(values.minimum), values.step)
        return ibis.cases(*missing, (inside, steps.cast("int32")))
    _check_number_of_bins(attribute)
    edges = compared_edges(attribute.name, values, _float_width(column)).tolist()
    last = edges[-1]
    if kind.is_integer():
        wide = number.cast("float64")
        reached = [
            number >= _whole(ceil(edge)) if abs(edge) < _MOST_WHOLE else wide >= as_float(edge)
            for edge in edges
        ]
        is_below = (
            number <= _whole(floor(last)) if abs(last) < _MOST_WHOLE else wide <= as_float(last)
        )
    else:
        reached = [number >= as_float(edge) for edge in edges]
        is_below = number <= as_float(last)
    index = _bin_index(reached, 0, values.n_ordered)
    return ibis.cases(*missing, (reached[0] & is_below, index))


def _check_number_of_bins(attribute: Attribute) -> None:
    if attribute.n_ordered > _MOST_BINS:
        raise DataError(
            f"The attribute {attribute.name!r} must have at most {_MOST_BINS:,} bins to be counted "
            f"in a database, got {attribute.n_ordered:,}; use fewer, or count an export of the "
            "records."
        )


# ---- Amounts, as `data.amounts` reads them: the products that are rounded, then codes of these.


def _amount_columns(column: Value, index: int, values: Amounts, engine: str) -> dict[str, Value]:
    """Columns of numbers in steps before they are rounded, y<index>; null for what is none.

    And n<index>, the code of a missing one. Of floats y<index> is without the sign, p<index> says
    whether they are positive, and e<index>, unless it is 0, by how much a product was rounded.
    """
    numbers, kind = _numbers(column, engine), column.type()
    missing = list(_missing_cases(column, numbers, values.codes_of_texts, engine))
    columns = {f"n{index}": ibis.cases(*missing) if missing else ibis.null("int32")}
    power = 10**values.decimals
    if kind.is_integer():
        near = _within(column.cast("int64"), _whole(floor(values.minimum)), ceil(values.maximum))
        columns[f"y{index}"] = ibis.ifelse(column.isnull(), ibis.null("int64"), near * power)
        return columns
    if kind.is_floating():
        ends = (values.lowest - 1) / power, (values.highest + 1) / power
        near = _within(numbers, *map(as_float, ends)).abs()  # of which rests are exact
        product = near * as_float(power)
        is_amount = ibis.coalesce(
            numbers.abs() <= as_float(sys.float_info.max), ibis.literal(False)
        )
        columns[f"y{index}"] = ibis.ifelse(is_amount, product, ibis.null("float64"))
        columns[f"p{index}"] = numbers > 0
        if values.decimals:
            upper = as_float(SPLIT) * near
            upper = upper - (upper - near)
            error = (upper * as_float(power) - product) + (near - upper) * as_float(power)
            columns[f"e{index}"] = ibis.ifelse(is_amount, error, ibis.null("float64"))
        return columns
    low, high = (_decimal(str(end)) for end in (values.minimum, values.maximum))
    columns[f"y{index}"] = ibis.cases(
        *(
            (is_one, _within(exact, low, high) * power)
            for is_one, exact in _exact_numbers(column, numbers)
        )
    )
    return columns


def _within(number: Value, low: Value, high: Value) -> Value:
    return ibis.least(ibis.greatest(number, low), high)


def _of_amount(records: ir.Table, index: int, values: Amounts) -> Value:
    """The code of an amount or of a missing one, of `_amount_columns`; null for what is neither."""
    number: Value = records[f"y{index}"]
    steps = number
    if not number.type().is_integer():
        whole: Value = number.floor()
        twice = (number - whole) * 2
        is_odd = whole.cast("int64") % 2 != 0
        is_up = is_odd
        if f"e{index}" in records.columns:
            error: Value = records[f"e{index}"]
            is_up = (error > 0) | ((error == 0) & is_odd)
        steps = whole.cast("int64") + ibis.ifelse((twice > 1) | ((twice == 1) & is_up), 1, 0)
    if f"p{index}" in records.columns:
        steps = ibis.ifelse(records[f"p{index}"], steps, -steps)
    steps = _within(steps, _whole(values.lowest), _whole(values.highest))
    code = ibis.ifelse(number.isnull(), ibis.null("int64"), steps + (values.size - values.lowest))
    return ibis.coalesce(records[f"n{index}"].cast("int64"), code)


def whole_quotient(number: Value, divisor: int) -> Value:
    """A whole number of at least 0, divided and rounded down."""
    if divisor == 1:
        return number
    by = _whole(divisor)
    return ((number - number % by) / by).cast("int64")


def _of_date(column: Value, attribute: Attribute, values: Dates, engine: str) -> Value:
    """The index of the group that a day lies in, or of its missing values; null outside."""
    is_day, year, month, day = _year_month_day(column, values, engine)
    key = year * 10_000 + month * 100 + day  # in the order of days
    cases = []
    for value, code in values.codes_of_texts.items():
        missing = values.missing_day(value)
        if missing is not None:
            cases.append((is_day & (key == _whole(_key(missing))), ibis.literal(code, "int32")))
    numbers = _numbers(column, engine)
    cases += _missing_cases(column, numbers, values.codes_of_texts, engine)
    cases += _written_periods(column, values, engine)
    first, last = (_whole(_key(end.toordinal())) for end in (values.first, values.last))
    inside = is_day & (key >= first) & (key <= last)
    if values.steps is None:
        _check_number_of_bins(attribute)
        reached = [key >= _whole(_key(start)) for start in values.starts]
        return ibis.cases(*cases, (inside, _bin_index(reached, 0, values.n_ordered)))
    number: Value = year * 12 + month - 1
    if not values.steps.months:
        before = whole_quotient(14 - month, 12)
        years, months = year + 4800 - before, month + 12 * before - 3
        number = day + whole_quotient(153 * months + 2, 5) + 365 * years - 1753470
        number += whole_quotient(years, 4) - whole_quotient(years, 100) + whole_quotient(years, 400)
    behind = number - _whole(values.steps.origin(values.first))
    # Nothing outside is ever divided or cast: the remainder of what is negative differs.
    safe = ibis.ifelse(inside, behind, _whole(0))
    return ibis.cases(*cases, (inside, whole_quotient(safe, values.steps.width).cast("int32")))


def _written_periods(column: Value, values: Dates, engine: str) -> Iterator[tuple[Value, Value]]:
    """Whether a value is the text of a whole period of a group, and the group's index."""
    kind = column.type()
    if kind.is_date() or kind.is_timestamp() or kind.is_boolean() or not values.written_periods:
        return
    text: Value = as_text(column) if not kind.is_floating() else _whole_text(column)
    text = sql_text(text) if engine == "postgresql" else text
    digits = hex_digits(text.re_replace(f"^[{BLANKS}]+|[{BLANKS}]+$", ""), engine)
    texts: dict[int, list[str]] = {}
    for period, group in values.written_periods.items():
        texts.setdefault(group, []).append(period.encode().hex())
    for group, forms in texts.items():
        yield digits.isin(forms), ibis.literal(group, "int32")


def _year_month_day(column: Value, values: Dates, engine: str) -> tuple[Value, Value, Value, Value]:
    """Whether a value is a day, and its year, month and day; as `coding.ordinals`."""
    kind = column.type()
    year: Value
    month: Value
    day: Value
    if kind.is_date() or kind.is_timestamp():
        time: Value = column
        is_day: Value = ~column.isnull()
        if kind.is_timestamp():
            time = _to_microseconds(_at_zone("UTC", column) if kind.timezone else column)
            if kind.timezone:
                is_day = time == time.truncate("D")
        # Engines have days without a year, too: infinity.
        days: Value = time.cast("date")
        is_day &= (days >= ibis.literal(date.min)) & (days <= ibis.literal(date.max))
        is_day = ibis.coalesce(is_day, ibis.literal(False))
        days = ibis.ifelse(is_day, days, ibis.null("date"))
        year, month, day = (part.cast("int64") for part in (days.year(), days.month(), days.day()))
    else:
        text: Value = as_text(column) if not kind.is_floating() else _whole_text(column)
        if engine == "postgresql":
            text = sql_text(text)
        reading = values.reading
        is_written = ibis.coalesce(text.re_search(reading.pattern), ibis.literal(False))
        year, month, day = (
            # Case by case: engines refuse to cast what is no number.
            ibis.ifelse(
                is_written, text.re_replace(reading.pattern, f"\\{group}"), ibis.literal("0")
            ).cast("int64")
            if group
            else _whole(1)
            for group in (reading.year, reading.month, reading.day)
        )
        is_leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
        is_day = is_written & (month >= 1) & (month <= 12) & (day >= 1)
        is_day &= (
            (day <= 28)
            | ((day == 29) & ((month != 2) | is_leap))
            | ((day == 30) & (month != 2))
            | ((day == 31) & month.isin([1, 3, 5, 7, 8, 10, 12]))
        )
    return is_day & (year >= 1) & (year <= 9999), year, month, day


def _key(ordinal: int) -> int:
    day = date.fromordinal(ordinal)
    return day.year * 10_000 + day.month * 100 + day.day


def _whole_text(column: Value) -> Value:
    """A float that is a whole number as text, "" for others."""
    whole = _is_whole(column)
    text = ibis.ifelse(whole, column, as_float(0)).cast("int64").cast("string")
    return ibis.ifelse(whole, text, ibis.literal(""))


def _missing_cases(
    column: Value, number: Value, codes: Mapping[str, int], engine: str
) -> Iterator[tuple[Value, Value]]:
    """Whether a value is one of the missing ones, and its code."""
    kind = column.type()
    is_text = not (kind.is_numeric() or kind.is_boolean())
    width = _float_width(column)
    digits = None
    for value, code in codes.items():
        literal = ibis.literal(code, "int32")
        missing = number_of(value)
        if missing is not None:
            is_value: Value = number == as_float(float(at_width(missing, width)))
            if abs(missing) >= EXACT and not kind.is_floating() and not kind.is_boolean():
                # Whole numbers that floats cannot tell from this one are compared by their digits.
                written: Value = plain_text(column)
                written = sql_text(written) if engine == "postgresql" else written
                written = written.re_replace(f"^[{BLANKS}]+|[{BLANKS}]+$", "")
                is_whole = written.re_search(f"^{WHOLE_TEXT}$")
                is_value &= ~is_whole | written.re_search(exact_text(Decimal(value)))
            yield is_value, literal
        elif is_text:
            if digits is None:
                text: Value = plain_text(column)
                text = sql_text(text) if engine == "postgresql" else text
                trimmed = text.re_replace(f"^[{BLANKS}]+|[{BLANKS}]+$", "")
                digits = hex_digits(trimmed, engine)
            forms = dict.fromkeys((value, normalize("NFD", value)))
            yield digits.isin([form.encode().hex() for form in forms]), literal


def _bin_index(reached: Sequence[Value], first: int, end: int) -> Value:
    """The last of the bins first … end−1 whose left edge is reached."""
    if end - first == 1:
        return ibis.literal(first, "int32")
    middle = (first + end) // 2
    return ibis.ifelse(
        reached[middle],
        _bin_index(reached, middle, end),
        _bin_index(reached, first, middle),
    )


def _join_codes(records: ir.Table, index: int, values: Categories) -> ir.Table:
    """With the column f<index>: where the text h<index> stands in a list.

    The list is one text in the statement, taken apart there: nothing is written to the engine, and
    no parser has to read a million values.
    """
    entries = (f"{digits} {code}" for digits, code in _listed_digits(values))
    text: Value = ibis.literal(",".join(entries))
    listed = text.split(",").unnest().name("entry").as_table()
    parts = listed.entry.split(" ")
    listed = listed.select(**{f"l{index}": parts[0], f"f{index}": parts[1].cast("int32")})
    return records.left_join(listed, records[f"h{index}"] == listed[f"l{index}"]).drop(
        f"h{index}", f"l{index}"
    )


def _code(records: ir.Table, index: int, empty: int) -> Value:
    nothing, unknown = ibis.literal(empty, "int32"), ibis.literal(UNKNOWN, "int32")
    # Not a number is missing, unless it is a category.
    other: Value = ibis.ifelse(records[f"m{index}"], nothing, unknown)
    return ibis.coalesce(records[f"f{index}"], other)


def _whole(value: int) -> Value:
    return ibis.literal(value, "int64")


def as_float(value: float) -> Value:
    """A number as text that the engine parses: exact whatever it takes literals for."""
    return ibis.literal(repr(float(value))).cast("float64")


def _decimal(text: Value) -> Value:
    """A text that writes a number as a decimal of PostgreSQL, of any length."""
    written: Value = ibis.literal(text) if isinstance(text, str) else text
    return written.cast("decimal")
