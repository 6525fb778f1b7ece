"""Analyses of tables whose cells are not equally accurate, against dense matrices."""

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.analysis import accuracy as se
from rpexplore.analysis import accuracy_by_attribute as attributes
from rpexplore.analysis import budget_curves, fairness, rankings, shadow_prices, target_curves
from rpexplore.analysis import scenario_comparison as comparison
from rpexplore.analysis import variance_by_size as cell_variances
from rpexplore.analysis.forecast import Forecast
from rpexplore.analysis.frontier import frontier
from rpexplore.analysis.sufficient_budgets import needed_rho, smallest_budget
from rpexplore.planning.planner import optimum, optimum_with_strategies_of
from rpexplore.scenarios.table_settings import TableSetting
from rpexplore.workload.table_text import workload_from_csv
from tests.analysis.bases import BUDGET, DOMAIN, dense_cell_variances, scenario

SCENARIO = scenario()
MARGINALS = scenario().with_request(basis_choices=())


@pytest.fixture(scope="module")
def plan():
    return SCENARIO.plan()


@pytest.fixture(scope="module")
def dense(plan):
    """Standard errors of the cells of each table."""
    return [np.sqrt(dense_cell_variances(plan, table)) for table in range(len(plan.workload))]


@pytest.fixture(scope="module")
def solved():
    return optimum(SCENARIO.workload, loss=SCENARIO.loss)


def seen(dense, cell):
    found = {"mean": lambda each: np.sqrt(np.mean(each**2)), "worst": np.max, "best": np.min}
    return np.array([found[cell](errors) for errors in dense])


@pytest.mark.parametrize("cell", ["mean", "worst", "best"])
def test_a_forecast_is_seen_at_any_cell(plan, dense, solved, cell):
    for forecast in (
        Forecast.of_plan("this", plan),
        Forecast.of_optimum("this", solved, BUDGET),
    ):
        shown = forecast.at_cell(cell)
        assert shown.cell == cell
        assert shown.cells_differ
        np.testing.assert_allclose(shown.standard_errors, seen(dense, cell), rtol=1e-6)
        # and back again, from wherever one looks
        np.testing.assert_allclose(
            shown.at_cell("mean").standard_errors, forecast.standard_errors, rtol=1e-12
        )
        found = fairness.unevenness(shown)
        assert found.worst == pytest.approx(seen(dense, cell).max(), rel=1e-6)
        frame = attributes.by_attribute(shown).set_index("attribute")
        age = [place for place, table in enumerate(plan.workload.tables) if "age" in table]
        assert frame.loc["age", "largest"] == pytest.approx(seen(dense, cell)[age].max(), rel=1e-6)


def test_words_say_which_cell_is_seen(plan):
    forecast = Forecast.of_plan("this", plan)
    assert "a typical cell" in forecast.seen_in_words
    assert "the least accurate cell" in forecast.at_cell("worst").seen_in_words
    assert "the most accurate cell" in forecast.at_cell("best").seen_in_words
    alike = Forecast.of_plan("this", MARGINALS.plan())
    assert not alike.cells_differ
    assert alike.seen_in_words == ""
    np.testing.assert_array_equal(alike.at_cell("worst").standard_errors, alike.standard_errors)


def test_every_cell_of_a_table(plan, dense):
    forecast = Forecast.of_plan("this", plan)
    for table, errors in enumerate(dense):
        found = forecast.cell_standard_errors(table)
        np.testing.assert_allclose(found.ravel(), errors, rtol=1e-6)


def test_lists_have_the_best_and_the_worst_cell(plan, dense):
    forecast = Forecast.of_plan("this", plan)
    names = rankings.all_titles(plan.workload)
    frames = [
        rankings.ranking(forecast, names),
        shadow_prices.by_table(forecast, None),
        cell_variances.points([forecast]),
        se.of_tables(plan),
    ]
    for frame in frames:
        rows = frame.set_index("table").loc[names]
        for cell in ("best", "worst"):
            found = rows[f"{cell}_standard_error"]
            np.testing.assert_allclose(found, seen(dense, cell), rtol=1e-6)


def test_lists_of_marginals_have_no_such_columns():
    plan = MARGINALS.plan()
    forecast = Forecast.of_plan("this", plan)
    for frame in (
        rankings.ranking(forecast, rankings.all_titles(plan.workload)),
        shadow_prices.by_table(forecast),
        cell_variances.points([forecast]),
        se.of_tables(plan),
    ):
        assert not [name for name in frame if name.endswith("t_standard_error")]
    header = se.csv_of_tables(plan).splitlines()[0]
    assert header == (
        "attributes,order,cells,mean_variance,max_variance,standard_error,weight,target,"
        "shadow_price"
    )


def test_csv_of_tables_says_how_tables_ask_and_can_be_read(plan):
    text = se.csv_of_tables(plan)
    assert "age (cumulative) × income (ranges)" in text
    assert {"worst_standard_error", "best_standard_error"} <= set(text.splitlines()[0].split(","))
    assert workload_from_csv(DOMAIN, text, "tables.csv").tables == plan.workload.tables


def test_the_headline_is_about_the_least_accurate_cell(plan, dense):
    top, worst = se.headline(plan), seen(dense, "worst")
    assert top.worst_error == pytest.approx(worst.max(), rel=1e-6)
    assert top.median_error == pytest.approx(np.median(seen(dense, "mean")), rel=1e-6)
    assert top.worst_table == se.titles(plan.workload, np.array([np.argmax(worst)]))[0]
    assert top.worst_in_words == "the least accurate cell of all tables"
    assert se.headline(MARGINALS.plan()).worst_in_words == "a cell of the worst table"
    listed = se.of_tables(plan)
    assert listed["table"][0] == top.worst_table
    assert np.all(np.diff(listed["worst_standard_error"]) <= 0)


def test_by_order_reaches_from_the_best_to_the_worst_cell(plan, dense):
    frame, orders = se.by_order(plan), plan.workload.orders
    for row in frame.to_dict("records"):
        of_order = np.flatnonzero(orders == row["order"])
        assert row["smallest"] == pytest.approx(seen(dense, "best")[of_order].min(), rel=1e-6)
        assert row["largest"] == pytest.approx(seen(dense, "worst")[of_order].max(), rel=1e-6)
        assert row["median"] == pytest.approx(np.median(seen(dense, "mean")[of_order]), rel=1e-6)
    words = se.by_order_in_words(frame, "people", cells_differ=True)
    assert "The least accurate cell is one of " in words
    assert "least accurate cell of all" in se.boxes_in_words(frame, cells_differ=True)


def test_a_target_is_met_by_the_least_accurate_cell(plan, dense):
    table = plan.workload.tables.index(("age",))
    between = float(np.sqrt(np.mean(dense[table] ** 2) * np.max(dense[table] ** 2)) ** 0.5)
    assert plan.standard_errors[table] < between < plan.worst_standard_errors[table]
    asked = SCENARIO.with_settings([TableSetting(("age",), target=between)])
    missed = asked.plan()
    assert se.headline(missed).targets_met == 0
    assert se.of_tables(missed).set_index("table").loc["age (cumulative)", "met"] == "no"
    solved = optimum(asked.workload, loss=asked.loss)
    needs = needed_rho(solved, BUDGET)
    assert np.isnan(np.delete(needs, table)).all()
    assert needs[table] == pytest.approx(
        float(BUDGET.rho) * (dense[table].max() / between) ** 2, rel=1e-5
    )
    last = target_curves.last_to_be_met(solved, BUDGET).iloc[0]
    assert last["standard_error"] == pytest.approx(dense[table].max(), rel=1e-5)
    assert last["met"] == "no"
    found = target_curves.outlook(solved, None, BUDGET)
    assert (found.met, found.is_least) == (0, False)
    met = asked.replaced(budget=smallest_budget(solved, BUDGET).budget).plan()
    assert se.headline(met).targets_met == 1


def test_budget_curves_start_and_end_at_cells(solved, dense):
    curves = {curve.name: curve for curve in budget_curves.quantile_curves(solved)}
    rho = float(BUDGET.rho)
    assert list(curves) == ["worst cell", "median table", "best cell"]
    for name, cell, pick in (("worst cell", "worst", np.max), ("best cell", "best", np.min)):
        error = curves[name].standard_error(rho, BUDGET)
        assert error == pytest.approx(pick(seen(dense, cell)), rel=1e-6)
    table = solved.workload.tables.index(("age", "sex"))
    typical, worst = budget_curves.table_curves(solved, table)
    assert typical.standard_error(rho, BUDGET) == pytest.approx(seen(dense, "mean")[table])
    assert worst.standard_error(rho, BUDGET) == pytest.approx(seen(dense, "worst")[table])
    assert worst.name == "age (cumulative) × sex, the least accurate cell"
    (alike,) = budget_curves.table_curves(solved, solved.workload.tables.index(("sex",)))
    assert alike.name == "sex"


# ---- other plans, measured alike


@pytest.mark.parametrize("loss", [rp.SumOfVariances("cells"), rp.MaxVariance()], ids=repr)
def test_other_losses_are_solved_with_the_same_strategies(solved, loss):
    other = optimum_with_strategies_of(solved, solved.workload, loss)
    assert other.closure.strategies == solved.closure.strategies
    again = optimum(solved.workload, loss=loss, strategies=solved.closure.strategies)
    np.testing.assert_allclose(other.variances, again.variances, rtol=1e-5)
    assert loss.value(other.table_variances.of_loss(loss), other.workload) <= (
        1 + 1e-6
    ) * loss.value(solved.table_variances.of_loss(loss), solved.workload)


def test_what_is_newly_asked_is_searched_for():
    before = optimum(MARGINALS.workload, loss=rp.SumOfVariances())
    after = optimum_with_strategies_of(before, SCENARIO.workload, rp.SumOfVariances())
    assert sorted(after.closure.strategies) == [0, 2, 3]


def test_the_frontier_between_plans_that_measure_alike(solved):
    ends = (
        optimum_with_strategies_of(solved, solved.workload, loss)
        for loss in (rp.SumOfVariances("cells"), rp.MaxVariance())
    )
    found = frontier(*ends, most_points=5)
    assert found.is_measured_alike
    points = found.points
    assert all(point.gap <= 2e-6 for point in points)
    totals, largest = ([getattr(point, name) for point in points] for name in ("total", "largest"))
    assert totals == sorted(totals)
    assert largest == sorted(largest, reverse=True)


# ---- scenarios side by side


def test_scenarios_that_ask_otherwise_differ_in_that(plan):
    found = comparison.inputs([MARGINALS, SCENARIO])
    row = found.words.loc["Attributes are asked"].tolist()
    assert row == ["by single values", "age: cumulative; region: hierarchy; income: ranges"]
    assert set(found.words.index[found.differs]) == {"Attributes are asked"}
    assert "Attributes are asked" not in comparison.inputs([MARGINALS, MARGINALS]).words.index
    words = comparison.outcomes([MARGINALS, SCENARIO], [MARGINALS.plan(), plan]).words
    assert words.index[:2].tolist() == [
        "Typical cell of a typical table, 95 % of the time",
        "Least accurate cell of all, 95 % of the time",
    ]
    assert "Worst cell ÷ best cell" in words.index


def test_only_tables_asked_alike_are_compared(plan):
    frame = comparison.table_differences(MARGINALS.plan(), plan)
    assert sorted(frame["table"]) == ["(total)", "sex"]
    more = SCENARIO.replaced(budget=rp.Budget(rho="0.8", max_records_per_person=2)).plan()
    frame = comparison.table_differences(plan, more)
    assert len(frame) == len(plan.workload)
    np.testing.assert_allclose(frame["change"], -0.5, rtol=1e-6)
    np.testing.assert_allclose(frame["right_worst"] / frame["left_worst"], 0.5, rtol=1e-6)
    words = comparison.differences_in_words(frame, "a", "b")
    assert "smaller one (median −50 %)" in words
    assert "standard error of a typical cell" in words
