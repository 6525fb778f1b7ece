"""Releases of sums, means and weighted counts in areas: exact, in the unit of the amounts."""

import dataclasses
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.data.source import Counts
from rpexplore.errors import PlanError, ReleaseError, WorkloadError
from rpexplore.releases import area_measurement, area_parts
from rpexplore.releases.area_parts import AreaParts
from rpexplore.releases.measurement import check_ranges
from rpexplore.results.area_results import AreaResults
from rpexplore.results.estimates.area_counts import area_guesses, whole_area_counts
from rpexplore.results.formats.crosstab import crosstab

INCOME = rp.Amounts("-0.5", "99.5", decimals=1, unit="EUR", missing=(("", "not stated"),))
WEIGHT = rp.Amounts(0, 4, 1, are_weights=True)
DOMAIN = rp.Domain(
    (
        rp.Attribute("sex", rp.Categories(("F", "M"))),
        rp.Attribute("income", INCOME),
        rp.Attribute("w", WEIGHT),
    )
)
TREE = rp.AreaTree.from_columns({"region": [*"NNS"], "town": [*"121"]})
RECORDS = pd.DataFrame(
    {
        "region": [*"NNNNSSN"],
        "town": [*"1112112"],
        "sex": [*"FFMFFMM"],
        # Clamped to 99.5; rounded half to even to 10.2; missing; clamped to −0.5.
        "income": [250.0, 10.25, None, -7.0, 3.5, 42.0, 1.0],
        "w": [1.0, 2.5, 9.0, 0.5, 1.0, 2.0, 3.0],
    }
)
TABLES = rp.Workload.of(DOMAIN, [("sex", "income"), ("sex",), ("income",)])


def planned(tables=TABLES, rho="500", tree=TREE):
    asked = rp.AreaWorkload.of_levels(tree, dict.fromkeys(tree.levels, tables))
    return rp.plan(asked, loss=rp.SumOfVariances(), budget=rp.Budget(rho=rho))


def released(plan, tmp_path: Path, name: str = "out"):
    return rp.release(plan, RECORDS, tmp_path / name, name="made up", ledger=tmp_path / "ledger")


@pytest.fixture
def no_noise(monkeypatch):
    nothing = lambda size, _: np.zeros(size, dtype=np.int64)  # noqa: E731
    monkeypatch.setattr(area_measurement, "discrete_gaussian", nothing)
    for constant, value in {"PART_NUMBERS": 8, "PART_CELLS": 1}.items():
        monkeypatch.setattr(area_parts, constant, value)


@pytest.mark.usefixtures("no_noise")
def test_without_noise_sums_are_those_of_the_clamped_amounts(tmp_path):
    areas = released(planned(), tmp_path).part("areas")
    table = areas.table("town", "sex", "income")
    by_row = table.pivot(index=["region", "town", "sex"], columns="income", values="value")
    # N 1: 99.5 + 10.2 by F, one of M not stated; N 2: −0.5 and 1; S 1: 3.5 and 42.
    np.testing.assert_allclose(by_row["sum (EUR)"], [109.7, 0, -0.5, 1, 3.5, 42], atol=1e-8)
    np.testing.assert_allclose(by_row["records"], [2, 0, 1, 1, 1, 1], atol=1e-8)
    np.testing.assert_allclose(by_row["not stated"], [0, 1, 0, 0, 0, 0], atol=1e-8)
    regions = areas.table("region", "income").set_index(["region", "income"])["value"]
    assert regions["N"].to_dict() == pytest.approx(
        {"sum (EUR)": 110.2, "records": 4, "not stated": 1}
    )
    np.testing.assert_allclose(areas.table("all", "sex")["value"], [4, 3], atol=1e-8)
    means = areas.means("town", "sex", "income", within=("N", "1"))
    assert means["value"].tolist() == pytest.approx([54.85, np.nan], nan_ok=True)
    assert means["income"].tolist() == ["mean (EUR)"] * 2
    with pytest.raises(WorkloadError, match="no means of"):
        areas.means("town", "sex")
    assert "those above 99.5 EUR as 99.5" in areas.clamping_of(["sex", "income"])


def test_the_mean_of_a_query_is_told_in_each_area(tmp_path):
    many = pd.concat([RECORDS] * 40, ignore_index=True)
    release = rp.release(planned(), many, tmp_path / "out", name="m", ledger=tmp_path / "ledger")
    results = AreaResults(release.part("areas"))
    towns = results.side_by_side(2, results.within(0, 2))
    means = release.part("areas").means("town", "sex", "income")
    of_women = means.query("sex == 'F'").reset_index()
    answers = towns.answers(where={"sex": "F", "income": "mean"})
    figures = ["value", "standard_error", "lower_95", "upper_95"]
    expected = of_women[figures].to_numpy(float)
    np.testing.assert_allclose(answers[figures].to_numpy(float), expected, rtol=1e-9)
    # All together: what all sums have over all records.
    top = results.of_area(0)
    total = release.part("areas").table("all", "income").set_index("income")["value"]
    answer = top.answer(where={"income": "mean"})
    assert answer.value == pytest.approx(total["sum (EUR)"] / total["records"])
    assert answer.lower_95 < answer.value < answer.upper_95
    with pytest.raises(ReleaseError, match="are too few for a mean in"):
        # Nobody in N 1 is a man whose income is known.
        results.of_area(TREE.find(["N", "1"])).answer(where={"income": "mean", "sex": "M"})
    men = towns.answers(where={"income": "mean", "sex": "M"})
    assert men["value"].isna().tolist() == [True, False, False]


@pytest.mark.usefixtures("no_noise")
def test_weighted_sums_and_counts_are_those_of_clamped_weights(tmp_path):
    plan = planned(TABLES.weighted_by("w", unweighted=[["sex"]]))
    areas = released(plan, tmp_path).part("areas")
    rows = areas.table("region", "sex", "income", "w").set_index(["region", "sex", "income"])[
        "value"
    ]
    # 99.5 · 1 + 10.2 · 2.5 − 0.5 · 0.5, the last −0.2 in tenths, halves up; weights of those with
    # an income 1 + 2.5 + 0.5.
    assert rows["N", "F", "sum (EUR)"] == pytest.approx(124.8)
    assert rows["N", "F", "records"] == pytest.approx(4)
    assert rows["N", "M", "not stated"] == pytest.approx(4)  # 9, clamped
    mean = areas.means("region", "sex", "income", "w", within="N")
    assert mean["value"][0] == pytest.approx(124.8 / 4)
    np.testing.assert_allclose(areas.table("all", "sex")["value"], [4, 3], atol=1e-8)


def test_one_area_and_areas_side_by_side_are_looked_at_as_any_results(tmp_path):
    results = AreaResults(released(planned(), tmp_path).part("areas"))
    south = results.of_area(TREE.find(["S"]))
    assert south.has(["sex"])
    assert not south.has(["w"])
    own = results.release.table("region", "sex", "income", within="S")
    # The sum of both sexes, and its error: of independent and shared measurements alike.
    both = south.answer("sex", "income", where={"income": "sum"})
    assert both.value == pytest.approx(own[own["income"] == "sum (EUR)"]["value"].sum())
    whole = results.release.table("region", "income", within="S")
    assert both.value == pytest.approx(whole["value"][0])
    assert both.standard_error == pytest.approx(whole["standard_error"][0])
    np.testing.assert_allclose(south.counts("income")["value"], whole["value"])
    np.testing.assert_allclose(south.counts("income")["standard_error"], whole["standard_error"])
    shown = crosstab(south, ["sex", "income"])
    np.testing.assert_allclose(shown.values.ravel(), own["value"], atol=1e-6)
    np.testing.assert_allclose(shown.errors.ravel(), own["standard_error"])
    assert south.means_of(["sex", "income"])["income"].unique().tolist() == ["mean (EUR)"]
    assert south.means_of(["sex"]) is None
    towns = results.side_by_side(2, TREE.level_slice(2))
    assert len(towns.means_of(["town", "sex", "income"])) == 6
    sums = results.release.sums_of_areas({"both": [["N"], ["S"]]}, "sex", "income")
    top = results.release.table("all", "sex", "income")
    np.testing.assert_allclose(sums["value"], top["value"], atol=1e-6)


def test_clamping_is_said_beside_every_sum_and_in_the_readme(tmp_path):
    plan = planned()
    areas = released(plan, tmp_path).part("areas")
    clamped = "mounts below -0.5 EUR count as -0.5, those above 99.5 EUR as 99.5"
    with_sums = [item for item in areas.items if "income" in item.attributes]
    assert [item.title for item in with_sums][:2] == [
        "all: income", "all: income (means)",
    ]  # fmt: skip
    for item in with_sums:
        assert clamped in item.read().schema.field("value").metadata[b"meaning"].decode()
        assert item.read().num_rows == item.n_rows
    readme = (tmp_path / "out" / "README.md").read_text().replace("\n ", "")
    assert clamped in readme
    assert "areas/means/" in readme
    assert rp.Release.load(tmp_path / "out").part("areas").items


def test_the_noise_of_amounts_is_that_of_their_range(tmp_path, monkeypatch):
    asked = set()

    def noted(size, gamma_squared):
        asked.add(gamma_squared)
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(area_measurement, "discrete_gaussian", noted)
    plan = planned()
    released(plan, tmp_path)
    part = plan.part("areas")
    strategy = part.closure.strategies[1]
    assert strategy.range_in_steps == 1000
    scales = {1: 1000 * 2**strategy.bits}
    expected = set()
    for residual in range(len(part.closure)):
        scale = 1
        for index in part.closure.attributes(residual):
            scale *= scales.get(index, 2)
        for group in range(len(part.groups)):
            variance = part.exact_variance(residual, group)
            expected |= set() if variance is None else {variance * Fraction(scale) ** 2}
    assert asked == expected


def test_what_is_counted_wrongly_or_too_much_is_refused():
    plan = planned()
    part = plan.part("areas")
    with pytest.raises(ReleaseError, match="does not count the amounts of 'income'"):
        check_ranges(part.workload.tables, part.closure, Counts({}, 1))
    with pytest.raises(ReleaseError, match="fewer decimals or narrower limits"):
        area_measurement.check_countable(part, Counts({}, 2**58))
    with pytest.raises(PlanError, match=r"too large for 64-bit integers \(.*fewer decimals"):
        planned(rho="1e-28")
    tiny = dataclasses.replace(part, unit=part.unit / 10**28)
    with pytest.raises(ReleaseError, match=r"too large for 64-bit integers \(.*fewer decimals"):
        area_measurement.check_measurable(AreaParts(tiny))


@pytest.mark.usefixtures("no_noise")
def test_empty_areas_have_sums_of_0_and_no_means(tmp_path):
    columns = {"region": [*"NNSS"], "town": [*"1212"]}
    tree = rp.AreaTree.from_columns(columns, empty=[False] * 3 + [True])
    areas = released(planned(tree=tree), tmp_path).part("areas")
    table, means = (read("town", "income", within="S") for read in (areas.table, areas.means))
    assert table["value"].tolist() == pytest.approx([45.5, 2, 0, 0, 0, 0])
    assert table["standard_error"].tolist()[3:] == [0, 0, 0]
    assert means["value"].tolist() == pytest.approx([22.75, np.nan], nan_ok=True)
    assert means["note"].tolist()[0] == ""
    assert means["note"].tolist()[1] != ""
    assert (means["standard_error"].isna()).tolist() == [False, True]


@pytest.mark.usefixtures("no_noise")
def test_whole_counts_and_best_guesses_are_of_the_counts_alone(tmp_path):
    areas = released(planned(), tmp_path).part("areas")
    for made in (whole_area_counts, area_guesses):
        counts = made(areas, tmp_path / made.__name__)
        assert counts.table("town", "sex")["value"].tolist() == [2, 1, 1, 1, 1, 1]
        items = AreaResults(areas, counts).items
        assert [item.attributes for item in items] == [("sex",)] * 3
        with pytest.raises(ReleaseError, match="no table"):
            AreaResults(areas, counts).of_area(0).counts("income")
    weighted = planned(TABLES.weighted_by("w"))
    others = released(weighted, tmp_path, "weighted").part("areas")
    with pytest.raises(ReleaseError, match="all tables of this release have weighted sums"):
        whole_area_counts(others, tmp_path / "none")
