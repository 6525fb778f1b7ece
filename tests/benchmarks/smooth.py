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
from rpexplore.postprocessing.rehearsal.smooth_rehearsal import rehearse_smooth_tables
from rpexplore.postprocessing.smooth.measured_residuals import MeasuredResiduals
from rpexplore.postprocessing.smooth.smooth_tables import smooth_residuals
from rpexplore.postprocessing.table_map import ContributionArrays, subsets
from rpexplore.releases.measurement import measure_residual
from rpexplore.workload.smooth_weights import SmoothWeights
from tests.benchmarks.measure import Row, once, peak_gigabytes
from tests.benchmarks.nonnegative import EIGHT, adult_records, household_records

_EPSILONS, _DELTA = ("0.1", "1", "10"), "1e-9"


def _plan_by_cells(domain: rp.Domain, epsilon: str) -> rp.Plan:
    workload = rp.Workload.all_of_order(domain, 3)
    budget = rp.Budget(epsilon=epsilon, delta=_DELTA)
    return rp.plan(workload, loss=rp.SumOfVariances("cells"), budget=budget)


def _measured(plan: rp.Plan, records: Counts) -> MeasuredResiduals:
    """A release of the plan."""
    contributions, variances = {}, {}
    for residual in range(len(plan.closure)):
        subset = plan.closure.attributes(residual)
        contributions[subset] = contribution(measure_residual(plan, residual, records), subset, {})
        variances[subset] = float(plan.sigma_squared.fraction(residual))
    return MeasuredResiduals(contributions, variances, plan.workload.domain.sizes, {})


def _error(
    contributions: ContributionArrays, domain: rp.Domain, records: Counts, order: int = 3
) -> float:
    errors = []
    for table in combinations(range(len(domain)), order):
        within = {subset: contributions[subset] for subset in subsets(table)}
        values = marginal(table, domain.sizes, within, {})
        errors.append(float(np.abs(values - records.counts(table)).sum()))
    return float(np.mean(errors)) / records.n_records


def _rows(name: str, domain: rp.Domain, records: Counts, limit: float) -> Iterator[Row]:
    for epsilon in _EPSILONS:
        measured = _measured(_plan_by_cells(domain, epsilon), records)
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


def smooth_rehearsed() -> list[Row]:
    """Errors over rehearsed ones, with weights for smooth tables: those of `IN_TRIALS`."""
    rows: list[Row] = []
    for name, (domain, records) in {
        "adult.csv, 8 attributes": adult_records(EIGHT),
        "household.csv": household_records(),
        "adult.csv, 15 attributes": adult_records(),
    }.items():
        ratios = []
        for epsilon in _EPSILONS:
            budget = rp.Budget(epsilon=epsilon, delta=_DELTA)
            weights = SmoothWeights(float(budget.rho), records.n_records)
            workload = weights.weighted(rp.Workload.all_of_order(domain, 3))
            plan = rp.plan(workload, loss=rp.SumOfVariances(), budget=budget)
            expected = rp.ExpectedCounts.of_total(records.n_records)
            smooth = smooth_residuals(_measured(plan, records)).contributions
            rehearsed = rehearse_smooth_tables(plan, expected).frame.set_index("order")["smooth"]
            ratios += [
                _error(smooth, domain, records, order) / rehearsed[order] for order in (1, 2, 3)
            ]
        rows.append((f"{name}: error over the rehearsed one, smallest", min(ratios), ">=", 0.35))
        rows.append(("  largest", max(ratios), "<", 1.55))
    return rows


CASES = (smooth_eight, smooth_household, smooth_rehearsed)
