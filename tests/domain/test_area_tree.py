"""Area trees: areas in areas, from columns of codes and from parents."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rpexplore as rp
from rpexplore.domain.area_tree import AreaTree, area_title, distinct_titles
from rpexplore.errors import DomainError

PATHS = st.sets(st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(tuple), min_size=1)


def columns(rows):
    """Level -> codes, from paths of unequal length."""
    depth = max(map(len, rows))
    return {f"level {k}": [row[k] if k < len(row) else None for row in rows] for k in range(depth)}


@given(PATHS)
def test_every_row_is_an_area_without_parts_and_is_found_by_its_path(paths):
    leaves = [p for p in paths if not any(q[: len(p)] == p and q != p for q in paths)]
    tree = AreaTree.from_columns(columns(leaves))
    skipped = len({path[0] for path in leaves}) == 1  # the only first code is the top itself
    wanted = {path[skipped:] for path in leaves}
    undivided = np.flatnonzero(tree.n_parts == 0)
    assert {tree.path(area) for area in undivided.tolist()} == wanted
    assert all(tree.find(tree.path(area)) == area for area in range(tree.n_areas))
    inner = {path[:k] for path in wanted for k in range(len(path) + 1)}
    assert tree.n_areas == len(inner)
    # Level by level; parts of one area stand together, in the order of their codes.
    assert np.all(np.diff(tree.parents[1:]) >= 0)
    assert np.array_equal(tree.level_of[1:], tree.level_of[tree.parents[1:]] + 1)
    for area in np.flatnonzero(tree.n_parts).tolist():
        first, count = tree.first_parts[area], tree.n_parts[area]
        assert np.all(tree.parents[first : first + count] == area)
        codes = tree.codes.slice(first, count).to_pylist()
        assert codes == sorted(codes)


def test_parents_give_the_same_tree_as_columns():
    parents = {"A": None, "A1": "A", "A2": "A", "A21": "A2", "B": ""}
    by_parents = rp.AreaTree.from_parents(parents, levels=["section", "division", "class"])
    by_columns = rp.AreaTree.from_columns(
        {"section": ["A", "A", "B"], "division": ["A1", "A2", None], "class": ["", "A21", ""]}
    )
    assert by_parents.sha256 == by_columns.sha256
    assert by_parents.levels == ("all", "section", "division", "class")
    other = rp.AreaTree.from_parents(
        {**parents, "A1": "B"}, levels=["section", "division", "class"]
    )
    assert other.sha256 != by_parents.sha256


@pytest.mark.parametrize(
    ("given_columns", "message"),
    [
        ({}, "at least one level"),
        ({"region": []}, "at least one row"),
        ({"region": ["N"], "town": ["1", "2"]}, "columns of 1, 2 rows"),
        (
            {"region": ["N", None], "town": ["1", "2"]},
            "Row 2 of the areas has no code on the level region",
        ),
        (
            {"region": ["N", "N"], "town": ["1", "1"]},
            "Row 2 of the areas is the same area as row 1",
        ),
        ({"region": ["N", "N"], "town": ["1", ""]}, "Row 2 of the areas ends on the level region"),
        ({"region": [1.5, [2]]}, "must be texts"),
    ],
)
def test_bad_columns_are_refused(given_columns, message):
    with pytest.raises(DomainError, match=message):
        AreaTree.from_columns(given_columns)


def test_bad_parents_are_refused():
    with pytest.raises(DomainError, match="B lies within itself: B > C > B; mend its parent"):
        AreaTree.from_parents({"B": "C", "C": "B"})
    with pytest.raises(DomainError, match="B lies within itself"):  # also with parts outside of it
        AreaTree.from_parents({"A": None, "B": "C", "C": "B", "D": "C"})
    chain = {str(k): str(k - 1) if k else None for k in range(101)}
    with pytest.raises(DomainError, match="B lies within itself: B > … > 96 > "):
        AreaTree.from_parents({"B": "100", **chain, "0": "B"})
    with pytest.raises(DomainError, match="100 levels at most"):
        AreaTree.from_parents({**chain, "beside": "0"})
    with pytest.raises(DomainError, match="The parent 'X' of the area 'B'"):
        AreaTree.from_parents({"B": "X"})
    with pytest.raises(DomainError, match=r"1 levels, but 2 names of levels are given: a, b\."):
        AreaTree.from_parents({"B": None}, levels=["a", "b"])


def test_an_area_that_is_not_there_is_named():
    tree = AreaTree.from_columns({"region": ["N", "S"], "town": ["1", "2"]})
    with pytest.raises(DomainError, match="no area '2' in N"):
        tree.find(("N", "2"))


def test_parts_with_the_same_title_are_told_apart_by_their_codes():
    tree = AreaTree.from_columns({"town": ["X (1)", "1", "2"]}, {"town": ["", "X", "Y"]})
    parts = [1, 2, 3]
    assert area_title(tree, 1) == area_title(tree, 3) == "X (1)"
    assert distinct_titles(tree, parts) == ["1", "2", "X (1)"]
    assert distinct_titles(tree, parts[:2]) == ["X (1)", "Y (2)"]
