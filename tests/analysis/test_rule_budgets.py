"""The smallest budget for a rule, with one-way margins known, against the truth: 30 cases."""

from fractions import Fraction

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.privacy.conversions import epsilon_from_rho
from tests.benchmarks.forecasts import CALIBRATED, OTHERS, margins_of, records_of
from tests.benchmarks.planning import DATA

# (attributes of each table, rule)
RULES = (
    (1, "CV<=20% for 90% of people in each table"),
    (1, "CV<=20% for 75% of cells in each table"),
    (2, "CV<=20% for 80% of people in each table"),
    (2, "CV<=10% for 90% of people in each table"),
    (2, "CV<=20% for 95% of cells in each table"),
    (3, "CV<=20% for 80% of people in each table"),
)
DELTA = Fraction(1, 10**6)
NONE = float("inf")


def epsilon(workload: rp.Workload) -> float:
    return epsilon_from_rho(Fraction(rp.minimum_budget(workload, tolerance=1e-4).rho), DELTA)


def forecast_budget(tables: rp.Workload, rule: str, public: tuple[rp.ExpectedCounts, ...]) -> float:
    """The smallest ε by the forecast, or NONE."""
    found = rp.RuleTargets(tables, [rule], public=public)
    return NONE if found.reason else epsilon(found.workload)


def true_budget(tables: rp.Workload, rule: str, codes: np.ndarray) -> float:
    """The smallest ε by the records themselves, or NONE."""
    (stated,) = rp.Request(tables=tables, budget=rp.Budget(rho=1), require=[rule]).rules
    targets = []
    for place in range(len(tables)):
        indices = tables.attribute_indices(place)
        sizes = [int(tables.domain.sizes[index]) for index in indices]
        cells = np.ravel_multi_index(codes[:, indices].T, sizes)
        counts = np.sort(np.bincount(cells, minlength=int(np.prod(sizes))))[::-1]
        weights = counts if stated.of == "people" else np.ones(len(counts))
        enough = np.cumsum(weights) >= float(stated.share) * weights.sum() - 1e-9
        targets.append(float(stated.cv) * counts[np.argmax(enough)])
    if min(targets) == 0:
        return NONE
    return epsilon(tables.with_targets(dict(zip(tables.tables, targets, strict=True))))


def cases(names: tuple[str, ...]) -> list[tuple[str, str, float, float]]:
    """(data set, rule and number of attributes, ε by the forecast, true ε)"""
    found = []
    for name in names:
        domain, codes = records_of(name)
        public = margins_of(domain, codes)
        for order, rule in RULES:
            tables = rp.Workload.all_of_order(domain, order)
            budgets = forecast_budget(tables, rule, public), true_budget(tables, rule, codes)
            found.append((name, f"{order}-way: {rule}", *budgets))
    return found


def is_near(forecast: float, truth: float) -> bool:
    return forecast == truth if NONE in (forecast, truth) else 0.8 <= forecast / truth <= 1.2


@pytest.mark.nightly
def test_budgets_are_within_a_fifth_of_the_truth_in_most_cases():
    """27 of 30 when this was written, 21 of 24 without Adult: see docs/mathematics.md §22."""
    has_adult = (DATA / "adult.csv").exists()
    found = cases((*(CALIBRATED if has_adult else CALIBRATED[1:]), *OTHERS))
    missed = [case for case in found if not is_near(*case[2:])]
    assert len(missed) <= 3, missed
    # What is missed is not far off: no budget is found where none is enough, or the other way.
    assert all(0.7 <= forecast / truth <= 1.5 for *_, forecast, truth in missed), missed
