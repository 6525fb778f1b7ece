"""Releases and unfinished runs of format version 1: refused in one sentence that says who reads."""

import json
from pathlib import Path

import pytest

from rpexplore.common.json_fields import sealed_text
from rpexplore.errors import ReleaseError
from rpexplore.releases.adaptive_release import AdaptiveRelease
from rpexplore.releases.area_release import AreaRelease
from rpexplore.releases.finished_release import Release
from rpexplore.releases.query_release import QueryRelease
from rpexplore.releases.release import can_be_resumed, release, resume
from rpexplore.releases.table_release import TableRelease
from rpexplore.results.combination import load_unbiased
from rpexplore.results.results import load_results
from tests.releases.table_plan import PLAN, entries, runs
from tests.support.stopped_runs import killed

KINDS = ("", "query-", "area-", "adaptive-")
READERS = (Release, TableRelease, QueryRelease, AreaRelease, AdaptiveRelease)


@pytest.mark.parametrize("kind", KINDS)
def test_a_release_of_version_1_is_refused_with_the_version_that_reads_it(kind, tmp_path):
    content = {"format": f"rpexplore-{kind}release", "format_version": 1, "run": "x", "files": []}
    (tmp_path / "manifest.json").write_text(sealed_text(content))
    for load in (*(reader.load for reader in READERS), load_results, load_unbiased):
        with pytest.raises(ReleaseError) as caught:
            load(tmp_path)
        assert str(caught.value) == (
            f"{str(tmp_path)!r} is a release of format version 1, which rpexplore 0.1 reads, and "
            "this library reads version 2; use that version for it."
        )


@pytest.mark.by_day(2)
@pytest.mark.parametrize("version", [3, "2", None, 1.0])
def test_a_release_of_another_version_is_refused(version, data, output):
    release(PLAN, data, output)
    path = output / "manifest.json"
    content = json.loads(path.read_text()) | {"format_version": version}
    path.write_text(sealed_text(content))
    with pytest.raises(ReleaseError, match=r"^[^\n]*version (3|'2'|None|1)[^\n]*$"):
        Release.load(output)


def plan_of_version_1(folder: Path) -> None:
    """Let a folder have the plan of a run by the version before."""
    content = json.loads(PLAN.text)
    (part,) = content.pop("parts")
    content |= {**part, "format_version": 1}
    (folder / "plan.json").write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("function", "is_drawn"),
    [
        ("rpexplore.releases.release.write_measured", False),
        ("rpexplore.releases.release_steps.write_manifest", True),
    ],
)
def test_an_unfinished_run_of_version_1_is_left_alone(
    function, is_drawn, data, output, forbidden_noise
):
    PLAN.save(data.parent.parent / "plan.json")
    killed(function, 1, data.parent.parent / "plan.json", data, output)
    left = output.with_name(".release.unfinished")
    plan_of_version_1(left)
    before = {path: path.read_bytes() for path in left.rglob("*") if path.is_file()}
    assert can_be_resumed(output) == is_drawn
    says = r"^[^\n]*of format version 1, which rpexplore 0\.1 runs again or finishes[^\n]*$"
    if is_drawn:
        with pytest.raises(ReleaseError, match=says):
            resume(output)
        with pytest.raises(ReleaseError, match="finish it"):
            release(PLAN, data, output)
    else:
        with pytest.raises(ReleaseError, match=says):
            release(PLAN, data, output)
    assert {path: path.read_bytes() for path in left.rglob("*") if path.is_file()} == before
    assert [run.state for run in runs(data)] == ["started"]
    assert entries(output.parent) == [".release.unfinished"]
    # Another folder is free.
    with pytest.raises(AssertionError, match="noise was drawn"):
        release(PLAN, data, output.with_name("another"))
