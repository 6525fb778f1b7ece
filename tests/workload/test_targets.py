"""Targets as people type them, against the standard errors that they stand for."""

import json
from dataclasses import replace
from decimal import Decimal
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpexplore.errors import WorkloadError
from rpexplore.workload.targets import CV, MARGIN, STANDARD_ERROR, Target, target_of
from tests.support.processor_time import at_most


def half_width(confidence):
    """Standard errors to either side, from Python's own normal distribution."""
    return NormalDist().inv_cdf(0.5 + confidence / 200)


MARGIN_50 = Target(50, MARGIN)


@pytest.mark.parametrize(
    ("text", "target", "error"),
    [
        ("20", Target(20), 20),
        (" σ 20 ", Target(20), 20),
        ("σ = 20", Target(20), 20),
        ("SE 2.50", Target("2.5"), 2.5),
        (".5", Target(0.5), 0.5),
        ("1e-7", Target(1e-7), 1e-7),
        ("±50", MARGIN_50, 50 / half_width(95)),
        ("+-50", MARGIN_50, 50 / half_width(95)),
        ("+/- 50 at 95 %", MARGIN_50, 50 / half_width(95)),
        ("± 50 (99%)", Target(50, MARGIN, 99), 50 / half_width(99)),
        ("±50 at 99.9 percent", Target(50, MARGIN, "99.9"), 50 / half_width(99.9)),
        ("5 % of 1000", Target(5, CV, count=1000), 50),
        ("cv 5% at 1,000", Target(5, CV, count=1000), 50),
        ("0.1 per cent of 1 234 567.5", Target(0.1, CV, count="1234567.5"), 1234.5675),
        ("1'000'000", Target(10**6), 10**6),
        ("1\u202f000", Target(1000), 1000),
        ("1,000.5", Target("1000.5"), 1000.5),
        ("2,5", Target("2.5"), 2.5),
        ("0,125", Target("0.125"), 0.125),
        ("±12,50", Target("12.50", MARGIN), 12.5 / half_width(95)),
    ],
)
def test_a_text_is_the_target_it_says(text, target, error):
    assert Target.parse(text.strip()) == target
    for before, behind in (("required ", ""), ("! ", ""), ("", " REQUIRED"), ("", "!")):
        parsed = Target.parse(f"{before}{text.strip()}{behind}")
        assert parsed == replace(target, required=True)
        assert parsed.standard_error == pytest.approx(error, rel=1e-13)
        assert Target.parse(str(parsed)) == parsed


@pytest.mark.parametrize(
    "text",
    [
        "",
        "required",
        "lots",
        "1 000,000",
        "1,00,0",
        "5 %",
        "±5 %",
        "50 at 95 %",
        "±50 at 0.95",
        "±50 of 1000",
        "5 % of",
        "σ",
        "20 people",
        "20must",
        "nan",
        "inf",
        "1_000",
        "٣",
        "20\n30",
    ],
)
def test_anything_else_is_refused_with_examples(text):
    with pytest.raises(WorkloadError, match=r"must be written like 20 .*±50 at 95 %.*5 % of 1000"):
        Target.parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0", "target must be a positive number, got 0"),
        ("-5", "target must be a positive number, got -5"),
        ("−5", "target must be a positive number, got -5"),
        ("1e999999999", "target must be a positive number"),
        ("1e-999999999", "target must be a positive number"),
        ("±0", "target must be a positive number"),
        ("5 % of 0", "expected count must be a positive number"),
        ("1e200 % of 1e200", "can be computed with"),
        ("±50 at 100 %", "confidence must lie between 0 and 100 %, got 100 %"),
        ("±50 at 0 %", "confidence must lie between 0 and 100 %"),
        ("±50 at -95 %", "confidence must lie between 0 and 100 %"),
        ("±50 at 1e-200 %", "confidence must lie between 0 and 100 %"),
        ("±50 at 99.9999999999999999999 %", "confidence must lie between 0 and 100 %"),
    ],
)
def test_numbers_out_of_range_are_named(text, message):
    with pytest.raises(WorkloadError, match=message):
        Target.parse(text)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((5, "people"), "unit must be one of standard_error, margin, cv, got people"),
        ((5, CV), "needs the count"),
        ((5, STANDARD_ERROR, 95), "confidence must be left out where its unit is standard_error"),
        ((5, MARGIN, 95, 1000), "count must be left out where its unit is margin"),
        ((5, MARGIN, None, None, "yes"), "true or false, got yes"),
        ((True,), "positive number, got True"),
        (([1],), "positive number"),
        ((float("nan"),), "positive number, got nan"),
        ((float("inf"),), "positive number, got inf"),
    ],
)
def test_what_is_no_target_is_refused(given, message):
    with pytest.raises(WorkloadError, match=message):
        Target(*given)


NUMBERS = st.one_of(
    st.integers(1, 10**18),
    st.floats(1e-12, 1e18),
    st.decimals("0.001", "1e9", places=3).filter(bool),
)
SHARES = st.sampled_from([80, 90, 95, 99, "99.9", 99.99])
TARGETS = st.one_of(
    st.builds(Target, NUMBERS, required=st.booleans()),
    st.builds(Target, NUMBERS, st.just(MARGIN), SHARES, required=st.booleans()),
    st.builds(Target, NUMBERS, st.just(CV), count=NUMBERS, required=st.booleans()),
)


@given(TARGETS)
def test_what_is_shown_and_kept_can_be_read_again(target):
    assert Target.parse(str(target)) == target
    assert target_of(target.text) == replace(target, required=False)
    # Files stay the same bytes, however often they are opened and saved.
    kept = json.dumps(target.to_json())
    again = target_of(json.loads(kept))
    assert again == target
    assert json.dumps(again.to_json()) == kept
    assert (str(again), again.standard_error) == (str(target), target.standard_error)


@given(st.integers(1, 10**15) | st.floats(1e-290, 1e15))
def test_numbers_of_earlier_files_stay_as_they_are(number):
    target = target_of(number)
    assert target.standard_error == number
    assert json.dumps(target.to_json()) == json.dumps(number)


@given(TARGETS, st.floats(1e-3, 1e3))
def test_a_standard_error_in_the_unit_of_a_target(target, times):
    """As many times the wanted number as it is times the wanted standard error."""
    now = target.in_unit(times * target.standard_error)
    assert now == pytest.approx(times * float(target.value), rel=1e-12)


def test_numbers_are_shown_as_typed():
    assert [str(Target.parse(text)) for text in ("12.50", "5.00", "0.1", "020", "5.")] == [
        "12.50",
        "5.00",
        "0.1",
        "20",
        "5",
    ]
    assert str(Target(3.0)) == "3"
    assert str(Target(np.float64(0.1))) == "0.1"
    assert str(Target(np.int64(3))) == "3"
    assert str(Target(Decimal("0.10"), MARGIN, 99.0)) == "±0.10 at 99 %"
    assert Target.parse("12.50").to_json() == "12.50"  # a number would be 12.5


def test_descriptions():
    target = Target.parse("±1000")
    assert target.description == "±1,000 at 95 %"
    assert target.description == "±1,000 at 95 %"
    assert Target.parse("5 % of 1000").description == "5 % of a count of 1,000"
    assert Target.parse("5 % of 1000").description == "5 % of a count of 1,000"
    assert Target(20).description == Target(20.0).description == "σ = 20"


def test_what_may_be_given_as_a_target():
    assert target_of(None) is None
    assert target_of(MARGIN_50) is MARGIN_50
    assert target_of("±50") == MARGIN_50
    assert target_of(20) == Target("20.0") == Target(Decimal(20)) == Target(np.float32(20))


def test_a_long_text_is_refused_at_once():
    with at_most(2), pytest.raises(WorkloadError, match="at most 200 characters, got 1,000,001"):
        Target.parse("2" + "\t" * 999_999 + "x")
