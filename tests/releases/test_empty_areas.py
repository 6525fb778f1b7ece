"""Areas that are known to have nobody: exactly 0 in everything that is made of a release."""

import json
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.data.engines.connections import Connection
from rpexplore.data.engines.source import DatabaseSource
from rpexplore.errors import DataError
from rpexplore.releases import area_parts
from rpexplore.releases.area_release import AreaRelease
from rpexplore.results.combination import load_combined, write_combined
from rpexplore.results.estimates.area_counts import AreaCounts, area_guesses, whole_area_counts
from rpexplore.results.formats.publishing import publish
from rpexplore.results.publication import Publication

NOTE = "empty by the list of areas: exactly 0, without noise"
SEX = rp.Domain((rp.Attribute("sex", rp.Categories(("f", "m"))),))
TABLES = rp.Workload.of(SEX, [("sex",), ()])
ROWS = [("N", "1"), ("N", "2"), ("S", "1"), ("S", "3"), ("E", "1")]
COLUMNS = {"region": [row[0] for row in ROWS], "town": [row[1] for row in ROWS]}
TREE = rp.AreaTree.from_columns(COLUMNS, empty=[False, False, False, True, True])
BARE = rp.AreaTree.from_columns({name: column[:3] for name, column in COLUMNS.items()})


def planned(tree) -> rp.Plan:
    areas = rp.AreaWorkload.of_levels(tree, dict.fromkeys(tree.levels, TABLES))
    return rp.plan(rp.Request(areas=areas, budget=rp.Budget(rho=1)))


PLAN = planned(TREE)


@pytest.fixture
def data(tmp_path) -> Path:
    rows = [(*ROWS[place % 3], "fm"[place % 2]) for place in range(60)]
    path = tmp_path / "data" / "records.csv"
    path.parent.mkdir()
    pd.DataFrame(rows, columns=["region", "town", "sex"]).to_csv(path, index=False)
    return path


def test_the_plan_is_that_of_the_other_areas(tmp_path):
    bare = planned(BARE)
    assert PLAN.rho == bare.rho
    assert PLAN.part("areas").loss_value == bare.part("areas").loss_value
    PLAN.save(tmp_path / "plan.json")
    loaded = rp.Plan.load(tmp_path / "plan.json")
    assert loaded.sha256 == PLAN.sha256 != bare.sha256
    assert rp.verify(loaded).holds
    assert "3 areas (1 on region and 2 on town) are stated to be empty" in str(loaded)


@pytest.mark.by_day(1)
@pytest.mark.parametrize("in_parts", [False, True])
def test_they_are_exactly_0_in_every_table(in_parts, data, output, monkeypatch):
    if in_parts:
        monkeypatch.setattr(area_parts, "PART_NUMBERS", 4)
        monkeypatch.setattr(area_parts, "PART_CELLS", 1)
    rp.release(PLAN, data, output)
    areas = AreaRelease.load(output)
    towns = areas.table("town", "sex")
    assert towns[["region", "town"]].drop_duplicates().to_numpy().tolist() == list(map(list, ROWS))
    empty = towns[6:]
    assert not empty[["value", "standard_error", "lower_95", "upper_95"]].to_numpy().any()
    assert set(empty["note"]) == {NOTE}
    assert set(towns[:6]["note"]) == {""}
    assert (towns[:6]["standard_error"] > 0).all()
    assert areas.table("region")["region"].tolist() == ["N", "S", "E"]
    assert areas.table("town", within="S")["town"].tolist() == ["1", "3"]
    # They have no noise: in their region all else is known as well as the region.
    regions = areas.table("region").set_index("region")
    assert towns_of(areas)["S", "1"] == pytest.approx(regions["value"]["S"])
    assert "3 areas (1 on region" in (output / "README.md").read_text()
    assert [item.read().num_rows for item in areas.items] == [item.n_rows for item in areas.items]
    assert [item.n_rows for item in areas.items if item.level == "town"] == [5, 10]
    published = Publication(leave_empty=True).table(towns)
    assert published["publishable"][6:].tolist() == ["yes"] * 4
    assert published["value"][6:].tolist() == [0.0] * 4
    sums = areas.sums_of_areas({"both": [("S", "1"), ("S", "3")]})
    assert sums["value"].item() == towns_of(areas)["S", "1"]
    publish(output, output.parent / "export", formats=["frictionless", "csvw"])
    csv = pd.read_csv(next((output.parent / "export" / "tables").glob("2_town*total.csv")))
    assert csv["value"][3:].tolist() == [0, 0]


def towns_of(areas) -> pd.Series:
    return areas.table("town").set_index(["region", "town"])["value"]


def test_they_are_0_in_whole_counts_which_add_up_without_them(data, output, tmp_path):
    done = rp.release(PLAN, data, output)
    known = {"all": 60, "N": 40, "S": 20, ("E",): 0}
    whole_area_counts(done, tmp_path / "whole", totals=known)
    whole = AreaCounts.load(tmp_path / "whole")
    towns = whole.table("town", "sex")
    assert towns.groupby("region", observed=True)["value"].sum().to_dict() == {
        "N": 40, "S": 20, "E": 0,
    }  # fmt: skip
    assert not towns[6:][["value", "unbiased_value", "standard_error"]].to_numpy().any()
    assert set(towns[6:]["note"]) == {NOTE}
    assert "are stated to be empty" in (tmp_path / "whole" / "README.md").read_text()
    with pytest.raises(rp.errors.RpexploreError, match="E is stated to be empty"):
        whole_area_counts(done, tmp_path / "more", totals={**known, ("E",): 1})


def test_they_are_0_in_best_guesses_which_are_read_and_published(data, output, tmp_path):
    guesses = area_guesses(rp.release(PLAN, data, output), output.parent / "guesses")
    towns = guesses.table("town", "sex")
    assert towns[["region", "town"]].drop_duplicates().to_numpy().tolist() == list(map(list, ROWS))
    assert not towns[6:][["value", "model_error", "unbiased_value"]].to_numpy().any()
    publish(output.parent / "guesses", tmp_path / "export")
    csv = pd.read_csv(next((tmp_path / "export" / "tables").glob("2_town*sex.csv")))
    assert csv["model_error"][6:].tolist() == [0] * 4


def test_they_are_0_in_what_is_combined(data, output, tmp_path):
    one, two = rp.release(PLAN, data, output), rp.release(PLAN, data, tmp_path / "two")
    write_combined(rp.combine(one, two), tmp_path / "both")
    both = load_combined(tmp_path / "both")
    assert len(list((tmp_path / "both").rglob("empty.parquet"))) == 4
    towns = both.part("areas").table("town", "sex")
    assert not towns[6:][["value", "standard_error", "lower_95", "upper_95"]].to_numpy().any()
    assert set(towns[6:]["note"]) == {NOTE}
    assert [item.read().num_rows for item in both.items] == [item.n_rows for item in both.items]
    assert "are stated to be empty" in (tmp_path / "both" / "README.md").read_text()
    whole_area_counts(both, tmp_path / "whole")
    whole = AreaCounts.load(tmp_path / "whole").table("town", "sex")
    assert not whole[6:][["value", "unbiased_value"]].to_numpy().any()
    bare = rp.release(planned(BARE), data, tmp_path / "bare")
    with pytest.raises(rp.errors.RpexploreError, match="'release' and 'bare' have tables in diff"):
        rp.combine(one, bare)


def test_a_file_of_them_that_was_changed_is_refused(data, output):
    rp.release(PLAN, data, output)
    path = next(output.rglob("empty.parquet"))
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(rp.errors.RpexploreError, match=r"empty\.parquet.*was changed"):
        rp.Release.load(output)


def test_a_run_that_was_stopped_is_finished_with_them(data, output):
    def stop(doing: str, share: float) -> None:
        if doing == "Writing the release":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rp.release(PLAN, data, output, on_progress=stop)
    assert len(rp.resume(output).part("areas").table("town")) == 5


@pytest.mark.parametrize("columns", [["region", "town", "sex"], ["town", "sex"]])
@pytest.mark.parametrize("kind", ["csv", "frame", "duckdb"])
def test_records_in_them_are_refused_before_anything_is_spent(kind, columns, data, output):
    """Town 3 is in South alone. Town 1 is also in East, so that towns alone do not tell."""
    frame = pd.read_csv(data, dtype=str)
    frame.loc[0] = ["S", "3", "f"]
    tree = rp.AreaTree.from_columns(
        {"region": list("NNSS"), "town": list("1243")}, empty=[False] * 3 + [True]
    )
    frame.loc[frame["region"] == "S", "town"] = "4"
    frame.loc[0, "town"] = "3"
    options, source = {}, frame[columns]
    if kind == "csv":
        source.to_csv(data, index=False)
        source = data
    elif kind == "duckdb":
        with duckdb.connect(str(data.with_suffix(".duckdb"))) as database:
            database.execute("CREATE TABLE people AS SELECT * FROM source")
        connection = Connection("db", f"duckdb://{data.with_suffix('.duckdb')}")
        source = DatabaseSource(connection, "people")
    else:
        options = {"name": "people", "ledger": data.with_name("ledger.sqlite")}
    with pytest.raises(DataError, match="or that of an area stated to be empty"):
        rp.release(planned(tree), source, output, **options)
    assert not output.exists()


def test_an_empty_area_with_the_code_of_another_one_is_not_taken_for_it(data, output):
    """Town 1 is in North, and in East, which is empty: town 1 alone may be either."""
    frame = pd.read_csv(data, dtype=str)[["town", "sex"]]
    frame["town"] = np.where(frame["town"] == "1", "1", "2")
    frame.to_csv(data, index=False)
    tree = rp.AreaTree.from_columns(
        {"region": list("NNE"), "town": list("121")}, empty=[False, False, True]
    )
    with pytest.raises(DataError, match="no column 'region'"):
        rp.dry_run(planned(tree), data, output)
    tree = rp.AreaTree.from_columns(  # a region with the code of a town is no matter
        {"region": list("NN1"), "town": list("123")}, empty=[False, False, True]
    )
    assert rp.dry_run(planned(tree), data, output)


def test_manifests_list_their_files_like_others(data, output):
    rp.release(PLAN, data, output)
    manifest = json.loads((output / "manifest.json").read_text())
    listed = [entry for entry in manifest["files"] if entry["path"].endswith("empty.parquet")]
    assert sorted(entry["attributes"] for entry in listed) == [[], [], ["sex"], ["sex"]]
