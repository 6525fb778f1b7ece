"""What if: the moves of all tables against plans of both workloads."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.analysis import what_if
from rpexplore.analysis.measures import VARIANCE
from rpexplore.errors import RpexploreError
from rpexplore.planning.planner import optimum, optimum_with_strategies_of, plan_tables
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.workload_changes import (
    ADD,
    BOOST,
    LEAVE_OUT,
    WorkloadChange,
    changed_workload,
)
from rpexplore.scenarios.workload_request import WorkloadRequest
from rpexplore.workload.table_text import query_matrix, title, titles
from tests.analysis import bases

BUDGET = rp.Budget(rho="0.2", max_records_per_person=2)
DOMAIN = rp.Domain.from_sizes({"age": 10, "sex": 2, "region": 5, "one": 1, "income": 7})
SCENARIO = Scenario(DOMAIN, WorkloadRequest(order=2), budget=BUDGET, record_noun="people")

LOSSES = [rp.SumOfVariances(), rp.SumOfVariances("cells"), rp.MaxVariance()]
CHANGES = [
    WorkloadChange(LEAVE_OUT, ("region",)),
    WorkloadChange(LEAVE_OUT, (), 1),
    WorkloadChange(LEAVE_OUT, (), 2),
    WorkloadChange(BOOST, ("region",), factor=4.0),
    WorkloadChange(BOOST, (), 1),
    WorkloadChange(ADD, (), 3),
    WorkloadChange(ADD, ("age", "income"), 3),
    WorkloadChange(ADD, (), 5),
]


def moves_of(workload_change, scenario=SCENARIO):
    before = optimum(scenario.workload, loss=scenario.loss)
    after = optimum(changed_workload(scenario, workload_change), loss=scenario.loss)
    return what_if.accuracy_changes(before, after, workload_change)


def standard_error(plan, table):
    """By the plan's own formula for any marginal; infinite where the plan does not give it."""
    try:
        return math.sqrt(plan.largest_variance(table))
    except RpexploreError:
        return math.inf


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("workload_change", CHANGES, ids=str)
def test_moves_are_those_from_plan_to_plan(workload_change, loss):
    scenario = SCENARIO.replaced(loss=loss)
    changed = changed_workload(scenario, workload_change)
    before = plan_tables(scenario.workload, loss=loss, budget=BUDGET)
    after = plan_tables(changed, loss=loss, budget=BUDGET)
    frame = what_if.of_tables(moves_of(workload_change, scenario), BUDGET).set_index("table")
    union = {*scenario.workload.tables, *changed.tables}
    assert sorted(frame.index) == sorted(map(title, union))
    for table in union:
        row = frame.loc[title(table)]
        for column, plan in (("before", before), ("after", after)):
            expected = standard_error(plan, table)
            result = math.inf if math.isnan(row[column]) else row[column]
            assert result == pytest.approx(expected, rel=1e-5)
        concerned = set(workload_change.containing) <= set(table) and workload_change.order in (
            None,
            len(table),
        )
        if workload_change.action == ADD:
            concerned = table not in scenario.workload.tables
        assert row["concerned"] == concerned
        if not (math.isnan(row["before"]) or math.isnan(row["after"])):
            assert row["change"] == pytest.approx(100 * (row["after"] / row["before"] - 1))


def test_what_moves_most_stands_first():
    frame = what_if.of_tables(moves_of(WorkloadChange(LEAVE_OUT, (), 1)), BUDGET)
    distance = np.abs(np.log(frame["after"] / frame["before"])).dropna()
    assert distance.is_monotonic_decreasing


@pytest.mark.parametrize(
    "workload_change",
    [WorkloadChange(LEAVE_OUT, (), 1), WorkloadChange(ADD, (), 3), CHANGES[0]],
    ids=str,
)
def test_the_extremes_are_those_that_gain_and_lose_most(workload_change):
    result = moves_of(workload_change)
    others = what_if.of_tables(result, BUDGET).query("not concerned").set_index("table")["change"]
    frame = what_if.extremes(result, BUDGET, 5)
    assert len(frame) == 5
    assert not frame["concerned"].any()
    assert frame["change"].tolist() == [others[name] for name in frame["name"]]
    ordered = sorted(others)
    np.testing.assert_allclose(frame["change"], [*ordered[:3], *ordered[-2:]], rtol=1e-12)
    everything = what_if.extremes(result, BUDGET, 100)
    np.testing.assert_allclose(everything["change"], ordered, rtol=1e-12)
    sentence = what_if.describe_extremes(frame, "people")
    first, last = frame["name"].iloc[0], frame["name"].iloc[-1]
    assert sentence.startswith(f"The changes of the other tables range from {first} (from ")
    assert f" to {last} (from " in sentence


def test_by_number_of_attributes():
    result = moves_of(WorkloadChange(LEAVE_OUT, ("region",)))
    frame = what_if.by_order(result, BUDGET)
    assert frame["name"].tolist() == [
        "total",
        "1 attribute",
        "2 attributes",
        "1 attribute, left out",
        "2 attributes, left out",
    ]
    assert frame["tables"].tolist() == [1, 4, 6, 1, 4]
    # (region) is gone, and so are its tables: one × region has no more cells, but lies in none
    assert frame["lost"].tolist() == [0, 0, 0, 1, 4]
    tables = what_if.of_tables(result, BUDGET)
    two = tables[(tables["order"] == 2) & ~tables["concerned"]]
    row = frame.iloc[2]
    assert row["before"] == pytest.approx(two["before"].median())
    assert row["after"] == pytest.approx(two["after"].median())
    spread = two["change"].quantile([0, 0.5, 1]).tolist()
    assert row[["smallest", "change", "largest"]].tolist() == pytest.approx(spread)
    changed = (
        100 * (result.after / result.before - 1)[(result.workload.orders == 2) & ~result.concerned]
    )
    assert (
        row[["smallest", "change", "largest"]].tolist()
        == np.quantile(changed, [0, 0.5, 1]).tolist()
    )
    assert two["change"].tolist() == (100 * (two["after"] / two["before"] - 1)).tolist()
    assert frame["note"].tolist()[3:] == ["not available", "not available"]
    assert frame["note"][0] == f"−{abs(row_of_total(tables)):.2g} %"


def row_of_total(tables):
    return tables.set_index("table").loc["(total)", "change"]


def test_notes_of_added_tables():
    frame = what_if.by_order(moves_of(WorkloadChange(ADD, (), 3)), BUDGET)
    assert frame["name"].iloc[-1] == "3 attributes, added"
    # age × sex × one could be computed from age × sex before, since `one` has a single value
    assert "new" not in frame["note"].iloc[-1]
    without = SCENARIO.replaced(domain=rp.Domain.from_sizes({"a": 3, "b": 4, "c": 5}))
    frame = what_if.by_order(moves_of(WorkloadChange(ADD, (), 3), without), BUDGET)
    assert frame["note"].iloc[-1] == "new"
    assert math.isnan(frame["before"].iloc[-1])


@pytest.mark.parametrize("workload_change", CHANGES, ids=str)
def test_the_ratios_hold_at_every_budget(workload_change):
    result = moves_of(workload_change)
    one, other = (what_if.of_tables(result, rp.Budget(rho=rho)) for rho in ("0.01", "5"))
    pd.testing.assert_series_equal(one["change"], other["change"])
    np.testing.assert_allclose(one["before"], other["before"] * math.sqrt(500))


def test_variances_move_by_the_squares():
    result = moves_of(WorkloadChange(LEAVE_OUT, ("region",)))
    errors, variances = result, result.in_measure(VARIANCE)
    one, other = (what_if.of_tables(each, BUDGET) for each in (errors, variances))
    np.testing.assert_allclose(other["after"], one["after"] ** 2)
    np.testing.assert_allclose(1 + other["change"] / 100, (1 + one["change"] / 100) ** 2)
    assert "makes the variances of " in what_if.describe_changes(variances, BUDGET, "people")


@given(st.sampled_from(CHANGES), st.sampled_from(["0.01", "3"]))
@settings(deadline=None, max_examples=20)
def test_sentences_have_no_holes(workload_change, rho):
    sentence = what_if.describe_changes(moves_of(workload_change), rp.Budget(rho=rho), "people")
    assert "nan" not in sentence
    assert "inf" not in sentence.replace("information", "")
    assert sentence.endswith(".")


def test_leaving_out_in_words():
    result = moves_of(WorkloadChange(LEAVE_OUT, ("region",)))
    changes = what_if.of_tables(result, BUDGET).query("not concerned")["change"]
    sentence = what_if.describe_changes(result, BUDGET, "people")
    assert sentence.startswith("Leaving out the 5 tables with region makes the standard errors of ")
    assert f"the other 11 tables {abs(changes.median()):.2g} % smaller" in sentence
    assert sentence.endswith("They cannot be computed from the others.")
    sentence = what_if.describe_changes(
        moves_of(WorkloadChange(LEAVE_OUT, ("age",), 1)), BUDGET, "people"
    )
    assert sentence.startswith(
        "Leaving out the table age makes the standard errors of the other 15 "
    )
    assert "It can be computed from the others, with errors " in sentence


def test_counting_more_in_words():
    result = moves_of(WorkloadChange(BOOST, ("age", "sex"), 2, factor=9.0))
    assert what_if.by_order(result, BUDGET)["name"].iloc[-1] == "2 attributes, counted differently"
    sentence = what_if.describe_changes(result, BUDGET, "people")
    assert sentence.startswith("Counting the table age × sex 9 times as much makes the standard ")
    assert "Its own standard error becomes " in sentence
    assert sentence.endswith("% smaller.")


def test_adding_in_words():
    result = moves_of(WorkloadChange(ADD, ("age", "income"), 3))
    sentence = what_if.describe_changes(result, BUDGET, "people")
    assert sentence.startswith("Adding the 3 tables of 3 attributes with age and income makes ")
    assert "They will have a standard error of " in sentence
    assert sentence.endswith("people (median).")
    some = SCENARIO.with_request(
        kind="listed", listed=(*SCENARIO.workload.tables, ("age", "sex", "income"))
    )
    result = moves_of(WorkloadChange(ADD, ("age", "income"), 3), some)
    sentence = what_if.describe_changes(result, BUDGET, "people")
    assert sentence.startswith(
        "Adding 2 of the 3 tables of 3 attributes with age and income makes "
    )


def test_nothing_to_compare_with_and_nothing_that_moves():
    single = SCENARIO.with_request(kind="listed", listed=(("age",),))
    sentence = what_if.describe_changes(
        moves_of(WorkloadChange(BOOST, ("age",)), single), BUDGET, "people"
    )
    assert (
        sentence
        == "Counting the table age 2 times as much changes nothing: there are no other tables."
    )
    largest = SCENARIO.with_request(kind="listed", listed=(("age", "income"), ("age", "one")))
    result = moves_of(WorkloadChange(BOOST, ("one",), factor=1.0), largest)
    sentence = what_if.describe_changes(result, BUDGET, "people")
    assert "moves no other table by as much as 0.05 %" in sentence
    assert what_if.extremes(result, BUDGET, 5)["note"].tolist() == ["±0 %"]
    assert not what_if.others_differ(result)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [(-23.4, "23 % smaller"), (4.12, "4.1 % larger"), (150.0, "2.5 times as large")],
)
def test_changes_in_words(change, sentence):
    assert what_if.describe_change(change) == sentence


# ---- tables that ask otherwise than by single values


CHANGES_OF_ANY = [
    WorkloadChange(LEAVE_OUT, ("region",)),
    WorkloadChange(LEAVE_OUT, (), 1),
    WorkloadChange(LEAVE_OUT, (), 2),
    WorkloadChange(BOOST, ("age",), factor=4.0),
    WorkloadChange(ADD, (), 3),
]
# Every change for one loss, and one change for every loss.
BY_DAY = [*((change, LOSSES[0]) for change in CHANGES_OF_ANY), (CHANGES_OF_ANY[4], LOSSES[2])]
BY_NIGHT = [
    (change, loss) for change in CHANGES_OF_ANY for loss in LOSSES if (change, loss) not in BY_DAY
]


@pytest.mark.by_day(1)
@pytest.mark.parametrize(
    ("workload_change", "loss"),
    [*BY_DAY, *(pytest.param(*each, marks=pytest.mark.nightly) for each in BY_NIGHT)],
    ids=str,
)
def test_moves_of_tables_asked_in_any_way(workload_change, loss):
    current = bases.scenario(loss=loss)
    changed = changed_workload(current, workload_change)
    solved = optimum(current.workload, loss=loss)
    after = optimum_with_strategies_of(solved, changed, loss)
    result = what_if.accuracy_changes(solved, after, workload_change)
    plans = [each.at(BUDGET) for each in (solved, after)]
    assert after.closure.strategies == solved.closure.strategies  # what is measured stays
    larger = result.workload
    frame = what_if.of_tables(result, BUDGET).set_index("table")
    names = titles(larger, np.arange(len(larger)))
    for position, name in enumerate(names):
        for column, plan in zip(("before", "after"), plans, strict=True):
            error = frame.loc[name, column]
            rows = rows_of_table(larger, position)
            try:
                variances = [
                    plan.query_variance(larger.tables[position], where=row) for row in rows
                ]
            except RpexploreError:
                assert math.isnan(error)
            else:
                assert error == pytest.approx(math.sqrt(np.mean(variances)), rel=1e-6)


def rows_of_table(workload, position):
    """The questions that make the cells of a table: a vector for each of its attributes."""
    attributes = workload.domain.attributes
    queries = {
        attributes[index].name: query_matrix(
            workload.basis_of(position, index), attributes[index]
        ).of(np.eye(attributes[index].size), 0)
        for index in workload.attribute_indices(position)
    }
    for cell in itertools.product(*(range(len(rows)) for rows in queries.values())):
        yield {name: rows[row] for (name, rows), row in zip(queries.items(), cell, strict=True)}


def test_what_is_added_is_asked_as_the_scenario_asks():
    current = bases.scenario()
    added = changed_workload(current, WorkloadChange(ADD, ("age", "income"), 3))
    table = added.position(("age", "sex", "income"))
    assert titles(added, np.array([table])) == ["age (cumulative) × sex × income (ranges)"]
    left = changed_workload(current, WorkloadChange(LEAVE_OUT, ("income",)))
    assert titles(left, np.array([1])) == ["age (cumulative)"]
