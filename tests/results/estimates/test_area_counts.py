"""Whole counts of a release of tables in areas, and sums over lists of areas."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.domain.result_schema import IMPOSSIBLE_NOTE
from rpexplore.errors import DomainError, ReleaseError
from rpexplore.planning.areas.area_planner import plan_areas
from rpexplore.releases import area_parts
from rpexplore.results.estimates.area_cells import why_no_whole_counts
from rpexplore.results.estimates.area_counts import AreaCounts, area_guesses, whole_area_counts
from tests.releases.area_plans import OTHERS, PLANS, RECORDS, TREE, asked


@pytest.fixture(params=[8, None], ids=["in parts", "at once"])
def released(tmp_path, monkeypatch, request):
    """The release of a plan."""
    if request.param:
        monkeypatch.setattr(area_parts, "PART_NUMBERS", request.param)

    def release(plan):
        data = tmp_path / "records.csv"
        pd.DataFrame(RECORDS).to_csv(data, index=False)
        done = rp.release(plan, data, tmp_path / "release", count_impossible=True)
        return done.part("areas")

    return release


def cells_of_areas(tables, plan, column="value"):
    """Table -> area by its number -> its cells."""
    found = {}
    for level, attributes in plan.accuracy()[["level", "attributes"]].itertuples(index=False):
        table = tables.table(level, *attributes)
        codes = table[list(TREE.levels[1 : TREE.levels.index(level) + 1])]
        areas = [TREE.find(path) for path in codes.itertuples(index=False)]
        own = table[column].groupby(np.array(areas)).agg(list)
        found.setdefault(attributes, {}).update(own.to_dict())
    return found


@pytest.mark.by_day(1)
@pytest.mark.parametrize("name", ["the same", "less further down", "none below"])
def test_counts_are_whole_and_add_up_beside_the_unbiased_ones(released, tmp_path, name):
    plan = PLANS[name]
    release = released(plan)
    whole_area_counts(release, tmp_path / "counts")
    counts = AreaCounts.load(tmp_path / "counts")

    cells = cells_of_areas(counts, plan)
    assert cells_of_areas(counts, plan, "unbiased_value") == cells_of_areas(release, plan)
    totals = {}
    for of_areas in cells.values():
        for area, own in of_areas.items():
            assert min(own) >= 0
            assert all(value == int(value) for value in own)
            assert totals.setdefault(area, sum(own)) == sum(own)  # tables agree
            parts = np.flatnonzero(TREE.parents == area).tolist()
            if parts and set(parts) <= of_areas.keys():
                assert np.sum([of_areas[part] for part in parts], axis=0).tolist() == own
    for area, total in totals.items():
        parts = np.flatnonzero(TREE.parents == area).tolist()
        if parts and set(parts) <= totals.keys():
            assert sum(totals[part] for part in parts) == total
    text = (tmp_path / "counts" / "README.md").read_text()
    assert "biased" in text
    assert "publicly known" not in text
    assert list(counts.table("region", "sex")["value_is"].unique()) == [counts.manifest["label"]]


@pytest.mark.by_day(1)
@pytest.mark.parametrize("base", [3, pytest.param(10, marks=pytest.mark.nightly)])
def test_multiples_of_a_base_add_up_over_areas_and_tables(released, tmp_path, base):
    plan = PLANS["the same"]
    release = released(plan)
    counts = rp.postprocess(
        release, tmp_path / "counts", method="nonnegative", rounded=base, in_areas=True
    )
    assert counts.label.startswith(f"multiples of {base}, nonnegative")
    cells = cells_of_areas(AreaCounts.load(tmp_path / "counts"), plan)
    totals = {}
    for of_areas in cells.values():
        for area, own in of_areas.items():
            assert min(own) >= 0
            assert not np.any(np.array(own) % base)
            assert totals.setdefault(area, sum(own)) == sum(own)
    for area, total in totals.items():
        parts = [totals[part] for part in np.flatnonzero(TREE.parents == area) if part in totals]
        assert not parts or sum(parts) == total
    noisy = cells_of_areas(release, plan)
    of_top = next(own[0] for own in noisy.values() if 0 in own)
    assert abs(totals[0] - sum(of_top)) <= base / 2 + 1e-9  # the nearest multiple
    with pytest.raises(ReleaseError, match="no multiple of 7"):
        whole_area_counts(release, tmp_path / "no", totals={0: 20}, base=7)
    with pytest.raises(ReleaseError, match="must be a whole number of 1 or more, got 0"):
        whole_area_counts(release, tmp_path / "no", base=0)


def test_known_totals_and_impossible_combinations_are_met(released, tmp_path):
    stated = rp.Domain(OTHERS.attributes, impossible=({"sex": "0", "age": "1"},))
    both = rp.Workload.of(stated, [("sex", "age"), ("sex",)])
    plan = plan_areas(
        asked(top=both, region=both, town=both), loss=rp.SumOfVariances(), budget=rp.Budget(rho=1)
    )
    release = released(plan)
    known = {0: 300, "N": 170, ("S",): 100, "W": 30}

    counts = whole_area_counts(release, tmp_path / "counts", totals=known)

    table = counts.table("region", "sex", "age")
    assert table.groupby("region", observed=True)["value"].sum().to_dict() == {
        "N": 170, "S": 100, "W": 30,
    }  # fmt: skip
    for level in ("region", "town"):
        cells = counts.table(level, "sex", "age")
        impossible = cells.iloc[1::6]  # sex 0, age 1 of three
        assert impossible["value"].eq(0).all()
        assert cells["note"].eq(IMPOSSIBLE_NOTE).tolist() == [k % 6 == 1 for k in range(len(cells))]
        assert not impossible["unbiased_value"].eq(0).all()
    guesses = area_guesses(release, tmp_path / "guesses")
    for level in ("region", "town"):
        cells = guesses.table(level, "sex", "age")
        errors = cells["model_error"].to_numpy()
        assert cells["value"].iloc[1::6].eq(0).all()
        assert (errors == 0).tolist() == [k % 6 == 1 for k in range(len(cells))]
    text = (tmp_path / "counts" / "README.md").read_text()
    assert "4 areas were taken as publicly known. They are not protected" in text
    with pytest.raises(ReleaseError, match="all is not the sum of those of its parts"):
        whole_area_counts(release, tmp_path / "no", totals=known | {0: 299})
    with pytest.raises(DomainError, match="code 'X', but no area has it"):
        whole_area_counts(release, tmp_path / "no", totals={"X": 1})


def test_areas_without_an_answer_to_their_total_are_refused(released, tmp_path):
    with pytest.raises(ReleaseError, match=r"down to the level block, but .* some have none"):
        whole_area_counts(released(PLANS["some areas"]), tmp_path / "counts")
    # Known from the plan, before anything is spent.
    assert "down to the level block" in why_no_whole_counts(PLANS["some areas"])
    assert not why_no_whole_counts(PLANS["the same"])


@pytest.mark.by_day(1)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give method="),
        ({"method": "nonnegative", "rounded": False}, "rounded=False does not go with nonnegative"),
        ({"method": "nonnegative", "gap": 0.1}, "gap does not go with"),
        ({"method": "smooth", "rounded": 5}, "rounded does not go with smooth tables in areas"),
        ({"method": "smooth", "escape_formulas": True}, "escape_formulas does not go"),
    ],
)
def test_tables_in_areas_refuse_options_that_they_do_not_have(tmp_path, options, message):
    tables: Any = None  # nothing is read of them
    with pytest.raises(ReleaseError, match=message):
        rp.postprocess(tables, tmp_path / "no", in_areas=True, **options)
    with pytest.raises(ReleaseError, match="leave rows, never"):
        rp.synthesize(tables, tmp_path / "no", in_areas=True, rows=3)


def test_sums_of_areas_are_those_of_the_released_tables(released):
    plan = PLANS["less further down"]
    release = released(plan)
    cells = cells_of_areas(release, plan)
    lists = {"district": [("N", "1"), "S"], "South": ["S"], "all": [0]}

    found = release.sums_of_areas(lists, "sex")

    values = found.groupby("list", sort=False)["value"].agg(list)
    town, south = (np.array(cells["sex",][TREE.find(path)]) for path in (["N", "1"], ["S"]))
    np.testing.assert_allclose(values["district"], town + south)
    np.testing.assert_allclose(values["South"], south)
    np.testing.assert_allclose(values["all"], cells["sex",][0])
    errors = found.groupby("list", sort=False)["standard_error"].first()
    planned = plan.accuracy_of_sums(lists, [["sex"]]).set_index("list")["standard_error"]
    assert errors.to_dict() == planned.to_dict()
    whole = release.table("region", "sex", within=["S"])
    of_south = found[found["list"] == "South"].reset_index(drop=True)
    shared = ["sex", "value", "standard_error", "lower_95", "upper_95"]
    pd.testing.assert_frame_equal(
        of_south[shared], whole[shared].reset_index(drop=True), check_dtype=False,
        check_categorical=False,
    )  # fmt: skip
    with pytest.raises(ReleaseError, match=r"'x' has an area for which the table \(sex, age\) was"):
        release.sums_of_areas({"x": [("N", "1")]}, "sex", "age")
