"""Structure and observations in SDMX, judged and read by pysdmx with the official schemas."""

import numpy as np
import pandas as pd
import pytest
from pysdmx.io import get_datasets, read_sdmx

import rpexplore as rp
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
DIMENSIONS = {
    "marital status": "MARITAL_STATUS", "sex": "SEX", "Größe": "GRO_E", "value": "VALUE",
    "region": "REGION", "town": "TOWN", "own count": "OWN_COUNT", "income": "INCOME",
}  # fmt: skip


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
            own = [one.name for one in schema.labels if one.attribute == attribute]
            if own:
                # The label, where there is one.
                called = [names[dimension][code] for code in data[dimension]]
                codes, labels = (frame[name].astype(str) for name in (own[0], own[-1]))
                assert called == [label or code for code, label in zip(codes, labels, strict=True)]
            elif dimension in data:
                assert set(data[dimension]) == {"_T"}
        assert {DIMENSIONS[attribute] for attribute in exported.results.attributes} <= {*data}
        unit = exported.last_decimal(frame)
        for column in schema.columns:
            if column.is_number:
                numbers = data[NUMBERS[column.role]].astype(float)
                np.testing.assert_allclose(numbers, frame[column.name], rtol=0, atol=unit)
        assert {*data["OBS_STATUS"], *data["CONF_STATUS"], *data["TIME_PERIOD"]} == {
            "E",
            "F",
            "2026-Q1",
        }


def test_the_dataflow_says_what_is_guaranteed(exported):
    (dataflow,) = read_sdmx(exported.folder / "sdmx/structure.xml").get_dataflows()
    assert (dataflow.agency, dataflow.name) == ("OFFICE.UNIT", "Atlas of persons")
    assert exported.results.guarantee in dataflow.description


def test_no_key_is_there_twice_in_the_whole_cube(exports):
    keys = [
        tuple(row.split(",")[3:7])
        for file in (exports["released"].folder / "sdmx").glob("*.csv")
        for row in file.read_text("utf-8").splitlines()[1:]
    ]
    assert len(keys) > 50
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([("01", "a"), ("01", "b"), ("_T", "")], ["01", "01_2", "T"]),
        ([("≤ 24", ""), ("LE_24", ""), ("18 to 24", "")], ["LE_24_2", "LE_24", "18_to_24"]),
        ([("年", ""), ("齢", ""), ("a\nb", "")], ["code", "code_2", "a_b"]),
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
