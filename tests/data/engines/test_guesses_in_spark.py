"""Best guesses for areas that a cluster makes, a subtree in each task, are those made here."""

import json
import shutil

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import rpexplore as rp
from rpexplore.data.engines.connections import Connection
from rpexplore.data.engines.spark_tasks import arrays_of, rows_of
from rpexplore.errors import ReleaseError
from rpexplore.planning.areas.area_sums import AreaName
from rpexplore.releases import area_parts
from rpexplore.releases.area_release import TablesInAreas
from rpexplore.results.estimates.area_counts import area_guesses
from tests.releases.area_plans import PLANS, RECORDS

CLUSTER = Connection("CLUSTER", "spark://")


def released(folder, name="the same"):
    ledger = folder.parent / "ledger.sqlite"
    done = rp.release(PLANS[name], pd.DataFrame(RECORDS), folder, name="people", ledger=ledger)
    return done.part("areas")


def contents(folder) -> dict[str, object]:
    """Every file but the manifest as it is; of that all but when, and its own hash."""
    found: dict[str, object] = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "manifest.json"
    }
    manifest = json.loads((folder / "manifest.json").read_text())
    return found | {"manifest": {**manifest, "created": "", "sha256": ""}}


def test_arrays_come_back_as_they_were_made():
    made = {
        0: [np.arange(600_000, dtype=np.uint8), np.zeros((0, 3), dtype=np.float32)],
        1: [],
        2: [np.array([[1.5, -2.0]], dtype=np.float32)],
    }
    numbers = pa.record_batch({"id": [0, 1, 2]})
    rows = [row for batch in rows_of([numbers], made.__getitem__) for row in batch.to_pylist()]
    assert len(rows) == 5
    found = dict(arrays_of(rows))
    assert list(found) == [0, 2]
    for number, arrays in found.items():
        for array, own in zip(arrays, made[number], strict=True):
            assert array.dtype == own.dtype
            np.testing.assert_array_equal(array, own.ravel())


@pytest.mark.parametrize("part_numbers", [8, None], ids=["in parts", "at once"])
@pytest.mark.parametrize("name", ["the same", "less further down"])
def test_best_guesses_from_spark_are_those_made_here(
    spark, tmp_path, monkeypatch, part_numbers, name
):
    if part_numbers:
        monkeypatch.setattr(area_parts, "PART_NUMBERS", part_numbers)
    release = released(tmp_path / "release", name)
    assert (len(release.parts.areas) > 2) == bool(part_numbers)
    totals: dict[AreaName, int] = {0: 300}
    area_guesses(release, tmp_path / "here", totals=totals)
    area_guesses(release, tmp_path / "there", totals=totals, cluster=CLUSTER)
    assert contents(tmp_path / "there") == contents(tmp_path / "here")


def test_workers_that_do_not_have_the_release_are_told_apart(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(area_parts, "PART_NUMBERS", 8)
    release = released(tmp_path / "release")
    _ = release.answers_in_areas._above  # this program has read the files already
    shutil.rmtree(tmp_path / "release" / "areas" / "residuals")
    with pytest.raises(ReleaseError, match="Workers of Spark do not have the release"):
        area_guesses(release, tmp_path / "there", cluster=CLUSTER)
    assert not (tmp_path / "there").exists()


def test_another_engine_and_combined_releases_are_refused_before_anything_is_written(tmp_path):
    release = released(tmp_path / "release")
    file = Connection("FILE", "duckdb:///any.duckdb")
    with pytest.raises(ReleaseError, match="is to duckdb, and best guesses are computed in Spark"):
        area_guesses(release, tmp_path / "there", cluster=file)
    other = released(tmp_path / "other", "less further down")
    combined = rp.combine(release, other).part("areas")
    assert isinstance(combined, TablesInAreas)
    with pytest.raises(ReleaseError, match="of combined releases are computed here"):
        area_guesses(combined, tmp_path / "there", cluster=CLUSTER)
    assert not (tmp_path / "there").exists()
