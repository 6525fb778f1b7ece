"""Records of a database, counted by the areas that they lie in as those of a file are."""

import numpy as np
import pyarrow as pa
import pytest

import rpexplore as rp
from rpexplore.data.area_coding import AreaCut, AreaCuts
from rpexplore.data.databases.connections import Connection
from rpexplore.data.databases.source import DatabaseSource
from rpexplore.data.frames import FrameSource
from rpexplore.domain.area_range import AreaRange
from tests.data.databases.servers import in_duckdb, in_spark

DOMAIN = rp.Domain.from_sizes({"sex": 2, "age": 3})
TREE = rp.AreaTree.from_columns({"region": ["N", "N", "S"], "town": ["1", "2", None]})
CUTS = AreaCuts(TREE, tuple(AreaCut(AreaRange.within(TREE, 0, 0, 1, last)) for last in range(3)))
TABLES = [(0, 1, 4), (0, 3), (2,)]


def people(count: int) -> pa.Table:
    generator = np.random.default_rng(3)
    areas = [("N", 1), ("N", 2), ("S", None)]
    rows = [areas[k] for k in generator.integers(0, 3, count).tolist()]
    return pa.table(
        {
            "region": [region for region, _ in rows],
            "town": [town for _, town in rows],
            "sex": generator.integers(0, 2, count),
            "age": generator.integers(0, 3, count),
            "who": generator.integers(0, 40, count),
            "day": generator.integers(0, 5, count),
        }
    )


@pytest.fixture(params=["duckdb", "spark"])
def store(request, tmp_path):
    """Stores a table in an engine: called with the table, it gives the source."""
    if request.param == "duckdb":
        return lambda records: in_duckdb(records, tmp_path / "people.duckdb")
    spark = request.getfixturevalue("spark")
    return lambda records: in_spark(spark, records, tmp_path)


def test_counts_are_those_of_the_same_records_in_memory(store):
    records = people(300)
    counts = store(records).count(DOMAIN, TABLES, areas=CUTS)
    same = FrameSource(records, name="people").count(DOMAIN, TABLES, areas=CUTS)
    assert counts.n_records == same.n_records == 300
    for table in TABLES:
        np.testing.assert_array_equal(counts.counts(table), same.counts(table))


def test_ties_between_records_of_a_person_are_broken_by_areas_too(store):
    records = people(300)
    rule = rp.PersonRule("who", most=1, excess="keep first", order="day")
    counts = []
    for order in (slice(None), slice(None, None, -1)):
        table = records.take(pa.array(np.arange(300)[order]))
        counted = store(table).count(DOMAIN, TABLES, areas=CUTS, person_rule=rule)
        counts.append(counted.counts((0, 1, 4)))
    assert counts[0].sum() == len(set(records["who"].to_pylist()))
    np.testing.assert_array_equal(*counts)


@pytest.mark.parametrize(
    ("region", "what"), [("X", "is not in the tree"), (None, "is missing within an area")]
)
def test_a_record_outside_of_the_tree_is_refused(region, what, store):
    records = people(5).set_column(0, "region", [["N", "N", "N", "N", region]])
    with pytest.raises(rp.errors.DataError, match=f"in the column 'region' {what}"):
        store(records.set_column(1, "town", [["1"] * 5])).count(DOMAIN, TABLES, areas=CUTS)


def test_other_engines_count_none_in_areas():
    elsewhere = DatabaseSource(Connection("SURVEY", "postgresql://nowhere/survey"), "people")
    with pytest.raises(rp.errors.DataError, match="none are counted in areas; export"):
        elsewhere.count(DOMAIN, TABLES, areas=CUTS)
