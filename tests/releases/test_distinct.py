"""Distinct values of a column are counted, each once: the counts of pandas' nunique."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import rpexplore as rp
from rpexplore.data.frames import FrameSource
from rpexplore.errors import BudgetError, DataError, PlanError, ReleaseError
from rpexplore.results.measurement_source import MeasurementSource, refuse_unlike
from rpexplore.workload.universe import universe_of
from tests.data.engines.servers import in_duckdb

DOMAIN = rp.Domain(
    (
        rp.Attribute("region", rp.Integers(0, 4)),
        rp.Attribute("tenure", rp.Categories(("own", "rent", "not stated"))),
        rp.Attribute("age", rp.Integers(0, 3)),
    )
)


def plan(*attributes: str, **budget) -> rp.Plan:
    workload = rp.Workload.all_up_to(DOMAIN, 2, only=attributes)
    stated = {"rho": "1e8", "distinct": "hh", "unit_noun": "household"} | budget
    return rp.plan(workload, loss=rp.SumOfVariances(), budget=rp.Budget(**stated))


@pytest.fixture(scope="module")
def records() -> pd.DataFrame:
    random = np.random.default_rng(2)
    of_record = random.integers(0, 90, 400)
    region, tenure = random.integers(0, 5, 90), random.choice(["own", "rent", ""], 90)
    return pd.DataFrame(
        {
            "hh": [f"H{number}" for number in of_record],
            "region": region[of_record].astype(str),
            "tenure": tenure[of_record],
            "age": random.integers(0, 4, 400).astype(str),
        }
    )


def released(made: rp.Plan, data, tmp_path, **options) -> rp.Release:
    takers = {"missing_values": {"tenure": "not stated"}} if "tenure" in made.columns else {}
    return rp.release(made, data, tmp_path / "out", ledger=tmp_path / "l", **takers, **options)


@pytest.mark.parametrize("kind", ["csv", "duckdb"])
def test_each_household_is_counted_once(kind, records, tmp_path):
    records.to_csv(tmp_path / "d.csv", index=False)
    data = tmp_path / "d.csv"
    if kind == "duckdb":
        data = in_duckdb(pa.Table.from_pandas(records.replace("", None)), tmp_path / "d.duckdb")
    done = released(plan("region", "tenure"), data, tmp_path)
    table = done.table("region", "tenure").set_index(["region", "tenure"])["value"]
    named = records.assign(tenure=records["tenure"].replace("", "not stated"))
    counted = named.groupby(["region", "tenure"])["hh"].nunique()
    assert table.round().to_dict() == counted.reindex(table.index, fill_value=0).to_dict()
    manifest = json.loads((tmp_path / "out/manifest.json").read_text("utf-8"))
    assert (manifest["count_distinct"], manifest["unit_noun"]) == ("hh", "household")
    assert manifest["privacy_unit"] == (
        "one household, counted once by the column 'hh', however many records it has"
    )
    assert "Of every household, by the column 'hh', one record was counted." in (
        tmp_path / "out/README.md"
    ).read_text("utf-8")
    assert rp.Plan.load(tmp_path / "out/plan.json").budget.distinct == "hh"
    source = MeasurementSource.of(done.part("tables"))
    assert MeasurementSource.from_json(source.to_json()) == source
    with pytest.raises(ReleaseError, match="combine only releases that count the same"):
        refuse_unlike([source, MeasurementSource("other", "0" * 64, source.rho, 1)])


@pytest.mark.parametrize(
    ("attribute", "values"),
    [("age", ("0", "3")), ("age", ("1", "2")), ("age", ("2", "3")), ("tenure", ("own", ""))],
)
@pytest.mark.parametrize("kind", ["frame", "duckdb"])
def test_records_of_a_household_that_differ_are_refused(attribute, values, kind, tmp_path):
    rows = pd.DataFrame({"hh": ["a", "a", "b"], attribute: [*values, values[0]]})
    data, name = rows, "n"
    if kind == "duckdb":
        data = in_duckdb(pa.Table.from_pandas(rows.replace("", None)), tmp_path / "d.duckdb")
        name = None
    with pytest.raises(DataError, match=f"of one household .*'hh'.* differ in {attribute!r}"):
        released(plan(attribute), data, tmp_path, name=name)
    assert not (tmp_path / "out").exists()


def test_attributes_that_differ_are_those_with_several_values_of_one_household(records):
    """All of "age" differ; of "tenure" all that is not listed, or missing, is one value."""
    changed = records.assign(tenure=records["tenure"].mask(records.index % 2 == 0, "lent"))
    unlisted = records.assign(tenure=np.where(records.index % 2 == 0, "lent", ""))
    rule = rp.PersonRule("hh", 1, "keep first")
    universe = universe_of("region <= 1", DOMAIN)
    for frame in (records, changed, unlisted):
        codes = frame.assign(tenure=frame["tenure"].where(frame["tenure"].isin(["own", "rent"])))
        for within in (None, universe):
            chosen = codes if within is None else codes[codes["region"].isin(["0", "1"])]
            values = chosen.groupby("hh")[list(DOMAIN.names)].nunique(dropna=False)
            source = FrameSource(frame, name="n")
            differing = source.differing(
                DOMAIN, (0, 1, 2), person_rule=rule, universe=within, n_persons=len(values)
            )
            assert differing == {*np.flatnonzero(values.max() > 1).tolist()}
    with pytest.raises(DataError, match="changed while"):
        source.differing(DOMAIN, (0,), person_rule=rule, universe=None, n_persons=1)


def test_what_cannot_be_distinct_is_refused(tmp_path):
    with pytest.raises(BudgetError, match="'hh' does not say what is counted; give the word"):
        plan("region", unit_noun=None)
    assert plan("region", distinct="household", unit_noun=None).budget.noun == "household"
    for more in ({"max_records_per_person": 2}, {"neighbours": "replace"}, {"exact": ["age"]}):
        with pytest.raises(BudgetError, match="Distinct values of hh are counted with"):
            plan("region", **more)
    with pytest.raises(ReleaseError, match="needs no further rule"):
        released(
            plan("region"), pd.DataFrame({"hh": ["a"], "region": ["1"]}), tmp_path,
            name="n", person_rule=rp.PersonRule("hh", 1),
        )  # fmt: skip
    universe = plan("age").within("age >= 1")
    with pytest.raises(ReleaseError, match="universe of the plan is about 'age'"):
        released(universe, pd.DataFrame({"hh": ["a"], "age": ["1"]}), tmp_path, name="n")
    pay = rp.Domain((*DOMAIN, rp.Attribute("pay", rp.Amounts(0, 100))))
    sums = rp.Workload.of(pay, [("region", "pay")])
    with pytest.raises(PlanError, match="not in sums of 'pay'"):
        rp.plan(sums, loss=rp.SumOfVariances(), budget=rp.Budget(rho=1, distinct="household"))


TREE = rp.AreaTree.from_columns({"county": list("NNS"), "town": ["N1", "N2", "S1"]})
IN_AREAS = rp.AreaWorkload.of_levels(
    TREE.with_recodes({"town": {"old": "N2"}}),
    dict.fromkeys(TREE.levels, rp.Workload.all_up_to(DOMAIN, 1, only=["region"])),
)


def released_in_areas(records: pd.DataFrame, kind: str, tmp_path) -> rp.Release:
    budget = rp.Budget(rho="1e8", distinct="hh", unit_noun="household")
    made = rp.plan(rp.Request(areas=IN_AREAS, budget=budget))
    name, data = "n", records
    if kind == "duckdb":
        data, name = in_duckdb(pa.Table.from_pandas(records), tmp_path / "d.duckdb"), None
    return released(made, data, tmp_path, name=name)


@pytest.mark.parametrize("kind", ["frame", pytest.param("duckdb", marks=pytest.mark.nightly)])
def test_each_household_is_counted_once_in_its_area(kind, records, tmp_path):
    of_household = np.arange(400) % 3  # by the number of the household
    number = records["hh"].str[1:].astype(int)
    place = of_household[number]
    towns = np.array(["N1", "N2", "S1"])[place]
    records = records.assign(county=np.array(["N", "N", "S"])[place], town=towns)
    records["town"] = records["town"].mask((records.index % 2 == 0) & (towns == "N2"), "old")
    areas = released_in_areas(records, kind, tmp_path).part("areas")
    counted = records.assign(town=towns)
    for level, columns in {"town": ["county", "town"], "county": ["county"]}.items():
        table = areas.table(level, "region").set_index([*columns, "region"])["value"]
        table.index = table.index.map(lambda key: tuple(map(str, key)))
        expected = counted.groupby([*columns, "region"])["hh"].nunique()
        assert table.round().to_dict() == expected.reindex(table.index, fill_value=0).to_dict()


@pytest.mark.parametrize("kind", ["frame", "duckdb"])
def test_a_household_is_in_one_area_where_a_recode_has_moved_it(kind, tmp_path):
    """Its town came to another county: one record has the old code and county, the other not."""
    rows = {"hh": ["a", "a"], "region": ["1"] * 2, "county": ["S", "N"], "town": ["old", "N2"]}
    towns = released_in_areas(pd.DataFrame(rows), kind, tmp_path).part("areas").table("town")
    assert towns["value"].round().tolist() == [0, 1, 0]


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    ("kind", "towns"),
    [("frame", ("N1", "N2")), ("frame", ("N1", "old")), ("frame", ("N1", "S1")),
     ("duckdb", ("N1", "old"))],
)  # fmt: skip
def test_records_of_a_household_in_two_areas_are_refused(kind, towns, tmp_path):
    rows = {"hh": ["a", "a", "b"], "region": ["1", "1", "2"], "town": [*towns, "N1"]}
    with pytest.raises(DataError, match=r"of one household .*'hh'.* differ in '.*town'"):
        released_in_areas(pd.DataFrame(rows), kind, tmp_path)
    assert not (tmp_path / "out").exists()
