"""Requests: narrowed tables, their text, and their files."""

import json
from statistics import NormalDist

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.domain.levels import Level
from rpexplore.errors import WorkloadError
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.table_settings import GroupSetting, TableSetting
from rpexplore.scenarios.workload_request import TableLine, WorkloadRequest

DOMAIN = rp.Domain.from_sizes({"age": 10, "sex": 2, "region": 5, "income": 4})


@pytest.mark.parametrize(
    ("request_", "tables"),
    [
        (
            WorkloadRequest("up_to", containing=("region",)),
            [("region",), ("age", "region"), ("sex", "region"), ("region", "income")],
        ),
        (WorkloadRequest("up_to", only=("age", "sex")), [(), ("age",), ("sex",), ("age", "sex")]),
        (WorkloadRequest("of_order", most_cells=10), [("sex", "region"), ("sex", "income")]),
        (
            WorkloadRequest(
                "up_to", 3, only=("age", "sex", "income"), containing=("sex",), most_cells=20
            ),
            [("sex",), ("age", "sex"), ("sex", "income")],
        ),
        (
            WorkloadRequest("at_most_cells", cells=8, containing=("sex",), most_cells=1),
            [("sex",), ("sex", "income")],
        ),
        (WorkloadRequest("listed", listed=((),), only=("age",), containing=("sex",)), [()]),
        (WorkloadRequest("up_to", order=9, most_cells=2), [(), ("sex",)]),
        (  # sex is in all lines, and one table
            WorkloadRequest(
                "listed",
                listed=(("sex",), ("age", "sex", "income")),
                more=(
                    TableLine("up_to", order=1, only=("sex", "region")),
                    TableLine("listed", listed=(("sex",),)),
                ),
            ),
            [(), ("sex",), ("region",), ("age", "sex", "income")],
        ),
    ],
)
def test_each_narrowing_leaves_its_tables(request_, tables):
    assert request_.workload(DOMAIN).tables == tables
    assert Scenario.parse(Scenario(DOMAIN, request_).text()).request == request_


def test_narrowing_that_leaves_nothing_is_refused():
    with pytest.raises(WorkloadError, match="not one of the attributes that tables may have"):
        Scenario(DOMAIN).with_request(only=("age",), containing=("sex",))


@pytest.mark.parametrize(("weight", "target"), [(0.0, None), (None, -1.0), (float("inf"), None)])
def test_what_is_no_weight_is_refused_of_tables_kept_aside_too(weight, target):
    """They would be asked for later, and a file with them could not be read."""
    with pytest.raises(WorkloadError, match=r"\(age × sex\) must be a positive number"):
        Scenario(DOMAIN, WorkloadRequest(order=1)).with_settings(
            [TableSetting(("age", "sex"), weight, target)]
        )


@pytest.mark.parametrize(
    "key",
    ["kind", "order", "listed", "only", "containing", "most_cells", "groups", "basis_choices"],
)
def test_files_hold_every_key_and_no_other(key):
    content = json.loads(Scenario(DOMAIN).text())
    del content["tables"][key]
    for tables in (content["tables"], {**Scenario(DOMAIN).to_json()["tables"], "extra": 1}):
        with pytest.raises(WorkloadError, match="not a usable scenario: the tables must hold exac"):
            Scenario.parse(json.dumps({**content, "tables": tables}))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("only", "age"),
        ("containing", [1]),
        ("only", ["height"]),
        ("most_cells", "many"),
        ("most_cells", 0),
        ("groups", [{"containing": "age", "weight": 2, "factor": None, "target": None}]),
        ("groups", [{"containing": ["age"], "weight": -2, "factor": None, "target": None}]),
        ("groups", [{"containing": ["age"]}]),
        ("settings", [{"attributes": ["height"], "weight": 2, "target": None}]),
    ],
)
def test_unusable_values_in_a_file_are_refused(key, value):
    content = json.loads(Scenario(DOMAIN).text())
    content["tables"][key] = value
    with pytest.raises(WorkloadError, match="not a usable scenario"):
        Scenario.parse(json.dumps(content))


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (WorkloadRequest("up_to", 1), "All tables up to 1-way"),
        (WorkloadRequest("of_order", 3), "All 3-way tables"),
        (WorkloadRequest("at_most_cells", cells=1000), "All tables of at most 1,000 cells"),
        (WorkloadRequest("listed", listed=((), ("age",))), "2 listed tables"),
        (
            WorkloadRequest("up_to", 3, only=("age", "sex"), containing=("sex",), most_cells=5000),
            "All tables up to 3-way that have sex, made of age, sex only, with at most 5,000 cells",
        ),
        (WorkloadRequest("at_most_cells", cells=9, most_cells=1), "All tables of at most 9 cells"),
        (
            WorkloadRequest("listed", listed=((),), only=("age",), more=(TableLine(order=1),)),
            "1 listed table; All tables up to 1-way",
        ),
    ],
)
def test_text(request_, text):
    assert request_.text == text


@pytest.mark.parametrize(
    ("request_", "limits", "tables"),
    [
        (WorkloadRequest("up_to", 4), {"most_cells": 20}, 9),
        (WorkloadRequest("up_to", 4, most_cells=5), {"most_cells": 20}, 4),
        (WorkloadRequest("up_to", 4), {"most_order": 1}, 5),
        (WorkloadRequest("of_order", 3), {"most_order": 2}, 6),
        (WorkloadRequest("at_most_cells", cells=1000), {"most_cells": 10}, 7),
        (WorkloadRequest("at_most_cells", cells=20), {"most_order": 1}, 5),
    ],
)
def test_the_same_request_without_the_larger_tables(request_, limits, tables):
    narrowed = request_.within(**limits)
    workload = narrowed.workload(DOMAIN)
    assert len(workload) == tables
    assert all(workload.cells <= limits.get("most_cells", 1e9))
    assert all(workload.orders <= limits.get("most_order", 9))
    before = set(request_.workload(DOMAIN).tables)
    assert set(workload.tables) <= before or request_.kind == "of_order"


def test_a_list_is_not_narrowed():
    line = TableLine("listed", listed=((),))
    assert line.within(most_cells=5) is None
    assert WorkloadRequest(more=(line,)).within(most_cells=5) is None
    narrowed = WorkloadRequest(more=(TableLine(order=3),)).within(most_order=1)
    assert narrowed.lines == (TableLine(order=1), TableLine(order=1))


def test_lines_at_levels_are_united_with_others():
    ages = rp.Attribute("age", rp.Integers(0, 3), levels=(Level("half", ("a", "a", "b", "b")),))
    domain = rp.Domain((ages, rp.Attribute("sex", rp.Categories(("f", "m")))))
    request = WorkloadRequest(order=1).with_lines(
        [TableLine(order=1), TableLine("of_order", only=("sex", "age@half"))]
    )
    tables = request.workload(domain).tables
    assert sorted(tables) == [(), ("age",), ("sex",), ("sex", "age@half")]
    assert Scenario.parse(Scenario(domain, request).text()).request == request


def test_what_most_tables_of_a_plan_have_becomes_one_group():
    domain = rp.Domain.from_sizes({f"a{i}": 2 for i in range(8)})
    scenario = Scenario(domain).with_group(GroupSetting((), weight=3.0, target=7.0))
    scenario = scenario.with_settings([TableSetting(("a1",), 5.0)])
    again = Scenario.of_plan(scenario.table_plan())
    assert again.request == scenario.request
    # Without a target for every table, those that have one are message singly.
    some = Scenario(domain).with_group(GroupSetting(("a1",), target=7.0))
    request = Scenario.of_plan(some.table_plan()).request
    assert request.groups == ()
    assert len(request.settings) == 8


def test_settings_aside_are_counted():
    scenario = Scenario(DOMAIN).with_settings(
        [TableSetting(("age",), 2.0), TableSetting(("age", "sex"), 3.0)]
    )
    assert scenario.settings_aside == 0
    assert scenario.with_request(order=1).settings_aside == 1
    assert scenario.with_request(order=0).settings_aside == 2
    assert scenario.with_request(only=("sex", "region")).settings_aside == 2


# ---- targets in the units people use


def test_targets_reach_the_workload_as_standard_errors_and_required():
    scenario = (
        Scenario(DOMAIN, WorkloadRequest(order=1))
        .with_group(GroupSetting((), target="±50 required"))
        .with_settings([TableSetting(("age",), target="5 % of 1000"), TableSetting((), target=3)])
    )
    workload = scenario.workload
    margin = 50 / NormalDist().inv_cdf(0.975)
    assert workload.targets.tolist() == pytest.approx([3, 50, margin, margin, margin])
    assert workload.required.tolist() == [False, False, True, True, True]
    wanted, which = scenario.request.targets(workload)
    typed = [str(wanted[target]) for target in which.tolist()]
    assert typed == ["3", "5 % of 1000", *["±50 at 95 % required"] * 3]
    assert Scenario.parse(scenario.text()) == scenario


def test_a_request_read_off_a_plan_has_its_required():
    scenario = Scenario(DOMAIN).with_group(GroupSetting(("age",), target="±50 required"))
    request = WorkloadRequest.of(scenario.workload)
    again = request.workload(DOMAIN)
    assert again.required.tolist() == scenario.workload.required.tolist()
    assert np.array_equal(again.targets, scenario.workload.targets, equal_nan=True)


@pytest.mark.parametrize("number", ["3.0", "5", "0.3333333333333333", "1e-07", "12.5", "100000.0"])
def test_files_with_plain_targets_stay_the_same_bytes(number):
    text = Scenario(
        DOMAIN,
        WorkloadRequest(
            groups=(GroupSetting((), target=777.0),),
            settings=(TableSetting(("age",), target=777.0),),
        ),
    ).text()
    assert text.count("777.0") == 2
    text = text.replace("777.0", number)
    scenario = Scenario.parse(text)
    assert scenario.text() == text
    assert scenario.workload.targets.tolist() == [float(number)] * 11


def test_other_targets_are_kept_as_text():
    request = WorkloadRequest(settings=(TableSetting(("age",), target="+-50!"),))
    (setting,) = json.loads(Scenario(DOMAIN, request).text())["tables"]["settings"]
    assert setting["target"] == "±50 at 95 % required"


@pytest.mark.parametrize("target", ["lots", "", True, [5], {"value": 5}, -1, 0, 1e400])
def test_unusable_targets_in_a_file_are_refused(target):
    content = json.loads(Scenario(DOMAIN).text())
    content["tables"]["settings"] = [{"attributes": ["age"], "weight": None, "target": target}]
    text = json.dumps(content).replace("Infinity", "1e400")
    with pytest.raises(
        WorkloadError, match=r"not a usable scenario: The target of \(age\) must be"
    ):
        Scenario.parse(text)
