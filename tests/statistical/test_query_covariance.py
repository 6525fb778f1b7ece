"""100,000 releases of a list of queries, against dense matrices.

As in `test_release_covariance`; the covariance is derived from the plan's file: from the integers
and the noise scale that are in it, with nothing of the library's decoding. Of 45 pairs, false
alarms are below 1e-11 in all.
"""

from fractions import Fraction

import numpy as np
import pytest

from rpexplore import Budget
from rpexplore.data.source import Counts
from rpexplore.planning.counts import QueryPlan
from rpexplore.releases.query_release import QuerySteps
from tests.statistical.linear_release import (
    PAIR_DEVIATIONS,
    LinearRelease,
    assert_exact,
    assert_mean_and_covariance,
    assert_told_from_two_percent,
    pair_deviations,
)
from tests.support.exact_counts import counts_of
from tests.support.plan_texts import content_of
from tests.support.query_lists import query_list, query_plan, ranges

SAMPLER = "rpexplore.releases.query_release.discrete_gaussian"
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
def plan() -> QueryPlan:
    queries = query_list(query_matrix(), np.linspace(1, 4, 9), SIZES)
    return query_plan(queries, budget=Budget(rho="0.01"))


@pytest.fixture(scope="module")
def records() -> Counts:
    rng = np.random.default_rng(2)
    codes = {attribute: rng.integers(0, n, 500) for attribute, n in enumerate(SIZES)}
    return counts_of(codes, 500, SIZES)


@pytest.fixture(scope="module")
def release(plan, records) -> LinearRelease:
    """All answers."""
    steps = QuerySteps(plan)
    (part,) = steps.parts
    return LinearRelease.of(
        lambda: plan.strategy.decoding @ next(steps.measure(part, records)), SAMPLER
    )


@pytest.fixture(scope="module")
def errors(release) -> np.ndarray:
    return release.errors()


def dense_covariance(plan: QueryPlan) -> np.ndarray:
    """W (RᵀR)⁺ Wᵀ γ², from the file: [queries, queries]."""
    content = content_of(plan.text)
    matrix = np.array(content["strategy"], dtype=float)
    decoding = query_matrix() @ np.linalg.pinv(matrix)
    return decoding @ decoding.T * float(Fraction(content["gamma_squared"]))


def test_the_plan_states_the_variances_of_the_dense_derivation(plan):
    assert np.allclose(np.diag(dense_covariance(plan)), plan.variances, rtol=1e-6)


def test_releases_are_unbiased_and_have_the_covariances_that_are_stated(plan, records, release):
    truth = query_matrix() @ records.counts(range(2)).ravel()
    assert_exact(release, truth, dense_covariance(plan))


def test_real_releases_are_linear_in_their_noise(release):
    release.check_real_runs()


def test_drawn_releases_have_the_covariances_that_are_stated(plan, errors):
    covariance = dense_covariance(plan)
    rank = int(np.linalg.matrix_rank(query_matrix()))
    assert rank < 6  # of 9 queries
    assert_mean_and_covariance(errors, covariance, rank)
    assert_told_from_two_percent(errors, covariance)


def test_answers_taken_for_independent_are_rejected(plan, errors):
    independent = np.diag(np.diag(dense_covariance(plan)))
    assert np.max(np.abs(pair_deviations(errors, independent))) > 2 * PAIR_DEVIATIONS
