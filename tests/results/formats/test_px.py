"""PX files, read by the pyaxis library."""

import json

import pandas as pd
import pytest
from pyaxis.pyaxis import parse

import rpexplore as rp
from rpexplore.domain.result_schema import Schema
from rpexplore.domain.values import ImpossibleCombination
from rpexplore.results.formats.publishing import publish

SEX = rp.Attribute("sex", rp.Categories(("f", "m"), ("women", "men")))


def parsed(path):
    """Keywords, and a frame of all cells, one row a figure."""
    read = parse(str(path), encoding="utf-8")
    return read["METADATA"], read["DATA"]


def test_every_figure_is_read_as_released(exported):
    for item in exported.results.items:
        keywords, cells = parsed(exported.folder / "px" / f"{item.name.lower()}.px")
        frame = item.frame
        columns = [column for column in Schema.of(frame).columns if column.is_number]
        names = [column.name.replace("_", " ") for column in columns]
        assert keywords["VALUES(figure)"] == names
        for position, column in enumerate(columns):
            figures = cells["DATA"].iloc[position :: len(columns)].astype(float)
            expected = frame[column.name].tolist()
            unit = exported.last_decimal(frame)
            assert figures.tolist() == pytest.approx(expected, abs=unit, nan_ok=True)


def test_variables_are_those_of_the_codebook(tmp_path):
    domain = rp.Domain(
        (
            rp.Attribute("when", rp.Dates("2025-07-01", "2026-03-31", "quarter"), "Period"),
            rp.Attribute("sex", rp.Categories(("f", "m"), ("women", 'the "men"'))),
            rp.Attribute("long", rp.Categories(("a", "b"), ("x; y = " * 60, "DATA"))),
            rp.Attribute("quoted", rp.Categories(("a'b", 'a"b'))),
        ),
        impossible=(ImpossibleCombination((("sex", "f"), ("long", "b"))),),
    )
    tables = [("when", "sex"), ("sex", "long"), ("quoted",)]
    plan = rp.plan(
        rp.Workload.of(domain, tables), loss=rp.SumOfVariances(), budget=rp.Budget(rho="1")
    )
    records = pd.DataFrame({"when": ["2026-01-05"] * 9, "sex": ["m"] * 9, "long": ["a"] * 9})
    records["quoted"] = "a'b"
    released = rp.release(plan, records, tmp_path / "released", name="s", ledger=tmp_path / "l")
    imprint = rp.Imprint("Atlas", "Office", period="2026-Q1")
    publish(tmp_path / "released", tmp_path / "out", formats=["px"], imprint=imprint)

    keywords, cells = parsed(next((tmp_path / "out/px").glob("*_when_sex.px")))
    assert keywords["TITLE"] == ["Atlas: Period × sex"]
    assert keywords["STUB"] == ["Period", "sex"]
    assert keywords["VARIABLECODE(Period)"] == ["when"]
    assert keywords["CODES(Period)"] == ["2025-Q3", "2025-Q4", "2026-Q1"]
    assert keywords["TIMEVAL(Period)"] == ["20253", "20254", "20261"]
    assert keywords["VALUES(sex)"] == ["women", "the 'men'"]
    assert keywords["CODES(sex)"] == ["f", "m"]
    assert keywords["UNITS(value)"] == ["records"]
    assert keywords["REFPERIOD(value)"] == ["2026-Q1"]
    assert keywords["SOURCE"] == ["Office"]
    said = "".join(keywords["NOTEX"])  # the reader drops spaces at the ends of lines
    assert released.guarantee.replace(" ", "") in said.replace(" ", "")
    assert len(cells) == 3 * 2 * 4

    keywords, _ = parsed(next((tmp_path / "out/px").glob("*_quoted.px")))
    assert keywords["CODES(quoted)"] == ["a'b", "a'b (2)"]

    text = next((tmp_path / "out/px").glob("*_sex_long.px")).read_text("utf-8")
    assert 'CELLNOTE("f","b","*")="note: impossible by the codebook";' in text
    assert max(map(len, text.splitlines())) <= 256
    assert ("x; y = " * 60).strip() in text.replace('"\n"', "")


def test_levels_of_areas_are_one_variable(exports):
    areas = exports["areas"]
    keywords, _ = parsed(areas.folder / "px" / f"{areas.results.items[-1].name.lower()}.px")
    assert keywords["STUB"][0] == "region/town"
    assert keywords["CODES(region/town)"] == ["N/1", "N/2", "S/1"]
    assert keywords["VALUES(region/town)"] == ["Aa", "Bb", "Cc"]


def test_the_period_is_that_of_figures_of_all_times_together(tmp_path):
    domain = rp.Domain((rp.Attribute("year", rp.Integers(2024, 2026)), SEX))
    workload = rp.Workload.of(domain, [("sex",), ("year",)])
    plan = rp.plan(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho=10))
    records = pd.DataFrame({"year": [2024, 2025, 2026], "sex": ["f", "m", "f"]})
    rp.release(plan, records, tmp_path / "r", name="x", ledger=tmp_path / "ledger")
    for words, imprint in (
        ("'2026' is one of the values of 'year'", rp.Imprint(time="year", period="2026")),
        ("must be periods of one length", rp.Imprint(time="sex")),
        ("'town' is in no table", rp.Imprint(time="town")),
    ):
        for name in ("px", "jsonstat", "csvw", "sdmx"):
            with pytest.raises(rp.errors.RpexploreError, match=words):
                publish(tmp_path / "r", tmp_path / "no", formats=[name], imprint=imprint)
    imprint = rp.Imprint(time="year", period="2027")
    publish(tmp_path / "r", tmp_path / "out", formats=["px"], imprint=imprint)
    of_sex, of_year = (
        parsed(next((tmp_path / "out/px").glob(f"*_{name}.px")))[0] for name in ("sex", "year")
    )
    assert of_sex["REFPERIOD(value)"] == ["2027"]
    assert "REFPERIOD(value)" not in of_year
    assert of_year["TIMEVAL(year)"] == ["2024", "2025", "2026"]


def test_sums_beside_counts_have_the_units_of_both(tmp_path):
    income = rp.Attribute("income", rp.Amounts(0, 1000, unit="EUR"))
    domain = rp.Domain((income, rp.Attribute("sex", rp.Categories(("f", "m")))))
    workload = rp.Workload.of(domain, [("income", "sex")])
    plan = rp.plan(workload, loss=rp.SumOfVariances(), budget=rp.Budget(rho="1"))
    records = pd.DataFrame({"income": [100.0, 300.0] * 50, "sex": ["f", "m"] * 50})
    rp.release(plan, records, tmp_path / "released", name="s", ledger=tmp_path / "l")
    publish(tmp_path / "released", tmp_path / "out", formats=["px", "jsonstat"])
    for name, units in (("income_sex", "EUR / records"), ("income_sex_means", "EUR")):
        keywords, _ = parsed(next((tmp_path / "out/px").glob(f"*_{name}.px")))
        assert keywords["UNITS"] == keywords["UNITS(value)"] == [units]
        cube = json.loads(next((tmp_path / "out/jsonstat").glob(f"*_{name}.json")).read_text())
        assert cube["dimension"]["figure"]["category"]["unit"]["value"]["label"] == units
