"""1,500 made-up tables against the standard errors and covariances that the plan states.

The mean of y_a y_b over N draws of normal errors has standard deviation √((C_aa C_bb + C_ab²)/N),
as in `test_release_covariance`. Here N = 1,500: at 7.5 deviations the normal tail is 6e-14, and
a skewness up to √8/38 makes it up to exp(√8·7.5³/232) = 171 times heavier. False alarms: 21 pairs
and 6 means, then 6 variances and 6 means, below 1e-9 in all.

Power: √(2/N) = 3.7 %, so a stated variance that is too large by half lies 9 deviations off, and one
that is too small by 30 % 12; checked below.
"""

from itertools import product

import numpy as np
import pytest

from rpexplore import Budget, Domain, Prefix, SumOfVariances, Workload
from rpexplore.domain.expected_counts import ExpectedCounts
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.rehearsal import rehearse

DRAWS = 1_500
DEVIATIONS = 7.5
TABLE = ("a", "b")
DOMAIN = Domain.from_sizes({"a": 3, "b": 2, "c": 2})
EXPECTED = ExpectedCounts(("a",), (("0", "1", "2"),), (400.0, 90.0, 10.0))
TRUTH = np.array([200, 200, 45, 45, 5, 5])  # whole numbers already, so nothing is rounded


def errors_of(planned, truth) -> np.ndarray:
    """The errors of all cells of the table: [DRAWS, cells]."""
    draws = [rehearse(planned, EXPECTED, TABLE, cv_limit=0.2) for _ in range(DRAWS)]
    return np.array([draw.cells["value"] for draw in draws]) - truth


def deviations(errors: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """How far each mean product lies from its covariance, in standard deviations."""
    variance = np.diag(covariance)
    spread = np.sqrt((np.outer(variance, variance) + covariance**2) / len(errors))
    return np.abs(errors.T @ errors / len(errors) - covariance) / spread


def test_made_up_tables_have_the_covariances_of_the_plan():
    workload = Workload.all_up_to(DOMAIN, 2)
    planned = plan_tables(workload, loss=SumOfVariances("cells"), budget=Budget(rho="0.001"))
    errors = errors_of(planned, TRUTH)
    cells = [dict(zip(TABLE, cell, strict=True)) for cell in product(range(3), range(2))]
    stated = np.array([[planned.covariance(TABLE, i, j) for j in cells] for i in cells])
    assert np.diag(stated) == pytest.approx(planned.cell_standard_errors(TABLE).ravel() ** 2)
    assert np.max(deviations(errors, stated)) < DEVIATIONS
    means = errors.mean(axis=0) / np.sqrt(np.diag(stated) / DRAWS)
    assert np.max(np.abs(means)) < DEVIATIONS
    for factor in (0.7, 1.5):  # the test tells other noise
        assert np.max(deviations(errors, factor * stated)) > DEVIATIONS


def test_made_up_cumulative_tables_have_the_standard_errors_of_the_plan():
    workload = Workload.all_up_to(DOMAIN, 2).with_bases({"a": Prefix()})
    planned = plan_tables(workload, loss=SumOfVariances("cells"), budget=Budget(rho="0.001"))
    truth = np.cumsum(TRUTH.reshape(3, 2), axis=0).ravel()
    errors = errors_of(planned, truth)
    variances = planned.cell_standard_errors(TABLE).ravel() ** 2
    off = np.abs(np.mean(errors**2, axis=0) - variances) / (variances * np.sqrt(2 / DRAWS))
    assert np.max(off) < DEVIATIONS
    assert np.max(np.abs(errors.mean(axis=0)) / np.sqrt(variances / DRAWS)) < DEVIATIONS
