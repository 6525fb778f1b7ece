"""Columns of Parquet files of every type, and each record coded by itself."""

import datetime
import math

import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpexplore import Bins, Categories, Dates, Integers
from tests.data.files.written_records import (
    DIGITS,
    NONE,
    NUMBERED,
    SECRET,
    codes,
    domain_of,
    refusal,
    stored,
)

# --- types of Parquet columns

TEXT_TYPES = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.binary(),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.int32(), pa.large_string()),
]
NUMBER_TYPES = [
    pa.int8(),
    pa.int64(),
    pa.uint8(),
    pa.uint64(),
    pa.float16(),
    pa.float32(),
    pa.float64(),
    pa.decimal128(10, 2),
]


def text_array(texts: list[str | None], type_: pa.DataType) -> pa.Array:
    if type_ == pa.string_view():
        return pa.array(texts, type_)
    return pa.array(texts, pa.string()).cast(type_)


def number_array(numbers: list[int | None], type_: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(type_):
        return pa.array(numbers, pa.decimal128(30, 0)).cast(type_)
    return pa.array(numbers, pa.float64()).cast(type_)


@pytest.mark.parametrize("type_", TEXT_TYPES, ids=str)
def test_texts_of_every_type(type_, tmp_path):
    path = stored(tmp_path, c=text_array(["1", "0", "1"], type_))
    assert codes(path, NUMBERED) == [[1, 0, 1]]
    assert codes(path, DIGITS) == [[1, 0, 1]]
    assert codes(path, domain_of(c=Bins((0, 1, 2)))) == [[1, 0, 1]]


@pytest.mark.parametrize("type_", NUMBER_TYPES, ids=str)
def test_numbers_of_every_type(type_, tmp_path):
    path = stored(tmp_path, c=number_array([1, 0, 1], type_))
    assert codes(path, DIGITS) == [[1, 0, 1]]
    assert codes(path, domain_of(c=Bins((0, 1, 2)))) == [[1, 0, 1]]
    assert codes(path, NUMBERED) == [[1, 0, 1]]


def test_other_types(tmp_path):
    encoded = pa.array([1, 0, 1]).dictionary_encode()
    assert codes(stored(tmp_path, c=encoded), DIGITS) == [[1, 0, 1]]
    assert codes(stored(tmp_path, c=encoded), NUMBERED) == [[1, 0, 1]]
    flags = stored(tmp_path, c=pa.array([True, False]))
    assert "not in the codebook" in str(refusal(flags, DIGITS))
    assert codes(flags, domain_of(c=Categories(("false", "true")))) == [[1, 0]]


@pytest.mark.parametrize("type_", TEXT_TYPES, ids=str)
def test_strange_texts_of_every_type_are_told_and_mapped(type_, tmp_path):
    path = stored(tmp_path, c=text_array(["1", SECRET, None], type_))
    for domain, other, codes_then in ((NUMBERED, "rest", [1, 3, 3]), (DIGITS, "none", [1, 10, 10])):
        assert codes(path, domain, others={"c": other}) == [codes_then]
        error = refusal(path, domain, SECRET)
        assert "'c'" in str(error)
        assert "not in the codebook" in str(error)
        assert SECRET in error.on_screen()


@pytest.mark.parametrize("type_", [*TEXT_TYPES, *NUMBER_TYPES, pa.null(), pa.bool_()], ids=str)
@pytest.mark.parametrize("domain", [NUMBERED, DIGITS, domain_of(c=Bins((0, 1, 2), NONE))])
def test_a_null_of_every_type_is_refused_or_mapped(type_, domain, tmp_path):
    path = stored(tmp_path, c=pa.nulls(2, type_))
    assert "missing value" in str(refusal(path, domain))
    last = domain["c"].size - 1
    assert codes(path, domain, others={"c": domain["c"].labels()[last]}) == [[last, last]]


@pytest.mark.parametrize("strange", [math.nan, math.inf, -math.inf, 2.5, 1e300, -1.0])
@pytest.mark.parametrize("domain", [NUMBERED, DIGITS])
def test_floats_that_are_no_value(strange, domain, tmp_path):
    path = stored(tmp_path, c=[1.0, strange])
    what = "missing value" if math.isnan(strange) else "not in the codebook"
    assert what in str(refusal(path, domain))
    last = domain["c"].size - 1
    assert codes(path, domain, others={"c": domain["c"].labels()[last]}) == [[1, last]]


@pytest.mark.parametrize("column", [[[1]], [{"x": 1}]], ids=["list", "struct"])
def test_nested_columns_are_refused(column, tmp_path):
    for domain in (NUMBERED, DIGITS):
        refusal(stored(tmp_path, c=column), domain)


# --- each record on its own

FLOATS = [-0.0, 0.0, 1.0, 2.5, 1e15, 1e16, 2.0**53, 9e15, 1e19, 1e300, math.nan, math.inf, None]
VALUE_SETS = [
    Categories(("0", "1", "1000000000000000", "9007199254740992", "rest")),
    Integers(0, 2**53, 10**15, (("-0", "nothing"), *NONE)),
    Bins((-1, 1, 1e16, 1e17), NONE),
]


@given(st.lists(st.sampled_from(FLOATS), min_size=1, max_size=4), st.sampled_from(VALUE_SETS))
def test_how_a_record_is_coded_does_not_depend_on_the_others(tmp_path_factory, floats, values):
    """Otherwise adding one record would change more than one count by more than one."""
    folder, domain = tmp_path_factory.mktemp("records"), domain_of(c=values)
    other = {"c": domain["c"].labels()[-1]}

    def coded(column):
        path = stored(folder, c=pa.array(column, pa.float64()))
        return codes(path, domain, others=other)[0]

    assert coded(floats) == [coded([value])[0] for value in floats]


# --- days

DAY_TYPES = [
    pa.date32(),
    pa.date64(),
    *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")),
    *(pa.timestamp("us", zone) for zone in ("UTC", "+00:00")),
    pa.string(),
    pa.dictionary(pa.int8(), pa.string()),
]
DAYS = [datetime.date(2026, 1, 31), datetime.date(1969, 12, 31), datetime.date(2026, 2, 1)]


def days_of_type(type_: pa.DataType) -> pa.Array:
    if type_ == pa.string() or pa.types.is_dictionary(type_):
        return pa.array([day.isoformat() for day in DAYS], pa.string()).cast(type_)
    return pa.array(DAYS, pa.date32()).cast(type_)


@pytest.mark.parametrize("type_", DAY_TYPES, ids=str)
def test_days_of_every_type(type_, tmp_path):
    path = stored(tmp_path, c=days_of_type(type_))
    years = Dates("1960", "2026", "year", missing=(("2026-02-01", "open"),))
    assert codes(path, domain_of(c=years)) == [[66, 9, 67]]
    # Those that are listed one by one are the same.
    listed = Categories(tuple(day.isoformat() for day in DAYS))
    assert codes(path, domain_of(c=listed)) == [[0, 1, 2]]


def test_times_with_a_zone_are_no_days_but_for_midnights_of_utc(tmp_path):
    noon, midnight = datetime.datetime(2026, 1, 31, 12), datetime.datetime(2026, 1, 31)  # noqa: DTZ001
    days, listed = domain_of(c=Dates("2026", "2026")), domain_of(c=Categories(("2026-01-31",)))
    path = stored(tmp_path, c=pa.array([noon, midnight], pa.timestamp("us")))
    assert codes(path, days) == [[30, 30]]
    assert "1 not in the codebook" in refusal(path, listed).private
    path = stored(tmp_path, c=pa.array([noon, midnight], pa.timestamp("us", "UTC")))
    for domain in (days, listed):
        assert "1 not in the codebook" in refusal(path, domain).private
    path = stored(tmp_path, c=pa.array([midnight], pa.timestamp("us", "Europe/Paris")))
    assert "which day one is in depends on the zone" in str(refusal(path, days))


def test_missing_values_that_floats_cannot_tell_from_others(tmp_path):
    """2^53 stands for no answer, and 2^53 + 1 does not: neither as a number nor as a text."""
    numbers = [2**53, 2**53 + 1, -(2**53) - 1, 7]
    kinds = Integers(0, 9, missing=((str(2**53), "none"), ("", "left out")))
    for column in (pa.array(numbers), pa.array([*map(str, numbers)])):
        path = stored(tmp_path, c=column)
        assert "2 not in the codebook" in refusal(path, domain_of(c=kinds)).private
    both = ((str(2**53), "none"), (str(2**53 + 1), "more"), (str(-(2**53) - 1), "less"))
    listed = domain_of(c=Integers(0, 9, missing=both))
    for column in (pa.array(numbers), pa.array([*map(str, numbers)])):
        assert codes(stored(tmp_path, c=column), listed) == [[10, 11, 12, 7]]


def test_days_may_stand_for_no_number(tmp_path):
    path = stored(tmp_path, c=pa.array(DAYS))
    kinds = Integers(0, 9, missing=tuple((day.isoformat(), f"day {day.day}") for day in DAYS))
    assert codes(path, domain_of(c=kinds)) == [[10, 10, 11]]
