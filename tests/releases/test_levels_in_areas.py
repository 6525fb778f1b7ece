"""Releases of tables in areas with an attribute at several levels."""

from functools import cache

import numpy as np
import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.errors import ReleaseError, WorkloadError
from rpexplore.releases import area_measurement, area_parts
from rpexplore.results.area_results import AreaResults

AGES = {
    "name": "age",
    "constraints": {"minimum": 0, "maximum": 7},
    "levels": {
        "few": ["a", "a", "b", "c", "c", "c", "d", "d"],
        "two": "0-2, 3-7",
        "odd": "0-3, 4-7",
    },
}
SEXES = {"name": "sex", "constraints": {"enum": ["f", "m"]}}
DOMAIN = rp.Domain.from_schema({"fields": [AGES, SEXES]}).with_levels
TREE = rp.AreaTree.from_columns({"region": [*"NNS"], "town": [*"121"]})
RANDOM = np.random.default_rng(3)
RECORDS = pd.DataFrame({"place": RANDOM.integers(0, 3, 200), "age": RANDOM.integers(0, 8, 200)})
RECORDS["sex"] = RANDOM.choice(["f", "m"], 200)
RECORDS["region"] = np.array(["N", "N", "S"])[RECORDS["place"]]
RECORDS["town"] = np.array(["1", "2", "1"])[RECORDS.pop("place")]


@cache
def planned() -> rp.Plan:
    towns = rp.Workload.of(DOMAIN, [("age@two",), ("sex", "age@odd")])
    regions = rp.Workload.of(DOMAIN, [("age", "sex"), ("age@few",)])
    asked = rp.AreaWorkload.of_levels(TREE, {"all": regions, "region": regions, "town": towns})
    return rp.plan(asked, loss=rp.SumOfVariances(), budget=rp.Budget(rho=5))


@pytest.fixture
def no_noise(monkeypatch):
    nothing = lambda size, _: np.zeros(size, dtype=np.int64)  # noqa: E731
    monkeypatch.setattr(area_measurement, "discrete_gaussian", nothing)
    for constant, value in {"PART_NUMBERS": 8, "PART_CELLS": 1}.items():
        monkeypatch.setattr(area_parts, constant, value)


@pytest.mark.usefixtures("no_noise")
def test_without_noise_every_table_is_that_of_the_records(tmp_path):
    release = rp.release(planned(), RECORDS, tmp_path / "out", name="x", ledger=tmp_path / "ledger")
    areas = release.part("areas")
    ages = RECORDS["age"].to_numpy()
    of_levels = {
        "age": ages.astype(str),
        "age@few": np.array(list("aabcccdd"))[ages],
        "age@two": np.where(ages < 3, "0-2", "3-7"),
        "age@odd": np.where(ages < 4, "0-3", "4-7"),
    }
    records = RECORDS.assign(**of_levels)
    for level, tables in {
        "region": [["age", "sex"], ["age@few"]],
        "town": [["age@two"], ["sex", "age@odd"]],
    }.items():
        keys = list(TREE.levels[1 : 1 + TREE.levels.index(level)])
        for attributes in tables:
            table = areas.table(level, *attributes).astype(dict.fromkeys(attributes, str))
            counts = records.groupby([*keys, *attributes]).size()
            found = table.set_index([*keys, *attributes])["value"]
            expected = counts.reindex(found.index, fill_value=0)
            np.testing.assert_allclose(found, expected, atol=1e-8)


def test_releases_at_the_same_levels_are_averaged(tmp_path):
    parts = [
        rp.release(planned(), RECORDS, tmp_path / name, name="x", ledger=tmp_path / "ledger").part(
            "areas"
        )
        for name in ("one", "other")
    ]
    combined = rp.combine(*parts).part("areas")
    for level, *attributes in (("region", "age", "sex"), ("town", "sex", "age@odd")):
        tables = [part.table(level, *attributes) for part in parts]
        found = combined.table(level, *attributes)
        mean = (tables[0]["value"] + tables[1]["value"]) / 2
        np.testing.assert_allclose(found["value"], mean, atol=1e-9)
        errors = tables[0]["standard_error"] / np.sqrt(2)
        np.testing.assert_allclose(found["standard_error"], errors, rtol=1e-9)


def released_with(tables: list[tuple[str, ...]], folder, domain=DOMAIN):
    asked = dict.fromkeys(TREE.levels, rp.Workload.of(domain, tables))
    asked = rp.AreaWorkload.of_levels(TREE, asked)
    plan = rp.plan(asked, loss=rp.SumOfVariances(), budget=rp.Budget(rho=5))
    release = rp.release(plan, RECORDS, folder, name="x", ledger=folder.parent / "ledger")
    return release.part("areas")


def test_releases_at_other_levels_are_not_averaged(tmp_path):
    two = released_with([("age@two",)], tmp_path / "two")
    odd = released_with([("age@odd",)], tmp_path / "odd")  # as many groups
    with pytest.raises(ReleaseError, match=r"'age' at other levels than all .*age@two, age@odd"):
        rp.combine(two, odd)
    fields = [AGES | {"levels": {"two": "0-3, 4-7"}}, SEXES]
    others = rp.Domain.from_schema({"fields": fields}).with_levels
    other = released_with([("age@two",)], tmp_path / "others", others)
    with pytest.raises(ReleaseError, match="'age@two' has other groups for 'others'"):
        rp.combine(two, other)


def test_levels_are_averaged_in_whatever_order_releases_have_them(tmp_path):
    fields = [AGES, SEXES | {"constraints": {"enum": [*"fmx"]}, "levels": {"f": [*"fff"]}}]
    fields[1]["levels"]["f"] = ["f", "other", "other"]
    domain = rp.Domain.from_schema({"fields": fields}).with_levels
    # A codebook that knows no levels of ages, which are those behind the others then.
    plain = rp.Domain.from_schema({"fields": [AGES | {"levels": {}}, fields[1]]}).with_levels
    one = released_with([("sex@f",)], tmp_path / "one", plain)
    both = released_with([("age@few", "sex@f")], tmp_path / "both", domain)
    combined = rp.combine(one, both).part("areas")
    names = [combined.domain.names[index] for index in combined.plan.workload.tables.used]
    assert names == ["sex@f", "age@few"]
    pairs = both.table("town", "age@few", "sex@f").set_index(["town", "region", "age@few", "sex@f"])
    found = combined.table("town", "sex@f", "age@few").set_index(pairs.index.names)
    # What both know alike of sexes alone moves all ages, each by as much.
    apart = (found["value"] - pairs["value"]).unstack("age@few").to_numpy(float)
    np.testing.assert_allclose(apart, np.repeat(apart[:, :1], 4, axis=1), atol=1e-9)
    assert np.abs(apart).max() > 1e-3
    sexes = [part.table("town", "sex@f")["value"].to_numpy() for part in (one, combined)]
    assert np.abs(sexes[0] - sexes[1]).max() < 3


def test_an_area_has_its_tables_at_every_level_with_their_errors(tmp_path):
    release = rp.release(planned(), RECORDS, tmp_path / "out", name="x", ledger=tmp_path / "ledger")
    results = AreaResults(release.part("areas"))
    for path, *attributes in ((["S"], "age@few"), (["S", "1"], "sex", "age@odd")):
        area = results.of_area(TREE.find(path))
        level = TREE.levels[len(path)]
        table = results.release.table(level, *attributes, within=path)
        own = area.counts(*attributes)
        np.testing.assert_allclose(own["value"], table["value"], atol=1e-8)
        np.testing.assert_allclose(own["standard_error"], table["standard_error"], rtol=1e-9)
    # Ages 0 and 1 together are the group "a", as accurately, whichever table is asked.
    south = results.of_area(TREE.find(["S"]))
    whole = south.answer("age", "sex", where={"age": ["0..1"]})
    group = south.answer("age@few", where={"age@few": "a"})
    assert whole.value == pytest.approx(group.value)
    assert whole.standard_error == pytest.approx(group.standard_error, rel=1e-9)
    # A town has ages at levels alone, which tell some ranges of ages.
    town = results.of_area(TREE.find(["S", "1"]))
    adults = town.answer(where={"age": "4..7", "sex": "f"})
    assert adults == town.answer(where={"age@odd": "4-7", "sex": "f"})
    with pytest.raises(WorkloadError, match=r"age=0\.\.3 \(of age@odd\)"):
        town.answer(where={"age": "0..4", "sex": "f"})
