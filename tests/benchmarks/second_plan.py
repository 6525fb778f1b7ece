"""A second plan from a first release beside one plan of the same budget: L1 errors.

A case of `tests.benchmarks.run`. Of all 3-way tables, smoothed, as shares of the records, as in
`smooth`: the first release has 30 % of ρ and all tables up to 2-way, the second the rest.
"""

from fractions import Fraction
from itertools import combinations

import numpy as np

import rpexplore as rp
from rpexplore.data.source import Counts
from rpexplore.planning.mechanism.reconstruction import contribution
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.measurement import measure_residual
from rpexplore.results.estimates.shrinkage import smooth as smooth_tables
from rpexplore.results.measurement_source import MeasurementSource
from rpexplore.results.second_plan import weights_from_release
from rpexplore.results.unbiased import Estimates
from rpexplore.workload.smooth_weights import SmoothWeights
from tests.benchmarks.measure import Row
from tests.benchmarks.nonnegative import adult_records, household_records
from tests.benchmarks.smooth import adult_names, table_errors

_RELEASES = 5  # of each; medians, since single ones are far off at ε = 0.1
_FIRST = Fraction(3, 10)  # share of ρ


def smooth_second_plan() -> list[Row]:
    """Adult and the sample data; limits are what one plan gives, with leeway where it is ahead."""
    adult, eight = adult_records(adult_names()), adult_records(adult_names()[:8])
    return [
        *_rows("adult.csv", *adult, "0.1", 1.0),
        *_rows("adult.csv", *adult, "1", 1.03),
        *_rows("household.csv", *household_records(), "1", 1.0),
        *_rows("adult.csv, first 8", *eight, "0.1", 1.0),
        *_rows("adult.csv, first 8", *eight, "1", 1.05),
    ]


def _rows(
    name: str, domain: rp.Domain, records: Counts, epsilon: str, most_ratio: float
) -> list[Row]:
    budget = rp.Budget(epsilon=epsilon, delta="1e-9")
    first, second = (rp.Budget(rho=budget.rho * share) for share in (_FIRST, 1 - _FIRST))
    one, two = [], []
    for _ in range(_RELEASES):
        released = _released(domain, 3, _weights(budget, records), budget, records)
        one.append(_error(released, records))
        released = _released(domain, 2, _weights(first, records), first, records)
        weights = weights_from_release(released, domain, second)
        more = _released(domain, 3, weights, second, records)
        two.append(_error(rp.combine(released, more), records))
    what = f"{name}, ε = {epsilon}: median L1 error of two plans, beside one plan's"
    return [(what, float(np.median(two)), "<=", most_ratio * float(np.median(one)))]


def _error(estimates: Estimates, records: Counts) -> float:
    smooth, sizes = smooth_tables(estimates).contributions, estimates.domain.sizes
    tables = list(combinations(range(len(sizes)), 3))
    return float(table_errors(smooth, sizes, records, tables).mean())


def _weights(budget: rp.Budget, records: Counts) -> SmoothWeights:
    return SmoothWeights(float(budget.rho), records.n_records)


def _released(
    domain: rp.Domain, order: int, weights: SmoothWeights, budget: rp.Budget, records: Counts
) -> Estimates:
    """What a release of all tables up to so many attributes is, without its folder."""
    workload = weights.weighted(rp.Workload.all_up_to(domain, order))
    plan = plan_tables(workload, loss=rp.SumOfVariances(), budget=budget)
    residuals = {plan.closure.attributes(place): place for place in range(len(plan.closure))}
    return Estimates(
        domain,
        tuple(combinations(range(len(domain)), order)),
        {
            subset: contribution(measure_residual(plan, place, records), subset, {})
            for subset, place in residuals.items()
        },
        {subset: plan.sigma_squared.fraction(place) for subset, place in residuals.items()},
        {},
        (MeasurementSource("release", plan.sha256, budget.rho, plan_sha256=plan.sha256),),
    )


CASES = (smooth_second_plan,)
