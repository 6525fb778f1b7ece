"""The plan of what follows a pilot: the best on top of what is measured, within its cost."""

from dataclasses import replace
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest

import rpexplore as rp
from rpexplore.common.numbers import Decimals
from rpexplore.errors import PlanError, RpexploreError
from rpexplore.planning.mechanism.accounting import privacy_cost_upper_bound
from rpexplore.planning.pilot import (
    dearer_with_pilot,
    pilot_plan,
    pilot_scales,
    rest_scales,
    with_pilot,
)
from rpexplore.planning.plan import Plan
from rpexplore.planning.rest import on_top_of_pilot
from rpexplore.planning.table_plan import TablePlan

DOMAIN = rp.Domain.from_sizes({"a": 4, "b": 3, "c": 2, "one": 1})
TABLES = rp.Workload.all_up_to(DOMAIN, 2)
WEIGHTS = np.exp(2.5 * np.random.default_rng(3).standard_normal((4, len(TABLES))))
RECORDS, PERSONS = rp.Budget(rho="1/2"), rp.Budget(rho="1/2", max_records_per_person=3)
REPLACED = rp.Budget(rho="1/2", neighbours="replace")
STATED = rp.Budget(epsilon=1, delta="1e-6")
BUDGETS = [RECORDS, PERSONS, REPLACED, STATED]


def first_plan(budget=RECORDS, pilot="40%", **more) -> Plan:
    asked = {"tables": TABLES, "budget": budget, "pilot": pilot, "then": rp.RestObjective()}
    return rp.plan(rp.Request(**asked | more))


def best_for(first: Plan, weights, loss=None) -> TablePlan:
    tables = first.part("tables")
    workload = replace(tables.workload, weights=weights)
    loss = loss or rp.SumOfVariances()
    return rp.plan(workload, loss=loss, budget=tables.budget).part("tables")


FIRST = first_plan()
PILOT = 64 * "0"  # SHA-256 of its figures


@pytest.mark.parametrize("weights", WEIGHTS)
def test_the_rest_is_the_best_of_all_that_have_measured_the_pilot(weights):
    best = best_for(FIRST, weights)
    made = on_top_of_pilot(FIRST, best, PILOT).part("tables")
    floor = 1000 / 999 / pilot_scales(FIRST.part("tables")).floats
    # In units in which precisions are near 1, as solvers want them.
    unit = 1 / best.sigma_squared.floats
    precision = cp.Variable(len(unit), pos=True)
    costs = best.closure.residual_weights(weights) / unit
    smallest = cp.Problem(
        cp.Minimize(costs / costs.sum() @ cp.inv_pos(precision)),
        [
            precision[: len(floor)] >= floor / unit[: len(floor)],
            best.closure.privacy_cost_factor * unit @ precision <= 1,
        ],
    ).solve(solver=cp.CLARABEL)
    assert made.certificate.loss_value == pytest.approx(smallest * costs.sum(), rel=1e-6)
    assert best.certificate.lower_bound == pytest.approx(made.certificate.lower_bound)
    assert made.certificate.loss_value > made.certificate.lower_bound * 1.001  # some are at floor


@pytest.mark.parametrize("weights", WEIGHTS)
def test_what_a_look_costs_is_what_shares_of_the_pilot_say(weights):
    """docs/mathematics-pilot.md: Σ a²/φ where the pilot has more than the best plan, and below."""
    best = best_for(FIRST, weights)
    made = on_top_of_pilot(FIRST, best, PILOT).part("tables")
    costs = best.closure.privacy_cost_factor
    own = costs / made.sigma_squared.floats
    wanted = costs / best.sigma_squared.floats
    shares, of_best = own / own.sum(), wanted / wanted.sum()
    is_over = shares > of_best * (1 + 1e-9)
    phi, a = shares[is_over].sum(), of_best[is_over].sum()
    excess = np.sum(of_best[is_over] ** 2 / shares[is_over]) + (1 - a) ** 2 / (1 - phi)
    ratio = made.certificate.loss_value / made.certificate.lower_bound
    assert ratio == pytest.approx(excess, rel=2e-4)
    assert 1 + (phi - a) ** 2 / (phi * (1 - phi)) <= ratio * (1 + 2e-4)
    assert ratio <= (1 + 2e-4) / (1 - 0.4)  # at most what no reuse at all would cost


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("weights", WEIGHTS[:2])
def test_pilot_and_rest_cost_no_more_than_is_booked_exactly(budget, weights):
    first = first_plan(budget)
    made = on_top_of_pilot(first, best_for(first, weights), PILOT)
    tables, verified = made.part("tables"), rp.verify(made)
    assert verified.holds, str(verified)
    assert made.record_rho <= first.record_rho <= made.record_rho * (1 + 1e-8)
    assert not dearer_with_pilot(tables)
    if not budget.replaces:  # there costs of neighbours add up, and not the largest of each
        pilot = pilot_plan(first.part("tables"), first.sha256).exact_privacy_cost
        rest = privacy_cost_upper_bound(tables.closure, rest_scales(tables))
        assert pilot + rest * budget.records_factor <= first.exact_privacy_cost


def test_with_the_weights_of_the_first_plan_nothing_changes():
    first = first_plan(pilot="5%")
    made = on_top_of_pilot(first, best_for(first, np.ones(len(TABLES))), PILOT).part("tables")
    assert np.allclose(made.mean_variances, first.part("tables").mean_variances, rtol=1e-9)


def test_its_file_has_the_first_plan_beside_it(tmp_path):
    made = on_top_of_pilot(FIRST, best_for(FIRST, WEIGHTS[0]), PILOT)
    made.save(tmp_path / "rest.json")
    (beside,) = tmp_path.glob("first-*.json")
    assert beside.read_text() == FIRST.text
    again = Plan.load(tmp_path / "rest.json")
    assert (again.sha256, again.booked_sha256) == (made.sha256, FIRST.sha256)
    assert again.part("tables").first.part("tables").then == rp.RestObjective()
    assert again.part("tables").pilot_sha256 == PILOT
    first_plan(pilot="30%").save(beside)
    with pytest.raises(RpexploreError, match=r"beside it is of another plan"):
        Plan.load(tmp_path / "rest.json")
    beside.unlink()
    with pytest.raises(RpexploreError, match=rf"needs the first plan, {beside.name}, beside it"):
        Plan.load(tmp_path / "rest.json")


def test_epsilon_follows_from_rho_alone():
    first = first_plan(STATED)
    assert first.noise is None
    assert on_top_of_pilot(first, best_for(first, WEIGHTS[0]), PILOT).noise is None
    assert first.rho < rp.plan(TABLES, loss=rp.SumOfVariances(), budget=STATED).rho
    plan = rp.plan(TABLES, loss=rp.SumOfVariances(), budget=STATED)
    with pytest.raises(PlanError, match="keeps an ε by its ρ alone"):
        with_pilot(plan, "5%", then=rp.RestObjective())


def test_verify_finds_what_is_not_of_the_first_plan():
    made = on_top_of_pilot(FIRST, best_for(FIRST, WEIGHTS[0]), PILOT).within("a = 1")
    (check,) = [check for check in rp.verify(made).checks if not check.holds]
    assert "the condition on records is another one" in check.finding


def test_a_rest_that_costs_more_or_adds_nothing_to_its_pilot_is_no_rest():
    made = on_top_of_pilot(FIRST, best_for(FIRST, WEIGHTS[0]), PILOT).part("tables")
    floats = made.sigma_squared.floats
    dearer = replace(
        made,
        sigma_squared=Decimals.rounded_up(floats * 0.999),
        exact_privacy_cost=made.exact_privacy_cost * Fraction("1.0011"),
    )
    (check,) = [check for check in rp.verify(dearer.alone).checks if check.name == "first plan"]
    assert "it costs more than is booked" in check.finding
    assert not check.holds
    pilot = pilot_scales(made).floats
    for less in (1, 2):
        scales = np.r_[floats[:1], less * pilot[1], floats[2:]]
        with pytest.raises(PlanError, match="must add to everything that its pilot has measured"):
            replace(made, sigma_squared=Decimals.rounded_up(scales))


def test_the_rest_of_other_tables_or_by_another_loss_is_refused():
    fewer = rp.plan(
        rp.Workload.all_up_to(DOMAIN, 1), loss=rp.SumOfVariances(), budget=RECORDS
    ).part("tables")
    with pytest.raises(PlanError, match="must be planned for the tables of the first plan"):
        on_top_of_pilot(FIRST, fewer, PILOT)
    with pytest.raises(PlanError, match="is planned for a sum of variances, and not for the"):
        on_top_of_pilot(FIRST, best_for(FIRST, WEIGHTS[0], rp.MaxVariance()), PILOT)
    without = rp.plan(TABLES, loss=rp.SumOfVariances(), budget=RECORDS, pilot="5%")
    with pytest.raises(PlanError, match="only behind a pilot whose plan states what for"):
        on_top_of_pilot(without, best_for(FIRST, WEIGHTS[0]), PILOT)
    with pytest.raises(PlanError, match="goes with a pilot; state its share"):
        first_plan(pilot=None)
    made = on_top_of_pilot(FIRST, best_for(FIRST, WEIGHTS[0]), PILOT).part("tables")
    with pytest.raises(PlanError, match="is planned for a sum of variances, and not for the"):
        replace(made, loss=rp.MaxVariance())  # as a file may state it
    with pytest.raises(PlanError, match="stated by the plan of a rest alone"):
        replace(FIRST.part("tables"), pilot_sha256=PILOT)
