"""Presets of tables by level: their tables, weights and targets, level by level."""

import pytest

import rpexplore as rp
from rpexplore.errors import WorkloadError
from rpexplore.planning.areas.area_workload import (
    redistricting_tables,
    same_tables,
    shrinking_detail,
    totals,
    up_to,
    with_weight,
)

TREE = rp.AreaTree.from_columns({"region": [*"NNS"], "town": [*"121"], "block": [*"121"]})
TABLES = rp.Workload.of(
    rp.Domain.from_sizes({"a": 2, "b": 3, "c": 4}),
    [(), "a", ("a", "b"), ("a", "b", "c")],
    weights=[1, 2, 3, 4],
    targets=[5, None, 7, 8],
)


def sizes(of_levels):
    return {level: [len(table) for table in some.tables] for level, some in of_levels.items()}


def test_presets_have_the_tables_they_say():
    assert sizes(same_tables(TREE, TABLES)) == {level: [0, 1, 2, 3] for level in TREE.levels}
    assert sizes(totals(TREE, TABLES)) == {level: [0] for level in TREE.levels}
    # From 3 at the top to 1: 3, 2 1/3, 1 2/3 and 1, rounded up.
    assert sizes(shrinking_detail(TREE, TABLES)) == {
        "all": [0, 1, 2, 3],
        "region": [0, 1, 2, 3],
        "town": [0, 1, 2],
        "block": [0, 1],
    }
    assert sizes(shrinking_detail(TREE, up_to(TABLES, 0, "all")))["block"] == [0]
    single = rp.AreaTree.from_columns({"only": ["x"]})
    assert sizes(shrinking_detail(single, TABLES)) == {"only": [0, 1, 2, 3]}


def test_tables_keep_their_weights_and_targets():
    some = up_to(TABLES, 2, "town")
    assert some.weights.tolist() == [1, 2, 3]
    assert some.targets.tolist() == pytest.approx([5, float("nan"), 7], nan_ok=True)
    assert with_weight(some, 0.5).weights.tolist() == [0.5, 1, 1.5]
    assert with_weight(some, 0.5).targets[2] == 7
    with pytest.raises(WorkloadError, match="'town' gets tables of at most 2 attributes"):
        up_to(rp.Workload.of(TABLES.domain, [("a", "b", "c")]), 2, "town")


def test_redistricting_tables_are_those_of_the_law():
    domain = rp.Domain.from_sizes({"age": 2, "ethnicity": 2, "race": 63, "quarters": 8})
    tables = redistricting_tables(domain, "race", "ethnicity", "age")
    assert set(tables.tables) == {
        (), ("race",), ("ethnicity", "race"), ("age", "race"), ("age", "ethnicity", "race"),
    }  # fmt: skip
    with_quarters = redistricting_tables(domain, "race", "ethnicity", "age", "quarters")
    assert set(with_quarters.tables) == {*tables.tables, ("quarters",)}
