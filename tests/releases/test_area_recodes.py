"""Records that have former codes of areas: counted where the plan says, in every kind of source."""

import pandas as pd
import pyarrow as pa
import pytest

import rpexplore as rp
from rpexplore.errors import ReleaseError
from rpexplore.releases.ledger.spent import Neighbours
from tests.data.engines.servers import in_duckdb

SEX = rp.Domain((rp.Attribute("sex", rp.Categories(("f", "m"))),))
TREE = rp.AreaTree.from_columns({"region": list("NNS"), "town": ["N1", "N2", "S1"]})
RECODES = {"town": {"old": "S1", "2..3": "N2"}}
ROWS = [("N", "N1", "f"), ("N", "old", "m"), ("S", "S1", "m"), ("N", "2", "f"), ("N", "3", "m")]
RECORDS = pd.DataFrame(ROWS * 4, columns=["region", "town", "sex"])


def planned(recodes, **budget) -> rp.Plan:
    tables = rp.Workload.of(SEX, [("sex",), ()])
    tree = TREE.with_recodes(recodes)
    areas = rp.AreaWorkload.of_levels(tree, dict.fromkeys(tree.levels, tables))
    budget = {"rho": 10**6, **budget}
    return rp.plan(rp.Request(areas=areas, budget=rp.Budget(**budget)))


def made_source(kind: str, folder):
    if kind == "frame":
        return RECORDS
    if kind == "database":
        return in_duckdb(pa.Table.from_pandas(RECORDS), folder / "records.db")
    path = folder / f"records.{kind}"
    RECORDS.to_csv(path, index=False) if kind == "csv" else RECORDS.to_parquet(path)
    return path


@pytest.mark.parametrize("kind", ["csv", "parquet", "frame", "database"])
def test_every_source_counts_the_areas_that_are_meant(tmp_path, kind):
    planned(RECODES).save(tmp_path / "plan.json")
    plan = rp.Plan.load(tmp_path / "plan.json")
    assert rp.verify(plan).holds
    name = {"name": "records"} if kind == "frame" else {}
    release = rp.release(
        plan, made_source(kind, tmp_path), tmp_path / "r", ledger=tmp_path / "l.sqlite", **name
    )
    town = RECORDS["town"].replace({"old": "S1", "2": "N2", "3": "N2"})
    table = release.part("areas").table("town", "sex")
    counts = table.set_index(["town", "sex"])["value"]
    expected = RECORDS.groupby([town, "sex"]).size().reindex(counts.index, fill_value=0)
    assert counts.round().tolist() == expected.tolist()
    assert "3 other codes in records" in (tmp_path / "r" / "README.md").read_text()


def test_releases_that_count_one_code_as_two_areas_are_not_combined(tmp_path):
    records, ledger = RECORDS[RECORDS["town"] != "3"], tmp_path / "l.sqlite"
    as_north = {"town": {"old": "N1", "2": "N2"}}
    plans = [planned(recodes, rho=1) for recodes in (RECODES, as_north, {"town": {"2": "N2"}})]
    releases = [
        rp.release(plan, records, tmp_path / str(place), name=str(place), ledger=ledger)
        for place, plan in enumerate(plans[:2])
    ]
    known = records[records["town"] != "old"]
    releases.append(rp.release(plans[2], known, tmp_path / "2", name="2", ledger=ledger))
    with pytest.raises(ReleaseError, match="records call 'old' was counted as one area in '0'"):
        rp.combine(releases[0], releases[1])
    assert rp.combine(releases[0], releases[2]).part("areas").table("town", "sex").shape[0] == 6


def test_exact_totals_of_areas_are_others_where_codes_stand_for_others():
    exact = {"rho": 1, "neighbours": "replace", "exact": ["area@town"]}
    other = {"town": {**RECODES["town"], "old": "N1"}}
    texts = {Neighbours.by(planned(one, **exact)).unit for one in (RECODES, other, RECODES)}
    assert len(texts) == 2
