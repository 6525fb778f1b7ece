"""Manifests: believed where they are as written, and say what plan and folder say."""

import shutil

import numpy as np
import pytest

from rpexplore import Attribute, Budget, Categories, Domain, Integers, SumOfVariances, Workload
from rpexplore.errors import ReleaseError
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.query_release import QueryRelease
from rpexplore.releases.release import release
from rpexplore.releases.table_release import TableRelease
from rpexplore.workload.query_list import QueryList
from tests.support.query_lists import query_plan
from tests.support.sealed import edit_manifest

DOMAIN = Domain((Attribute("a", Categories(("0", "1"))), Attribute("b", Integers(0, 2))))
PLANS = {
    TableRelease: plan_tables(
        Workload.all_up_to(DOMAIN, 2), loss=SumOfVariances(), budget=Budget(rho=1)
    ),
    QueryRelease: query_plan(
        QueryList(DOMAIN, np.eye(6, dtype=int)[:2], ("x", "y"), np.array([1.0, 2])),
        budget=Budget(rho=1),
    ),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    (folder / "records.csv").write_text("a,b\n0,0\n1,2\n")
    for kind, planned in PLANS.items():
        release(planned, folder / "records.csv", folder / kind.__name__, unknown_values={"a": "1"})
    return {kind: folder / kind.__name__ for kind in PLANS}


@pytest.fixture(params=PLANS)
def kind(request):
    return request.param


@pytest.fixture
def copy(folders, kind, tmp_path):
    return shutil.copytree(folders[kind], tmp_path / "copy")


CHANGES = {
    "rho": lambda m: m.update(rho="1/2"),
    "another rho, the same number": lambda m: m.update(rho="1.0"),
    "records of a person": lambda m: m.update(max_records_per_person=3),
    "one record": lambda m: m.update(max_records_per_person=1),
    "guarantee": lambda m: m.update(guarantee=1),
    "unit": lambda m: m.update(privacy_unit=None),
    "noise": lambda m: m.update(noise=["none"]),
    "post-processing": lambda m: m.pop("postprocessing"),
    "plan": lambda m: m.update(plan_sha256="0" * 64),
    "confidence": lambda m: m.update(interval_confidence=0.5),
    "category": lambda m: m["unknown_values"].update(a="7"),
    "attribute": lambda m: m["unknown_values"].update(c="0"),
    "categories": lambda m: m.update(unknown_values=[]),
    "a key more": lambda m: m.update(note="checked"),
    "a key less": lambda m: m.pop("finished"),
    "no files": lambda m: m.update(files={}),
    "a file less": lambda m: m["files"].pop(0),
    "no plan": lambda m: m.update(files=[e for e in m["files"] if e["path"] != "plan.json"]),
    "a file twice": lambda m: m["files"].append(m["files"][0]),
    "a number for a file": lambda m: m["files"].append(3),
    "a number for a path": lambda m: m["files"][0].update(path=3),
    "size": lambda m: m["files"][0].update(bytes=1),
    "other attributes": lambda m: m["files"][0].update(attributes=["b"]),
    "a path out of it": lambda m: m["files"][0].update(path="../records.csv"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_manifest_that_says_otherwise_is_refused(kind, copy, change):
    """Even if its checksum was made anew."""
    edit_manifest(copy, change)
    with pytest.raises(ReleaseError, match=r"^[^\n]*(use the original folder|missing or)"):
        kind.load(copy)


SENTENCES = ("guarantee", "privacy_unit", "noise", "postprocessing", "records_per_person")


OF_THE_RUN = ("run", "finished")


def test_sentences_may_be_worded_otherwise_and_are_kept(kind, copy):
    """As another version of the library words them, and what only the run knows."""
    kept = (*SENTENCES, *OF_THE_RUN)
    edit_manifest(copy, lambda m: m.update({name: f"Of {name}." for name in kept}, versions={}))
    loaded = kind.load(copy)
    assert [loaded.manifest[name] for name in kept] == [f"Of {name}." for name in kept]
    assert loaded.plan.rho == PLANS[kind].rho


@pytest.mark.parametrize("seal", ["", ',\n "sha256": ""'])
def test_a_manifest_without_its_own_checksum_is_refused(kind, copy, seal):
    path = copy / "manifest.json"
    path.write_text(path.read_text().rpartition(',\n "sha256"')[0] + seal + "\n}\n")
    with pytest.raises(ReleaseError, match=r"its manifest\.json was changed"):
        kind.load(copy)


def test_a_manifest_in_another_layout_is_refused(kind, copy):
    path = copy / "manifest.json"
    path.write_text(path.read_text().replace("\n ", "\n  "))
    with pytest.raises(ReleaseError, match=r"its manifest\.json was changed"):
        kind.load(copy)


def test_added_files_are_refused_by_name(kind, copy):
    (copy / ".DS_Store").touch()
    kind.load(copy)
    (copy / "tables" if kind is TableRelease else copy).joinpath("0000_total.xlsx").touch()
    with pytest.raises(ReleaseError, match=r"more than was written, '(tables/)?0000_total\.xlsx'"):
        kind.load(copy)


def test_a_missing_file_is_named(kind, copy):
    (copy / "README.md").unlink()
    with pytest.raises(ReleaseError, match=r"'README\.md' of .* is missing"):
        kind.load(copy)
