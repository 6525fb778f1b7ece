"""Replaced records in tables of levels, amounts and aggregations: never charged too little."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.common.numbers import Decimals
from rpexplore.data.source import Counts
from rpexplore.planning.mechanism import dearest_pair
from rpexplore.planning.mechanism.accounting import dearest_by_residual, privacy_cost_upper_bound
from rpexplore.planning.mechanism.closure import Closure
from rpexplore.releases.measurement import exact_residual
from tests.planning.test_levels import random_family
from tests.support.generalised import any_strategies, precision

BUDGET = rp.Budget(rho="0.5", neighbours="replace")


def dearest_of(gram: np.ndarray) -> float:
    diagonal = np.diag(gram)
    return float(np.max(diagonal[:, None] + diagonal[None, :] - 2 * gram))


def dearest_of_levels(closure: Closure, sigma_squared: np.ndarray, sizes: np.ndarray) -> float:
    """The largest cost of telling two records apart, by what is measured of each record."""
    columns = sorted(set(closure.columns[closure.members[closure.members >= 0]].tolist()))
    shape = [int(sizes[column]) for column in columns]
    gammas = np.sqrt(sigma_squared * closure.squared_scales)
    plan: Any = SimpleNamespace(closure=closure)
    rows = []
    for record in np.ndindex(*shape):
        counts = np.zeros(shape, dtype=np.int64)
        counts[record] = 1
        of_record = Counts({tuple(columns): counts}, 1)
        rows.append(
            np.concatenate(
                [
                    exact_residual(plan, residual, of_record).ravel() / gammas[residual]
                    for residual in range(1, len(closure))  # the number of records is the same
                ]
            )
        )
    return dearest_of(np.array(rows) @ np.array(rows).T)


def assert_found(monkeypatch, closure: Closure, sigma_squared: np.ndarray, dearest: float) -> None:
    """That both ways to look for the dearest pair find it, and know whether they must have."""
    scales = Decimals.rounded_up(sigma_squared)
    for most in (dearest_pair._MOST_TRIED, 0):
        monkeypatch.setattr(dearest_pair, "_MOST_TRIED", most)
        pair, found = dearest_by_residual(closure, scales)
        assert pair.is_proven == (most > 0)
        assert float(found) == pytest.approx(dearest, rel=1e-9)
        assert found <= privacy_cost_upper_bound(closure, scales)
    monkeypatch.undo()


@pytest.mark.parametrize(
    ("numbers", "most"),
    [(range(8), 1.6), pytest.param(range(20), 1.4, marks=pytest.mark.nightly)],
)
def test_levels_are_charged_at_least_what_any_pair_of_records_costs(numbers, most, monkeypatch):
    ratios = []
    for number in numbers:
        workload = random_family(number)
        if not workload.has_levels:
            continue
        closure = Closure.of(workload).replacing_by_residual(replaces=True)
        sigma_squared = np.exp(np.random.default_rng(number).normal(size=len(closure)))
        charged = privacy_cost_upper_bound(closure, Decimals.rounded_up(sigma_squared))
        dearest = dearest_of_levels(closure, sigma_squared, workload.domain.sizes)
        if number % 5 == 0:
            assert_found(monkeypatch, closure, sigma_squared, dearest)
        ratios.append(float(charged) / dearest)
    assert len(ratios) >= len(numbers) / 2
    assert min(ratios) >= 1 - 1e-9
    assert np.median(ratios) < most


def test_aggregations_are_charged_at_least_what_any_pair_of_records_costs(monkeypatch):
    rng, ratios = np.random.default_rng(1), []
    for number in range(60):
        sizes = {f"a{index}": int(rng.integers(2, 5)) for index in range(int(rng.integers(1, 4)))}
        workload = rp.Workload.all_up_to(rp.Domain.from_sizes(sizes), int(rng.integers(1, 3)))
        basis = [rp.Prefix(), rp.Ranges(), rp.Windows(2)][number % 3]
        workload = workload.with_bases(
            {name: basis for name in sizes if rng.random() < 0.7 or name == "a0"}
        )
        closure = Closure.of(workload).with_strategies(workload, any_strategies(workload, number))
        closure = closure.replacing_by_residual(replaces=True)
        sigma_squared = np.exp(rng.normal(size=len(closure)))
        charged = privacy_cost_upper_bound(closure, Decimals.rounded_up(sigma_squared))
        without_total = precision(closure, np.append(1e12, sigma_squared[1:]))
        dearest = dearest_of(without_total)
        if number % 5 == 0:
            assert_found(monkeypatch, closure, sigma_squared, dearest)
        ratios.append(float(charged) / dearest)
    assert min(ratios) >= 1 - 1e-9
    assert np.median(ratios) < 1.5


@pytest.mark.by_day(1)
@pytest.mark.parametrize(
    "loss",
    [
        rp.SumOfVariances(),
        rp.MaxVariance(),
        pytest.param(rp.SumWithBoundedMax(slack=0.1), marks=pytest.mark.nightly),
    ],
    ids=lambda loss: loss.kind,
)
def test_plans_are_within_the_budget_and_verified(loss):
    domain = rp.Domain.from_sizes({"age": 6, "sex": 2})
    sums = rp.Workload.all_up_to(domain, 2).with_bases({"age": rp.Prefix()})
    for workload in (random_family(4), sums):
        plan = rp.Plan.parse(rp.plan(workload, loss=loss, budget=BUDGET).text)
        tables = plan.part("tables")
        assert rp.verify(plan).holds
        assert "and the dearest of all replacements costs 0." in str(rp.verify(plan))
        assert plan.certificate is not None
        assert plan.certificate.gap < 1e-3
        assert tables.closure.by_residual
        assert 0.99 < float(plan.exact_privacy_cost) <= 1
        # People with two records are charged four times a record's cost.
        persons = rp.plan(
            workload, loss=loss, budget=rp.Budget(rho="0.5", max_records_per_person=2)
        )
        assert tables.loss_value < persons.part("tables").loss_value
    assert tables.standard_errors[0] < 1e-4
    assert tables.accuracy()["standard_error"][0] == 0


def test_the_cell_that_is_the_public_number_of_records_is_stated_without_error():
    ages = rp.Domain(
        (rp.Attribute("age", rp.Integers(0, 7)), rp.Attribute("sex", rp.Integers(0, 1)))
    )
    tables = rp.Workload.all_up_to(ages, 2).with_bases({"age": rp.Prefix()})
    budget = rp.Budget(rho="0.1", neighbours="replace")
    frame = rp.plan(tables, loss=rp.SumOfVariances(), budget=budget).accuracy()
    smallest = dict(zip(frame["attributes"], frame["smallest_standard_error"], strict=True))
    assert smallest["age",] == 0
    assert smallest["age", "sex"] > 1
