"""Records that the codebook states to be impossible: refused, or counted as told."""

import json

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import rpexplore as rp
from rpexplore.data.engines.connections import Connection
from rpexplore.data.engines.source import DatabaseSource
from rpexplore.errors import DataError
from rpexplore.workload.query_list import QueryList
from tests.releases.parts_plan import AGE, HOME, JOB, SEX, SIZE, TREE, records

DOMAIN = rp.Domain(
    (SEX, AGE, JOB, SIZE, HOME),
    ({"sex": "f", "age": "0..2"}, {"sex": "m", "age": "3..5", "job": "no"}),
)


def plan_of(kind: str, domain: rp.Domain) -> rp.Plan:
    """A plan of one part, which has sex and age together, and jobs with sex at most."""
    asked = [("sex", "age"), ("sex", "job")]
    tables = rp.Workload.of(domain, asked)
    parts = {
        "tables": tables,
        "areas": rp.AreaWorkload.of_levels(TREE, dict.fromkeys(TREE.levels, tables)),
        "rounds": rp.Rounds(rp.Workload.of(domain, [*asked, ("age", "size")]), 5_000),
    }
    return rp.plan(rp.Request(**{kind: parts[kind]}, budget=rp.Budget(rho=1)))


def data_with(**row) -> pd.DataFrame:
    """Records of which none is impossible, and three like this."""
    frame = records().assign(sex="m", age=8)
    return pd.concat([frame, pd.DataFrame([frame.iloc[0].to_dict() | row] * 3)], ignore_index=True)


CASES = {
    "within a table": ({"sex": "f", "age": 1}, "sex=f age=0..2"),
    "across tables": ({"sex": "m", "age": 4, "job": "no"}, "sex=m age=3..5 job=no"),
}


@pytest.mark.parametrize("kind", ["tables", "areas", "rounds"])
@pytest.mark.parametrize("what", CASES)
def test_impossible_records_are_refused_by_name(what, kind, data, output, forbidden_noise):
    row, text = CASES[what]
    plan = plan_of(kind, DOMAIN)
    data_with(**row).to_csv(data, index=False)
    for run in (rp.dry_run, rp.release):
        with pytest.raises(DataError, match=text) as caught:
            run(plan, data, output)
        assert "3" not in str(caught.value).replace("age=3..5", "")
        assert f"3 records have {text}." in caught.value.private
    assert [path.name for path in data.parent.iterdir()] == ["records.csv"]
    assert not list(output.parent.iterdir())
    data_with().to_csv(data, index=False)
    assert any(
        "no record has a combination" in found for found in rp.dry_run(plan, data, output).findings
    )


def test_own_counts_and_plans_of_several_parts_see_all_their_attributes(data, output):
    """Sex and age are in tables alone, jobs in own counts alone."""
    domain = rp.Domain((SEX, AGE, JOB), ({"age": "0..2", "job": "yes"},))
    queries = QueryList(rp.Domain((SEX, JOB)), [[1, 0, 0, 0, 0, 0]], ("one",), [1.0])
    request = rp.Request(
        tables=rp.Workload.of(domain, [("sex", "age")]), counts=queries, budget=rp.Budget(rho=1)
    )
    data_with(age=0, job="yes").to_csv(data, index=False)
    with pytest.raises(DataError, match=r"impossible: age=0\.\.2 job=yes\."):
        rp.dry_run(rp.plan(request), data, output)


SOURCES = ["csv", "parquet", "pandas", "polars", "arrow", "duckdb"]


@pytest.mark.by_day(3)
@pytest.mark.parametrize("kind", SOURCES)
def test_records_from_anywhere_are_looked_at(kind, tmp_path):
    frame = data_with(sex="m", age=4, job="no")
    path = tmp_path / f"records.{kind}"
    options = {}
    if kind in ("csv", "parquet"):
        frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
        source = path
    elif kind == "duckdb":
        with duckdb.connect(str(path)) as database:
            database.execute("CREATE TABLE people AS SELECT * FROM frame")
        source = DatabaseSource(Connection("db", f"duckdb://{path}"), "people")
    else:
        make = {"pandas": lambda f: f, "polars": pl.from_pandas, "arrow": pa.Table.from_pandas}
        source, options = (
            make[kind](frame),
            {"name": "people", "ledger": tmp_path / "ledger.sqlite"},
        )
    plan = plan_of("tables", DOMAIN)
    with pytest.raises(DataError, match=r"sex=m age=3\.\.5 job=no"):
        rp.dry_run(plan, source, tmp_path / "out", **options)
    rp.dry_run(plan, source, tmp_path / "out", count_impossible=True, **options)


def test_cells_that_an_attribute_rules_out_that_is_not_read_are_looked_at(data, output):
    """Whoever is up to two has a job and has none: nobody is, whatever the column says."""
    stated = [{"age": "0..2", "job": "yes,no,other"}, {"sex": "f", "home": "owned"}]
    domain = rp.Domain((SEX, AGE, JOB, SIZE, HOME), tuple(stated))
    plan = rp.plan(
        rp.Workload.of(domain, [("sex", "age")]), loss=rp.SumOfVariances(), budget=rp.Budget(rho=1)
    )
    data_with(age=0).to_csv(data, index=False)
    with pytest.raises(DataError, match="values of sex × age that no possible record has"):
        rp.dry_run(plan, data, output)
    data_with(sex="f", age=8, home="owned").to_csv(data, index=False)  # homes are not read
    assert rp.dry_run(plan, data, output)


def test_a_run_can_be_told_to_count_them(data, output, without_noise):
    plan = plan_of("tables", DOMAIN)
    data_with(sex="f", age=1).to_csv(data, index=False)

    def stop(doing: str, share: float) -> None:
        if doing == "Writing the release":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rp.release(plan, data, output, count_impossible=True, on_progress=stop)
    done = rp.resume(output)
    assert done.manifest["count_impossible"] is True
    table = done.table("sex", "age").set_index(["sex", "age"])
    row = table.loc["f"].iloc[0]
    assert (row["value"], row["note"]) == (3, "impossible by the codebook")
    assert "are counted as they are" in (output / "README.md").read_text()
    # Estimates follow the codebook.
    whole = output.parent / "whole"
    counts = rp.postprocess(done, whole, method="nonnegative", rounded=True)
    assert counts.table("sex", "age").set_index(["sex", "age"]).loc["f"].iloc[0]["value"] == 0
    assert counts.table("sex", "age")["value"].sum() == 63
    assert "were counted as they\n  are" in (whole / "README.md").read_text()
    assert (
        json.loads((whole / "manifest.json").read_text())["sources"][0]["count_impossible"] is True
    )


def test_a_run_without_such_combinations_says_nothing_of_them(data, output):
    data_with().to_csv(data, index=False)
    plan = plan_of("tables", rp.Domain(DOMAIN.attributes))
    done = rp.release(plan, data, output, count_impossible=True)
    assert "count_impossible" not in done.manifest
