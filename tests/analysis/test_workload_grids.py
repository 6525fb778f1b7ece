"""The workload as a grid, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.analysis import grids, workload_grids
from rpexplore.attribute import Attribute, Bins, Categories, Integers
from rpexplore.errors import WorkloadError
from rpexplore.scenario import Scenario, TableSetting, WorkloadRequest
from rpexplore.settings import GroupSetting

DOMAIN = rp.Domain(
    (
        Attribute("age", Integers(0, 99, 5), "Age in years"),
        Attribute("sex", Categories(("F", "M"), ("Female", "Male"))),
        Attribute("income", Bins((0, 500, 1000.5))),
    )
)


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=12))
def test_sizes_are_exact_however_large(sizes):
    domain = rp.Domain.from_sizes({f"a{i}": size for i, size in enumerate(sizes)})
    product = 1
    for size in sizes:
        product *= size
    assert grids.cross_product(domain) == product
    totals = workload_grids.totals(rp.Workload.of(domain, [domain.names, ()]))
    assert (totals.tables, totals.cells, totals.largest_cells) == (2, product + 1, product)


def test_workload_grid_is_cut_and_says_how_many_there_are():
    plan = Scenario(DOMAIN).plan()
    grid, found = workload_grids.workload_grid(plan.workload, plan, most=3)
    assert (len(grid), found) == (3, 7)
    assert grid["table"].tolist() == ["(total)", "age", "sex"]
    grid, found = workload_grids.workload_grid(plan.workload, plan, ["sex"])
    assert (grid["table"].tolist(), found) == (["sex", "age × sex", "sex × income"], 3)
    assert [plan.workload.tables[place] for place in grid.index][1] == ("age", "sex")
    assert grid["standard_error"].tolist() == plan.standard_errors[grid.index].tolist()


def test_typed_importance_and_targets_become_settings():
    scenario = Scenario(DOMAIN).with_settings([TableSetting(("age",), 3.0, 9.0)])
    tables = [("age",), ("sex",)]
    changes = {0: {"target": None}, 1: {"weight": 2.0, "target": 5.0}}
    assert workload_grids.settings_from_grid(scenario, tables, changes) == [
        TableSetting(("age",), 3.0, None),
        TableSetting(("sex",), 2.0, 5.0),
    ]
    emptied = workload_grids.settings_from_grid(scenario, tables, {0: {"weight": None}})
    assert emptied == [TableSetting(("age",), None, 9.0)]


def test_a_grid_without_a_plan_has_no_standard_errors():
    grid, found = workload_grids.workload_grid(Scenario(DOMAIN).workload, None)
    assert found == 7
    assert grid["standard_error"].isna().all()


def test_one_unusable_importance_does_not_hold_up_the_others():
    scenario = Scenario(DOMAIN)
    changes = {0: {"weight": 0.0, "target": 4.0}, 1: {"weight": 2.0}}
    result = workload_grids.scenario_from_grid(scenario, [("age",), ("sex",)], changes)
    assert result.scenario.request.settings == (
        TableSetting(("age",), target=4.0),
        TableSetting(("sex",), 2.0),
    )
    (reason,) = result.refused
    assert "must be a positive number" in reason
    good = workload_grids.scenario_from_grid(scenario, [("age",)], {0: {"weight": 2.0}})
    assert good == workload_grids.EditedScenario(
        scenario.with_settings([TableSetting(("age",), 2.0)])
    )


def test_a_grid_knows_the_tables_of_its_rows():
    workload = Scenario(DOMAIN).workload
    grid, _ = workload_grids.workload_grid(workload, None, ["sex"])
    assert workload_grids.tables_of_rows(workload, grid) == [
        ("sex",),
        ("age", "sex"),
        ("sex", "income"),
    ]


def test_an_emptied_cell_is_what_the_groups_give():
    scenario = Scenario(DOMAIN).with_group(GroupSetting(("sex",), factor=2.0, target=5.0))
    scenario = scenario.with_settings([TableSetting(("sex",), 7.0, 6.0)])
    changes = {0: {"weight": None, "target": None}}
    result = workload_grids.scenario_from_grid(scenario, [("sex",)], changes)
    workload = result.scenario.workload
    assert (workload.weights[2], workload.targets[2]) == (2.0, 5.0)


def test_missing_targets_are_set_and_the_others_kept():
    scenario = Scenario(DOMAIN, WorkloadRequest(order=1)).with_settings(
        [TableSetting(("age",), 3.0, 9.0)]
    )
    targets = workload_grids.with_target_where_missing(scenario, 4.0)
    assert targets.workload.targets.tolist() == [4, 9, 4, 4]
    assert targets.workload.weights.tolist() == [1, 3, 1, 1]
    some = scenario.with_group(GroupSetting((), factor=2.0)).with_group(
        GroupSetting(("sex",), target=6.0)
    )
    targets = workload_grids.with_target_where_missing(some, 4.0)
    assert targets.workload.targets.tolist() == [4, 9, 6, 4]
    assert targets.workload.weights.tolist() == [2, 6, 2, 2]
    assert len(targets.request.groups) == 2
    with pytest.raises(WorkloadError, match="target must be a positive number"):
        workload_grids.with_target_where_missing(some, 0.0)


def test_a_group_is_taken_back():
    scenario = Scenario(DOMAIN).with_group(GroupSetting(("sex",), factor=2.0))
    both = scenario.with_group(GroupSetting(("age",), factor=3.0))
    assert workload_grids.without_group(both, 1) == scenario
    assert workload_grids.without_group(scenario, 0) == Scenario(DOMAIN)


def test_first_list_is_what_is_asked_for_or_each_attribute():
    scenario = Scenario(DOMAIN, WorkloadRequest(order=1))
    assert workload_grids.first_list(scenario, 10) == ((), ("age",), ("sex",), ("income",))
    assert workload_grids.first_list(scenario, 3) == (("age",), ("sex",), ("income",))
