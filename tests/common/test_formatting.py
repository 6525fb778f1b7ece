"""Numbers as people read them."""

import os
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpexplore.common.text import (
    data_size,
    describe_count,
    describe_share,
    duration,
    plural,
    rounded,
    singular_noun,
    small,
    text_of_path,
)


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (24.123, 2, "24"),
        (1298.0, 2, "1,300"),
        (0.03456, 2, "0.035"),
        (14.0, 3, "14"),
        (123_456_789.0, 3, "123,000,000"),
        (1.5e-9, 2, "1.5e-9"),
        (1e20, 2, "1.0e20"),
        (0.0, 2, "0"),
        (Fraction(1, 3), 4, "0.3333"),
        (float("inf"), 2, "∞"),
    ],
)
def test_rounded(value, digits, text):
    assert rounded(value, digits) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (1, "100 %"),
        (0, "0 %"),
        (0.5714, "57 %"),
        (285 / 286, "99.7 %"),
        (0.99996, "over 99.99 %"),
        (1 - 1e-15, "over 99.99 %"),
        (6e-6, "0.0006 %"),
    ],
)
def test_a_share_is_all_or_nothing_only_where_it_is(share, text):
    assert describe_share(share) == text


def test_zeros_stay_where_wanted():
    assert rounded(13.98, 3, zeros=True) == "14.0"


@given(st.fractions(min_value=Fraction(1, 10**5), max_value=10**9), st.integers(1, 6))
def test_bounds_stay_bounds(value, digits):
    up, down = (rounded(value, digits, mode).replace(",", "") for mode in ("up", "down"))
    assert Fraction(down) <= value <= Fraction(up)
    assert Fraction(up) <= value * (1 + Fraction(10) ** (1 - digits))


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (67, "67"),
        (166_751, "166,751"),
        (8_805_888_000, "about 8.8 billion"),
        (1_000_000, "about 1 million"),
        (10**100, "about 10^100"),
        (10**100 - 1, "about 10^99"),
        pytest.param(2**50_000, "about 10^15051", id="of thousands of digits"),
    ],
)
def test_counts(count, text):
    assert describe_count(count) == text


def test_a_count_of_more_digits_than_python_writes():
    assert describe_count(2**50_000) == "about 10^15051"  # 50,000 · 0.30103


def test_plural():
    assert [plural(n, "table") for n in (0, 1, 1200)] == ["0 tables", "1 table", "1,200 tables"]
    assert [plural(n, "query") for n in (0, 1, 1200)] == ["0 queries", "1 query", "1,200 queries"]
    assert plural(2, "day") == "2 days"


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [(0, "0 kB"), (500, "0.5 kB"), (12e6, "12 MB"), (5.24e8, "520 MB"), (1.25e11, "120 GB")],
)
def test_data_sizes(n_bytes, text):
    assert data_size(n_bytes) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "1 second"), (72, "72 seconds"), (95, "2 minutes"), (5400, "2 hours"), (3e6, "35 days")],
)
def test_durations(seconds, text):
    assert duration(seconds) == text


def test_a_path_is_text_whatever_bytes_its_name_has():
    assert text_of_path(Path("a") / "ä.csv") == str(Path("a") / "ä.csv")
    assert text_of_path(os.fsdecode(b"\xff.csv")) == "\\udcff.csv"


@pytest.mark.parametrize(
    ("value", "text"),
    [("1e-9", "1e-9"), ("0.001", "0.001"), ("1.23456000001e-7", "1.23457e-7"), ("1/3", "0.333334")],
)
def test_small_probabilities_are_never_rounded_down(value, text):
    assert small(Fraction(value)) == text


@pytest.mark.parametrize(
    ("noun", "singular"),
    [
        ("households", "household"), ("companies", "company"), ("branches", "branch"),
        ("houses", "house"), ("people", "person"), ("women", "woman"), ("businesses", "business"),
        ("business", "business"), ("census", "census"), ("household", "household"),
    ],
)  # fmt: skip
def test_a_noun_in_the_plural_becomes_one_in_the_singular(noun, singular):
    assert singular_noun(noun) == singular
