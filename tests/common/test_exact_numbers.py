"""Exact numbers: read as they are written; of long lists the text is the number."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rpexplore.common.numbers import Decimals, exact_fraction, exact_text
from rpexplore.errors import BudgetError, RpexploreError

# ---- one number


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.1, Fraction(1, 10)),
        (np.float64(0.1), Fraction(1, 10)),
        (1e-300, Fraction(1, 10**300)),
        (5e-324, Fraction(5, 10**324)),
        (-0.0, Fraction(0)),
        (3, Fraction(3)),
        (np.int64(3), Fraction(3)),
        (np.float32(0.1), Fraction(1, 10)),
        ("0.5", Fraction(1, 2)),
        (" 1e-9 ", Fraction(1, 10**9)),
        ("1/3", Fraction(1, 3)),
        ("-2.50", Fraction(-5, 2)),
        ("0e-999999999", Fraction(0)),
        (Decimal("0.10"), Fraction(1, 10)),
        (Fraction(2, 7), Fraction(2, 7)),
        (Fraction(1, 10**500), Fraction(1, 10**500)),
    ],
)
def test_a_number_is_read_as_it_is_written(value, expected):
    assert exact_fraction(value, "rho") == expected
    assert type(exact_fraction(value, "rho").numerator) is int


@pytest.mark.parametrize(
    "value",
    [
        *(math.nan, math.inf, -math.inf, "nan", "inf", Decimal("NaN"), Decimal("Infinity")),
        *(True, False, None, [], 1j, b"1", np.bool_(True)),
        *("", "abc", "0,5", "١٢", "１/２", "1/0", "1/3/5", "1e-9/3", "0x10", "9" * 5000 + "/7"),
        *("1e-999999999", "1e999999999", Decimal("1e-999999999"), "1e-401", "1e99999999999999999"),
    ],
)
def test_what_is_no_finite_number_is_refused(value):
    with pytest.raises(BudgetError, match=r"^delta must be a finite number, got .*write it like"):
        exact_fraction(value, "delta")


def test_a_refusal_shows_the_value_and_stays_short():
    with pytest.raises(BudgetError, match=r"got half; "):
        exact_fraction("half", "rho")
    with pytest.raises(BudgetError) as caught:
        exact_fraction("x" * 10_000, "rho")
    assert len(str(caught.value)) < 200


# ---- long lists

positive = st.floats(1e-200, 1e200)
numbers = st.tuples(st.integers(1, 10**18 - 1), st.integers(-60, 60))


def fractions(decimals):
    return [decimals.fraction(index) for index in range(len(decimals))]


@given(st.lists(numbers, min_size=1, max_size=8))
@settings(deadline=None)
def test_texts_are_exact_and_canonical(pairs):
    decimals = Decimals(*np.array(pairs, dtype=np.int64).T)
    texts, exact = decimals.texts(), [Fraction(d) * Fraction(10) ** e for d, e in pairs]
    assert [Fraction(text) for text in texts] == exact == fractions(decimals)
    again = Decimals.parse(texts)
    np.testing.assert_array_equal(again.digits, decimals.digits)
    np.testing.assert_array_equal(again.exponents, decimals.exponents)
    assert again.texts() == texts
    np.testing.assert_allclose(decimals.floats, [float(f) for f in exact], rtol=4.5e-16)
    on_common, exponent = decimals.on_common_exponent()
    assert [int(n) * Fraction(10) ** exponent for n in on_common] == exact


@given(st.lists(positive, min_size=1, max_size=8))
@settings(deadline=None)
def test_rounded_up_is_just_above(values):
    rounded = fractions(Decimals.rounded_up(np.array(values)))
    for value, up in zip(values, rounded, strict=True):
        assert up >= Fraction(value) * (1 - Fraction(2, 10**15)), "below by more than it says"
        # One unit of the twelfth digit, at most 1e-11 of the value.
        assert up <= Fraction(value) * (1 + Fraction(10001, 10**15))


@pytest.mark.parametrize("power", range(-30, 31))
def test_powers_of_ten_and_their_neighbours(power):
    exact = Fraction(10) ** power
    for value in (float(exact), np.nextafter(float(exact), 0), np.nextafter(float(exact), np.inf)):
        (up,) = fractions(Decimals.rounded_up(np.array([value])))
        assert exact * (1 - Fraction(2, 10**15)) <= up <= exact * (1 + Fraction(10001, 10**15))


def test_twelve_digits():
    texts = Decimals.rounded_up(np.array([1 / 3, 2 / 3, 0.1, 123456789012.5, 1.5e20])).texts()
    assert texts == ["0.333333333334", "0.666666666667", "0.1", "123456789013", "15" + "0" * 19]


@pytest.mark.parametrize(
    "text",
    [
        *("0", "0.0", "-1", "+1", "1e5", "1E5", "NaN", "inf", ".5", "5.", "1,5", "1_0", "1/3"),
        *("", " 1", "1 ", "1\n", "٣", "1234567890123456789", "0.1234567890123456789"),
    ],
)
def test_unusable_texts_are_named(text):
    with pytest.raises(RpexploreError, match="must be"):
        Decimals.parse(["1.5", text])


@pytest.mark.parametrize("value", [1.5, 1, None, True, b"1"])
def test_what_is_no_text_is_refused(value):
    with pytest.raises(RpexploreError, match="must be a plain decimal text"):
        Decimals.parse([value])


@pytest.mark.parametrize("text", ["0." + "0" * 399 + "1", "1" + "0" * 400])
def test_numbers_that_no_float_holds_are_refused(text):
    with pytest.raises(RpexploreError, match="must be"):
        Decimals.parse([text])


def test_arrays_are_read_only_and_checked():
    decimals = Decimals(np.array([50, 7]), np.array([0, -2]))
    assert decimals.texts() == ["50", "0.07"]
    with pytest.raises(ValueError, match="read-only"):
        decimals.digits[0] = 1
    with pytest.raises(ValueError, match="positive"):
        Decimals(np.array([0]), np.array([0]))
    with pytest.raises(ValueError, match="one length"):
        Decimals(np.array([1, 2]), np.array([0]))


@given(st.fractions() | st.decimals(allow_nan=False, allow_infinity=False, places=12).map(Fraction))
@settings(deadline=None)
def test_exact_text(value):
    text = exact_text(value)
    assert Fraction(text) == value
    try:
        assert Fraction(Decimal(text)) == value, "plain decimals wherever there is one"
        assert "e" not in text.lower()
        assert text == "0" or not text.endswith("0") or "." not in text
    except ArithmeticError:
        assert "/" in text
        denominator = value.denominator
        for prime in (2, 5):
            while denominator % prime == 0:
                denominator //= prime
        assert denominator > 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(1, 8), "0.125"),
        (Fraction(1, 3), "1/3"),
        (Fraction(-5, 4), "-1.25"),
        (Fraction(0), "0"),
        (Fraction(1200), "1200"),
        (Fraction(1, 10**20), "0." + "0" * 19 + "1"),
        (Fraction(3, 20), "0.15"),
        (Fraction(1, 10**5000), "0." + "0" * 4999 + "1"),
        (Fraction(10**5000, 3), "1" + "0" * 5000 + "/3"),
    ],
)
def test_exact_text_examples(value, text):
    assert exact_text(value) == text
