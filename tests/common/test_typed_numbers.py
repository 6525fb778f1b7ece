"""Numbers as people type them, and what is refused."""

import pytest

from rpexplore.common.text import (
    count_of,
    needed_number_of,
    number_of,
    number_text,
    with_decimal_point,
)
from rpexplore.errors import BudgetError, RpexploreError


@pytest.mark.parametrize(
    ("typed", "number"),
    [("1,5", 1.5), ("1.5", 1.5), ("1/4", 0.25), ("1e-9", 1e-9), ("0,125", 0.125), (" ", None)],
)
def test_a_number_is_read(typed, number):
    assert number_of(typed) == number


@pytest.mark.parametrize(
    ("typed", "count"),
    [
        ("48842", 48842),
        ("48,842", 48842),
        ("1 234 567", 1234567),
        ("48\u202f842", 48842),
        ("1.234.567", 1234567),
        ("48.5", 48.5),
        ("0.842", 0.842),
        ("", None),
    ],
)
def test_a_count_may_have_thousands_separators(typed, count):
    assert count_of(typed) == count


@pytest.mark.parametrize("typed", ["48.842", "1,234 567", "48,842,1", "4 8"])
def test_a_count_that_may_be_another_one_is_not_guessed(typed):
    with pytest.raises(RpexploreError, match="48842 or about 49" if "." in typed else "must be"):
        count_of(typed, "The count")


@pytest.mark.parametrize("number", [0.1, 1 / 3, 2.0, 1e16, 5e-324, 1e308])
def test_a_number_is_read_as_it_is_written(number):
    assert number_of(number_text(number)) == number


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("1,500", "The number 1,500 may mean 1500 or 1.500; write it without a comma."),
        ("0x10", "The weight must be a finite number, got 0x10; write it like"),
        ("1e999", "The weight must be a finite number"),
        ("1e309", "The weight must be at most 1e308, got 1e309."),
        ("-1", "The weight must be at least 0, got -1."),
        ("101", "The weight must be at most 100, got 101."),
        ("", "The weight must be a number; type one"),
    ],
)
def test_anything_else_is_refused(typed, message):
    with pytest.raises(RpexploreError) as refusal:
        needed_number_of(typed, "The weight", least=0.0, most=100.0)
    assert str(refusal.value).startswith(message)


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("1,5", "1.5"),
        (" 0,125 ", "0.125"),
        ("-,5e-3", "-.5e-3"),
        ("1,0000", "1.0000"),
        ("1234,567", "1234.567"),
        ("1.5", "1.5"),
        ("1.000,5", "1.000,5"),
        ("1,5,2", "1,5,2"),
        ("a,5", "a,5"),
    ],
)
def test_a_decimal_comma_is_read_as_a_point(typed, read):
    assert with_decimal_point(typed) == read


@pytest.mark.parametrize("typed", ["1,000", "12,500", "+100,125"])
def test_a_comma_that_may_separate_thousands_is_refused(typed):
    with pytest.raises(BudgetError, match=r"may mean .*; write it without a comma"):
        with_decimal_point(typed)
