"""Tables to look at, whichever folder they come from: what is there, and what is refused."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.errors import ReleaseError, RpexploreError
from rpexplore.postprocessing.combination import combine
from rpexplore.postprocessing.combination_folder import write_combined
from rpexplore.postprocessing.processed_folder import postprocess
from rpexplore.postprocessing.processed_tables import ProcessedTables
from rpexplore.postprocessing.results import Results, load_results
from rpexplore.releases.release import release
from rpexplore.releases.table_folder import Release
from rpexplore.workload.bases import Prefix

DOMAIN = rp.Domain(
    (
        rp.Attribute("age", rp.Integers(0, 5)),
        rp.Attribute("sex", rp.Categories(("f", "m"), ("female", "male"))),
        rp.Attribute("region", rp.Categories(("a", "b", "c"))),
        rp.Attribute("one", rp.Categories(("only",))),
    )
)
WORKLOAD = rp.Workload.of(DOMAIN, [["age", "sex"], ["sex", "region"], ["region"]]).with_bases(
    {"age": Prefix()}
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("results")
    rows = {
        "age": np.arange(90) % 6,
        "sex": np.where(np.arange(90) % 4, "f", "m"),
        "region": "a",
    }
    pd.DataFrame(rows).to_csv(folder / "records.csv", index=False)
    plan = rp.plan(WORKLOAD, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.5"))
    first, second = (
        release(plan, folder / "records.csv", folder / name) for name in ("first", "second")
    )
    write_combined(combine(first, second), folder / "combined")
    postprocess(first, folder / "processed", nonnegative=True, rounded=False)
    return {name: folder / name for name in ("first", "combined", "processed")}


@pytest.mark.parametrize("kind", ["first", "combined", "processed"])
def test_tables_are_those_that_were_written(folders, kind):
    found = load_results(folders[kind])
    assert set(found.tables) == {("region",), ("age", "sex"), ("sex", "region")}
    assert set(found.names) == {"age", "sex", "region"}
    assert found.is_biased == (kind == "processed")
    manifest = json.loads((folders[kind] / "manifest.json").read_text())
    assert found.label == manifest.get("label", "unbiased; as released")
    for table in found.tables:
        assert found.has(table)
        assert found.has(table[::-1])
        expected = found.source.table(table)
        pd.testing.assert_frame_equal(found.table(table[::-1]), expected)
    assert not found.has(["age", "region"])
    assert not found.has(["age", "no such"])
    with pytest.raises(RpexploreError):
        found.table(["age", "region"])


def test_marginals_within_tables_are_rebuilt(folders):
    found = load_results(folders["first"])
    assert isinstance(found.source, Release)
    for attributes in ([], ["age"], ["sex"]):
        assert found.has(attributes)
        pd.testing.assert_frame_equal(found.table(attributes), found.source.counts(attributes))
    assert "≤ 3" in set(found.table(["age", "sex"])["age"])
    by_value = found.counts(["sex", "age"])
    pd.testing.assert_frame_equal(by_value, found.source.counts(["age", "sex"]))
    sums = by_value["value"].to_numpy().reshape(6, 2).cumsum(axis=0).ravel()
    np.testing.assert_allclose(found.table(["age", "sex"])["value"], sums)


def test_a_single_valued_attribute_of_no_table_is_not_offered(folders):
    assert "one" not in load_results(folders["first"]).names
    assert not load_results(folders["first"]).has(["one"])


@pytest.mark.parametrize("kind", ["first", "combined"])
def test_answers_are_those_of_the_source(folders, kind):
    found = load_results(folders[kind])
    query = {"sex": [0.0, 1.0]}
    assert found.answer("region", "sex", where=query) == found.source.answer(
        "sex", "region", where=query
    )
    assert found.domain is not None
    assert found.domain.names == DOMAIN.names


def test_processed_tables_hold_nothing_but_themselves(folders):
    found = load_results(folders["processed"])
    assert found.domain is None
    assert not found.has([])
    with pytest.raises(ReleaseError, match=r"no processed table of \(total\)"):
        found.table([])
    with pytest.raises(ReleaseError, match="no known standard error"):
        found.answer("region")
    table = found.table(["sex", "age"])
    assert list(table.columns[-6:]) == [
        *("value", "unbiased_value", "standard_error", "lower_95", "upper_95", "value_is")
    ]
    unbiased = Release.load(folders["first"]).table(["age", "sex"])
    assert table["unbiased_value"].equals(unbiased["value"])
    assert set(table["value_is"]) == {found.label}


def test_processed_tables_of_combined_ones(folders, tmp_path):
    source = load_results(folders["combined"]).source
    assert not isinstance(source, ProcessedTables)
    postprocess(source, tmp_path / "out", nonnegative=False, rounded=True)
    found = load_results(tmp_path / "out")
    np.testing.assert_array_equal(found.table(["age", "sex"])["value"] % 1, 0)
    assert isinstance(found, Results)


def test_a_folder_that_is_none_is_refused(folders, tmp_path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(ReleaseError, match="not a finished release"):
            load_results(folder)
    (tmp_path / "manifest.json").write_text("[1]")
    with pytest.raises(ReleaseError, match="not a finished release"):
        load_results(tmp_path)
    (tmp_path / "manifest.json").write_text('{"format": "rpexplore-query-release"}')
    with pytest.raises(ReleaseError, match="answers to a list of queries"):
        load_results(tmp_path)
    with pytest.raises(ReleaseError, match="does not hold processed tables"):
        ProcessedTables.load(folders["first"])


@pytest.mark.parametrize(
    "spoil",
    [
        lambda manifest: manifest.pop("label"),
        lambda manifest: manifest.update(label=3),
        lambda manifest: manifest.update(files=[]),
        lambda manifest: manifest.update(files=3),
        lambda manifest: manifest["files"][0].pop("sha256"),
        lambda manifest: manifest["files"][0].pop("attributes"),
        lambda manifest: manifest.update(format_version=99),
    ],
)
def test_a_manifest_that_is_not_as_written_is_refused(folders, tmp_path, spoil):
    folder = shutil.copytree(folders["processed"], tmp_path / "copy")
    manifest = json.loads((folder / "manifest.json").read_text())
    spoil(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ReleaseError, match="does not hold processed tables"):
        load_results(folder)


@pytest.mark.parametrize("kind", ["first", "combined", "processed"])
@pytest.mark.parametrize("gone", [True, False])
def test_a_changed_file_is_refused(folders, tmp_path, kind, gone):
    folder = shutil.copytree(folders[kind], tmp_path / "copy")
    path = sorted((folder / "tables").iterdir())[0]
    if gone:
        path.unlink()
    else:
        path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(ReleaseError, match="missing or was changed"):
        load_results(folder)


def test_a_table_that_went_away_later_is_said(folders, tmp_path):
    folder = shutil.copytree(folders["processed"], tmp_path / "copy")
    found = load_results(folder)
    shutil.rmtree(folder)
    with pytest.raises(ReleaseError, match="cannot be read any more"):
        found.table(["region"])
