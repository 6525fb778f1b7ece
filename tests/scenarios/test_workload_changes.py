"""Wishes: the changed workload, and the scenario that asks for it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.errors import WorkloadError
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.table_settings import GroupSetting, TableSetting
from rpexplore.scenarios.workload_changes import (
    ADD,
    BOOST,
    LEAVE_OUT,
    WorkloadChange,
    changed_scenario,
    changed_workload,
    describe_tables,
    row_indices,
)
from rpexplore.scenarios.workload_request import WorkloadRequest

DOMAIN = rp.Domain.from_sizes({"age": 10, "sex": 2, "region": 5, "income": 7})
REQUEST = WorkloadRequest(
    order=2,
    groups=(GroupSetting(("region",), weight=3.0, target=8.0),),
    settings=(TableSetting(("age", "sex"), weight=5.0),),
)
SCENARIO = Scenario(DOMAIN, REQUEST)


def tables(workload):
    """{attributes: (weight, target)}"""
    values = zip(workload.weights.tolist(), np.nan_to_num(workload.targets).tolist(), strict=True)
    return dict(zip(workload.tables, values, strict=True))


BEFORE = tables(SCENARIO.workload)

CHANGES = [
    WorkloadChange(LEAVE_OUT, ("region",)),
    WorkloadChange(LEAVE_OUT, ("age", "sex")),
    WorkloadChange(LEAVE_OUT, (), 2),
    WorkloadChange(LEAVE_OUT, (), 1),
    WorkloadChange(LEAVE_OUT, ("age",), 2),
    WorkloadChange(LEAVE_OUT, (), 0),
    WorkloadChange(BOOST, ("region",), factor=2.5),
    WorkloadChange(BOOST, (), 1, factor=0.1),
    WorkloadChange(BOOST, ("age", "sex"), 2),
    WorkloadChange(ADD, (), 3),
    WorkloadChange(ADD, ("age",), 3),
    WorkloadChange(ADD, ("age", "sex", "region", "income"), 4),
]


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_the_workload_is_changed_as_wished(change):
    changed = tables(changed_workload(SCENARIO, change))

    def concerned(table):
        return set(change.containing) <= set(table) and change.order in (
            None,
            len(table),
        )

    if change.action == LEAVE_OUT:
        assert changed == {table: v for table, v in BEFORE.items() if not concerned(table)}
    elif change.action == BOOST:
        expected = {
            table: (weight * (change.factor if concerned(table) else 1), target)
            for table, (weight, target) in BEFORE.items()
        }
        assert changed == expected
    else:
        assert {table: changed[table] for table in BEFORE} == BEFORE
        added = changed.keys() - BEFORE.keys()
        assert added == {
            table
            for table in rp.Workload.all_of_order(DOMAIN, change.order).tables
            if concerned(table)
        }
        for table in added:  # what groups ask for holds for tables that come later
            assert changed[table] == ((3.0, 8.0) if "region" in table else (1.0, 0.0))


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_the_scenario_asks_for_the_changed_workload(change):
    workload = changed_workload(SCENARIO, change)
    made = changed_scenario(SCENARIO, change, workload)
    assert tables(made.workload) == tables(workload)
    assert made.budget == SCENARIO.budget


@pytest.mark.parametrize(
    ("change", "kind", "order", "only"),
    [
        (WorkloadChange(LEAVE_OUT, ("region",)), "up_to", 2, ("age", "sex", "income")),
        (WorkloadChange(LEAVE_OUT, (), 2), "up_to", 1, ()),
        (WorkloadChange(ADD, (), 3), "up_to", 3, ()),
        (WorkloadChange(LEAVE_OUT, (), 1), "listed", 2, ()),
        (WorkloadChange(ADD, ("age",), 3), "listed", 2, ()),
    ],
    ids=str,
)
def test_the_request_is_as_simple_as_it_can_be(change, kind, order, only):
    request = changed_scenario(SCENARIO, change, changed_workload(SCENARIO, change)).request
    assert (request.kind, request.order, request.only) == (kind, order, only)


def test_tables_of_one_order_grow_into_all_up_to_it():
    scenario = Scenario(DOMAIN, WorkloadRequest("of_order", order=2))
    change = WorkloadChange(LEAVE_OUT, ("sex",))
    request = changed_scenario(scenario, change, changed_workload(scenario, change)).request
    assert (request.kind, request.only) == ("of_order", ("age", "region", "income"))
    change = WorkloadChange(ADD, (), 1)  # the total is missing, so that only a list will do
    made = changed_scenario(scenario, change, changed_workload(scenario, change))
    assert made.request.kind == "listed"
    assert len(made.workload) == 10


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (WorkloadChange(LEAVE_OUT, ("age", "sex", "region")), "no such table"),
        (WorkloadChange(LEAVE_OUT), "leave no table"),
        (WorkloadChange(BOOST, (), 3), "no such table"),
        (WorkloadChange(ADD, (), 2), "all of these tables already"),
        (WorkloadChange(ADD, ("age", "sex"), 2), "all of these tables already"),
        (WorkloadChange(ADD, ("age",)), "how many attributes"),
        (WorkloadChange(ADD, ("age", "sex"), 1), "at most 1 in all"),
        (WorkloadChange(ADD, (), 9), "Tables of 9 attributes"),
        (WorkloadChange(BOOST, ("age",), factor=-1), "positive number"),
    ],
    ids=str,
)
def test_wishes_that_mean_nothing_are_refused(change, message):
    with pytest.raises(WorkloadError, match=message):
        changed_workload(SCENARIO, change)


def test_weight_means_nothing_where_the_objective_compares_with_targets():
    scenario = SCENARIO.replaced(loss=rp.MaxVariance("target"))
    with pytest.raises(WorkloadError, match="weight has no effect"):
        changed_workload(scenario, WorkloadChange(BOOST, ("age",)))


def test_long_lists_are_refused():
    domain = rp.Domain.from_sizes({f"a{i}": 2 for i in range(30)})
    scenario = Scenario(domain, WorkloadRequest(order=3))
    for change in (
        WorkloadChange(LEAVE_OUT, (), 1),
        WorkloadChange(BOOST, (), 3),
        WorkloadChange(LEAVE_OUT, ("a1", "a2")),
    ):
        workload = changed_workload(scenario, change)
        with pytest.raises(WorkloadError, match="one by one"):
            changed_scenario(scenario, change, workload)
    for change in (
        WorkloadChange(LEAVE_OUT, ("a1",)),
        WorkloadChange(BOOST, ("a1",)),
        WorkloadChange(BOOST, (), 1),
    ):
        workload = changed_workload(scenario, change)
        assert tables(changed_scenario(scenario, change, workload).workload) == tables(workload)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (WorkloadChange(LEAVE_OUT, ("region",)), "the 4 tables with region"),
        (WorkloadChange(LEAVE_OUT, ("age", "sex")), "the table age × sex"),
        (WorkloadChange(LEAVE_OUT, ("age", "sex"), 2), "the table age × sex"),
        (WorkloadChange(LEAVE_OUT, (), 2), "the 6 tables of 2 attributes"),
        (WorkloadChange(LEAVE_OUT, (), 1), "the 4 tables of 1 attribute"),
        (WorkloadChange(LEAVE_OUT, ("age",), 2), "the 3 tables of 2 attributes with age"),
        (WorkloadChange(LEAVE_OUT, (), 0), "the total"),
        (WorkloadChange(BOOST), "the 11 tables"),
    ],
    ids=str,
)
def test_tables_of_a_change_are_described(change, text):
    assert describe_tables(SCENARIO.workload, change) == text


sets = st.lists(
    st.sets(st.integers(0, 6), max_size=4), min_size=1, max_size=12, unique_by=frozenset
)


def as_rows(chosen):
    width = max(len(each) for each in chosen)
    return np.array([[*sorted(each), *[-1] * (width - len(each))] for each in chosen]).reshape(
        len(chosen), width
    )


@given(sets, sets)
def test_indices_of_rows(rows, among):
    expected = [among.index(each) if each in among else -1 for each in rows]
    assert row_indices(as_rows(rows), as_rows(among)).tolist() == expected
