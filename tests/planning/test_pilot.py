"""A pilot is free: what it measures first is precision that the best plan pays for anyway."""

from fractions import Fraction

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.common.numbers import Exact
from rpexplore.errors import PlanError, RpexploreError
from rpexplore.planning.mechanism.accounting import privacy_cost_upper_bound
from rpexplore.planning.pilot import (
    pilot_plan,
    pilot_scales,
    pilot_weights,
    rest_scales,
    share_of_pilot,
    with_pilot,
)
from rpexplore.planning.plan import Plan
from tests.releases.table_plan import tampered

SIZES = {"a": 4, "b": 3, "c": 2}
DOMAIN = rp.Domain.from_sizes(SIZES | {"one": 1})
LOSSES = [
    rp.SumOfVariances(),
    rp.SumOfVariances(weighting="cells"),
    rp.SumOfVariances(weighting="sqrt"),
    rp.MaxVariance(),
]


def planned(loss=LOSSES[0], order=2, person=None, pilot: Exact | None = "5%") -> Plan:
    budget = rp.Budget(rho="1/2", max_records_per_person=person)
    request = rp.Request(
        tables=rp.Workload.all_up_to(DOMAIN, order), loss=loss, budget=budget, pilot=pilot
    )
    return rp.plan(request)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_variances_and_cost_are_those_without_a_pilot(loss):
    without, piloted = planned(loss, pilot=None), planned(loss)
    assert piloted.rho == without.rho
    ours, theirs = piloted.part("tables"), without.part("tables")
    assert np.array_equal(ours.mean_variances, theirs.mean_variances)
    assert rp.verify(piloted).holds


@pytest.mark.parametrize("loss", LOSSES[:3], ids=str)
def test_the_final_precision_is_that_of_the_best_plan_on_top_of_the_pilot(loss):
    # Water filling (docs/mathematics.md §21): min Σ v/(τ⁰ + τ), Σ p τ ≤ rest: τ⁰ + τ is the larger
    # of τ⁰ and √(v / (λ p)), with λ found by bisection.
    plan = planned(loss).part("tables")
    first = 1 / pilot_scales(plan).floats
    measured = np.zeros(len(plan.closure))
    measured[: len(first)] = first
    v = plan.closure.residual_weights(loss.table_weights(plan.workload))
    p = plan.closure.privacy_cost_factor
    low, high, total = 1e-9, 1e9, measured
    for _ in range(200):
        price = np.sqrt(low * high)
        total = np.maximum(measured, np.sqrt(v / (price * np.where(p > 0, p, 1.0))))
        low, high = (price, high) if np.sum(p * total) > 1 else (low, price)
    assert np.allclose(plan.sigma_squared.floats, 1 / total, rtol=1e-9)


@pytest.mark.parametrize("person", [None, 3])
def test_pilot_and_rest_cost_what_the_plan_costs_exactly(person):
    plan = planned(person=person)
    tables = plan.part("tables")
    pilot = pilot_plan(tables, plan.sha256)
    assert pilot.rho <= plan.rho / 20
    assert pilot.rho > plan.rho / 21  # 1/1000 of the one-way precision below it at most
    rest = privacy_cost_upper_bound(tables.closure, rest_scales(tables))
    together = pilot.exact_privacy_cost + rest * (person or 1) ** 2
    assert Fraction(1) - Fraction(1, 10**9) < together / plan.exact_privacy_cost <= 1


def test_a_cell_has_the_variance_of_generalised_least_squares():
    # All that is measured, as dense rows over the 24 cells of the domain: Ξ x of each residual with
    # the noise of the pilot, of what follows it, or of neither. The best linear unbiased estimate
    # of a cell q x has the variance q (Mᵀ S⁻¹ M)⁺ qᵀ.
    plan = planned(order=3).part("tables")
    sizes, scales = list(SIZES.values()), rest_scales(plan).floats
    pilot = pilot_scales(plan).floats
    information = np.zeros((24, 24))
    for residual in range(len(plan.closure)):
        own = plan.closure.attributes(residual)
        rows, covariance = np.ones((1, 1)), np.ones((1, 1))
        for axis, n in enumerate(sizes):
            # Noise is added to Ξ x: seen in the residual's own space its covariance is σ² times
            # the projection, so that its information is the pseudo-inverse.
            projection = np.eye(n) - 1 / n if axis in own else np.full((1, n), 1.0)
            rows = np.kron(rows, projection)
            covariance = np.kron(covariance, projection if axis in own else np.ones((1, 1)))
        precision = 1 / scales[residual]
        if residual < len(pilot):
            precision += 1 / pilot[residual]
        information += precision * rows.T @ np.linalg.pinv(covariance) @ rows
    inverse = np.linalg.pinv(information)
    for table in plan.workload.tables:
        cell = np.ones(1)
        for name, n in SIZES.items():
            cell = np.kron(cell, np.eye(n)[0] if name in table else np.ones(n))
        if "one" not in table:
            stated = plan.mean_variances[plan.workload.position(table)]
            assert np.isclose(cell @ inverse @ cell, stated, rtol=1e-8)


def test_weights_are_those_of_the_smallest_variance():
    plan = planned().part("tables")
    weights, pilot = pilot_weights(plan), pilot_scales(plan).floats
    rest, n = rest_scales(plan).floats[: len(pilot)], len(pilot)
    mean = weights[:n] ** 2 * pilot + (1 - weights[:n]) ** 2 * rest
    assert np.allclose(mean, plan.sigma_squared.floats[:n], rtol=1e-10)
    assert n == 4
    assert not np.any(weights[n:])


def test_a_pilot_takes_no_more_than_the_plan_gives_to_one_way_tables():
    plan = planned(rp.SumOfVariances(weighting="cells"), order=3, pilot="60%").part("tables")
    assert plan.pilot == Fraction(999, 1000)
    # The best plan spends 0.5592 on one-way residuals, and 0.5586 is 999/1000 of it.
    assert float(plan.pilot_share) == pytest.approx(0.5586, abs=1e-4)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_a_plan_made_again_from_its_own_share_has_the_same_pilot(loss):
    plan = planned(loss, order=3, pilot="3.3%")
    share = share_of_pilot(plan.part("tables"))
    assert planned(loss, order=3, pilot=share).text == plan.text


def test_a_file_holds_the_pilot_and_says_so():
    plan = planned()
    again = Plan.parse(plan.text)
    assert again.part("tables").pilot == plan.part("tables").pilot
    assert "A pilot measures the one-way tables first, by 4.9" in plan.guarantee
    of_pilot = pilot_plan(plan.part("tables"), plan.sha256).alone
    assert rp.verify(of_pilot).holds
    assert plan.sha256[:12] in Plan.parse(of_pilot.text).guarantee


@pytest.mark.parametrize("written", ["1", "2", "1/3", "0.0001"])
def test_a_file_with_an_impossible_pilot_is_refused(written):
    with pytest.raises(RpexploreError, match="must be a share of 1 to 999 thousandths"):
        tampered(planned(), r'"pilot":"[^"]*"', f'"pilot":"{written}"')


@pytest.mark.parametrize("share", ["0%", "100%", "0", 1, "-5%", 1.5])
def test_a_share_of_nothing_or_all_is_refused(share):
    with pytest.raises(PlanError, match="must be above 0 % and below 100 % of the budget, got"):
        planned(pilot=share)


def test_a_pilot_without_one_way_tables_of_single_values_is_refused():
    budget = rp.Budget(rho=1)
    cumulative = rp.Workload.all_up_to(DOMAIN, 1).with_bases({"a": rp.Prefix()})
    plan = rp.plan(cumulative, loss=rp.SumOfVariances(), budget=budget)
    with pytest.raises(PlanError, match="leave it out where tables have amounts, cumul"):
        with_pilot(plan)
    counts = rp.QueryList(
        rp.Domain.from_sizes({"c": 2}), np.array([[0, 1]]), ("two",), np.array([5.0])
    )
    with pytest.raises(PlanError, match="A pilot measures one-way tables first, and a"):
        with_pilot(rp.plan(counts, budget=budget))
    with pytest.raises(PlanError, match="is too small to measure anything"):
        with_pilot(planned(pilot=None), "0.01%")
