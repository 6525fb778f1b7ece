"""JSON-stat 2.0, read by the pyjstat library."""

import json

import numpy as np
import pandas as pd
import pytest

import rpexplore as rp
from rpexplore.domain.result_schema import Schema
from rpexplore.results.formats.publishing import publish

pyjstat = pytest.importorskip("pyjstat.pyjstat")


def test_every_figure_is_read_as_released(exported):
    for item in exported.results.items:
        text = (exported.folder / "jsonstat" / f"{item.name.lower()}.json").read_text("utf-8")
        facts = json.loads(text)
        cells = pyjstat.Dataset.read(text).write("dataframe", naming="id")
        frame = item.frame
        columns = [column for column in Schema.of(frame).columns if column.is_number]
        assert facts["size"][-1] == len(columns)
        assert len(cells) == np.prod(facts["size"]) == len(frame) * len(columns)
        assert exported.results.guarantee in facts["note"]
        unit = exported.last_decimal(frame)
        for position, column in enumerate(columns):
            figures = cells["value"].iloc[position :: len(columns)].astype(float)
            expected = frame[column.name].tolist()
            assert figures.tolist() == pytest.approx(expected, abs=unit, nan_ok=True)


def test_groups_times_and_units_are_said(tmp_path):
    nace = rp.Attribute(
        "nace", rp.Categories(("01", "02", "05"), ("Crops", "Cattle", "Coal")),
        groups=(("A",), ("A",), ("B",)),
    )  # fmt: skip
    year = rp.Attribute("year", rp.Integers(2024, 2026), "Year")
    domain = rp.Domain((nace, year))
    workload = rp.Workload.of(domain, [("nace", "year"), ("year",)])
    plan = rp.plan(
        rp.Request(tables=workload.with_bases({"nace": rp.Hierarchy()}), budget=rp.Budget(rho=10))
    )
    records = pd.DataFrame({"nace": ["01", "02", "05"] * 99, "year": [2024, 2025, 2025] * 99})
    rp.release(plan, records, tmp_path / "out", name="x", ledger=tmp_path / "ledger")
    imprint = rp.Imprint(time="year", period="2026")
    formats = ["jsonstat", "px", "sdmx", "csvw"]
    publish(tmp_path / "out", tmp_path / "published", formats=formats, imprint=imprint)
    (file,) = (tmp_path / "published/jsonstat").glob("*nace*")
    facts = json.loads(file.read_text("utf-8"))
    assert facts["id"] == ["nace", "year", "figure"]
    assert facts["role"] == {"metric": ["figure"], "time": ["year"]}
    category = facts["dimension"]["nace"]["category"]
    children = {
        category["label"][group]: [category["label"][code] for code in codes]
        for group, codes in category["child"].items()
    }
    assert children == {"A": ["Crops", "Cattle"], "B": ["Coal"]}
    assert facts["dimension"]["figure"]["category"]["unit"]["value"]["label"] == "records"
    # The same attribute is the time of the other formats.
    data = pd.read_csv(next((tmp_path / "published/sdmx").glob("*nace*")), dtype=str)
    assert set(data["TIME_PERIOD"]) == {"2024", "2025", "2026"}
    assert set(data["FREQ"]) == {"A"}
    assert "YEAR" not in data
    px = next((tmp_path / "published/px").glob("*nace*")).read_text("utf-8")
    assert 'TIMEVAL("Year")=TLIST(A1),"2024","2025","2026";' in px
    other = rp.Imprint(time="nace", period="2026")
    with pytest.raises(rp.errors.RpexploreError, match="periods of one length"):
        publish(tmp_path / "out", tmp_path / "no", formats=["sdmx"], imprint=other)
