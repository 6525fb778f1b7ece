"""The sample data: made again identically, inside its codebooks, and believable."""

import csv
import gzip
import importlib
import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import rpexplore as rp
from rpexplore.domain.values import selected_values
from rpexplore.scenarios import examples
from rpexplore.scenarios.examples import EXAMPLES, Example

SAMPLE = Path(__file__).parents[1] / "sample_data"
WORKING = ["Employee", "Self-employed"]
OF_AREAS = "municipal-register"
COUNTRY = "country-census"
WITHOUT_RECORDS = "census-tables"
KEYS = [*(example.key for example in EXAMPLES), OF_AREAS, COUNTRY]


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    """Every column as text, except the two that hold numbers."""
    as_text = pd.read_csv(SAMPLE / "household.csv", dtype=str, keep_default_na=False)
    return as_text.assign(age=as_text["age"].astype(int), income=as_text["income"].astype(int))


@pytest.fixture(scope="module")
def fields() -> dict[str, dict]:
    codebook = json.loads((SAMPLE / "household.json").read_text(encoding="utf-8"))
    return {field["name"]: field for field in codebook["fields"]}


@pytest.fixture(scope="module")
def listed() -> dict[str, dict[str, str]]:
    """{attribute: {value: label}} of the CSV codebook, in its order."""
    labels: dict[str, dict[str, str]] = {}
    with open(SAMPLE / "household-codebook.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            assert row["value"] not in labels.setdefault(row["attribute"], {}), row
            labels[row["attribute"]][row["value"]] = row["label"]
    return labels


@pytest.mark.parametrize(
    "key",
    [
        "redistricting",
        *(pytest.param(key, marks=pytest.mark.nightly) for key in KEYS if key != "redistricting"),
    ],
)
def test_generator_writes_the_files_that_are_here(tmp_path, monkeypatch, key):
    monkeypatch.syspath_prepend(str(SAMPLE))
    importlib.import_module(key.replace("-", "_")).write(tmp_path)
    files = {path.name for path in SAMPLE.glob(f"{key}*") if path.suffix != ".py"}
    assert {path.name for path in tmp_path.iterdir()} == files
    for name in files:
        # Compared as a plain truth value: pytest's own diff of 3 MB would take minutes.
        same = content(tmp_path / name) == content(SAMPLE / name)
        assert same, f"{name} differs; run python sample_data/generate.py"


def test_every_data_file_is_one_of_an_example():
    files = [
        path.name
        for path in SAMPLE.iterdir()
        if path.suffix in (".csv", ".gz", ".json", ".geojson", ".parquet")
    ]
    assert all(name.startswith((*KEYS, WITHOUT_RECORDS)) for name in files)


def content(path: Path) -> bytes | pa.Table:
    """What is compressed is the same everywhere, how it is compressed is up to the library."""
    if path.suffix == ".parquet":
        return pq.read_table(path)
    stored = path.read_bytes()
    return gzip.decompress(stored) if path.suffix == ".gz" else stored


def test_size(people):
    assert 45_000 <= len(people) <= 55_000
    assert (SAMPLE / "household.csv").stat().st_size < 3_000_000


def test_every_value_is_in_the_json_codebook(people, fields):
    assert list(people.columns) == list(fields)
    for name, field in fields.items():
        if "bins" in field:
            edges = field["bins"]
            assert edges == sorted(set(edges))
            assert people[name].between(edges[0], edges[-1]).all()
        elif "enum" in field["constraints"]:
            assert set(people[name]) == set(field["constraints"]["enum"]), name
        else:
            limits = field["constraints"]
            assert set(people[name]) == set(range(limits["minimum"], limits["maximum"] + 1))


def test_nobody_has_what_the_codebook_states_to_be_impossible(people):
    domain = rp.Domain.load(SAMPLE / "household.json")
    assert len(domain.impossible) == 2
    for combination in domain.impossible:
        meets = np.ones(len(people), dtype=bool)
        for name, text in combination.selections:
            stored = domain[name].stored_values()
            values = [stored[index] for index in selected_values(domain[name], text)]
            has_values = people[name].astype(str).isin(values)
            assert has_values.any()
            meets &= has_values
        assert not meets.any()


def test_every_value_but_incomes_is_in_the_csv_codebook(people, listed):
    for name in people.columns.drop("income"):
        assert set(people[name].astype(str)) <= set(listed[name]), name


def test_every_income_bin_holds_people_and_the_last_its_right_edge(people, fields):
    edges = fields["income"]["bins"]
    bins = pd.cut(people["income"], [*edges[:-1], edges[-1] + 1], right=False, labels=False)
    counts = pd.Series(bins).value_counts()
    assert len(counts) == len(edges) - 1
    assert counts.min() > 100
    assert (people["income"] == edges[-1]).any()


def test_codebooks_agree(fields, listed):
    assert list(listed) == list(fields)
    for name, field in fields.items():
        if "bins" in field:
            assert len(listed[name]) == len(field["bins"]) - 1
            lower = [int(value.split(" to ")[0]) for value in listed[name]]
            upper = [int(value.split(" to ")[1].removeprefix("under ")) for value in listed[name]]
            assert [*lower, upper[-1]] == field["bins"]
            assert lower[1:] == upper[:-1]
        elif "enum" in field["constraints"]:
            labels = {item["value"]: item["label"] for item in field.get("categories", [])}
            values = field["constraints"]["enum"]
            assert list(listed[name].items()) == [(v, labels.get(v, v)) for v in values]
        else:
            assert list(listed[name]) == [str(age) for age in range(100)]


def test_labels_stand_only_where_they_differ_from_values(fields):
    labelled = {name for name, field in fields.items() if "categories" in field}
    assert labelled == {"sex", "region", "education", "tenure"}
    for name in labelled:
        pairs = fields[name]["categories"]
        assert [pair["value"] for pair in pairs] == fields[name]["constraints"]["enum"]
        assert len({pair["label"] for pair in pairs}) == len(pairs)


def test_regions_lie_in_parts_of_the_country_in_both_codebooks(fields):
    paths = fields["region"]["groups"]
    assert len(paths) == 12
    assert {name for (name,) in paths} == {"North", "Centre", "East", "South"}
    with open(SAMPLE / "household-codebook.csv", encoding="utf-8", newline="") as file:
        groups = {row["value"]: row["group"] for row in csv.DictReader(file) if row["group"]}
    assert groups == {
        value: name
        for value, (name,) in zip(fields["region"]["constraints"]["enum"], paths, strict=True)
    }


def test_true_zeros(people):
    assert set(people.loc[people["age"] < 18, "marital_status"]) == {"Single"}
    assert (people.loc[people["age"] < 16, "income"] == 0).all()
    assert ((people["employment"] == "Under 16") == (people["age"] < 16)).all()
    without = people["occupation"] == "Not applicable"
    assert (without == ~people["employment"].isin(WORKING)).all()
    rural = people[people["region"].isin(["R04", "R12"])]
    assert "City" not in set(rural["settlement"])
    alone = people[people["household_size"] == "1"]
    assert alone["age"].min() >= 18


def test_population_is_shaped_like_one(people):
    ages = people["age"]
    assert 0.14 < (ages < 16).mean() < 0.22
    assert 0.58 < ages.between(16, 64).mean() < 0.70
    assert 0.02 < (ages >= 80).mean() < ages.between(65, 79).mean() < 0.2
    assert (people.loc[people["age"] >= 80, "sex"] == "F").mean() > 0.55
    assert 0.49 < (people["sex"] == "F").mean() < 0.53


def test_widowhood_rises_with_age(people):
    decades = people[people["age"] >= 40].assign(decade=lambda table: table["age"] // 10)
    widowed = (decades["marital_status"] == "Widowed").groupby(decades["decade"]).mean()
    assert widowed.is_monotonic_increasing
    assert widowed.iloc[0] < 0.03 < 0.5 < widowed.iloc[-1]


def test_income_rises_with_education(people):
    full_grown = people[people["employment"].isin(WORKING) & people["age"].between(30, 59)]
    medians = full_grown.groupby("education")["income"].median()
    assert medians.loc["E2":"E6"].is_monotonic_increasing
    assert medians["E6"] > 1.8 * medians["E2"]


def test_owners_are_better_off_and_region_shapes_settlement_and_occupation(people):
    adults = people[people["age"].between(30, 59)]
    medians = adults.groupby("tenure")["income"].median()
    assert medians["Owner"] > medians["Renter"] > medians["Social"]
    cities = (people["settlement"] == "City").groupby(people["region"]).mean()
    assert cities["R02"] > 2 * cities["R01"] > 0
    workers = people[people["employment"].isin(WORKING)]
    farming = (workers["occupation"] == "Farming").groupby(workers["region"]).mean()
    assert farming["R12"] > 5 * farming["R02"]


def test_readme_names_every_column_and_its_number_of_values():
    text = (SAMPLE / "README.md").read_text(encoding="utf-8")
    for example in EXAMPLES:
        section = text.split(f"\n## {example.title}\n")[1].split("\n## ")[0]
        for attribute in example.domain.attributes:
            assert f"| `{attribute.name}` | {attribute.size} " in section


@pytest.fixture(scope="module", params=EXAMPLES, ids=lambda example: example.key)
def example_records(request) -> tuple[Example, pd.DataFrame]:
    return request.param, pd.read_csv(request.param.records, dtype=str, keep_default_na=False)


@pytest.mark.by_day(1)
def test_records_have_every_value_of_the_codebook_and_no_other(example_records):
    example, records = example_records
    for attribute in example.domain.attributes:
        if isinstance(attribute.values, rp.Bins):
            edges = attribute.values.edges
            bins = pd.cut(records[attribute.name].astype(float), edges, right=False)
            inside = records[attribute.name].astype(float) <= edges[-1]
            assert bins.nunique() == attribute.size
            assert inside.all()
        else:
            assert set(records[attribute.name]) == set(attribute.stored_values())


def test_summaries_and_readme_tell_the_number_of_records(example_records):
    example, records = example_records
    assert example.summary.startswith(f"{len(records):,} ")
    readme = (SAMPLE / "README.md").read_text(encoding="utf-8")
    assert f"`{example.records_file}`, {len(records):,} {example.record_noun}" in readme
    if example.person_column:
        assert f"of {records[example.person_column].nunique():,} patients" in readme


def test_expected_counts_are_near_the_records_and_not_made_from_them(example_records):
    example, records = example_records
    expected = example.expected
    counted = records.groupby(list(expected.attributes)).size()
    cells = pd.MultiIndex.from_product(expected.values, names=expected.attributes)
    counted = counted.reindex(cells, fill_value=0)
    assert np.corrcoef(counted, expected.counts)[0, 1] > 0.9
    assert np.mean(counted.to_numpy() != np.array(expected.counts)) > 0.3


def test_areas_lie_in_areas():
    (areas,) = (one.domain["precinct"] for one in EXAMPLES if one.key == "redistricting")
    paths = set(areas.groups)
    assert len(paths) == 15
    assert len({county for county, _ in paths}) == 4
    assert all(district.startswith(county.split()[0]) for county, district in paths)


def test_a_patient_has_at_most_ten_stays_mostly_among_the_first_three():
    (example,) = (one for one in EXAMPLES if one.person_column)
    stays = pd.read_csv(example.records).groupby(example.person_column).size()
    assert stays.max() == 10
    assert f"{stays.clip(upper=3).sum() / stays.sum():.0%}".replace("%", " %") == "87 %"


def test_people_live_in_areas_that_are_not_divided():
    book = rp.AreaCodebook.load(SAMPLE / f"{OF_AREAS}.json")
    people = pd.read_csv(SAMPLE / f"{OF_AREAS}.csv.gz", dtype=str)
    tree, readme = book.tree, (SAMPLE / "README.md").read_text(encoding="utf-8")
    undivided = np.flatnonzero(tree.n_parts == 0)
    assert set(people["district"]) == set(tree.codes.take(undivided).to_pylist())
    assert len(set(tree.level_of[undivided])) == 2  # some municipalities are not divided
    assert all(set(people[one.name]) == set(one.stored_values()) for one in book.domain.attributes)
    assert f"{len(people):,} people" in readme
    sizes = np.diff(tree.starts).tolist()[1:]
    for level, size in zip(tree.levels[1:], sizes, strict=True):
        assert f"{size:,} {level}" in readme


def test_the_map_has_every_municipality_and_no_gaps():
    tree = rp.AreaCodebook.load(SAMPLE / f"{OF_AREAS}.json").tree
    rings = [shape["geometry"]["coordinates"][0] for shape in shapes_of(OF_AREAS, tree)]
    assert min(map(surface, rings)) > 0.02
    # Two islands with 40 and 16 corners, nearly ellipses.
    assert 0.99 < sum(map(surface, rings)) / (np.pi * (3.4 * 2.1 + 0.75 * 0.35)) < 1


def test_municipalities_of_the_census_share_all_borders_but_the_coast():
    tree = rp.AreaCodebook.load(SAMPLE / f"{COUNTRY}.json").tree
    shapes = shapes_of(COUNTRY, tree)
    sides: dict[tuple, str] = {}
    for shape in shapes:
        for ring in shape["geometry"]["coordinates"]:
            assert len({tuple(point) for point in ring}) == len(ring) - 1
            for side in pairwise(map(tuple, ring)):
                assert side not in sides  # no two areas are on the same side of a border
                sides[side] = shape["id"]
        assert surface(shape["geometry"]["coordinates"][0]) > 0
    coast = {here: there for here, there in sides if (there, here) not in sides}
    shores = []
    while coast:
        shores.append([next(iter(coast))])
        while shores[-1][-1] in coast:
            shores[-1].append(coast.pop(shores[-1][-1]))
        assert shores[-1][0] == shores[-1][-1]
    # A mainland and three isles; two lakes and two ponds, with the land on the other side.
    assert sorted(surface(shore) > 0 for shore in shores) == [False] * 4 + [True] * 4
    borders = [(one, sides[there, here]) for (here, there), one in sides.items()
               if (there, here) in sides]  # fmt: skip
    across = [one[:5] != other[:5] for one, other in borders]
    assert 0.1 < np.mean(across) < 0.3  # a county's municipalities are beside each other


def shapes_of(key: str, tree: rp.AreaTree) -> list[dict]:
    shapes = json.loads((SAMPLE / f"{key}-map.geojson").read_text("utf-8"))["features"]
    assert [shape["id"] for shape in shapes] == sorted(tree.codes[tree.level_slice(3)].to_pylist())
    return shapes


def surface(ring) -> float:
    """Square degrees; below 0 for a ring that runs with the clock."""
    points = np.array(ring)
    return np.linalg.det(np.stack([points[:-1], points[1:]], 1)).sum() / 2


def test_the_census_is_as_large_as_the_readme_says_and_its_files_small():
    book = rp.AreaCodebook.load(SAMPLE / f"{COUNTRY}.json")
    people = pq.read_table(SAMPLE / f"{COUNTRY}.parquet")
    readme = (SAMPLE / "README.md").read_text("utf-8")
    in_blocks = pc.value_counts(people["block"]).field("counts").to_numpy()
    sizes = np.diff(book.tree.starts).tolist()[1:]
    assert len(in_blocks) == sizes[-1] >= 20_000
    assert sizes[-2] >= 2_000
    assert people.num_rows >= 3_000_000
    assert f"{people.num_rows:,} people" in readme
    assert examples.SUMMARY.startswith(f"{people.num_rows:,} people")
    assert f"{book.tree.n_areas:,} areas" in examples.COUNTRY
    for level, size in zip(book.tree.levels[1:], sizes, strict=True):
        assert f"{size:,} {level}" in readme
    for ending, most in ((".parquet", 1_500_000), ("-map.geojson", 700_000)):
        assert (SAMPLE / f"{COUNTRY}{ending}").stat().st_size <= most


def test_blocks_of_the_census_differ_as_neighbours_do():
    people = pq.read_table(SAMPLE / f"{COUNTRY}.parquet")
    codes = people["block"].combine_chunks()
    old = pc.is_in(people["age_group"], pa.array(["65-79", "80+"])).to_numpy()
    block = codes.indices.to_numpy()
    municipality = pc.dictionary_encode(pc.utf8_slice_codeunits(codes.dictionary, 0, 7)).indices
    in_blocks = np.bincount(block, old) / np.bincount(block)
    in_places = np.bincount(municipality.to_numpy()[block], old)
    in_places /= np.bincount(municipality.to_numpy()[block])
    assert 0.15 < old.mean() < 0.25
    assert 0.03 < in_places.std() < in_blocks.std() < 0.1
