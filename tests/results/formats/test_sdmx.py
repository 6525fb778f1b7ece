"""Structure and observations in SDMX, judged and read by pysdmx with the official schemas."""

import re

import numpy as np
import pandas as pd
import pytest
from pysdmx.io import get_datasets, read_sdmx

import rpexplore as rp
from rpexplore.domain.levels import Level
from rpexplore.domain.result_schema import IMPOSSIBLE_NOTE, Schema
from rpexplore.results.formats.publishing import publish
from rpexplore.results.formats.writers.sdmx import identifiers

NUMBERS = {
    "value": "OBS_VALUE",
    "error": "STD_ERR",
    "lower": "LOWER_BOUND",
    "upper": "UPPER_BOUND",
    "model_error": "MODEL_ERROR",
    "estimate": "UNBIASED_VALUE",
    "margin": "MARGIN_95",
    "target": "TARGET",
}
SEXES = rp.Categories(("1", "2"))
DIMENSIONS = {
    "marital status": "MARITAL_STATUS", "sex": "SEX", "Größe": "GRO_E", "value": "VALUE",
    "region": "REGION", "own count": "OWN_COUNT", "income": "INCOME",
}  # fmt: skip


@pytest.mark.by_day(1)
def test_all_tables_are_one_cube_with_the_figures_of_the_release(exported):
    folder = exported.folder / "sdmx"
    structure = read_sdmx(folder / "structure.xml", validate=True)  # by the schemas of SDMX 3.0
    names = {
        codelist.id.removeprefix("CL_"): {code.id: code.name for code in codelist.codes}
        for codelist in structure.get_codelists()
    }
    files = sorted(folder.glob("*.csv"))
    of_files = {item.name.lower(): item for item in exported.results.items}
    for file in files[::3]:
        (dataset,) = get_datasets(file, folder / "structure.xml", validate=True)
        data, frame = dataset.data, of_files[file.stem].frame
        schema = Schema.of(frame)
        assert not set(data.columns) ^ {component.id for component in dataset.structure.components}
        for attribute, dimension in DIMENSIONS.items():
            own = [one for one in schema.labels if one.attribute == attribute]
            if own and attribute not in exported.results.area_levels:
                # The label, where there is one.
                called = [names[dimension][code] for code in data[dimension]]
                codes = frame[own[0].name].astype(str)
                labels = frame[own[-1].name].astype(str)
                labels = labels.mask(labels == (own[-1].whole or None), "Total")
                assert called == [label or code for code, label in zip(codes, labels, strict=True)]
            elif dimension in data:
                assert set(data[dimension]) == {"_T"}
        levels = {*exported.results.area_levels}
        others = {*exported.results.attributes} - levels
        assert {DIMENSIONS[attribute] for attribute in others} <= {*data}
        assert ("AREA" in data) == bool(levels)
        if areas := [name for name in ("region", "town") if name in frame and levels]:
            of_frame = ["_".join(map(str, path)) for path in frame[areas].itertuples(index=False)]
            assert data["AREA"].tolist() == of_frame
            text = (folder / "structure.xml").read_text()
            parents = dict(
                re.findall(r'id="(\w+)">(?:(?!</str:Code>).)*?<str:Parent>(\w+)<', text, re.S)
            )
            assert {parents.get(code) for code in of_frame} <= (
                {"N", "S"} if "town" in areas else {None}
            )
            named = [names["AREA"][code] for code in of_frame]
            assert "town" not in areas or named == frame["town label"].tolist()
        unit = exported.last_decimal(frame)
        for column in schema.columns:
            if column.is_number:
                numbers = data[NUMBERS[column.role]].astype(float)
                np.testing.assert_allclose(numbers, frame[column.name], rtol=0, atol=unit)
        constants = ("CONF_STATUS", "TIME_PERIOD", "FREQ", "UNIT_MULT")
        assert [set(data[name]) for name in constants] == [{"F"}, {"2026-Q1"}, {"Q"}, {"0"}]
        assert data["OBS_STATUS"].tolist() == [*map(status, *figures_of(frame))]
        if exported.source.name == "amounts":
            is_sum = data["INCOME"].str.startswith("sum") if "INCOME" in data else None
            assert is_sum is None or {*data["UNIT_MEASURE"][is_sum]} <= {"EUR"}
        elif exported.source.name == "own counts":
            assert set(data["UNIT_MEASURE"]) == {"NUMBER"}
        else:
            assert set(data["UNIT_MEASURE"]) == {"RECORDS"}


def figures_of(frame: pd.DataFrame) -> tuple[list[float], list[float], list[float]]:
    schema = Schema.of(frame)
    error, count = schema.error_and_count
    return frame[schema.name("value")].tolist(), frame[error].tolist(), frame[count].tolist()


def status(value: float, error: float, count: float) -> str:
    if np.isnan(value):
        return "O"
    if value == error == count == 0:
        return "A"
    return "E" if np.isnan(error) or (count > 0 and error <= count / 5) else "U"


def test_the_dataflow_says_what_is_guaranteed(exported):
    (dataflow,) = read_sdmx(exported.folder / "sdmx/structure.xml").get_dataflows()
    assert (dataflow.agency, dataflow.name) == ("OFFICE.UNIT", "Atlas of persons")
    assert exported.results.guarantee in dataflow.description


@pytest.mark.by_day(1)
@pytest.mark.parametrize("kind", ["released", "smooth", "whole"])  # the last adds up by moves
def test_a_key_that_is_there_twice_in_the_whole_cube_is_one_cell(exports, kind):
    figures: dict[str, list[float]] = {}
    for file in (exports[kind].folder / "sdmx").glob("*.csv"):
        data = pd.read_csv(file)
        keys = data[["MARITAL_STATUS", "SEX", "GRO_E", "VALUE"]].agg(",".join, axis=1)
        assert not keys.duplicated().any()
        for key, figure in zip(keys, data["OBS_VALUE"], strict=True):
            figures.setdefault(key, []).append(figure)
    several = [some for some in figures.values() if len(some) > 1]
    assert len(several) >= 8  # in tables with heights, and those without: cumulative up to all
    for some in several:
        np.testing.assert_allclose(some, some[0], atol=1e-4)


def test_groups_are_parents_and_the_whole_of_an_attribute_has_one_code(tmp_path):
    paths = (("A", "A0"), ("A", "A0"), ("A",), ("B",))
    values = rp.Categories(("A", "A02", "A9", "B05"), ("Crops", "Cattle", "Other", "Coal"))
    domain = rp.Domain((rp.Attribute("nace", values, groups=paths), rp.Attribute("s", SEXES)))
    workload = rp.Workload.all_up_to(domain, 2).with_bases({"nace": rp.Hierarchy()})
    plan = rp.plan(rp.Request(tables=workload, budget=rp.Budget(rho="1e6")))
    records = pd.DataFrame({"nace": ["A", "A02", "B05"], "s": ["1", "2", "1"]})
    rp.release(plan, records, tmp_path / "out", name="x", ledger=tmp_path / "ledger.sqlite")
    publish(tmp_path / "out", tmp_path / "published", formats=["sdmx"])
    folder = tmp_path / "published/sdmx"
    structure = read_sdmx(folder / "structure.xml", validate=True)
    (codes,) = (one.codes for one in structure.get_codelists() if one.id == "CL_NACE")
    text = (folder / "structure.xml").read_text("utf-8")
    parents = dict(re.findall(r'id="(\w+)">(?:(?!</str:Code>).)*?<str:Parent>(\w+)<', text, re.S))
    names = {code.id: code.name for code in codes}
    # The group A has the value A within it, which keeps its code.
    assert {names[code]: names[parent] for code, parent in parents.items()} == {
        "A0": "A", "Crops": "A0", "Cattle": "A0", "Other": "A", "Coal": "B",
    }  # fmt: skip
    assert names.keys() == {"_T", "A", "A_2", "A0", "B", "A02", "A9", "B05"}
    for file in folder.glob("*.csv"):
        data = pd.read_csv(file, dtype=str)
        totals = data[(data["NACE"] == "_T") & (data["S"] == "_T")]
        assert totals["OBS_VALUE"].astype(float).round().tolist() == [3] * ("s" not in file.stem)


def test_levels_are_codes_of_their_attribute_with_the_right_parents(tmp_path):
    nace = rp.Attribute(
        "nace",
        rp.Categories(("A01", "A02", "B05", "C"), ("Crops", "Forestry", "Coal", "Making")),
        "Activity",
        levels=(
            Level("GROUPS", ("A", "A", "B", "C")),  # C is a value, too
            Level("mines", ("no", "no", "yes", "no")),  # B is all of yes
        ),
    )
    age = rp.Attribute(
        "age",
        rp.Integers(0, 19),
        levels=(
            Level("ten", ("0-9",) * 10 + ("10-19",) * 10),
            Level("adult", ("0-17",) * 18 + ("18+",) * 2),
        ),
    )
    tables = [
        ("nace",), ("nace@GROUPS", "age@ten"), ("nace@mines",), ("age@adult",), ("age",),
    ]  # fmt: skip
    domain = rp.Domain((nace, age))
    plan = rp.plan(
        rp.Request(tables=rp.Workload.of(domain.with_levels, tables), budget=rp.Budget(rho="1e6"))
    )
    records = pd.DataFrame({"nace": ["A01", "A02", "B05", "C"], "age": [3, 9, 17, 18]})
    release = rp.release(plan, records, tmp_path / "r", name="x", ledger=tmp_path / "ledger")
    rp.postprocess(release, tmp_path / "w", method="nonnegative", rounded=True)
    for kind in ("r", "w"):  # the second has no codebook
        publish(tmp_path / kind, tmp_path / f"of {kind}", formats=["sdmx"])
        folder = tmp_path / f"of {kind}/sdmx"
        structure = read_sdmx(folder / "structure.xml", validate=True)
        lists = {one.id: one for one in structure.get_codelists()}
        assert lists["CL_NACE"].name == "Activity"
        assert not {one for one in lists if "GROUPS" in one or "ADULT" in one}
        text = (folder / "structure.xml").read_text("utf-8")
        of_list = re.findall(r'<str:Codelist id="CL_(NACE|AGE)".*?</str:Codelist>', text, re.S)
        assert of_list == ["NACE", "AGE"]
        parents = dict(
            re.findall(r'id="([\w-]+)">(?:(?!</str:Code>).)*?<str:Parent>([\w-]+)<', text, re.S)
        )
        codes = ("A01", "A02", "B05", "A", "B", "no", "yes")
        assert {code: parents.get(code) for code in codes} == {
            "A01": "A", "A02": "A", "B05": "B", "A": "no", "B": "yes", "no": None, "yes": None,
        }  # fmt: skip
        assert (parents["C"], parents["C_2"]) == ("C_2", "no")  # the value, and the group of it
        # 10-19 lies in neither of 0-17 and 18+, and 17 in the smaller of its groups.
        codes = ("3", "17", "19", "G_0-9", "G_10-19", "G_0-17", "GE_18")
        assert {code: parents.get(code) for code in codes} == {
            "3": "G_0-9", "17": "G_10-19", "19": "GE_18",
            "G_0-9": "G_0-17", "G_10-19": None, "G_0-17": None, "GE_18": "G_10-19",
        }  # fmt: skip
        (path,) = folder.glob("*groups*.csv")
        (dataset,) = get_datasets(path, folder / "structure.xml", validate=True)
        counts = dataset.data.set_index(["NACE", "AGE"])["OBS_VALUE"].astype(float).round()
        assert counts[counts > 0].to_dict() == {
            ("A", "G_0-9"): 2, ("B", "G_10-19"): 1, ("C_2", "G_10-19"): 1,
        }  # fmt: skip


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["<=50K", ">50K", "≤ 50K"], ["LE_50K", "GT_50K", "LE_50K_2"]),
        (["<65", ">=65", "65+", "65"], ["LT_65", "GE_65", "GE_65_2", "65"]),
        (["<>1", "=1"], ["NE_1", "1"]),
    ],
)
def test_comparisons_in_values_keep_their_meaning_in_codes(texts, expected):
    assert list(identifiers([(text, "") for text in texts]).values()) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([("01", "a"), ("01", "b"), ("_T", "")], ["01", "01_2", "T"]),
        ([("≤ 24", ""), ("LE_24", ""), ("18 to 24", "")], ["LE_24_2", "LE_24", "18_to_24"]),
        ([("年", ""), ("齢", ""), ("a\nb", "")], ["code", "code_2", "a_b"]),
        ([("Zürich", ""), ("é", ""), ("e", "")], ["Zurich", "e_2", "e"]),
    ],
)
def test_codes_are_kept_where_they_can_be_identifiers(values, expected):
    assert list(identifiers(values).values()) == expected


def test_notes_on_rows_are_attributes_of_observations(tmp_path):
    attributes = (
        rp.Attribute("age", rp.Categories(("young", "old"))),
        rp.Attribute("married", rp.Categories(("yes", "no"))),
    )
    impossible = [{"age": "young", "married": "yes"}]
    domain = rp.Domain(attributes, impossible)  # pyright: ignore[reportArgumentType]
    plan = rp.plan(rp.Request(tables=rp.Workload.all_up_to(domain, 2), budget=rp.Budget(rho=1)))
    records = pd.DataFrame({"age": ["young", "old"] * 50, "married": "no"})
    rp.release(plan, records, tmp_path / "out", name="x", ledger=tmp_path / "ledger.sqlite")
    publish(tmp_path / "out", tmp_path / "published", formats=["sdmx"])
    folder = tmp_path / "published" / "sdmx"
    notes = []
    for file in sorted(folder.glob("*.csv")):
        (dataset,) = get_datasets(file, folder / "structure.xml", validate=True)
        assert dataset.structure is not None
        if "NOTE" in dataset.data:
            notes += [*dataset.data["NOTE"]]
    assert len([note for note in notes if note == IMPOSSIBLE_NOTE]) == 1


def test_codes_that_would_be_formulas_have_an_underscore_where_that_is_wanted():
    values = [("@SUM_1", ""), ("-2", ""), ("@SUM(1)", ""), ("-2+3", ""), ("_-2", ""), ("a-b", "")]
    escaped = list(identifiers(values, escape_formulas=True).values())
    assert escaped == ["_@SUM_1", "_-2_2", "_@SUM_1_2", "_-2_3", "_-2", "a-b"]
    assert list(identifiers(values).values())[:2] == ["@SUM_1", "-2"]


def test_the_period_of_figures_of_all_periods_together_is_none_of_these(tmp_path):
    domain = rp.Domain((rp.Attribute("year", rp.Integers(2024, 2026)),))
    workload = rp.Workload.of(domain, [(), ("year",)])
    plan = rp.plan(rp.Request(tables=workload, budget=rp.Budget(rho=10)))
    records = pd.DataFrame({"year": [2024, 2025, 2026]})
    rp.release(plan, records, tmp_path / "out", name="x", ledger=tmp_path / "ledger")
    imprint = rp.Imprint(time="year")
    with pytest.raises(rp.errors.RpexploreError, match="of all 'year' together; say when"):
        publish(tmp_path / "out", tmp_path / "no", formats=["sdmx"], imprint=imprint)
    imprint = rp.Imprint(time="year", period="2026")
    with pytest.raises(rp.errors.RpexploreError, match="'2026' is one of the values of 'year'"):
        publish(tmp_path / "out", tmp_path / "no", formats=["sdmx"], imprint=imprint)
    imprint = rp.Imprint(time="year", period="2027")
    publish(tmp_path / "out", tmp_path / "published", formats=["sdmx"], imprint=imprint)
