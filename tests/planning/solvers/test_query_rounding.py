"""Measurements in integers: hardly dearer than what they are made from, and never biased."""

from fractions import Fraction

import numpy as np
import pytest

from rpexplore.planning.solvers.queries import fitness_for_use
from rpexplore.planning.solvers.query_rounding import MOST_ENTRY_BITS, integer_measurement
from rpexplore.workload.query_list import QueryList
from tests.support.query_lists import identity_and_sum, marginals, prefix, query_list, ranges


def rank(rows) -> int:
    """Of a matrix of integers, by exact elimination."""
    rows, count = [[Fraction(int(entry)) for entry in row] for row in rows], 0
    for column in range(len(rows[0])):
        pivot = next((row for row in range(count, len(rows)) if rows[row][column]), None)
        if pivot is None:
            continue
        rows[count], rows[pivot] = rows[pivot], rows[count]
        for row in range(count + 1, len(rows)):
            factor = rows[row][column] / rows[count][column]
            if factor:
                pairs = zip(rows[row], rows[count], strict=True)
                rows[row] = [entry - factor * above for entry, above in pairs]
        count += 1
    return count


def lists():
    rng = np.random.default_rng(3)
    yield "prefix", query_list(prefix(16))
    yield "identity and sum", query_list(identity_and_sum(9), rng.uniform(1, 5, 10))
    yield "few ranges", query_list(ranges(20, 7, rng))
    yield "cells not asked", query_list(np.kron(prefix(4), [[0, 1, 1]]))
    yield "marginals", query_list(marginals((2, 3, 3), 2)[:30], rng.uniform(1, 5, 30))
    weighted = query_list(np.round(rng.normal(size=(5, 8)), 1) + 5 * ranges(8, 5, rng))
    yield "decimals", weighted
    once = marginals((2, 4), 1)
    yield "dependent decimals", query_list(np.vstack([once, 0.5 * once]))
    yield "one query", query_list([[3, 0, -2]])


LISTS = [pytest.param(made, id=name) for name, made in lists()]


def measured(queries: QueryList):
    fitness = fitness_for_use(queries.coefficients, queries.targets)
    integers = integer_measurement(
        fitness.matrix, queries.coefficients, queries.integers, queries.targets
    )
    return fitness, integers


@pytest.mark.parametrize("queries", LISTS)
def test_rows_span_those_of_the_queries_exactly(queries):
    _, integers = measured(queries)
    assert rank(integers) == len(integers) == rank(queries.integers)
    assert rank(np.vstack([integers, queries.integers])) == len(integers)
    assert np.abs(integers).max() <= 2**MOST_ENTRY_BITS


@pytest.mark.parametrize("queries", LISTS)
def test_next_to_no_accuracy_is_lost(queries):
    fitness, integers = measured(queries)
    gram = integers.T.astype(float) @ integers
    variances = np.einsum(
        "ij,jk,ik->i", queries.coefficients, np.linalg.pinv(gram), queries.coefficients
    )
    cost = np.max(variances / queries.targets**2) * np.max(np.diag(gram))
    assert cost <= fitness.cost * (1 + 1.1e-4)


def test_cells_with_the_same_coefficients_are_measured_alike():
    queries = query_list(np.kron(prefix(4), [[0, 1, 1]]))
    _, integers = measured(queries)
    np.testing.assert_array_equal(integers[:, 1::3], integers[:, 2::3])
    assert not integers[:, ::3].any()


def test_untouched_directions_are_measured_faintly_if_need_be():
    """Multiples of queries with six decimals would be too coarse."""
    rng = np.random.default_rng(0)
    queries = query_list(np.round(rng.uniform(0.1, 0.9, (2, 5)), 6))
    fitness, integers = measured(queries)
    assert len(integers) == rank(integers) == 5
    gram = integers.T.astype(float) @ integers
    variances = np.diag(queries.coefficients @ np.linalg.inv(gram) @ queries.coefficients.T)
    cost = np.max(variances) * np.max(np.diag(gram))
    assert cost <= fitness.cost * (1 + 1.1e-4)
    assert np.linalg.norm(integers[2:]) < 0.05 * np.linalg.norm(integers[:2])
