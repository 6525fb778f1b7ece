"""The planner: what a plan promises for any workload, loss and budget."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.errors import BudgetError, PlanError, WorkloadError
from rpexplore.planning.planner import plan_tables
from tests.support.strategies import budgets, domains, losses, workloads


@given(
    workloads(domains(max_size=10**6), weights=st.floats(1e-6, 1e12), with_targets=True),
    losses() | st.just(rp.MaxVariance("target")),
    budgets(),
)
@settings(deadline=None, max_examples=80)
def test_what_every_plan_promises(workload, loss, budget):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan = plan_tables(workload, loss=loss, budget=budget)
    assert plan.exact_privacy_cost <= plan.budget.privacy_cost <= budget.largest.privacy_cost
    assert plan.loss_value == pytest.approx(loss.value(plan.mean_variances, workload), rel=1e-14)
    assert plan.certificate.gap <= 1e-6
    assert plan.certificate.lower_bound <= plan.loss_value
    assert np.all(np.isfinite(plan.mean_variances))
    assert np.all(plan.mean_variances > 0)
    prices = plan.certificate.shadow_prices
    assert prices.shape == (len(workload),)
    assert np.sum(prices) == pytest.approx(1, rel=1e-9)
    assert np.all(prices >= 0)


@given(workloads(), losses())
@settings(deadline=None, max_examples=25)
def test_same_inputs_give_the_same_plan(workload, loss):
    budget = rp.Budget(rho=0.5)
    one, other = (plan_tables(workload, loss=loss, budget=budget) for _ in range(2))
    assert one.text == other.text


@given(workloads(), losses())
@settings(deadline=None, max_examples=25)
def test_variances_scale_with_one_over_the_budget(workload, loss):
    one = plan_tables(workload, loss=loss, budget=rp.Budget(privacy_cost=1))
    tenth = plan_tables(workload, loss=loss, budget=rp.Budget(privacy_cost="0.1"))
    person = plan_tables(
        workload, loss=loss, budget=rp.Budget(privacy_cost=10, max_records_per_person=10)
    )
    np.testing.assert_allclose(tenth.mean_variances, 10 * one.mean_variances, rtol=1e-9)
    np.testing.assert_allclose(person.mean_variances, tenth.mean_variances, rtol=1e-9)
    assert person.record_rho == person.rho / 100
    assert float(person.rho) == pytest.approx(5, rel=1e-9)


def test_a_larger_budget_never_hurts_and_more_tables_never_help():
    domain = rp.Domain.from_sizes({"a": 4, "b": 3, "c": 5})
    budget = rp.Budget(rho=0.5)
    small = rp.Workload.of(domain, [("a", "b")])
    large = small | rp.Workload.of(domain, [("a", "c"), ()])
    for loss in (rp.SumOfVariances(), rp.MaxVariance()):
        few, many = (plan_tables(w, loss=loss, budget=budget) for w in (small, large))
        assert few.largest_variance(("a", "b")) < many.largest_variance(("a", "b"))


def test_missing_target_is_named():
    workload = rp.Workload.of(rp.Domain.from_sizes({"a": 4, "b": 3}), ["a", "b"], targets=[1, None])
    with pytest.raises(WorkloadError, match=r"\(b\) has no target"):
        plan_tables(workload, loss=rp.MaxVariance("target"), budget=rp.Budget(rho=1))


def test_too_large_workloads_are_refused():
    domain = rp.Domain.from_sizes({f"a{i}": 2 for i in range(40)})
    with pytest.raises(PlanError, match="40 attributes"):
        plan_tables(
            rp.Workload.of(domain, [domain.names]),
            loss=rp.SumOfVariances(),
            budget=rp.Budget(rho=1),
        )


@pytest.mark.parametrize(
    "budget",
    [
        {"privacy_cost": "1e-390"},
        {"privacy_cost": "1e-320"},
        {"mu": "1e-200"},
        {"rho": 1, "max_records_per_person": 10**200},
    ],
)
@pytest.mark.parametrize("loss", [rp.SumOfVariances(), rp.MaxVariance()])
def test_budgets_below_what_floats_hold_are_refused(budget, loss):
    workload = rp.Workload.all_up_to(rp.Domain.from_sizes({"a": 3, "b": 2}), 2)
    with pytest.raises((BudgetError, PlanError), match=r"budget|privacy cost|mu|rho"):
        plan_tables(workload, loss=loss, budget=rp.Budget(**budget))


def check_planned_or_refused(domain: rp.Domain, loss, **settings) -> None:
    """Either refuses two tables with these settings, or plans them well."""
    try:
        workload = rp.Workload.of(domain, ["a", ("a", "b")], **settings)
        plan = plan_tables(workload, loss=loss, budget=rp.Budget(rho=1))
    except (WorkloadError, PlanError):
        return
    assert np.all(np.isfinite(plan.mean_variances))
    assert rp.verify(plan).holds
    assert plan.certificate.gap <= 1e-6


@pytest.mark.parametrize("weights", [[1e300, 1e-300], [1e308, 1e308], [5e-324, 1], [1e99, 1e-99]])
@pytest.mark.parametrize("loss", [rp.SumOfVariances("cells"), rp.MaxVariance()])
def test_weights_at_the_end_of_floats_are_planned_or_refused(weights, loss):
    domain = rp.Domain.from_sizes({"a": 1000, "b": 2})
    check_planned_or_refused(domain, loss, weights=weights)


@pytest.mark.parametrize("loss", [rp.SumOfVariances(), rp.MaxVariance()])
def test_an_empty_schema_is_not_planned(loss):
    workload = rp.Workload.all_up_to(rp.Domain(()), 0)
    with pytest.raises(PlanError, match="no attributes yet"):
        plan_tables(workload, loss=loss, budget=rp.Budget(rho=1))


def test_a_larger_budget_never_hurts_those_without_a_must():
    domain = rp.Domain.from_sizes({"a": 4, "b": 9})
    workload = rp.Workload.of(
        domain, ["a", "b", ("a", "b")], targets=[2, 3, 5], required=[True, False, False]
    )
    for loss in (rp.SumWithinTargets(), rp.MaxWithinTargets()):
        values = [
            plan_tables(workload, loss=loss, budget=rp.Budget(rho=rho)).loss_value
            for rho in ("0.2", "0.3", "1", "100")
        ]
        assert values == sorted(values, reverse=True)


@pytest.mark.parametrize("loss", [rp.SumWithinTargets(), rp.MaxWithinTargets()])
def test_targets_at_the_end_of_floats_are_planned_or_refused(loss):
    domain = rp.Domain.from_sizes({"a": 1000, "b": 2})
    for targets in ([1e200, 1], [1e-200, 1], [1e150, 1e-150], [1e-60, 1e60], [1e40, 1e-20]):
        check_planned_or_refused(domain, loss, targets=targets, required=[True, False])
