"""Attributes: sizes, labels, and everything that is refused."""

import numpy as np
import pytest

from rpexplore import Attribute, Bins, Categories, Integers
from rpexplore.domain.attribute import MAX_SIZE
from rpexplore.errors import DomainError


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        (Categories(("m", "f")), ["m", "f"]),
        (Categories(("1", "2"), ("men", "women")), ["men", "women"]),
        (Integers(-1, 1), ["-1", "0", "1"]),
        (Integers(0, 11, 5), ["0 to 4", "5 to 9", "10 to 11"]),
        (Integers(0, 10, 5), ["0 to 4", "5 to 9", "10"]),
        (Integers(7, 7, 5), ["7"]),
        (Bins((0, 0.5, 10)), ["0 to under 0.5", "0.5 to 10"]),
    ],
)
def test_size_and_labels(values, labels):
    attribute = Attribute("x", values)
    assert attribute.size == len(labels)
    assert attribute.labels() == labels


def test_bounds_of_the_size():
    assert Attribute("x", Integers(1, MAX_SIZE)).size == 10**6
    assert Attribute("x", Integers(0, 10**7 - 1, 10)).size == 10**6
    with pytest.raises(DomainError, match=r"'x'.* 1 to 1,000,000 values, got 1,000,001"):
        Attribute("x", Integers(0, MAX_SIZE))
    with pytest.raises(DomainError, match=r"'x'.* got 0"):
        Attribute("x", Categories(()))


def test_title_is_the_label_or_else_the_name():
    assert Attribute("sex", Integers(0, 1)).title == "sex"
    assert Attribute("sex", Integers(0, 1), "Sex at birth").title == "Sex at birth"


def grouped(groups):
    return Attribute("a", Integers(0, 1), groups=groups)


def test_groups_are_paths_without_blanks_around_names():
    assert grouped([["S ", "E"], []]).groups == (("S", "E"), ())
    assert grouped([["S"], ["S"]]) != Attribute("a", Integers(0, 1))
    assert grouped([[], []]) == Attribute("a", Integers(0, 1))
    assert grouped([["a>b"], []]).groups == (("a>b",), ())


@pytest.mark.parametrize(
    ("values", "ranges", "up_to"),
    [
        (Categories(("1", "2"), ("A", "B")), ["A", "A to B", "B"], ["up to A", "up to B"]),
        (Integers(0, 11, 5), ["0 to 4", "0 to 9", "5 to 9"], ["≤ 4", "≤ 9", "≤ 11"]),
        (Integers(-1, 1), ["-1", "-1 to 0", "0"], ["≤ -1", "≤ 0", "≤ 1"]),
        (
            Bins((0, 0.5, 10)),
            ["0 to under 0.5", "0 to 10", "0.5 to 10"],
            ["under 0.5", "≤ 10"],
        ),
    ],
)
def test_labels_of_ranges(values, ranges, up_to):
    assert [values.range_label(*pair) for pair in ((0, 0), (0, 1), (1, 1))] == ranges
    assert [values.up_to_label(last) for last in range(values.size)] == up_to


def test_a_range_is_never_called_like_a_value():
    values = Categories(("A", "A to B", "B", "to – B"))
    labels = {values.range_label(a, b) for a in range(4) for b in range(a, 4)}
    assert len(labels) == 10
    assert values.range_label(0, 2) == "A –– B"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Categories(("a", "b", "a")), r"category 'a' is listed twice"),
        (lambda: Categories(("a", "")), r"not empty, got ''"),
        (lambda: Categories(("a", "  ")), r"not empty, got '  '"),
        (lambda: Categories(("a", 3)), r"must be a text .* got 3"),
        (lambda: Categories(("a", "b"), ("A",)), r"2 categories but 1 labels"),
        (lambda: Categories(("a", "b"), ("A", "A")), r"label 'A' stands for two"),
        (lambda: Categories(("a", "b"), (1, 2)), r"label.* got 1"),
        (lambda: Categories(("a", "b"), ("", "B")), r"label.* got ''"),
        (lambda: Categories("male"), r"'male'"),
        (lambda: Integers(0, 5, 0), r"step must be at least 1, got 0"),
        (lambda: Integers(5, 4), r"got 5 … 4"),
        (lambda: Integers(0.0, 4), r"minimum must be a whole number, got 0.0"),
        (lambda: Integers(0, True), r"maximum must be a whole number, got True"),
        (lambda: Integers(0, "4"), r"maximum must be a whole number, got '4'"),
        (lambda: Integers(0, 2**60, 2**50), rf"±2\^53, got {2**60}"),
        (lambda: Bins((1,)), r"at least two edges, got 1"),
        (lambda: Bins((0, 2, 2)), r"must increase, got 2 before 2"),
        (lambda: Bins((0, 2, 1.5)), r"must increase, got 2 before 1.5"),
        (lambda: Bins((0, float("nan"))), r"finite, got nan"),
        (lambda: Bins((0, float("inf"))), r"finite, got inf"),
        (lambda: Bins((0, 10**400)), r"finite|within"),
        (lambda: Bins((False, True)), r"number, got False"),
        (lambda: Bins(("0", "1")), r"number, got '0'"),
        (lambda: Bins((2**53, 2**53 + 1)), r"must increase"),
        (lambda: Attribute("", Integers(0, 1)), r"needs a name, got ''"),
        (lambda: Attribute("  ", Integers(0, 1)), r"needs a name, got '  '"),
        (lambda: Attribute(3, Integers(0, 1)), r"needs a name, got 3"),
        (lambda: Attribute("a\nb", Integers(0, 1)), r"'a\\nb' holds a control character"),
        (lambda: Attribute("a", ["x", "y"]), r"'a' must be Categories.* got list"),
        (lambda: Attribute("a", Integers(0, 1), 5), r"label.* got 5"),
        (lambda: grouped("S"), r"groups of attribute 'a' must be a list of paths, got 'S'"),
        (lambda: grouped(None), r"list of paths, got None"),
        (lambda: grouped((("S",),)), r"one path for each of its 2 values, got 1"),
        (lambda: grouped(("S", "N")), r"lists of names, .* got 'S'"),
        (lambda: grouped((("S",), (" ",))), r"not empty, got ' '"),
        (lambda: grouped((("S",), (3,))), r"must be texts .* got 3"),
        (lambda: grouped((("S > E",), ())), r"must not hold ' > ', .* got 'S > E'"),
        (lambda: grouped((("S >",), ())), r"must not hold ' > '"),
        (lambda: grouped(((">",), ())), r"must not hold ' > '"),
    ],
)
def test_refused(make, message):
    with pytest.raises(DomainError, match=message):
        make()


def test_numpy_numbers_are_numbers():
    assert Integers(np.int64(0), np.int32(9)) == Integers(0, 9)
    assert Bins(np.arange(0, 30, 10)) == Bins((0, 10, 20))
    assert Bins(np.array([0, 0.5], dtype=np.float32)) == Bins((0, 0.5))
