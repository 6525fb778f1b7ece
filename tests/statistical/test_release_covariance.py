"""100,000 releases against the covariances that the plan states, and a dense derivation.

The real measuring and writing code runs; only the files are left out. Cells of all tables together
form one vector y of errors: `linear_release` says what is exact, what is drawn, and how surely
300 pairs are judged: false alarms are below 1e-10 in all.
"""

from functools import reduce
from itertools import chain, combinations, product
from pathlib import Path

import numpy as np
import pytest

from rpexplore import Budget, Domain, SumOfVariances, Workload
from rpexplore.data.source import Counts
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.table_plan import TablePlan
from rpexplore.releases.contributions import Contributions
from rpexplore.releases.measurement import measure_residual
from rpexplore.releases.measurement_file import MeasuredFile
from tests.statistical.linear_release import (
    PAIR_DEVIATIONS,
    LinearRelease,
    assert_exact,
    assert_mean_and_covariance,
    assert_told_from_two_percent,
    pair_deviations,
)
from tests.support.exact_counts import counts_of

SAMPLER = "rpexplore.releases.measurement.discrete_gaussian"
SIZES = {"a": 3, "b": 2, "c": 2}


class MeasurementNote(MeasuredFile):
    """In the place of the file: the measurements of one release."""

    def __init__(self, plan: TablePlan, counts: Counts) -> None:
        super().__init__(Path(), plan.closure)
        measured = [measure_residual(plan, each, counts) for each in range(len(plan.closure))]
        self.__dict__["_all"] = measured

    def stacked(self, residuals):
        return np.stack([self.__dict__["_all"][residual] for residual in residuals])


def tables_of(plan: TablePlan, drawn: MeasurementNote) -> np.ndarray:
    """All cells of all tables of one release."""
    contributions = Contributions(plan, drawn)
    return all_cells([contributions.answers(i) for i in range(len(plan.workload))])


def plan_for_releases() -> TablePlan:
    workload = Workload.all_up_to(Domain.from_sizes(SIZES), 2)
    weights = np.random.default_rng(11).uniform(0.2, 5, len(workload))
    workload = Workload.of(workload.domain, workload.tables, weights=weights.tolist())
    return plan_tables(workload, loss=SumOfVariances("cells"), budget=Budget(rho="0.001"))


@pytest.fixture(scope="module")
def plan() -> TablePlan:
    return plan_for_releases()


@pytest.fixture(scope="module")
def records(plan) -> Counts:
    rng = np.random.default_rng(2)
    codes = {attribute: rng.integers(0, n, 500) for attribute, n in enumerate(SIZES.values())}
    return counts_of(codes, 500, plan.workload.domain.sizes)


@pytest.fixture(scope="module")
def release(plan, records) -> LinearRelease:
    """All cells of all tables."""
    return LinearRelease.of(lambda: tables_of(plan, MeasurementNote(plan, records)), SAMPLER)


@pytest.fixture(scope="module")
def errors(release) -> np.ndarray:
    return release.errors()


def all_cells(tables) -> np.ndarray:
    return np.concatenate([np.ravel(table).astype(float) for table in tables])


def dense_covariance(plan: TablePlan) -> np.ndarray:
    """Of all cells of all tables, from the definitions of RP with dense matrices: [cells, cells].

    The best linear unbiased estimate of all marginals from M_A(x) = R_A x + N(0, σ²_A Σ_A) has
    covariance Q (Σ_A R_Aᵀ Σ_A⁻¹ R_A / σ²_A)⁺ Qᵀ; nothing of the reconstruction is used.
    """
    names, sizes = list(SIZES), list(SIZES.values())

    def query(table, inside, outside):
        parts = [inside(n) if name in table else outside(n) for name, n in SIZES.items()]
        return reduce(np.kron, parts)

    def sub(n):
        return np.hstack([np.ones((n - 1, 1)), -np.eye(n - 1)])

    def ones(n):
        return np.ones((1, n))

    texts, information = plan.sigma_squared.texts(), np.zeros((np.prod(sizes),) * 2)
    subsets = chain.from_iterable(combinations(names, k) for k in range(3))
    for subset, text in zip(subsets, texts, strict=True):
        residual = query(subset, sub, ones)
        sigma = reduce(np.kron, [sub(SIZES[i]) @ sub(SIZES[i]).T for i in subset], np.eye(1))
        information += residual.T @ np.linalg.inv(sigma) @ residual / float(text)
    tables = np.vstack([query(table, np.eye, ones) for table in plan.workload.tables])
    return tables @ np.linalg.pinv(information, rcond=1e-10) @ tables.T


def stated_covariance(plan: TablePlan, table) -> np.ndarray:
    """Of the cells of one table, as the plan states them."""
    cells = [
        dict(zip(table, cell, strict=True)) for cell in product(*[range(SIZES[i]) for i in table])
    ]
    return np.array([[plan.covariance(table, one, two) for two in cells] for one in cells])


def test_the_dense_derivation_and_the_plan_agree(plan):
    dense, start = dense_covariance(plan), 0
    for position, table in enumerate(plan.workload.tables):
        stop = start + int(plan.workload.exact_cells[position])
        stated = stated_covariance(plan, table)
        assert np.allclose(dense[start:stop, start:stop], stated, rtol=1e-9, atol=1e-9)
        assert np.allclose(np.diag(stated), plan.mean_variances[position])
        start = stop


def test_releases_are_unbiased_and_have_the_covariances_that_are_stated(plan, records, release):
    truth = all_cells(
        [records.counts(plan.workload.domain.positions(t)) for t in plan.workload.tables]
    )
    assert_exact(release, truth, dense_covariance(plan))


def test_real_releases_are_linear_in_their_noise(release):
    release.check_real_runs()


def test_drawn_releases_have_the_covariances_that_are_stated(plan, errors):
    covariance = dense_covariance(plan)
    assert covariance.shape == (24, 24)
    assert_mean_and_covariance(errors, covariance, rank=10)
    assert_told_from_two_percent(errors, covariance)


def test_a_wrong_covariance_of_one_pair_is_rejected(plan, errors):
    """Independent cells, and one pair a little off, are told from the truth."""
    covariance = dense_covariance(plan)
    independent = np.diag(np.diag(covariance))
    assert np.max(np.abs(pair_deviations(errors, independent))) > 2 * PAIR_DEVIATIONS
    shifted = covariance.copy()
    a, b = 22, 23
    step = 0.06 * np.sqrt(covariance[a, a] * covariance[b, b])
    for sign in (1, -1):
        shifted[a, b] = shifted[b, a] = covariance[a, b] + sign * step
        assert np.max(np.abs(pair_deviations(errors, shifted))) > PAIR_DEVIATIONS
