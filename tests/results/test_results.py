"""Tables to look at, whichever folder they come from: what is there, and what is refused."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.domain.result_schema import PROCESSED, Schema
from rpexplore.errors import ReleaseError, RpexploreError
from rpexplore.planning.planner import plan_tables
from rpexplore.releases.release import release
from rpexplore.releases.table_release import TableRelease
from rpexplore.results.combination import combine, load_unbiased, write_combined
from rpexplore.results.processed_folder import postprocess
from rpexplore.results.processed_tables import ProcessedTables
from rpexplore.results.results import (
    load_results,
    readings_of,
    source_folder,
)
from rpexplore.workload.bases import Prefix
from tests.support.results import names_of
from tests.support.sealed import edit_manifest

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
    plan = plan_tables(WORKLOAD, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.5"))
    first, second = (
        release(plan, folder / "records.csv", folder / name) for name in ("first", "second")
    )
    write_combined(combine(first, second), folder / "combined")
    postprocess(first, folder / "processed", method="nonnegative")
    return {name: folder / name for name in ("first", "combined", "processed")}


@pytest.mark.parametrize("kind", ["first", "combined", "processed"])
def test_tables_are_those_that_were_written(folders, kind):
    loaded = load_results(folders[kind])
    assert set(loaded.table_names) == {("region",), ("age", "sex"), ("sex", "region")}
    assert set(loaded.attributes) == {"age", "sex", "region"}
    assert loaded.is_biased == (kind == "processed")
    manifest = json.loads((folders[kind] / "manifest.json").read_text())
    assert loaded.label == manifest.get("label", "unbiased; as released")
    for table in loaded.table_names:
        assert loaded.has_counts(table)
        assert loaded.has_counts(table[::-1])
        assert loaded.in_column_order(table[::-1]) == table
        pd.testing.assert_frame_equal(loaded.table(table[::-1]), loaded.table(table))
    assert not loaded.has_counts(["age", "region"])
    assert not loaded.has_counts(["age", "no such"])
    with pytest.raises(RpexploreError):
        loaded.table(["age", "region"])


def test_marginals_within_tables_are_rebuilt(folders):
    loaded = load_results(folders["first"])
    assert isinstance(loaded, TableRelease)
    for attributes in ([], ["age"], ["sex"]):
        assert loaded.has_counts(attributes)
        pd.testing.assert_frame_equal(loaded.table(attributes), loaded.counts(attributes))
    assert "≤ 3" in set(loaded.table(["age", "sex"])["age"])
    by_value = loaded.counts(["sex", "age"])
    pd.testing.assert_frame_equal(by_value, loaded.counts(["age", "sex"]))
    sums = by_value["value"].to_numpy().reshape(6, 2).cumsum(axis=0).ravel()
    np.testing.assert_allclose(loaded.table(["age", "sex"])["value"], sums)


def test_a_single_valued_attribute_of_no_table_is_not_offered(folders):
    loaded = load_results(folders["first"])
    assert "one" not in loaded.attributes
    assert not loaded.has_counts(["one"])


@pytest.mark.parametrize("kind", ["first", "combined"])
def test_answers_do_not_depend_on_the_order_of_attributes(folders, kind):
    loaded = load_results(folders[kind])
    query = {"sex": [0.0, 1.0]}
    assert loaded.answer("region", "sex", where=query) == loaded.answer(
        "sex", "region", where=query
    )
    assert loaded.domain is not None
    assert loaded.domain.names == DOMAIN.names


def test_processed_tables_hold_nothing_but_themselves(folders):
    loaded = load_results(folders["processed"])
    assert loaded.domain is None
    assert not loaded.has_counts([])
    with pytest.raises(ReleaseError, match=r"no processed table of \(total\)"):
        loaded.table([])
    with pytest.raises(ReleaseError, match="no known standard error"):
        loaded.answer("region")
    with pytest.raises(ReleaseError, match=r"holds processed tables, .* name the release"):
        load_unbiased(folders["processed"])
    table = loaded.table(["sex", "age"])
    assert Schema.of(table).figures == PROCESSED
    assert list(table.columns) == ["age", "sex", "sex label", *names_of(PROCESSED)]
    unbiased = TableRelease.load(folders["first"]).table(["age", "sex"])
    assert table["unbiased_value"].equals(unbiased["value"])
    assert set(table["value_is"]) == {loaded.label}


def test_readings_of_a_release_are_what_was_made_of_it_and_of_nothing_else(folders, tmp_path):
    first = TableRelease.load(folders["first"])
    postprocess(first, tmp_path / "whole", method="nonnegative", rounded=True)
    postprocess(first, tmp_path / "smooth", method="smooth")
    others = [tmp_path / "whole", folders["combined"], tmp_path / "none", *folders.values()]
    assert readings_of(folders["first"], [*others, tmp_path / "smooth"]) == {
        "Best guesses": tmp_path / "smooth",
        "Whole numbers": tmp_path / "whole",
        "Nonnegative": folders["processed"],
    }
    assert readings_of(folders["combined"], others) == {}


def test_processed_tables_of_combined_ones(folders, tmp_path):
    source = load_results(folders["combined"])
    assert not isinstance(source, ProcessedTables)
    postprocess(source, tmp_path / "out", rounded=True)
    loaded = load_results(tmp_path / "out")
    np.testing.assert_array_equal(loaded.table(["age", "sex"])["value"] % 1, 0)
    assert isinstance(loaded, ProcessedTables)


def test_what_tables_were_made_of_is_found_among_folders(folders, tmp_path):
    combined = postprocess(load_unbiased(folders["combined"]), tmp_path / "p", rounded=True)
    others = [tmp_path / "nowhere", tmp_path]
    for made, source in (
        (ProcessedTables.load(folders["processed"]), folders["first"]),
        (combined, folders["combined"]),
    ):
        sources = made.manifest["sources"]
        assert source_folder(sources, [*others, *folders.values()]) == source
        assert source_folder(sources, [*others, made.folder]) is None


def test_a_folder_that_is_none_is_refused(folders, tmp_path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(ReleaseError, match="not a finished release"):
            load_results(folder)
    (tmp_path / "manifest.json").write_text("[1]")
    with pytest.raises(ReleaseError, match="not a finished release"):
        load_results(tmp_path)
    (tmp_path / "manifest.json").write_text('{"format": "rpexplore-query-release"}')
    with pytest.raises(ReleaseError, match="not hold a release that can be read here"):
        load_results(tmp_path)
    with pytest.raises(ReleaseError, match="does not hold processed tables"):
        ProcessedTables.load(folders["first"])


@pytest.mark.parametrize(
    "spoil",
    [
        lambda manifest: manifest.pop("label"),
        lambda manifest: manifest.update(label=3),
        lambda manifest: manifest.update(label="exact"),
        lambda manifest: manifest.update(rounded=True),
        lambda manifest: manifest.update(gap="small"),
        lambda manifest: manifest["sources"][0].update(rho="1/100"),
        lambda manifest: manifest["sources"][0].update(unknown_values=3),
        lambda manifest: manifest["files"][0].update(attributes=["age", "sex"]),
        lambda manifest: manifest["files"][0].update(attributes=[{}]),
        lambda manifest: manifest["files"].append(manifest["files"][0]),
        lambda manifest: manifest.update(files=[]),
        lambda manifest: manifest.update(files=3),
        lambda manifest: manifest["files"][0].pop("sha256"),
        lambda manifest: manifest["files"][0].pop("attributes"),
        lambda manifest: manifest.update(format_version=99),
    ],
)
def test_a_manifest_that_is_not_as_written_is_refused(folders, tmp_path, spoil):
    folder = shutil.copytree(folders["processed"], tmp_path / "copy")
    edit_manifest(folder, spoil)
    with pytest.raises(ReleaseError, match=r"not hold processed tables|more than was written"):
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
    loaded = load_results(folder)
    shutil.rmtree(folder)
    with pytest.raises(ReleaseError, match="is missing or was changed since"):
        loaded.table(["region"])
