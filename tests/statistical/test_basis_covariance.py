"""100,000 releases of tables of all bases, against dense matrices.

As in `test_release_covariance`. Here attributes are measured through integer matrices, tables hold
ranges, cumulative counts, groups and own queries, one attribute has two bases, and the covariance
is derived from the plan's file: from the integers and noise scales that are in it, with nothing of
the library's decoding. 76 answers are 2,926 pairs: false alarms are below 1e-9 in all.
"""

from functools import cache, reduce
from itertools import combinations

import numpy as np
import pytest

from rpexplore import (
    Attribute,
    Budget,
    CustomBasis,
    Domain,
    Hierarchy,
    Integers,
    Prefix,
    Ranges,
    SumOfVariances,
    Workload,
)
from rpexplore.data.source import Counts
from rpexplore.planning.planner import optimum
from rpexplore.planning.table_plan import TablePlan
from tests.statistical.linear_release import (
    DEVIATIONS,
    PAIR_DEVIATIONS,
    LinearRelease,
    assert_exact,
    assert_mean_and_covariance,
    assert_told_from_two_percent,
    pair_deviations,
    whole_deviations,
)
from tests.statistical.test_release_covariance import SAMPLER, MeasurementNote, tables_of
from tests.support.exact_counts import counts_of
from tests.support.generalised import any_strategies, table_matrix
from tests.support.plan_texts import content_of


def plan_for_releases() -> TablePlan:
    groups = (("low",), ("low",), ("high",), ("high",))
    domain = Domain(
        (
            Attribute("a", Integers(0, 3), groups=groups),
            Attribute("b", Integers(0, 2)),
            Attribute("c", Integers(0, 1)),
            Attribute("d", Integers(0, 2)),
        )
    )
    tables = [(), "a", "b", "d", ("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]
    workload = Workload.of(domain, tables, weights=np.linspace(0.3, 4, len(tables)).tolist())
    workload = workload.with_bases({"a": Hierarchy(), "b": Prefix()}).with_bases(
        {"b": Ranges()}, tables=["b", ("b", "d")]
    )
    workload = workload.with_bases(
        {"d": CustomBasis([[1, 2, 0], [0, 1, -1], [0, 0, 3]])}, tables=["d"]
    )
    solution = optimum(
        workload, loss=SumOfVariances("cells"), strategies=any_strategies(workload, 4)
    )
    return solution.at(Budget(rho="0.001"))


@pytest.fixture(scope="module")
def plan() -> TablePlan:
    return plan_for_releases()


@pytest.fixture(scope="module")
def records(plan) -> Counts:
    rng, sizes = np.random.default_rng(2), plan.workload.domain.sizes
    codes = {index: rng.integers(0, n, 500) for index, n in enumerate(sizes.tolist())}
    return counts_of(codes, 500, sizes)


@pytest.fixture(scope="module")
def release(plan, records) -> LinearRelease:
    """All answers of all tables."""
    return LinearRelease.of(lambda: tables_of(plan, MeasurementNote(plan, records)), SAMPLER)


@pytest.fixture(scope="module")
def errors(release) -> np.ndarray:
    return release.errors()


def measured_matrices(plan: TablePlan) -> list[tuple[np.ndarray, np.ndarray]]:
    """Of each residual B_A, over all cells of the domain, and the covariance of its noise."""
    domain, parts = plan.workload.domain, []
    for residual in content_of(plan.text)["residuals"]:
        factors, noise = [], np.eye(1)
        for index, attribute in enumerate(domain):
            n, strategy = attribute.size, plan.closure.strategies.get(index)
            if index not in residual["attributes"]:
                factors.append(np.ones((1, n)))
            elif strategy is not None:
                factors.append(strategy.integers / 2.0**10)
                noise = np.kron(noise, np.eye(n - 1))
            else:
                sub = np.hstack([np.ones((n - 1, 1)), -np.eye(n - 1)])
                factors.append(sub)
                noise = np.kron(noise, sub @ sub.T)
        parts.append((reduce(np.kron, factors), float(residual["sigma_squared"]) * noise))
    return parts


def query_matrix(plan: TablePlan) -> np.ndarray:
    """The queries of all tables, over all cells of the domain: [queries, cells]."""
    return np.vstack([table_matrix(plan.workload, i) for i in range(len(plan.workload))])


@cache
def dense_covariance(plan: TablePlan) -> np.ndarray:
    """Of all answers of all tables: [answers, answers]."""
    parts = measured_matrices(plan)
    information = sum(matrix.T @ np.linalg.solve(noise, matrix) for matrix, noise in parts)
    queries = query_matrix(plan)
    return queries @ np.linalg.pinv(information, rcond=1e-11, hermitian=True) @ queries.T


def test_the_plan_states_the_variances_of_the_dense_derivation(plan):
    dense, start = np.diag(dense_covariance(plan)), 0
    for position, table in enumerate(plan.workload.tables):
        stop = start + int(plan.workload.exact_cells[position])
        stated = plan.cell_standard_errors(table).ravel() ** 2
        assert np.allclose(dense[start:stop], stated, rtol=1e-8, atol=1e-9)
        assert plan.mean_variances[position] == pytest.approx(dense[start:stop].mean())
        start = stop
    assert start == len(dense)


def test_releases_are_unbiased_and_have_the_covariances_that_are_stated(plan, records, release):
    truth = query_matrix(plan) @ records.counts(range(len(plan.workload.domain))).ravel()
    assert_exact(release, truth, dense_covariance(plan))


def test_real_releases_are_linear_in_their_noise(release):
    release.check_real_runs()


def test_drawn_releases_have_the_covariances_that_are_stated(plan, errors):
    covariance = dense_covariance(plan)
    assert len(covariance) == errors.shape[1] == 76
    residuals = [(), "a", "b", "c", "d", "ab", "ac", "bd", "cd"]
    degrees = {"a": 3, "b": 2, "c": 1, "d": 2}
    rank = sum(int(np.prod([degrees[name] for name in residual])) for residual in residuals)
    assert_mean_and_covariance(errors, covariance, rank)
    assert_told_from_two_percent(errors, covariance)


def test_the_noise_of_every_residual_is_told_from_a_little_more_or_less(plan, errors):
    """The answers give back what was measured, so that the noise of each can be looked at."""
    back = errors @ np.linalg.pinv(query_matrix(plan), rcond=1e-11).T
    for matrix, noise in measured_matrices(plan):
        drawn = back @ matrix.T
        assert abs(whole_deviations(drawn, noise)) < DEVIATIONS
        assert whole_deviations(drawn, 0.93 * noise) > DEVIATIONS
        assert whole_deviations(drawn, 1.07 * noise) < -DEVIATIONS


def test_a_wrong_covariance_of_one_pair_is_rejected(plan, errors):
    covariance = dense_covariance(plan)
    independent = np.diag(np.diag(covariance))
    assert np.max(np.abs(pair_deviations(errors, independent))) > 2 * PAIR_DEVIATIONS
    for a, b in combinations((0, 5, 20, 75), 2):
        step = 0.06 * np.sqrt(covariance[a, a] * covariance[b, b])
        for sign in (1, -1):
            shifted = covariance.copy()
            shifted[a, b] = shifted[b, a] = covariance[a, b] + sign * step
            assert np.max(np.abs(pair_deviations(errors, shifted))) > PAIR_DEVIATIONS
