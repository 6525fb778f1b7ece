"""Settings of single tables and of groups, against what they must give every table."""

from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.errors import WorkloadError
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.table_settings import GroupSetting, TableSetting
from rpexplore.scenarios.workload_request import WorkloadRequest

DOMAIN = rp.Domain.from_sizes({"a": 2, "b": 3, "c": 4})
TABLES = list(chain.from_iterable(combinations(DOMAIN.names, k) for k in range(3)))
TABLE = st.sampled_from(TABLES)
NUMBER = st.sampled_from([0.5, 1.0, 2.0, 4.0])
TARGET = NUMBER | st.sampled_from(
    ["±50 at 99 %", "5 % of 1000", "2 required", "±50 required", "0.10"]
)
CHANGES = st.one_of(
    st.builds(GroupSetting, TABLE, weight=NUMBER, target=st.none() | TARGET),
    st.builds(GroupSetting, TABLE, factor=NUMBER, target=st.none() | TARGET),
    st.builds(GroupSetting, TABLE, target=TARGET),
    st.builds(TableSetting, TABLE, NUMBER, st.none() | TARGET),
)


def values(scenario):
    """The weight of each table and its target: standard error and whether it is required."""
    workload = scenario.workload
    pairs = zip(workload.targets.tolist(), workload.required.tolist(), strict=True)
    targets = [None if error != error else (error, must) for error, must in pairs]
    pairs = zip(workload.weights.tolist(), targets, strict=True)
    return dict(zip(workload.tables, pairs, strict=True))


def numbers(target):
    return None if target is None else (target.standard_error, target.required)


@given(st.lists(CHANGES, max_size=8))
def test_each_change_does_what_it_says_to_every_table(changes):
    """Numbers are powers of two, so that products are exact in any order."""
    scenario = Scenario(DOMAIN)
    expected = dict.fromkeys(TABLES, (1.0, None))
    for change in changes:
        if isinstance(change, TableSetting):
            # A single target that is not given leaves what the groups give.
            before = scenario
            scenario = scenario.with_settings([change])
            weight, target = values(scenario)[change.attributes]
            assert weight == change.weight
            assert change.target is None or target == numbers(change.target)
            expected[change.attributes] = (weight, target)
            assert {**values(before), change.attributes: (weight, target)} == values(scenario)
            continue
        scenario = scenario.with_group(change)
        for table in TABLES:
            if set(change.containing) <= set(table):
                weight, target = expected[table]
                weight = (weight if change.weight is None else change.weight) * (change.factor or 1)
                expected[table] = weight, numbers(change.target) or target
        assert values(scenario) == expected
    again = Scenario.parse(scenario.text())
    assert (again, values(again)) == (scenario, values(scenario))


def test_a_group_follows_a_larger_workload():
    scenario = Scenario(DOMAIN).with_request(order=1).with_group(GroupSetting(("b",), factor=2.0))
    assert values(scenario)["b",] == (2.0, None)
    assert values(scenario.with_request(order=3))["a", "b", "c"] == (2.0, None)


def test_groups_are_merged_and_do_not_pile_up():
    scenario = Scenario(DOMAIN)
    for factor in (2.0, 3.0):
        scenario = scenario.with_group(GroupSetting(("b",), factor=factor))
    assert scenario.request.groups == (GroupSetting(("b",), factor=6.0),)
    scenario = scenario.with_group(GroupSetting(("b",), target=5.0))
    assert scenario.request.groups == (GroupSetting(("b",), factor=6.0, target=5.0),)
    halved = scenario.with_group(GroupSetting(("b",), factor=1 / 6))
    assert halved.request.groups == (GroupSetting(("b",), target=5.0),)
    # What is set for all tables leaves nothing of what was set for some.
    everything = scenario.with_group(GroupSetting((), weight=1.5, target=4.0))
    assert everything.request.groups == (GroupSetting((), weight=1.5, target=4.0),)


def test_names_of_a_group_may_stand_in_any_order():
    scenario = Scenario(DOMAIN).with_group(GroupSetting(("c", "a"), factor=2.0))
    assert scenario.request.groups[0].containing == ("a", "c")


def test_a_single_setting_that_its_groups_give_anyway_is_not_kept():
    scenario = Scenario(DOMAIN).with_group(GroupSetting((), factor=2.0))
    assert scenario.with_settings([TableSetting(("a",), 2.0)]) == scenario
    one = scenario.with_settings([TableSetting(("a",), 1.0)])
    assert values(one)["a",] == (1.0, None)
    assert one.with_settings([TableSetting(("a",))]) == scenario


@pytest.mark.parametrize("field", ["weight", "factor", "target"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("inf"), float("nan")])
def test_numbers_that_are_not_positive_are_refused(field, value):
    with pytest.raises(WorkloadError, match="must be a positive number"):
        GroupSetting((), **{field: value})


def test_weight_is_set_or_multiplied_not_both():
    with pytest.raises(WorkloadError, match="not both"):
        GroupSetting((), weight=1.0, factor=2.0)


def test_descriptions():
    assert GroupSetting(("region",), factor=2.0).text == "All tables with region: weight × 2"
    assert GroupSetting((), weight=0.5, target=1234.5).text == (
        "All tables: weight 0.5, target σ = 1,234.5"
    )
    assert GroupSetting(("a", "b"), target=3).text == "All tables with a and b: target σ = 3"
    assert GroupSetting((), target="±1 000 required").text == (
        "All tables: target ±1,000 at 95 %, required"
    )


def test_a_target_that_is_none_is_refused_with_the_name_of_its_table():
    with pytest.raises(
        WorkloadError, match=r"The target of \(a × b\) must be written like .*'much'"
    ):
        TableSetting(("a", "b"), target="much")
    with pytest.raises(WorkloadError, match=r"The target of \(total\) must be a positive number"):
        TableSetting((), target=0)


def test_required_of_a_plan_come_back_as_settings():
    domain = rp.Domain.from_sizes({f"a{i}": 2 for i in range(8)})
    # Most tables must; one of the same standard error need not, and one is left a number.
    scenario = Scenario(domain).with_group(GroupSetting((), target="7 required"))
    scenario = scenario.with_settings([TableSetting((), target=8), TableSetting(("a1",), target=7)])
    again = WorkloadRequest.of(scenario.workload)
    assert again == scenario.request
    few = rp.Workload.of(DOMAIN, TABLES, targets=[rp.Target(3, required=True), *[None] * 6])
    assert WorkloadRequest.of(few).settings == (TableSetting((), target="3 required"),)
