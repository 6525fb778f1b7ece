"""Accuracy of a plan's tables, against the plan itself and against numpy."""

import io

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.analysis import accuracy as se
from rpexplore.analysis import binding_targets, fairness
from rpexplore.analysis import distributions as cell_variances
from rpexplore.analysis.measures import Accuracy
from rpexplore.planning.planner import plan_tables
from rpexplore.workload.table_text import title_of, titles, workload_from_csv
from tests.analysis.bases import MARGINALS, SCENARIO, errors_at

DOMAIN = rp.Domain.from_sizes({"age": 30, "sex": 2, "region": 7})


@pytest.fixture(scope="module")
def plan():
    workload = rp.Workload.all_up_to(DOMAIN, 2).with_weights({("sex",): 4.0})
    workload = workload.with_targets({("sex",): 100.0, ("age", "region"): 0.1})
    return plan_tables(workload, loss=rp.SumOfVariances("cells"), budget=rp.Budget(rho="0.1"))


@pytest.fixture(scope="module")
def level_plan():
    workload = rp.Workload.all_of_order(DOMAIN, 1)
    return plan_tables(workload, loss=rp.MaxVariance(), budget=rp.Budget(rho="0.1"))


def test_headline(plan):
    top = se.headline(plan)
    assert top.largest_error == plan.standard_errors.max()
    largest = plan.workload.tables[int(np.argmax(plan.standard_errors))]
    assert top.least_accurate_table == (" × ".join(largest) or "(total)")
    assert top.largest_margin == pytest.approx(plan.margin_of_error(largest), rel=1e-12)
    assert top.median_error == np.median(plan.standard_errors)


def test_by_order_are_the_quantiles_of_each_order(plan):
    frame = se.by_order(plan)
    assert frame["order"].tolist() == [0, 1, 2]
    assert frame["tables"].tolist() == [1, 3, 3]
    tables = plan.accuracy()
    for row in frame.to_dict("records"):
        errors = tables.loc[tables["attributes"].map(len) == row["order"], "standard_error"]
        result = [row[name] for name in ("smallest", "lower_quartile", "median", "largest")]
        assert result == pytest.approx(errors.quantile([0, 0.25, 0.5, 1]).tolist(), rel=1e-12)
        largest = tables.loc[errors.idxmax(), "attributes"]
        assert row["least_accurate_table"] == (" × ".join(largest) or "(total)")


def test_words_for_different_errors(plan):
    frame = se.by_order(plan)
    sentence = se.describe_by_order(frame, "people")
    assert frame.loc[frame["largest"].idxmax(), "least_accurate_table"] in sentence
    assert " people for " in sentence


def test_words_for_equal_errors(level_plan):
    sentence = se.describe_by_order(se.by_order(level_plan), "visits")
    assert "visits" in sentence
    assert sentence.endswith("All tables are equally accurate.")


def test_of_tables_lists_all_the_least_accurate_first(plan):
    frame = se.of_tables(plan)
    assert len(frame) == 7
    assert np.all(np.diff(frame["standard_error"]) <= 0)
    rows = frame.set_index("item")
    assert rows.loc["sex", "weight"] == 4.0
    assert rows["met"].to_dict() == dict.fromkeys(rows.index) | {"sex": True, "age × region": False}
    assert rows.loc["(total)", "cells"] == 1


def test_a_target_that_is_met_exactly_is_met(plan):
    exactly = float(plan.standard_errors[0])
    workload = plan.workload.with_targets({(): exactly})
    same = plan_tables(workload, loss=plan.loss, budget=plan.budget)
    assert se.of_tables(same).set_index("item").loc["(total)", "met"] is True


def test_filter_by_attributes(plan):
    assert set(se.of_tables(plan, ["sex"])["item"]) == {"sex", "age × sex", "sex × region"}
    assert se.of_tables(plan, ["age", "sex", "region"]).empty


def test_csv_of_accuracy_can_be_read_as_a_workload(plan):
    text = se.csv_of_accuracy(plan)
    workload = workload_from_csv(DOMAIN, text, "tables.csv")
    assert workload.tables == plan.workload.tables
    np.testing.assert_array_equal(workload.weights, plan.workload.weights)
    np.testing.assert_array_equal(workload.targets, plan.workload.targets)
    assert len(io.StringIO(text).readlines()) == 8


def test_words_are_rounded_as_in_the_chart(plan):
    frame = se.by_order(plan).assign(
        median=[13.0, 13.21, 14.02], largest=[13.0, 13.5, 14.5], smallest=[13.0, 13.1, 13.9]
    )
    sentence = se.describe_by_order(frame, "people")
    assert "from 13.0 people" in sentence
    assert "to 14.0 for" in sentence
    assert sentence.endswith("at 14.5.")


def test_tables_of_an_order_differ_or_not(plan, level_plan):
    assert se.describe_boxes(se.by_order(plan))
    assert se.describe_boxes(se.by_order(level_plan)) == ""


def test_the_csv_of_accuracy_has_required_where_there_are_any():
    workload = rp.Workload.all_up_to(rp.Domain.from_sizes({"a": 2, "b": 3}), 1)
    made = plan_tables(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))
    assert "required" not in se.csv_of_accuracy(made).splitlines()[0].split(",")
    with_targets = workload.with_targets({("a",): rp.Target(3, required=True), ("b",): 4})
    made = plan_tables(with_targets, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1))
    again = workload_from_csv(workload.domain, se.csv_of_accuracy(made), "tables.csv")
    assert again.required.tolist() == [False, True, False]
    assert again.targets.tolist()[1:] == [3, 4]


# ---- tables whose cells are not equally accurate


def test_lists_have_the_most_and_the_least_accurate_cell(unequal_plan, dense_errors):
    accuracy = Accuracy.of_plan("this", unequal_plan)
    names = titles(unequal_plan.workload, np.arange(len(unequal_plan.workload)))
    frames = [
        fairness.ranking(accuracy),
        binding_targets.by_table(accuracy, None),
        cell_variances.points([accuracy]),
        se.of_tables(unequal_plan).rename(columns={"item": "table"}),
    ]
    for frame in frames:
        rows = frame.set_index("table").loc[names]
        for cell in ("smallest", "largest"):
            result = rows[f"{cell}_standard_error"]
            np.testing.assert_allclose(result, errors_at(dense_errors, cell), rtol=1e-6)


def test_lists_of_marginals_have_no_such_columns():
    plan = MARGINALS.table_plan()
    accuracy = Accuracy.of_plan("this", plan)
    for frame in (
        fairness.ranking(accuracy),
        binding_targets.by_table(accuracy),
        cell_variances.points([accuracy]),
        se.readable(se.of_tables(plan)),
    ):
        assert not [name for name in frame if name.endswith("t_standard_error")]
    header = se.csv_of_accuracy(plan).splitlines()[0]
    assert header == ("item,attributes,cells,standard_error,margin_95,weight,shadow_price")


def test_csv_of_accuracy_says_how_tables_ask_and_can_be_read(unequal_plan):
    text = se.csv_of_accuracy(unequal_plan)
    assert "age (cumulative) × income (ranges)" in text
    header = set(text.splitlines()[0].split(","))
    assert {"largest_standard_error", "smallest_standard_error"} <= header
    assert (
        workload_from_csv(SCENARIO.domain, text, "tables.csv").tables
        == unequal_plan.workload.tables
    )


def test_the_headline_is_about_the_least_accurate_cell(unequal_plan, dense_errors):
    top, largest = se.headline(unequal_plan), errors_at(dense_errors, "largest")
    assert top.largest_error == pytest.approx(largest.max(), rel=1e-6)
    assert top.median_error == pytest.approx(np.median(errors_at(dense_errors, "mean")), rel=1e-6)
    assert top.least_accurate_table == title_of(unequal_plan.workload, int(np.argmax(largest)))
    assert top.largest_text == "the least accurate cell of all tables"
    assert se.headline(MARGINALS.table_plan()).largest_text == "a cell of the least accurate table"
    # Of one table whose cells are alike there is one number.
    one = se.headline(MARGINALS.with_request(kind="listed", listed=(("age",),)).table_plan())
    assert one.median_text == one.largest_text == "a cell of the table"
    listed = se.of_tables(unequal_plan)
    assert listed["item"].iloc[0] == top.least_accurate_table
    assert np.all(np.diff(listed["largest_standard_error"]) <= 0)


def test_by_order_reaches_from_the_most_to_the_least_accurate_cell(unequal_plan, dense_errors):
    frame, orders = se.by_order(unequal_plan), unequal_plan.workload.orders
    for row in frame.to_dict("records"):
        of_order = np.flatnonzero(orders == row["order"])
        assert row["smallest"] == pytest.approx(
            errors_at(dense_errors, "smallest")[of_order].min(), rel=1e-6
        )
        assert row["largest"] == pytest.approx(
            errors_at(dense_errors, "largest")[of_order].max(), rel=1e-6
        )
        assert row["median"] == pytest.approx(
            np.median(errors_at(dense_errors, "mean")[of_order]), rel=1e-6
        )
    sentence = se.describe_by_order(frame, "people", cells_differ=True)
    assert "The least accurate cell is one of " in sentence
    assert "least accurate cell of all" in se.describe_boxes(frame, cells_differ=True)
