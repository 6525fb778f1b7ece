"""Records counted by the areas that they lie in."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.data.areas import AreaCut, AreaCuts, _ranks
from rpexplore.data.frames import FrameSource
from rpexplore.domain.area_tree import AreaRange
from tests.support.area_trees import area_trees

SEXES = rp.Domain.from_sizes({"sex": 2})
TOWNS = rp.AreaTree.from_columns({"region": ["N", "N", "S"], "town": ["1", "2", None]})


def counted(tree, records, *cuts):
    source = FrameSource(records, name="records")
    tables = [(0, 1 + number) for number in range(len(cuts))]
    counts = source.count(SEXES, tables, areas=AreaCuts(tree, cuts))
    return [counts.counts(table) for table in tables]


@given(area_trees(), st.data())
def test_each_record_is_counted_in_the_lowest_area_of_a_cut_that_it_lies_in(tree, data):
    undivided = np.flatnonzero(tree.n_parts == 0).tolist()
    record = st.tuples(st.sampled_from(undivided), st.integers(0, 1))
    records = data.draw(st.lists(record, min_size=1, max_size=30))
    rows = []
    for area, sex in records:
        path = (*tree.path(area), None, None, None)
        rows.append(dict(zip(tree.levels[1:], path, strict=False)) | {"sex": sex})
    level = data.draw(st.integers(0, len(tree.levels) - 1))
    above = tree.level_slice(level)
    start, stop = sorted(data.draw(st.tuples(*2 * [st.integers(above.start, above.stop)])))
    last = data.draw(st.integers(level, len(tree.levels) - 1))
    some = AreaRange.within(tree, level, start, stop, last)

    (counts,) = counted(tree, pd.DataFrame(rows), AreaCut(some))

    expected, numbers = np.zeros_like(counts), some.areas.tolist()
    for area, sex in records:
        while area >= 0 and area not in numbers:
            area = int(tree.parents[area])
        expected[sex, numbers.index(area) if area >= 0 else -1] += 1
    np.testing.assert_array_equal(counts, expected)


TEXTS = st.text(st.sampled_from("019aZé\U0001f600-"), max_size=3)


@given(st.sets(TEXTS.filter(bool), min_size=1), st.lists(st.none() | TEXTS))
def test_codes_are_found_among_those_between_the_least_and_the_largest(codes, texts):
    """As among all: of a batch whose records follow one another, a table of all is not made."""
    every, column = pa.array(sorted(codes)), pa.array(texts, pa.string())
    ranks = _ranks(column, every, are_ascending=True)
    known = {code: rank for rank, code in enumerate(every.to_pylist())}
    assert ranks.tolist() == [known.get(text, -2) if text else -1 for text in texts]


def test_one_column_is_enough_where_its_codes_differ():
    tree = rp.AreaTree.from_columns({"region": ["N", "N", "S"], "town": ["N1", "N2", "S1"]})
    whole = AreaCut(AreaRange.within(tree, 0, 0, 1, 2))
    records = pd.DataFrame({"town": ["S1", "N2", "S1"], "sex": [0, 1, 1]})

    (counts,) = counted(tree, records, whole)

    by_codes = dict(zip(tree.codes.to_pylist(), counts.T.tolist(), strict=False))
    assert (by_codes["N1"], by_codes["N2"], by_codes["S1"]) == ([0, 0], [0, 1], [1, 1])


@pytest.mark.parametrize(("town", "what"), [("2", "is not in the tree"), (None, "is missing")])
def test_a_record_outside_of_the_only_area_is_refused_by_its_code_alone(town, what):
    tree = rp.AreaTree.from_columns({"country": ["A"], "region": ["N"], "town": ["1"]})
    records = pd.DataFrame({"town": ["1", town], "sex": [0, 1]})
    with pytest.raises(rp.errors.DataError, match=f"column 'town' {what}"):
        counted(tree, records, AreaCut(AreaRange.within(tree, 0, 0, 1, 2)))


@pytest.mark.parametrize(
    ("region", "town", "column", "what"),
    [
        ("N", "3", "town", "is not in the tree"),
        ("W", "1", "region", "is not in the tree"),
        ("S", "1", "town", "is not in the tree"),
        (None, "1", "region", "is missing"),
        ("N", "", "town", "is missing"),
    ],
)
def test_a_record_outside_of_the_tree_is_refused(region, town, column, what):
    records = pd.DataFrame({"region": ["N", region], "town": ["1", town], "sex": [0, 1]})
    with pytest.raises(
        rp.errors.DataError, match=f"column '{column}' {what}.*add the area"
    ) as told:
        counted(TOWNS, records, AreaCut(AreaRange.within(TOWNS, 0, 0, 1, 2)))
    assert "'3'" not in str(told.value)


def test_records_need_a_column_for_each_level_below_the_top():
    tree = rp.AreaTree.from_columns({"region": ["N", "S"], "town": ["1", "1"]})
    records = pd.DataFrame({"town": ["1"], "sex": [0]})
    with pytest.raises(rp.errors.DataError, match="no column 'region'"):
        counted(tree, records, AreaCut(AreaRange.within(tree, 0, 0, 1, 2)))


MOVED = rp.AreaTree.from_columns(
    {"region": ["N", "N", "S", "E"], "town": ["N1", "N2", "S1", None]}
).with_recodes({"town": {"old": "S1"}, "region": {"East": "E", "North": "N"}})


@pytest.mark.parametrize(
    ("region", "town", "path"),
    [
        ("S", "old", ("S", "S1")),
        ("N", "old", ("S", "S1")),  # the town came to another region
        ("West", "old", ("S", "S1")),  # as did its region to another code
        ("North", "N2", ("N", "N2")),
        ("East", None, ("E",)),
    ],
)
def test_a_recode_tells_where_a_record_lies_whatever_is_above_it(region, town, path):
    whole = AreaCut(AreaRange.within(MOVED, 0, 0, 1, 2))
    records = pd.DataFrame({"region": ["N", region], "town": ["N1", town], "sex": [0, 1]})
    (counts,) = counted(MOVED, records, whole)
    assert np.flatnonzero(counts[1]).tolist() == [MOVED.find(path)]


@pytest.mark.parametrize(
    ("region", "town", "column", "what"),
    [
        ("North", None, "town", "is missing"),
        ("East", "N1", "town", "is not in the tree"),
        ("North", "S1", "town", "is not in the tree"),
        ("old", "S1", "region", "is not in the tree"),
    ],
)
def test_a_recoded_area_has_no_other_parts_than_its_own(region, town, column, what):
    whole = AreaCut(AreaRange.within(MOVED, 0, 0, 1, 2))
    records = pd.DataFrame({"region": [region], "town": [town], "sex": [0]})
    with pytest.raises(rp.errors.DataError, match=f"column '{column}' {what}"):
        counted(MOVED, records, whole)


def test_one_column_of_codes_may_have_those_that_are_recoded():
    whole = AreaCut(AreaRange.within(MOVED, 0, 0, 1, 2))
    records = pd.DataFrame({"town": ["old", "N2", "East", "E"], "sex": [0, 0, 1, 1]})
    (counts,) = counted(MOVED, records, whole)
    at = [MOVED.find(path) for path in (("S", "S1"), ("N", "N2"), ("E",))]
    assert counts[:, at].tolist() == [[1, 1, 0], [0, 0, 2]]
    unclear = MOVED.with_recodes({"region": {"old": "E"}, "town": {"old": "S1"}})
    with pytest.raises(rp.errors.DataError, match="region"):
        counted(unclear, records, AreaCut(AreaRange.within(unclear, 0, 0, 1, 2)))
