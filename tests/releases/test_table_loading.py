"""The folder of a release of tables as it is opened again: refused unless it is as written."""

import json
import re
import shutil
from pathlib import Path

import pytest

from rpexplore.errors import ReleaseError
from rpexplore.releases.table_release import TableRelease
from tests.releases.test_table_files import done as done
from tests.support.sealed import DAMAGES, damage


@pytest.fixture
def copy(done, tmp_path) -> Path:
    """A copy of the release, to be tampered with."""
    return shutil.copytree(done.folder, tmp_path / "copy")


def test_a_release_can_be_loaded(done, copy):
    loaded = TableRelease.load(str(copy))
    assert loaded.manifest == done.manifest
    assert loaded.plan.sha256 == done.plan.sha256
    assert loaded.table("letter").equals(done.table("letter"))
    assert loaded.counts("letter").equals(done.counts("letter"))


@pytest.mark.parametrize(
    "name", ["tables/0001_letter.csv", "plan.json", "README.md", "residuals.parquet"]
)
@pytest.mark.parametrize("how", DAMAGES)
def test_a_changed_file_is_found(name, how, copy):
    damage(copy / name, how)
    with pytest.raises(ReleaseError, match=re.escape(repr(name))):
        TableRelease.load(copy)


def other_format(manifest):
    manifest["format"] = "something else"


def other_version(manifest):
    manifest["format_version"] = 2


def no_files(manifest):
    del manifest["files"]


def odd_files(manifest):
    manifest["files"] = [1]


def other_plan(manifest):
    manifest["plan_sha256"] = "0" * 64


@pytest.mark.parametrize("change", [other_format, other_version, no_files, odd_files, other_plan])
def test_a_changed_manifest_is_found(change, copy):
    path = copy / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))
    with pytest.raises(ReleaseError):
        TableRelease.load(copy)


@pytest.mark.parametrize("text", ["", "[]", '"text"', "null", "{", "{}", "\xff"])
def test_what_is_no_manifest_is_refused(text, copy):
    (copy / "manifest.json").write_text(text, encoding="latin-1")
    with pytest.raises(ReleaseError, match="release"):
        TableRelease.load(copy)


@pytest.mark.parametrize("name", ["nowhere", "copy/manifest.json", "copy/tables"])
def test_what_is_no_release_is_refused(name, copy):
    with pytest.raises(ReleaseError, match=r"no readable manifest\.json"):
        TableRelease.load(copy.parent / name)
