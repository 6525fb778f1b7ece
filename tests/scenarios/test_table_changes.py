"""Changes of one table: the levels that it could have, the tables and the scenario after it."""

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.domain.levels import Level
from rpexplore.errors import WorkloadError
from rpexplore.scenarios.scenario import Scenario
from rpexplore.scenarios.table_changes import (
    BANDS,
    LEFT_OUT,
    LEVEL,
    MERGED,
    WEIGHT,
    TableChange,
    changed_by,
    changed_tables,
    coarser_levels,
    rows_after,
)
from rpexplore.scenarios.table_settings import TableSetting
from rpexplore.workload.targets import Target

AGE = rp.Attribute(
    "age", rp.Integers(0, 99), levels=(Level("adult", ("-17",) * 18 + ("18+",) * 82),)
)
COUNTRY = rp.Attribute("country", rp.Categories(("A", "B", "C", "D", "E")))
DOMAIN = rp.Domain((AGE, COUNTRY, rp.Attribute("sex", rp.Categories(("f", "m")))))


def groups_by_kind(attribute, current=None, shares=None):
    current = np.arange(attribute.size) if current is None else current
    found = coarser_levels(attribute, current, shares)
    return {
        kind: {level.name: level.groups for other, level in found if other == kind}
        for kind in (LEVEL, BANDS, MERGED)
    }


def test_bands_begin_at_multiples_of_their_width():
    bands = groups_by_kind(AGE)[BANDS]
    assert bands["bands of 5"] == tuple(
        f"{age // 5 * 5} to {age // 5 * 5 + 4}" for age in range(100)
    )
    assert {"bands of 2", "bands of 10", "bands of 25", "bands of 50"} <= bands.keys()


def test_a_level_is_offered_if_whole_cells_of_now_lie_in_its_groups():
    """18 years is no multiple of 5, so that bands of 5 cannot become adults and others."""
    assert groups_by_kind(AGE)[LEVEL].keys() == {"adult"}
    of_five = groups_by_kind(AGE, np.arange(100) // 5)
    assert of_five[LEVEL] == {}
    assert all(int(name.rpartition(" ")[2]) % 5 == 0 for name in of_five[BANDS])
    assert "bands of 5" not in of_five[BANDS]


def test_months_become_quarters_and_years():
    months = rp.Attribute("month", rp.Dates("2020-01", "2023-12", "month"))
    assert groups_by_kind(months)[BANDS].keys() == {"by quarter", "by year"}
    assert len(set(groups_by_kind(months)[BANDS]["by year"])) == 4


def test_rare_values_are_merged_where_their_shares_are_public():
    """0.6 + 1.4 = 2 per cent; with 8 it is 10 per cent, and with 30 more than a fifth."""
    shares = np.array([0.6, 0.006, 0.3, 0.014, 0.08])
    merged = groups_by_kind(COUNTRY, shares=shares)[MERGED]
    other = "other values"
    assert merged == {
        "3 most common": ("A", other, "C", other, "E"),
        "2 most common": ("A", other, "C", other, other),
    }
    assert groups_by_kind(COUNTRY)[MERGED] == {}


def tables_of_two_levels():
    workload = rp.Workload.of(DOMAIN, ["age", ("age", "country"), ("sex", "age@adult")])
    return workload.with_weights({("age", "country"): 3}).with_targets(
        {"age": 5, ("age", "country"): 9}
    )


def test_a_coarser_table_has_the_weight_and_target_of_the_one_before():
    before = tables_of_two_levels()
    level = Level("decade", tuple(str(age // 10) for age in range(100)))
    replacement = ("country", "age@decade")
    change = TableChange(BANDS, "", ("age", "country"), replacement, (("age", level),))
    after = changed_tables(before, change)
    assert after.domain.names[3:] == ("age@adult", "age@decade")
    assert sorted(after.tables) == sorted([("age",), replacement, ("sex", "age@adult")])
    row = after.position(replacement)
    assert (after.weights[row], after.targets[row], after.cells[row]) == (3, 9, 50)
    assert after.targets[after.position("age")] == 5
    rows = rows_after(before, after)
    assert rows[before.position(("age", "country"))] == -1
    for table in (("age",), ("sex", "age@adult")):
        assert rows[before.position(table)] == after.position(table)


def test_the_only_table_can_be_replaced():
    only = rp.Workload.of(DOMAIN, [("age", "sex")])
    change = TableChange(LEVEL, "", ("age", "sex"), ("sex", "age@adult"))
    assert changed_tables(only, change).tables == [("sex", "age@adult")]


def test_a_scenario_asks_for_the_changed_tables_and_keeps_all_else():
    level = Level("decade", tuple(str(age // 10) for age in range(100)))
    scenario = Scenario(DOMAIN).with_settings(
        [
            TableSetting(("age", "country"), weight=3.0, target=Target(9.0)),
            TableSetting(("sex",), weight=2.0),
        ]
    )
    replacement = ("country", "age@decade")
    change = TableChange(BANDS, "", ("age", "country"), replacement, (("age", level),))
    changed = changed_by(scenario, change)
    assert changed.workload.has_tables_of(changed_tables(scenario.workload, change))
    row = changed.workload.position(replacement)
    assert (changed.workload.weights[row], changed.workload.targets[row]) == (3, 9)
    assert changed.workload.weights[changed.workload.position("sex")] == 2
    assert Scenario.parse(changed.text()).workload.has_tables_of(changed.workload)

    heavier = changed_by(scenario, TableChange(WEIGHT, "", ("age", "country"), weight=12.0))
    row = heavier.workload.position(("age", "country"))
    assert (heavier.workload.weights[row], heavier.workload.targets[row]) == (12, 9)
    left = changed_by(scenario, TableChange(LEFT_OUT, "", ("age", "country")))
    assert left.workload.find((0, 1)) is None
    assert len(left.workload) == len(scenario.workload) - 1
    many = Scenario(rp.Domain.from_sizes({f"a{number}": 2 for number in range(70)}))
    with pytest.raises(WorkloadError, match="one by one"):
        changed_by(many, TableChange(LEFT_OUT, "", ("a0", "a1")))
