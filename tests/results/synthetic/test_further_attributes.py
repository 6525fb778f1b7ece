"""Attributes that no table of areas has, drawn for records of areas from the other tables."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import rpexplore as rp
from rpexplore.common.seeded_numbers import SeededNumbers
from rpexplore.results.results import load_area_results
from rpexplore.results.synthetic.area_records import synthesize_areas
from rpexplore.results.synthetic.further_attributes import FurtherAttributes
from rpexplore.results.synthetic.impossible import Impossible

SEX = rp.Attribute("sex", rp.Categories(("f", "m")))
AGE = rp.Attribute("age", rp.Categories(("child", "adult")))
JOB = rp.Attribute("job", rp.Categories(("none", "office", "farm")))
REGION = rp.Attribute("region", rp.Categories(("S", "N")))  # in another order than the areas
TREE = rp.AreaTree.from_columns({"region": ["N", "N", "S"], "town": ["1", "2", "1"]})


def donors(codes, impossible=()):
    """Further: job; shared: sex and age."""
    domain = rp.Domain((SEX, AGE, JOB))
    return FurtherAttributes(
        (JOB,), (SEX, AGE), np.array(codes, dtype=np.int16), np.array([False, False, True]),
        Impossible.of(domain, (0, 1, 2), impossible),
    )  # fmt: skip


def drawn(further, sex, age):
    columns = {"sex": pa.array(sex), "age": pa.array(age)}
    return further.drawn(columns, len(sex), SeededNumbers(b"1"))[:, 0]


def test_values_are_those_of_donors_with_the_same_values():
    """In the shares that they have among these."""
    further = donors([[0, 1, 1]] * 30 + [[0, 1, 2]] * 10 + [[1, 1, 0]] * 20)
    jobs = drawn(further, ["f"] * 4_000 + ["m"] * 100, ["adult"] * 4_100)
    assert np.all(jobs[4_000:] == 0)
    # By the binomial distribution, √(n p q) = 27.4, farther off with probability 1e-8.
    assert abs(np.count_nonzero(jobs[:4_000] == 2) - 1_000) < 6 * 27.4


def test_where_nobody_has_the_same_values_the_nearest_possible_ones_are_taken():
    further = donors(
        [[0, 1, 1]] * 5 + [[1, 0, 0]] * 5 + [[1, 1, 2]] * 5, [{"age": "child", "job": "office"}]
    )
    # Nobody is a girl; women work in offices, which a child cannot, and boys do not work.
    assert np.all(drawn(further, ["f"] * 9, ["child"] * 9) == 0)
    # Of an area that ends early the level is not known: any of the same sex.
    jobs = drawn(further, ["m"] * 200, pa.nulls(200, pa.string()))
    assert set(jobs.tolist()) == {0, 2}


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    """Jobs depend on region and age, and only tables without areas have them."""
    folder = tmp_path_factory.mktemp("areas")
    generator = np.random.default_rng(3)
    n = 6_000
    town = generator.integers(0, 3, n)
    region, age = np.where(town < 2, "N", "S"), generator.integers(0, 2, n)
    job = np.where(age == 0, 0, np.where(region == "N", 1, 2))
    records = pd.DataFrame(
        {
            "region": region,
            "town": np.array(["1", "2", "1"])[town],
            "sex": generator.choice(["f", "m"], n),
            "age": np.array(AGE.labels())[age],
            "job": np.array(JOB.labels())[job],
        }
    )
    records.to_csv(folder / "people.csv", index=False)
    of_areas = rp.Workload.of(rp.Domain((SEX, AGE)), [("sex", "age"), ()])
    request = rp.Request(
        tables=rp.Workload.all_up_to(rp.Domain((REGION, AGE, JOB)), 2),
        areas=rp.AreaWorkload.of_levels(TREE, dict.fromkeys(TREE.levels, of_areas)),
        budget=rp.Budget(rho=10),
    )
    return rp.release(rp.plan(request), folder / "people.csv", folder / "release")


@pytest.mark.nightly
def test_records_of_areas_have_them_as_they_depend_on_what_the_record_has(release, tmp_path):
    made = synthesize_areas(load_area_results(release.folder), tmp_path / "records")
    assert made.manifest["attributes"] == ["sex", "age", "job"]
    assert made.manifest["by_model"] == ["job"]
    rows = made.records().astype(str)
    assert np.mean(rows["job"][rows["age"] == "child"] == "none") > 0.97
    adults = rows[rows["age"] == "adult"]
    assert np.mean(adults["job"][adults["region"] == "N"] == "office") > 0.9
    assert np.mean(adults["job"][adults["region"] == "S"] == "farm") > 0.9
    assert "job" in (made.folder / "README.md").read_text(encoding="utf-8")
    # The part with areas alone has nothing to tell of them.
    alone = synthesize_areas(release.part("areas"), tmp_path / "alone")
    assert alone.manifest["attributes"] == ["sex", "age"]
    shared = rows.drop(columns="job")
    pd.testing.assert_frame_equal(shared, alone.records().astype(str))
