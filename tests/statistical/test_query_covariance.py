"""10,000 simulated releases of a list of queries, against dense matrices.

The real measuring and decoding code runs, on the real sampler. Thresholds are those of
`test_release_covariance`; the covariance is derived from the plan's file: from the integers and the
noise scale that are in it, with nothing of the library's decoding. 45 pairs at 7.5 deviations: the
false alarms are below 3e-11 in all.
"""

import json
from fractions import Fraction

import numpy as np
import pytest

from rpexplore import Budget
from rpexplore.planning.counts.query_plan import QueryPlan
from rpexplore.planning.counts.query_planner import query_plan
from rpexplore.releases.query_release import QuerySteps
from tests.statistical.test_release_covariance import (
    DEVIATIONS,
    PAIR_DEVIATIONS,
    RELEASES,
    Counted,
    assert_mean_and_covariance,
    pair_deviations,
    whole_deviations,
)
from tests.support.exact_counts import counts_of
from tests.support.query_lists import query_list, ranges

SIZES = [2, 3]


def query_matrix() -> np.ndarray:
    """Ranges, some with decimals, a difference, and a sum of two others: rank below 6."""
    rng = np.random.default_rng(5)
    rows = ranges(6, 5, rng)
    rows[1] *= 2.5
    rows[:, 5] = rows[:, 4]  # the last two cells are never told apart
    difference = np.array([[1.0, -1, 0, 0, 0, 0]])
    return np.vstack([rows, difference, rows[:1] + difference, np.ones((1, 6)), rows[2:3] / 4])


@pytest.fixture(scope="module")
def simulated() -> tuple[QueryPlan, np.ndarray]:
    """The plan, and the errors of all answers: [RELEASES, queries]."""
    queries = query_list(query_matrix(), np.linspace(1, 4, 9), SIZES)
    plan = query_plan(queries, budget=Budget(rho="0.01"))
    rng = np.random.default_rng(2)
    codes = {attribute: rng.integers(0, n, 500) for attribute, n in enumerate(SIZES)}
    records = counts_of(codes, 500, SIZES)
    counts = np.zeros(6)
    np.add.at(counts, codes[0] * 3 + codes[1], 1)
    counted, truth = Counted(records), query_matrix() @ counts
    decoding = plan.strategy.decoding
    steps = QuerySteps(plan)
    (part,) = steps.parts
    releases = [next(steps.measure(part, counted)) for _ in range(RELEASES)]
    errors = [decoding @ measured - truth for measured in releases]
    return plan, np.array(errors)


def dense_covariance(plan: QueryPlan) -> np.ndarray:
    """W (RᵀR)⁺ Wᵀ γ², from the file: [queries, queries]."""
    content = json.loads(plan.text)
    matrix = np.array(content["strategy"], dtype=float)
    decoding = query_matrix() @ np.linalg.pinv(matrix)
    return decoding @ decoding.T * float(Fraction(content["gamma_squared"]))


def test_the_plan_states_the_variances_of_the_dense_derivation(simulated):
    plan, _ = simulated
    assert np.allclose(np.diag(dense_covariance(plan)), plan.variances, rtol=1e-6)


def test_releases_have_the_covariances_that_are_stated(simulated):
    plan, errors = simulated
    covariance = dense_covariance(plan)
    rank = int(np.linalg.matrix_rank(query_matrix()))
    assert rank < 6  # of 9 queries
    assert_mean_and_covariance(errors, covariance, rank)


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_covariances_wrong_by_ten_percent_are_rejected(simulated, factor):
    plan, errors = simulated
    assert abs(whole_deviations(errors, factor * dense_covariance(plan))) > DEVIATIONS


def test_answers_taken_for_independent_are_rejected(simulated):
    plan, errors = simulated
    independent = np.diag(np.diag(dense_covariance(plan)))
    assert np.max(np.abs(pair_deviations(errors, independent))) > 2 * PAIR_DEVIATIONS
