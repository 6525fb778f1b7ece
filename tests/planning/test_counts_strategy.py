"""Query strategies: exact sensitivities, decoding against dense matrices, refusals."""

import numpy as np
import pytest

from rpexplore.errors import PlanError
from rpexplore.planning.counts_strategy import QueryStrategy
from tests.support.query_lists import marginals, prefix, query_list

MEASURED = [[3, -1, 0], [2, 2, 0]]
QUERIES = query_list([[1, 0, 0], [1, 1, 0], [-0.5, 2, 0]])


def test_what_follows_from_the_integers():
    strategy = QueryStrategy(QUERIES, np.array(MEASURED))
    assert strategy.column_squares.tolist() == [13, 5, 0]
    assert strategy.squared_sensitivity == 13
    np.testing.assert_allclose(strategy.profile, [1, 5 / 13, 0])
    assert strategy.spare.tolist() == [False, True, True]
    np.testing.assert_allclose(
        strategy.decoding, QUERIES.coefficients[:, :2] @ np.linalg.inv(np.array(MEASURED)[:, :2])
    )
    gram = np.array(MEASURED).T @ MEASURED
    expected = np.diag(QUERIES.coefficients @ np.linalg.pinv(gram) @ QUERIES.coefficients.T)
    np.testing.assert_allclose(strategy.variance_factors, expected)


def test_answers_are_those_of_the_queries():
    queries = query_list(marginals((2, 3), 1))
    strategy = QueryStrategy(queries, np.array(marginals((2, 3), 1)[[0, 1, 3, 4]], dtype=int))
    counts = np.random.default_rng(0).integers(0, 10**6, 6)
    np.testing.assert_allclose(
        strategy.decoding @ (strategy.integers @ counts), queries.coefficients @ counts, rtol=1e-12
    )


def test_the_largest_integers_are_counted_exactly():
    n = 512
    strategy = QueryStrategy(query_list(np.eye(n)), np.eye(n, dtype=np.int64) * 2**26)
    assert strategy.squared_sensitivity == 2**52
    full = QueryStrategy(query_list(np.ones((1, n))), np.full((1, n), -(2**26)))
    assert full.squared_sensitivity == 2**52


@pytest.mark.parametrize(
    ("integers", "message"),
    [
        ([[1, 0, 0]], "does not determine 'query 2'"),
        ([[1, 0, 0], [0, 0, 1]], "does not determine 'query 2'"),
        ([[1, 2, 0], [2, 4, 0]], "does not determine"),
        ([[0, 0, 0], [0, 0, 0]], "does not determine"),
        (np.eye(4, dtype=int), r"3 cells must have 1 to 3 rows of 3 numbers, got .*\(4, 4\)"),
        (np.ones((4, 3), dtype=int), r"got the shape \(4, 3\)"),
        (np.empty((0, 3), dtype=int), r"got the shape \(0, 3\)"),
        ([1, 2, 3], "got the shape"),
        ([[1.0, 0, 0], [0, 1, 0]], "must be integers"),
        ([[2**26 + 1, 0, 0], [0, 1, 0]], "integers within"),
        (np.array([[-(2**63), 0, 0], [0, 1, 0]]), "integers within"),
    ],
)
def test_refusals(integers, message):
    with pytest.raises(PlanError, match=message):
        QueryStrategy(QUERIES, np.array(integers))


def test_a_matrix_that_cannot_be_computed_with_is_refused():
    nearly = np.array([[2**26, 2**26], [2**26, 2**26 - 1]])
    with pytest.raises(PlanError, match="well enough to compute with"):
        QueryStrategy(query_list(prefix(2)), nearly)
