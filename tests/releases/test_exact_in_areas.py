"""Releases with exact totals in areas: these are exact, and tables of all areas add up to them."""

import json
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.errors import ReleaseError
from rpexplore.planning.areas.area_planner import plan_areas
from rpexplore.results.combination import combine
from rpexplore.results.estimates.area_counts import area_guesses, whole_area_counts
from tests.releases.area_plans import BOTH, RECORDS, SEXES, TOTAL, TREE, asked

WORKLOAD = asked(top=BOTH, region=BOTH, town=SEXES, block=TOTAL)
FRAME = pd.DataFrame(RECORDS)


EXACT: dict[str, list] = {
    "areas": ["area@town"],
    "both": ["area@region", ("sex", "age")],
    "replaced": [],
}


@cache
def plan_with(name: str) -> rp.Plan:
    budget = rp.Budget(rho="0.1", neighbours="replace", exact=EXACT[name])
    return rp.Plan.of(plan_areas(WORKLOAD, loss=rp.SumOfVariances(), budget=budget))


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "records.csv"
    FRAME.to_csv(path, index=False)
    return path


def true_counts(level: str) -> list[int]:
    """Records of the areas of a level, in the order of the tree."""
    columns = list(TREE.levels[1 : TREE.levels.index(level) + 1])
    if not columns:
        return [len(FRAME)]
    return FRAME.dropna(subset=columns).groupby(columns).size().tolist()


def sums_of_areas(areas: Any, level: str, *attributes: str) -> list[float]:
    rows, n_areas = areas.table(level, *attributes), len(true_counts(level))
    return rows["value"].to_numpy().reshape(n_areas, -1).sum(axis=1).tolist()


def test_numbers_of_records_are_exact_and_so_is_what_is_above(data, tmp_path):
    areas = rp.release(plan_with("areas"), data, tmp_path / "out").part("areas")
    for level, *names in (("all", "sex"), ("region", "sex", "age"), ("town", "sex")):
        assert sums_of_areas(areas, level, *names) == pytest.approx(true_counts(level), abs=1e-8)
    blocks = areas.table("block")
    of_towns = blocks.groupby(["region", "town"], observed=True)["value"].sum()
    in_towns = FRAME.dropna(subset=["block"]).groupby(["region", "town"]).size()
    assert of_towns.tolist() == pytest.approx(in_towns.tolist(), abs=1e-8)
    # The only block of a town has as many records as the town.
    alone = blocks[(blocks["region"] == "S") & (blocks["town"] == "1")]
    assert alone["standard_error"].tolist() == [0]
    assert alone["value"].tolist() == [((FRAME["region"] == "S") & (FRAME["town"] == "1")).sum()]
    others = blocks[blocks["town"] != "1"]
    assert np.all(others["standard_error"] > 1)
    assert np.all(areas.table("town", "sex")["standard_error"] > 1)


def test_tables_of_the_top_area_are_exact(data, tmp_path):
    folder = tmp_path / "out"
    rp.release(plan_with("both"), data, folder)
    areas = rp.Release.load(folder).part("areas")
    top = areas.table("all", "sex", "age")
    true = FRAME.groupby(["sex", "age"]).size()
    assert top["value"].tolist() == true.tolist()
    assert set(top["standard_error"]) == {0}
    regions = areas.table("region", "sex", "age")
    by_region = regions["value"].to_numpy().reshape(3, 6)
    assert by_region.sum(axis=0) == pytest.approx(true.tolist(), abs=1e-8)
    assert by_region.sum(axis=1) == pytest.approx(true_counts("region"), abs=1e-8)
    assert np.all(regions["standard_error"] > 1)
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["exact_totals"] == [["age", "sex"], ["area@region"]]
    assert "area@region" in (folder / "README.md").read_text()


def test_where_records_are_replaced_the_number_of_all_is_exact_and_stays_so_combined(
    data, tmp_path
):
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        areas = rp.release(plan_with("replaced"), data, folder).part("areas")
        assert sums_of_areas(areas, "all", "sex") == pytest.approx([300], abs=1e-9)
        assert not np.array_equal(sums_of_areas(areas, "region", "sex"), true_counts("region"))
    releases = [rp.Release.load(folder).part("areas") for folder in folders]
    both, alone = combine(*releases).part("areas"), releases[0]
    assert sums_of_areas(both, "all", "sex") == pytest.approx([300], abs=1e-9)
    ratio = (
        both.table("region", "sex")["standard_error"]
        / (alone.table("region", "sex")["standard_error"])
    )
    assert ratio.tolist() == pytest.approx([0.5**0.5] * len(ratio))


@pytest.mark.parametrize("make", [whole_area_counts, area_guesses], ids=["whole", "guesses"])
@pytest.mark.parametrize("name", ["areas", "both"])
def test_whole_counts_keep_what_is_exact(name, make, data, tmp_path):
    release = rp.release(plan_with(name), data, tmp_path / "out")
    whole = make(release, tmp_path / "whole")
    for level in ("all", "region", "town") if name == "areas" else ("all", "region"):
        assert sums_of_areas(whole, level, "sex") == true_counts(level)
    if name == "both":
        true = FRAME.groupby(["sex", "age"]).size().tolist()
        assert whole.table("all", "sex", "age")["value"].tolist() == true
    with pytest.raises(ReleaseError, match=r"is 299, and the release has 300 records there"):
        make(release, tmp_path / "other", totals={0: 299})


@pytest.mark.parametrize("make", [whole_area_counts, area_guesses], ids=["whole", "guesses"])
def test_whole_counts_keep_a_table_of_the_top_beside_others(make, tmp_path):
    rng = np.random.default_rng(4)
    tree = rp.AreaTree.from_columns({"region": [*"NSW"]})
    domain = rp.Domain.from_sizes({"sex": 2, "age": 3, "work": 4})
    tables = rp.Workload.all_up_to(domain, 2)
    workload = rp.AreaWorkload.of_levels(tree, dict.fromkeys(tree.levels, tables))
    budget = rp.Budget(rho="0.01", exact=[("age", "work"), "area@region"])
    plan = rp.Plan.of(plan_areas(workload, loss=rp.SumOfVariances(), budget=budget))
    records = pd.DataFrame(rng.integers(0, (2, 3, 4), (60, 3)), columns=domain.names)
    records["region"] = [[*"NSW"][place] for place in rng.integers(0, 3, 60)]
    records.to_csv(tmp_path / "records.csv", index=False)
    release = rp.release(plan, tmp_path / "records.csv", tmp_path / "out")
    whole: Any = make(release, tmp_path / "whole")
    found = whole.table("all", "age", "work")["value"].to_numpy()
    counts = np.zeros((3, 4), dtype=int)
    np.add.at(counts, (records["age"], records["work"]), 1)
    assert found.reshape(3, 4).tolist() == counts.tolist()
    of_regions = whole.table("region")["value"].tolist()
    assert of_regions == records.groupby("region").size().tolist()
