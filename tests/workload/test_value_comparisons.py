"""Comparisons of one attribute with a value, against every number that a value holds."""

import operator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpexplore import Attribute, Bins, Categories, Integers
from rpexplore.errors import WorkloadError
from rpexplore.workload.table_text import in_quotes
from rpexplore.workload.value_comparisons import (
    EQUAL,
    MIRRORED,
    ORDERED,
    UNEQUAL,
    value_names,
    values_where,
)
from tests.support.strategies import categories

PYTHON = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    EQUAL: operator.eq, UNEQUAL: operator.ne,
}  # fmt: skip
TINY = Fraction(1, 10**9)


def numbers_of_integers(values):
    """All numbers of each group."""
    starts = range(values.minimum, values.maximum + 1, values.step)
    return [[*range(start, min(start + values.step - 1, values.maximum) + 1)] for start in starts]


def numbers_of_bins(values, about):
    """Of each interval its ends, if they belong to it, and numbers close to these and `about`."""
    result = []
    for index, (left, right) in enumerate(pairwise(map(Fraction, map(str, values.edges)))):
        points = [left, right, about, left + TINY, right - TINY, about - TINY, about + TINY]
        is_last = index == values.size - 1
        result.append([p for p in points if left <= p < right or (is_last and p == right)])
    return result


def expected(groups, compare, value):
    """One truth for each value, None where it is not the same for all of its numbers."""
    truths = [{compare(number, value) for number in group} for group in groups]
    return [truth.pop() if len(truth) == 1 else None for truth in truths]


@given(
    st.integers(-20, 20),
    st.integers(0, 30),
    st.integers(1, 7),
    st.sampled_from(ORDERED),
    st.decimals(-25, 55, places=1) | st.integers(-25, 55).map(Decimal),
)
def test_whole_numbers_are_compared_as_a_whole_or_refused(minimum, more, step, compare, value):
    values = Integers(minimum, minimum + more, step)
    check("age", values, numbers_of_integers(values), compare, value)


EDGES = st.lists(st.integers(-50, 50), min_size=2, max_size=6, unique=True)


@given(
    EDGES.map(lambda edges: Bins(tuple(edge / 10 for edge in sorted(edges)))),
    st.sampled_from(ORDERED),
    st.decimals(-6, 6, places=1) | st.decimals(-6, 6, places=2),
)
def test_intervals_are_compared_as_a_whole_or_refused(values, compare, value):
    check("income", values, numbers_of_bins(values, Fraction(value)), compare, value)


def check(name, values, groups, compare, value):
    attribute = Attribute(name, values)
    truths = expected(groups, PYTHON[compare], Fraction(value))
    if None not in truths:
        assert values_where(attribute, compare, value).tolist() == truths
        return
    with pytest.raises(WorkloadError, match="cuts through the value") as refusal:
        values_where(attribute, compare, value)
    # What the refusal proposes cuts through nothing, and separates there.
    index = truths.index(None)
    assert repr(values.label(index)) in str(refusal.value)
    remedies = str(refusal.value).rpartition("; write ")[2].rstrip(".").split(" or ")
    result = [
        values_where(attribute, remedy.split()[0], Decimal(remedy.split()[1]))
        for remedy in remedies
    ]
    assert all(where.any() for where in result)
    assert {int(where.sum()) for where in result} <= {
        *((index, index + 1) if "<" in compare else (len(truths) - index, len(truths) - index - 1))
    }


@given(st.integers(-20, 20), st.integers(0, 30), st.integers(1, 7), st.integers(-25, 55))
def test_whole_numbers_are_equal_where_they_stand_alone(minimum, more, step, value):
    attribute = Attribute("age", Integers(minimum, minimum + more, step))
    groups = numbers_of_integers(attribute.values)
    if [value] in groups:
        is_equal = [group == [value] for group in groups]
        assert values_where(attribute, EQUAL, Decimal(value)).tolist() == is_equal
        assert values_where(attribute, UNEQUAL, Decimal(value)).tolist() == [
            not each for each in is_equal
        ]
        return
    message = "cuts through" if any(value in group for group in groups) else "has no value"
    with pytest.raises(WorkloadError, match=message):
        values_where(attribute, EQUAL, Decimal(value))


@pytest.mark.parametrize("value", ["0.5", "1", "2"])
def test_an_interval_is_never_equal_to_a_number(value):
    with pytest.raises(WorkloadError, match=r'cuts through .* write == "[01] to'):
        values_where(Attribute("x", Bins((0, 1, 2))), EQUAL, Decimal(value))


def test_intervals_and_groups_are_named_by_their_labels():
    income = Attribute("income", Bins((0, 500, 1000)))
    assert values_where(income, EQUAL, "0 to under 500").tolist() == [True, False]
    age = Attribute("age", Integers(0, 14, 5))
    assert values_where(age, UNEQUAL, "5 to 9").tolist() == [True, False, True]


@given(categories())
def test_every_category_has_a_name_of_its_own(values):
    attribute = Attribute("x", values)
    for index, name in enumerate(value_names(attribute)):
        assert np.flatnonzero(values_where(attribute, EQUAL, name)).tolist() == [index]
        stored = values.values[index]
        assert np.flatnonzero(values_where(attribute, EQUAL, stored)).tolist() == [index]


SEX = Attribute("sex", Categories(("1", "2"), ("male", "female")))
SIZE = Attribute("size", Categories(("1", "2", "10")))
CODES = Attribute("code", Categories(("01", "1", "02")))
MIXED = Attribute("size", Categories(("1", "2", "3+")))
SHIFTED = Attribute("age", Categories(("0", "1"), ("18", "19")))
SHIFTED_BY_ONE = Attribute("x", Categories(("1", "2"), ("2", "3")))
SWAPPED = Attribute("x", Categories(("a", "b"), ("b", "a")))
DISTRICTS = Attribute(
    "district",
    Categories(("A", "B", "C", "South")),
    groups=(("North",), ("South", "Coast"), ("South", "Hills"), ("North", "Coast")),
)


@pytest.mark.parametrize(
    ("attribute", "compare", "value", "result"),
    [
        (SEX, EQUAL, Decimal(2), [1]),
        (SEX, EQUAL, "female", [1]),
        (SEX, EQUAL, " female ", [1]),
        (SEX, UNEQUAL, "1", [1]),
        (SIZE, ">", Decimal("1.5"), [1, 2]),  # by size, not by letter
        (SIZE, "<=", Decimal(2), [0, 1]),
        (CODES, EQUAL, Decimal(1), [1]),
        (CODES, EQUAL, Decimal(2), [2]),
        (Attribute("x", Categories(("a", "b"), ("3", "5"))), ">=", Decimal(5), [1]),
        (SHIFTED, EQUAL, "18", [0]),
        (SWAPPED, EQUAL, "a", [0]),  # what is stored goes first
        (SHIFTED_BY_ONE, EQUAL, Decimal("2.0"), [1]),
        (SHIFTED_BY_ONE, EQUAL, Decimal("3.0"), [1]),
        (DISTRICTS, EQUAL, "North", [0, 3]),
        (DISTRICTS, EQUAL, "South", [3]),  # a value goes before a group
        (DISTRICTS, EQUAL, "South > Coast", [1]),
        (DISTRICTS, EQUAL, "Hills", [2]),
    ],
)
def test_categories(attribute, compare, value, result):
    assert np.flatnonzero(values_where(attribute, compare, value)).tolist() == result


@pytest.mark.parametrize(
    ("attribute", "compare", "value", "message"),
    [
        (SEX, EQUAL, "Female", "'sex' has no value 'Female'; did you mean 'female'"),
        (SEX, EQUAL, "femal", "did you mean 'female'"),
        (SEX, EQUAL, "x", "no value 'x'; its values are 'male' and 'female'"),
        (SEX, EQUAL, Decimal(3), "no value 3; its values are 'male' and 'female'"),
        (MIXED, ">=", Decimal(2), r"no order, since its value '3\+' is not a number; .* \(\"1\", "),
        (SHIFTED, ">=", Decimal(18), "other numbers than their labels"),
        (SIZE, ">=", "2", "with a number, got the text '2'; leave out the quotation marks"),
        (SIZE, ">=", "two", "got the text 'two'; write a number"),
        (Attribute("x", Categories(("1.0", "1"))), EQUAL, Decimal("1.00"), "'1.0' and '1'"),
        (Attribute("x", Integers(0, 99)), EQUAL, Decimal(100), "values are 0, 1, … and 99"),
        (DISTRICTS, EQUAL, "Coast", "no value 'Coast'"),  # two groups are called so
    ],
)
def test_refused(attribute, compare, value, message):
    with pytest.raises(WorkloadError, match=message):
        values_where(attribute, compare, value)


def test_the_mirror_of_a_comparison_has_its_sides_exchanged():
    for compare, mirrored in MIRRORED.items():
        for left, right in ((1, 2), (2, 2), (3, 2)):
            assert PYTHON[compare](left, right) == PYTHON[mirrored](right, left)


def test_quotation_marks_are_doubled():
    assert in_quotes('19" wheel') == '"19"" wheel"'


@pytest.mark.parametrize(
    "values", [Integers(0, 3, 1), Bins((0, 1, 2, 3, 4))], ids=["whole", "bins"]
)
def test_missing_values_are_neither_below_nor_above_a_number(values):
    attribute = Attribute("age", replace(values, missing=(("-9", "refused"), ("", "empty"))))
    at_least_2 = [False, False, True, True, False, False]
    assert values_where(attribute, ">=", Decimal(2)).tolist() == at_least_2
    below_2 = [True, True, False, False, False, False]
    assert values_where(attribute, "<", Decimal(2)).tolist() == below_2
    refused = [False, False, False, False, True, False]
    assert values_where(attribute, EQUAL, "refused").tolist() == refused
