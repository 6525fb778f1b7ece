"""The data package, judged and read by the Frictionless framework."""

import json
import shutil

import frictionless
import numpy as np
import pandas as pd
import pytest

from rpexplore.common.numbers import exact_text
from rpexplore.domain.result_schema import Schema


@pytest.mark.by_day(1)
def test_the_package_is_valid_and_its_numbers_are_those_of_the_tables(exported):
    file = str(exported.folder / "datapackage.json")
    assert frictionless.validate(file).flatten(["fieldName", "type", "note"]) == []
    package = frictionless.Package(file)
    for resource, item in zip(package.resources, exported.results.items, strict=True):
        frame = item.frame
        read = pd.DataFrame([row.to_dict() for row in resource.read_rows()])
        titles = [field.title for field in resource.schema.fields]
        assert titles == [*frame.columns, "obs_status"]  # which CSVW has
        columns = Schema.of(frame).columns
        for field, stated in zip(resource.schema.fields[:-1], columns, strict=True):
            column = frame[stated.name]
            if stated.is_number:
                unit = exported.last_decimal(frame)
                numbers = read[field.name].astype(float)
                np.testing.assert_allclose(numbers, column.astype(float), rtol=0, atol=unit)
            else:
                texts = column.map({True: "yes", False: "no"}) if stated.role == "flag" else column
                assert read[field.name].fillna("").tolist() == texts.astype(str).tolist()


def test_a_figure_or_a_category_that_was_changed_is_seen(exports, tmp_path):
    shutil.copytree(exports["released"].folder, tmp_path / "copy")
    file = next((tmp_path / "copy/tables").glob("*_sex.csv"))
    file.write_text(file.read_text("utf-8").replace('"female"', '"femole"'), "utf-8")
    report = frictionless.validate(str(tmp_path / "copy/datapackage.json"))
    assert {kind for (kind,) in report.flatten(["type"])} == {"hash-count", "constraint-error"}


def test_fields_say_what_the_codebook_calls_an_attribute(exports):
    package = frictionless.Package(str(exports["released"].folder / "datapackage.json"))
    (height,) = (
        field for field in package.get_resource("0003_gr-e").schema.fields if field.name == "Gro_e"
    )
    assert (height.title, height.description) == ("Größe", "Body height: what a row counts.")


def test_the_guarantee_is_that_of_the_release_to_the_letter(exported):
    package = json.loads((exported.folder / "datapackage.json").read_text("utf-8"))
    plan = exported.plan
    assert package["privacy"]["guarantee"] == exported.results.guarantee
    assert exported.results.guarantee in package["description"]
    assert package["privacy"]["rho"] == exact_text(plan.rho)
    assert package["privacy"]["privacy_unit"] == plan.budget.unit
    assert package["title"] == "Atlas of persons"
