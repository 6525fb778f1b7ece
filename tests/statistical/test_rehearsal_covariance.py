"""Made-up tables against the standard errors and covariances that the plan states.

They are linear in their noise as releases are (`linear_release`), so both are exact.
"""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from rpexplore import Budget, Domain, Prefix, SumOfVariances, Workload
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.planning.planner import plan_tables
from rpexplore.planning.table_plan import TablePlan
from rpexplore.releases.rehearsal import rehearse
from tests.statistical.linear_release import (
    LinearRelease,
    assert_exact,
    assert_mean_and_covariance,
    assert_told_from_two_percent,
)
from tests.statistical.test_release_covariance import SAMPLER

TABLE = ("a", "b")
DOMAIN = Domain.from_sizes({"a": 3, "b": 2, "c": 2})
EXPECTED = ExpectedCounts(("a",), (("0", "1", "2"),), (400.0, 90.0, 10.0))
TRUTH = np.array([200, 200, 45, 45, 5, 5])  # whole numbers already, so nothing is rounded
CELLS = [dict(zip(TABLE, cell, strict=True)) for cell in product(range(3), range(2))]


def made_up(planned: TablePlan) -> Callable[[], np.ndarray]:
    return lambda: np.array(rehearse(planned, EXPECTED, TABLE, cv_limit=0.2).cells["value"])


def test_made_up_tables_have_the_covariances_of_the_plan():
    workload = Workload.all_up_to(DOMAIN, 2)
    planned = plan_tables(workload, loss=SumOfVariances("cells"), budget=Budget(rho="0.001"))
    stated = np.array([[planned.covariance(TABLE, i, j) for j in CELLS] for i in CELLS])
    assert np.diag(stated) == pytest.approx(planned.cell_standard_errors(TABLE).ravel() ** 2)
    made = LinearRelease.of(made_up(planned), SAMPLER)
    assert_exact(made, TRUTH, stated)
    made.check_real_runs()
    errors = made.errors()
    assert_mean_and_covariance(errors, stated, rank=6)
    assert_told_from_two_percent(errors, stated)


def test_made_up_cumulative_tables_have_the_standard_errors_of_the_plan():
    workload = Workload.all_up_to(DOMAIN, 2).with_bases({"a": Prefix()})
    planned = plan_tables(workload, loss=SumOfVariances("cells"), budget=Budget(rho="0.001"))
    made = LinearRelease.of(made_up(planned), SAMPLER)
    truth = np.cumsum(TRUTH.reshape(3, 2), axis=0).ravel()
    assert made.without_noise == pytest.approx(truth, abs=1e-9)
    variances = planned.cell_standard_errors(TABLE).ravel() ** 2
    assert np.diag(made.covariance) == pytest.approx(variances, rel=1e-9)
    made.check_real_runs()
