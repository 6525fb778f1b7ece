"""10,000 simulated releases against the covariances that the plan states, and a dense derivation.

The real measuring and writing code runs; only the files are left out, and noise is drawn in
advance by the real sampler, in one call for each scale, since its samples are independent however
they are cut. Cells of all tables together form one vector y of errors. For every pair (a, b) the
mean of y_a y_b over the releases has standard deviation √((C_aa C_bb + C_ab²)/N) for normal errors
(the discrete Gaussian here has scales above 10, where its moments are normal to far below 1e-9).

False alarms: 300 pairs at 7.5 deviations. The normal tail is 6e-14; a mean of N = 10^4 products
has skewness up to √8/100, which makes its tail up to exp(√8·7.5³/600) = 7 times heavier. In all
below 2e-10. The tests on the whole vector have a threshold of 7 deviations, 3e-12.

Power: a pair is rejected for a covariance wrong by 15 % of √(C_aa C_bb) or more. All covariances
wrong by 5 % lie 11 deviations off, checked below.
"""

from collections import defaultdict
from functools import cache, reduce
from itertools import chain, combinations, product
from pathlib import Path

import numpy as np
import pytest

from rpexplore import Budget, Domain, SumOfVariances, Workload
from rpexplore.data.counts import Counts
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.table_plan import TablePlan
from rpexplore.releases.contributions import Contributions
from rpexplore.releases.measurement import measure_residual
from rpexplore.releases.measurement_file import MeasuredFile
from rpexplore.releases.noise.discrete_gaussian import discrete_gaussian
from tests.support.exact_counts import counts_of

RELEASES = 10_000
PAIR_DEVIATIONS = 7.5
DEVIATIONS = 7.0
SIZES = {"a": 3, "b": 2, "c": 2}


class Counted(Counts):
    """Records that are counted once."""

    def __init__(self, records: Counts) -> None:
        super().__init__(records.tables, records.n_records)
        self.__dict__["_once"] = cache(records.counts)

    def counts(self, attribute_indices):
        return self.__dict__["_once"](tuple(attribute_indices)).copy()


class MeasurementNote(MeasuredFile):
    """In the place of the file: the measurements of one release."""

    def __init__(self, plan: TablePlan, counted: Counted) -> None:
        super().__init__(Path(), plan.closure)
        measured = [measure_residual(plan, each, counted) for each in range(len(plan.closure))]
        self.__dict__["_all"] = measured

    def stacked(self, residuals):
        return np.stack([self.__dict__["_all"][residual] for residual in residuals])


def tables_of(plan: TablePlan, drawn: MeasurementNote) -> np.ndarray:
    """All cells of all tables of one release."""
    contributions = Contributions(plan, drawn)
    return all_cells([contributions.answers(i) for i in range(len(plan.workload))])


class Stock:
    """In the place of the sampler: its samples, drawn in advance and used once."""

    def __init__(self, plan: TablePlan) -> None:
        self.left: defaultdict[tuple, list] = defaultdict(list)
        for residual in range(len(plan.closure)):
            size = scale = 1
            for attribute in plan.closure.attributes(residual):
                n, strategy = (
                    int(plan.closure.sizes[attribute]),
                    plan.closure.strategies.get(attribute),
                )
                size *= n if strategy is None else n - 1
                scale *= n if strategy is None else 2**strategy.bits
            gamma_squared = plan.sigma_squared.fraction(residual) * scale**2
            assert gamma_squared > 100
            drawn = discrete_gaussian(RELEASES * size, gamma_squared)
            self.left[size, gamma_squared].extend(drawn.reshape(RELEASES, size))

    def draw(self, size, gamma_squared):
        return self.left[size, gamma_squared].pop()


def plan_for_releases() -> TablePlan:
    workload = Workload.all_up_to(Domain.from_sizes(SIZES), 2)
    weights = np.random.default_rng(11).uniform(0.2, 5, len(workload))
    workload = Workload.of(workload.domain, workload.tables, weights=weights.tolist())
    return plan_tables(workload, loss=SumOfVariances("cells"), budget=Budget(rho="0.001"))


@pytest.fixture(scope="module")
def simulated() -> tuple[TablePlan, np.ndarray]:
    """The plan, and the errors of all cells of all tables: [RELEASES, cells]."""
    plan = plan_for_releases()
    rng = np.random.default_rng(2)
    codes = {attribute: rng.integers(0, n, 500) for attribute, n in enumerate(SIZES.values())}
    records = counts_of(codes, 500, plan.workload.domain.sizes)
    truth = all_cells(
        [records.counts(plan.workload.domain.positions(t)) for t in plan.workload.tables]
    )
    counted, stock, errors = Counted(records), Stock(plan), np.empty((RELEASES, len(truth)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rpexplore.releases.measurement.discrete_gaussian", stock.draw)
        for number in range(RELEASES):
            errors[number] = tables_of(plan, MeasurementNote(plan, counted)) - truth
    assert all(len(samples) == 0 for samples in stock.left.values())
    return plan, errors


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


def pair_deviations(errors: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """How far each mean product lies from its covariance, in standard deviations."""
    variance = np.diag(covariance)
    spread = np.sqrt((np.outer(variance, variance) + covariance**2) / len(errors))
    return (errors.T @ errors / len(errors) - covariance) / spread


def whole_deviations(errors: np.ndarray, covariance: np.ndarray) -> float:
    """How far Σ yᵀ C⁺ y is from its expectation, N · rank, in standard deviations."""
    rank = np.linalg.matrix_rank(covariance, tol=1e-9 * np.max(covariance))
    squares = np.sum((errors @ np.linalg.pinv(covariance, rcond=1e-9)) * errors)
    return float((squares - len(errors) * rank) / np.sqrt(2 * len(errors) * rank))


def assert_mean_and_covariance(errors: np.ndarray, covariance: np.ndarray, rank: int) -> None:
    """Assert that errors have mean 0 and this covariance, of this rank, and lie in its range."""
    assert np.max(np.abs(pair_deviations(errors, covariance))) < PAIR_DEVIATIONS
    assert abs(whole_deviations(errors, covariance)) < DEVIATIONS
    # Unbiased: the mean of every cell, and nothing outside the space of consistent answers.
    means = errors.mean(axis=0) / np.sqrt(np.diag(covariance) / len(errors))
    assert np.max(np.abs(means)) < DEVIATIONS
    values, vectors = np.linalg.eigh(covariance)
    null = vectors[:, values < 1e-9 * values.max()]
    assert null.shape[1] == len(covariance) - rank
    assert np.max(np.abs(errors @ null)) < 1e-6


def test_the_dense_derivation_and_the_plan_agree(simulated):
    plan, _ = simulated
    dense, start = dense_covariance(plan), 0
    for position, table in enumerate(plan.workload.tables):
        stop = start + int(plan.workload.exact_cells[position])
        stated = stated_covariance(plan, table)
        assert np.allclose(dense[start:stop, start:stop], stated, rtol=1e-9, atol=1e-9)
        assert np.allclose(np.diag(stated), plan.mean_variances[position])
        start = stop


def test_releases_have_the_covariances_that_are_stated(simulated):
    plan, errors = simulated
    covariance = dense_covariance(plan)
    assert covariance.shape == (24, 24)
    assert_mean_and_covariance(errors, covariance, rank=10)


@pytest.mark.parametrize("factor", [0.95, 1.05])
def test_covariances_wrong_by_five_percent_are_rejected(simulated, factor):
    plan, errors = simulated
    assert abs(whole_deviations(errors, factor * dense_covariance(plan))) > DEVIATIONS


def test_a_wrong_covariance_of_one_pair_is_rejected(simulated):
    """Independent cells, and one residual with half the noise, are told from the truth."""
    plan, errors = simulated
    covariance = dense_covariance(plan)
    independent = np.diag(np.diag(covariance))
    assert np.max(np.abs(pair_deviations(errors, independent))) > 2 * PAIR_DEVIATIONS
    shifted = covariance.copy()
    a, b = 22, 23
    step = 0.15 * np.sqrt(covariance[a, a] * covariance[b, b])
    for sign in (1, -1):
        shifted[a, b] = shifted[b, a] = covariance[a, b] + sign * step
        assert np.max(np.abs(pair_deviations(errors, shifted))) > PAIR_DEVIATIONS
