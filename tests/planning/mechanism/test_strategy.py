"""Strategies: exact costs, the inverse, and what questions see of the noise."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.errors import PlanError
from rpexplore.planning.mechanism.strategy import (
    MOST_BITS,
    Moments,
    Strategy,
    hull,
    measured_attributes,
    moments,
)
from rpexplore.workload.table_text import query_matrix
from tests.support.generalised import (
    any_strategies,
    any_strategy,
    basis_matrix,
    workloads_with_bases,
)

seeds = st.integers(0, 2**32)


@given(st.integers(2, 12), st.integers(0, MOST_BITS), seeds)
def test_a_strategy_is_what_its_integers_say(n, bits, seed):
    strategy = any_strategy(n, seed)
    strategy = Strategy(strategy.integers, bits)  # another power of two below the same integers
    columns = strategy.integers.T.tolist()
    largest = max(sum(entry * entry for entry in column) for column in columns)
    assert strategy.squared_sensitivity == largest
    assert strategy.cost_factor == Fraction(largest, 4**bits)
    np.testing.assert_array_equal(strategy.matrix * 2.0**bits, strategy.integers)
    z, decoding, matrix = strategy.reference, strategy.decoding, strategy.matrix
    assert z.shape == (n,)
    assert decoding.shape == (n, n - 1)
    assert z.sum() == pytest.approx(1, abs=1e-10)
    np.testing.assert_allclose(matrix @ z, 0, atol=1e-9 * np.abs(matrix).max())
    np.testing.assert_allclose(np.outer(z, np.ones(n)) + decoding @ matrix, np.eye(n), atol=1e-9)
    for array in (strategy.integers, z, decoding):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_the_largest_sensitivity_does_not_overflow():
    """300 numbers of 2^20; it would take 2^23 values to leave 64 bits."""
    n = 300
    integers = np.hstack([np.full((n - 1, 1), 2**20), np.eye(n - 1, dtype=np.int64) * 2**12])
    assert Strategy(integers, MOST_BITS).squared_sensitivity == (n - 1) * 2**40


@pytest.mark.parametrize(
    ("integers", "bits", "message"),
    [
        ([[1, 0], [0, 1]], 3, r"got the shape \(2, 2\)"),
        ([[1]], 3, r"got the shape \(1, 1\)"),
        ([[3, 3]], 3, "must be invertible"),
        ([[0, 0]], 3, "must be invertible"),
        ([[1, 2, 3], [2, 4, 6]], 3, "must be invertible"),
        ([[1, 2, 3], [2, 3, 4]], 3, "must be invertible"),  # their difference is a row of ones
        ([[2**20 + 1, 0]], 3, "within"),
        ([[-(2**20) - 1, 0]], 3, "within"),
        ([[1, 0]], -1, "within"),
        ([[1, 0]], MOST_BITS + 1, "within"),
    ],
)
def test_refused(integers, bits, message):
    with pytest.raises(PlanError, match=message):
        Strategy(np.array(integers), bits)


def test_what_cannot_be_decoded_in_floats_is_refused():
    """Numbers of Fibonacci: the determinant is 1, but the inverse has to cancel 12 digits."""
    with pytest.raises(PlanError, match="must be invertible"):
        Strategy(np.array([[832_040, 514_229, 0], [514_229, 317_811, 0]]), 0)
    assert Strategy(np.array([[89, 55, 0], [55, 34, 0]]), 0).size == 3


@given(workloads_with_bases(), seeds)
@settings(deadline=None, max_examples=60)
def test_moments_against_dense_matrices(workload, seed):
    strategies = any_strategies(workload, seed)
    assert measured_attributes(workload) == sorted(strategies)
    for index, basis in workload.attribute_bases:
        attribute = workload.domain.attributes[index]
        n, w = attribute.size, basis_matrix(basis, attribute)
        result = moments(workload, index, basis, strategies)
        if index in strategies:
            stacked = np.vstack([np.ones(n), strategies[index].integers / 2.0**10])
            inverse = np.linalg.inv(stacked)
        else:  # docs/mathematics.md §4.1: as if n − 1 orthonormal rows were measured
            inverse = np.column_stack([np.full(n, 1 / n), np.eye(n)[:, 1:]])
        nu = w @ inverse[:, 0]
        spread = np.sum((w @ inverse[:, 1:]) ** 2, axis=1)
        if index not in strategies:
            spread = np.sum((w @ (np.eye(n) - 1 / n)) ** 2, axis=1)
        np.testing.assert_allclose(result.total, nu**2, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(result.spread, spread, rtol=1e-9, atol=1e-11)
        assert np.all(result.spread >= 0)
        assert result.total_sum == pytest.approx(np.sum(nu**2), rel=1e-9)
        assert result.spread_sum == pytest.approx(np.sum(spread), rel=1e-9, abs=1e-11)


def test_single_values_hold_nothing_however_many():
    result = Moments.of_single_values(10**6)
    assert result.spread.nbytes == result.total.nbytes == 8 * 10**6  # as if …
    assert result.spread.strides == result.total.strides == (0,)
    assert (result.spread_sum, result.total_sum) == (10**6 - 1, 1e-6)


def test_single_values_of_a_strategy():
    strategy = any_strategy(5, 3)
    domain = rp.Domain.from_sizes({"a": 5})
    result = strategy.value_moments
    expected = strategy.moments(query_matrix(rp.Identity(), domain["a"]))
    for name in ("spread", "total", "spread_sum", "total_sum"):
        np.testing.assert_allclose(getattr(result, name), getattr(expected, name), rtol=1e-12)


def test_an_attribute_without_its_strategy_is_named():
    workload = rp.Workload.all_up_to(rp.Domain.from_sizes({"age": 4}), 1).with_bases(
        {"age": rp.Prefix()}
    )
    with pytest.raises(PlanError, match=r"'age' has another basis than single values"):
        moments(workload, 0, rp.Prefix(), {})


# ---- the hull

numbers = st.integers(0, 6).map(float) | st.floats(0, 10)


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=30), st.booleans(), seeds)
@settings(max_examples=300)
def test_the_hull_holds_an_extreme_point_of_every_direction(points, largest, seed):
    x, y = np.array(points).T
    kept = hull(x, y, largest=largest)
    assert len(set(kept.tolist())) == len(kept) > 0
    assert np.all(np.diff(x[kept]) * (-1 if largest else 1) >= 0)
    angles = np.random.default_rng(seed).uniform(0, np.pi / 2, 50)
    for angle in (0, np.pi / 2, *angles):
        values = np.cos(angle) * x + np.sin(angle) * y
        every, some = (values, values[kept]) if largest else (-values, -values[kept])
        assert some.max() == pytest.approx(every.max(), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(
    ("points", "largest", "kept"),
    [
        ([(1, 1)], True, [0]),
        ([(1, 1), (1, 1), (0, 1), (1, 0)], True, [0]),
        ([(0, 3), (3, 0), (1, 1)], True, [1, 0]),  # below the line between the others
        ([(0, 3), (3, 0), (1, 1)], False, [0, 2, 1]),
        ([(0, 3), (3, 0), (2, 2)], True, [1, 2, 0]),
        ([(0, 2), (1, 1), (2, 0)], True, [2, 0]),  # on a line: the ends do
        ([(0, 0), (5, 5), (5, 0), (0, 5)], False, [0]),
    ],
)
def test_hulls(points, largest, kept):
    x, y = np.array(points, dtype=float).T
    assert hull(x, y, largest=largest).tolist() == kept


def test_rows_that_are_all_alike_have_one_vertex():
    result = Moments.of_single_values(10**6)
    assert result.least_accurate_rows.tolist() == [0]
    assert result.most_accurate_rows.tolist() == [0]


@pytest.mark.parametrize(
    "integers",
    [
        np.array([[-(2**63), 2**20]]),  # its absolute value in 64 bits is itself
        np.array([[2**63 - 1, 1]]),
        np.array([[2**20 + 1, 0]]),
        np.array([[1.0, 0.0]]),
        np.array([[2**63, 1]], dtype=np.uint64),
    ],
)
def test_entries_beyond_the_limit_are_refused(integers):
    with pytest.raises(PlanError, match="must be integers within"):
        Strategy(integers, 4)


def test_bits_are_a_whole_number():
    with pytest.raises(PlanError, match="must be integers within"):
        Strategy(np.array([[1, 0]]), np.float64(1))  # as a damaged cache may hold


def test_what_cannot_be_decoded_exactly_is_refused():
    nearly_alike = np.array([[-899818, -908868, 188403], [-899821, -908871, 188401]])
    with pytest.raises(PlanError, match="well enough to compute with"):
        Strategy(nearly_alike, 20)


def test_a_question_that_is_the_total_has_no_part_in_the_residual():
    """Exact to all digits, however much cancels in D Dᵀ."""
    strategy = Strategy(np.array([[4001, 4000, 3999], [4000, 4001, 4001]]), 12)
    attribute = rp.Attribute("a", rp.Integers(0, 2))
    result = strategy.moments(query_matrix(rp.Prefix(), attribute))
    assert result.total[2] == pytest.approx(1, rel=1e-9)
    assert result.spread[2] < 1e-12 * result.spread.max()
