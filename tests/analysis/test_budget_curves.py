"""Standard errors against the budget: the scaling law against planning anew."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.analysis import budget_curves
from rpexplore.analysis import budget_curves as curves
from rpexplore.analysis.area_accuracy import level_accuracy
from rpexplore.analysis.sufficient_budgets import budget_for_error
from rpexplore.planning.areas.area_planner import plan_areas
from rpexplore.planning.counts_planner import query_optimum as optimum_of_counts
from rpexplore.planning.planner import optimum, plan_tables
from rpexplore.privacy import conversions as privacy
from rpexplore.workload.table_text import title
from tests.analysis.bases import BUDGET, errors_at
from tests.support.strategies import workloads

LOSSES = [rp.SumOfVariances("cells"), rp.MaxVariance()]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@given(workload=workloads(), person=st.sampled_from([None, 3]))
@settings(deadline=None, max_examples=15)
def test_curves_are_what_planning_anew_gives(loss, workload, person):
    present = rp.Budget(rho="0.1", max_records_per_person=person)
    solved = optimum(workload, loss=loss)
    chosen = [curve for row in range(len(workload)) for curve in curves.table_curves(solved, row)]
    frame = curves.errors_by_budget(chosen, present)
    for rho in ("0.01", "0.05", "0.1", "1"):
        plan = plan_tables(
            workload, loss=loss, budget=rp.Budget(rho=rho, max_records_per_person=person)
        )
        rows = frame[frame["rho"] == float(rho)]
        assert rows["series"].tolist() == list(range(len(workload)))
        np.testing.assert_allclose(rows["standard_error"], plan.standard_errors, rtol=1e-9)
        assert set(rows["epsilon"]) == {privacy.epsilon_from_rho(rho, "1e-6")}
    assert frame["rho"].min() == 0.01
    assert frame["rho"].max() == 1


@pytest.mark.parametrize("person", [None, 3])
def test_curves_of_areas_and_of_counts_are_what_planning_anew_gives(person):
    tree = rp.AreaTree.from_columns({"region": [*"NNS"], "town": ["1", "2", "1"]})
    domain = rp.Domain.from_sizes({"sex": 2, "age": 3})
    asked = rp.Workload.all_up_to(domain, 2)
    areas = rp.AreaWorkload.of_levels(tree, dict.fromkeys(tree.levels, asked))
    counts = rp.QueryList(domain, [[0, 1, 1, 1, 1, 1], [1, 0, 0, 1, 0, 0]], ("a", "b"), [5, 9])

    def planned(rho):
        budget = rp.Budget(rho=rho, max_records_per_person=person)
        of_areas = plan_areas(areas, loss=rp.SumOfVariances(), budget=budget)
        return of_areas, optimum_of_counts(counts).at(budget)

    (small, few), (large, many) = planned("0.1"), planned("2")
    by_level = level_accuracy(large)["standard_error"]
    told = [curve.value(2, large.budget) for curve in curves.area_curves(small)]
    np.testing.assert_allclose(told, by_level, rtol=1e-6)
    told = [curve.value(2, many.budget) for curve in curves.count_curves(few)]
    expected = [many.standard_errors.max(), many.standard_errors.min()]
    np.testing.assert_allclose([told[0], told[-1]], expected, rtol=1e-6)


def test_epsilon_is_that_of_the_stated_delta():
    workload = rp.Workload.all_up_to(rp.Domain.from_sizes({"a": 3, "b": 4}), 2)
    solved = optimum(workload, loss=rp.SumOfVariances())
    present = rp.Budget(epsilon=2, delta="1e-9")
    frame = curves.errors_by_budget(curves.quantile_curves(solved), present)
    now = frame[frame["rho"] == float(present.rho)]
    assert now["epsilon"].iloc[0] == pytest.approx(2, rel=1e-9)
    assert len(now) == 3


def test_least_accurate_median_and_most_accurate():
    workload = rp.Workload.all_up_to(rp.Domain.from_sizes({"age": 10, "sex": 2, "region": 5}), 2)
    solved = optimum(workload, loss=rp.SumOfVariances("cells"))
    plan = solved.at(rp.Budget(rho=1))
    least, median, most = curves.quantile_curves(solved)
    errors = plan.standard_errors
    result = [curve.value(1.0, rp.Budget(rho=1)) for curve in (least, median, most)]
    assert result == pytest.approx([errors.max(), np.sqrt(np.median(errors**2)), errors.min()])
    assert least.table == title(workload.tables[int(errors.argmax())])
    assert most.table == title(workload.tables[int(errors.argmin())])
    assert (least.name, median.table) == ("least accurate table", "")


def test_by_number_of_attributes():
    workload = rp.Workload.all_up_to(rp.Domain.from_sizes({"age": 10, "sex": 2, "region": 5}), 2)
    solved = optimum(workload, loss=rp.SumOfVariances("cells"))
    largest = curves.order_curves(solved, least_accurate=True)
    assert [curve.name for curve in largest] == [
        "total",
        "least accurate of 1 attribute",
        "least accurate of 2 attributes",
    ]
    for order, curve in enumerate(largest):
        assert curve.variance == solved.mean_variances[workload.orders == order].max()
    median = curves.order_curves(solved, least_accurate=False)
    assert median[1].variance == np.median(solved.mean_variances[workload.orders == 1])
    assert median[1].name == "1 attribute"


def test_tables_that_are_equal_are_one_curve():
    workload = rp.Workload.all_of_order(rp.Domain.from_sizes({"a": 3, "b": 3, "c": 3}), 2)
    solved = optimum(workload, loss=rp.SumOfVariances())
    assert [curve.name for curve in curves.quantile_curves(solved)] == ["every table"]
    single = rp.Workload.of(workload.domain, ["a"])
    solved = optimum(single, loss=rp.SumOfVariances())
    assert [curve.name for curve in curves.quantile_curves(solved)] == ["a"]


def test_the_curves_reach_what_is_wished_for():
    curve, present = curves.Curve("age", 40.0, "age"), rp.Budget(rho="0.1")
    far = budget_for_error(curve.variance, 0.5, present).needed
    frame = curves.errors_by_budget([curve], present, [far])
    assert far in set(frame["rho"])
    assert frame["rho"].max() == pytest.approx(3 * far)
    # but not to the end of the world
    assert curves.errors_by_budget([curve], present, [1e9])["rho"].max() == 1


@pytest.mark.parametrize("rho", ["1e-99", "4.9e99"])
def test_budgets_at_the_ends_of_the_range_have_curves(rho):
    result = [curves.Curve("age", 40.0, "age")]
    frame = curves.errors_by_budget(result, rp.Budget(rho=rho))
    assert np.isfinite(frame["standard_error"]).all()
    assert len(frame) > 10
    sentence = curves.describe_curves(result, rp.Budget(rho=rho), "people")
    assert "age" in sentence
    assert ("(ε = " in sentence) == (rho == "1e-99")
    assert sentence.endswith(").") == (rho == "1e-99")  # beyond the range there is no ε to tell


def test_in_words():
    present = rp.Budget(rho="0.1")
    result = [
        curves.Curve("least accurate table", 45.0, "age × sex"),
        curves.Curve("median table", 20.0),
    ]
    sentence = curves.describe_curves(result, present, "people")
    # √(45 / 0.2) = 15 and √(20 / 0.2) = 10; ε(ρ = 0.4, δ = 1e-6) = 4.6044
    assert "least accurate table 15; median table 10." in sentence
    assert "ρ = 0.4 (ε = 4.61 at δ = 1e-6)" in sentence
    enough = budget_for_error(45.0, 7.5, present)
    sentence = curves.describe_wanted_value(result[0], 7.5, enough, present, "people")
    assert sentence.startswith(
        "For a standard error of 7.5 people in “least accurate table” (now 15)"
    )
    assert "ρ = 0.40001" in sentence
    assert sentence.endswith(": 4 times the current ρ.")


def test_half_the_error_is_at_four_times_the_budget():
    present = rp.Budget(rho="0.1", max_records_per_person=3)
    rho, error = curves.half_value(curves.Curve("age", 45.0), present)
    # √(45 × 3² / 0.2) = 45
    assert (rho, error) == pytest.approx((0.4, 22.5))


# ---- tables whose cells are not equally accurate


def test_budget_curves_start_and_end_at_cells(unequal_optimum, dense_errors):
    curves = {curve.name: curve for curve in budget_curves.quantile_curves(unequal_optimum)}
    rho = float(BUDGET.rho)
    assert list(curves) == ["least accurate cell", "median table", "most accurate cell"]
    for name, cell, pick in (
        ("least accurate cell", "largest", np.max),
        ("most accurate cell", "smallest", np.min),
    ):
        error = curves[name].value(rho, BUDGET)
        assert error == pytest.approx(pick(errors_at(dense_errors, cell)), rel=1e-6)
    table = unequal_optimum.workload.tables.index(("age", "sex"))
    median, largest = budget_curves.table_curves(unequal_optimum, table)
    assert median.value(rho, BUDGET) == pytest.approx(errors_at(dense_errors, "mean")[table])
    assert largest.value(rho, BUDGET) == pytest.approx(errors_at(dense_errors, "largest")[table])
    assert largest.name == "age (cumulative) × sex, its least accurate cell"
    (alike,) = budget_curves.table_curves(
        unequal_optimum, unequal_optimum.workload.tables.index(("sex",))
    )
    assert alike.name == "sex"
