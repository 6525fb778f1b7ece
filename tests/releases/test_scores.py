"""Scores: their sensitivity over all neighbours of small data sets, and what would overflow."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpexplore.errors import ReleaseError
from rpexplore.releases.adaptive_rounds import (
    LARGEST_TOTAL,
    LARGEST_WEIGHT,
    l1_distances,
    scores,
    sensitivity,
)

SIZES = (2, 3, 2)
TABLES = [table for k in range(1, 4) for table in combinations(range(3), k)]


def tables_of(records: np.ndarray) -> list[np.ndarray]:
    """All marginals of the counts of all cells."""
    return [
        records.sum(axis=tuple(axis for axis in range(3) if axis not in table)) for table in TABLES
    ]


def neighbours(records: np.ndarray):
    for cell in np.ndindex(SIZES):
        for change in (1, -1):
            if records[cell] + change >= 0:
                neighbour = records.copy()
                neighbour[cell] += change
                yield neighbour


values = st.floats(-50, 50) | st.integers(-100, 100).map(lambda twice: twice / 2)


@given(
    records=st.lists(st.integers(0, 5), min_size=12, max_size=12),
    estimate=st.lists(values, min_size=12, max_size=12),
    weights=st.lists(st.integers(1, LARGEST_WEIGHT), min_size=7, max_size=7),
    allowances=st.lists(st.integers(0, 10**6), min_size=7, max_size=7),
)
def test_no_neighbour_changes_a_score_by_more_than_its_weight(
    records, estimate, weights, allowances
):
    exact = np.array(records).reshape(SIZES)
    estimates = [np.resize(estimate, table.shape) for table in tables_of(exact)]
    weights = np.array(weights)

    def of(counted):
        distances = l1_distances(tables_of(counted), estimates)
        return scores(distances, weights, np.array(allowances))

    largest = np.zeros(len(weights), dtype=int)
    for neighbour in neighbours(exact):
        largest = np.maximum(largest, np.abs(of(neighbour) - of(exact)))
    assert largest.tolist() == weights.tolist()  # every record that comes moves each table
    assert sensitivity(weights) == largest.max()


def test_scores_are_whole_and_by_the_definition():
    counts = [np.array([3, 0, 7]), np.array([[4, 4], [1, 0]])]
    estimates = [np.array([2.4, -0.6, 7.49]), np.array([[3.5, 4.5], [0.5, -3.0]])]
    distances = l1_distances(counts, estimates)
    # Rounded: 2, -1, 7, and, halves to even, 4, 4, 0, -3.
    assert distances.tolist() == [1 + 1 + 0, 0 + 0 + 1 + 3]
    found = scores(distances, np.array([5, 2]), np.array([1, 10]))
    assert found.tolist() == [5 * (2 - 1), 2 * (4 - 10)]
    assert found.dtype == np.int64


def test_the_largest_scores_do_not_overflow():
    counts = [np.array([LARGEST_TOTAL - 1, 0])]
    distances = l1_distances(counts, [np.array([0.0, -(LARGEST_TOTAL - 1)])])
    weight = np.array([LARGEST_WEIGHT])
    assert scores(distances, weight, np.array([0]))[0] == LARGEST_WEIGHT * 2 * (LARGEST_TOTAL - 1)
    lowest = scores(np.array([0]), weight, np.array([LARGEST_TOTAL - 1]))
    assert lowest[0] == -LARGEST_WEIGHT * (LARGEST_TOTAL - 1)


@pytest.mark.parametrize(
    ("counts", "estimate", "message"),
    [
        (np.array([1, 2]), np.array([0.0, LARGEST_TOTAL]), "must add up to less than .* got 2.2e"),
        (np.array([1, 2]), np.array([0.0, np.nan]), "must add up to less than .* got nan"),
        (np.array([1, 2]), np.array([0.0, -np.inf]), "must add up to less than .* got inf"),
        (np.array([1.0, 2]), np.zeros(2), "array of int64 .* got float64"),
        (np.array([1, 2]), np.zeros((1, 2)), r"estimate in shape \(1, 2\)"),
        (np.array([0, 2 * LARGEST_TOTAL]), np.zeros(2), "Exact counts must be 0 or more and"),
        (np.array([-1, 3]), np.zeros(2), "Exact counts must be 0 or more and"),
    ],
)
def test_refuses_tables_that_cannot_be_compared_exactly(counts, estimate, message):
    with pytest.raises(ReleaseError, match=message):
        l1_distances([counts], [estimate])


@pytest.mark.parametrize(
    ("weights", "allowances", "message"),
    [
        ([1.5], [0], "weights of the candidates must be int64, got float64"),
        ([0], [0], "weights of the candidates must be from 1 to 1,048,576, got 0"),
        ([2**20 + 1], [0], "got 1,048,577; scale them"),
        ([1], [-1], "allowances of the candidates must be from 0 to"),
        ([1], [LARGEST_TOTAL], "allowances of the candidates must be from 0 to"),
    ],
)
def test_refuses_weights_and_allowances_without_an_exact_sensitivity(weights, allowances, message):
    with pytest.raises(ReleaseError, match=message):
        scores(np.array([3]), np.array(weights), np.array(allowances))
