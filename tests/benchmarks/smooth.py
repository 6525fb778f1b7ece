"""Smooth tables: mean L1 error of all 3-way tables beside nonnegative ones of the same release.

Cases of `tests.benchmarks.run`. Releases have exact discrete noise; errors are shares of the
records, as in `nonnegative`.
"""

from collections.abc import Iterator
from itertools import combinations

import numpy as np

import rpexplore as rp
from rpexplore.data.counts import Counts
from rpexplore.planning.mechanism.reconstruction import contribution, marginal
from rpexplore.postprocessing.nonnegative import nonnegative
from rpexplore.postprocessing.smooth.measured_residuals import MeasuredResiduals
from rpexplore.postprocessing.smooth.smooth_tables import smooth_residuals
from rpexplore.postprocessing.table_map import ContributionArrays, subsets
from rpexplore.releases.measurement import measure_residual
from tests.benchmarks.measure import Row, once, peak_gigabytes
from tests.benchmarks.nonnegative import EIGHT, adult_records, household_records

_EPSILONS, _DELTA = ("0.1", "1", "10"), "1e-9"


def _measured(domain: rp.Domain, records: Counts, epsilon: str) -> MeasuredResiduals:
    """A release with weights by cell."""
    workload = rp.Workload.all_of_order(domain, 3)
    budget = rp.Budget(epsilon=epsilon, delta=_DELTA)
    plan = rp.plan(workload, loss=rp.SumOfVariances("cells"), budget=budget)
    contributions, variances = {}, {}
    for residual in range(len(plan.closure)):
        subset = plan.closure.attributes(residual)
        contributions[subset] = contribution(measure_residual(plan, residual, records), subset, {})
        variances[subset] = float(plan.sigma_squared.fraction(residual))
    return MeasuredResiduals(contributions, variances, domain.sizes, {})


def _error(contributions: ContributionArrays, domain: rp.Domain, records: Counts) -> float:
    errors = []
    for table in combinations(range(len(domain)), 3):
        within = {subset: contributions[subset] for subset in subsets(table)}
        values = marginal(table, domain.sizes, within, {})
        errors.append(float(np.abs(values - records.counts(table)).sum()))
    return float(np.mean(errors)) / records.n_records


def _rows(name: str, domain: rp.Domain, records: Counts, limit: float) -> Iterator[Row]:
    for epsilon in _EPSILONS:
        measured = _measured(domain, records, epsilon)
        seconds, smooth = once(lambda measured=measured: smooth_residuals(measured))
        nearest = nonnegative(measured.contributions, domain.sizes, {}).contributions
        yield f"{name}, ε = {epsilon}: smooth, s", seconds, "<=", limit
        yield "  records added to raise cells, share", smooth.raised, "<=", 0.05
        theirs = _error(nearest, domain, records)
        yield (
            "  mean L1 error, beside nonnegative tables'",
            _error(smooth.contributions, domain, records),
            "<",
            theirs,
        )


def smooth_eight() -> list[Row]:
    """All 3-way tables of eight attributes of adult.csv."""
    domain, records = adult_records(EIGHT)
    return [
        *_rows("adult.csv, 8 attributes", domain, records, 5),
        ("  process peak, GB", peak_gigabytes(), "<", 1.0),
    ]


def smooth_household() -> list[Row]:
    """All 3-way tables of the sample data."""
    return list(_rows("household.csv", *household_records(), 5))


CASES = (smooth_eight, smooth_household)
