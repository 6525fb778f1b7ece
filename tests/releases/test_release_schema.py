"""The published schema of manifests: what is written is valid, and what it refuses is refused."""

import json
import shutil
from importlib import resources
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

import rpexplore as rp
from rpexplore.errors import ReleaseError
from rpexplore.releases.finished_release import DISTINCT, ENCODING, POSITIONS, UNIT_NOUN
from tests.releases.parts_plan import plan_of, records
from tests.support.sealed import edit_manifest
from tests.support.ssh_keys import requires_ssh_keygen, with_keys

SCHEMA = json.loads(
    resources.files("rpexplore.releases").joinpath("schemas/release-2.json").read_text()
)
VALIDATOR = Draft202012Validator(SCHEMA)


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> rp.Release:
    """Of all four parts, with values that are counted as others, and a rule for persons."""
    folder = tmp_path_factory.mktemp("done")
    records().to_csv(folder / "records.csv", index=False)
    return rp.release(
        plan_of(most=2),
        folder / "records.csv",
        folder / "release",
        unknown_values={"job": "other"},
        person_rule=rp.PersonRule("who", most=2, excess="keep first"),
    )


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> rp.Release:
    """Of own counts, which are few files."""
    folder = tmp_path_factory.mktemp("small")
    records().to_csv(folder / "records.csv", index=False)
    return rp.release(plan_of(("counts",)), folder / "records.csv", folder / "release")


def test_the_schema_is_one():
    Draft202012Validator.check_schema(SCHEMA)
    optional = {
        "approvals",
        "missing_values",
        "count_impossible",
        "universe",
        "neighbours",
        "period",
        "exact_totals",
        "positions",
        "encoding",
        "unit_noun",
        "count_distinct",
    }
    assert set(SCHEMA["properties"]) == {*SCHEMA["required"], *optional}


def test_what_only_some_releases_state_is_in_the_schema(small):
    for key, value in {
        POSITIONS: {"file": "usa.xml", "sha256": "0" * 64},
        ENCODING: "cp1252",
        UNIT_NOUN: "household",
        DISTINCT: "household_id",
    }.items():
        assert list(VALIDATOR.iter_errors({**small.manifest, key: value})) == []


def test_a_manifest_is_valid(done):
    assert list(VALIDATOR.iter_errors(done.manifest)) == []
    assert {"areas", "counts", "rounds", "tables"} <= {
        entry["path"].split("/")[0] for entry in done.manifest["files"]
    }


@requires_ssh_keygen
def test_a_manifest_with_approvals_is_valid(done, tmp_path):
    with_keys(tmp_path, "alice@x")
    plan = plan_of(("counts",))
    path = tmp_path / "records.csv"
    records().to_csv(path, index=False)
    approvals = [rp.approve(plan, tmp_path / "alice")]
    approved = rp.release(plan, path, tmp_path / "out", approvals=approvals)
    assert "approvals" in approved.manifest
    assert list(VALIDATOR.iter_errors(approved.manifest)) == []


@pytest.mark.parametrize("value", [None, 3, -1, "x", [], {}, [1]], ids=repr)
@pytest.mark.parametrize("key", [*SCHEMA["properties"], "another"])
def test_what_the_schema_refuses_is_refused(key, value, small, tmp_path):
    """But not the other way round: whether numbers agree, no schema says."""
    changed = {**small.manifest, key: value}
    if VALIDATOR.is_valid(changed):
        assert value == "x" or key in ("max_records_per_person", "unknown_values", "versions")
        return
    copy = Path(shutil.copytree(small.folder, tmp_path / "copy"))
    edit_manifest(copy, lambda manifest: manifest.update({key: value}))
    # The edit mends the seal; and any text is taken for a name or a time.
    if key == "sha256" or (key in ("run", "finished") and value == "x"):
        rp.Release.load(copy)
    else:
        with pytest.raises(ReleaseError):
            rp.Release.load(copy)


@pytest.mark.parametrize("key", SCHEMA["required"])
def test_what_is_required_is_required(key, small, tmp_path):
    assert not VALIDATOR.is_valid({k: v for k, v in small.manifest.items() if k != key})
    copy = Path(shutil.copytree(small.folder, tmp_path / "copy"))
    if key != "sha256":
        edit_manifest(copy, lambda manifest: manifest.pop(key))
        with pytest.raises(ReleaseError):
            rp.Release.load(copy)
