"""Bins of numeric attributes: every value has exactly one, and what cannot be is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpexplore.domain.ordered_values import Bins, Integers
from rpexplore.errors import DomainError
from rpexplore.scenarios import bins

AGE, INCOME = Integers(0, 99, 5), Bins((0, 500, 1000, 2500))


@pytest.mark.parametrize(
    ("given_", "whole", "made"),
    [
        ((0, 99, 10), True, Integers(0, 99, 10)),
        ((0, 104, 10), True, Integers(0, 104, 10)),
        ((0, 100, 25), False, Bins((0, 25, 50, 75, 100))),
        ((0, 100, 30), False, Bins((0, 30, 60, 90, 100))),
        ((0, 0.5, 0.1), False, Bins((0, 0.1, 0.2, 0.3, 0.4, 0.5))),  # not 0.30000000000000004
        ((-1.5, 1.5, 5), False, Bins((-1.5, 1.5))),
    ],
)
def test_equal_widths(given_, whole, made):
    assert bins.equal_bins(*given_, whole=whole) == made


@pytest.mark.parametrize(
    ("given_", "whole", "message"),
    [
        ((0, 99, 0), True, "width must be above 0"),
        ((0, 99, -5), False, "width must be above 0"),
        ((0, 99, 2.5), True, "width of whole numbers must be whole, got 2.5"),
        ((0.5, 99, 1), True, "lowest value of whole numbers must be whole, got 0.5"),
        ((5, 4, 1), True, "maximum must not be below"),
        ((5, 5, 1), False, "highest value must be above the lowest, got 5 … 5"),
        ((0, float("inf"), 1), False, "highest value must be a finite number"),
        ((0, 10, 1e-6), False, "10,000,000 bins, and an attribute has at most 1,000,000"),
    ],
)
def test_equal_widths_that_cannot_be(given_, whole, message):
    with pytest.raises(DomainError, match=message):
        bins.equal_bins(*given_, whole=whole)


@pytest.mark.parametrize("text", ["0, 500, 1000, 2500", "0;500;1000;2500", "0 500\n1e3\t2500,"])
def test_own_edges(text):
    assert bins.bins_from_text(text) == INCOME


def test_beside_semicolons_a_comma_is_decimal():
    assert bins.bins_from_text("0; 0,5;\n1,25") == Bins((0, 0.5, 1.25))
    assert bins.bins_of_texts(["0", "0,5"]) == Bins((0, 0.5))
    with pytest.raises(DomainError, match=r"1,000 may mean 1000 or 1\.000"):
        bins.bins_from_text("0; 1,000")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0, 1o", "An edge must be a number, got '1o'"),
        ("0, 5, 5", "must increase, got 5 before 5"),
        ("0", "at least two edges"),
        ("0, inf", "must be finite"),
    ],
)
def test_own_edges_that_cannot_be(text, message):
    with pytest.raises(DomainError, match=message):
        bins.bins_from_text(text)


@given(st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=9, unique=True).map(sorted))
def test_edges_survive_being_written_and_read(edges):
    made = Bins(tuple(edges))
    assert bins.bins_from_text(", ".join(bins.edge_texts(made))) == made


def number_of_bin(values, number):
    """Which bin a whole number falls into, as records are read."""
    if isinstance(values, Integers):
        return (number - values.minimum) // values.step
    return min(int(np.searchsorted(values.edges, number, side="right")) - 1, values.size - 1)


@given(st.integers(-50, 50), st.integers(0, 60), st.integers(1, 20))
def test_whole_numbers_as_intervals_have_the_same_bins(lowest, more, step):
    values = Integers(lowest, lowest + more, step)
    same = bins.as_bins(values)
    assert same.size == values.size
    for number in range(lowest, lowest + more + 1):
        assert number_of_bin(same, number) == number_of_bin(values, number)


@given(st.data())
def test_merging_joins_these_bins_and_splitting_undoes_it(data):
    values = data.draw(st.sampled_from([AGE, INCOME]))
    first = data.draw(st.integers(1, values.size - 1))
    last = data.draw(st.integers(first + 1, values.size))
    merged = bins.merged(values, first, last)
    whole = bins.as_bins(values)
    assert merged.size == values.size - (last - first)
    assert merged.edges[first - 1 : first + 1] == (whole.edges[first - 1], whole.edges[last])
    again = merged
    for number in range(first, last):
        again = bins.split(again, number, whole.edges[number])
    assert again == whole


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda: bins.merged(AGE, 0, 3), "have the numbers 1 to 20, got 0"),
        (lambda: bins.merged(AGE, 19, 21), "have the numbers 1 to 20, got 21"),
        (lambda: bins.merged(AGE, 3, 3), "two different bins, the lower one first, got 3 and 3"),
        (lambda: bins.merged(AGE, 4, 3), "the lower one first"),
        (lambda: bins.split(INCOME, 2, 500), "Bin 2 can be split between 500 and 1000, got 500"),
        (lambda: bins.split(INCOME, 2, float("nan")), "can be split between"),
        (lambda: bins.split(INCOME, 4, 3000), "1 to 3, got 4"),
        (lambda: bins.split(AGE, 1, 2.5), "at a whole number, got 2.5"),
        (lambda: bins.split(AGE, 1, 5), "can be split between 0 and 5, got 5"),
        (lambda: bins.split(Integers(3, 9), 1, 3.5), "Bin 1 is the single number 3"),
        (lambda: bins.split(Integers(0, 100, 5), 21, 100.5), "Bin 21 is the single number 100"),
    ],
)
def test_bins_that_cannot_be_merged_or_split(change, message):
    with pytest.raises(DomainError, match=message):
        change()


@pytest.mark.parametrize(
    ("values", "number", "at"), [(INCOME, 1, 250), (AGE, 1, 3), (Bins((0, 1)), 1, 0.5)]
)
def test_a_bin_is_offered_to_be_split_in_the_middle(values, number, at):
    assert bins.middle(values, number) == at
    assert bins.split(values, number, at).size == values.size + 1


def test_bins_described_and_numbered():
    assert bins.describe(AGE) == "20 bins: 0 to 4, 5 to 9, …, 95 to 99."
    assert bins.describe(Bins((0, 1))) == "1 bin: 0 to 1."
    assert bins.describe(INCOME) == ("3 bins: 0 to under 500, 500 to under 1000, 1000 to 2500.")
    frame = bins.numbered(AGE, 3)
    assert frame.to_dict("list") == {"bin": [1, 2, 3], "label": ["0 to 4", "5 to 9", "10 to 14"]}
    assert len(bins.numbered(INCOME, 10)) == 3


def test_an_additional_value_is_named():
    merged = bins.merged(Integers(0, 100, 5), 1, 2)
    assert merged.edges[-1] == 101
    assert bins.widened(Integers(0, 100, 5), merged).endswith("would also take 101.")
    assert bins.widened(AGE, bins.merged(AGE, 1, 2)) == ""
    assert bins.widened(INCOME, bins.merged(INCOME, 1, 2)) == ""
    # Merged with others, the last number needs no interval of its own.
    assert bins.merged(Integers(1, 7), 6, 7).edges[-2:] == (6, 7)
    assert bins.widened(Integers(1, 7), bins.merged(Integers(1, 7), 6, 7)) == ""


def test_limits():
    assert bins.limits(AGE) == (0, 99, 5)
    assert bins.limits(INCOME) == (0, 2500, 500)
