"""Codebooks with areas: read with the file beside them, and refused where something is amiss."""

import hashlib
import json

import pytest

import rpexplore as rp
from rpexplore.errors import DomainError

AREAS = b"town\nN|1\nN|2\nS|1\n"
SEX = {"name": "sex", "constraints": {"enum": ["F", "M"]}}


def written(folder, **changes):
    """A codebook with the file of areas beside it; a change of None leaves a part out."""
    (folder / "towns.csv").write_bytes(AREAS)
    areas = {
        "path": "towns.csv",
        "sha256": hashlib.sha256(AREAS).hexdigest(),
        "separator": "|",
        "levels": ["region", "town"],
    }
    areas = {key: value for key, value in (areas | changes).items() if value is not None}
    return book(folder, [{"name": "home", "title": "Place of living", "areas": areas}, SEX])


def book(folder, fields):
    (folder / "codebook.json").write_text(json.dumps({"fields": fields}), "utf-8")
    return folder / "codebook.json"


def test_a_codebook_names_its_areas(tmp_path):
    codebook = rp.AreaCodebook.load(written(tmp_path))
    assert codebook.name == "home"
    assert codebook.tree.levels == ("all", "region", "town")
    assert codebook.tree.codes.to_pylist() == ["", "N", "S", "N|1", "N|2", "S|1"]
    assert codebook.domain.names == ("sex",)


def test_what_the_codebook_states_to_be_impossible_stays_with_it(tmp_path):
    path = written(tmp_path)
    content = json.loads(path.read_text("utf-8")) | {"impossible": [{"sex": "F"}]}
    path.write_text(json.dumps(content), "utf-8")
    (combination,) = rp.AreaCodebook.load(path).domain.impossible
    assert combination.selections == (("sex", "F"),)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"path": "../towns.csv"}, r"name of a file beside the codebook, got '../towns"),
        ({"path": "none.csv"}, "'none.csv' cannot be read"),
        ({"sha256": "0" * 64}, "is not the one that the codebook was written for"),
        ({"sha256": None}, f'state "sha256": "{hashlib.sha256(AREAS).hexdigest()}"'),
        ({"levels": "region"}, "the levels must be a list, got 'region'"),
        ({"lengths": [1.5]}, "the lengths must be a list"),
        ({"separator": 3}, "the separator must be a text, got 3"),
        ({"separator": ";"}, "have 1 levels, but 2 names"),
        ({"prefix": 3}, '"areas" must be an object with path'),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path, changes, message):
    with pytest.raises(DomainError, match=message):
        rp.AreaCodebook.load(written(tmp_path, **changes))


def test_there_is_one_tree_and_something_beside_it(tmp_path):
    path = written(tmp_path)
    (home, sex) = json.loads(path.read_text())["fields"]
    with pytest.raises(DomainError, match="one attribute with \"areas\", got 'home', 'work'"):
        rp.AreaCodebook.load(book(tmp_path, [home, home | {"name": "work"}, sex]))
    with pytest.raises(DomainError, match='one attribute with "areas", got none'):
        rp.AreaCodebook.load(book(tmp_path, [sex]))
    with pytest.raises(DomainError, match="no attribute beside the areas"):
        rp.AreaCodebook.load(book(tmp_path, [home]))
    with pytest.raises(DomainError, match=r"'home': its values are areas .* AreaCodebook\.load"):
        rp.Domain.load(path)
