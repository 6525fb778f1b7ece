"""Metadata of CSV on the Web, judged and read by the csvw library."""

import json
import shutil

import numpy as np
from csvw import CSVW

from rpexplore.domain.result_schema import Schema


def test_metadata_and_tables_are_valid_and_read_as_released(exported):
    tables = CSVW(str(exported.folder / "csv-metadata.json"), validate=True)
    assert tables.is_valid
    assert [str(warning.message) for warning in tables.warnings] == []
    assert exported.results.guarantee == tables.to_json()["dc:provenance"]
    for table, item in zip(tables.tables, exported.results.items, strict=True):
        frame, rows = item.frame, list(table)
        for column in Schema.of(frame).names("value", "error", "lower", "upper", "margin"):
            unit = exported.last_decimal(frame)
            numbers = np.array([row[column] for row in rows], dtype=float)  # NaN for none
            np.testing.assert_allclose(numbers, frame[column], rtol=0, atol=unit)
        for row, marital in zip(rows, frame.get("marital status label", ()), strict=False):
            assert row["marital_status_label"] == marital


def test_another_column_or_a_cell_that_is_no_number_is_seen(exports, tmp_path):
    shutil.copytree(exports["released"].folder, tmp_path / "copy")
    described = tmp_path / "copy/csv-metadata.json"
    metadata = json.loads(described.read_text("utf-8"))
    file = tmp_path / "copy" / metadata["tables"][2]["url"]
    file.write_text(file.read_text("utf-8").replace('"f","female",', '"f","female",x'), "utf-8")
    assert not CSVW(str(described), validate=True).is_valid
