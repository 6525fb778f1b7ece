"""Other codes that records have for areas: stated by level, refused by name, kept with the tree."""

import hashlib
import json

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.domain.area_tree_file import parquet_of_tree, tree_of_parquet
from rpexplore.errors import DomainError

COLUMNS = {"region": list("NNSSE"), "town": ["N1", "N2", "S1", "9", "9"]}
TREE = rp.AreaTree.from_columns(COLUMNS, empty=[False, True, False, False, False])


def recodes_of(tree) -> dict[tuple[str, ...], list[str]]:
    found: dict[tuple[str, ...], list[str]] = {}
    for area, code in zip(tree.recodes.areas, tree.recodes.codes.to_pylist(), strict=True):
        found.setdefault(tree.path(int(area)), []).append(code)
    return found


def test_codes_and_ranges_stand_for_areas_of_their_level():
    tree = TREE.with_recodes({"town": {"old": "S1", "7..8": "N1"}, "region": {"old": "N"}})
    assert recodes_of(tree) == {("N",): ["old"], ("N", "N1"): ["7", "8"], ("S", "S1"): ["old"]}
    assert tree.recodes_text == (
        "4 other codes in records (1 on region and 3 on town) are counted as areas of the list: "
        "old as N, 7 as N1, 8 as N1, old as S1."
    )


def test_they_are_kept_with_the_tree_and_tell_it_from_others():
    tree = TREE.with_recodes({"town": {"u\u0308": "S1", "x": "N1"}})
    content = parquet_of_tree(tree)
    read = tree_of_parquet(content, tree.levels, np.diff(tree.starts).tolist())
    assert recodes_of(read) == {("N", "N1"): ["x"], ("S", "S1"): ["ü"]}
    assert read.sha256 == tree.sha256
    others = [TREE, *(TREE.with_recodes({"town": other}) for other in ({"x": "N1"}, {"x": "S1"}))]
    assert len({tree.sha256, *(other.sha256 for other in others)}) == 4
    assert tree.with_recodes({}).sha256 == TREE.sha256


@pytest.mark.parametrize(
    ("recodes", "problem"),
    [
        ({"city": {"x": "N1"}}, "level 'city' are recoded, which the areas do not have"),
        ({"all": {"x": "N"}}, "level 'all' are recoded, which the areas do not have"),
        ({"town": {"x": "N3"}}, "'N3', which is no area of this level"),
        ({"town": {"x": "N"}}, "an area of the level 'region'; state the recode for that level"),
        ({"town": {"a": "b", "b": "N1"}}, "to 'b', which it recodes itself; recode 'a' to 'N1'"),
        ({"town": {"x": "9"}}, "to '9', which 2 areas of this level are called"),
        ({"town": {"x": "N2"}}, "to 'N2', which is stated to be empty"),
        ({"town": {"S1": "N1"}}, "'S1' of the level 'town' to 'N1', and the areas have both"),
        ({"town": {"N2": "N1"}}, "'N2' of the level 'town' to 'N1', and the areas have both"),
        ({"town": {"7": "N1", "5..8": "S1"}}, "recodes '7' of the level 'town' to two areas"),
        ({"town": {"ü": "N1", "u\u0308": "S1"}}, "recodes 'ü' of the level 'town' to two areas"),
        ({"town": {" ": "N1"}}, "must have a sign"),
    ],
)
def test_recodes_that_cannot_be_are_refused(recodes, problem):
    with pytest.raises(DomainError, match=problem):
        TREE.with_recodes(recodes)


def test_a_codebook_states_them_beside_its_file_of_areas(tmp_path):
    content = b"town\n1\n3\n"
    (tmp_path / "towns.csv").write_bytes(content)
    sha256 = hashlib.sha256(content).hexdigest()
    areas = {"path": "towns.csv", "sha256": sha256, "recode": {"town": {"2": "3"}}}
    sex = {"name": "sex", "constraints": {"enum": ["f", "m"]}}
    path = tmp_path / "codebook.json"
    path.write_text(json.dumps({"fields": [{"name": "town", "areas": areas}, sex]}))
    assert recodes_of(rp.AreaCodebook.load(path).tree) == {("3",): ["2"]}
    path.write_text(path.read_text().replace('{"town": {"2": "3"}}', '["2"]'))
    with pytest.raises(DomainError, match="the recode must be an object such as"):
        rp.AreaCodebook.load(path)
