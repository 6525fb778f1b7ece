"""Areas known to have nobody: said in files, kept apart from the tree, and saved with it."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rpexplore as rp
from rpexplore.domain.area_tree_file import parquet_of_tree, tree_of_parquet
from rpexplore.domain.named_areas import lists_of_areas, totals_of_areas
from rpexplore.errors import DomainError
from rpexplore.planning.areas.area_sums import area_number, area_numbers

# North has one town left and a lake; all of East is empty; West ends early.
COLUMNS = {"region": list("NNEEW"), "town": ["1", "2", "1", "3", None]}
EMPTY = [False, True, True, True, False]
TREE = rp.AreaTree.from_columns(COLUMNS, empty=EMPTY)
PATHS = {("E",), ("N", "2"), ("E", "1"), ("E", "3")}

FILES = {
    "levels": "region,town,empty\nN,1,\nN,2,yes\nE,1,YES\nE,3,true\nW,,no\n",
    "whole codes": "code,empty\nW,0\nN2,1\nE3,1\nE1,1\nN1,0\n",
    "parents": "code,parent,empty\nN,,\nN1,N,\nN2,N,yes\nE,,yes\nE1,E,\nE3,E,\nW,,\n",
}


def sizes(tree) -> list[int]:
    return np.diff(tree.starts).tolist()


def empty_paths(tree) -> set[tuple[str, ...]]:
    return {tree.path(area) for area in range(tree.n_areas, tree.n_all)}


def test_empty_areas_are_not_in_the_tree_and_have_numbers_behind_it():
    bare = rp.AreaTree.from_columns({"region": ["N", "W"], "town": ["1", None]})
    assert [TREE.path(area) for area in range(TREE.n_areas)] == [
        bare.path(area) for area in range(bare.n_areas)
    ]
    assert TREE.levels == bare.levels
    assert TREE.parents.tolist() == bare.parents.tolist()
    assert TREE.sha256 != bare.sha256
    assert empty_paths(TREE) == PATHS
    assert TREE.empty_text.startswith("4 areas (1 on region and 3 on town) are stated to be empty")
    assert bare.empty_text == ""
    assert [TREE.path(area) for area in TREE.empty_on(2, TREE.find(["N"]))] == [("N", "2")]
    assert {TREE.path(area) for area in TREE.empty_on(2)} == PATHS - {("E",)}


def test_the_levels_stay_as_they_are_where_one_area_is_left():
    """Else the top would be the region that is left, and records need no column of regions."""
    tree = rp.AreaTree.from_columns({"region": ["N", "E"], "town": ["1", "1"]}, empty=[False, True])
    assert tree.levels == ("all", "region", "town")
    assert sizes(tree) == [1, 1, 1]
    ends_early = rp.AreaTree.from_columns({"region": ["N", "E"], "town": [None, "1"]}, empty=[0, 1])
    assert ends_early.levels == ("all", "region")  # no town is left
    assert empty_paths(ends_early) == {("E",)}
    with pytest.raises(DomainError, match="All areas are stated to be empty"):
        rp.AreaTree.from_columns({"region": ["N", "E"]}, empty=[True, True])


@pytest.mark.parametrize("form", FILES)
def test_a_column_of_any_file_of_areas_says_which_are_empty(form, tmp_path):
    path = tmp_path / "areas.csv"
    path.write_text(FILES[form])
    tree = rp.AreaTree.from_file(path, lengths=[1, 1] if form == "whole codes" else ())
    assert {"".join(path[-1:]) for path in empty_paths(tree)} == (
        {"E", "1", "2", "3"} if form == "levels" else {"E", "E1", "E3", "N2"}
    )
    assert sizes(tree) == [1, 2, 1]


def test_what_is_neither_yes_nor_no_is_refused(tmp_path):
    path = tmp_path / "areas.csv"
    path.write_text("region,empty\nN,\nE,perhaps\n")
    with pytest.raises(
        DomainError, match=r"Line 3 of areas\.csv has 'perhaps' in the column empty"
    ):
        rp.AreaTree.from_file(path)
    path.write_text("region,empty\nN,a\nE,b\n")
    assert rp.AreaTree.from_file(path, levels=["region", "empty"]).n_areas == 5


def test_the_file_of_a_tree_keeps_them():
    content = parquet_of_tree(TREE)
    again = tree_of_parquet(content, TREE.levels, sizes(TREE))
    assert again.sha256 == TREE.sha256
    assert empty_paths(again) == PATHS
    assert pq.read_table(pa.BufferReader(content))["empty"].to_pylist() == [False] * 4 + [True] * 4


@pytest.mark.parametrize(
    ("column", "row", "value"),
    [
        ("empty", 3, True),  # then the tree has an area less
        ("empty", 5, False),
        ("parent", 4, 3),  # a part of an area that ends there
        ("parent", 4, 6),  # behind it
        ("parent", 6, 1),  # level by level, but not in the order of parents
        ("code", 5, "1"),  # as another town of North is called
        ("code", 7, "1"),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(column, row, value):
    table = pq.read_table(pa.BufferReader(parquet_of_tree(TREE)))
    values = table[column].to_pylist()
    values[row] = value
    place = table.column_names.index(column)
    changed = table.set_column(
        place, table.schema.field(place), pa.array(values, table.schema.field(place).type)
    )
    sink = pa.BufferOutputStream()
    pq.write_table(changed, sink)
    with pytest.raises(DomainError):
        tree_of_parquet(sink.getvalue().to_pybytes(), TREE.levels, sizes(TREE))


def test_a_codebook_with_areas_can_state_them(tmp_path):
    (tmp_path / "areas.csv").write_text(FILES["levels"])
    areas = {"path": "areas.csv", "sha256": None}
    fields = [
        {"name": "town", "areas": areas},
        {"name": "sex", "constraints": {"enum": ["f", "m"]}},
    ]
    book = tmp_path / "book.json"
    book.write_text(json.dumps({"fields": fields}))
    with pytest.raises(DomainError, match="state the SHA-256") as caught:
        rp.AreaCodebook.load(book)
    areas["sha256"] = str(caught.value).split('"')[-2]
    book.write_text(json.dumps({"fields": fields}))
    assert rp.AreaCodebook.load(book).tree.sha256 == TREE.sha256


def test_lists_leave_them_out_and_known_totals_of_them_are_nothing(tmp_path):
    one = TREE.find(["N", "1"])
    path = tmp_path / "lists.csv"
    path.write_text("list,region,town\na,N,1\na,N,2\na,E,\nb,E,1\n")
    lists = lists_of_areas(TREE, path)
    assert area_numbers(TREE, lists["a"]).tolist() == [one]
    assert area_numbers(TREE, [("N", "1"), ("N", "2")]).tolist() == [one]
    with pytest.raises(DomainError, match="no areas but such as are stated to be empty"):
        area_numbers(TREE, lists["b"])
    for name in ("2", ("E",), ("E", "1")):
        with pytest.raises(DomainError, match="is stated to be empty"):
            area_number(TREE, name)
    path.write_text("region,town,total\nall,,7\nE,,0\nE,1,0\n")
    assert totals_of_areas(TREE, path) == {0: 7}
    path.write_text("region,town,Population,name\nall,,7,x\nE,,0,y\n")
    assert totals_of_areas(TREE, path) == {0: 7}
    path.write_text("region,town,total\nE,1,2\n")
    with pytest.raises(DomainError, match=r"Line 2 .* has the total 2 of the area E > 1, which is"):
        totals_of_areas(TREE, path)
