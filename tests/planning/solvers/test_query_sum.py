"""The least sum of query variances: against CVXPY, and against a single attribute's best matrix."""

import cvxpy as cp
import numpy as np
import pytest

from rpexplore.planning.solvers.queries import decoding, least_sum
from tests.support.query_lists import marginals, prefix, ranges


def least_sum_by_cvxpy(queries, targets):
    n = queries.shape[1]
    covered = cp.Variable((n, n), PSD=True)
    total = sum(
        cp.matrix_frac(query / target, covered)
        for query, target in zip(queries, targets, strict=True)
    )
    problem = cp.Problem(cp.Minimize(total), [cp.diag(covered) <= 1])
    problem.solve(solver=cp.CLARABEL)
    return float(problem.value)


def cases():
    rng = np.random.default_rng(0)
    yield "prefix", prefix(6), np.ones(6)
    yield "ranges", ranges(6, 9, rng), rng.uniform(1, 9, 9)
    yield "few ranges", ranges(6, 3, rng), np.ones(3)
    yield "marginals", marginals((2, 3), 1), rng.uniform(1, 9, 6)
    yield "cells not asked", np.kron(prefix(3), [[0, 1]]), np.ones(3)


@pytest.mark.parametrize(
    ("queries", "targets"), [pytest.param(*each, id=name) for name, *each in cases()]
)
def test_equals_the_convex_optimum(queries, targets):
    matrix = least_sum(queries, targets)
    assert np.max(np.sum(matrix**2, axis=0)) == pytest.approx(1, rel=1e-12)
    assert not matrix[:, ~queries.any(axis=0)].any()
    variances = np.sum(decoding(matrix, queries) ** 2, axis=1)
    assert np.sum(variances / targets**2) == pytest.approx(
        least_sum_by_cvxpy(queries, targets), rel=1e-4
    )


def test_the_search_can_be_followed():
    shares = []
    least_sum(prefix(8), np.ones(8), on_share=shares.append)
    assert shares[-1] == 1
