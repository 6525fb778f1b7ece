"""Whole numbers: how far cells move, which totals are kept, and what rounding errors can do."""

from itertools import product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rpexplore.estimation.whole_numbers import nearest_whole, rounded, with_columns


def totals_of(table):
    return [table.sum(axis=tuple(range(axis, table.ndim))) for axis in range(table.ndim + 1)]


def check(table, rounded_table, allowed=1.0):
    assert rounded_table.dtype == np.float64
    assert rounded_table.shape == table.shape
    np.testing.assert_array_equal(rounded_table, np.rint(rounded_table))
    assert rounded_table.sum() == np.rint(table.sum())
    for wanted, got in zip(totals_of(table), totals_of(rounded_table), strict=True):
        assert np.all(np.abs(got - wanted) < allowed)


@st.composite
def tables(draw):
    shape = draw(st.lists(st.integers(1, 5), max_size=3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kind = draw(st.sampled_from(["any", "halves", "whole", "small", "negative"]))
    table = rng.gamma(0.3, 4.0, shape)
    match kind:
        case "halves":
            table = np.rint(2 * table) / 2
        case "whole":
            table = np.rint(table)
        case "small":
            table *= 1e-3
        case "negative":
            table = rng.normal(0.0, 3.0, shape)
    return np.asarray(table)


@given(tables())
def test_every_cell_and_leading_total_moves_by_less_than_one(table):
    check(table, rounded(totals_of(table)))


@given(tables(), st.integers(0, 2**32))
@settings(max_examples=300)
def test_rounding_errors_in_the_totals_do_no_harm(table, seed):
    rng = np.random.default_rng(seed)
    given_totals = [total + 1e-10 * rng.normal(size=total.shape) for total in totals_of(table)]
    if abs(abs(table.sum() % 1) - 0.5) < 1e-6:
        return  # either of two whole numbers is nearest
    check(table, rounded(given_totals), allowed=1 + 1e-5)


@given(tables().filter(lambda table: table.ndim == 2), st.booleans())
@example(np.array([[-3.9]]), False)  # its columns add up to less than what is possible, 0
def test_columns_of_a_table_add_up_as_well(table, is_nonnegative):
    table = np.maximum(table, 0) if is_nonnegative else table
    whole = rounded(totals_of(table))
    columns = rounded([table.sum(), table.sum(axis=0)])
    moved = with_columns(whole, table, columns, np.ones(table.shape, bool))
    np.testing.assert_array_equal(moved, np.rint(moved))
    np.testing.assert_array_equal(moved.sum(axis=0), columns)
    np.testing.assert_array_equal(moved.sum(axis=1), whole.sum(axis=1))
    assert moved.min(initial=0) >= 0 or table.min(initial=0) < 0
    # A table that has these sums stays, and no cell without a record gets one.
    np.testing.assert_array_equal(with_columns(moved, table, columns, moved > 0), moved)
    possible = table > 0
    assert not with_columns(whole * possible, table, columns, possible)[~possible].any()


def test_the_largest_fractions_go_up():
    table = np.array([0.2, 0.9, 1.4, 0.5])
    np.testing.assert_array_equal(rounded(totals_of(table)), [0, 1, 1, 1])


def test_ties_go_to_the_first_cells():
    np.testing.assert_array_equal(rounded(totals_of(np.full(4, 0.5))), [1, 1, 0, 0])


def test_whole_numbers_stay():
    table = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(rounded(totals_of(table)), table)


def test_a_table_has_the_totals_of_the_table_of_its_first_attributes():
    table = np.random.default_rng(0).gamma(0.3, 4.0, (6, 5, 7))
    whole, *finer = totals_of(table)
    first = rounded([whole, finer[0]])
    both = rounded([whole, finer[0], finer[1]])
    every = rounded([whole, *finer])
    np.testing.assert_array_equal(every.sum(axis=2), both)
    np.testing.assert_array_equal(both.sum(axis=1), first)


def test_many_cells_a_little_above_zero():
    """Each is taken for 0, and their sum is not."""
    table = np.full((3, 100_000), 9e-7)
    table[0] += 5e-6
    check(table, rounded(totals_of(table)))


def test_many_cells_a_little_below_a_whole_number():
    """Each is taken for 1, and their sum is one less."""
    table = np.full((2, 100_000), 1 - 9.9e-7)
    table[1, :4] += 0.3
    table[0] *= 1 - 9e-6
    check(table, rounded(totals_of(table)))
    check(1 - np.full((1, 700_000), 9e-7), rounded(totals_of(1 - np.full((1, 700_000), 9e-7))))


def test_two_million_cells_are_fast_and_right():
    table = np.random.default_rng(0).gamma(0.05, 4.0, (100, 100, 200))
    check(table, rounded(totals_of(table)))


@given(st.integers(0, 2**32), st.booleans())
@settings(max_examples=30)
def test_the_nearest_table_with_both_totals_is_found(seed, is_nonnegative):
    """Against all tables of three whole numbers around each value."""
    rng = np.random.default_rng(seed)
    values = rng.gamma(0.5, 2.0, (2, 3)) if is_nonnegative else rng.normal(0.0, 2.0, (2, 3))
    possible = rng.random((2, 3)) < 0.9
    values = np.where(possible, values, 0.0)
    rows, columns = (rounded([values.sum(), values.sum(axis=axis)]) for axis in (1, 0))
    best, least = None, np.inf
    for steps in product((-1, 0, 1), repeat=6):
        table = np.floor(values + 1e-6) + np.reshape(steps, (2, 3))
        table = np.where(possible, table, 0.0)
        if is_nonnegative and table.min() < 0:
            continue
        fits = np.array_equal(table.sum(axis=1), rows) and np.array_equal(
            table.sum(axis=0), columns
        )
        if fits and (distance := np.sum((table - values) ** 2)) < least - 1e-9:
            best, least = table, distance
    found = nearest_whole(values, [(0, columns), (1, rows)], possible)
    assert (found is None) == (best is None)
    if found is not None:
        assert np.sum((found - values) ** 2) == pytest.approx(least)


def test_three_totals_are_met_where_they_can_be():
    values = np.random.default_rng(0).gamma(0.5, 3.0, (3, 4, 2))
    exact = np.rint(values)
    totals = [(axis, exact.sum(axis=axis)) for axis in range(3)]
    found = nearest_whole(exact + 0.2 * (values - exact), totals, np.ones(values.shape, bool))
    np.testing.assert_array_equal(found, exact)
    # Of one cell nothing else than its total can be.
    one = np.ones((1, 1, 1))
    assert nearest_whole(one, [(0, 2 * one[0]), (1, one[0]), (2, one[0])], one > 0) is None
