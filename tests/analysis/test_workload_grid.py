"""The workload as a grid, and back."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.analysis import measures, workload_grid
from rpexplore.domain.attribute import Attribute
from rpexplore.domain.categories import Categories
from rpexplore.domain.ordered_values import Bins, Integers
from rpexplore.errors import WorkloadError
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.table_settings import GroupSetting, TableSetting
from rpexplore.scenarios.workload_request import WorkloadRequest

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
    totals = measures.totals(rp.Workload.of(domain, [domain.names, ()]))
    assert (totals.tables, totals.cells, totals.largest_cells) == (2, product + 1, product)


def test_workload_grid_is_cut_and_says_how_many_there_are():
    scenario, plan = Scenario(DOMAIN), Scenario(DOMAIN).table_plan()
    grid, count = workload_grid.workload_grid(scenario, plan, most=3)
    assert (len(grid), count) == (3, 7)
    assert grid["table"].tolist() == ["(total)", "age", "sex"]
    grid, count = workload_grid.workload_grid(scenario, plan, ["sex"])
    assert (grid["table"].tolist(), count) == (["sex", "age × sex", "sex × income"], 3)
    assert [plan.workload.tables[place] for place in grid.index][1] == ("age", "sex")
    assert grid["error"].tolist() == plan.standard_errors[grid.index].tolist()


def test_typed_weight_and_targets_become_settings():
    scenario = Scenario(DOMAIN).with_settings([TableSetting(("age",), 3.0, 9.0)])
    tables = [("age",), ("sex",)]
    changes = {0: {"target": None}, 1: {"weight": 2.0, "target": "5"}}
    assert workload_grid.settings_from_grid(scenario, tables, changes) == [
        TableSetting(("age",), 3.0, None),
        TableSetting(("sex",), 2.0, 5.0),
    ]
    emptied = workload_grid.settings_from_grid(scenario, tables, {0: {"weight": None}})
    assert emptied == [TableSetting(("age",), None, 9.0)]


def test_a_grid_without_a_plan_has_no_standard_errors():
    grid, count = workload_grid.workload_grid(Scenario(DOMAIN), None)
    assert count == 7
    assert grid["error"].isna().all()


def test_a_target_is_out_of_reach_where_the_whole_budget_for_its_table_would_not_meet_it():
    # ρ = 0.1 for one table: σ = 1/√0.2 = 2.236 in each of its cells.
    settings = [TableSetting(("age",), target=2.2), TableSetting(("sex",), target=2.3)]
    scenario = Scenario(DOMAIN, budget=rp.Budget(rho="0.1")).with_settings(settings)
    grid, _ = workload_grid.workload_grid(scenario, scenario.table_plan())
    age, sex = grid["outcome"].iloc[[1, 2]]
    assert re.fullmatch(r"short by [\d.]+, out of reach", age)
    assert re.fullmatch(r"short by [\d.]+", sex)
    grid, _ = workload_grid.workload_grid(scenario, None)
    assert grid["outcome"].tolist()[:3] == ["", "out of reach", ""]
    # Of other bases it is not known.
    other = scenario.with_basis("age", rp.Prefix())
    assert workload_grid.workload_grid(other, None)[0]["outcome"].tolist()[1] == ""
    assert workload_grid.tables_set(scenario.workload) == 2


def test_one_unusable_weight_does_not_hold_up_the_others():
    scenario = Scenario(DOMAIN)
    changes = {0: {"weight": 0.0, "target": "4"}, 1: {"weight": 2.0}}
    result, refused = workload_grid.scenario_from_grid(scenario, [("age",), ("sex",)], changes)
    assert result.request.settings == (
        TableSetting(("age",), target=4.0),
        TableSetting(("sex",), 2.0),
    )
    (reason,) = refused
    assert "must be a positive number" in reason
    good = workload_grid.scenario_from_grid(scenario, [("age",)], {0: {"weight": 2.0}})
    assert good == (scenario.with_settings([TableSetting(("age",), 2.0)]), [])


def test_a_grid_knows_the_tables_of_its_rows():
    scenario = Scenario(DOMAIN)
    grid, _ = workload_grid.workload_grid(scenario, None, ["sex"])
    assert workload_grid.tables_of_rows(scenario.workload, grid) == [
        ("sex",),
        ("age", "sex"),
        ("sex", "income"),
    ]


def test_an_emptied_cell_is_what_the_groups_give():
    scenario = Scenario(DOMAIN).with_group(GroupSetting(("sex",), factor=2.0, target=5.0))
    scenario = scenario.with_settings([TableSetting(("sex",), 7.0, 6.0)])
    changes = {0: {"weight": None, "target": None}}
    result, _ = workload_grid.scenario_from_grid(scenario, [("sex",)], changes)
    workload = result.workload
    assert (workload.weights[2], workload.targets[2]) == (2.0, 5.0)


def test_missing_targets_are_set_and_the_others_kept():
    scenario = Scenario(DOMAIN, WorkloadRequest(order=1)).with_settings(
        [TableSetting(("age",), 3.0, 9.0)]
    )
    targets = workload_grid.with_target_where_missing(scenario, 4.0)
    assert targets.workload.targets.tolist() == [4, 9, 4, 4]
    assert targets.workload.weights.tolist() == [1, 3, 1, 1]
    some = scenario.with_group(GroupSetting((), factor=2.0)).with_group(
        GroupSetting(("sex",), target=6.0)
    )
    targets = workload_grid.with_target_where_missing(some, 4.0)
    assert targets.workload.targets.tolist() == [4, 9, 6, 4]
    assert targets.workload.weights.tolist() == [2, 6, 2, 2]
    assert len(targets.request.groups) == 2
    with pytest.raises(WorkloadError, match="target must be a positive number"):
        workload_grid.with_target_where_missing(some, 0.0)


def test_a_group_is_taken_back():
    scenario = Scenario(DOMAIN).with_group(GroupSetting(("sex",), factor=2.0))
    both = scenario.with_group(GroupSetting(("age",), factor=3.0))
    assert workload_grid.without_group(both, 1) == scenario
    assert workload_grid.without_group(scenario, 0) == Scenario(DOMAIN)


def test_first_list_is_what_is_asked_for_or_each_attribute():
    scenario = Scenario(DOMAIN, WorkloadRequest(order=1))
    assert workload_grid.first_list(scenario, 10) == ((), ("age",), ("sex",), ("income",))
    assert workload_grid.first_list(scenario, 3) == (("age",), ("sex",), ("income",))


def edited(scenario, change, table=("age",)):
    return workload_grid.scenario_from_grid(scenario, [table], {0: change})


def target_of(scenario, table=("age",)):
    settings = {each.attributes: each.target for each in scenario.request.settings}
    return settings.get(table)


def test_a_grid_shows_targets_as_typed_and_whether_they_are_met():
    scenario = Scenario(DOMAIN, WorkloadRequest(order=1)).with_settings(
        [
            TableSetting((), target="±1 000 required"),
            TableSetting(("age",), target="0.50"),
            TableSetting(("sex",), target="1000 % of 1000"),
        ]
    )
    grid, _ = workload_grid.workload_grid(scenario, scenario.table_plan())
    assert grid["target"].tolist()[:3] == ["±1000 at 95 %", "σ = 0.50", "1000 % of 1000"]
    assert grid["target"].isna().tolist() == [False, False, False, True]
    assert grid["required"].tolist() == [True, False, False, False]
    total, age, sex, income = grid["outcome"]
    assert total.startswith("met: ±")
    assert age.startswith("short by ")
    assert age.endswith("out of reach")  # 1/√0.2 = 2.2 is the least there can be
    assert sex.startswith("met: ")
    assert sex.endswith(" %")
    assert income == ""
    unplanned, _ = workload_grid.workload_grid(scenario, None)
    assert unplanned["target"].equals(grid["target"])
    assert unplanned["outcome"].tolist() == ["", "out of reach", "", ""]


def test_a_must_is_marked_and_unmarked():
    scenario = Scenario(DOMAIN).with_group(GroupSetting((), target="±50"))
    marked, _ = edited(scenario, {"required": True})
    assert target_of(marked) == rp.Target.parse("±50 required")
    assert edited(marked, {"required": False}) == (scenario, [])
    # Typed anew it stays one, unless the mark is taken away as well; both are typed over and over.
    anew = edited(marked, {"target": "30"})
    assert target_of(anew[0]) == rp.Target.parse("30 required")
    assert edited(anew[0], {"target": "30"}) == anew
    both = edited(marked, {"target": "30", "required": False})
    assert target_of(both[0]) == rp.Target.parse("30")
    assert edited(both[0], {"required": False, "target": "30"}) == both
    assert target_of(edited(scenario, {"target": "! 30"})[0]) == rp.Target.parse("30 required")


def test_a_group_of_required_lets_one_table_off():
    scenario = Scenario(DOMAIN).with_group(GroupSetting((), target="30 required"))
    off, _ = edited(scenario, {"required": False})
    assert off.workload.required.tolist() == [True, False, *[True] * 5]
    assert edited(off, {"target": None}) == (scenario, [])


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"target": "lots", "weight": 2.0}, r"The target of \(age\) must be written like 20"),
        ({"target": "5 %", "weight": 2.0}, r"\(age\) must be written like .*5 % of 1000"),
        ({"target": "-1", "weight": 2.0}, r"\(age\) must be a positive number, got -1"),
        (
            {"required": True, "weight": 2.0},
            "Table age must meet its target but has none; type one",
        ),
    ],
)
def test_an_unusable_target_is_refused_and_nothing_else(change, text):
    scenario, (reason,) = edited(Scenario(DOMAIN), change)
    assert re.search(text, reason)
    assert scenario.request.settings == (TableSetting(("age",), 2.0),)
