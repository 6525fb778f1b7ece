"""Sampled audit: what is drawn for two neighbours is as hard to tell apart as a plan promises.

For each kind of neighbours the dearest two are measured many times, by the code that measures
records and the noise of releases. The best test of the two, by the likelihood ratio, is tried at
many thresholds: P(E) ≤ e^ε P′(E) + δ must not be refuted at 99.9 %, for all of them together. As
the test must be able to fail, it has to refute a smaller ε.
"""

import numpy as np
import pytest
from scipy import stats

import rpexplore as rp
from rpexplore.data.source import Counts
from rpexplore.planning.mechanism.accounting import replacement_cost
from rpexplore.planning.mechanism.replacement import dearest_replacement
from rpexplore.planning.table_plan import TablePlan
from rpexplore.releases.measurement import exact_residual
from rpexplore.releases.noise.discrete_gaussian import discrete_gaussian

DOMAIN = rp.Domain.from_sizes({"a": 3, "b": 2, "c": 2})
WORKLOAD = rp.Workload.all_up_to(DOMAIN, 2)
DELTAS = ("1e-1", "3e-2", "1e-2")
CONFIDENCE = 0.999


def plan_for(neighbours: str, most: int | None) -> TablePlan:
    """A plan; "panel": for people with at most one record for each value of the attribute a.

    "exact": with the exact total of a.
    """
    in_panel = neighbours == "panel"
    budget = rp.Budget(
        rho="0.4",
        neighbours="replace" if neighbours == "replace" else "add-remove",
        exact=["a"] if neighbours == "exact" else [],
        max_records_per_person=most,
        period="a" if in_panel else None,
    )
    return rp.plan(WORKLOAD, loss=rp.SumOfVariances(), budget=budget).part("tables")


def neighbours_of(plan: TablePlan) -> tuple[np.ndarray, np.ndarray]:
    """Counts of two sets of records that a plan must hardly tell apart: the dearest ones."""
    counts = np.random.default_rng(1).integers(5, 30, DOMAIN.sizes)
    other = counts.copy()
    m = plan.budget.max_records_per_person or 1
    if plan.budget.period is not None:  # the same record in m periods
        counts[:m, 0, 0] += 1
        return counts, other
    counts[0, 0, 0] += m
    if plan.budget.replaces:
        replacement = plan.closure.replacement
        assert replacement is not None
        floats = plan.sigma_squared.floats
        dearest = dearest_replacement(plan.closure, replacement.groups, floats)
        changed, others = dearest.changed, dearest.others_changed
        other[tuple(int(index in changed) for index in range(3))] += m
        if others:  # the second record is the first where both differ, and they exchange
            counts[tuple(int(index in (*changed, *others)) for index in range(3))] += 1
            other[tuple(int(index in others) for index in range(3))] += 1
    return counts, other


def counted(counts: np.ndarray) -> Counts:
    """What a source of records with these counts gives of all tables."""
    tables = [tuple(WORKLOAD.attribute_indices(table)) for table in range(len(WORKLOAD))]
    marginals = {
        table: counts.sum(axis=tuple(axis for axis in range(3) if axis not in table))
        for table in tables
    }
    return Counts(marginals, int(counts.sum()))


def log_ratios(plan: TablePlan, runs: int) -> tuple[np.ndarray, np.ndarray]:
    """ln P(y)/P′(y) of what is measured, for y drawn at the first and at the second neighbour."""
    first, second = map(counted, neighbours_of(plan))
    at = np.zeros((2, runs))
    for residual in range(len(plan.closure)):
        scale = plan.closure.integer_scale(residual)
        gamma_squared = plan.sigma_squared.fraction(residual) * scale**2
        means = [
            exact_residual(plan, residual, counts).ravel().astype(float)
            for counts in (first, second)
        ]
        shifts = means[0] - means[1]
        moved = np.flatnonzero(shifts)
        if not len(moved):
            continue
        noise = discrete_gaussian(2 * runs * len(moved), gamma_squared).reshape(2, runs, -1)
        # ((y − m′)² − (y − m)²) / 2γ² with y − m, or y − m′, the noise
        halves = np.sum(shifts**2) / 2
        at += (noise @ shifts[moved] + np.array([[halves], [-halves]])) / float(gamma_squared)
    return at[0], at[1]


def refuted(at_first: np.ndarray, at_second: np.ndarray, epsilon: float, delta: float) -> bool:
    """Whether some event is more likely than e^ε times its chance elsewhere, plus δ: surely."""
    runs = len(at_first)
    thresholds = np.quantile(at_first, np.linspace(0.01, 0.99, 50))
    # Two one-sided bounds at each of the thresholds.
    level = (1 - CONFIDENCE) / (2 * len(thresholds))
    here = np.array([np.count_nonzero(at_first >= threshold) for threshold in thresholds])
    there = np.array([np.count_nonzero(at_second >= threshold) for threshold in thresholds])
    least = stats.beta.ppf(level, here, runs - here + 1)
    most = stats.beta.ppf(1 - level, there + 1, runs - there)
    return bool(np.any(least > np.exp(epsilon) * most + delta))


KINDS = [
    ("add-remove", None),
    ("add-remove", 3),
    ("replace", None),
    ("replace", 2),
    ("panel", 3),
    ("exact", None),
]


def audit(neighbours: str, most: int | None, runs: int, *, refutes: float) -> None:
    plan = plan_for(neighbours, most)
    at_first, at_second = log_ratios(plan, runs)
    # The mean of the likelihood ratio's logarithm is half the cost: these are the dearest two.
    cost = float(plan.exact_privacy_cost)
    if plan.budget.replaces:
        found = replacement_cost(plan.closure, plan.sigma_squared)[1]
        assert float(found * plan.budget.records_factor) == pytest.approx(cost, rel=1e-6)
    error = 5 * np.sqrt(cost / runs)
    assert abs(np.mean(at_first) - cost / 2) < error
    assert abs(np.mean(at_second) + cost / 2) < error
    claims = [(plan.epsilon(delta), float(delta)) for delta in DELTAS]
    assert not any(refuted(at_first, at_second, *claim) for claim in claims)
    assert not any(refuted(-at_second, -at_first, *claim) for claim in claims)
    assert any(refuted(at_first, at_second, refutes * epsilon, delta) for epsilon, delta in claims)


@pytest.mark.parametrize(("neighbours", "most"), [KINDS[0], KINDS[2], KINDS[4], KINDS[5]])
def test_twenty_thousand_runs_refute_no_promise(neighbours, most):
    audit(neighbours, most, 20_000, refutes=0.6)


@pytest.mark.nightly
@pytest.mark.parametrize(("neighbours", "most"), KINDS)
def test_many_runs_refute_no_promise(neighbours, most):
    audit(neighbours, most, 100_000, refutes=0.75)
