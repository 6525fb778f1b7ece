"""Whole numbers: how far cells move, which totals are kept, and what rounding errors can do."""

from itertools import product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rpexplore.estimation.whole_numbers import (
    nearest_margins,
    nearest_whole,
    rounded,
    with_columns,
)


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
    found = nearest_whole(values, [((0,), columns), ((1,), rows)], possible)
    assert (found is None) == (best is None)
    if found is not None:
        assert np.sum((found - values) ** 2) == pytest.approx(least)


def test_three_totals_are_met_where_they_can_be():
    values = np.random.default_rng(0).gamma(0.5, 3.0, (3, 4, 2))
    exact = np.rint(values)
    totals = [((axis,), exact.sum(axis=axis)) for axis in range(3)]
    found = nearest_whole(exact + 0.2 * (values - exact), totals, np.ones(values.shape, bool))
    np.testing.assert_array_equal(found, exact)
    # Of one cell nothing else than its total can be.
    one = np.ones((1, 1, 1))
    assert nearest_whole(one, [((0,), 2 * one[0]), ((1,), one[0]), ((2,), one[0])], one > 0) is None


@pytest.mark.parametrize("seed", range(5))
def test_one_way_tables_are_those_for_which_all_pairs_are_nearest(seed):
    """Beside all one-way tables of whole numbers around the values, tried one by one."""
    rng = np.random.default_rng(seed)
    sizes = (2, 2, 3) if seed % 2 else (2, 3, 2)
    table = rng.gamma(0.5, 3.0, sizes)
    if seed == 2:
        table -= 1.5  # noisy counts below 0
    possible = np.ones((sizes[1], sizes[2]), bool)
    if seed == 3:
        table[:, 0, 1], possible[0, 1] = 0, False
    if seed == 4:
        table = np.rint(table) + np.array([0.25, -0.25])  # the first two one-way tables are whole
    ones = {axis: table.sum(tuple({0, 1, 2} - {axis})) for axis in range(3)}
    pairs = {
        (a, b): (table.sum(3 - a - b), possible if a else np.ones((sizes[a], sizes[b]), bool))
        for a, b in ((0, 1), (0, 2), (1, 2))
    }
    total = float(np.rint(table.sum()))

    def distance(margins) -> float:
        found = sum(np.sum((margins[axis] - ones[axis]) ** 2) for axis in margins)
        for (a, b), (values, mask) in pairs.items():
            whole = nearest_whole(values, [((0,), margins[b]), ((1,), margins[a])], mask)
            if whole is None:
                return np.inf
            found += np.sum((whole - values) ** 2)
        return float(found)

    choices = [
        [
            np.floor(values + 1e-9) + np.array(step)
            for step in product((0, 1), repeat=values.size)
            if (np.floor(values + 1e-9) + np.array(step)).sum() == total
            and np.all(np.abs(np.floor(values + 1e-9) + np.array(step) - values) < 1 - 1e-9)
        ]
        for values in ones.values()
    ]
    chosen = nearest_margins(total, ones, pairs)
    best = min(distance(dict(enumerate(some))) for some in product(*choices))
    assert chosen is not None
    for axis, values in ones.items():
        assert chosen[axis].sum() == total
        assert np.all(np.abs(chosen[axis] - values) < 1)
    assert distance(chosen) == pytest.approx(best)


def test_no_one_way_tables_are_chosen_where_impossible_cells_leave_none():
    ones = {0: np.array([1.4, 0.6]), 1: np.array([0.6, 1.4])}
    diagonal = np.eye(2, dtype=bool)
    assert nearest_margins(2.0, ones, {(0, 1): (np.diag([1.4, 0.6]), diagonal)}) is not None
    whole = {0: np.array([2.0, 0.0]), 1: np.array([0.0, 2.0])}
    assert nearest_margins(2.0, whole, {(0, 1): (np.zeros((2, 2)), diagonal)}) is None
