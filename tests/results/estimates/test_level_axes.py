"""Whole counts and best guesses of areas with an attribute at several levels."""

from dataclasses import replace

import numpy as np
import pytest

import rpexplore as rp
from rpexplore.planning.mechanism.reconstruction import MarginalNoise
from rpexplore.results.estimates.area_cells import cells_of
from rpexplore.results.estimates.area_counts import area_guesses, whole_area_counts
from rpexplore.results.estimates.area_families import CellNoise
from rpexplore.results.estimates.area_guess_errors import guess_errors_by_level
from rpexplore.results.synthetic.area_records import AreaRecords, synthesize_areas
from tests.releases.test_levels_in_areas import DOMAIN, RECORDS, TREE, no_noise, planned  # noqa: F401

AGES = np.arange(8)
OF_AGE = {  # the group of each age, at every level
    "age@few": np.array([0, 0, 1, 2, 2, 2, 3, 3]),
    "age@two": (AGES >= 3).astype(int),
    "age@odd": (AGES >= 4).astype(int),
}


def of_records():
    """Counts by region, town, age, sex: int64[2, 2, 8, 2]."""
    places = [(RECORDS[name] == second).to_numpy().astype(int) for name, second in
              (("region", "S"), ("town", "2"))]  # fmt: skip
    counts = np.zeros((2, 2, 8, 2), dtype=int)
    np.add.at(counts, (*places, RECORDS["age"], (RECORDS["sex"] == "m").astype(int)), 1)
    return counts


def test_cells_have_an_axis_for_each_level_and_every_table_is_a_margin():
    cells = cells_of(planned().part("areas"))
    (levels,) = cells.levels
    # 0-2 and 3-7; then 0-2, 3, 4-7; then few; then single ages: two children of one at most.
    assert levels.sizes == (2, 2, 2, 2)
    assert cells.attributes[0] == (1, *levels.numbers)
    assert cells.attributes[2] == (1, *levels.numbers[:2])
    assert cells.possible.reshape(2, -1).sum(axis=1).tolist() == [8, 8]  # of 16 cells
    names = [DOMAIN.names[index] for index in cells.of_records]
    assert names == ["age", "sex", "age@few", "age@two", "age@odd"]
    codes = np.flatnonzero(cells.possible)
    values = dict(zip(names, cells.values_of(0, codes, cells.of_records), strict=True))
    for name, groups in OF_AGE.items():
        np.testing.assert_array_equal(values[name], groups[values["age"]])
    # A table summed over the others, at each level, whatever the order of its attributes.
    counts = np.zeros(len(cells.possible), dtype=int)
    counts[codes] = np.random.default_rng(1).integers(0, 9, len(codes))
    for name, groups in OF_AGE.items():
        expected = np.zeros((2, groups.max() + 1), dtype=int)
        np.add.at(expected, (values["sex"], groups[values["age"]]), counts[codes])
        found = cells.margin_on(counts[None], 0, (1, DOMAIN.position(name)))
        np.testing.assert_array_equal(found[0], expected.ravel())


def dense_covariance(noise, group, attributes):
    """Of the answers to a table's cells, from the covariance of pairs of product queries."""
    plan = planned().part("areas")
    domain, closure = plan.domain, plan.closure
    sigma_squared = dict(zip(noise.of, noise.below[:, group].tolist(), strict=True))
    of_table = MarginalNoise(domain, attributes, closure.strategies, sigma_squared, closure.trees)
    shape = [domain.attributes[index].size for index in attributes]
    units = [
        {index: np.eye(n)[place] for index, n, place in zip(attributes, shape, cell, strict=True)}
        for cell in np.ndindex(*shape)
    ]
    return np.array([[of_table.covariance(one, other) for other in units] for one in units])


def test_the_information_in_answers_is_the_inverse_of_their_covariance():
    plan = planned().part("areas")
    cells = cells_of(plan)
    noise = CellNoise.of_plan(plan, cells, 1)
    group = int(plan.groups.of_area[1])
    possible = np.flatnonzero(cells.possible)
    ages, sexes = cells.values_of(0, possible, (0, 1))
    covariance = dense_covariance(noise, group, (0, 1))
    order = ages * 2 + sexes
    every = np.arange(len(cells.possible))
    information = noise.entries(noise.information(group), every, every)
    assert not information[~cells.possible].any()  # nothing is told of cells of no group
    own = information[np.ix_(possible, possible)]
    np.testing.assert_allclose(
        own @ covariance[np.ix_(order, order)], np.eye(len(own)), atol=1e-9 * len(own)
    )
    # Without the noise of the total, that of each cell given it.
    alone = replace(noise, below=noise.below * (np.array(list(map(len, noise.of))) > 0)[:, None])
    np.testing.assert_allclose(
        noise.cell_variances(group, possible),
        np.diag(dense_covariance(alone, group, (0, 1)))[order],
        rtol=1e-9,
    )


@pytest.mark.usefixtures("no_noise")
@pytest.mark.by_day(1)
@pytest.mark.parametrize("make", [whole_area_counts, area_guesses])
def test_without_noise_whole_counts_are_those_of_the_records(make, tmp_path):
    release = rp.release(planned(), RECORDS, tmp_path / "out", name="x", ledger=tmp_path / "ledger")
    counts = make(release, tmp_path / "whole")
    truth = of_records()
    found = counts.table("region", "age", "sex")["value"].to_numpy().reshape(2, 8, 2)
    np.testing.assert_array_equal(found, truth.sum(axis=1))
    found = counts.table("town", "age@two")["value"].to_numpy().reshape(-1, 2)
    adults = np.stack([truth[:, :, :3].sum(axis=(2, 3)), truth[:, :, 3:].sum(axis=(2, 3))], axis=2)
    np.testing.assert_array_equal(found, adults.reshape(-1, 2)[:3])


@pytest.mark.by_day(1)
@pytest.mark.parametrize("make", [area_guesses, whole_area_counts])
def test_whole_counts_agree_across_levels_and_areas_and_records_have_them(make, tmp_path):
    # Towns have no sexes by age@odd here, so that a part of their cells is not known.
    tables = {"all": [("age", "sex"), ("age@few",)], "town": [("age@two",), ("age@odd",), ("sex",)]}
    tables["region"] = tables["all"]
    asked = {level: rp.Workload.of(DOMAIN, own) for level, own in tables.items()}
    asked = rp.AreaWorkload.of_levels(TREE, asked)
    plan = rp.plan(asked, loss=rp.SumOfVariances(), budget=rp.Budget(rho="0.05"))
    release = rp.release(plan, RECORDS, tmp_path / "out", name="x", ledger=tmp_path / "ledger")
    counts = make(release, tmp_path / "whole")

    def of(level, *names):
        sizes = [DOMAIN[name].size for name in names]
        return counts.table(level, *names)["value"].to_numpy().reshape(-1, *sizes)

    assert cells_of(plan.part("areas")).has_unknown(2)
    of_regions = of("region", "age", "sex")
    assert of_regions.min() >= 0
    for level in tables["region"][1]:
        groups = np.eye(4, dtype=int)[OF_AGE[level]]
        np.testing.assert_array_equal(of("region", level), of_regions.sum(axis=2) @ groups)
    np.testing.assert_array_equal(of_regions.sum(axis=0), of("all", "age", "sex")[0])
    for level in ("age@two", "age@odd"):
        of_towns = of("town", level)
        in_regions = np.stack([of_towns[:2].sum(axis=0), of_towns[2]])
        groups = np.eye(2, dtype=int)[OF_AGE[level]]
        np.testing.assert_array_equal(in_regions, of_regions.sum(axis=2) @ groups)
    if make is area_guesses:
        synthesize_areas(release, tmp_path / "records")
        loaded = rp.load_results(tmp_path / "records")
        assert isinstance(loaded, AreaRecords)
        records = loaded.records()
        for level in ("age@two", "age@odd"):
            found = records.groupby(["region", "town", level], observed=True).size()
            table = counts.table("town", level).set_index(["region", "town", level])["value"]
            assert found.to_dict() == table[table > 0].to_dict()


def test_errors_of_best_guesses_are_forecast_at_every_level():
    expected = rp.ExpectedCounts(("age",), (tuple(map(str, AGES)),), (40.0,) * 8)
    plan = planned().part("areas")
    errors = guess_errors_by_level(plan, expected).set_index("level")
    accuracy = plan.accuracy()
    stated = accuracy.loc[accuracy["level"] == "all", "standard_error"]
    assert errors["unbiased"]["all"] == pytest.approx(np.sqrt(np.mean(stated**2)), rel=1e-6)
    assert np.all(errors["alike"] > 0)
    assert np.all(errors["alike"] <= errors["differing"] * (1 + 1e-9))
    assert np.all(errors["differing"] <= errors["unbiased"] * (1 + 1e-9))
