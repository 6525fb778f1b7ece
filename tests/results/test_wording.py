"""Folders of results whose sentences were worded by another version of the library."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rpexplore as rp
from rpexplore.errors import ReleaseError
from rpexplore.releases.release import release
from rpexplore.results.combination import combine, load_combined, write_combined
from rpexplore.results.estimates.area_counts import AreaCounts, whole_area_counts
from rpexplore.results.processed_folder import postprocess
from rpexplore.results.processed_tables import ProcessedTables
from rpexplore.results.synthetic.area_records import AreaRecords, synthesize_areas
from rpexplore.results.synthetic.records import SyntheticRecords
from rpexplore.results.synthetic.records_folder import synthesize
from tests.releases.parts_plan import plan_of, records
from tests.support.sealed import edit_manifest

LOADED: dict[str, Callable[[Path], Any]] = {
    "release": rp.Release.load,
    "combined": load_combined,
    "processed": ProcessedTables.load,
    "synthetic": SyntheticRecords.load,
    "whole": AreaCounts.load,
    "records": AreaRecords.load,
}
SENTENCES = ("guarantee", "noise", "postprocessing", "privacy_unit")
CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "no number": lambda facts: facts.update(rho="much"),
    "a plan that is none": lambda facts: facts.update(plan_sha256=1),
    "no records of a person": lambda facts: facts.update(max_records_per_person=0),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> Path:
    """A folder of every kind, made of one release of tables, areas and counts."""
    folder = tmp_path_factory.mktemp("made")
    records().to_csv(folder / "records.csv", index=False)
    plan = plan_of(("tables", "areas", "counts"), most=2)
    done = release(plan, folder / "records.csv", folder / "release")
    write_combined(combine(done.part("tables")), folder / "combined")
    postprocess(done.part("tables"), folder / "processed", method="smooth", rounded=True)
    synthesize(done.part("tables"), folder / "synthetic", rows=20)
    whole_area_counts(done.part("areas"), folder / "whole")
    synthesize_areas(done.part("areas"), folder / "records")
    return folder


@pytest.fixture(params=LOADED)
def kind(request) -> str:
    return request.param


@pytest.fixture
def copy(folders, kind, tmp_path) -> Path:
    return Path(shutil.copytree(folders / kind, tmp_path / kind))


def reworded(manifest: dict[str, Any]) -> None:
    """All sentences in other words, those about the sources as well."""
    for facts in (manifest, *manifest.get("sources", ())):
        facts.update({name: f"As told of {name}." for name in SENTENCES if name in facts})


def test_a_label_is_that_of_the_tables_or_records(kind, copy):
    """It stands in their metadata as well, in the words of the same version."""
    if kind in ("processed", "synthetic", "whole", "records"):
        edit_manifest(copy, lambda manifest: manifest.update(label="exact"))
        with pytest.raises(ReleaseError, match=r"'label' in its manifest\.json is not what"):
            LOADED[kind](copy)


def test_other_words_are_read_and_kept(kind, folders, copy):
    edit_manifest(copy, reworded)
    before, after = LOADED[kind](folders / kind), LOADED[kind](copy)
    if kind == "combined":
        assert (after.sources, after.spent) == (before.sources, before.spent)
        return
    assert after.manifest["guarantee"] == "As told of guarantee."
    for name in ("rho", "plan_sha256", "max_records_per_person"):
        assert after.manifest.get(name) == before.manifest.get(name)


def test_what_is_no_sentence_is_not_read_in_its_place(kind, copy):
    edit_manifest(copy, lambda manifest: manifest.update(guarantee=["a", "list"]))
    with pytest.raises(ReleaseError, match="use the original folder"):
        LOADED[kind](copy)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_costs_that_cannot_be_are_refused(change, kind, copy):
    def changed(manifest: dict[str, Any]) -> None:
        (facts,) = manifest.get("sources", [manifest])
        change(facts)

    edit_manifest(copy, changed)
    with pytest.raises(ReleaseError, match="use the original folder"):
        LOADED[kind](copy)


def test_another_cost_than_that_of_plan_or_sources_is_refused(kind, copy):
    edit_manifest(copy, lambda manifest: manifest.update(rho="0.01"))
    with pytest.raises(ReleaseError, match=r"'rho' in its manifest\.json is not what follows"):
        LOADED[kind](copy)


@pytest.mark.parametrize("change", [{"rho": "0.01"}, {"max_records_per_person": 1}], ids=repr)
def test_another_cost_of_a_source_than_is_said_of_all_is_refused(change, kind, copy):
    if kind != "release":  # which has none
        edit_manifest(copy, lambda manifest: manifest["sources"][0].update(change))
        with pytest.raises(ReleaseError, match="is not what follows from its other files"):
            LOADED[kind](copy)


def test_a_folder_of_version_1_is_refused_with_the_version_that_reads_it(kind, copy):
    if kind == "records":
        return  # of areas: that is their version
    edit_manifest(copy, lambda manifest: manifest.update(format_version=1))
    with pytest.raises(ReleaseError, match=r"^[^\n]*version 1, which rpexplore 0\.1 reads[^\n]*$"):
        LOADED[kind](copy)


def test_another_plan_or_unit_than_that_of_the_release_is_refused(folders, tmp_path):
    for number, change in enumerate(({"plan_sha256": "0" * 64}, {"max_records_per_person": 3})):
        copy = shutil.copytree(folders / "release", tmp_path / str(number))
        edit_manifest(copy, lambda manifest, change=change: manifest.update(change))
        with pytest.raises(ReleaseError, match=f"'{next(iter(change))}' in its manifest.json"):
            rp.Release.load(copy)
