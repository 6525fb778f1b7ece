"""Targets met against the budget: the curves against planning anew, and what is said of them."""

import numpy as np
import pytest
from hypothesis import given, settings

import rpexplore as rp
from rpexplore.analysis import accuracy as se
from rpexplore.analysis import targets_met
from rpexplore.analysis import targets_met as curves
from rpexplore.analysis.distributions import MOST_STEPS
from rpexplore.analysis.sufficient_budgets import TARGET_LOSS, needed_rho, smallest_budget
from rpexplore.analysis.targets_met import CURRENT, SHORTFALL, target_counts
from rpexplore.planning.planner import optimum, plan_tables
from rpexplore.scenarios.table_settings import TableSetting
from tests.analysis.bases import SCENARIO
from tests.support.strategies import workloads

BUDGET = rp.Budget(rho="0.1", max_records_per_person=2)


@pytest.fixture
def workload():
    """7 tables whose targets are met at very different budgets."""
    domain = rp.Domain.from_sizes({"age": 10, "sex": 2, "region": 5})
    tables = rp.Workload.all_up_to(domain, 2)
    targets = np.array([30.0, 5, 40, 8, 20, 10, 15])
    return rp.Workload(domain, tables.members, tables.weights, targets)


def met_at(workload, loss, rho):
    """How many targets the plan of a budget meets."""
    budget = rp.Budget(rho=rho, max_records_per_person=BUDGET.max_records_per_person)
    plan = plan_tables(workload, loss=loss, budget=budget)
    return int(np.count_nonzero(plan.standard_errors <= workload.targets))


@given(workload=workloads(with_targets=True))
@settings(deadline=None, max_examples=20)
def test_the_curves_step_where_plans_come_to_meet_more(workload):
    optima = {
        CURRENT: optimum(workload, loss=rp.SumOfVariances()),
        SHORTFALL: optimum(workload, loss=TARGET_LOSS),
    }
    frame = curves.met_by_budget(optima, BUDGET)
    for objective, solved in optima.items():
        rows = frame[frame["objective"] == objective]
        assert rows["met"].tolist() == list(range(len(workload) + 1))
        assert rows["rho"].is_monotonic_increasing
        assert rows["share"].tolist() == (rows["met"] / len(workload)).tolist()
        for met, rho in zip(rows["met"].tolist()[1:], rows["rho"].tolist()[1:], strict=True):
            assert met_at(workload, solved.loss, rho * (1 + 1e-8)) >= met
            assert met_at(workload, solved.loss, rho * (1 - 1e-6)) < met


def test_long_curves_are_thinned_to_points_that_are_exact():
    domain = rp.Domain.from_sizes({f"a{i}": i + 2 for i in range(12)})
    tables = rp.Workload.all_up_to(domain, 3)
    targets = np.random.default_rng(0).uniform(1, 50, len(tables))
    workload = rp.Workload(domain, tables.members, tables.weights, targets)
    solved = optimum(workload, loss=rp.SumOfVariances())
    frame = curves.met_by_budget({CURRENT: solved}, BUDGET)
    assert len(frame) == MOST_STEPS + 1
    assert frame["met"].iloc[[0, -1]].tolist() == [0, len(workload)]
    for row in (17, 101, 200):
        rho, met = frame["rho"].iloc[row], frame["met"].iloc[row]
        assert met_at(workload, solved.loss, rho * (1 + 1e-8)) == met


def test_the_last_to_be_met_stands_first(workload):
    solved = optimum(workload, loss=rp.SumOfVariances())
    frame = curves.last_to_be_met(solved, BUDGET)
    errors = dict(zip(workload.tables, solved.standard_errors(BUDGET), strict=True))
    assert len(frame) == 7
    assert frame["needed_rho"].is_monotonic_decreasing
    ratio = frame["present"] / frame["target"]
    np.testing.assert_allclose(frame["times"], ratio**2, rtol=1e-12)
    first = frame.iloc[0]
    assert first["present"] == errors[tuple(first["table"].split(" × "))]
    assert frame["met"].tolist() == ["yes" if each <= 1 else "no" for each in ratio]
    assert set(frame["met"]) == {"yes", "no"}


def test_some_targets_out_of_reach(workload):
    current, by_shortfall = (
        optimum(workload, loss=loss) for loss in (rp.SumOfVariances(), TARGET_LOSS)
    )
    result = curves.outlook(current, by_shortfall, BUDGET)
    assert (result.targets, result.is_least, result.out_of_reach) == (7, True, True)
    assert result.met == met_at(workload, current.loss, "0.1") < 7
    last, second = curves.last_to_be_met(current, BUDGET)["table"].head(2)
    assert result.by_shortfall.needed < result.enough.needed
    sentence = curves.describe_outlook(result, "people")
    assert sentence.startswith(f"{result.met} of 7 targets are met at the current budget.")
    assert f"ρ = {result.enough.rho} " in sentence
    assert f"The last target met is that of {last} (target " in sentence
    assert sentence.endswith(f", after {second}.")
    sentence = curves.describe_by_shortfall(result)
    assert f"from ρ = {result.by_shortfall.rho} " in sentence
    assert "No plan of this kind can do it with a noticeably smaller budget." in sentence
    assert "out of reach" in sentence


def test_all_targets_met(workload):
    plenty = rp.Budget(rho=1000)
    result = curves.outlook(optimum(workload, loss=TARGET_LOSS), None, plenty)
    assert (result.met, result.by_shortfall, result.is_least, result.out_of_reach) == (
        7,
        None,
        True,
        False,
    )
    sentence = curves.describe_outlook(result, "people")
    assert sentence.startswith("All 7 targets are met; the smallest budget that does is ρ = ")
    assert "% of the current ρ" in sentence
    assert curves.describe_by_shortfall(result).startswith("No plan of this kind")


@pytest.mark.parametrize(
    ("target", "text"),
    [
        (
            1e4,
            [
                "The one target is met; the smallest budget that does is ρ = ",
                "It is the target of age (target",
            ],
        ),
        (
            1e-3,
            [
                "The one target is not met at the current budget.",
                "The current objective meets it from ρ = ",
                "It is the target of age (target",
            ],
        ),
    ],
)
def test_words_for_a_single_target(target, text):
    tables = rp.Workload.of(rp.Domain.from_sizes({"age": 10}), ["age"])
    single = tables.with_targets({("age",): target})
    solved, by_shortfall = (
        optimum(single, loss=loss) for loss in (rp.SumOfVariances(), TARGET_LOSS)
    )
    result = curves.outlook(solved, by_shortfall, BUDGET)
    sentence = curves.describe_outlook(result, "people")
    for part in text:
        assert part in sentence
    assert "They" not in sentence
    sentence = curves.describe_by_shortfall(result)
    assert sentence.startswith("The plan with the smallest shortfall meets it from ")
    assert ("the target is out of reach" in sentence) == (target < 1)


def test_targets_of_some_tables_only(workload):
    some = workload.with_targets(dict.fromkeys(workload.tables[1:]))
    solved = optimum(some, loss=rp.SumOfVariances())
    assert curves.has_targets(solved) == (True, False)
    result = curves.outlook(solved, None, BUDGET)
    assert (result.targets, [row["table"] for row in result.last]) == (1, ["(total)"])
    assert not result.is_least
    assert curves.describe_by_shortfall(result) == ""
    assert len(curves.last_to_be_met(solved, BUDGET)) == 1
    none = workload.with_targets(dict.fromkeys(workload.tables))
    assert curves.has_targets(optimum(none, loss=rp.SumOfVariances())) == (False, False)
    assert curves.has_targets(optimum(workload, loss=TARGET_LOSS)) == (True, True)


# ---- tables whose cells are not equally accurate


def test_a_target_is_met_by_the_least_accurate_cell(unequal_plan, dense_errors):
    table = unequal_plan.workload.tables.index(("age",))
    between = float(
        np.sqrt(np.mean(dense_errors[table] ** 2) * np.max(dense_errors[table] ** 2)) ** 0.5
    )
    largest = unequal_plan.largest_standard_errors[table]
    assert unequal_plan.standard_errors[table] < between < largest
    scenario = SCENARIO.with_settings([TableSetting(("age",), target=between)])
    missed = scenario.table_plan()
    assert target_counts(missed).met == 0
    assert se.of_tables(missed).set_index("item").loc["age (cumulative)", "met"] is False
    solved = optimum(scenario.workload, loss=scenario.loss)
    needs = needed_rho(solved, SCENARIO.budget)
    assert np.isnan(np.delete(needs, table)).all()
    assert needs[table] == pytest.approx(
        float(SCENARIO.budget.rho) * (dense_errors[table].max() / between) ** 2, rel=1e-5
    )
    last = targets_met.last_to_be_met(solved, SCENARIO.budget).iloc[0]
    assert last["present"] == pytest.approx(dense_errors[table].max(), rel=1e-5)
    assert last["met"] == "no"
    result = targets_met.outlook(solved, None, SCENARIO.budget)
    assert (result.met, result.is_least) == (0, False)
    met = scenario.replaced(budget=smallest_budget(solved, SCENARIO.budget).budget).table_plan()
    assert target_counts(met).met == 1
